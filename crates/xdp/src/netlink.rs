//! What needs netlink: what a link is, making a pair of veths (rtnetlink), and a device's XDP features (generic netlink
//! family `netdev`).
#![allow(unsafe_code)]

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

pub mod message;

use message::{ATTRIBUTE, IFINFOMSG, Link};

const HEADER: usize = 16;
const NLM_F_REQUEST: u16 = 1;
const NLM_F_ACK: u16 = 4;
const NLM_F_EXCL: u16 = 0x200;
const NLM_F_CREATE: u16 = 0x400;

// linux/rtnetlink.h, linux/if_link.h
const RTM_NEWLINK: u16 = 16;
const RTM_GETLINK: u16 = 18;
const IFLA_LINKINFO: u16 = 18;
const IFLA_INFO_KIND: u16 = 1;

// linux/genetlink.h, linux/netdev.h
const GENL_ID_CTRL: u16 = 16;
const CTRL_CMD_GETFAMILY: u8 = 3;
const CTRL_ATTR_FAMILY_NAME: u16 = 2;
const NETDEV_CMD_DEV_GET: u8 = 1;
const NETDEV_A_DEV_IFINDEX: u16 = 1;

/// What the kernel says of a link of the calling thread's namespace.
pub fn link(ifindex: u32) -> io::Result<Link> {
    let answer = ask(libc::NETLINK_ROUTE, RTM_GETLINK, 0, &with_index(ifindex))?;
    message::payload(&answer).map(Link::read)
}

/// Makes a pair of veths in the calling thread's namespace, both down. One gets the index `ifindex`, the other any.
pub fn make_veth(ifindex: u32) -> io::Result<()> {
    let mut kind = Vec::new();
    push(&mut kind, IFLA_INFO_KIND, b"veth\0");
    let mut body = with_index(ifindex);
    push(&mut body, IFLA_LINKINFO, &kind);
    let flags = NLM_F_ACK | NLM_F_CREATE | NLM_F_EXCL;
    let answer = ask(libc::NETLINK_ROUTE, RTM_NEWLINK, flags, &body)?;
    message::payload(&answer).map(drop)
}

/// `struct ifinfomsg` that names a link by its index.
fn with_index(ifindex: u32) -> Vec<u8> {
    let mut message = vec![0u8; IFINFOMSG];
    message[4..8].copy_from_slice(&ifindex.to_ne_bytes());
    message
}

/// The device's `NETDEV_XDP_ACT_*` bits; None where the kernel does not tell (before 6.3).
pub fn xdp_features(ifindex: u32) -> io::Result<Option<u64>> {
    let mut body = vec![CTRL_CMD_GETFAMILY, 1, 0, 0];
    push(&mut body, CTRL_ATTR_FAMILY_NAME, b"netdev\0");
    let answer = ask(libc::NETLINK_GENERIC, GENL_ID_CTRL, 0, &body)?;
    let family = match message::payload(&answer) {
        Ok(body) => message::family(body),
        Err(e) if e.raw_os_error() == Some(libc::ENOENT) => None,
        Err(e) => return Err(e),
    };
    let Some(family) = family else {
        return Ok(None);
    };
    let mut body = vec![NETDEV_CMD_DEV_GET, 1, 0, 0];
    push(&mut body, NETDEV_A_DEV_IFINDEX, &ifindex.to_ne_bytes());
    let answer = ask(libc::NETLINK_GENERIC, family, 0, &body)?;
    message::payload(&answer).map(message::features)
}

/// Sends one request with these flags in the calling thread's namespace; gives the one answer.
fn ask(protocol: libc::c_int, kind: u16, flags: u16, body: &[u8]) -> io::Result<Vec<u8>> {
    // SAFETY: no pointers.
    let fd = unsafe {
        libc::socket(
            libc::AF_NETLINK,
            libc::SOCK_RAW | libc::SOCK_CLOEXEC,
            protocol,
        )
    };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: just made, and nobody else's.
    let socket = unsafe { OwnedFd::from_raw_fd(fd) };
    let mut request = Vec::with_capacity(HEADER + body.len());
    request.extend_from_slice(&((HEADER + body.len()) as u32).to_ne_bytes());
    request.extend_from_slice(&kind.to_ne_bytes());
    request.extend_from_slice(&(NLM_F_REQUEST | flags).to_ne_bytes());
    request.extend_from_slice(&[0; 8]);
    request.extend_from_slice(body);
    // SAFETY: the buffer lives over the call. An unconnected netlink socket sends to the kernel.
    let sent = unsafe {
        libc::send(
            socket.as_raw_fd(),
            request.as_ptr().cast(),
            request.len(),
            0,
        )
    };
    if sent < 0 {
        return Err(io::Error::last_os_error());
    }
    let mut answer = vec![0u8; 64 << 10];
    // SAFETY: as above.
    let got = unsafe {
        libc::recv(
            socket.as_raw_fd(),
            answer.as_mut_ptr().cast(),
            answer.len(),
            0,
        )
    };
    if got < 0 {
        return Err(io::Error::last_os_error());
    }
    answer.truncate(got as usize);
    Ok(answer)
}

/// Appends an attribute.
fn push(body: &mut Vec<u8>, kind: u16, value: &[u8]) {
    body.extend_from_slice(&((ATTRIBUTE + value.len()) as u16).to_ne_bytes());
    body.extend_from_slice(&kind.to_ne_bytes());
    body.extend_from_slice(value);
    body.resize(body.len().next_multiple_of(4), 0);
}
