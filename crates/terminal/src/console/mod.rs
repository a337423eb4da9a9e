//! `parshall console`: T-Rex's console words, on ports of this process.
//!
//! `words` says what there is and with which options, `act` does it by the commands of T-Rex's
//! RPC, and `prompt` reads lines from a terminal.

mod act;
mod prompt;
mod refused;
mod split;
mod words;

#[cfg(test)]
mod tests;

use std::io::{self, BufRead, IsTerminal, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use trex::Local;

use act::{Act, Next};

/// Time between two looks at ports that are awaited.
const TICK: Duration = Duration::from_millis(20);

/// Reasons for ending badly.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A line of a script failed.
    #[error("line {0}: {1}")]
    Line(usize, String),
    /// A device is lost.
    #[error("{0}: the script ended there")]
    Lost(String),
    /// A port cannot be acquired.
    #[error("{0}")]
    Refused(String),
    /// Input or output.
    #[error("console: {0}")]
    Io(#[from] io::Error),
}

/// Reads words from the terminal, or lines from a file or pipe, and does them. What still sends is
/// stopped at the end, except that a script's end waits for ports that were started for a time.
///
/// `history` is the file of lines typed so far; `stop` ends all, and so does the end of the terminal.
///
/// # Errors
/// The first line of a script that fails; a device that goes down or away in a script; a port that
/// cannot be acquired.
pub fn run(tester: Local, history: Option<PathBuf>, stop: &Arc<AtomicBool>) -> Result<(), Error> {
    let mut act = Act::new(tester).map_err(Error::Refused)?;
    match io::stdin().is_terminal() && io::stdout().is_terminal() {
        true => Ok(prompt::run(&mut act, history, stop)?),
        false => script(&mut act, stop),
    }
}

fn script(act: &mut Act, stop: &AtomicBool) -> Result<(), Error> {
    let (lines, read) = std::sync::mpsc::sync_channel(1);
    // A signal is to end a script that waits for its next line, too.
    std::thread::Builder::new()
        .name("console-input".into())
        .spawn(move || {
            io::stdin()
                .lock()
                .lines()
                .try_for_each(|line| lines.send(line).ok())
        })?;
    let mut number = 0;
    loop {
        let line = read.recv_timeout(TICK);
        whole(act)?;
        let line = match line {
            Ok(line) => line?,
            Err(std::sync::mpsc::RecvTimeoutError::Timeout) if stop.load(Ordering::Relaxed) => {
                return Ok(());
            }
            Err(std::sync::mpsc::RecvTimeoutError::Timeout) => continue,
            Err(std::sync::mpsc::RecvTimeoutError::Disconnected) => break,
        };
        number += 1;
        match act.line(&line).map_err(|why| Error::Line(number, why))? {
            Next::Said(text) => io::stdout().lock().write_all(text.as_bytes())?,
            Next::Leave => return Ok(()),
        }
    }
    while act.runs_for_a_time() && !stop.load(Ordering::Relaxed) {
        std::thread::sleep(TICK);
        whole(act)?;
    }
    whole(act)
}

/// An error if a port's device went down or away.
fn whole(act: &Act) -> Result<(), Error> {
    act.lost().map_or(Ok(()), |lost| Err(Error::Lost(lost)))
}
