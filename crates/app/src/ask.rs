//! `parshall show|trace|clear ...`: asks the running router.

use std::path::PathBuf;

use clap::Args;

use control::api::{Client, Output};

use crate::output;

/// Words of a command to the running router.
#[derive(Args)]
pub struct Ask {
    /// The command's further words; any unique beginning of a word is enough
    #[arg(value_name = "WORDS")]
    words: Vec<String>,
    /// Control socket of the router
    #[arg(long, value_name = "PATH", default_value = "/run/parshall/cli.sock")]
    socket: PathBuf,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl Ask {
    /// Asks, and prints the answer.
    pub fn run(self, verb: &str) -> crate::Outcome {
        let words: Vec<&str> = std::iter::once(verb)
            .chain(self.words.iter().map(String::as_str))
            .collect();
        // The router would not understand it either: say so without asking.
        control::cli::parse(&words)?;
        match Client::connect(&self.socket)?.call(&words, self.json)? {
            Output::Text(text) => output::print(&text),
            Output::Json(json) => output::print(&output::json(&json)?),
        }
    }
}
