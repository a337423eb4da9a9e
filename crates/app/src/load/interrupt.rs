//! Ctrl-C and SIGTERM in the middle of a load test.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

/// From now on a signal to end sets the flag returned. The next one removes `sockets` and ends the
/// process with the exit code that a shell gives for it (128 + its number). Programs and sockets on
/// interfaces go with the process.
///
/// # Errors
/// If the handler cannot be installed.
pub fn on_signal(sockets: Vec<String>) -> io::Result<Arc<AtomicBool>> {
    let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP])?;
    let flag = Arc::new(AtomicBool::new(false));
    let set = flag.clone();
    std::thread::spawn(move || {
        for signal in signals.forever() {
            if !set.swap(true, Ordering::Relaxed) {
                continue;
            }
            for socket in sockets {
                // One that is gone already is as good.
                let _ = std::fs::remove_file(socket);
            }
            std::process::exit(128 + signal);
        }
    });
    Ok(flag)
}
