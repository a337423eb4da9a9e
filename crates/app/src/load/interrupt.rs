//! Ctrl-C and SIGTERM in the middle of a load test.

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

/// From now on a signal to end removes `sockets` and ends the process with the exit code that a
/// shell gives for it (128 + its number). Programs and sockets on interfaces go with the process.
///
/// # Errors
/// If the handler cannot be installed.
pub fn exit_on_signal(sockets: Vec<String>) -> std::io::Result<()> {
    let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP])?;
    std::thread::spawn(move || {
        if let Some(signal) = signals.forever().next() {
            for socket in sockets {
                // One that is gone already is as good.
                let _ = std::fs::remove_file(socket);
            }
            std::process::exit(128 + signal);
        }
    });
    Ok(())
}
