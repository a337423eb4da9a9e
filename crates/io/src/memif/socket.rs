//! Unix sockets that carry control messages and file descriptors.
#![allow(unsafe_code)]

use std::ffi::c_int;
use std::fs;
use std::io::{self, ErrorKind};
use std::mem;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::ptr;

use super::Error;
use super::message::SIZE;

/// File descriptors that one message may carry before it counts as abuse; the protocol uses one.
const MAX_FDS: usize = 4;

/// A socket that listens for memif clients. Its file goes when the listener is dropped.
#[derive(Debug)]
pub struct Listener {
    fd: OwnedFd,
    path: String,
    /// Device and inode of the socket's file; `None` in the abstract namespace.
    file: Option<(u64, u64)>,
}

impl Listener {
    /// Listens at `path` (`@name`: the abstract namespace). A file left behind by a dead process is replaced.
    pub fn bind(path: &str) -> Result<Self, Error> {
        let fd = seqpacket()?;
        let (addr, len) = address(path)?;
        match call_bind(&fd, &addr, len) {
            Err(e) if e.kind() == ErrorKind::AddrInUse => {
                remove_stale(path)?;
                call_bind(&fd, &addr, len)?;
            }
            other => other?,
        }
        // SAFETY: a plain system call on a descriptor we own.
        if unsafe { libc::listen(fd.as_raw_fd(), 16) } < 0 {
            return Err(io::Error::last_os_error().into());
        }
        Ok(Self {
            fd,
            path: path.to_owned(),
            file: file_at(path),
        })
    }

