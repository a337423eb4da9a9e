//! The two questions to the kernel that need netlink: a link's XDP program (rtnetlink) and a device's XDP features
//! (generic netlink family `netdev`).
#![allow(unsafe_code)]

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

const HEADER: usize = 16;
const ATTRIBUTE: usize = 4;
const NLM_F_REQUEST: u16 = 1;
const NLMSG_ERROR: u16 = 2;

// linux/if_link.h, linux/rtnetlink.h
const RTM_GETLINK: u16 = 18;
const IFINFOMSG: usize = 16;
const IFLA_XDP: u16 = 43;
const IFLA_XDP_ATTACHED: u16 = 2;
const IFLA_XDP_PROG_ID: u16 = 4;
const XDP_ATTACHED_SKB: u8 = 2;

// linux/genetlink.h, linux/netdev.h
const GENL_HEADER: usize = 4;
const GENL_ID_CTRL: u16 = 16;
const CTRL_CMD_GETFAMILY: u8 = 3;
const CTRL_ATTR_FAMILY_ID: u16 = 1;
const CTRL_ATTR_FAMILY_NAME: u16 = 2;
const NETDEV_CMD_DEV_GET: u8 = 1;
const NETDEV_A_DEV_IFINDEX: u16 = 1;
const NETDEV_A_DEV_XDP_FEATURES: u16 = 3;

/// Id of the XDP program on a link, and whether it runs in generic mode. With programs in both modes, the kernel names
/// none and the id is 0.
pub fn xdp_program(ifindex: u32) -> io::Result<Option<(u32, bool)>> {
    let mut body = vec![0u8; IFINFOMSG];
    body[4..8].copy_from_slice(&ifindex.to_ne_bytes());
    let answer = ask(libc::NETLINK_ROUTE, RTM_GETLINK, &body)?;
    let Some(xdp) = attribute(answer.get(IFINFOMSG..).unwrap_or_default(), IFLA_XDP) else {
        return Ok(None);
    };
    let attached = attribute(xdp, IFLA_XDP_ATTACHED)
        .and_then(|mode| mode.first().copied())
        .unwrap_or(0);
    let id = attribute(xdp, IFLA_XDP_PROG_ID).and_then(word).unwrap_or(0);
    Ok((attached != 0).then_some((id, attached == XDP_ATTACHED_SKB)))
}

/// The device's `NETDEV_XDP_ACT_*` bits; None where the kernel does not tell (before 6.3).
pub fn xdp_features(ifindex: u32) -> io::Result<Option<u64>> {
    let mut body = vec![CTRL_CMD_GETFAMILY, 1, 0, 0];
    push(&mut body, CTRL_ATTR_FAMILY_NAME, b"netdev\0");
    let family = match ask(libc::NETLINK_GENERIC, GENL_ID_CTRL, &body) {
        Ok(answer) => answer,
        Err(e) if e.raw_os_error() == Some(libc::ENOENT) => return Ok(None),
        Err(e) => return Err(e),
    };
    let family = attribute(
        family.get(GENL_HEADER..).unwrap_or_default(),
        CTRL_ATTR_FAMILY_ID,
    )
    .and_then(|id| Some(u16::from_ne_bytes(id.get(..2)?.try_into().ok()?)));
    let Some(family) = family else {
        return Ok(None);
    };
    let mut body = vec![NETDEV_CMD_DEV_GET, 1, 0, 0];
    push(&mut body, NETDEV_A_DEV_IFINDEX, &ifindex.to_ne_bytes());
    let answer = ask(libc::NETLINK_GENERIC, family, &body)?;
    Ok(attribute(
        answer.get(GENL_HEADER..).unwrap_or_default(),
        NETDEV_A_DEV_XDP_FEATURES,
    )
    .and_then(|bits| Some(u64::from_ne_bytes(bits.get(..8)?.try_into().ok()?))))
}

/// Sends one request in the calling thread's namespace; gives the payload of the one answer.
fn ask(protocol: libc::c_int, kind: u16, body: &[u8]) -> io::Result<Vec<u8>> {
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
    request.extend_from_slice(&NLM_F_REQUEST.to_ne_bytes());
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
    payload(&answer)
}

/// The first message's payload, or the error that it is.
fn payload(answer: &[u8]) -> io::Result<Vec<u8>> {
    let short = || io::Error::other("short netlink message");
    let len = answer.get(..4).and_then(word).ok_or_else(short)? as usize;
    let kind = answer.get(4..6).ok_or_else(short)?;
    let body = answer.get(HEADER..len).ok_or_else(short)?;
    if u16::from_ne_bytes([kind[0], kind[1]]) == NLMSG_ERROR {
        let code = body.get(..4).and_then(word).ok_or_else(short)? as i32;
        return Err(io::Error::from_raw_os_error(-code));
    }
    Ok(body.to_vec())
}

fn word(bytes: &[u8]) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.get(..4)?.try_into().ok()?))
}

/// Appends an attribute.
fn push(body: &mut Vec<u8>, kind: u16, value: &[u8]) {
    body.extend_from_slice(&((ATTRIBUTE + value.len()) as u16).to_ne_bytes());
    body.extend_from_slice(&kind.to_ne_bytes());
    body.extend_from_slice(value);
    body.resize(body.len().next_multiple_of(4), 0);
}

/// The first attribute of this kind. The two high bits of a kind are flags.
fn attribute(mut from: &[u8], wanted: u16) -> Option<&[u8]> {
    loop {
        let len = u16::from_ne_bytes(from.get(..2)?.try_into().ok()?) as usize;
        let kind = u16::from_ne_bytes(from.get(2..4)?.try_into().ok()?) & 0x3fff;
        let value = from.get(ATTRIBUTE..len)?;
        if kind == wanted {
            return Some(value);
        }
        from = from.get(len.next_multiple_of(4)..)?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_are_found_behind_padding() {
        let mut body = Vec::new();
        push(&mut body, 1, b"abc");
        push(&mut body, 0x8000 | 2, &7u32.to_ne_bytes());
        assert_eq!(attribute(&body, 1), Some(&b"abc"[..]));
        assert_eq!(attribute(&body, 2).and_then(word), Some(7));
        assert_eq!(attribute(&body, 3), None);
    }

    #[test]
    fn broken_messages_are_refused() {
        assert!(payload(&[]).is_err());
        assert!(payload(&[255; 16]).is_err());
        // An attribute that is shorter than its own header, and one longer than what is there.
        assert_eq!(attribute(&[0, 0, 1, 0], 1), None);
        assert_eq!(attribute(&[9, 0, 1, 0, 0], 1), None);
    }
}
