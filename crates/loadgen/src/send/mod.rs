//! The software generator: builds packets and gives them to a port on schedule.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::time::Duration;

use graph::{Buffers, Desc, Frame, Port};

use crate::clock::{Clock, Nanos};
use crate::device::Count;
use crate::model::load::Load;
use crate::model::stream::Stream;
use crate::model::units::{FCS, Pps};
use crate::schedule::Schedule;
use crate::source::fields::Fields;
use crate::source::mark::counters_of;

pub use self::control::{Cores, Generator};
use self::control::{PAUSED, Shared};

mod control;
#[cfg(test)]
mod tests;

/// Packets built and offered to the port at a time.
const BURST: usize = 128;

/// Time that a schedule catches up after the thread was held up, and that a stop waits for the last
/// packets.
pub const BACKLOG: Duration = Duration::from_millis(20);
/// Smallest backlog in packets, so that slow rates lose none to a late wake-up.
const LEAST_BACKLOG: f64 = 64.0;

/// State of the sender.
#[derive(Clone, Copy, PartialEq)]
enum State {
    Stopped,
    /// On schedule.
    Paced,
    /// Sends whatever is next, as fast as the port takes it.
    Unlimited,
    /// Sending what was due by the first time, but no later than the second.
    Stopping(Nanos, Nanos),
}

/// A packet that is built.
struct Built {
    stream: usize,
    len: usize,
    /// Time when it is due; None if it is sent as soon as the port takes it.
    due: Option<Nanos>,
}

/// The sending half of a port, run by its thread.
pub struct Sender {
    sources: Vec<Fields>,
    schedule: Schedule,
    load: Option<Load>,
    state: State,
    /// Packets that are built, and what they are.
    pending: Frame,
    built: VecDeque<Built>,
    /// Packets that were due, of all runs.
    scheduled: u64,
    backlog: Duration,
    /// End of the run.
    end: Nanos,
    /// True if it has ended by itself, though a rate is still wanted.
    ended: bool,
    /// Time left of a run that pauses.
    paused: Option<Duration>,
    seen: u64,
    /// Room for a frame that does not fit into a buffer.
    scratch: Vec<u8>,
    shared: Arc<Shared>,
}

impl Sender {
    /// A sender of streams with their rates at multiplier 1, and its control.
    pub fn new(streams: &[(Stream, Pps)], entropy: u32) -> (Self, Generator) {
        let shared = Arc::new(Shared::new(streams.len()));
        let counters = counters_of(streams.iter().map(|(s, _)| s));
        let sources = streams.iter().zip(counters);
        let sender = Self {
            sources: sources
                .map(|((s, _), counter)| Fields::new(s, entropy, counter))
                .collect(),
            schedule: Schedule::new(streams.iter().map(|(s, pps)| (s, *pps))),
            load: Load::of(streams),
            state: State::Stopped,
            pending: Frame::default(),
            built: VecDeque::with_capacity(BURST),
            scheduled: 0,
            backlog: BACKLOG,
            end: Nanos(u64::MAX),
            ended: false,
            paused: None,
            seen: 0,
            scratch: Vec::new(),
            shared: shared.clone(),
        };
        (sender, Generator::new(shared))
    }

    /// True if it is sending or about to.
    pub fn is_active(&self) -> bool {
        // Relaxed: only a hint whether to sleep; `poll` looks with Acquire.
        self.shared.wanted.load(Relaxed) != self.seen
            || (self.state != State::Stopped && !self.is_done())
    }

    /// True if there is nothing left to send.
    fn is_done(&self) -> bool {
        self.schedule.is_over() && self.pending.is_empty()
    }