    /// Where it listens.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// The next client, if one waits.
    pub fn accept(&self) -> io::Result<Option<Channel>> {
        // SAFETY: null address pointers are allowed by accept4(2).
        let fd = unsafe {
            libc::accept4(
                self.fd.as_raw_fd(),
                ptr::null_mut(),
                ptr::null_mut(),
                libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC,
            )
        };
        if fd >= 0 {
            // SAFETY: accept4 returned a new descriptor that nobody else owns.
            return Ok(Some(Channel(unsafe { OwnedFd::from_raw_fd(fd) })));
        }
        match io::Error::last_os_error() {
            e if e.kind() == ErrorKind::WouldBlock => Ok(None),
            e => Err(e),
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
        let (addr, len) = address(path)?;
        // SAFETY: `addr` is a valid sockaddr_un of which `len` bytes are set.
        let rc = unsafe { libc::connect(fd.as_raw_fd(), ptr::from_ref(&addr).cast(), len) };
        if rc < 0 {
            return Err(io::Error::last_os_error().into());
        }
        Ok(Self(fd))
    }

    /// Sends one message and, if given, a descriptor with it. Never blocks.
    pub fn send(&self, message: &[u8; SIZE], fd: Option<RawFd>) -> io::Result<()> {
        let mut iov = libc::iovec {
            iov_base: message.as_ptr().cast_mut().cast(),
            iov_len: SIZE,
        };
        let mut control = Control::default();
        // SAFETY: all-zero is a valid msghdr.
        let mut header: libc::msghdr = unsafe { mem::zeroed() };
        header.msg_iov = &mut iov;
        header.msg_iovlen = 1;
        if let Some(fd) = fd {
            header.msg_control = control.0.as_mut_ptr().cast();
            // SAFETY: CMSG_SPACE and CMSG_LEN only compute sizes; one header and one int fit in `control`.
            unsafe {
                header.msg_controllen = libc::CMSG_SPACE(size_of::<c_int>() as u32) as _;
                let cmsg = libc::CMSG_FIRSTHDR(&header);
                (*cmsg).cmsg_level = libc::SOL_SOCKET;
                (*cmsg).cmsg_type = libc::SCM_RIGHTS;
                (*cmsg).cmsg_len = libc::CMSG_LEN(size_of::<c_int>() as u32) as _;
                libc::CMSG_DATA(cmsg).cast::<c_int>().write_unaligned(fd);
            }
        }
        let flags = libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL;
        // SAFETY: every pointer in `header` lives until the call returns.
        match unsafe { libc::sendmsg(self.0.as_raw_fd(), &header, flags) } {
            n if n == SIZE as isize => Ok(()),
            n if n >= 0 => Err(ErrorKind::WriteZero.into()),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// The next message into `buffer` and the first descriptor that came with it; surplus descriptors are
    /// closed. Returns the message's length (0: the peer closed), or `None` if nothing waits.
    pub fn receive(
        &self,
        buffer: &mut [u8; SIZE + 1],
    ) -> io::Result<Option<(usize, Option<OwnedFd>)>> {
        let mut iov = libc::iovec {
            iov_base: buffer.as_mut_ptr().cast(),
            iov_len: buffer.len(),
        };
        let mut control = Control::default();
        // SAFETY: all-zero is a valid msghdr.
        let mut header: libc::msghdr = unsafe { mem::zeroed() };
        header.msg_iov = &mut iov;
        header.msg_iovlen = 1;
        header.msg_control = control.0.as_mut_ptr().cast();
        header.msg_controllen = size_of::<Control>() as _;
        let flags = libc::MSG_DONTWAIT | libc::MSG_CMSG_CLOEXEC;
        // SAFETY: every pointer in `header` lives until the call returns, with the lengths given.
        let n = unsafe { libc::recvmsg(self.0.as_raw_fd(), &mut header, flags) };
        if n < 0 {
            return match io::Error::last_os_error() {
                e if e.kind() == ErrorKind::WouldBlock => Ok(None),
                e => Err(e),
            };
        }
        let fd = received_fds(&header).into_iter().next();
        Ok(Some((n as usize, fd)))
    }
}

impl AsRawFd for Channel {
    fn as_raw_fd(&self) -> RawFd {
        self.0.as_raw_fd()
    }
}

/// Room for ancillary data, aligned as `cmsghdr` wants it.
#[repr(C, align(16))]
struct Control([u8; 128]);

impl Default for Control {
    fn default() -> Self {
        Self([0; 128])
    }
}

/// Takes ownership of every descriptor that came with a message.
fn received_fds(header: &libc::msghdr) -> Vec<OwnedFd> {
    let mut fds = Vec::with_capacity(MAX_FDS);
    // SAFETY: the kernel filled `header`'s control buffer; the CMSG macros walk it within its bounds, and every
    // SCM_RIGHTS descriptor in it is new and ours.
    unsafe {
        let mut cmsg = libc::CMSG_FIRSTHDR(header);
        while !cmsg.is_null() {
            if (*cmsg).cmsg_level == libc::SOL_SOCKET && (*cmsg).cmsg_type == libc::SCM_RIGHTS {
                let bytes = ((*cmsg).cmsg_len as usize).saturating_sub(libc::CMSG_LEN(0) as usize);
                let data = libc::CMSG_DATA(cmsg).cast::<c_int>();
                for i in 0..bytes / size_of::<c_int>() {
                    fds.push(OwnedFd::from_raw_fd(data.add(i).read_unaligned()));
                }
            }
            cmsg = libc::CMSG_NXTHDR(header, cmsg);
        }
    }
    fds
}

/// Which file is at a path now.
fn file_at(path: &str) -> Option<(u64, u64)> {
    if path.starts_with('@') {
        return None;
    }
    let found = fs::symlink_metadata(path).ok()?;
    Some((found.dev(), found.ino()))
}

fn seqpacket() -> io::Result<OwnedFd> {
    let kind = libc::SOCK_SEQPACKET | libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
    // SAFETY: a plain system call; the descriptor it returns is ours.
    let fd = unsafe { libc::socket(libc::AF_UNIX, kind, 0) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: as above.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// The socket address of a path, or of `@name` in the abstract namespace.
fn address(path: &str) -> Result<(libc::sockaddr_un, libc::socklen_t), Error> {
    // SAFETY: all-zero is a valid sockaddr_un.
    let mut addr: libc::sockaddr_un = unsafe { mem::zeroed() };
    addr.sun_family = libc::AF_UNIX as libc::sa_family_t;
    if path.len() >= addr.sun_path.len() {
        return Err(Error::PathTooLong(path.to_owned()));
    }
    for (to, from) in addr.sun_path.iter_mut().zip(path.bytes()) {
        *to = from as libc::c_char;
    }
    let header = mem::offset_of!(libc::sockaddr_un, sun_path);
    let len = if path.starts_with('@') {
        addr.sun_path[0] = 0;
        header + path.len()
    } else {
        size_of::<libc::sockaddr_un>()
    };
    Ok((addr, len as libc::socklen_t))
}

fn call_bind(fd: &OwnedFd, addr: &libc::sockaddr_un, len: libc::socklen_t) -> io::Result<()> {
    // SAFETY: `addr` is a valid sockaddr_un of which `len` bytes are set.
    match unsafe { libc::bind(fd.as_raw_fd(), ptr::from_ref(addr).cast(), len) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
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
