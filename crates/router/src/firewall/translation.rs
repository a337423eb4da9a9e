//! Translation of the sources of packets that leave, by their flows.

use graph::Pkt;
use tables::flow::{Key, Refused};
use tables::hash::share;
use wire::ip;
use wire::nat::{End, Place, translate, translate_error, translate_quote};

use super::entry::Interfaces;
use super::family::Way;
use super::opening;
use super::tracker::{Seen, Tracker};
use crate::acl::key as acl_key;
use crate::context::Cx;
use crate::flow::Direction;
use crate::flow::key::{key4, protocol};
use crate::nat::compiled::{Compiled, Inbound, Outward};
use crate::nat::place::{self, NONE, ends, of_packet};

/// Places that are tried for the source of a new flow.
const TRIES: u32 = 128;

/// What the ends of a flow become that is about to begin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Wanted {
    source: Outward,
    /// The place that its first packet was sent to, if that was another one.
    destination: u64,
}

/// What becomes of the ends of a flow that an IPv4 packet begins; `None`: they stay.
///
/// # Errors
/// It was to answer a flow that is over.
#[cold]
pub(super) fn wanted(cx: &Cx, p: &Pkt<'_>, seen: &Seen<'_>) -> Result<Option<Wanted>, Way> {
    let noted = p.note().unwrap_or(NONE);
    let Some(nat) = cx.snapshot().nat.rules.as_deref() else {
        return if noted == NONE {
            Ok(None)
        } else {
            Err(Way::Misplaced)
        };
    };
    let [source, destination] = ends(seen.key, seen.swapped);
    if let Some(was) = place::place(noted) {
        let inbound = Inbound {
            source,
            destination: was,
            protocol: protocol(seen.key),
        };
        let by = nat.inward(p.rx_if, &inbound);
        let (rule, _) = by
            .filter(|(_, to)| *to == destination)
            .ok_or(Way::Misplaced)?;
        nat.hits.count(cx.worker, rule);
    }
    let (rule, outward) = nat.outward(p.tx_if(), source.address, &acl_key::ip4(p));
    if let Some(rule) = rule {
        nat.hits.count(cx.worker, rule);
    }
    let stays = outward == Outward::Same && noted == NONE;
    Ok((!stays).then_some(Wanted {
        source: outward,
        destination: noted,
    }))
}

/// True if a packet of no flow must not leave as it is: it was for somebody else, or its source is
/// not to be seen.
#[cold]
pub(super) fn is_bound(cx: &Cx, p: &Pkt<'_>) -> bool {
    let Some(nat) = cx.snapshot().nat.rules.as_deref() else {
        return false;
    };
    let key = acl_key::ip4(p);
    let source = p.header::<wire::ip4::Header>(p.l3).src();
    p.is_noted() || nat.outward(p.tx_if(), source, &key).1 != Outward::Same
}

/// Gives a flow that has just begun the places of its ends.
#[cold]
pub(super) fn give(
    cx: &Cx,
    tracker: &mut Tracker,
    number: u32,
    wanted: &Wanted,
    seen: &Seen<'_>,
) -> Result<(), Way> {
    let [source, destination] = ends(seen.key, seen.swapped);
    let own = match &wanted.source {
        Outward::Same => NONE,
        Outward::Nothing => return Err(Way::NoPort),
        Outward::Fixed(address) => place::word(Place {
            address: *address,
            ..source
        }),
        Outward::Any { addresses, ports } => {
            let protocol = protocol(seen.key);
            let [_, leaves] = seen.interfaces.both();
            let has_port = seen.kind.has_port();
            // All flows of one source have the same address (RFC 4787 section 4.1).
            let count = (addresses.end() - addresses.start()) as usize + 1;
            let address = addresses.start() + share(source.address, count) as u32;
            let ports = if has_port {
                ports.clone()
            } else {
                source.port..=source.port
            };
            let candidates = tracker.ports(&ports, source.port, has_port);
            let mut got = Err(Way::NoPort);
            for port in candidates.take(TRIES as usize) {
                let place = Place { address, port };
                // What comes there is for somebody else.
                let inbound = Inbound {
                    source: destination,
                    destination: place,
                    protocol,
                };
                let nat = cx.snapshot().nat.rules.as_deref();
                if nat.is_some_and(|nat| nat.inward(leaves, &inbound).is_some()) {
                    continue;
                }
                match tracker.take(number, &second(destination, place, protocol)) {
                    Ok(()) => {
                        got = Ok(place::word(place));
                        break;
                    }
                    Err(Refused::Taken) => {}
                    Err(_) => {
                        got = Err(Way::Full);
                        break;
                    }
                }
            }
            got?
        }
    };
    tracker.set_outside(number, [own, wanted.destination]);
    Ok(())
}

/// The key of what answers packets from `place` to `destination`.
fn second(destination: Place, place: Place, protocol: u8) -> Key {
    let from = if protocol == ip::ICMP {
        // An echo has one identifier.
        place.port
    } else {
        destination.port
    };
    let ports = u32::from(from) << 16 | u32::from(place.port);
    key4(destination.address, place.address, ports, protocol).0
}

/// True if the rules of now would give a flow the places that it has. `interfaces`: those of its
/// first packet.
#[cold]
pub(super) fn still_holds(
    nat: Option<&Compiled>,
    (key, swapped): (&Key, bool),
    interfaces: Interfaces,
    outside: [u64; 2],
) -> bool {
    let [source, destination] = ends(key, swapped);
    let [own, was] = outside.map(place::place);
    let Some(nat) = nat else {
        return own.is_none() && was.is_none();
    };
    let [came, leaves] = interfaces.both();
    let comes = was.is_none_or(|was| {
        let inbound = Inbound {
            source,
            destination: was,
            protocol: protocol(key),
        };
        nat.inward(came, &inbound)
            .is_some_and(|(_, to)| to == destination)
    });
    let (_, outward) = nat.outward(leaves, source.address, &opening::ip4(key, swapped));
    let goes = match (outward, own) {
        (Outward::Same, None) => true,
        (Outward::Fixed(address), Some(own)) => own.address == address,
        (Outward::Any { addresses, ports }, Some(own)) => {
            addresses.contains(&own.address)
                && (ports.contains(&own.port) || own.port == source.port)
        }
        _ => false,
    };
    comes && goes
}

/// Puts the place of its end in place of the source of a packet that goes in a direction; of an
/// error, which goes against the packet that it quotes, also in that one. The error is `ours`: its own
/// source stays.
#[inline(always)]
pub(super) fn leave(
    p: &mut Pkt<'_>,
    outside: [u64; 2],
    direction: Direction,
    (is_error, is_ours): (bool, bool),
) {
    let [source, _] = of_packet(outside, direction);
    let Some(to) = place::place(source) else {
        return;
    };
    let l3 = usize::from(p.l3);
    let bytes = p.bytes_mut().get_mut(l3..).unwrap_or_default();
    match (is_error, is_ours) {
        (false, _) => translate(bytes, End::Source, to),
        (true, false) => translate_error(bytes, End::Source, to),
        (true, true) => translate_quote(bytes, End::Destination, to),
    };
}
