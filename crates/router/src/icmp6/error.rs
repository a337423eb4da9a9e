//! icmp6-error: makes the packet into an error about itself and sends it back.

use std::net::Ipv6Addr;

use graph::trace::{Names, Record};
use graph::{Desc, Each, Emit, Flag, Pkt, Pool, edges};
use wire::{icmp6, ip, ip6};

use crate::context::Cx;
use crate::family::Ip;
use crate::icmp::{Error, is_group};

edges! {
    /// Ways out of icmp6-error.
    pub enum Next {
        /// The error, to its receiver.
        Lookup => Node("ip6-lookup"),
        /// RFC 4443 section 2.4, e: none about an ICMPv6 error or redirect, a packet to a group, or
        /// one whose source is no host.
        NotAllowed => Drop("no icmp6 error is sent about such a packet"),
        /// RFC 4443 section 2.4, f.
        RateLimited => Drop("icmp6 error rate limit"),
        /// No interface has an address to send from.
        NoSource => Drop("no own address to send an icmp6 error from"),
    }
}

/// One more than an error leaves with: ip6-rewrite decrements it, as for all packets.
const HOP_LIMIT: u8 = 65;
/// Bytes of the new headers, IPv6 and ICMPv6.
const HEADERS: usize = ip6::LEN + icmp6::LEN;

/// The node.
pub struct Errors;

impl Each<Cx> for Errors {
    const NAME: &'static str = "icmp6-error";
    type Next = Next;

    fn packet(&mut self, cx: &Cx, out: &mut Emit<'_, Next>, mut d: Desc) {
        let next = answer(cx, out, &mut d);
        out.push(next, d);
    }

    fn note(record: &Record, _names: &dyn Names) -> Option<String> {
        let header = message(Error::from_number(record.argument()));
        let text = format!("icmp6 error type {} code {}", header.kind, header.code);
        Some(match header.rest() {
            0 => text,
            mtu => format!("{text} mtu {mtu}"),
        })
    }
}

fn answer(cx: &Cx, out: &mut Emit<'_, Next>, d: &mut Desc) -> Next {
    if d.has(Flag::OURS) || !allowed(out.pool().bytes_of(d), d.l3 as usize) {
        return Next::NotAllowed;
    }
    let sender = sender(out.pool(), d);
    let Some(source) = source(cx, d.rx_if, sender) else {
        return Next::NoSource;
    };
    let error = Error::from_number(d.argument());
    let granted = match error {
        // A network of its own is what a sender has at least (RFC 6177).
        Error::TooBig(_) => cx.limits.too_big.take((sender >> 64) as u64, out.now()),
        _ => cx.limits.icmp6.take(out.now()),
    };
    if !granted {
        return Next::RateLimited;
    }
    out.bufs().cut_chain(d);
    let mut p = Pkt::new(out.pool(), d);
    trim(&mut p);
    if !p.shift(-(HEADERS as i32)) {
        return Next::NotAllowed;
    }
    write(&mut p, error, source);
    d.mark(Flag::OURS);
    d.set_argument(0);
    Next::Lookup
}

/// The header of the message about an error, without a checksum.
fn message(error: Error) -> icmp6::Header {
    let unreachable = |code| icmp6::Header::new(icmp6::UNREACHABLE, code, 0);
    match error {
        Error::NoRoute => unreachable(icmp6::NO_ROUTE),
        Error::Unreachable => unreachable(icmp6::ADDRESS),
        Error::Prohibited => unreachable(icmp6::PROHIBITED),
        Error::Expired => icmp6::Header::new(icmp6::TIME_EXCEEDED, icmp6::IN_TRANSIT, 0),
        Error::TooBig(mtu) => icmp6::Header::new(icmp6::TOO_BIG, 0, mtu.into()),
    }
}

/// True if an error may be sent about the packet at all.
fn allowed(bytes: &[u8], l3: usize) -> bool {
    let Some((h, content)) = bytes.get(l3..).and_then(ip6::Header::parse) else {
        return false;
    };
    let payload = content.get(..h.payload_len().into()).unwrap_or(content);
    let upper = ip6::upper_layer(h.next_header, payload);
    let later = upper.fragment.is_some_and(|(offset, _)| offset > 0);
    // Where the type is missing it may be an error's.
    let icmp = upper.proto == ip::ICMP6
        && !later
        && upper
            .content
            .first()
            .is_none_or(|kind| icmp6::is_error(*kind) || *kind == icmp6::REDIRECT);
    !is_group(bytes) && !icmp && is_host(h.src.into()) && !Ipv6Addr::from(h.dst).is_multicast()
}

/// The address may be that of a host of the network.
pub(crate) const fn is_host(address: Ipv6Addr) -> bool {
    !address.is_unspecified() && !address.is_multicast() && !address.is_loopback()
}

/// Source address of the packet.
fn sender(pool: &Pool, d: &Desc) -> u128 {
    let packet = pool.bytes_of(d).get(d.l3 as usize..);
    let header = packet.and_then(ip6::Header::parse);
    header.map_or(0, |(h, _)| u128::from_be_bytes(h.src))
}

/// The source of the error (RFC 4443 section 2.2, c): the address that the route to the sender
/// names, or as in Linux the best one for the sender on the interface that its packet came in by,
/// which is the one that traceroute is to show.
fn source(cx: &Cx, rx_if: u16, sender: u128) -> Option<Ipv6Addr> {
    let adjacency = cx.groups.bucket(cx.ip6.lookup(&sender).group(), 0);
    let of_path = cx.adjacencies.source(adjacency).and_then(u128::of);
    of_path
        .map(Ipv6Addr::from)
        .or_else(|| cx.snapshot().ip6_source(rx_if, sender.into()))
}

/// Cuts off Ethernet padding, and bytes that do not fit into the error.
fn trim(p: &mut Pkt<'_>) {
    let total = p.header::<ip6::Header>(p.l3).total_len();
    p.truncate(p.l3 as usize + total.min(icmp6::MAX_QUOTE));
}

/// Writes the headers, for which there is room in front of the packet.
fn write(p: &mut Pkt<'_>, error: Error, source: Ipv6Addr) {
    let l3 = p.l3 as usize;
    let (packet, quote) = p.bytes_mut()[l3..].split_at_mut(HEADERS);
    let Some((about, _)) = ip6::Header::parse(quote) else {
        return;
    };
    let (source, sender) = (source.octets(), about.src);
    let mut header = ip6::Header::new(source, sender, ip::ICMP6, icmp6::LEN + quote.len());
    header.hop_limit = HOP_LIMIT;
    packet[..ip6::LEN].copy_from_slice(header.bytes());
    packet[ip6::LEN..].copy_from_slice(message(error).bytes());
    icmp6::seal(source, sender, &mut p.bytes_mut()[l3 + ip6::LEN..]);
}
