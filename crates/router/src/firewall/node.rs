//! ip4-firewall, ip6-firewall: let pass what the policies of both interfaces accept, by the flow
//! that it belongs to, with the source that it is to be seen with.
//!
//! A later fragment has no ports, so that nobody can tell its flow: it is asked about as a packet
//! that begins one, is of none, and matches no rule with ports. Reassembly is not done.

use std::marker::PhantomData;

use graph::{Flag, Packets, Pkt, Stage};
use tables::acl::{IP4, IP6};
use tables::flow::{Candidate, Found, Key};
use wire::tcp;

use super::State;
use super::compiled::{Compiled, Verdict};
use super::entry::Interfaces;
use super::family::{self, Family, Way};
use super::tracker::{Follows, Plain, Seen, Tracker};
use super::translation::{self, still_holds};
use crate::acl::Direction;
use crate::context::Cx;
use crate::flow::Direction as FlowDirection;
use crate::flow::key::Kind;
use crate::flow::tcp::Segment;
use crate::icmp::{Error, tell};

/// Packets that are looked up together.
const BATCH: usize = 64;

/// What is kept of a packet from one pass over the batch to the next.
#[derive(Debug, Clone, Copy)]
struct About {
    /// Where its content begins, from its first byte on, and how long that is.
    content: u16,
    len: u16,
    swapped: bool,
    /// It is of a flow, and its content begins where [`Pkt::header`] reads.
    is_plain: bool,
    /// Its flow is told apart by a port that can be translated.
    has_port: bool,
    /// `None`: it is cut off, or an error about nothing.
    kind: Option<Kind>,
}

impl About {
    const NONE: Self = About {
        content: 0,
        len: 0,
        swapped: false,
        is_plain: false,
        has_port: false,
        kind: None,
    };
}

/// The stage.
pub struct Firewall<N, const W: usize> {
    keys: [Key; BATCH],
    hashes: [u64; BATCH],
    candidates: [Candidate; BATCH],
    about: [About; BATCH],
    /// The next packet of the batch.
    at: usize,
    family: PhantomData<fn(N)>,
}

impl<N, const W: usize> Default for Firewall<N, W> {
    fn default() -> Self {
        Firewall {
            keys: [Key::default(); BATCH],
            hashes: [0; BATCH],
            candidates: [Candidate::NONE; BATCH],
            about: [About::NONE; BATCH],
            at: 0,
            family: PhantomData,
        }
    }
}

impl<N: Family<W>, const W: usize> Stage<Cx> for Firewall<N, W> {
    const NAME: &'static str = N::NAME;
    type Next = N;
    const THRU: N = N::PASSED;
    const BATCH: usize = BATCH;

    /// Finds the flows of packets. With the pass over them that follows, that makes three, so that all
    /// packets wait for memory together: for the bucket of the flow, for its entry.
    #[inline(always)]
    fn prepare(&mut self, cx: &Cx, packets: &mut Packets<'_>) {
        let mut count = 0;
        packets.for_each(|p| {
            self.read(p, count);
            count += 1;
        });
        let tracker = &mut *cx.tracker.borrow_mut();
        let (policies, nat) = (&cx.snapshot().policies, &cx.snapshot().nat);
        let generation = policies.generation + nat.generation;
        tracker.follow_generation(generation, nat.rules.is_some());
        let flows = &tracker.flows;
        flows
            .hasher()
            .hash(&self.keys[..count], &mut self.hashes[..count]);
        flows.prefetch(&self.hashes[..count]);
        flows.candidates(&self.hashes[..count], &mut self.candidates[..count]);
        self.at = 0;
    }

    #[inline(always)]
    fn packet(&mut self, cx: &Cx, p: &mut Pkt<'_>) -> N {
        let at = self.at % BATCH;
        self.at += 1;
        let of = Known {
            about: &self.about[at],
            key: &self.keys[at],
            hash: self.hashes[at],
            candidate: self.candidates[at],
        };
        let tracker = &mut *cx.tracker.borrow_mut();
        of.way::<N, W>(cx, tracker, p).into()
    }
}

