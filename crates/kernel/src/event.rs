//! Event counters (eventfd(2)), sets of descriptors (epoll(7)), and waiting for either (poll(2)).
#![allow(unsafe_code)]

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::ptr;
use std::time::Duration;

use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::event::{EventfdFlags, Timespec, eventfd};

/// An event counter that nobody else writes: it wakes a thread that waits for its descriptor.
/// Neither reads nor writes of it block.
#[derive(Debug)]
pub struct EventFd(OwnedFd);

impl EventFd {
    /// A new counter, at zero.
    ///
    /// # Errors
    /// The process or the system has no more file descriptors.
    pub fn new() -> io::Result<Self> {
        let flags = EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK;
        Ok(Self(eventfd(0, flags)?))
    }

    /// Wakes whoever waits.
    pub fn signal(&self) {
        // The one possible error is a full counter, which wakes as well.
        let _ = rustix::io::write(&self.0, &1u64.to_ne_bytes());
    }

    /// Sets the counter back to zero.
    pub fn clear(&self) {
        // The one possible error is a counter at zero.
        let _ = rustix::io::read(&self.0, &mut [0; 8]);
    }
}

impl From<EventFd> for OwnedFd {
    fn from(event: EventFd) -> Self {
        event.0
    }
}

impl AsFd for EventFd {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl AsRawFd for EventFd {
    fn as_raw_fd(&self) -> RawFd {
        self.0.as_raw_fd()
    }
}

/// An entry for [`poll`]: a descriptor, and what to wait for (`POLLIN` ...).
///
/// It does not borrow the descriptor. One that is closed by the time of the call is reported ready,
/// with POLLNVAL; one whose number has another owner by then may be reported for what happened to
/// that.
pub fn pollfd(fd: &impl AsRawFd, events: i16) -> libc::pollfd {
    libc::pollfd {
        fd: fd.as_raw_fd(),
        events,
        revents: 0,
    }
}

/// Waits until one of `fds` is ready. False if none is after `timeout` (`None`: no limit), or a
/// signal came first.
pub fn poll(fds: &mut [libc::pollfd], timeout: Option<Duration>) -> bool {
    let timeout = timeout.map(|timeout| libc::timespec {
        // A time that does not fit is as good as no limit.
        tv_sec: timeout.as_secs().try_into().unwrap_or(libc::time_t::MAX),
        tv_nsec: timeout.subsec_nanos().into(),
    });
    let timeout = timeout.as_ref().map_or(ptr::null(), ptr::from_ref);
    let (array, count) = (fds.as_mut_ptr(), fds.len() as libc::nfds_t);
    // SAFETY: pointer and length are those of a slice, and the time outlives the call.
    unsafe { libc::ppoll(array, count, timeout, ptr::null()) > 0 }
}

/// A set of descriptors that is itself one to wait for. It reports each signal once, and nobody has
/// to read the counters: one shared with a peer cannot make us block.
#[derive(Debug)]
pub struct Set(OwnedFd);

impl Set {
    /// An empty set.
    ///
    /// # Errors
    /// The process or the system has no more file descriptors.
    pub fn new() -> io::Result<Self> {
        Ok(Self(epoll::create(CreateFlags::CLOEXEC)?))
    }

    /// Adds a descriptor. A signal that came before counts too.
    ///
    /// # Errors
    /// The descriptor is in the set already, or cannot be waited for; there is no memory.
    pub fn add(&self, fd: &impl AsFd) -> io::Result<()> {
        let edges = EventFlags::IN | EventFlags::ET;
        Ok(epoll::add(&self.0, fd, EventData::new_u64(0), edges)?)
    }

    /// Takes a descriptor out; nothing happens if it is not in.
    pub fn remove(&self, fd: &impl AsFd) {
        let _ = epoll::delete(&self.0, fd);
    }

    /// Forgets the signals seen so far.
    pub fn clear(&self) {
        let none = epoll::Event {
            flags: EventFlags::empty(),
            data: EventData::new_u64(0),
        };
        let _ = epoll::wait(&self.0, &mut [none; 4], Some(&Timespec::default()));
    }
}

impl AsFd for Set {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl AsRawFd for Set {
    fn as_raw_fd(&self) -> RawFd {
        self.0.as_raw_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_ready(fd: &impl AsRawFd) -> bool {
        poll(&mut [pollfd(fd, libc::POLLIN)], Some(Duration::ZERO))
    }

    #[test]
    fn a_signal_is_there_until_it_is_cleared() {
        let event = EventFd::new().expect("a descriptor");
        assert!(!is_ready(&event));
        event.clear();
        event.signal();
        event.signal();
        assert!(is_ready(&event));
        event.clear();
        assert!(!is_ready(&event));
    }

    #[test]
    fn a_set_reports_a_signal_once() {
        let (set, event) = (
            Set::new().expect("a set"),
            EventFd::new().expect("an event"),
        );
        event.signal();
        set.add(&event).expect("is added");
        assert!(set.add(&event).is_err(), "twice");
        assert!(is_ready(&set));
        set.clear();
        assert!(!is_ready(&set));
        event.signal();
        assert!(is_ready(&set));
        set.remove(&event);
        set.clear();
        event.signal();
        assert!(!is_ready(&set));
    }
}
