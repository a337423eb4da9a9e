//! A netlink socket, perhaps of another network namespace.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::path::Path;
use std::thread;
use std::time::Duration;

use netlink_sys::{SocketAddr, protocols};
use rustix::net::sockopt;
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use super::wire::{Builder, Message, Messages, u32_at};

/// The kernel writes no datagram of a dump that is longer than this.
const DATAGRAM: usize = 64 << 10;

/// How long to wait for an answer that the kernel should give at once.
const PATIENCE: Duration = Duration::from_secs(10);

/// What the end of a dump says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dump {
    /// Everything was in it.
    Complete,
    /// The table changed meanwhile: entries may be missing or be there twice (NLM_F_DUMP_INTR).
    Interrupted,
}

/// A netlink socket with its receive buffer.
#[derive(Debug)]
pub struct Socket {
    inner: netlink_sys::Socket,
    buffer: Vec<u8>,
    sequence: u32,
}

/// Runs `work` in the network namespace at `path` (as under /run/netns; `None`: the present one) on a thread of its own.
///
/// # Errors
/// The namespace cannot be opened or entered; whatever `work` reports.
pub fn within<T: Send>(
    path: Option<&Path>,
    work: impl FnOnce() -> io::Result<T> + Send,
) -> io::Result<T> {
    let Some(path) = path else { return work() };
    let namespace = File::open(path)?;
    let enter = move || {
        move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network))?;
        work()
    };
    thread::scope(|scope| {
        scope
            .spawn(enter)
            .join()
            .unwrap_or_else(|_| Err(io::Error::other("the thread has died")))
    })
}

impl Socket {
    /// Opens a route netlink socket in a network namespace.
    ///
    /// # Errors
    /// The namespace cannot be entered, or no socket is to be had.
    pub fn route(netns: Option<&Path>) -> io::Result<Self> {
        Self::open(netns, protocols::NETLINK_ROUTE)
    }

    /// Opens a generic netlink socket in a network namespace.
    ///
    /// # Errors
    /// As [`Socket::route`].
    pub fn generic(netns: Option<&Path>) -> io::Result<Self> {
        Self::open(netns, protocols::NETLINK_GENERIC)
    }

    fn open(netns: Option<&Path>, protocol: isize) -> io::Result<Self> {
        let inner = within(netns, || {
            let mut socket = netlink_sys::Socket::new(protocol)?;
            socket.bind_auto()?;
            sockopt::set_socket_timeout(&socket, sockopt::Timeout::Recv, Some(PATIENCE))?;
            Ok(socket)
        })?;
        Ok(Socket {
            inner,
            buffer: Vec::with_capacity(DATAGRAM),
            sequence: 0,
        })
    }

    /// Subscribes to a multicast group.
    ///
    /// # Errors
    /// The kernel does not know the group.
    pub fn subscribe(&self, group: u32) -> io::Result<()> {
        self.inner.add_membership(group)
    }

    /// Sets the receive buffer in bytes, beyond the system's limit if privileged, else up to it.
    ///
    /// # Errors
    /// The kernel refuses even that.
    pub fn receive_buffer(&self, bytes: usize) -> io::Result<()> {
        if sockopt::set_socket_recv_buffer_size_force(self.as_fd(), bytes).is_err() {
            sockopt::set_socket_recv_buffer_size(self.as_fd(), bytes)?;
        }
        Ok(())
    }

    /// The next datagram, waiting for it if `wait`; `None` if there is none.
    ///
    /// # Errors
    /// ENOBUFS: messages have been lost because the buffer was full.
    pub fn receive(&mut self, wait: bool) -> io::Result<Option<&[u8]>> {
        self.buffer.clear();
        let flags = if wait { 0 } else { libc::MSG_DONTWAIT };
        loop {
            match self.inner.recv_from(&mut self.buffer, flags) {
                // Anyone may send to a netlink socket; only what the kernel says (port 0) counts.
                Ok((_, from)) if from.port_number() == 0 => return Ok(Some(&self.buffer)),
                Ok(_) => self.buffer.clear(),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(None),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Sends a request and waits for the kernel's answer to it; `each` sees the messages that are not the
    /// acknowledgement.
    ///
    /// # Errors
    /// What the kernel answers (EPERM, EEXIST, ENODEV ...).
    pub fn ask(
        &mut self,
        request: Builder,
        mut each: impl FnMut(&Message<'_>),
    ) -> io::Result<Dump> {
        self.sequence = self.sequence.wrapping_add(1);
        let sequence = self.sequence;
        self.inner
            .send_to(&request.finish(sequence), &SocketAddr::new(0, 0), 0)?;
        let mut state = Dump::Complete;
        loop {
            let bytes = self.receive(true)?.ok_or(io::ErrorKind::TimedOut)?;
            for message in Messages(bytes).filter(|message| message.sequence == sequence) {
                if i32::from(message.flags) & libc::NLM_F_DUMP_INTR != 0 {
                    state = Dump::Interrupted;
                }
                match i32::from(message.kind) {
                    libc::NLMSG_ERROR | libc::NLMSG_DONE => {
                        return finished(message.payload).map(|()| state);
                    }
                    _ => each(&message),
                }
            }
        }
    }
}

/// The error number in NLMSG_ERROR and NLMSG_DONE: 0 or negative.
fn finished(payload: &[u8]) -> io::Result<()> {
    match u32_at(payload, 0).unwrap_or(0) as i32 {
        0 => Ok(()),
        number => Err(io::Error::from_raw_os_error(number.wrapping_neg())),
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.inner.as_fd()
    }
}

impl AsRawFd for Socket {
    fn as_raw_fd(&self) -> i32 {
        self.inner.as_raw_fd()
    }
}
