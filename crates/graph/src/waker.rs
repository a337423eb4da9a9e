//! Waking a sleeping worker: whoever has work for it wakes it, and no order of events loses the
//! wake-up.
//!
//! The sleeper announces its sleep, then looks for work once more; whoever has work publishes it,
//! then looks for a sleeper. A full fence between the two steps, on both sides, makes sure that one
//! of them sees the other.
#![allow(unsafe_code)]

#[cfg(not(loom))]
use std::fs::File;
use std::io;
#[cfg(not(loom))]
use std::io::{Read, Write};
use std::os::fd::RawFd;
#[cfg(not(loom))]
use std::os::fd::{AsRawFd, FromRawFd};
use std::sync::Arc;

use crate::sync::{AtomicBool, Ordering, fence};

/// Wakes a sleeping worker, or whoever else waits for its descriptor.
#[derive(Debug)]
pub struct Waker {
    event: Event,
    asleep: AtomicBool,
}

impl Waker {
    /// A waker over a new eventfd.
    ///
    /// # Errors
    /// The operating system's, when there are no more file descriptors.
    pub fn new() -> io::Result<Arc<Self>> {
        Ok(Arc::new(Waker {
            event: Event::new()?,
            asleep: AtomicBool::new(false),
        }))
    }

    /// Wakes the worker if it sleeps or is about to. Publish the work first.
    pub fn wake(&self) {
        // Pairs with the fence in `arm`: we see the sleeper, or it sees the work that was
        // published. A store and a later load of another place stay in order by a full fence only.
        fence(Ordering::SeqCst);
        if self.asleep.load(Ordering::SeqCst) {
            self.event.signal();
        }
    }

    /// Announces a sleep: from now on [`Waker::wake`] wakes. Whoever has done so looks for work
    /// once more and, without any, waits for [`Waker::fd`].
    pub fn arm(&self) {
        self.asleep.store(true, Ordering::SeqCst);
        fence(Ordering::SeqCst);
    }

    /// The sleep is over.
    pub fn disarm(&self) {
        self.asleep.store(false, Ordering::SeqCst);
        // A wake-up that came between the two steps is cleared, too: its work was published before,
        // and whoever sleeps next looks for work first.
        self.event.clear();
    }

    /// Sleeps, unless there is work: announces the sleep, looks for work once more, and then waits.
    /// `look` returns what to wait for, [`Waker::fd`] among it, or `None` if there is work; `wait`
    /// waits for that.
    pub(crate) fn sleep<S, W>(
        &self,
        sleeper: &mut S,
        look: impl FnOnce(&mut S) -> Option<W>,
        wait: impl FnOnce(&mut S, W),
    ) {
        self.arm();
        if let Some(what) = look(sleeper) {
            wait(sleeper, what);
        }
        self.disarm();
    }

    /// The descriptor that a sleeper waits for.
    pub fn fd(&self) -> RawFd {
        self.event.fd()
    }
}

/// An event counter of our own, which no stranger holds: neither reads nor writes block.
#[cfg(not(loom))]
#[derive(Debug)]
struct Event(File);

#[cfg(not(loom))]
impl Event {
    fn new() -> io::Result<Self> {
        // SAFETY: a plain system call.
        let fd = unsafe { libc::eventfd(0, libc::EFD_NONBLOCK | libc::EFD_CLOEXEC) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: a new descriptor that nobody else owns.
        Ok(Event(unsafe { File::from_raw_fd(fd) }))
    }

    fn fd(&self) -> RawFd {
        self.0.as_raw_fd()
    }

    fn signal(&self) {
        // The one possible error is a full counter, which wakes as well.
        let _ = (&self.0).write(&1u64.to_ne_bytes());
    }

    fn clear(&self) {
        // The one possible error is a counter at zero.
        let _ = (&self.0).read(&mut [0; 8]);
    }
}

/// The event counter as loom sees it: a level that rises with a signal, and falls when it is
/// cleared.
#[cfg(loom)]
#[derive(Debug)]
struct Event(loom::sync::Mutex<bool>, loom::sync::Condvar);

#[cfg(loom)]
impl Event {
    fn new() -> io::Result<Self> {
        Ok(Event(
            loom::sync::Mutex::new(false),
            loom::sync::Condvar::new(),
        ))
    }
    fn signal(&self) {
        *self.0.lock().unwrap() = true;
        self.1.notify_one();
    }
    fn clear(&self) {
        *self.0.lock().unwrap() = false;
    }
    fn fd(&self) -> RawFd {
        -1
    }
    /// Sleeps until there is a signal; with nobody left to give one, loom calls it a deadlock.
    fn wait(&self) {
        let mut signalled = self.0.lock().unwrap();
        while !*signalled {
            signalled = self.1.wait(signalled).unwrap();
        }
    }
}

#[cfg(all(test, loom))]
mod loom_tests {
    use super::*;
    use crate::epoch::Publisher;

    /// As `Worker::sleep` and `Router::apply` use it.
    #[test]
    fn no_order_of_publish_refresh_and_sleep_loses_a_wake_up() {
        loom::model(|| {
            let waker = Waker::new().unwrap();
            let mut publisher = Publisher::new(1, 1);
            let mut reader = publisher.reader();
            let own = waker.clone();
            let worker = loom::thread::spawn(move || {
                reader.refresh();
                while *reader.get() != 2 {
                    own.sleep(
                        &mut reader,
                        |reader| (!reader.is_stale()).then_some(()),
                        |reader, ()| reader.offline(|| own.event.wait()),
                    );
                    reader.refresh();
                }
            });
            publisher.publish(2);
            waker.wake();
            worker.join().unwrap();
        });
    }
}