    /// Sends what is due. Returns how many packets the port took.
    pub fn poll(&mut self, clock: &impl Clock, port: &mut dyn Port, bufs: &mut Buffers) -> usize {
        let wanted = self.shared.wanted.load(Acquire);
        let now = clock.now();
        if wanted != self.seen {
            self.change(now, f64::from_bits(wanted), wanted);
        }
        if now >= self.end && matches!(self.state, State::Paced | State::Unlimited) {
            self.ended = true;
            self.wind_up(now, Nanos(self.end.0.saturating_sub(1)));
        }
        let until = match self.state {
            State::Stopped => return 0,
            State::Paced => now,
            State::Unlimited => Nanos(u64::MAX),
            State::Stopping(until, _) => until,
        };
        if self.state == State::Paced {
            self.give_up(Nanos(now.0.saturating_sub(self.backlog.as_nanos() as u64)));
        }
        self.build(until, now, bufs);
        let took = self.offer(clock, port, bufs);
        self.shared.scheduled.set(self.scheduled);
        if let State::Stopping(_, deadline) = self.state
            && (now >= deadline || (self.pending.is_empty() && took == 0))
        {
            self.finish(bufs);
        } else if self.is_done() {
            self.shared.over.store(true, Relaxed);
        }
        took
    }

    fn change(&mut self, now: Nanos, rate: f64, bits: u64) {
        self.seen = bits;
        if rate > 0.0 {
            // One that has ended starts again only after a stop.
            if !self.ended {
                self.pace(now, Pps(rate));
            }
        } else {
            let pauses = rate == PAUSED && self.state != State::Stopped && !self.ended;
            self.paused = pauses.then(|| self.end.since(now));
            self.ended &= rate == PAUSED;
            if self.state != State::Stopped {
                // It takes effect when the rest has been sent.
                return self.wind_up(now, now);
            }
        }
        self.shared.applied.store(bits, Release);
    }

    /// Sends what was due by `until`, and then no more. What ends already ends when it was to.
    fn wind_up(&mut self, now: Nanos, until: Nanos) {
        let until = match self.state {
            // Nothing is due at any time: what is built is sent, and no more is built.
            State::Unlimited => Nanos(0),
            State::Stopping(until, _) => until,
            State::Paced | State::Stopped => until,
        };
        self.state = State::Stopping(until, now.after(BACKLOG));
    }

    /// Sends at `rate` from now on.
    fn pace(&mut self, now: Nanos, rate: Pps) {
        let factor = self.load.as_ref().map_or(0.0, |load| load.factor(rate));
        let next = if factor.is_finite() {
            State::Paced
        } else {
            State::Unlimited
        };
        match self.state {
            State::Stopped => {
                self.shared.over.store(false, Relaxed);
                self.shared.run.set(0);
                self.begin(now, factor);
            }
            State::Unlimited if next == State::Paced => {
                self.scheduled += self.pending.len() as u64;
                self.schedule.catch_up(now);
                self.schedule.set_factor(now, factor);
            }
            _ => self.schedule.set_factor(now, factor),
        }
        if next == State::Paced {
            let least = Duration::try_from_secs_f64(LEAST_BACKLOG / rate.0);
            self.backlog = BACKLOG.max(least.unwrap_or(Duration::MAX));
        }
        self.state = next;
    }

    /// Starts the profile from its beginning, or goes on after a pause.
    fn begin(&mut self, now: Nanos, factor: f64) {
        // Relaxed: it was stored before the rate, which `poll` has loaded with Acquire.
        let length = Duration::from_nanos(self.shared.length.load(Relaxed));
        let left = self.paused.take();
        self.end = now.after(left.unwrap_or(length));
        match left {
            Some(_) => {
                self.schedule.catch_up(now);
                self.schedule.set_factor(now, factor);
            }
            None => self.schedule.start(now, factor),
        }
    }

    /// Packets that were due before `time` are not sent anymore.
    fn give_up(&mut self, time: Nanos) {
        self.scheduled += self.schedule.skip(time);
    }

