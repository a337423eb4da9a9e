//! Devices that take in frames to every station (packet(7), `PACKET_MR_PROMISC`).
#![allow(unsafe_code)]

use std::io;
use std::mem::size_of;
use std::os::fd::{AsRawFd, OwnedFd};

use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};

/// A device of the namespace that it was made in takes in frames to every station, until this is
/// dropped or the process ends, however it does.
#[derive(Debug)]
pub struct Promiscuous {
    _socket: OwnedFd,
}

impl Promiscuous {
    /// Switches it on for the device with this index, in the calling thread's network namespace.
    ///
    /// # Errors
    /// There is no such device, or no permission (CAP_NET_RAW).
    pub fn new(index: u32) -> io::Result<Self> {
        // Without a protocol a socket gets no packets.
        let (kind, flags) = (SocketType::RAW, SocketFlags::CLOEXEC);
        let socket = socket_with(AddressFamily::PACKET, kind, flags, None)?;
        let index = i32::try_from(index).map_err(|_| io::ErrorKind::InvalidInput)?;
        let request = libc::packet_mreq {
            mr_ifindex: index,
            mr_type: libc::PACKET_MR_PROMISC as u16,
            mr_alen: 0,
            mr_address: [0; 8],
        };
        // SAFETY: the option's value is a `packet_mreq`, which is read and not kept.
        let done = unsafe {
            libc::setsockopt(
                socket.as_raw_fd(),
                libc::SOL_PACKET,
                libc::PACKET_ADD_MEMBERSHIP,
                (&raw const request).cast(),
                size_of::<libc::packet_mreq>() as libc::socklen_t,
            )
        };
        match done {
            0 => Ok(Self { _socket: socket }),
            _ => Err(io::Error::last_os_error()),
        }
    }
}
