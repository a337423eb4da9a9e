//! Ctrl-C and SIGTERM in the middle of a load test.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use session::{Caller, Links, Notice, Spec};

/// A flag that a signal to end sets, and sockets that go with the process if another signal comes.
#[derive(Debug, Default)]
pub struct Interrupt {
    /// Relaxed: it hands over no other data.
    flag: Arc<AtomicBool>,
    sockets: Arc<Mutex<Vec<String>>>,
}

impl Interrupt {
    /// From now on a signal to end is noted. The next one removes the sockets that were
    /// [named](Caller::made) and ends the process with the exit code that a shell gives for it (128
    /// + its number). Programs and sockets on interfaces go with the process.
    ///
    /// # Errors
    /// The handler cannot be installed.
    pub fn on_signal() -> io::Result<Self> {
        let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP])?;
        let interrupt = Interrupt::default();
        let (flag, sockets) = (interrupt.flag.clone(), interrupt.sockets.clone());
        std::thread::spawn(move || {
            for signal in signals.forever() {
                if !flag.swap(true, Ordering::Relaxed) {
                    continue;
                }
                for socket in sockets
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .iter()
                {
                    // One that is gone already is as good.
                    let _ = std::fs::remove_file(socket);
                }
                std::process::exit(128 + signal);
            }
        });
        Ok(interrupt)
    }

    /// From now on it ends as by a signal when a device of `ports` goes down or away.
    ///
    /// # Errors
    /// One of them is down or gone.
    pub fn on_loss_of<'a>(
        &self,
        ports: impl IntoIterator<Item = &'a Spec>,
    ) -> Result<Links, session::Error> {
        Links::watch(ports, self.flag())
    }

    /// Returns true if a signal has come.
    pub fn has_come(&self) -> bool {
        self.flag.load(Ordering::Relaxed)
    }

    /// Set once a signal has come.
    pub fn flag(&self) -> Arc<AtomicBool> {
        self.flag.clone()
    }
}

/// An error if one of the load tester's own devices went down or away, which ended the test.
///
/// # Errors
/// What became of it.
pub fn whole(links: &Links) -> crate::Outcome {
    match links.fault() {
        None => Ok(()),
        Some(fault) => Err(format!(
            "{fault}: the test ended there, and what it says is of the time until then"
        )
        .into()),
    }
}

/// The reason why a test failed; a device that went down or away comes first.
pub fn reason(links: &Links, error: &dyn std::fmt::Display) -> String {
    match links.fault() {
        None => error.to_string(),
        Some(fault) => format!("{fault} ({error})"),
    }
}

impl Caller for Interrupt {
    fn is_interrupted(&self) -> bool {
        self.has_come()
    }

    fn made(&self, socket: &str) {
        let mut sockets = self.sockets.lock().unwrap_or_else(PoisonError::into_inner);
        sockets.push(socket.to_owned());
    }

    fn notice(&self, notice: &Notice) {
        crate::output::tell(&format!("parshall: {notice}\n"));
    }
}
