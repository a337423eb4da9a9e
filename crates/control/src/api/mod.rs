//! Asking a running router: a Unix socket on which each line is a request or its answer, as JSON.
//!
//! A request is `{"command": ["show", "runtime"], "json": false}`, an answer `{"ok": true, "text":
//! "..."}`, `{"ok": true, "json": ...}` or `{"ok": false, "error": "..."}`. A connection may carry
//! any number of requests, one after the other.

mod access;
mod client;
mod connection;
mod error;
mod lock;
mod seats;
mod server;
#[cfg(test)]
mod tests;

use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use client::{Client, Failure};
pub use error::StartError;
pub use server::{Server, remove_dead};

use crate::cli::Command;

/// Longest request in bytes, with its newline.
pub const REQUEST: usize = 64 << 10;

/// What a client asks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Request {
    /// The words of a command.
    pub command: Vec<String>,
    /// Answer for a program instead of a person.
    #[serde(default)]
    pub json: bool,
}

/// What the router answers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Answer {
    /// Whether it was done.
    pub ok: bool,
    /// The answer for a person.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// The answer for a program.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub json: Option<Value>,
    /// Why it was not done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// What a command yields.
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
    /// Carries out a command. `json`: the answer is for a program.
    ///
    /// # Errors
    /// What is wrong, in one line.
    fn call(&self, command: &Command, json: bool) -> Result<Output, String>;
}
