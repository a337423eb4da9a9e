//! Raw frames on an interface of a namespace (packet(7)).
#![allow(unsafe_code)] // socket(2) and bind(2) for a family that the standard library does not know.

use std::net::UdpSocket;
use std::os::fd::{FromRawFd, OwnedFd};
use std::time::Duration;

use super::craft::Mac;
use super::{Netns, patience};

/// A socket that sends and receives whole Ethernet frames on one interface. What the interface
/// itself sends is not received.
pub struct Raw {
    // Only send, receive and timeout are used, which work with any family.
    socket: UdpSocket,
    mac: Mac,
}

impl Raw {
    /// Opens one on the interface `name`, whose Ethernet address is `mac`.
    pub fn open(netns: &Netns, name: &str, mac: Mac) -> Self {
        let text = netns
            .ip(&format!("-o link show dev {name}"))
            .expect("the interface exists");
        let index = text
            .split(':')
            .next()
            .and_then(|index| index.trim().parse().ok())
            .expect("ip prints its index");
        let socket = UdpSocket::from(netns.inside(|| open(index)));
        // A burst must fit while nobody reads.
        let _ = rustix::net::sockopt::set_socket_recv_buffer_size_force(&socket, 16 << 20);
        Self { socket, mac }
    }

    /// Ethernet address of the interface.
    pub fn mac(&self) -> Mac {
        self.mac
    }

    /// Sends a frame.
    pub fn send(&self, frame: &[u8]) {
        self.socket
            .send(frame)
            .expect("the interface takes a frame");
    }

    /// The next frame that somebody else sent, if one comes within `limit`.
    pub fn receive(&self, limit: Duration) -> Option<Vec<u8>> {
        let end = std::time::Instant::now() + limit;
        let mut frame = vec![0; 65536];
        loop {
            let left = end
                .saturating_duration_since(std::time::Instant::now())
                .max(Duration::from_millis(1));
            self.socket
                .set_read_timeout(Some(left))
                .expect("a timeout above zero");
            match self.socket.recv(&mut frame) {
                Ok(length) if length >= 14 && frame[6..12] != self.mac => {
                    frame.truncate(length);
                    return Some(frame);
                }
                Ok(_) if std::time::Instant::now() < end => {}
                _ => return None,
            }
        }
    }

    /// The next frame that is wanted, if one comes within `limit`; others are dropped.
    pub fn expect(
        &self,
        limit: Duration,
        mut wanted: impl FnMut(&[u8]) -> bool,
    ) -> Option<Vec<u8>> {
        let end = std::time::Instant::now() + limit;
        while let Some(left) = end.checked_duration_since(std::time::Instant::now()) {
            match self.receive(left.min(Duration::from_millis(100))) {
                Some(frame) if wanted(&frame) => return Some(frame),
                _ => {}
            }
        }
        None
    }

    /// Everything that comes until it is quiet for `quiet`.
    ///
    /// # Panics
    /// If it never gets quiet.
    pub fn drain(&self, quiet: Duration) -> Vec<Vec<u8>> {
        let end = std::time::Instant::now() + patience();
        let next = || {
            let frame = self.receive(quiet)?;
            assert!(std::time::Instant::now() < end, "it never gets quiet");
            Some(frame)
        };
        std::iter::from_fn(next).collect()
    }
}

fn open(index: i32) -> OwnedFd {
    let every = (libc::ETH_P_ALL as u16).to_be();
    // SAFETY: plain system call without pointers.
    let fd = unsafe {
        libc::socket(
            libc::AF_PACKET,
            libc::SOCK_RAW | libc::SOCK_CLOEXEC,
            i32::from(every),
        )
    };
    assert!(
        fd >= 0,
        "packet socket: {}",
        std::io::Error::last_os_error()
    );
    // SAFETY: the descriptor was just made and nobody else has it.
    let fd = unsafe { OwnedFd::from_raw_fd(fd) };
    // SAFETY: all-zero bytes are a value of this structure of integers.
    let mut address: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
    address.sll_family = libc::AF_PACKET as u16;
    address.sll_protocol = every;
    address.sll_ifindex = index;
    let length = size_of::<libc::sockaddr_ll>() as u32;
    // SAFETY: the pointer is to a structure of the length given, which lives over the call.
    let result = unsafe {
        libc::bind(
            std::os::fd::AsRawFd::as_raw_fd(&fd),
            (&raw const address).cast(),
            length,
        )
    };
    assert!(result == 0, "bind: {}", std::io::Error::last_os_error());
    fd
}
