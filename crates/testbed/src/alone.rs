//! One at a time on the whole machine.

use std::cell::RefCell;
use std::fs::{self, File, TryLockError};
use std::io::{Read, Seek, Write};
use std::path::Path;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use lab::patience;

const LOCK: &str = "/run/parshall/alone.lock";
/// Longer than all tests take together that hold the lock.
const LIMIT: Duration = Duration::from_secs(20 * 60);

/// Nobody else on this machine attaches or detaches an XDP program or sends live frames while this
/// is held, if all who do so hold it. The kernel lets go of it whatever becomes of the process.
#[derive(Debug)]
pub struct Alone(#[expect(dead_code, reason = "it is locked until it is closed")] Arc<File>);

thread_local! {
    /// What this thread has locked.
    static HELD: RefCell<Weak<File>> = const { RefCell::new(Weak::new()) };
}

/// Waits until nobody else, neither another thread nor another process, is [`Alone`].
///
/// A test that attaches, detaches or sends live frames takes it before it sets up anything and
/// holds it to its end: a kernel that changes its own code (each attach does) while another
/// processor runs through it may die of it. A thread that has it already gets it again at once, so
/// that what needs it can take it for itself.
///
/// # Panics
/// If `/run/parshall` cannot be written to (needs root), or after 20 minutes; says who holds it.
pub fn alone() -> Alone {
    let held = HELD.with_borrow(Weak::upgrade);
    let file = held.unwrap_or_else(|| {
        let file = Arc::new(lock());
        HELD.set(Arc::downgrade(&file));
        file
    });
    Alone(file)
}

fn lock() -> File {
    let directory = Path::new(LOCK).parent().expect("it is in a directory");
    fs::create_dir_all(directory).expect("root may write to /run");
    let mut options = File::options();
    let options = options.read(true).write(true).create(true).truncate(false);
    let mut file = options.open(LOCK).expect("root may write to /run");
    let end = Instant::now() + patience(LIMIT);
    loop {
        match file.try_lock() {
            Ok(()) => break,
            Err(TryLockError::Error(e)) => panic!("{LOCK}: {e}"),
            Err(TryLockError::WouldBlock) => {
                assert!(Instant::now() < end, "{LOCK} is held by {}", holder());
                std::thread::sleep(Duration::from_millis(20));
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
    written.expect("root may write to /run");
    file
}

fn holder() -> String {
    let mut text = String::new();
    let read = File::open(LOCK).and_then(|mut file| file.read_to_string(&mut text));
    read.map_or_else(|e| e.to_string(), |_| text)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering::SeqCst};

    use super::*;

    #[test]
    fn threads_take_turns() {
        if !crate::root("threads_take_turns") {
            return;
        }
        let (inside, turns) = (AtomicU32::new(0), AtomicU32::new(0));
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..3 {
                        let _alone = alone();
                        // Again, and it is still held after that.
                        drop(alone());
                        assert_eq!(inside.fetch_add(1, SeqCst), 0);
                        assert!(holder().starts_with(&format!("process {}", std::process::id())));
                        std::thread::sleep(Duration::from_millis(2));
                        inside.fetch_sub(1, SeqCst);
                        turns.fetch_add(1, SeqCst);
                    }
                });
            }
        });
        assert_eq!(turns.into_inner(), 12);
    }
}
