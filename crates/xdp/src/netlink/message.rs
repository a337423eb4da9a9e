//! The kernel's answers, taken apart. What is missing or cut off is not there; nothing in a message is believed.

use std::io;

use crate::device::DeviceCounters;

const HEADER: usize = 16;
pub(super) const ATTRIBUTE: usize = 4;
const NLMSG_ERROR: u16 = 2;

// linux/if_link.h, linux/rtnetlink.h
pub(super) const IFINFOMSG: usize = 16;
const IFLA_ADDRESS: u16 = 1;
const IFLA_STATS64: u16 = 23;
const IFLA_XDP: u16 = 43;
const IFLA_XDP_ATTACHED: u16 = 2;
const IFLA_XDP_PROG_ID: u16 = 4;
const XDP_ATTACHED_SKB: u8 = 2;

// linux/genetlink.h, linux/netdev.h
const GENL_HEADER: usize = 4;
const CTRL_ATTR_FAMILY_ID: u16 = 1;
const NETDEV_A_DEV_XDP_FEATURES: u16 = 3;

/// What the kernel says of a link (`RTM_NEWLINK`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Link {
    /// Its address, if it has one of Ethernet.
    pub mac: Option<[u8; 6]>,
    /// Id of its XDP program, and whether that runs in generic mode. With programs in both modes, the kernel names none and
    /// the id is 0.
    pub program: Option<(u32, bool)>,
    /// What its driver counts.
    pub counters: DeviceCounters,
}

impl Link {
    /// Takes the payload of the message apart.
    pub fn read(body: &[u8]) -> Self {
        let attributes = body.get(IFINFOMSG..).unwrap_or_default();
        let mac = attribute(attributes, IFLA_ADDRESS);
        Self {
            mac: mac.and_then(|mac| mac.try_into().ok()),
            program: attribute(attributes, IFLA_XDP).and_then(program),
            counters: attribute(attributes, IFLA_STATS64).map_or_else(Default::default, counters),
        }
    }
}

fn program(xdp: &[u8]) -> Option<(u32, bool)> {
    let &attached = attribute(xdp, IFLA_XDP_ATTACHED)?.first()?;
    let id = attribute(xdp, IFLA_XDP_PROG_ID).and_then(word).unwrap_or(0);
    (attached != 0).then_some((id, attached == XDP_ATTACHED_SKB))
}

/// `struct rtnl_link_stats64`.
fn counters(stats: &[u8]) -> DeviceCounters {
    let at = |index: usize| stats.get(index * 8..).and_then(long).unwrap_or(0);
    DeviceCounters {
        tx_packets: at(1),
        rx_dropped: at(6),
        tx_dropped: at(7),
    }
}

/// The id of the generic netlink family that the payload is about.
pub fn family(body: &[u8]) -> Option<u16> {
    let attributes = body.get(GENL_HEADER..)?;
    let id = attribute(attributes, CTRL_ATTR_FAMILY_ID)?;
    Some(u16::from_ne_bytes(id.get(..2)?.try_into().ok()?))
}

/// The `NETDEV_XDP_ACT_*` bits of the device that the payload is about.
pub fn features(body: &[u8]) -> Option<u64> {
    let attributes = body.get(GENL_HEADER..)?;
    attribute(attributes, NETDEV_A_DEV_XDP_FEATURES).and_then(long)
}

/// The first message's payload, which is empty if it only says that all is well, or the error that it is.
///
/// # Errors
/// The kernel's, or that the message is shorter than it says.
pub fn payload(answer: &[u8]) -> io::Result<&[u8]> {
    let short = || io::Error::other("short netlink message");
    let len = answer.get(..4).and_then(word).ok_or_else(short)? as usize;
    let kind = answer.get(4..6).ok_or_else(short)?;
    let body = answer.get(HEADER..len).ok_or_else(short)?;
    if u16::from_ne_bytes([kind[0], kind[1]]) == NLMSG_ERROR {
        let code = word(body).ok_or_else(short)? as i32;
        return match code {
            0 => Ok(&[]),
            code => Err(io::Error::from_raw_os_error(code.wrapping_neg())),
        };
    }
    Ok(body)
}

fn word(bytes: &[u8]) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.get(..4)?.try_into().ok()?))
}

fn long(bytes: &[u8]) -> Option<u64> {
    Some(u64::from_ne_bytes(bytes.get(..8)?.try_into().ok()?))
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
    use crate::netlink::push;

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

    /// A message that says how a request went.
    fn outcome(code: i32) -> Vec<u8> {
        let mut answer = 20u32.to_ne_bytes().to_vec();
        answer.extend(NLMSG_ERROR.to_ne_bytes());
        answer.resize(HEADER, 0);
        answer.extend(code.to_ne_bytes());
        answer
    }

    /// The greatest and the least code: neither has a positive counterpart that is an error's.
    #[test]
    fn errors_and_acknowledgements_are_told_apart() {
        for code in [i32::MIN, i32::MAX, -1, 1] {
            assert!(payload(&outcome(code)).is_err(), "{code}");
        }
        let refused = payload(&outcome(-libc::EPERM))
            .expect_err("is an error")
            .raw_os_error();
        assert_eq!(refused, Some(libc::EPERM));
        assert!(payload(&outcome(0)).expect("is well").is_empty());
    }

    #[test]
    fn a_link_is_what_its_message_says() {
        let mut body = vec![0; IFINFOMSG];
        assert_eq!(Link::read(&body), Link::default());
        let stats: Vec<u8> = (0..24u64).flat_map(u64::to_ne_bytes).collect();
        let mut xdp = Vec::new();
        push(&mut xdp, IFLA_XDP_ATTACHED, &[XDP_ATTACHED_SKB]);
        push(&mut xdp, IFLA_XDP_PROG_ID, &77u32.to_ne_bytes());
        push(&mut body, IFLA_ADDRESS, &[2, 0, 0, 0, 0, 9]);
        push(&mut body, IFLA_STATS64, &stats);
        push(&mut body, IFLA_XDP, &xdp);
        let read = Link {
            mac: Some([2, 0, 0, 0, 0, 9]),
            program: Some((77, true)),
            counters: DeviceCounters {
                tx_packets: 1,
                rx_dropped: 6,
                tx_dropped: 7,
            },
        };
        assert_eq!(Link::read(&body), read);
    }
}
