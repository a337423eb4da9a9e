//! The program of a port that only receives: it needs no tables.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

use crate::attach::Attachment;
use crate::error::Error;
use crate::mode::Mode;
use crate::object::{Loaded, elf};

/// The program on a device that gives everything to AF_XDP sockets and nothing to the kernel.
/// Dropping it takes the program off.
#[derive(Debug)]
pub struct Receiver {
    program: Loaded,
    attachment: Attachment,
}

impl Receiver {
    /// Puts the program on a device, in the first of `modes` that works. Until sockets are
    /// registered, the kernel gets everything.
    ///
    /// # Errors
    /// As [`Router::attach`](crate::Router::attach).
    pub fn attach(ifindex: u32, modes: &[Mode]) -> Result<Self, Error> {
        let program = Loaded::new(elf!("receiver"), "parshall_recv", &[])?;
        let attachment = Attachment::new(program.as_fd(), ifindex, modes)?;
        Ok(Self {
            program,
            attachment,
        })
    }

    /// Attachment to the interface.
    pub fn attachment(&self) -> &Attachment {
        &self.attachment
    }

    /// Gives the packets of a receive queue (at most 256 of them) to an AF_XDP socket, in place of
    /// an earlier one.
    ///
    /// # Errors
    /// The descriptor is no AF_XDP socket with rings, or the queue number is too large.
    pub fn register(&self, queue: u32, socket: BorrowedFd<'_>) -> Result<(), Error> {
        register(&self.program, queue, socket)
    }
}

/// Puts a socket into a program's map of sockets.
pub(crate) fn register(program: &Loaded, queue: u32, socket: BorrowedFd<'_>) -> Result<(), Error> {
    let set = program.map("xsks").set(queue, socket.as_raw_fd() as u32);
    set.map_err(Error::doing("registering an AF_XDP socket"))
}
