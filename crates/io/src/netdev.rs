//! Settings of a network interface by ioctl (netdevice(7)), in the calling thread's network namespace.
#![allow(unsafe_code)]

use std::ffi::CString;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

/// An interface request with this name.
pub fn request(name: &str) -> io::Result<libc::ifreq> {
    // SAFETY: all-zero is a valid ifreq.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    if name.is_empty() || name.len() >= request.ifr_name.len() || name.contains(['/', '\0']) {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            format!("{name:?} is not a name of an interface (1 to 15 characters, no slash)"),
        ));
    }
    for (to, from) in request.ifr_name.iter_mut().zip(name.bytes()) {
        *to = from as libc::c_char;
    }
    Ok(request)
}

/// Carries out `request` on `fd`.
///
/// # Safety
/// `code` reads or writes nothing but an ifreq, and the request's pointer, if the code uses one, is valid for it.
pub unsafe fn ioctl(
    fd: &impl AsRawFd,
    code: libc::c_ulong,
    request: &mut libc::ifreq,
) -> io::Result<()> {
    // SAFETY: the caller's promise.
    match unsafe { libc::ioctl(fd.as_raw_fd(), code as libc::Ioctl, request) } {
        n if n >= 0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Any socket, for requests that need one.
pub fn socket() -> io::Result<OwnedFd> {
    // SAFETY: a plain system call; the descriptor it returns is ours.
    let fd = unsafe { libc::socket(libc::AF_INET, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, 0) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: as above.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Index of an interface in the calling thread's network namespace.
pub fn index(name: &str) -> Option<u32> {
    let name = CString::new(name).ok()?;
    // SAFETY: a zero-terminated string.
    match unsafe { libc::if_nametoindex(name.as_ptr()) } {
        0 => None,
        index => Some(index),
    }
}

/// Numbers of queues: `struct ethtool_channels` (linux/ethtool.h).
#[repr(C)]
#[derive(Debug, Default)]
pub struct Channels {
    cmd: u32,
    max: [u32; 4],
    pub rx: u32,
    pub tx: u32,
    pub other: u32,
    pub combined: u32,
}

/// How many queues an interface has.
pub fn channels(name: &str) -> io::Result<Channels> {
    const SIOCETHTOOL: libc::c_ulong = 0x8946;
    const ETHTOOL_GCHANNELS: u32 = 0x3c;
    let mut channels = Channels {
        cmd: ETHTOOL_GCHANNELS,
        ..Channels::default()
    };
    let mut request = request(name)?;
    request.ifr_ifru.ifru_data = std::ptr::from_mut(&mut channels).cast();
    // SAFETY: the command reads and writes one such structure, which lives behind the pointer.
    unsafe { ioctl(&socket()?, SIOCETHTOOL, &mut request)? };
    Ok(channels)
}
