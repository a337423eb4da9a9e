//! A netlink socket, perhaps of another network namespace.

use std::io;
use std::os::fd::{AsFd, AsRawFd, RawFd};
use std::path::Path;
use std::time::Duration;

use netlink_sys::{SocketAddr, protocols};
use rustix::net::sockopt;

use super::{Builder, Message, Messages, u32_at};
use crate::netns::within;

/// The kernel writes no datagram of a dump that is longer than this.
const DATAGRAM: usize = 64 << 10;

/// Time to wait for an answer, which the kernel should give at once.
const PATIENCE: Duration = Duration::from_secs(10);

/// Completeness of a dump.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dump {
    /// Everything was in it.
    Complete,
    /// The table changed meanwhile: entries may be missing, or appear twice (NLM_F_DUMP_INTR).
    Interrupted,
}

/// A netlink socket with its receive buffer.
#[derive(Debug)]
pub struct Socket {
    inner: netlink_sys::Socket,
    buffer: Vec<u8>,
    sequence: u32,
}

impl Socket {
    /// Opens a socket for routes, links, addresses and neighbors (NETLINK_ROUTE) in a network
    /// namespace (`None`: our own).
    ///
    /// # Errors
    /// The namespace cannot be entered; the process or the system has no more file descriptors.
    pub fn route(netns: Option<&Path>) -> io::Result<Self> {
        Self::open(netns, protocols::NETLINK_ROUTE)
    }

    /// Opens a socket for generic netlink families (NETLINK_GENERIC) in a network namespace
    /// (`None`: our own).
    ///
    /// # Errors
    /// As [`Socket::route`].
    pub fn generic(netns: Option<&Path>) -> io::Result<Self> {
        Self::open(netns, protocols::NETLINK_GENERIC)
    }

    /// Opens a socket for the kernel's firewall (NETLINK_NETFILTER) in a network namespace (`None`:
    /// our own).
    ///
    /// # Errors
    /// As [`Socket::route`]; the kernel has no netfilter.
    pub fn netfilter(netns: Option<&Path>) -> io::Result<Self> {
        Self::open(netns, protocols::NETLINK_NETFILTER)
    }

    fn open(netns: Option<&Path>, protocol: isize) -> io::Result<Self> {
        let inner = within(netns, || {
            let mut socket = netlink_sys::Socket::new(protocol)?;
            socket.bind_auto()?;
            sockopt::set_socket_timeout(&socket, sockopt::Timeout::Recv, Some(PATIENCE))?;
            Ok(socket)
        })?;
        Ok(Self {
            inner,
            buffer: Vec::with_capacity(DATAGRAM),
            sequence: 0,
        })
    }

    /// Has the kernel heed what a dump's header asks for beside the family, from Linux 4.20 on
    /// (NETLINK_GET_STRICT_CHK); older ones answer with everything.
    pub fn filter_dumps(&mut self) {
        let _ = self.inner.set_netlink_get_strict_chk(true);
    }

    /// Subscribes to a multicast group, by its number (`RTNLGRP_*`).
    ///
    /// # Errors
    /// The kernel does not know the group.
    pub fn subscribe(&self, group: u32) -> io::Result<()> {
        self.inner.add_membership(group)
    }

    /// Sets the receive buffer in bytes: beyond the system's limit (net.core.rmem_max) with
    /// CAP_NET_ADMIN, else up to it.
    ///
    /// # Errors
    /// The kernel refuses even that.
    pub fn receive_buffer(&self, bytes: usize) -> io::Result<()> {
        if sockopt::set_socket_recv_buffer_size_force(self.inner.as_fd(), bytes).is_err() {
            sockopt::set_socket_recv_buffer_size(self.inner.as_fd(), bytes)?;
        }
        Ok(())
    }

    /// The next datagram, waiting for it if `wait`; `None` if there is none.
    ///
    /// # Errors
    /// ENOBUFS: messages were lost because the buffer was full.
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

    /// Asks the kernel and waits until it has answered; `each` sees the messages of the answer.
    ///
    /// # Errors
    /// The kernel's error (EPERM, EEXIST, ENODEV ...); TimedOut: nothing within 10 s.
    pub fn ask(&mut self, request: Builder, each: impl FnMut(&Message<'_>)) -> io::Result<()> {
        self.exchange(request.flags(libc::NLM_F_ACK), each)
            .map(drop)
    }

    /// Sends a command that the kernel answers with success or failure only.
    ///
    /// # Errors
    /// As [`Socket::ask`].
    pub fn command(&mut self, request: Builder) -> io::Result<()> {
        self.ask(request, |_| ())
    }

    /// Reads a whole table of the kernel; `each` sees its entries.
    ///
    /// # Errors
    /// As [`Socket::ask`].
    pub fn dump(&mut self, request: Builder, each: impl FnMut(&Message<'_>)) -> io::Result<Dump> {
        self.exchange(request.flags(libc::NLM_F_DUMP), each)
    }

    fn exchange(
        &mut self,
        request: Builder,
        mut each: impl FnMut(&Message<'_>),
    ) -> io::Result<Dump> {
        self.sequence = self.sequence.wrapping_add(1);
        let sequence = self.sequence;
        let request = request.flags(libc::NLM_F_REQUEST).finish(sequence);
        self.inner.send_to(&request, &SocketAddr::new(0, 0), 0)?;
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

impl AsRawFd for Socket {
    fn as_raw_fd(&self) -> RawFd {
        self.inner.as_raw_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::netlink::layout::{Header, LinkHeader, read};
    use crate::netlink::text;

    fn link(index: u32) -> Builder {
        LinkHeader::named(index).message(libc::RTM_GETLINK)
    }

    fn name(message: &Message<'_>) -> String {
        let name = read::<LinkHeader>(message.payload)
            .and_then(|(_, attributes)| attributes.find(libc::IFLA_IFNAME));
        name.map(text).unwrap_or_default()
    }

    #[test]
    fn the_kernel_answers_and_refuses() {
        let mut socket = Socket::route(None).expect("a socket");
        let mut names = Vec::new();
        // The loopback device is the first of every namespace.
        let one = link(1);
        socket
            .ask(one, |message| names.push(name(message)))
            .expect("is there");
        assert_eq!(names, ["lo"]);
        let all = link(0);
        let dump = socket.dump(all, |message| names.push(name(message)));
        assert!(dump.is_ok() && names.len() > 1 && names[1..].contains(&names[0]));
        let none = link(i32::MAX as u32);
        let refused = socket.command(none).expect_err("there is none");
        assert_eq!(refused.raw_os_error(), Some(libc::ENODEV));
        assert!(socket.receive(false).expect("no error").is_none());
    }

    /// Neither 0 nor the negative of an error: no kernel says so.
    #[test]
    fn outcomes_are_errors_unless_they_are_0() {
        assert!(finished(&0i32.to_ne_bytes()).is_ok());
        for code in [i32::MIN, i32::MAX, -1, 1] {
            assert!(finished(&code.to_ne_bytes()).is_err(), "{code}");
        }
        let refused = finished(&(-libc::EPERM).to_ne_bytes()).expect_err("an error");
        assert_eq!(refused.raw_os_error(), Some(libc::EPERM));
    }
}
