//! ip4-tcp-reset, ip6-tcp-reset: make a segment into the reset that answers it (RFC 9293 section
//! 3.5.2, group 1), as if nobody listened where it goes.

use std::marker::PhantomData;

use graph::{Desc, Each, Edges, Emit, Flag, Pkt, edges};
use wire::tcp::{ACK, FIN, Header, LEN, RST, SYN};
use wire::{ip, tcp};

use crate::context::Cx;
use crate::flow::key::{self, Malformed};

/// One more than a reset leaves with: the rewrite decrements it, as for all packets.
const TTL: u8 = 65;

/// Way of a packet, whatever its family.
#[derive(Debug, Clone, Copy)]
pub enum Way {
    /// The reset, to its receiver.
    Lookup,
    /// About a reset, or to a source that is no host, there is none.
    NotAllowed,
    /// There are as many a second as there may be.
    RateLimited,
}

/// What differs between the families.
pub trait Family: Edges + From<Way> {
    /// Name of the node.
    const NAME: &'static str;
    /// Bytes of the IP header.
    const HEADER: usize;

    /// The flow of a packet.
    ///
    /// # Errors
    /// It is cut off.
    fn packet(bytes: &[u8]) -> Result<key::Packet, Malformed>;
    /// Writes the headers of the answer to a packet in its place. False if it has no source that may
    /// be answered.
    fn answer(packet: &mut [u8], segment: Header) -> bool;
}

/// The node.
pub struct Reset<N>(PhantomData<fn(N)>);

impl<N> Default for Reset<N> {
    fn default() -> Self {
        Reset(PhantomData)
    }
}

impl<N: Family> Each<Cx> for Reset<N> {
    const NAME: &'static str = N::NAME;
    type Next = N;

    fn packet(&mut self, cx: &Cx, out: &mut Emit<'_, N>, mut d: Desc) {
        let way = answer::<N>(cx, out, &mut d);
        out.push(way.into(), d);
    }
}

fn answer<N: Family>(cx: &Cx, out: &mut Emit<'_, N>, d: &mut Desc) -> Way {
    let l3 = usize::from(d.l3);
    let further = out.pool().total(d) - usize::from(d.len());
    let packet = out.pool().bytes_of(d).get(l3..).unwrap_or_default();
    let Some(segment) = reset::<N>(packet, further as u32) else {
        return Way::NotAllowed;
    };
    if !cx.limits.resets.take(out.now()) {
        return Way::RateLimited;
    }
    out.bufs().cut_chain(d);
    let mut p = Pkt::new(out.pool(), d);
    p.truncate(l3 + N::HEADER + LEN);
    if !N::answer(&mut p.bytes_mut()[l3..], segment) {
        return Way::NotAllowed;
    }
    d.mark(Flag::OURS);
    d.set_argument(0);
    Way::Lookup
}

/// The reset that answers a segment, without its checksum; `further` bytes of it lie in further
/// buffers.
fn reset<N: Family>(packet: &[u8], further: u32) -> Option<Header> {
    let content = N::packet(packet).ok()?.content(packet);
    let (header, _) = Header::parse(content)?;
    if header.flags & RST != 0 {
        return None;
    }
    let (from, to) = (header.dst_port(), header.src_port());
    let mut reset = match header.flags & ACK {
        0 => {
            let data = content.len().checked_sub(header.header_len())? as u32 + further;
            let numbers = [SYN, FIN].map(|flag| u32::from(header.flags & flag != 0));
            let ack = header.seq().wrapping_add(data + numbers[0] + numbers[1]);
            Header::new(from, to, RST | ACK, 0, ack)
        }
        _ => Header::new(from, to, RST, header.ack(), 0),
    };
    reset.set_window(0);
    Some(reset)
}

/// The node of a family.
macro_rules! family {
    ($(#[$meta:meta])* $Node:ident, $module:ident, $name:literal, $lookup:literal, $answer:expr) => {
        mod $module {
            use super::*;

            edges! {
                /// Ways out of the node.
                pub enum Next {
                    /// The reset, to its receiver.
                    Lookup => Node($lookup),
                    /// About a reset, or to a source that is no host, there is none.
                    NotAllowed => Drop("no tcp reset is sent about such a packet"),
                    /// As ICMP errors, there are only so many a second.
                    RateLimited => Drop("tcp reset rate limit"),
                }
            }

            impl From<Way> for Next {
                fn from(way: Way) -> Self {
                    match way {
                        Way::Lookup => Next::Lookup,
                        Way::NotAllowed => Next::NotAllowed,
                        Way::RateLimited => Next::RateLimited,
                    }
                }
            }

            impl Family for Next {
                const NAME: &'static str = $name;
                const HEADER: usize = wire::$module::LEN;

                fn packet(bytes: &[u8]) -> Result<key::Packet, Malformed> {
                    key::$module(bytes)
                }

                fn answer(packet: &mut [u8], segment: Header) -> bool {
                    $answer(packet, segment)
                }
            }
        }

        $(#[$meta])*
        pub type $Node = Reset<$module::Next>;
    };
}

family! {
    /// Resets over IPv4.
    Ip4Reset, ip4, "ip4-tcp-reset", "ip4-lookup", answer4
}
family! {
    /// Resets over IPv6.
    Ip6Reset, ip6, "ip6-tcp-reset", "ip6-lookup", answer6
}

fn answer4(packet: &mut [u8], segment: Header) -> bool {
    use wire::ip4;
    let Some((about, _)) = ip4::Header::parse(packet) else {
        return false;
    };
    let (from, to) = (about.dst(), about.src());
    if !crate::icmp4::is_host(to) {
        return false;
    }
    let mut header = ip4::Header::new(from, to, ip::TCP, LEN);
    header.ttl = TTL;
    header.set_fragment(ip4::DONT_FRAGMENT);
    header.seal();
    let Some((ip, rest)) = packet.split_at_mut_checked(ip4::LEN) else {
        return false;
    };
    ip.copy_from_slice(header.bytes());
    write(rest, segment);
    tcp::seal(from, to, rest);
    true
}

fn answer6(packet: &mut [u8], segment: Header) -> bool {
    use wire::ip6;
    let Some((about, _)) = ip6::Header::parse(packet) else {
        return false;
    };
    let (from, to) = (about.dst, about.src);
    if !crate::icmp6::is_host(to.into()) {
        return false;
    }
    let mut header = ip6::Header::new(from, to, ip::TCP, LEN);
    header.hop_limit = TTL;
    let Some((ip, rest)) = packet.split_at_mut_checked(ip6::LEN) else {
        return false;
    };
    ip.copy_from_slice(header.bytes());
    write(rest, segment);
    tcp::seal(from, to, rest);
    true
}

fn write(rest: &mut [u8], segment: Header) {
    if let Some(place) = rest.get_mut(..LEN) {
        place.copy_from_slice(segment.bytes());
    }
}
