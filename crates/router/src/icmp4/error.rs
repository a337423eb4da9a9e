//! icmp4-error: makes the packet into an error about itself and sends it back.

use graph::trace::{Names, Record};
use graph::{Desc, Each, Emit, Flag, Pkt, Pool, edges};
use wire::{icmp4, ip, ip4};

use crate::context::Cx;
use crate::family::Ip;
use crate::icmp::{Error, is_group};

edges! {
    /// Ways out of icmp4-error.
    pub enum Next {
        /// The error, to its receiver.
        Lookup => Node("ip4-lookup"),
        /// RFC 1812 section 4.3.2.7: none about an ICMP error, a later fragment, a broadcast, or a
        /// packet whose source is no host.
        NotAllowed => Drop("no icmp error is sent about such a packet"),
        /// RFC 1812 section 4.3.2.8.
        RateLimited => Drop("icmp error rate limit"),
        /// No interface has an address to send from.
        NoSource => Drop("no own address to send an icmp error from"),
    }
}

/// One more than an error leaves with: ip4-rewrite decrements it, as for all packets.
const TTL: u8 = 65;
/// Bytes of the new headers, IP and ICMP.
const HEADERS: usize = ip4::LEN + icmp4::LEN;

/// The node.
pub struct Errors {
    /// Identification of the next packet.
    id: u16,
}

impl Default for Errors {
    fn default() -> Self {
        Errors { id: 1 }
    }
}

impl Each<Cx> for Errors {
    const NAME: &'static str = "icmp4-error";
    type Next = Next;

    fn packet(&mut self, cx: &Cx, out: &mut Emit<'_, Next>, mut d: Desc) {
        let next = self.answer(cx, out, &mut d);
        out.push(next, d);
    }

    fn note(record: &Record, _names: &dyn Names) -> Option<String> {
        let (kind, code, mtu) = message(Error::from_number(record.argument()));
        let text = format!("icmp error type {kind} code {code}");
        Some(match mtu {
            0 => text,
            mtu => format!("{text} mtu {mtu}"),
        })
    }
}

impl Errors {
    fn answer(&mut self, cx: &Cx, out: &mut Emit<'_, Next>, d: &mut Desc) -> Next {
        if d.has(Flag::OURS) || !allowed(out.pool().bytes_of(d), d.l3 as usize) {
            return Next::NotAllowed;
        }
        let sender = sender(out.pool(), d);
        let Some(source) = source(cx, sender) else {
            return Next::NoSource;
        };
        let error = Error::from_number(d.argument());
        let granted = match error {
            Error::TooBig(_) => cx.limits.too_big.take(sender.into(), out.now()),
            _ => cx.limits.icmp4.take(out.now()),
        };
        if !granted {
            return Next::RateLimited;
        }
        out.bufs().cut_chain(d);
        self.id = self.id.wrapping_add(1);
        let id = self.id;
        let mut p = Pkt::new(out.pool(), d);
        trim(&mut p);
        if !p.shift(-(HEADERS as i32)) {
            return Next::NotAllowed;
        }
        write(&mut p, error, source, id);
        d.mark(Flag::OURS);
        d.set_argument(0);
        Next::Lookup
    }
}

/// Type, code and MTU of the message about an error.
const fn message(error: Error) -> (u8, u8, u16) {
    match error {
        Error::NoRoute => (icmp4::UNREACHABLE, icmp4::NET, 0),
        Error::Unreachable => (icmp4::UNREACHABLE, icmp4::HOST, 0),
        Error::Prohibited => (icmp4::UNREACHABLE, icmp4::PROHIBITED, 0),
        Error::Expired => (icmp4::TIME_EXCEEDED, icmp4::IN_TRANSIT, 0),
        Error::TooBig(mtu) => (icmp4::UNREACHABLE, icmp4::FRAGMENTATION_NEEDED, mtu),
    }
}

/// True if an error may be sent about the packet at all.
fn allowed(bytes: &[u8], l3: usize) -> bool {
    let Some((h, content)) = bytes.get(l3..).and_then(ip4::Header::parse) else {
        return false;
    };
    let later = h.fragment_offset() != 0;
    // Bytes behind the packet are padding, not an ICMP type.
    let empty = usize::from(h.total_len()) <= ip4::LEN;
    let kind = content.first().filter(|_| !empty);
    // About queries, but not about errors and unknown types.
    let icmp = h.proto == ip::ICMP && !kind.is_some_and(|kind| icmp4::is_query(*kind));
    !is_group(bytes) && !later && !icmp && is_host(h.src()) && is_host(h.dst())
}

/// True if an address may be a single host's: not multicast, limited broadcast, loopback or 0.
pub(crate) fn is_host(address: u32) -> bool {
    address != 0 && address != u32::MAX && address >> 28 != 0xe && address >> 24 != 127
}

/// Source address of the packet.
fn sender(pool: &Pool, d: &Desc) -> u32 {
    let packet = pool.bytes_of(d).get(d.l3 as usize..);
    let header = packet.and_then(ip4::Header::parse);
    header.map_or(0, |(h, _)| h.src())
}

/// The source of the error: the address that the route to the sender names, or one of its interface
/// (RFC 1812 section 4.3.2.4), or else any own address.
fn source(cx: &Cx, sender: u32) -> Option<u32> {
    let adjacency = cx.groups.bucket(cx.fib.lookup(sender).group(), 0);
    let of_path = cx.adjacencies.source(adjacency).and_then(u32::of);
    of_path.or_else(|| cx.snapshot().ip4_source())
}

/// Cuts off Ethernet padding, and bytes that do not fit into the error.
fn trim(p: &mut Pkt<'_>) {
    let total = usize::from(p.header::<ip4::Header>(p.l3).total_len());
    p.truncate(p.l3 as usize + total.min(icmp4::MAX_QUOTE));
}

/// Writes the headers, for which there is room in front of the packet.
fn write(p: &mut Pkt<'_>, error: Error, source: u32, id: u16) {
    let l3 = p.l3 as usize;
    let (packet, quote) = p.bytes_mut()[l3..].split_at_mut(HEADERS);
    let Some((about, _)) = ip4::Header::parse(quote) else {
        return;
    };
    let mut header = ip4::Header::new(source, about.src(), ip::ICMP, icmp4::LEN + quote.len());
    // Precedence "internetwork control" (RFC 1812 section 4.3.2.5), type of service as in the
    // packet.
    header.tos = about.tos & 0x1e | 0xc0;
    header.ttl = TTL;
    header.set_id(id);
    header.seal();
    packet[..ip4::LEN].copy_from_slice(header.bytes());
    let (kind, code, mtu) = message(error);
    let header = icmp4::Header::new(kind, code, mtu.into());
    packet[ip4::LEN..].copy_from_slice(header.bytes());
    icmp4::seal(&mut p.bytes_mut()[l3 + ip4::LEN..]);
}
