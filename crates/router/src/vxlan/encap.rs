//! vxlan-encap: what leaves by a tunnel, or with tags on it, is put into UDP and routed to the
//! tunnel's other end (RFC 7348 section 5).

use std::net::IpAddr;

use graph::{Flag, Pkt, Stage, edges};
use wire::checksum::pseudo_header;
use wire::{eth, ip, ip4, ip6, port, udp, vxlan};

use super::{ecn, sum_of};
use crate::arc::INTERFACE_OUT_ARC;
use crate::bond::{self, Headers};
use crate::context::Cx;

edges! {
    /// Ways out of vxlan-encap.
    pub enum Next {
        /// To the other end, by IPv4.
        Ip4 => Node("ip4-lookup"),
        /// To the other end, by IPv6.
        Ip6 => Node("ip6-lookup"),
        /// The way to the other end of a tunnel leads into a tunnel.
        InTunnel => Drop("packet of a tunnel leaves by a tunnel"),
        /// There is no room in front of the frame for the headers of the tunnel.
        NoRoom => Drop("no room for headers of a tunnel"),
        /// The interface is a tunnel no longer.
        On => Arc(INTERFACE_OUT_ARC),
    }
}

/// One more than packets leave with: the rewrite decrements it, as for all packets.
const TTL: u8 = 65;

/// The first of 16384 source ports (RFC 7348 section 5: the dynamic ones).
const FIRST_PORT: u16 = 49152;
const PORT_BITS: u32 = 14;

/// Where the outer IP header is: the rewrite puts its Ethernet header before it.
const IP_AT: u8 = eth::LEN as u8;

/// Bytes of UDP and VXLAN headers.
const HEADERS: usize = udp::LEN + vxlan::LEN;

/// The stage.
pub struct Encap;

impl Stage<Cx> for Encap {
    const NAME: &'static str = "vxlan-encap";
    type Next = Next;
    const THRU: Next = Next::Ip4;

    #[inline(always)]
    fn packet(&mut self, cx: &Cx, p: &mut Pkt<'_>) -> Next {
        let interface = bond::of(cx, p.tx_if());
        let Some(tunnel) = cx.snapshot().tunnels.of(interface) else {
            return Next::On;
        };
        if p.has(Flag::TUNNELED) {
            return Next::InTunnel;
        }
        let outer = Outer::of(p, tunnel.vni());
        let next = match (tunnel.local(), tunnel.remote()) {
            (IpAddr::V4(local), IpAddr::V4(remote)) => {
                let ends = [local, remote].map(|address| address.to_bits());
                encap4(p, ends, &outer)
            }
            (IpAddr::V6(local), IpAddr::V6(remote)) => {
                let ends = [local, remote].map(|address| address.octets());
                encap6(p, ends, &outer)
            }
            // There are none of two families.
            _ => return Next::On,
        };
        if !matches!(next, Next::NoRoom) {
            cx.sent(interface, outer.frame);
        }
        next
    }
}

/// What goes around a frame, whatever the family.
struct Outer {
    /// Bytes of the frame.
    frame: usize,
    /// Congestion notification.
    ecn: u8,
    from_port: u16,
    vxlan: vxlan::Header,
}

impl Outer {
    #[inline(always)]
    fn of(p: &mut Pkt<'_>, vni: u32) -> Self {
        // This finds the frame's network header.
        let from_port = source_port(p);
        Outer {
            frame: p.total(),
            ecn: ecn::outer(p, p.l3),
            from_port,
            vxlan: vxlan::Header::new(vni),
        }
    }

    /// The UDP header, without a checksum.
    #[inline(always)]
    fn udp(&self) -> udp::Header {
        udp::Header::new(self.from_port, port::VXLAN, vxlan::LEN + self.frame)
    }

    /// Writes what follows the IP header, and what stands before it until the rewrite.
    #[inline(always)]
    fn write(&self, p: &mut Pkt<'_>, udp_at: u8) {
        *p.header_mut(0) = [0u8; eth::LEN];
        *p.header_mut(udp_at) = self.udp();
        *p.header_mut(udp_at + udp::LEN as u8) = self.vxlan;
        p.set_l3(IP_AT);
        p.mark(Flag::TUNNELED);
        p.mark(Flag::OURS);
    }
}

/// The source port of a flow, so that routers on the way spread flows and not packets.
#[inline(always)]
fn source_port(p: &mut Pkt<'_>) -> u16 {
    // Flows that a hash has led here have its top bits in common.
    let mixed = bond::hash(p, Headers::L34).wrapping_mul(0x9e37_79b1);
    FIRST_PORT | (mixed >> (u32::BITS - PORT_BITS)) as u16
}

/// Puts a frame into IPv4. Its checksum protects the IP header, and frames have their own: UDP has
/// none (RFC 7348 section 5).
#[inline(always)]
fn encap4(p: &mut Pkt<'_>, ends: [u32; 2], outer: &Outer) -> Next {
    if !p.shift(-((eth::LEN + ip4::LEN + HEADERS) as i32)) {
        return Next::NoRoom;
    }
    let mut ip = ip4::Header::new(ends[0], ends[1], ip::UDP, HEADERS + outer.frame);
    ip.tos = outer.ecn;
    ip.ttl = TTL;
    // RFC 7348 section 4.3: tunnels do not fragment.
    ip.set_fragment(ip4::DONT_FRAGMENT);
    ip.seal();
    *p.header_mut(IP_AT) = ip;
    outer.write(p, IP_AT + ip4::LEN as u8);
    Next::Ip4
}

/// Puts a frame into IPv6. UDP has a checksum: many receivers, Linux among them, take no packets
/// without one unless they are told to (RFC 8200 section 8.1, RFC 6935).
fn encap6(p: &mut Pkt<'_>, ends: [[u8; 16]; 2], outer: &Outer) -> Next {
    if !p.shift(-((eth::LEN + ip6::LEN + HEADERS) as i32)) {
        return Next::NoRoom;
    }
    let mut ip = ip6::Header::new(ends[0], ends[1], ip::UDP, HEADERS + outer.frame);
    ip.set_ecn(outer.ecn);
    ip.hop_limit = TTL;
    *p.header_mut(IP_AT) = ip;
    let udp_at = IP_AT + ip6::LEN as u8;
    outer.write(p, udp_at);
    let pseudo = pseudo_header(ends[0], ends[1], ip::UDP, HEADERS + outer.frame);
    let sum = sum_of(p, usize::from(udp_at), p.total(), pseudo);
    // 0 would say that there is none.
    p.header_mut::<udp::Header>(udp_at)
        .set_checksum(match sum.checksum() {
            0 => 0xffff,
            sum => sum,
        });
    Next::Ip6
}
