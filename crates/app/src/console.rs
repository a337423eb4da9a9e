//! `parshall console`: T-Rex's console words without a server.

use std::env;
use std::path::PathBuf;

use ::trex::Local;
use clap::Args;
use terminal::console;

use crate::load::Interrupt;
use crate::trex::Tester;

/// Drive ports by the words of T-Rex's console: start, update, pause, resume, stop, stats ...
///
/// `help` lists them. The ports are this process's own: there is no server. Lines from a pipe are a
/// script: the first one that fails ends it with exit code 1, and its end waits for ports that were
/// started for a time. On a terminal, Ctrl-C stops what sends, and a second one leaves.
#[derive(Args, Debug)]
pub struct Console {
    #[command(flatten)]
    tester: Tester,
}

impl Console {
    /// Does what is typed or piped.
    ///
    /// # Errors
    /// A port, or the first line of a script that fails.
    pub fn run(self) -> crate::Outcome {
        let interrupt = Interrupt::on_signal()?;
        let (session, facts) = self.tester.open(&interrupt)?;
        let tester = Local::start(session, facts)?;
        Ok(console::run(tester, history(), &interrupt.flag())?)
    }
}

/// The file of lines typed so far, where the user's state belongs (XDG base directories).
fn history() -> Option<PathBuf> {
    let get = |name| {
        env::var_os(name)
            .filter(|value| !value.is_empty())
            .map(PathBuf::from)
    };
    let state = get("XDG_STATE_HOME").or_else(|| Some(get("HOME")?.join(".local/state")))?;
    Some(state.join("parshall").join("console-history"))
}
