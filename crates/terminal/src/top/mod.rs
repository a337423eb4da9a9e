//! `parshall top`: a full-screen live view.
//!
//! A [`Subject`] is asked once a second and gives tables (`table`); `view` is what the keys
//! change, and `draw` puts it on the screen. ratatui sends only what differs from the screen
//! before, so that little goes over a slow line.

mod draw;
mod history;
mod number;
mod router;
mod source;
mod style;
mod table;
mod tester;
mod view;

#[cfg(test)]
mod tests;

use std::io::{self, IsTerminal};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::time::Duration;

use ratatui::DefaultTerminal;
use ratatui::crossterm::event::{self, Event, KeyEventKind};

pub use source::Subject;

use crate::hang_up::is_hung_up;
use source::Source;
use style::Style;
use view::View;

/// Time between two looks for keys, signals and news: nobody sees so short a delay.
const TICK: Duration = Duration::from_millis(100);

/// Reasons for showing nothing.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Standard input or output is a file or a pipe, or the terminal has no cursor to move.
    #[error(
        "top needs a terminal, and {0}; `parshall show interface`, `show errors` and `show \
         runtime` print the same once, with --json for programs"
    )]
    NoTerminal(&'static str),
    /// The terminal is gone, or the system has no threads.
    #[error("the terminal: {0}")]
    Io(#[from] io::Error),
}

/// Shows it until `q` is typed, `stop` is set, or the terminal is closed. The terminal is as it was afterwards, also after a
/// panic.
///
/// # Errors
/// There is no terminal, or it is gone.
pub fn run(subject: &Subject, stop: &AtomicBool) -> Result<(), Error> {
    if !io::stdin().is_terminal() || !io::stdout().is_terminal() {
        return Err(Error::NoTerminal("this is none"));
    }
    let style = Style::of_environment();
    if style.is_dumb {
        return Err(Error::NoTerminal("TERM says that this one is dumb"));
    }
    let mut source = Source::start(subject)?;
    let mut terminal = ratatui::try_init()?;
    let ended = show(&mut terminal, &mut source, style, stop);
    let restored = ratatui::try_restore();
    ended.and(restored).map_err(Error::from)
}

fn show(
    terminal: &mut DefaultTerminal,
    source: &mut Source,
    style: Style,
    stop: &AtomicBool,
) -> io::Result<()> {
    let mut view = View::new(source.name(), source.tables());
    let mut is_old = true;
    // The thread that reads never comes back from a terminal that is closed.
    let (typed, events) = sync_channel(0);
    std::thread::Builder::new()
        .name("top-input".into())
        .spawn(move || while typed.send(event::read()).is_ok() {})?;
    while !stop.load(Ordering::Relaxed) {
        if let Some(look) = source.fresh() {
            view.take(look);
            is_old = true;
        }
        if std::mem::take(&mut is_old) {
            terminal.draw(|frame| draw::draw(frame, &mut view, style))?;
        }
        let event = match events.recv_timeout(TICK) {
            Ok(event) => event?,
            Err(RecvTimeoutError::Timeout) if !is_hung_up() => continue,
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {
                return Err(io::Error::other("it is closed"));
            }
        };
        is_old = true;
        match event {
            Event::Key(key) if key.kind != KeyEventKind::Release && view.key(key) => return Ok(()),
            _ => {}
        }
    }
    Ok(())
}