impl<N: Family<W>, const W: usize> Firewall<N, W> {
    /// Finds the key of a packet of the batch.
    #[inline(always)]
    fn read(&mut self, p: &Pkt<'_>, at: usize) {
        let at = at % BATCH;
        let bytes = p.bytes().get(usize::from(p.l3)..).unwrap_or_default();
        let Ok(packet) = N::packet(bytes) else {
            self.about[at] = About::NONE;
            return;
        };
        let content = usize::from(p.l3) + packet.at;
        self.keys[at] = packet.key;
        self.about[at] = About {
            content: content as u16,
            len: packet.len as u16,
            swapped: packet.swapped,
            is_plain: content <= usize::from(u8::MAX)
                && !matches!(packet.kind, Kind::Error | Kind::Fragment),
            has_port: packet.kind.has_port(),
            kind: Some(packet.kind),
        };
        if packet.kind == Kind::Error {
            self.read_quoted(bytes, packet.content(bytes), at);
        }
    }

    /// The key of an ICMP error is that of the packet which it is about.
    #[cold]
    fn read_quoted(&mut self, packet: &[u8], content: &[u8], at: usize) {
        match N::quoted(packet, content) {
            Ok(quoted) => {
                self.keys[at] = quoted.key;
                let about = &mut self.about[at];
                // It goes the other way.
                (about.swapped, about.has_port) = (!quoted.swapped, quoted.kind.has_port());
            }
            Err(_) => self.about[at].kind = None,
        }
    }
}

/// What passes over the batch have found of a packet.
#[derive(Clone, Copy)]
struct Known<'a> {
    about: &'a About,
    key: &'a Key,
    hash: u64,
    candidate: Candidate,
}

