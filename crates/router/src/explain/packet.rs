//! The packet that is asked about: its frame, and frames in words.

use std::net::IpAddr;

use wire::craft::Packet;
use wire::text::Frame;
use wire::vlan::{self, Tag};
use wire::{eth, ip, tcp};

use crate::Router;
use crate::change::{Interface, Kind, L2, Mac, Tags};

/// A packet, and the interface that it comes in by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Question {
    /// Name of the interface.
    pub interface: String,
    /// The packet.
    pub packet: Asked,
}

/// The packet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Asked {
    /// A whole frame, without its checksum, as the interface's port takes it in.
    Frame(Vec<u8>),
    /// One with these fields.
    Fields(Fields),
}

/// The fields of an IP packet, and of its frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fields {
    /// Source; of the same family as the destination.
    pub source: IpAddr,
    /// Destination.
    pub destination: IpAddr,
    /// IP protocol.
    pub protocol: u8,
    /// Ports of TCP and UDP: source, destination.
    pub ports: (u16, u16),
    /// Flags of TCP, as its header has them.
    pub tcp_flags: u8,
    /// Type and code of ICMP.
    pub icmp: (u8, u8),
    /// Bytes of the IP packet; it is never shorter than its headers. `None`: no more than these.
    pub length: Option<u16>,
    /// Time to live, or hop limit.
    pub ttl: u8,
    /// VLANs of its tags, the outer one first, at most two. A sub-interface's own tags go without
    /// saying.
    pub vlans: Vec<u16>,
    /// Source of the frame. `None`: that of the neighbor that has the source address, else
    /// [`STRANGER`].
    pub source_mac: Option<Mac>,
    /// Destination of the frame. `None`: the interface; at a port of a bridge, the neighbor that has
    /// the destination address, else the own interface of the bridge, if there is one.
    pub destination_mac: Option<Mac>,
}

/// The Ethernet address of a sender that is no neighbor.
pub const STRANGER: Mac = Mac([0x02, 0, 0, 0, 0, 0x01]);

/// The frame as it comes in by the interface's port, or by that which has the sub-interface.
pub(super) fn frame(router: &Router, fields: &Fields, interface: &Interface) -> Option<Vec<u8>> {
    let links = &router.state.links;
    let routed = at_layer_3(router, interface);
    let mac = |address| {
        let neighbor = links.neighbors.get(&(address, routed.id));
        neighbor.map(|neighbor| neighbor.mac)
    };
    let from = fields.source_mac.or_else(|| mac(fields.source));
    // A station of a bridge sends to another one itself.
    let station = (routed.id != interface.id).then(|| mac(fields.destination));
    let to = fields.destination_mac.or(station.flatten());
    let to = to.unwrap_or(routed.mac);
    let mut packet = crafted(fields)?
        .ttl(fields.ttl)
        .macs(from.unwrap_or(STRANGER), to);
    if let Some(length) = fields.length {
        packet = packet.frame_len(eth::LEN + usize::from(length));
    }
    let mut frame = packet.frame();
    let tags = match interface.kind {
        Kind::Sub { tags, .. } => tags,
        _ => of_vlans(router, interface, &fields.vlans),
    };
    let outer = if tags.service {
        eth::SERVICE_VLAN
    } else {
        eth::VLAN
    };
    let both = [Tag::new(outer, tags.outer), Tag::new(eth::VLAN, tags.inner)];
    let bytes = both.into_iter().take(usize::from(tags.count));
    frame.splice(vlan::AT..vlan::AT, bytes.flat_map(Tag::to_bytes));
    Some(frame)
}

/// The interface that stations behind this one know the router by: the own one of its bridge domain,
/// else itself.
fn at_layer_3<'a>(router: &'a Router, interface: &'a Interface) -> &'a Interface {
    let Some(L2::Bridge(domain)) = interface.l2 else {
        return interface;
    };
    let bvi = router.state.bridges.bvi(domain);
    let bvi = bvi.and_then(|bvi| router.state.links.interfaces.get(&bvi));
    bvi.unwrap_or(interface)
}

