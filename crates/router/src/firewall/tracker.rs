//! The flows that a worker owns, and what packets do to them.

use std::hash::{BuildHasher, RandomState};
use std::io;
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::Duration;

use tables::flow::{Entry, Flows, Hasher, Key, Memory, Refused, Sizes};
use tables::hash::share;
use wire::tcp::{ACK, FIN, RST, SYN};
use wire::{icmp4, icmp6};

use super::State;
use super::entry::{self, Interfaces, SWAPPED, TRANSLATED};
use super::flows::{Counters, Walker};
use crate::flow::key::Kind;
use crate::flow::state::{Step, step};
use crate::flow::tcp::{Invalid, Midstream, Segment, Session, Verdict};
use crate::flow::{Direction, State as FlowState, Timeouts};
use crate::nat::place;

/// A bit of [`Entry::flags`], beside [`SWAPPED`] and [`TRANSLATED`]: it has been seen both ways.
const ANSWERED: u8 = 1 << 1;
/// Policies have let pass what comes and goes by its interfaces of the original direction; a
/// bit higher, of the reply.
const APPROVED: u8 = 1 << 2;
const BOTH_APPROVED: u8 = APPROVED | APPROVED << 1;

/// Milliseconds in which all flows are looked at for their timeouts.
const SWEEP: u64 = 10_000;

/// The flows that a worker owns.
pub struct Tracker {
    pub(crate) flows: Flows,
    timeouts: Timeouts,
    /// Flows that there is room for.
    room: u32,
    /// This worker and how many there are.
    worker: usize,
    workers: usize,
    /// Addresses are translated.
    translates: bool,
    /// Time at the last poll: TSC, seconds, and milliseconds of the last sweep.
    pub(super) tsc: u64,
    seconds: u32,
    swept: u64,
    /// TSC cycles of a second.
    second: u64,
    /// How often the generation of the policies has begun anew.
    epoch: u64,
    /// That of the policies, as entries have it.
    generation: u16,
    /// Questions about the flows.
    walker: Walker,
    counters: Arc<Counters>,
}

/// A hasher whose secret is nobody's to know.
pub(crate) fn hasher() -> Hasher {
    Hasher::new(std::array::from_fn(|n| RandomState::new().hash_one(n)))
}

/// A packet of a flow.
#[derive(Clone, Copy)]
pub(super) struct Seen<'a> {
    pub key: &'a Key,
    pub hash: u64,
    /// The source is the second end of the key.
    pub swapped: bool,
    pub kind: Kind,
    /// What it carries, as far as it lies in the first buffer.
    pub content: &'a [u8],
    /// Bytes of that in further buffers.
    pub further: u32,
    /// From its IP header on.
    pub bytes: u32,
    pub interfaces: Interfaces,
}

/// A packet as [`Tracker::pass`] is to know it.
#[derive(Clone, Copy)]
pub(super) struct Plain {
    /// As in [`Seen`].
    pub swapped: bool,
    pub bytes: u32,
    pub interfaces: Interfaces,
    /// As [`Segment::skim`] gives it.
    pub segment: Segment,
    pub is_whole: bool,
}

impl Seen<'_> {
    #[inline(always)]
    fn segment(&self) -> Option<Segment> {
        let mut segment = Segment::read(self.content)?;
        segment.len += self.further;
        Some(segment)
    }
}

/// What a packet is to a flow that is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Follows {
    /// It belongs to it. If `approved`, it may pass: policies have said so of one like it.
    Flow {
        direction: Direction,
        state: State,
        approved: bool,
    },
    /// It opens another one between the same ends.
    Another,
    /// It cannot belong to it.
    Not,
}

/// The first packet of a flow that may begin.
#[derive(Clone, Copy)]
pub(super) struct First {
    state: FlowState,
    session: Session,
}

