//! A worker's sleep: who has work for it wakes it, and no order of the two loses that.
//!
//! The sleeper announces its sleep, then looks once more for work; whoever has work publishes it, then looks for a sleeper.
//! A full fence between the two steps on either side makes one of them see the other.
#![allow(unsafe_code)]

use crate::sync::{AtomicBool, Ordering, fence};
use std::sync::Arc;

/// Wakes a sleeping worker.
#[derive(Debug)]
pub struct Waker {
    bell: Bell,
    asleep: AtomicBool,
}

impl Waker {
    /// A waker over a new eventfd.
    ///
    /// # Errors
    /// The operating system's, when there are no more file descriptors.
    pub fn new() -> std::io::Result<Arc<Self>> {
        Ok(Arc::new(Waker {
            bell: Bell::new()?,
            asleep: AtomicBool::new(false),
        }))
    }

    /// Wakes the worker if it sleeps or is about to. What it shall find must have been published before.
    pub fn wake(&self) {
        fence(Ordering::SeqCst);
        if self.asleep.load(Ordering::SeqCst) {
            self.bell.ring();
        }
    }

    /// Sleeps, unless there is work: announces the sleep, looks for work once more, and then waits. `look` returns what to
    /// wait for, [`Waker::fd`] among it, or `None` if there is work; `wait` waits for that.
    pub(crate) fn sleep<S, W>(
        &self,
        sleeper: &mut S,
        look: impl FnOnce(&mut S) -> Option<W>,
        wait: impl FnOnce(&mut S, W),
    ) {
        self.asleep.store(true, Ordering::SeqCst);
        fence(Ordering::SeqCst);
        if let Some(what) = look(sleeper) {
            wait(sleeper, what);
        }
        self.asleep.store(false, Ordering::SeqCst);
        self.bell.silence();
    }

    /// What a sleeper waits for.
    pub(crate) fn fd(&self) -> i32 {
        self.bell.fd()
    }
}

/// An eventfd of our own, which no stranger holds: writing it never blocks.
#[cfg(not(loom))]
#[derive(Debug)]
struct Bell(std::os::fd::OwnedFd);

#[cfg(not(loom))]
impl Bell {
    fn new() -> std::io::Result<Self> {
        use std::os::fd::FromRawFd;
        // SAFETY: a plain system call.
        let fd = unsafe { libc::eventfd(0, libc::EFD_NONBLOCK | libc::EFD_CLOEXEC) };
        if fd < 0 {
            return Err(std::io::Error::last_os_error());
        }
        // SAFETY: a new descriptor that nobody else owns.
        Ok(Bell(unsafe { std::os::fd::OwnedFd::from_raw_fd(fd) }))
    }

    fn fd(&self) -> i32 {
        std::os::fd::AsRawFd::as_raw_fd(&self.0)
    }

    fn ring(&self) {
        let one = 1u64;
        // SAFETY: writes 8 bytes to our eventfd; a full counter is as good as a written one.
        unsafe { libc::write(self.fd(), (&raw const one).cast(), 8) };
    }

    fn silence(&self) {
        let mut n = 0u64;
        // SAFETY: reads 8 bytes from our non-blocking eventfd.
        unsafe { libc::read(self.fd(), (&raw mut n).cast(), 8) };
    }
}

/// The eventfd as loom sees it: a level that rises when it is rung, and falls when it is read.
#[cfg(loom)]
#[derive(Debug)]
struct Bell(loom::sync::Mutex<bool>, loom::sync::Condvar);

#[cfg(loom)]
impl Bell {
    fn new() -> std::io::Result<Self> {
        Ok(Bell(
            loom::sync::Mutex::new(false),
            loom::sync::Condvar::new(),
        ))
    }
    fn ring(&self) {
        *self.0.lock().unwrap() = true;
        self.1.notify_one();
    }
    fn silence(&self) {
        *self.0.lock().unwrap() = false;
    }
    fn fd(&self) -> i32 {
        -1
    }
    /// Sleeps until it rings; with nobody left who would ring, loom calls it a deadlock.
    fn wait(&self) {
        let mut rung = self.0.lock().unwrap();
        while !*rung {
            rung = self.1.wait(rung).unwrap();
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
                        |reader, ()| reader.offline(|| own.bell.wait()),
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
