//! Names and indexes of network devices (netdevice(7)), in the calling thread's network namespace.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

use rustix::net::netdevice::{index_to_name, name_to_index};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};

/// The index of a device; `None` if there is none of that name.
pub fn index(name: &str) -> Option<u32> {
    name_to_index(socket().ok()?, name).ok()
}

/// The name of a device; `None` if there is none with that index.
pub fn name(index: u32) -> Option<String> {
    index_to_name(socket().ok()?, index).ok()
}

/// The name of a device's driver; `None` if there is no device of that name, or it does not say.
#[allow(unsafe_code)]
pub fn driver(name: &str) -> Option<String> {
    /// `ETHTOOL_GDRVINFO` of linux/ethtool.h.
    const GET: u32 = 3;
    /// `struct ethtool_drvinfo` there.
    #[repr(C)]
    struct Info {
        command: u32,
        driver: [u8; 32],
        rest: [u8; 160],
    }
    let mut info = Info {
        command: GET,
        driver: [0; 32],
        rest: [0; 160],
    };
    let mut request = request(name).ok()?;
    request.ifr_ifru.ifru_data = (&raw mut info).cast();
    let socket = socket().ok()?;
    // SAFETY: SIOCETHTOOL reads an ifreq, and this command writes one `Info` where it points.
    let done = unsafe {
        libc::ioctl(
            socket.as_raw_fd(),
            libc::SIOCETHTOOL as libc::Ioctl,
            &raw mut request,
        )
    };
    let name = info.driver.split(|byte| *byte == 0).next()?;
    (done == 0 && !name.is_empty()).then(|| String::from_utf8_lossy(name).into_owned())
}

/// A request about a device (`struct ifreq`): with its name, and all else zero.
///
/// # Errors
/// No device can have that name.
#[allow(unsafe_code)]
pub fn request(name: &str) -> io::Result<libc::ifreq> {
    // SAFETY: all-zero is a valid ifreq.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    if name.is_empty() || name.len() >= request.ifr_name.len() || name.contains(['/', '\0']) {
        let what = format!("{name:?} is not an interface name (1 to 15 characters, no slash)");
        return Err(io::Error::new(io::ErrorKind::InvalidInput, what));
    }
    for (to, from) in request.ifr_name.iter_mut().zip(name.bytes()) {
        *to = from as libc::c_char;
    }
    Ok(request)
}

/// Any socket serves to ask.
fn socket() -> io::Result<OwnedFd> {
    let flags = SocketFlags::CLOEXEC;
    Ok(socket_with(
        AddressFamily::UNIX,
        SocketType::DGRAM,
        flags,
        None,
    )?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_indexes_are_of_each_other() {
        let index = index("lo").expect("every namespace has one");
        assert_eq!(name(index).as_deref(), Some("lo"));
        assert_eq!((name(0), name(u32::MAX)), (None, None));
        assert_eq!((driver("lo"), driver("no-such-device")), (None, None));
        for none in ["", "no-such-device", "a-name-with-more-than-15-letters"] {
            assert_eq!(super::index(none), None, "{none}");
        }
    }
}