impl Tracker {
    /// None, of worker `worker` of so many.
    pub(crate) fn new(
        sizes: Sizes,
        hasher: Hasher,
        (worker, workers): (usize, usize),
        (walker, counters): (Walker, Arc<Counters>),
    ) -> io::Result<Self> {
        Ok(Tracker {
            flows: Flows::new(Memory::mapped(sizes)?, hasher),
            timeouts: Timeouts::default(),
            room: sizes.flows,
            worker,
            workers,
            translates: false,
            tsc: 0,
            seconds: 0,
            swept: 0,
            second: graph::cycles::of(Duration::from_secs(1)).max(1),
            epoch: 0,
            generation: 0,
            walker,
            counters,
        })
    }

    /// The worker that owns the flow with this hash, if it is another one. Where addresses are
    /// translated, flows without ports are the first worker's: nobody could tell whose their answers
    /// are.
    #[inline(always)]
    pub(super) fn other_owner(&self, hash: u64, has_port: bool) -> Option<usize> {
        let owner = (((hash >> 32) * self.workers as u64) >> 32) as usize;
        let owner = owner * usize::from(has_port | !self.translates);
        (self.workers > 1 && owner != self.worker).then_some(owner)
    }

    /// The worker that owns the flows whose answers come to this port of the router, if it is
    /// another one.
    #[inline(always)]
    pub(crate) fn owner_of_port(&self, kind: Kind, port: u16) -> Option<usize> {
        let owner = usize::from(port) % self.workers * usize::from(kind.has_port());
        (owner != self.worker).then_some(owner)
    }

    /// Ports that answers may come to which are to be this worker's, of some, from the one that is
    /// nearest to a flow's own on. `has_port`: false if it can only be that one.
    pub(super) fn ports(
        &self,
        of: &RangeInclusive<u16>,
        own: u16,
        has_port: bool,
    ) -> impl Iterator<Item = u16> + use<> {
        let step = if has_port { self.workers as u32 } else { 1 };
        let (low, high) = (u32::from(*of.start()), u32::from(*of.end()));
        let first = match has_port {
            true => low + (self.worker as u32 + step - low % step) % step,
            false => low,
        };
        let count = (high + 1).saturating_sub(first).div_ceil(step);
        // What is outside of the range begins anywhere in it.
        let begin = match of.contains(&own) {
            true => (u32::from(own).saturating_sub(first)) / step,
            false => share(own.into(), count as usize) as u32,
        };
        (0..count).map(move |at| (first + (begin + at) % count * step) as u16)
    }

    /// The policies are of this generation. Entries have 16 bits of it: before they mean another
    /// one, all entries forget theirs.
    #[inline(always)]
    pub(super) fn follow_generation(&mut self, generation: u64, translates: bool) {
        self.translates = translates;
        const GENERATIONS: u64 = u16::MAX as u64;
        self.generation = 1 + (generation % GENERATIONS) as u16;
        if generation / GENERATIONS != self.epoch {
            self.epoch = generation / GENERATIONS;
            self.forget_generations();
        }
    }

    #[cold]
    fn forget_generations(&mut self) {
        let entries = self.flows.entries_mut();
        entries.for_each(|entry| entry.generation = 0);
    }

    /// It is TSC `now`, millisecond `tick`: flows that have been idle for too long go, questions
    /// about them are followed up.
    pub(super) fn poll(&mut self, now: u64, tick: u64) {
        (self.tsc, self.seconds) = (now, (now / self.second) as u32);
        let passed = tick.saturating_sub(self.swept).min(SWEEP);
        let budget = u64::from(self.room) * passed / SWEEP;
        if budget > 0 {
            self.swept = tick;
            let timeout = |entry: &Entry| self.timeouts.of(FlowState::from_number(entry.state));
            self.flows
                .sweep(budget as u32, self.seconds, timeout, |_, _, _| ());
        }
        let (flows, timeouts) = (&mut self.flows, &self.timeouts);
        self.walker.poll(flows, self.seconds, timeouts);
        self.counters.set(flows);
    }

    /// There is a question about the flows that is not answered.
    pub(crate) fn is_asked(&mut self) -> bool {
        self.walker.is_asked()
    }

