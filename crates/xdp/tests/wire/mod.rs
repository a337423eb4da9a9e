//! Packets as they are: sent and received by packet sockets.
#![allow(unsafe_code)]

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread::{self, Scope};
use std::time::Duration;

use testbed::{patience, until};

/// Longer than any packet here.
const LONGEST: usize = 1 << 14;

/// A packet socket.
pub struct Wire {
    socket: OwnedFd,
    ifindex: u32,
}

impl Wire {
    /// Sends out of an interface of the calling thread's namespace.
    pub fn sending(ifindex: u32) -> Self {
        let socket = socket(0);
        Self { socket, ifindex }
    }

    /// Hears what comes in, on whatever interface of the calling thread's namespace, and waits for
    /// it as long as `limit`.
    pub fn listening(limit: Duration) -> Self {
        let socket = socket((libc::ETH_P_ALL as u16).to_be());
        let wait = libc::timeval {
            tv_sec: limit.as_secs() as libc::time_t,
            tv_usec: 0,
        };
        set(&socket, libc::SO_RCVTIMEO, &wait);
        set(&socket, libc::SO_RCVBUFFORCE, &(64 << 20));
        Self { socket, ifindex: 0 }
    }

    /// Sends a packet; false if there is no room for it.
    pub fn send(&self, packet: &[u8]) -> bool {
        // SAFETY: an all-zero address is valid.
        let mut to: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
        to.sll_family = libc::AF_PACKET as u16;
        to.sll_ifindex = self.ifindex as i32;
        let len = size_of::<libc::sockaddr_ll>() as u32;
        let (fd, data) = (self.socket.as_raw_fd(), packet.as_ptr().cast());
        // SAFETY: packet and address outlive the call and have the lengths given.
        let sent = unsafe { libc::sendto(fd, data, packet.len(), 0, (&raw const to).cast(), len) };
        if sent >= 0 {
            return true;
        }
        let error = io::Error::last_os_error();
        assert_eq!(error.raw_os_error(), Some(libc::ENOBUFS), "{error}");
        false
    }

    /// The next packet to this address; None if none comes within the limit.
    pub fn next(&self, to: &[u8; 6]) -> Option<Vec<u8>> {
        let mut packet = vec![0; LONGEST];
        loop {
            let (fd, data) = (self.socket.as_raw_fd(), packet.as_mut_ptr().cast());
            // SAFETY: the buffer outlives the call.
            let got = unsafe { libc::recv(fd, data, LONGEST, 0) };
            let len = usize::try_from(got).ok()?;
            if packet[..6] == to[..] {
                packet.truncate(len);
                return Some(packet);
            }
        }
    }
}

fn socket(protocol: u16) -> OwnedFd {
    let kind = libc::SOCK_RAW | libc::SOCK_CLOEXEC;
    // SAFETY: no pointers.
    let fd = unsafe { libc::socket(libc::AF_PACKET, kind, protocol.into()) };
    assert!(fd >= 0, "packet socket: {}", io::Error::last_os_error());
    // SAFETY: just made, and nobody else's.
    unsafe { OwnedFd::from_raw_fd(fd) }
}

fn set<T>(socket: &OwnedFd, option: libc::c_int, value: &T) {
    let (at, len) = (std::ptr::from_ref(value).cast(), size_of::<T>() as u32);
    // SAFETY: the value outlives the call and has the length given.
    let code = unsafe { libc::setsockopt(socket.as_raw_fd(), libc::SOL_SOCKET, option, at, len) };
    assert_eq!(code, 0, "{}", io::Error::last_os_error());
}

/// Packets without a break, from a thread of their own.
pub struct Flood {
    wire: Wire,
    sent: AtomicU64,
    over: AtomicBool,
}

/// The end of a flood, also if the test fails meanwhile.
pub struct Over<'a>(&'a Flood);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.over.store(true, Relaxed);
    }
}

impl Flood {
    pub fn new(wire: Wire) -> Self {
        Self {
            wire,
            sent: AtomicU64::new(0),
            over: AtomicBool::new(false),
        }
    }

    /// Begins, and goes on until what it gives is dropped.
    pub fn start<'s, 'e>(&'e self, scope: &'s Scope<'s, 'e>, packet: &'e [u8]) -> Over<'e> {
        self.over.store(false, Relaxed);
        scope.spawn(|| {
            while !self.over.load(Relaxed) {
                for _ in 0..64 {
                    // What finds no room is counted by the device.
                    self.wire.send(packet);
                }
                self.sent.fetch_add(64, Relaxed);
                thread::sleep(Duration::from_micros(200));
            }
        });
        Over(self)
    }

    /// Packets sent so far, those without room among them.
    pub fn sent(&self) -> u64 {
        self.sent.load(Relaxed)
    }

    /// Waits until it has sent `packets` more.
    pub fn goes_on(&self, packets: u64) {
        let end = self.sent() + packets;
        let limit = patience(Duration::from_secs(60));
        assert!(until(limit, || self.sent() >= end), "{}", self.sent());
    }
}
