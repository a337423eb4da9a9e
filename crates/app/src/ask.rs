//! `parshall show|trace|clear ...`, `confirm`, `history` and `dump`: asks the running router.

use std::path::PathBuf;

use clap::Args;

use control::api::{Client, Output, Request};

use crate::output;

/// The router to ask, and the form of its answer.
#[derive(Args)]
pub struct Router {
    /// Control socket of the router
    #[arg(long, value_name = "PATH", default_value = control::config::SOCKET)]
    socket: PathBuf,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

impl Router {
    /// Asks, and prints the answer.
    pub fn ask(&self, request: Request) -> crate::Outcome {
        let request = Request {
            json: self.json,
            ..request
        };
        match Client::connect(&self.socket)?.ask(&request)? {
            Output::Text(text) => output::print(&text),
            Output::Json(json) => output::print(&output::json(&json)?),
        }
    }

    /// Asks with a command's words, and prints the answer.
    fn command(&self, verb: &str, words: impl IntoIterator<Item = String>) -> crate::Outcome {
        let mut command = vec![verb.to_owned()];
        command.extend(words);
        // The router would not understand it either: say so without asking.
        control::cli::parse(&command)?;
        self.ask(Request {
            command,
            ..Request::default()
        })
    }
}

/// Words of a command to the running router.
#[derive(Args)]
pub struct Ask {
    /// The command's further words; any unique beginning of a word is enough
    #[arg(value_name = "WORDS")]
    words: Vec<String>,
    #[command(flatten)]
    router: Router,
}

impl Ask {
    /// Asks, and prints the answer.
    pub fn run(self, verb: &str) -> crate::Outcome {
        self.router.command(verb, self.words)
    }
}

/// A command without further words.
#[derive(Args)]
pub struct Alone {
    #[command(flatten)]
    router: Router,
}

impl Alone {
    /// Asks, and prints the answer.
    pub fn run(self, verb: &str) -> crate::Outcome {
        self.router.command(verb, [])
    }
}

/// The history of configurations.
#[derive(Args)]
pub struct History {
    /// Number of the one whose changes are shown [default: all are listed]
    #[arg(value_name = "N")]
    number: Option<u32>,
    #[command(flatten)]
    router: Router,
}

impl History {
    /// Asks, and prints the answer.
    pub fn run(self) -> crate::Outcome {
        let number = self.number.map(|number| number.to_string());
        self.router.command("history", number)
    }
}