    /// True if a packet of the flow with this number passes as the ones before it did: it leaves the
    /// flow in its state, and policies have let one like it pass. False: [`Tracker::follow`] is to
    /// judge it, nothing has been done. Up to that, no branch depends on the packet: the direction
    /// and the protocol of the next one are anybody's guess.
    #[inline(always)]
    pub(super) fn pass(&mut self, number: u32, packet: &Plain) -> bool {
        let (entry, annex) = self.flows.at_mut(number);
        let session = Session::of_mut(annex);
        let direction = direction(entry, packet.swapped);
        let state = FlowState::from_number(entry.state);
        let passes = (entry.flags & approved(direction) != 0)
            & (entry.interfaces[direction as usize] == packet.interfaces.0)
            & (entry.generation == self.generation)
            & packet.is_whole
            & session.goes_on(state, direction, &packet.segment);
        if passes {
            session.go_on(direction, &packet.segment);
            session.count(direction, packet.bytes);
            entry.seen = self.seconds;
        }
        passes
    }

    /// What a packet does to the flow with this number.
    pub(super) fn follow(&mut self, number: u32, seen: &Seen<'_>) -> Follows {
        let (entry, annex) = self.flows.at_mut(number);
        let session = Session::of_mut(annex);
        let direction = direction(entry, seen.swapped);
        let state = FlowState::from_number(entry.state);
        let next = if seen.kind == Kind::Tcp {
            let Some(segment) = seen.segment() else {
                return Follows::Not;
            };
            match session.follow(state, direction, &segment) {
                Ok(Verdict::Pass(next)) => next,
                Ok(Verdict::New) => return Follows::Another,
                Err(why) if asks_for_challenge(state, direction, &segment, why) => state,
                Err(_) => return Follows::Not,
            }
        } else {
            match step(state, direction, 0) {
                Step::To(next) => next,
                _ => state,
            }
        };
        session.count(direction, seen.bytes);
        (entry.seen, entry.state) = (self.seconds, next as u8);
        if direction == Direction::Reply && entry.flags & ANSWERED == 0 {
            // It is in another state now: whatever policies said was about the one before.
            entry.flags = entry.flags & !BOTH_APPROVED | ANSWERED;
        }
        let is_same = entry.interfaces[direction as usize] == seen.interfaces.0;
        let approved = is_same && entry.flags & approved(direction) != 0;
        let state = if entry.flags & ANSWERED != 0 {
            State::Established
        } else {
            State::New
        };
        if entry.is_embryonic() && next.is_established() {
            self.flows.establish(number);
        }
        Follows::Flow {
            direction,
            state,
            approved,
        }
    }

    /// Policies let pass what uses these interfaces.
    pub(super) fn approve(&mut self, number: u32, direction: Direction, interfaces: Interfaces) {
        let entry = self.flows.at_mut(number).0;
        entry.interfaces[direction as usize] = interfaces.0;
        entry.flags |= approved(direction);
    }

    /// True if policies have not changed since they were last asked about this flow.
    pub(super) fn is_current(&self, number: u32) -> bool {
        self.flows.at(number).0.generation == self.generation
    }

    /// What opened a flow: its key, whether its source was the second end of that, and the interfaces
    /// that the original direction uses, those that policies accepted last.
    pub(super) fn opening(&self, number: u32) -> (&Key, bool, Interfaces) {
        let [interfaces, _] = self.flows.at(number).0.interfaces;
        let (key, swapped) = self.opening_key(number);
        (key, swapped, Interfaces(interfaces))
    }

    /// The key of a flow, and whether its first packet's source was the second end of that.
    pub(crate) fn opening_key(&self, number: u32) -> (&Key, bool) {
        let entry = self.flows.at(number).0;
        (entry.key(), entry.flags & SWAPPED != 0)
    }

    /// The direction of a packet of a flow.
    #[inline(always)]
    pub(super) fn direction(&self, number: u32, swapped: bool) -> Direction {
        direction(self.flows.at(number).0, swapped)
    }

    /// The places outside of a flow's ends, in the order of its first packet.
    #[inline(always)]
    pub(super) fn outside(&self, number: u32) -> [u64; 2] {
        entry::outside(&self.flows, number)
    }

