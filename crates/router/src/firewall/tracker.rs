//! The flows that a worker owns, and what packets do to them.

use std::hash::{BuildHasher, RandomState};
use std::io;
use std::sync::Arc;
use std::time::Duration;

use tables::flow::{Entry, Flows, Hasher, Key, Memory, Refused, Sizes};
use wire::tcp::{ACK, FIN, RST, SYN};
use wire::{icmp4, icmp6};

use super::State;
use super::flows::{Counters, SWAPPED, Walker};
use crate::flow::key::Kind;
use crate::flow::state::{Step, step};
use crate::flow::tcp::{Invalid, Midstream, Segment, Session, Verdict};
use crate::flow::{Direction, State as FlowState, Timeouts};

/// A bit of [`Entry::flags`], beside [`SWAPPED`]: it has been seen both ways.
const ANSWERED: u8 = 1 << 1;

/// Milliseconds in which all flows are looked at for their timeouts.
const SWEEP: u64 = 10_000;

/// The flows that a worker owns.
pub struct Tracker {
    pub(super) flows: Flows,
    timeouts: Timeouts,
    /// Flows that there is room for.
    room: u32,
    /// This worker and how many there are.
    worker: usize,
    workers: usize,
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
    /// Where it came in and leaves.
    pub interfaces: [u16; 2],
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

    /// The worker that owns the flow with this hash, if it is another one.
    #[inline(always)]
    pub(super) fn other_owner(&self, hash: u64) -> Option<usize> {
        let owner = (((hash >> 32) * self.workers as u64) >> 32) as usize;
        (self.workers > 1 && owner != self.worker).then_some(owner)
    }

    /// The policies are of this generation. Entries have 16 bits of it: before they mean another
    /// one, all entries forget theirs.
    #[inline(always)]
    pub(super) fn follow_generation(&mut self, generation: u64) {
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

    /// What a packet does to the flow with this number.
    #[inline(always)]
    pub(super) fn follow(&mut self, number: u32, seen: &Seen<'_>) -> Follows {
        let (entry, annex) = self.flows.at_mut(number);
        let session = Session::of_mut(annex);
        let reply = seen.swapped != (entry.flags & SWAPPED != 0);
        let direction = if reply {
            Direction::Reply
        } else {
            Direction::Original
        };
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
        if reply && entry.flags & ANSWERED == 0 {
            // It is in another state now: whatever policies said was about the one before.
            entry.flags |= ANSWERED;
            entry.approved = [0; 4];
        }
        let [came, leaves] = approved(entry, direction);
        let approved = [came, leaves] == seen.interfaces && entry.generation == self.generation;
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

    /// Policies let pass what comes and goes by these interfaces.
    pub(super) fn approve(&mut self, number: u32, direction: Direction, interfaces: [u16; 2]) {
        let entry = self.flows.at_mut(number).0;
        if entry.generation != self.generation {
            (entry.generation, entry.approved) = (self.generation, [0; 4]);
        }
        let at = direction as usize * 2;
        [entry.approved[at], entry.approved[at + 1]] = interfaces;
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
        let number = self
            .flows
            .insert(*seen.key, seen.hash, self.seconds, |_, _, _| ())?;
        let (entry, annex) = self.flows.at_mut(number);
        entry.state = first.state as u8;
        entry.flags = if seen.swapped { SWAPPED } else { 0 };
        let session = Session::of_mut(annex);
        *session = first.session;
        session.count(Direction::Original, seen.bytes);
        Ok(number)
    }
}

/// The interfaces that packets of a direction may come and go by.
#[inline(always)]
fn approved(entry: &Entry, direction: Direction) -> [u16; 2] {
    let [came, leaves, replies_come, replies_leave] = entry.approved;
    match direction {
        Direction::Original => [came, leaves],
        Direction::Reply => [replies_come, replies_leave],
    }
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
