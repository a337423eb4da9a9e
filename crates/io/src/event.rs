//! Event counters (eventfd) and sets of them (epoll) that wake a sleeping thread.
#![allow(unsafe_code)]

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::time::Duration;

/// A new event counter; reads and writes never block.
pub fn new() -> io::Result<OwnedFd> {
    // SAFETY: a plain system call; the descriptor it returns is ours.
    let fd = unsafe { libc::eventfd(0, libc::EFD_NONBLOCK | libc::EFD_CLOEXEC) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: as above.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Wakes who waits on a counter made by [`new`]: one that others share may block.
pub fn signal(fd: &impl AsRawFd) {
    let one = 1u64.to_ne_bytes();
    // SAFETY: eight bytes are read from `one`. The one possible error is a full counter, which wakes as well.
    unsafe { libc::write(fd.as_raw_fd(), one.as_ptr().cast(), one.len()) };
}

/// Sets a counter of our own back to zero.
pub fn clear(fd: &impl AsRawFd) {
    let mut count = [0u8; 8];
    // SAFETY: eight bytes are written to `count`.
    unsafe { libc::read(fd.as_raw_fd(), count.as_mut_ptr().cast(), count.len()) };
}

/// An entry for [`poll`].
pub fn pollfd(fd: &impl AsRawFd, events: i16) -> libc::pollfd {
    libc::pollfd {
        fd: fd.as_raw_fd(),
        events,
        revents: 0,
    }
}

/// Waits for any of `fds`; true if one is ready.
pub fn poll(fds: &mut [libc::pollfd], timeout: Option<Duration>) -> bool {
    let ms = timeout.map_or(-1, |t| i32::try_from(t.as_millis()).unwrap_or(i32::MAX));
    // SAFETY: the pointer and length are those of a slice.
    unsafe { libc::poll(fds.as_mut_ptr(), fds.len() as libc::nfds_t, ms) > 0 }
}

/// A set of descriptors that is itself one to poll. It reports each signal once, without anybody having to
/// read the counters, so a counter shared with a peer cannot make us block.
#[derive(Debug)]
pub struct Set(OwnedFd);

impl Set {
    /// An empty set.
    pub fn new() -> io::Result<Self> {
        // SAFETY: a plain system call; the descriptor it returns is ours.
        let fd = unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: as above.
        Ok(Self(unsafe { OwnedFd::from_raw_fd(fd) }))
    }

    /// Adds a descriptor. A signal given before counts too.
    pub fn add(&self, fd: &impl AsRawFd) -> io::Result<()> {
        let mut event = libc::epoll_event {
            events: (libc::EPOLLIN | libc::EPOLLET) as u32,
            u64: 0,
        };
        // SAFETY: `event` lives until the call returns.
        match unsafe {
            libc::epoll_ctl(
                self.0.as_raw_fd(),
                libc::EPOLL_CTL_ADD,
                fd.as_raw_fd(),
                &mut event,
            )
        } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// Takes a descriptor out; nothing happens if it is not in.
    pub fn remove(&self, fd: &impl AsRawFd) {
        // SAFETY: EPOLL_CTL_DEL ignores the event pointer.
        unsafe {
            libc::epoll_ctl(
                self.0.as_raw_fd(),
                libc::EPOLL_CTL_DEL,
                fd.as_raw_fd(),
                std::ptr::null_mut(),
            )
        };
    }

    /// Forgets the signals seen so far.
    pub fn clear(&self) {
        let mut events = [libc::epoll_event { events: 0, u64: 0 }; 4];
        // SAFETY: room for four events, no waiting.
        unsafe {
            libc::epoll_wait(
                self.0.as_raw_fd(),
                events.as_mut_ptr(),
                events.len() as i32,
                0,
            )
        };
    }
}

impl AsRawFd for Set {
    fn as_raw_fd(&self) -> i32 {
        self.0.as_raw_fd()
    }
}