    /// True if an end of a flow is seen as another one.
    #[inline(always)]
    pub(super) fn is_translated(&self, number: u32) -> bool {
        self.flows.at(number).0.flags & TRANSLATED != 0
    }

    /// Addresses are translated.
    pub(super) fn translates(&self) -> bool {
        self.translates
    }

    /// True if the destination of a packet of a flow was what the flow's end is seen as.
    #[inline(always)]
    pub(super) fn is_in_place(&self, number: u32, swapped: bool, note: Option<u64>) -> bool {
        let direction = self.direction(number, swapped);
        let [_, destination] = place::of_packet(self.outside(number), direction);
        note.unwrap_or(place::NONE) == destination
    }

    /// Sets the [places](Self::outside) of a flow that has none.
    pub(super) fn set_outside(&mut self, number: u32, outside: [u64; 2]) {
        self.flows.set_words(number, outside);
        self.flows.at_mut(number).0.flags |= TRANSLATED;
    }

    /// A flow is found by a second key from now on.
    ///
    /// # Errors
    /// Another one has it, or there is no room.
    pub(super) fn take(&mut self, number: u32, key: &Key) -> Result<(), Refused> {
        let hash = self.flows.hasher().one(key);
        self.flows.add_key(number, *key, hash)
    }

    /// Policies of this generation let the flow begin; they are to be asked about its packets.
    pub(super) fn keep(&mut self, number: u32) {
        let generation = self.generation;
        let entry = self.flows.at_mut(number).0;
        entry.generation = generation;
        entry.flags &= !BOTH_APPROVED;
    }

    /// What a packet of no known flow begins, or that it cannot begin any.
    pub(super) fn first(seen: &Seen<'_>) -> Option<First> {
        let mut session = Session::default();
        let state = match seen.kind {
            Kind::Tcp => session.open(&seen.segment()?, Midstream::Refused).ok()?,
            Kind::Udp => FlowState::Udp,
            Kind::Echo => match seen.content.first() {
                Some(&(icmp4::ECHO_REQUEST | icmp6::ECHO_REQUEST)) => FlowState::Icmp,
                _ => return None,
            },
            _ => FlowState::Other,
        };
        Some(First { state, session })
    }

    /// A flow begins.
    ///
    /// # Errors
    /// There is no room for it.
    pub(super) fn insert(&mut self, seen: &Seen<'_>, first: &First) -> Result<u32, Refused> {
        let (seconds, generation) = (self.seconds, self.generation);
        let number = self
            .flows
            .insert(*seen.key, seen.hash, seconds, |_, _, _| ())?;
        let (entry, annex) = self.flows.at_mut(number);
        entry.state = first.state as u8;
        entry.flags = if seen.swapped { SWAPPED } else { 0 };
        entry.generation = generation;
        entry.interfaces[Direction::Original as usize] = seen.interfaces.0;
        let session = Session::of_mut(annex);
        *session = first.session;
        session.count(Direction::Original, seen.bytes);
        Ok(number)
    }
}

/// The direction of a packet of a flow.
#[inline(always)]
const fn direction(entry: &Entry, swapped: bool) -> Direction {
    Direction::of(swapped != (entry.flags & SWAPPED != 0))
}

/// [`APPROVED`], of a direction.
#[inline(always)]
const fn approved(direction: Direction) -> u8 {
    APPROVED << direction as u8
}

/// A segment that cannot belong to its connection, but that its receiver is to answer so that both
/// ends come to know what they have of each other (RFC 5961 section 4), as Linux lets it pass: a SYN
/// within a connection, or an acknowledgment in answer to a SYN.
#[cold]
fn asks_for_challenge(
    state: FlowState,
    direction: Direction,
    segment: &Segment,
    why: Invalid,
) -> bool {
    let flags = segment.flags & (SYN | ACK | RST | FIN);
    match (direction, why) {
        (Direction::Original, Invalid::Ahead | Invalid::Behind) => flags == SYN,
        (Direction::Reply, Invalid::State) => {
            flags == ACK && matches!(state, FlowState::SynSent | FlowState::SynSent2)
        }
        _ => false,
    }
}
