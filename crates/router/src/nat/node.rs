//! ip4-nat: puts whoever is meant in place of the destination of packets that come in.

use graph::{Packets, Pkt, Stage, edges};
use tables::flow::{Candidate, Key};
use wire::ip4;
use wire::nat::{End, translate, translate_error};

use super::compiled::{Compiled, Inbound};
use super::place;
use crate::arc::IP4_IN_ARC;
use crate::context::Cx;
use crate::firewall::Tracker;
use crate::flow::key::{self, Kind, protocol};

/// Packets that are looked up together.
const BATCH: usize = 64;

edges! {
    /// Ways out of ip4-nat.
    pub enum Next {
        /// To whom it is for.
        Translated => Arc(IP4_IN_ARC),
        /// Another worker knows whom it is for.
        Elsewhere => Node("nat-handoff"),
    }
}

/// What is kept of a packet from one pass over the batch to the next.
#[derive(Debug, Clone, Copy)]
struct About {
    /// Whom it is for, as it is seen outside, or the packet that an error is about was from.
    inbound: Inbound,
    kind: Kind,
    is_error: bool,
    /// Its place among those whose flows are looked for.
    at: usize,
}

/// The stage.
pub struct Ip4 {
    keys: [Key; BATCH],
    hashes: [u64; BATCH],
    candidates: [Candidate; BATCH],
    /// `None`: it is for whom it says.
    about: [Option<About>; BATCH],
    /// The next packet of the batch.
    at: usize,
}

impl Default for Ip4 {
    fn default() -> Self {
        Ip4 {
            keys: [Key::default(); BATCH],
            hashes: [0; BATCH],
            candidates: [Candidate::NONE; BATCH],
            about: [None; BATCH],
            at: 0,
        }
    }
}

impl Stage<Cx> for Ip4 {
    const NAME: &'static str = "ip4-nat";
    type Next = Next;
    const THRU: Next = Next::Translated;
    const BATCH: usize = BATCH;

    /// Finds the flows that packets may be of.
    #[inline(always)]
    fn prepare(&mut self, cx: &Cx, packets: &mut Packets<'_>) {
        self.at = 0;
        let Some(nat) = &cx.snapshot().nat.rules else {
            self.about = [None; BATCH];
            return;
        };
        let (mut count, mut end) = (0, 0);
        packets.for_each(|p| {
            self.about[count % BATCH] = read(nat, p).map(|(about, key)| {
                let at = end % BATCH;
                self.keys[at] = key;
                end += 1;
                About { at, ..about }
            });
            count += 1;
        });
        let flows = &cx.tracker.borrow().flows;
        flows
            .hasher()
            .hash(&self.keys[..end], &mut self.hashes[..end]);
        flows.prefetch(&self.hashes[..end]);
        flows.candidates(&self.hashes[..end], &mut self.candidates[..end]);
    }

    #[inline(always)]
    fn packet(&mut self, cx: &Cx, p: &mut Pkt<'_>) -> Next {
        let at = self.at % BATCH;
        self.at += 1;
        match self.about[at] {
            Some(about) => self.way(cx, p, &about),
            None => Next::Translated,
        }
    }
}

/// Reads a packet that may be for somebody inside, and the key of its flow, as that is seen outside.
#[inline(always)]
fn read(nat: &Compiled, p: &Pkt<'_>) -> Option<(About, Key)> {
    let is_external = nat.is_external(p.header::<ip4::Header>(p.l3).dst());
    if !is_external || p.is_noted() {
        return None;
    }
    read_external(p)
}

#[inline(never)]
fn read_external(p: &Pkt<'_>) -> Option<(About, Key)> {
    let bytes = p.bytes().get(usize::from(p.l3)..)?;
    let packet = key::ip4(bytes).ok()?;
    let is_error = packet.kind == Kind::Error;
    // An error goes to whoever has sent the packet that it is about.
    let of = match packet.kind {
        Kind::Error => {
            let quoted = key::quoted4(packet.content(bytes)).ok()?;
            let [source, _] = place::ends(&quoted.key, quoted.swapped);
            let is_told = source.address == p.header::<ip4::Header>(p.l3).dst();
            is_told.then_some(key::Packet {
                swapped: !quoted.swapped,
                ..quoted
            })?
        }
        Kind::Fragment => return None,
        _ => packet,
    };
    let [source, destination] = place::ends(&of.key, of.swapped);
    let about = About {
        inbound: Inbound {
            source,
            destination,
            protocol: protocol(&of.key),
        },
        kind: of.kind,
        is_error,
        at: 0,
    };
    Some((about, of.key))
}

impl Ip4 {
    /// The way of a packet that may be for somebody inside: by the rules, or by the flow that it
    /// answers.
    #[inline(never)]
    fn way(&self, cx: &Cx, p: &mut Pkt<'_>, about: &About) -> Next {
        let at = about.at % BATCH;
        let Some(nat) = &cx.snapshot().nat.rules else {
            return Next::Translated;
        };
        let tracker = &*cx.tracker.borrow();
        let found = match nat.inward(p.rx_if, &about.inbound) {
            Some((_, to)) => Some(to),
            None => {
                let owner = tracker.owner_of_port(about.kind, about.inbound.destination.port);
                if let Some(owner) = owner {
                    p.set_argument(owner as u32);
                    return Next::Elsewhere;
                }
                answered(
                    tracker,
                    self.candidates[at],
                    self.hashes[at],
                    &self.keys[at],
                )
            }
        };
        let Some(to) = found else {
            return Next::Translated;
        };
        let l3 = usize::from(p.l3);
        let bytes = p.bytes_mut().get_mut(l3..).unwrap_or_default();
        let is_done = match about.is_error {
            true => translate_error(bytes, End::Destination, to),
            false => translate(bytes, End::Destination, to),
        };
        if is_done {
            p.set_note(place::word(about.inbound.destination));
        }
        Next::Translated
    }
}

/// Who has opened the flow that a packet answers.
fn answered(
    tracker: &Tracker,
    candidate: Candidate,
    hash: u64,
    key: &Key,
) -> Option<wire::nat::Place> {
    let found = tracker.flows.get(candidate, hash, key)?;
    if !found.second {
        return None;
    }
    let (key, swapped) = tracker.opening_key(found.number);
    let [source, _] = place::ends(key, swapped);
    Some(source)
}
