//! Asking a running router: a Unix socket on which each line is a request or its answer, as JSON.
//!
//! A request is `{"command": ["show", "runtime"], "json": false}`, with what [`Request`] has beside
//! that where the command needs it; an answer is `{"ok": true, "text": "..."}`, `{"ok": true,
//! "json": ...}` or `{"ok": false, "error": "..."}`. A connection may carry any number of requests,
//! one after the other.

mod access;
mod client;
mod connection;
mod connection_limit;
mod error;
mod server;
#[cfg(test)]
mod tests;

use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use client::{Client, Failure};
pub use error::StartError;
pub use server::{Server, remove_dead};

use crate::cli::Command;
use crate::config::LARGEST;
use crate::history::Who;

/// Longest request in bytes, with its newline, of those who may only ask: room for any
/// command, and little to hold for each of their connections.
pub const REQUEST: usize = 64 << 10;
/// Longest request of those who may change things: a configuration has room in it, though quotes
/// and ends of lines take two bytes there.
pub const LONG_REQUEST: usize = 2 * LARGEST + REQUEST;

/// A client's request.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Request {
    /// The words of a command.
    pub command: Vec<String>,
    /// Answer for a program instead of a person.
    #[serde(default)]
    pub json: bool,
    /// Of `plan` and `apply`: the configuration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// The configuration's name in messages.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Of `plan`: with the steps.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub steps: bool,
    /// Of `apply` and `rollback`: take it back unless it is confirmed within so many seconds, 1 to
    /// [`CONFIRM`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confirm: Option<u64>,
    /// Of `apply`: words for people, at most [`COMMENT`] bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub comment: Option<String>,
}

/// Bytes of a comment at most: `history` prints each on the line of its configuration.
pub const COMMENT: usize = 1000;
/// Seconds that a change may wait for confirmation at most: a day. No other change is made
/// meanwhile, so one that is forgotten must end.
pub const CONFIRM: u64 = 24 * 60 * 60;

/// The router's answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Answer {
    /// True if the command was carried out.
    pub ok: bool,
    /// The answer for a person.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// The answer for a program.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub json: Option<Value>,
    /// The reason why it was not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// The result of a command.
#[derive(Debug, Clone, PartialEq)]
pub enum Output {
    /// For a person.
    Text(String),
    /// For a program.
    Json(Value),
}

impl From<Result<Output, String>> for Answer {
    fn from(result: Result<Output, String>) -> Self {
        let empty = Answer {
            ok: true,
            text: None,
            json: None,
            error: None,
        };
        match result {
            Ok(Output::Text(text)) => Answer {
                text: Some(text),
                ..empty
            },
            Ok(Output::Json(json)) => Answer {
                json: Some(json),
                ..empty
            },
            Err(error) => Answer {
                ok: false,
                error: Some(error),
                ..empty
            },
        }
    }
}

/// Carries out commands; called from the server's threads, several at a time.
pub trait Handler: Send + Sync {
    /// Carries out a command, which the words of the request are, for somebody.
    ///
    /// # Errors
    /// The reason, in one line; for a configuration, a line for each problem.
    fn call(&self, command: &Command, request: &Request, who: &Who) -> Result<Output, String>;
}