impl Known<'_> {
    /// The way of a packet: nearly all are of a flow that is known and pass as those before.
    #[inline(always)]
    fn way<N: Family<W>, const W: usize>(
        self,
        cx: &Cx,
        tracker: &mut Tracker,
        p: &mut Pkt<'_>,
    ) -> Way {
        let about = self.about;
        let is_whole = !(p.has(Flag::OURS) | p.is_chained());
        let other = tracker.other_owner(self.hash, about.has_port);
        if !(about.is_plain & is_whole) || other.is_some() {
            return self.special::<N, W>(cx, tracker, p);
        }
        let found = tracker.flows.get(self.candidate, self.hash, self.key);
        if let Some(found) = found {
            let header = p.header::<tcp::Header>(about.content as u8);
            let is_tcp = about.kind == Some(Kind::Tcp);
            let (segment, is_whole) = Segment::skim(header, about.len.into(), is_tcp);
            let translated = N::TRANSLATES && tracker.is_translated(found.number);
            let plain = Plain {
                swapped: about.swapped,
                bytes: u32::from(about.content) + u32::from(about.len) - u32::from(p.l3),
                interfaces: Interfaces::of(p),
                segment,
                is_whole,
            };
            if translated {
                if tracker.is_in_place(found.number, about.swapped, p.note())
                    && tracker.pass(found.number, &plain)
                {
                    return self.leave(tracker, p, found.number);
                }
            } else if !p.is_noted() && tracker.pass(found.number, &plain) {
                return Way::Passed;
            }
        }
        self.asked::<N, W>(cx, tracker, p, found)
    }

    /// The way of a packet that is not like most.
    #[cold]
    fn special<N: Family<W>, const W: usize>(
        self,
        cx: &Cx,
        tracker: &mut Tracker,
        p: &mut Pkt<'_>,
    ) -> Way {
        let kind = self.about.kind;
        let is_ours = p.has(Flag::OURS);
        if is_ours && !(N::TRANSLATES && kind == Some(Kind::Error) && tracker.translates()) {
            return Way::Passed;
        }
        if matches!(kind, None | Some(Kind::Fragment)) {
            let state = kind.map_or(State::Invalid, |_| State::New);
            return without_flow::<N, W>(cx, tracker, p, kind, state);
        }
        if let Some(owner) = tracker.other_owner(self.hash, self.about.has_port) {
            p.set_argument((owner as u32) << 16 | u32::from(p.tx_if()));
            return Way::Elsewhere;
        }
        let found = tracker.flows.get(self.candidate, self.hash, self.key);
        if kind != Some(Kind::Error) {
            return self.asked::<N, W>(cx, tracker, p, found);
        }
        match found.and_then(|found| still::<N, W>(cx, tracker, found)) {
            Some(number) => {
                if is_ours {
                    return self.leave(tracker, p, number);
                }
                if N::TRANSLATES && !tracker.is_in_place(number, self.about.swapped, p.note()) {
                    return Way::Misplaced;
                }
                let verdict = judge::<N, W>(cx, tracker, p, State::Related);
                match carry_out::<N, W>(p, kind, verdict) {
                    Way::Passed => self.leave(tracker, p, number),
                    way => way,
                }
            }
            None if is_ours => Way::Passed,
            None => without_flow::<N, W>(cx, tracker, p, kind, State::Invalid),
        }
    }

    /// The way of a packet that no flow was known of.
    fn begun<N: Family<W>, const W: usize>(
        self,
        cx: &Cx,
        tracker: &Tracker,
        p: &mut Pkt<'_>,
        begun: Begun,
    ) -> Way {
        let kind = self.about.kind;
        match begun {
            Begun::Flow(number) => self.leave(tracker, p, number),
            Begun::None(verdict) => carry_out::<N, W>(p, kind, verdict),
            Begun::Invalid => without_flow::<N, W>(cx, tracker, p, kind, State::Invalid),
            Begun::Way(way) => way,
        }
    }

    /// Lets a packet of a flow pass, as it is to be seen.
    #[inline(always)]
    fn leave(self, tracker: &Tracker, p: &mut Pkt<'_>, number: u32) -> Way {
        let direction = tracker.direction(number, self.about.swapped);
        let of = (self.about.kind == Some(Kind::Error), p.has(Flag::OURS));
        translation::leave(p, tracker.outside(number), direction, of);
        Way::Passed
    }

    /// The way of a packet that policies may have to be asked about.
    #[inline(never)]
    fn asked<N: Family<W>, const W: usize>(
        self,
        cx: &Cx,
        tracker: &mut Tracker,
        p: &mut Pkt<'_>,
        found: Option<Found>,
    ) -> Way {
        let about = self.about;
        let (content, len) = (usize::from(about.content), usize::from(about.len));
        let further = if p.is_chained() {
            p.total() - p.len()
        } else {
            0
        };
        let bytes = p.bytes().get(content..content + len);
        let seen = Seen {
            key: self.key,
            hash: self.hash,
            swapped: about.swapped,
            kind: about.kind.unwrap_or(Kind::Other),
            content: bytes.unwrap_or_default(),
            further: further as u32,
            bytes: (content + len - usize::from(p.l3) + further) as u32,
            interfaces: Interfaces::of(p),
        };
        let Some(number) = found.and_then(|found| still::<N, W>(cx, tracker, found)) else {
            let begun = begin::<N, W>(cx, tracker, &seen, p);
            return self.begun::<N, W>(cx, tracker, p, begun);
        };
        if N::TRANSLATES && !tracker.is_in_place(number, about.swapped, p.note()) {
            return Way::Misplaced;
        }
        let verdict = match tracker.follow(number, &seen) {
            Follows::Flow { approved: true, .. } => return self.leave(tracker, p, number),
            Follows::Flow {
                direction, state, ..
            } => {
                let verdict = judge::<N, W>(cx, tracker, p, state);
                if verdict == (Verdict::Accept { always: true }) {
                    tracker.approve(number, direction, seen.interfaces);
                }
                verdict
            }
            Follows::Another => {
                tracker.flows.remove(number);
                let begun = begin::<N, W>(cx, tracker, &seen, p);
                return self.begun::<N, W>(cx, tracker, p, begun);
            }
            Follows::Not => {
                return without_flow::<N, W>(cx, tracker, p, about.kind, State::Invalid);
            }
        };
        match carry_out::<N, W>(p, about.kind, verdict) {
            Way::Passed => self.leave(tracker, p, number),
            way => way,
        }
    }
}

/// The number of a flow that was found. If policies have changed since they were last asked about it,
/// they are asked whether it may still begin: if not, it is over, and there is none.
#[inline(always)]
fn still<N: Family<W>, const W: usize>(
    cx: &Cx,
    tracker: &mut Tracker,
    found: Found,
) -> Option<u32> {
    if !tracker.is_current(found.number) {
        return again::<N, W>(cx, tracker, found.number);
    }
    Some(found.number)
}

#[inline(never)]
fn again<N: Family<W>, const W: usize>(cx: &Cx, tracker: &mut Tracker, number: u32) -> Option<u32> {
    let (of, swapped, interfaces) = tracker.opening(number);
    let key = N::opening(of, swapped);
    let nat = cx.snapshot().nat.rules.as_deref();
    let outside = tracker.outside(number);
    if policies(cx, interfaces).all(|policy| policy.lets_begin::<N, W>(&key))
        && (!N::TRANSLATES || still_holds(nat, (of, swapped), interfaces, outside))
    {
        tracker.keep(number);
        return Some(number);
    }
    tracker.flows.remove(number);
    None
}

