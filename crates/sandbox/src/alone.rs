//! One at a time on the whole machine.

use std::fs::{self, File, TryLockError};
use std::io::{Read, Seek, Write};
use std::path::Path;
use std::time::{Duration, Instant};

use crate::{Error, patience};

const LOCK: &str = "/run/parshall/alone.lock";
/// Longer than all tests take together that hold the lock.
const LIMIT: Duration = Duration::from_secs(20 * 60);
/// Between two attempts to have it.
const EVERY: Duration = Duration::from_millis(20);

/// Nobody else on this machine attaches or detaches an XDP program or sends live frames while this
/// is held, if all who do so hold it. The kernel lets go of it whatever becomes of the process.
#[derive(Debug)]
pub struct Alone(#[expect(dead_code, reason = "it is locked until it is closed")] File);

/// Waits until no other thread and no other process is [`Alone`], for 20 minutes at most, which
/// [`patience`] lengthens. If it must wait it says so first, by `waits`, with who is.
///
/// # Errors
/// [`Error::File`] if `/run/parshall` cannot be written to, which needs root; [`Error::Timeout`]
/// with who holds it.
pub fn alone(waits: impl FnOnce(&str)) -> Result<Alone, Error> {
    let failed = |e| Error::file(LOCK, e);
    let directory = Path::new(LOCK).parent().unwrap_or(Path::new("/"));
    fs::create_dir_all(directory).map_err(failed)?;
    let mut options = File::options();
    let options = options.read(true).write(true).create(true).truncate(false);
    let mut file = options.open(LOCK).map_err(failed)?;
    let limit = patience(LIMIT);
    let end = Instant::now() + limit;
    let mut waits = Some(waits);
    loop {
        match file.try_lock() {
            Ok(()) => break,
            Err(TryLockError::Error(e)) => return Err(failed(e)),
            Err(TryLockError::WouldBlock) if Instant::now() < end => {
                if let Some(waits) = waits.take() {
                    waits(&holder());
                }
                std::thread::sleep(EVERY);
            }
            Err(TryLockError::WouldBlock) => {
                return Err(Error::Timeout {
                    what: format!("{LOCK} is held by {}", holder()),
                    seconds: limit.as_secs(),
                    log: "none".to_owned(),
                });
            }
        }
    }
    // Only for whoever has waited too long.
    let name = format!(
        "process {}, {}",
        std::process::id(),
        std::thread::current().name().unwrap_or("a thread")
    );
    let written = file
        .set_len(0)
        .and_then(|()| file.rewind())
        .and_then(|()| file.write_all(name.as_bytes()));
    written.map_err(failed)?;
    Ok(Alone(file))
}

/// Process and thread that were [`Alone`] last, and perhaps are.
pub fn holder() -> String {
    let mut text = String::new();
    let read = File::open(LOCK).and_then(|mut file| file.read_to_string(&mut text));
    read.map_or_else(|e| e.to_string(), |_| text)
}
