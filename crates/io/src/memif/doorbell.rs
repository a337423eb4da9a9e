//! Waking peers.
//!
//! A peer's event counter is not ours to write to: whether write(2) blocks is a property of the
//! open file, which the peer shares, and a counter that it has filled would hold the writer for
//! ever. So the kernel adds to it: a read of nothing from `/dev/null` by io_submit(2) signals an
//! event counter when it completes, which is at once, and never waits for it (`eventfd_signal` in
//! `fs/eventfd.c`; a full counter stays full).
#![allow(unsafe_code)]

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

/// `IOCB_CMD_PREAD` of `linux/aio_abi.h`.
const READ: u16 = 0;
/// `IOCB_FLAG_RESFD` of `linux/aio_abi.h`.
const SIGNAL: u32 = 1;
/// Requests that may wait to be forgotten, so that few rings cost a second call; the kernel rounds
/// up.
const REQUESTS: u32 = 64;

/// `struct iocb` of `linux/aio_abi.h`.
#[repr(C)]
#[derive(Default)]
struct Request {
    data: u64,
    key_and_flags: [u32; 2],
    opcode: u16,
    priority: i16,
    fd: u32,
    buffer: u64,
    bytes: u64,
    offset: i64,
    reserved: u64,
    flags: u32,
    event: u32,
}

/// `struct io_event` of `linux/aio_abi.h`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Done([u64; 4]);

/// Rings at peers; one for all workers of a control thread's interfaces.
#[derive(Debug)]
pub struct Doorbell {
    /// The kernel's handle (`aio_context_t`).
    context: libc::c_ulong,
    null: File,
}

impl Doorbell {
    /// # Errors
    /// The kernel has no AIO, or `fs.aio-max-nr` is used up.
    pub fn new() -> io::Result<Self> {
        let null = File::open("/dev/null")?;
        let mut context: libc::c_ulong = 0;
        // SAFETY: the kernel writes one word to `context`.
        let rc = unsafe { libc::syscall(libc::SYS_io_setup, REQUESTS, &raw mut context) };
        if rc < 0 {
            let e = io::Error::last_os_error();
            let hint = "memif wakes its peers by the kernel's AIO: is it there, is fs.aio-max-nr large enough?";
            return Err(io::Error::new(e.kind(), format!("io_setup: {e} ({hint})")));
        }
        Ok(Self { context, null })
    }

    /// Wakes whoever waits on an event counter, in bounded time whatever the counter's owner does.
    /// Any other file is left alone.
    pub fn ring(&self, event: &impl AsRawFd) {
        if !self.submit(event) {
            self.forget();
            self.submit(event);
        }
    }

    /// False if too many are waiting to be forgotten.
    fn submit(&self, event: &impl AsRawFd) -> bool {
        let mut request = Request {
            opcode: READ,
            fd: self.null.as_raw_fd() as u32,
            flags: SIGNAL,
            event: event.as_raw_fd() as u32,
            ..Request::default()
        };
        let mut list = [&raw mut request];
        // SAFETY: a list of one request of the kernel's layout; it asks for no bytes, so nothing is
        // written once the call has returned.
        let rc = unsafe { libc::syscall(libc::SYS_io_submit, self.context, 1, list.as_mut_ptr()) };
        rc == 1 || io::Error::last_os_error().raw_os_error() != Some(libc::EAGAIN)
    }

    /// Makes room: takes back what is known to be done.
    #[cold]
    fn forget(&self) {
        let mut done = [Done::default(); REQUESTS as usize];
        let none: *const libc::timespec = std::ptr::null();
        // SAFETY: room for as many events as asked for; of at least none, so the call does not
        // wait.
        unsafe {
            libc::syscall(
                libc::SYS_io_getevents,
                self.context,
                0,
                done.len(),
                done.as_mut_ptr(),
                none,
            )
        };
    }
}

impl Drop for Doorbell {
    fn drop(&mut self) {
        // SAFETY: made by io_setup, and nobody uses it any more.
        unsafe { libc::syscall(libc::SYS_io_destroy, self.context) };
    }
}

#[cfg(test)]
pub(super) mod tests {
    use std::os::fd::OwnedFd;

    use rustix::event::{EventfdFlags, eventfd};

    use super::*;

    /// An event counter that blocks, as a peer would send it.
    pub(in crate::memif) fn blocking(count: u64) -> OwnedFd {
        let fd = eventfd(0, EventfdFlags::CLOEXEC).expect("eventfd");
        assert_eq!(rustix::io::write(&fd, &count.to_ne_bytes()), Ok(8));
        fd
    }

    fn count(event: &OwnedFd) -> u64 {
        let mut count = [0; 8];
        // The counter is not zero, so this does not wait.
        let _ = rustix::io::read(event, &mut count);
        u64::from_ne_bytes(count)
    }

    #[test]
    fn every_ring_counts_and_none_waits() {
        let bell = Doorbell::new().expect("AIO");
        let event = blocking(1);
        for _ in 0..10_000 {
            bell.ring(&event);
        }
        assert_eq!(count(&event), 10_001);
        // From here on a write would wait for a reader.
        let full = blocking(u64::MAX - 1);
        for _ in 0..3 {
            bell.ring(&full);
        }
        assert_eq!(count(&full), u64::MAX);
    }

    #[test]
    fn what_is_no_event_counter_is_left_alone() {
        let bell = Doorbell::new().expect("AIO");
        let file = File::open("/dev/null").expect("a file");
        for _ in 0..1000 {
            bell.ring(&file);
        }
        let event = blocking(1);
        bell.ring(&event);
        assert_eq!(count(&event), 2);
    }
}
