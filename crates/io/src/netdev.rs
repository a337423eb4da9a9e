//! Settings of a network interface by ioctl (netdevice(7)), in the calling thread's network namespace.

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

/// An ethtool command; `command` starts with its number and is as long as the number says.
pub fn ethtool<T>(name: &str, command: &mut T) -> io::Result<()> {
    const SIOCETHTOOL: libc::c_ulong = 0x8946;
    let mut request = request(name)?;
    request.ifr_ifru.ifru_data = std::ptr::from_mut(command).cast();
    // SAFETY: the kernel reads and writes the command that lives behind `command`.
    unsafe { ioctl(&socket()?, SIOCETHTOOL, &mut request) }
}
