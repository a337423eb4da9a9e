//! vxlan-input: takes frames out of the packets of tunnels (RFC 7348 section 5).
//!
//! Packets come here from the look-up of an own address, if there are tunnels at all. What is of no
//! tunnel is the host's, which may have VXLAN devices of its own.

use std::net::{IpAddr, Ipv4Addr};

use graph::{Flag, Pkt, Stage, edges};
use wire::checksum::pseudo_header;
use wire::ip::ecn::{CE, ECT1};
use wire::{eth, ip, ip4, ip6, port, udp, vxlan};

use super::{Tunnel, ecn, sum_of};
use crate::context::Cx;
use crate::eth::is_from_group;

edges! {
    /// Ways out of vxlan-input.
    pub enum Next {
        /// A frame of a tunnel, as if it had come in there.
        Frame => Node("ethernet-input"),
        /// There is no such tunnel here.
        NoTunnel => Node("punt") as Punted,
        /// It ends within its headers.
        Truncated => Drop("vxlan header is cut off"),
        /// The I flag is not set (RFC 7348 section 5).
        NoVni => Drop("vxlan header has no network identifier"),
        /// The length of UDP is beyond that of IP, or less than that of the headers.
        BadLength => Drop("vxlan udp length does not fit the packet"),
        /// There is a checksum, and it is wrong.
        BadChecksum => Drop("vxlan udp checksum is wrong"),
        /// The frame claims to come from many (IEEE 802.3 clause 3.2.3: the source is an individual address).
        BadSource => Drop("source MAC is multicast"),
        /// The outer header says that there is congestion, and the packet in the frame cannot say so
        /// (RFC 6040 section 4.2).
        Congested => Drop("congestion in the tunnel of a packet without ecn"),
    }
}

/// The stage.
pub struct Input;

/// Whether the packet, which is for an own address and has a whole IP header, is UDP to the port of
/// VXLAN. Fragments are the host's.
#[inline]
pub(crate) fn is_datagram(cx: &Cx, p: &Pkt<'_>) -> bool {
    if cx.snapshot().tunnels.is_empty() || p.has(Flag::TUNNELED) {
        return false;
    }
    let is_udp = if is_ip4(p) {
        let h = p.header::<ip4::Header>(p.l3);
        h.proto == ip::UDP && !h.is_fragment()
    } else {
        p.header::<ip6::Header>(p.l3).next_header == ip::UDP
    };
    let udp_at = usize::from(p.l3) + ip_len(p);
    is_udp
        && p.len() >= udp_at + udp::LEN
        && p.header::<udp::Header>(udp_at as u8).dst_port() == port::VXLAN
}

impl Stage<Cx> for Input {
    const NAME: &'static str = "vxlan-input";
    type Next = Next;
    const THRU: Next = Next::Frame;

    #[inline(always)]
    fn packet(&mut self, cx: &Cx, p: &mut Pkt<'_>) -> Next {
        let udp_at = p.l3 + ip_len(p) as u8;
        let vxlan_at = udp_at + udp::LEN as u8;
        let frame_at = usize::from(vxlan_at) + vxlan::LEN;
        if p.len() < frame_at {
            return Next::Truncated;
        }
        let Some(vni) = p.header::<vxlan::Header>(vxlan_at).vni() else {
            return Next::NoVni;
        };
        let (tunnel, room, notification) = outer(p, vni);
        let Some(interface) = cx.snapshot().tunnels.interface(&tunnel) else {
            return Next::NoTunnel;
        };
        let header = p.header::<udp::Header>(udp_at);
        let length = usize::from(header.length());
        if !(udp::LEN + vxlan::LEN..=room).contains(&length) {
            return Next::BadLength;
        }
        // RFC 6935: tunnels may go without, by IPv6, too.
        if header.checksum() != 0 && !is_checksum_right(p, &tunnel, usize::from(udp_at), length) {
            return Next::BadChecksum;
        }
        // What follows is no part of the frame.
        p.truncate(usize::from(udp_at) + length);
        // It becomes shorter, and has its headers in the first segment.
        p.shift(frame_at as i32);
        p.set_l3(0);
        p.set_rx_if(interface);
        if matches!(notification, ECT1 | CE) && !ecn::take_over(p, notification) {
            return Next::Congested;
        }
        cx.received(interface, length - udp::LEN - vxlan::LEN);
        if p.len() >= eth::LEN && is_from_group(p) {
            return Next::BadSource;
        }
        Next::Frame
    }
}

#[inline(always)]
fn is_ip4(p: &Pkt<'_>) -> bool {
    p.header::<[u8; 1]>(p.l3)[0] == ip4::PLAIN
}

/// Bytes of the IP header: those with options do not come here.
#[inline(always)]
fn ip_len(p: &Pkt<'_>) -> usize {
    if is_ip4(p) { ip4::LEN } else { ip6::LEN }
}

/// The tunnel that a packet with this network identifier is of, if there is one, the bytes behind its
/// IP header, and its congestion notification.
#[inline(always)]
fn outer(p: &Pkt<'_>, vni: u32) -> (Tunnel, usize, u8) {
    if is_ip4(p) {
        let h = p.header::<ip4::Header>(p.l3);
        let room = usize::from(h.total_len()).saturating_sub(ip4::LEN);
        let [remote, local] = [h.src(), h.dst()].map(|end| Ipv4Addr::from_bits(end).into());
        (Tunnel { local, remote, vni }, room, h.ecn())
    } else {
        let h = p.header::<ip6::Header>(p.l3);
        let [remote, local] = [h.src, h.dst].map(IpAddr::from);
        (
            Tunnel { local, remote, vni },
            h.payload_len().into(),
            h.ecn(),
        )
    }
}

#[inline(never)]
fn is_checksum_right(p: &Pkt<'_>, tunnel: &Tunnel, udp_at: usize, length: usize) -> bool {
    let pseudo = match (tunnel.remote, tunnel.local) {
        (IpAddr::V4(from), IpAddr::V4(to)) => {
            pseudo_header(from.to_bits(), to.to_bits(), ip::UDP, length)
        }
        (IpAddr::V6(from), IpAddr::V6(to)) => {
            pseudo_header(from.octets(), to.octets(), ip::UDP, length)
        }
        // There are none of two families.
        _ => return false,
    };
    sum_of(p, udp_at, udp_at + length, pseudo).checksum() == 0
}
