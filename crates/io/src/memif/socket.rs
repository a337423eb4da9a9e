//! Unix sockets that carry control messages and file descriptors.

use std::fs;
use std::io::{self, ErrorKind, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::os::unix::fs::{FileTypeExt, MetadataExt};

use rustix::io::Errno;
use rustix::net::{
    self, AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketAddrUnix, SocketFlags, SocketType,
};

use super::Error;
use super::message::SIZE;

/// File descriptors that are taken with one message. The protocol uses one; the kernel drops what
/// is beyond these.
const MAX_FDS: usize = 4;

/// Bytes of `sun_path`, less the zero at its end (unix(7)).
const LONGEST_PATH: usize = 107;

/// Clients that may wait to be accepted: as many as are accepted in a turn. The others try again.
const BACKLOG: i32 = 16;

/// A socket that listens for memif clients. Its file goes when the listener is dropped.
#[derive(Debug)]
pub struct Listener {
    fd: OwnedFd,
    path: String,
    /// Device and inode of the socket's file; `None` in the abstract namespace.
    file: Option<(u64, u64)>,
}

impl Listener {
    /// Listens at `path` (`@name`: the abstract namespace). A file left behind by a dead process is
    /// replaced.
    pub fn bind(path: &str) -> Result<Self, Error> {
        let (fd, address) = (seqpacket()?, address(path)?);
        match net::bind(&fd, &address) {
            Err(Errno::ADDRINUSE) => {
                remove_stale(path)?;
                net::bind(&fd, &address)?;
            }
            other => other?,
        }
        net::listen(&fd, BACKLOG)?;
        Ok(Self {
            fd,
            path: path.to_owned(),
            file: file_at(path),
        })
    }

    /// Path that it listens at.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// The next client, if one waits.
    pub fn accept(&self) -> io::Result<Option<Channel>> {
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        match net::accept_with(&self.fd, flags) {
            Ok(fd) => Ok(Some(Channel(fd))),
            Err(Errno::WOULDBLOCK) => Ok(None),
            Err(e) => Err(e.into()),
        }
    }
}

impl AsRawFd for Listener {
    fn as_raw_fd(&self) -> RawFd {
        self.fd.as_raw_fd()
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        // Somebody else may have taken the path over.
        if self.file.is_some() && file_at(&self.path) == self.file {
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// One connection's control channel.
#[derive(Debug)]
pub struct Channel(OwnedFd);

impl Channel {
    /// Connects to a server. Fails at once if none listens.
    pub fn connect(path: &str) -> Result<Self, Error> {
        let fd = seqpacket()?;
        net::connect(&fd, &address(path)?)?;
        Ok(Self(fd))
    }

    /// Sends one message and, if given, a descriptor with it. Never blocks.
    pub fn send(&self, message: &[u8; SIZE], fd: Option<BorrowedFd<'_>>) -> io::Result<()> {
        let mut room = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = SendAncillaryBuffer::new(&mut room);
        if let Some(fd) = &fd {
            control.push(SendAncillaryMessage::ScmRights(std::slice::from_ref(fd)));
        }
        let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
        match net::sendmsg(&self.0, &[IoSlice::new(message)], &mut control, flags)? {
            SIZE => Ok(()),
            _ => Err(ErrorKind::WriteZero.into()),
        }
    }

    /// The next message into `buffer` and the first descriptor that came with it; surplus
    /// descriptors are closed. Returns the message's length (0: the peer closed), or `None` if
    /// nothing waits.
    pub fn receive(
        &self,
        buffer: &mut [u8; SIZE + 1],
    ) -> io::Result<Option<(usize, Option<OwnedFd>)>> {
        let mut room = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_FDS))];
        let mut control = RecvAncillaryBuffer::new(&mut room);
        let flags = RecvFlags::DONTWAIT | RecvFlags::CMSG_CLOEXEC;
        let mut buffers = [IoSliceMut::new(buffer)];
        let received = match net::recvmsg(&self.0, &mut buffers, &mut control, flags) {
            Err(Errno::WOULDBLOCK) => return Ok(None),
            received => received?,
        };
        let fds = control.drain().filter_map(|message| match message {
            RecvAncillaryMessage::ScmRights(fds) => Some(fds),
            _ => None,
        });
        // Every one is taken out: those that are not kept are closed.
        let mut fds = fds.flatten().collect::<Vec<_>>().into_iter();
        Ok(Some((received.bytes, fds.next())))
    }
}

impl AsRawFd for Channel {
    fn as_raw_fd(&self) -> RawFd {
        self.0.as_raw_fd()
    }
}

/// Device and inode of the file that is at a path now.
fn file_at(path: &str) -> Option<(u64, u64)> {
    if path.starts_with('@') {
        return None;
    }
    let found = fs::symlink_metadata(path).ok()?;
    Some((found.dev(), found.ino()))
}

fn seqpacket() -> io::Result<OwnedFd> {
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    Ok(net::socket_with(
        AddressFamily::UNIX,
        SocketType::SEQPACKET,
        flags,
        None,
    )?)
}

/// The socket address of a path, or of `@name` in the abstract namespace.
fn address(path: &str) -> Result<SocketAddrUnix, Error> {
    if path.len() > LONGEST_PATH {
        return Err(Error::PathTooLong(path.to_owned()));
    }
    Ok(match path.strip_prefix('@') {
        Some(name) => SocketAddrUnix::new_abstract_name(name.as_bytes())?,
        None => SocketAddrUnix::new(path)?,
    })
}

/// Removes a socket file that nobody listens on.
fn remove_stale(path: &str) -> Result<(), Error> {
    let in_use = || Error::InUse(path.to_owned());
    if path.starts_with('@') {
        return Err(in_use());
    }
    if !fs::symlink_metadata(path)?.file_type().is_socket() {
        return Err(Error::NotASocket(path.to_owned()));
    }
    match Channel::connect(path) {
        Err(Error::Io(e)) if e.kind() == ErrorKind::ConnectionRefused => Ok(fs::remove_file(path)?),
        _ => Err(in_use()),
    }
}