/// The way of a packet that is of no flow, nor begins one.
#[cold]
fn without_flow<N: Family<W>, const W: usize>(
    cx: &Cx,
    tracker: &Tracker,
    p: &mut Pkt<'_>,
    kind: Option<Kind>,
    state: State,
) -> Way {
    let verdict = judge::<N, W>(cx, tracker, p, state);
    match carry_out::<N, W>(p, kind, verdict) {
        Way::Passed if N::TRANSLATES && translation::is_bound(cx, p) => Way::Untranslated,
        way => way,
    }
}

/// What comes of a packet that no flow is known of.
enum Begun {
    /// It begins this one.
    Flow(u32),
    /// It begins none, and policies say this.
    None(Verdict),
    /// It can begin none.
    Invalid,
    /// It would begin one, which cannot be.
    Way(Way),
}

/// A packet that no flow is known of begins one, if it may. Where there is no room for that, and
/// policies do not ask for states, it passes even so, unless it is to be translated.
#[inline(never)]
fn begin<N: Family<W>, const W: usize>(
    cx: &Cx,
    tracker: &mut Tracker,
    seen: &Seen<'_>,
    p: &Pkt<'_>,
) -> Begun {
    let Some(first) = Tracker::first(seen) else {
        return Begun::Invalid;
    };
    let verdict = judge::<N, W>(cx, tracker, p, State::New);
    let Verdict::Accept { always } = verdict else {
        return Begun::None(verdict);
    };
    let wanted = match N::TRANSLATES {
        true => translation::wanted(cx, p, seen),
        false => Ok(None),
    };
    let wanted = match wanted {
        Ok(wanted) => wanted,
        Err(way) => return Begun::Way(way),
    };
    let Ok(number) = tracker.insert(seen, &first) else {
        let is_free = policies(cx, seen.interfaces).all(|policy| !policy.is_stateful);
        return match is_free && wanted.is_none() {
            true => Begun::None(verdict),
            false => Begun::Way(Way::Full),
        };
    };
    let given = wanted.map_or(Ok(()), |wanted| {
        translation::give(cx, tracker, number, &wanted, seen)
    });
    if let Err(failed) = given {
        tracker.flows.remove(number);
        return Begun::Way(failed);
    }
    if always {
        tracker.approve(number, FlowDirection::Original, seen.interfaces);
    }
    Begun::Flow(number)
}

/// What policies say of a packet: that of the interface by which it has come in, then that of the
/// one by which it leaves.
#[inline(never)]
fn judge<N: Family<W>, const W: usize>(
    cx: &Cx,
    tracker: &Tracker,
    p: &Pkt<'_>,
    state: State,
) -> Verdict {
    let key = N::key(p);
    let mut all = true;
    for policy in policies(cx, Interfaces::of(p)) {
        match policy.judge::<N, W>(cx.worker, state, &key, tracker.tsc) {
            Verdict::Accept { always } => all &= always,
            other => return other,
        }
    }
    Verdict::Accept { always: all }
}

/// The policies that packets are to pass that use these interfaces, in their order.
fn policies(cx: &Cx, interfaces: Interfaces) -> impl Iterator<Item = &Compiled> {
    let policies = &cx.snapshot().policies;
    let [came, leaves] = interfaces.both();
    let input = policies.of(came, Direction::Input);
    let output = policies.of(leaves, Direction::Output);
    [input, output].into_iter().flatten()
}

/// The way of a packet of which policies say this.
fn carry_out<N: Family<W>, const W: usize>(
    p: &mut Pkt<'_>,
    kind: Option<Kind>,
    verdict: Verdict,
) -> Way {
    match verdict {
        Verdict::Accept { .. } => Way::Passed,
        Verdict::Drop => Way::Dropped,
        Verdict::OverLimit => Way::OverLimit,
        Verdict::Reject if kind == Some(Kind::Fragment) || N::is_to_group(p) => Way::Rejected,
        Verdict::Reject if kind == Some(Kind::Tcp) => Way::Reset,
        Verdict::Reject => tell(p, Error::Prohibited, Way::Prohibited),
    }
}

/// IPv4 packets.
pub type Ip4 = Firewall<family::ip4::Next, IP4>;
/// IPv6 packets.
pub type Ip6 = Firewall<family::ip6::Next, IP6>;
