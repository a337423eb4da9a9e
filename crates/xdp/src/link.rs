//! Answers of the kernel about a link (rtnetlink, linux/if_link.h) and about its driver's abilities
//! with XDP (generic netlink family `netdev`, linux/netdev.h); a pair of veths. All in the calling
//! thread's network namespace.

use std::io;

use kernel::netlink::layout::{self, Header, LinkHeader};
use kernel::netlink::{Attributes, Builder, Family, Socket, u32_at, u64_at};

// Attributes within IFLA_XDP (linux/if_link.h).
const XDP_ATTACHED: u16 = 2;
const XDP_PROG_ID: u16 = 4;
/// `XDP_ATTACHED_SKB`: in generic mode.
const GENERIC: u8 = 2;

// Command and attributes of linux/netdev.h.
const NETDEV_CMD_DEV_GET: u8 = 1;
const NETDEV_A_DEV_IFINDEX: u16 = 1;
const NETDEV_A_DEV_XDP_FEATURES: u16 = 3;

/// A link as the kernel describes it (`RTM_NEWLINK`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Link {
    /// Its address, if it has one of Ethernet.
    pub mac: Option<[u8; 6]>,
    /// Id of its XDP program, and whether that runs in generic mode. With programs in both modes,
    /// the kernel names none and the id is 0.
    pub program: Option<(u32, bool)>,
    /// Its driver's counters.
    pub counters: DeviceCounters,
}

/// A device's counters, as its driver keeps them, of all frames. They tell what becomes of frames
/// that programs redirect to the device, which the programs cannot see.
///
/// Most drivers count in `tx_dropped` what the device has no room for and what is too long for the
/// other end. A frame that the kernel refuses before it comes to the device (which is down, or no
/// longer takes redirected frames) is counted where it came in, in `rx_dropped`. Drivers differ:
/// veth counts both, in generic mode nothing does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeviceCounters {
    /// Sent.
    pub tx_packets: u64,
    /// Not sent.
    pub tx_dropped: u64,
    /// Received and then lost.
    pub rx_dropped: u64,
}

impl Link {
    /// Asks the kernel for the link with this index.
    ///
    /// # Errors
    /// ENODEV: there is none.
    pub fn get(ifindex: u32) -> io::Result<Self> {
        let request = LinkHeader::named(ifindex).message(libc::RTM_GETLINK);
        let mut link = Self::default();
        Socket::route(None)?.ask(request, |message| link = Self::read(message.payload))?;
        Ok(link)
    }

    /// Takes the payload of a message apart. What is missing or cut off is not there.
    pub fn read(payload: &[u8]) -> Self {
        let Some((_, attributes)) = layout::read::<LinkHeader>(payload) else {
            return Self::default();
        };
        let find = |kind| attributes.clone().find(kind);
        Self {
            mac: find(libc::IFLA_ADDRESS).and_then(|mac| mac.try_into().ok()),
            program: find(libc::IFLA_XDP).and_then(program),
            counters: find(libc::IFLA_STATS64).map_or_else(Default::default, counters),
        }
    }
}

fn program(xdp: &[u8]) -> Option<(u32, bool)> {
    let find = |kind| Attributes(xdp).find(kind);
    let &attached = find(XDP_ATTACHED)?.first()?;
    let id = find(XDP_PROG_ID).and_then(|id| u32_at(id, 0)).unwrap_or(0);
    (attached != 0).then_some((id, attached == GENERIC))
}

/// `struct rtnl_link_stats64`.
fn counters(stats: &[u8]) -> DeviceCounters {
    let at = |index: usize| u64_at(stats, index * 8).unwrap_or(0);
    DeviceCounters {
        tx_packets: at(1),
        rx_dropped: at(6),
        tx_dropped: at(7),
    }
}

/// Makes a pair of veths, both down. One gets the index `ifindex`, the other any.
pub fn make_veth(ifindex: u32) -> io::Result<()> {
    let kind = |info: Builder| info.string(libc::IFLA_INFO_KIND, "veth");
    let request = LinkHeader::named(ifindex)
        .message(libc::RTM_NEWLINK)
        .flags(libc::NLM_F_CREATE | libc::NLM_F_EXCL)
        .nested(libc::IFLA_LINKINFO, kind);
    Socket::route(None)?.command(request)
}

/// The device's `NETDEV_XDP_ACT_*` bits; None where the kernel does not say (before 6.3).
pub fn xdp_features(ifindex: u32) -> io::Result<Option<u64>> {
    let mut family = match Family::open(None, "netdev") {
        Err(error) if error.kind() == io::ErrorKind::Unsupported => return Ok(None),
        family => family?,
    };
    let request = family
        .request(NETDEV_CMD_DEV_GET)
        .number(NETDEV_A_DEV_IFINDEX, ifindex);
    let mut bits = None;
    family.ask(request, |answer| bits = features(answer))?;
    Ok(bits)
}

/// The `NETDEV_XDP_ACT_*` bits in an answer.
pub fn features(answer: Attributes<'_>) -> Option<u64> {
    u64_at(answer.find(NETDEV_A_DEV_XDP_FEATURES)?, 0)
}

#[cfg(test)]
mod tests {
    use kernel::netlink::Messages;

    use super::*;

    #[test]
    fn a_link_is_what_its_message_says() {
        let message = LinkHeader::named(1).message(libc::RTM_NEWLINK);
        let read = |message: Builder| {
            let bytes = message.finish(0);
            let message = Messages(&bytes).next().expect("one message");
            Link::read(message.payload)
        };
        assert_eq!(read(message.clone()), Link::default());
        let stats: Vec<u8> = (0..24u64).flat_map(u64::to_ne_bytes).collect();
        let xdp = |xdp: Builder| {
            xdp.attribute(XDP_ATTACHED, &[GENERIC])
                .number(XDP_PROG_ID, 77)
        };
        let message = message
            .attribute(libc::IFLA_ADDRESS, &[2, 0, 0, 0, 0, 9])
            .attribute(libc::IFLA_STATS64, &stats)
            .nested(libc::IFLA_XDP, xdp);
        let expected = Link {
            mac: Some([2, 0, 0, 0, 0, 9]),
            program: Some((77, true)),
            counters: DeviceCounters {
                tx_packets: 1,
                rx_dropped: 6,
                tx_dropped: 7,
            },
        };
        assert_eq!(read(message), expected);
    }
}