/// The packet, in an untagged frame; `None`: the addresses are of two families.
fn crafted(fields: &Fields) -> Option<Packet> {
    let (from, to) = fields.ports;
    let (flags, (kind, code)) = (fields.tcp_flags, fields.icmp);
    let ack = u32::from(flags & tcp::ACK != 0);
    let packet = match (fields.source, fields.destination) {
        (IpAddr::V4(source), IpAddr::V4(destination)) => {
            let (source, destination) = (u32::from(source), u32::from(destination));
            match fields.protocol {
                ip::UDP => Packet::udp((source, from), (destination, to)),
                ip::TCP => Packet::tcp((source, from), (destination, to), flags, 1, ack),
                ip::ICMP => Packet::icmp(source, destination, kind, code, 0),
                other => Packet::raw(source, destination, other),
            }
        }
        (IpAddr::V6(source), IpAddr::V6(destination)) => match fields.protocol {
            ip::UDP => Packet::udp6((source, from), (destination, to)),
            ip::TCP => Packet::tcp6((source, from), (destination, to), flags, 1, ack),
            ip::ICMP6 => Packet::icmp6(source, destination, kind, code, 0),
            other => Packet::raw6(source, destination, other),
        },
        _ => return None,
    };
    Some(packet)
}

/// Tags of these VLANs: those of the sub-interface that has them, else of IEEE 802.1Q, and around
/// another one of IEEE 802.1ad.
fn of_vlans(router: &Router, interface: &Interface, vlans: &[u16]) -> Tags {
    let tags = match vlans {
        [] => return Tags::NONE,
        [vlan] => Tags::one(*vlan),
        [outer, inner, ..] => Tags::two(*outer, *inner),
    };
    let subs = router.state.links.interfaces.values();
    let mut of_subs = subs.filter_map(|sub| match sub.kind {
        Kind::Sub { parent, tags, .. } if parent == interface.id => Some(tags),
        _ => None,
    });
    let same = |of: &Tags| (of.count, of.outer, of.inner) == (tags.count, tags.outer, tags.inner);
    of_subs.find(same).unwrap_or(match tags.count {
        1 => tags,
        _ => tags.with_service(),
    })
}

/// Where the first header behind up to two tags begins, less the Ethernet type before it.
fn behind(frame: &[u8]) -> usize {
    let tags = (0..2).map(|n| vlan::AT + n * vlan::LEN).take_while(|at| {
        let ethertype = frame.get(*at..at + 2);
        ethertype.is_some_and(|of| vlan::is_tag(u16::from_be_bytes([of[0], of[1]])))
    });
    vlan::AT + tags.count() * vlan::LEN
}

/// The VLANs of a frame's tags, up to two.
pub(super) fn vlans(frame: &[u8]) -> Vec<u16> {
    let tags = frame.get(vlan::AT..behind(frame)).unwrap_or_default();
    let tags = tags.chunks_exact(vlan::LEN);
    tags.map(|tag| u16::from_be_bytes([tag[2], tag[3]]) & 0xfff)
        .collect()
}

/// What is in a frame, whatever tags it has.
pub(super) fn words(frame: &[u8]) -> String {
    let untagged = match (frame.get(..vlan::AT), frame.get(behind(frame)..)) {
        (Some(ends), Some(rest)) => [ends, rest].concat(),
        _ => frame.to_vec(),
    };
    Frame(&untagged).to_string()
}

/// The link's part of a frame: where it is from and goes to, and its VLANs.
pub(super) fn link(frame: &[u8]) -> String {
    let Some((header, _)) = eth::Header::parse(frame) else {
        return "without an Ethernet header".to_owned();
    };
    let (from, to) = (header.src, header.dst);
    format!("from {from} to {to}{}", in_vlans(&vlans(frame)))
}

/// `, VLAN 100`, or nothing.
pub(super) fn in_vlans(vlans: &[u16]) -> String {
    match vlans {
        [] => String::new(),
        [vlan] => format!(", VLAN {vlan}"),
        all => {
            let all: Vec<_> = all.iter().map(u16::to_string).collect();
            format!(", VLANs {}", all.join(", "))
        }
    }
}
