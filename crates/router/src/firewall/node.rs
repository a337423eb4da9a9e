//! ip4-firewall, ip6-firewall: let pass what the policies of both interfaces accept, by the flow
//! that it belongs to.
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
use crate::acl::Direction;
use crate::context::Cx;
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
    /// `None`: it is cut off, or an error about nothing.
    kind: Option<Kind>,
}

impl About {
    const NONE: Self = About {
        content: 0,
        len: 0,
        swapped: false,
        is_plain: false,
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
        tracker.follow_generation(cx.snapshot().policies.generation);
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
            Ok(quoted) => self.keys[at] = quoted.key,
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
        if !(about.is_plain & is_whole) || tracker.other_owner(self.hash).is_some() {
            return self.special::<N, W>(cx, tracker, p);
        }
        let found = tracker.flows.get(self.candidate, self.hash, self.key);
        if let Some(found) = found {
            let header = p.header::<tcp::Header>(about.content as u8);
            let is_tcp = about.kind == Some(Kind::Tcp);
            let (segment, is_whole) = Segment::skim(header, about.len.into(), is_tcp);
            let plain = Plain {
                swapped: about.swapped,
                bytes: u32::from(about.content) + u32::from(about.len) - u32::from(p.l3),
                interfaces: Interfaces::of(p),
                segment,
                is_whole,
            };
            if tracker.pass(found.number, &plain) {
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
        if p.has(Flag::OURS) {
            return Way::Passed;
        }
        let kind = self.about.kind;
        if matches!(kind, None | Some(Kind::Fragment)) {
            let state = kind.map_or(State::Invalid, |_| State::New);
            return without_flow::<N, W>(cx, tracker, p, kind, state);
        }
        if let Some(owner) = tracker.other_owner(self.hash) {
            p.set_argument((owner as u32) << 16 | u32::from(p.tx_if()));
            return Way::Elsewhere;
        }
        let found = tracker.flows.get(self.candidate, self.hash, self.key);
        if kind != Some(Kind::Error) {
            return self.asked::<N, W>(cx, tracker, p, found);
        }
        let state = match found.and_then(|found| still::<N, W>(cx, tracker, found)) {
            Some(_) => State::Related,
            None => State::Invalid,
        };
        without_flow::<N, W>(cx, tracker, p, kind, state)
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
        let verdict = match found.and_then(|found| still::<N, W>(cx, tracker, found)) {
            Some(number) => match tracker.follow(number, &seen) {
                Follows::Flow { approved: true, .. } => return Way::Passed,
                Follows::Flow {
                    direction, state, ..
                } => {
                    let verdict = judge::<N, W>(cx, tracker, p, state);
                    if verdict == (Verdict::Accept { always: true }) {
                        tracker.approve(number, direction, seen.interfaces);
                    }
                    Some(verdict)
                }
                Follows::Another => {
                    tracker.flows.remove(number);
                    begin::<N, W>(cx, tracker, &seen, p)
                }
                Follows::Not => Some(judge::<N, W>(cx, tracker, p, State::Invalid)),
            },
            None => begin::<N, W>(cx, tracker, &seen, p),
        };
        verdict.map_or(Way::Full, |verdict| {
            carry_out::<N, W>(p, about.kind, verdict)
        })
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
    let (key, swapped, interfaces) = tracker.opening(number);
    let key = N::opening(key, swapped);
    if policies(cx, interfaces).all(|policy| policy.lets_begin::<N, W>(&key)) {
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
    carry_out::<N, W>(p, kind, verdict)
}

/// What becomes of a packet that no flow is known of: if it may begin one, it does. `None`: there is
/// no room for that. Where policies do not ask for states, it passes even so.
#[inline(never)]
fn begin<N: Family<W>, const W: usize>(
    cx: &Cx,
    tracker: &mut Tracker,
    seen: &Seen<'_>,
    p: &Pkt<'_>,
) -> Option<Verdict> {
    let Some(first) = Tracker::first(seen) else {
        return Some(judge::<N, W>(cx, tracker, p, State::Invalid));
    };
    let verdict = judge::<N, W>(cx, tracker, p, State::New);
    if let Verdict::Accept { always } = verdict {
        let number = match tracker.insert(seen, &first) {
            Ok(number) => number,
            Err(_) if policies(cx, seen.interfaces).all(|policy| !policy.is_stateful) => {
                return Some(verdict);
            }
            Err(_) => return None,
        };
        if always {
            tracker.approve(number, crate::flow::Direction::Original, seen.interfaces);
        }
    }
    Some(verdict)
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