    /// Builds packets that are due at `until` or before, as many as a burst has room for.
    fn build(&mut self, until: Nanos, now: Nanos, bufs: &mut Buffers) {
        let counts = self.state != State::Unlimited;
        while self.pending.len() < BURST {
            // A packet that is taken off the schedule is built, so there has to be a buffer.
            let Some(buffer) = bufs.alloc() else { return };
            let Some((stream, at)) = self.schedule.next(until) else {
                bufs.free(buffer);
                return;
            };
            self.scheduled += u64::from(counts);
            let source = &mut self.sources[stream];
            let Some((desc, len)) = packet(source, buffer, now, &mut self.scratch, bufs) else {
                return;
            };
            self.pending.put(desc);
            let due = counts.then_some(at);
            self.built.push_back(Built { stream, len, due });
        }
    }

    /// Offers the packets that are built, and counts those that the port takes.
    fn offer(&mut self, clock: &impl Clock, port: &mut dyn Port, bufs: &mut Buffers) -> usize {
        let ready = self.pending.len();
        if ready == 0 {
            return 0;
        }
        let took = self.pending.offer(ready, |batch| port.tx(bufs, batch));
        let left = clock.now();
        if took > 0 {
            self.note(left, took as u64);
        }
        // Packets of one stream mostly come in a row: one addition for all of them.
        let (mut of, mut row) = (0, Count::default());
        for Built { stream, len, due } in self.built.drain(..took) {
            if let Some(due) = due {
                self.shared.late.add(left.0.saturating_sub(due.0));
            }
            if stream != of {
                self.shared.sent[of].add(std::mem::take(&mut row));
                of = stream;
            }
            row.packets += 1;
            row.bytes += (len + FCS) as u64;
        }
        self.shared.sent[of].add(row);
        if took < ready {
            self.shared.queue_full.add(1);
        }
        if self.state == State::Unlimited {
            self.scheduled += took as u64;
        }
        took
    }

    /// Notes when packets left, and how far from those before. They are still in `built`.
    fn note(&self, left: Nanos, took: u64) {
        let shared = &self.shared;
        if shared.run.get() == 0 {
            let due = self.built.front().and_then(|built| built.due);
            shared.first.set(due.unwrap_or(left).0);
        } else {
            shared.gaps.add(left.0.saturating_sub(shared.last.get()));
        }
        if took > 1 {
            shared.gaps.add_equal(0, took - 1);
        }
        shared.last.set(left.0);
        shared.run.add(took);
    }

    /// Ends a run, and frees packets that were built but not sent.
    fn finish(&mut self, bufs: &mut Buffers) {
        if let State::Stopping(until, _) = self.state {
            // Plus 1, since those due at `until` were still to be sent.
            self.give_up(Nanos(until.0.saturating_add(1)));
        }
        self.pending.drain().for_each(|desc| bufs.free(desc));
        self.built.clear();
        self.sources.iter_mut().for_each(Fields::new_run);
        self.shared.scheduled.set(self.scheduled);
        self.state = State::Stopped;
        if self.ended {
            self.shared.over.store(true, Relaxed);
        }
        self.shared.applied.store(self.seen, Release);
    }

    /// Stops at once and for good.
    pub fn close(&mut self, bufs: &mut Buffers) {
        self.finish(bufs);
        self.shared.alive.store(false, Relaxed);
    }
}

impl Drop for Sender {
    fn drop(&mut self) {
        // Even if the thread panics, nobody may wait for it.
        self.shared.alive.store(false, Relaxed);
    }
}

/// The next packet of a stream, in `buffer` or in a chain of buffers, and its length. None if there
/// are none left; `buffer` is freed then.
#[inline(always)]
fn packet(
    source: &mut Fields,
    mut buffer: Desc,
    now: Nanos,
    scratch: &mut Vec<u8>,
    bufs: &mut Buffers,
) -> Option<(Desc, usize)> {
    let longest = source.frame_len();
    if bufs.resize(&mut buffer, longest) {
        let len = source.write(now, bufs.pool().bytes_of_mut(&mut buffer));
        if len != longest {
            bufs.resize(&mut buffer, len);
        }
        return Some((buffer, len));
    }
    bufs.free(buffer);
    if scratch.len() < longest {
        scratch.resize(longest, 0);
    }
    let len = source.write(now, scratch);
    Some((bufs.copy_in(&scratch[..len])?, len))
}
