//! The memory that the generator's program and userspace share: the plan one way, the counters the
//! other.
//!
//! Orderings: a rate is stored behind what belongs to it (Release). The program says that it has
//! seen a stop behind a full barrier, so that a thread that reads that (Acquire) reads the last
//! counters. All else is Relaxed: the program does not run yet, or a value stands for itself.

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64};
use std::time::Duration;

use super::LiveError;
use super::plan::{
    self, LivePlan, LiveStream, MAX_ROUND, MAX_STREAMS, MAX_VARS, MAX_WAYS, MIN_FRAME, Op, Rate,
    WIDE,
};
use crate::map::Shared;
use crate::sys::count;
use crate::times::{Times, TimesState};

/// Room for the beginning of a frame.
const HEAD: usize = 128;
/// The least burst, packets: what one batch of live frames may hold.
const MIN_BURST: u64 = 64;
/// The rate that asks for no schedule.
const UNPACED: u64 = 1 << 62;
/// The rate of a way that does not send, with the stop's number in the bits below.
const STOPPED: u64 = 1 << 63;
/// The highest rate of a schedule, packets per second: with it the program's arithmetic is good for
/// three minutes between two looks at the clock.
const MAX_RATE: u32 = 100_000_000;

/// `struct var` in live.bpf.c.
#[repr(C)]
struct VarState {
    value: AtomicU32,
    min: AtomicU32,
    max: AtomicU32,
    step: AtomicU32,
    seed: AtomicU32,
    at: AtomicU16,
    width: AtomicU8,
    op: AtomicU8,
}

/// `struct stream` in live.bpf.c.
#[repr(C)]
pub(super) struct StreamState {
    pub packets: AtomicU64,
    pub bytes: AtomicU64,
    len: AtomicU32,
    vars: AtomicU32,
    ip4_at: AtomicU32,
    mark_at: AtomicU32,
    var: [VarState; MAX_VARS],
    head: [AtomicU8; HEAD],
}

/// `struct way` in live.bpf.c.
#[repr(C)]
pub(super) struct WayState {
    rate: AtomicU64,
    burst: AtomicU64,
    pub due: AtomicU64,
    pub lost: AtomicU64,
    _credit: AtomicU64,
    /// Time of the program's last look at the clock; 0: it takes the next look as the start.
    last: AtomicU64,
    _rest: AtomicU64,
    stopped: AtomicU64,
    end: AtomicU64,
    ifindex: AtomicU32,
    _position: AtomicU32,
    order_len: AtomicU32,
    _reserved: AtomicU32,
    order: [AtomicU8; MAX_ROUND],
    pub stream: [StreamState; MAX_STREAMS],
    _let_go: AtomicU64,
    gaps: TimesState,
}

/// A stream whose packets have marks.
#[derive(Debug)]
pub(super) struct Mark {
    stream: usize,
    at: usize,
    /// The first packet's number.
    first: [u8; 4],
}

impl Mark {
    /// The marks of a plan that has been checked.
    pub fn all(plan: &LivePlan) -> Vec<Self> {
        let streams = plan.streams.iter().enumerate();
        let marks = streams.filter_map(|(stream, LiveStream { frame, mark_at, .. })| {
            let at = usize::from((*mark_at)?);
            let first = frame.get(at + 4..at + 8)?.try_into().ok()?;
            Some(Self { stream, at, first })
        });
        marks.collect()
    }
}

/// `struct live` in live.bpf.c.
#[repr(C)]
pub(super) struct State {
    ways: AtomicU32,
    _turn: AtomicU32,
    frame_len: AtomicU32,
    wide: AtomicU32,
    epoch: AtomicU64,
    pub way: [WayState; MAX_WAYS],
}

// SAFETY: repr(C), atomics and arrays of them.
#[allow(unsafe_code)]
unsafe impl Shared for State {}

impl State {
    /// Writes the plans, of which none is sent yet; gives the frame that the program is to be run
    /// with.
    pub fn fill(&self, plans: &[LivePlan]) -> Result<Vec<u8>, LiveError> {
        let head = plan::check(plans)?;
        let mut frame = plan::longest(plans).to_vec();
        frame.resize(frame.len().max(head), 0);
        for (way, plan) in self.way.iter().zip(plans) {
            way.fill(plan, &frame)?;
        }
        self.ways.store(count(plans.len()), Relaxed);
        self.frame_len.store(count(frame.len()), Relaxed);
        self.wide.store(u32::from(head == WIDE), Relaxed);
        let epoch = plans.first().map_or(0, |plan| plan.epoch);
        self.epoch.store(epoch, Relaxed);
        Ok(frame)
    }
}

impl WayState {
    fn fill(&self, plan: &LivePlan, frame: &[u8]) -> Result<(), LiveError> {
        let order = plan::order(&plan.streams)?;
        for (cell, stream) in self.order.iter().zip(&order) {
            cell.store(*stream, Relaxed);
        }
        for (state, stream) in self.stream.iter().zip(&plan.streams) {
            state.fill(stream, frame);
        }
        self.order_len.store(count(order.len()), Relaxed);
        self.ifindex.store(plan.ifindex, Relaxed);
        self.stop();
        Ok(())
    }

    /// Sets the pace; the program sees it at its next packet.
    pub fn set_rate(&self, rate: Rate, burst: Duration) {
        let (rate, packets) = match rate {
            // The burst of the rate before is what may still be sent.
            Rate::Pps(0) => return self.rate.store(0, Relaxed),
            Rate::Unpaced => (UNPACED, 0),
            Rate::Pps(pps) => {
                let pps = pps.min(MAX_RATE);
                #[expect(clippy::cast_possible_truncation, reason = "a fraction is cut off")]
                let packets = (burst.as_secs_f64() * f64::from(pps)) as u64;
                (u64::from(pps), packets)
            }
        };
        self.burst.store(packets.max(MIN_BURST), Relaxed);
        self.rate.store(rate, Release);
    }

    /// Begins a run of marks: a new number of the run, and packets from the plan's number on. Only
    /// while stopped.
    pub fn new_run(&self, marks: &[Mark]) {
        for mark in marks {
            let head = &self.stream[mark.stream].head[mark.at..];
            head[1].store(head[1].load(Relaxed).wrapping_add(1), Relaxed);
            for (cell, byte) in head[4..8].iter().zip(mark.first) {
                cell.store(byte, Relaxed);
            }
        }
    }

    /// From the next start on, no more than `packets` become due; None: no end. Only while stopped.
    pub fn limit(&self, packets: Option<u64>) {
        let end = packets.map_or(0, |packets| self.due.load(Relaxed) + packets);
        self.end.store(end, Relaxed);
    }

    /// True if all packets up to the limit have been sent or given up.
    pub fn is_over(&self) -> bool {
        let end = self.end.load(Relaxed);
        end > 0 && self.sent() + self.lost.load(Relaxed) >= end
    }

    /// Asks the program to stop; what it has left to send is given up.
    pub fn stop(&self) {
        let number = self.stopped.load(Relaxed) + 1;
        self.rate.store(STOPPED | number, Release);
    }

    /// True if the program has seen the last stop; its counters stand then.
    pub fn is_stopped(&self) -> bool {
        self.stopped.load(Acquire) == self.rate.load(Relaxed)
    }

    /// True if the program sends or waits for its time, if nothing but `due` was due before.
    pub fn is_running(&self, due: u64) -> bool {
        self.last.load(Relaxed) != 0 || self.due.load(Relaxed) != due
    }

    /// Gaps between packets so far.
    pub fn gaps(&self) -> Times {
        self.gaps.read()
    }

    /// Packets sent so far, of all streams.
    pub fn sent(&self) -> u64 {
        let packets = |stream: &StreamState| stream.packets.load(Relaxed);
        self.stream.iter().map(packets).sum()
    }
}

impl StreamState {
    fn fill(&self, stream: &LiveStream, frame: &[u8]) {
        for (i, cell) in self.head.iter().enumerate() {
            // Behind a short frame's padding comes what the longest has there.
            let padding = if i < MIN_FRAME {
                0
            } else {
                frame.get(i).copied().unwrap_or(0)
            };
            cell.store(stream.frame.get(i).copied().unwrap_or(padding), Relaxed);
        }
        for (state, var) in self.var.iter().zip(&stream.vars) {
            let (op, seed) = match var.op {
                Op::Inc => (0, 0),
                Op::Dec => (1, 0),
                Op::Random(seed) => (2, seed),
            };
            state.value.store(var.init, Relaxed);
            state.min.store(var.min, Relaxed);
            state.max.store(var.max, Relaxed);
            state.step.store(var.step, Relaxed);
            state.seed.store(seed, Relaxed);
            state.at.store(var.at, Relaxed);
            state.width.store(var.width, Relaxed);
            state.op.store(op, Relaxed);
        }
        self.vars.store(count(stream.vars.len()), Relaxed);
        self.ip4_at
            .store(stream.ip4_checksum_at.unwrap_or(0).into(), Relaxed);
        self.mark_at
            .store(stream.mark_at.unwrap_or(0).into(), Relaxed);
        self.len
            .store(count(stream.frame.len().max(MIN_FRAME)), Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::{agree, facts};

    #[test]
    fn the_state_is_laid_out_as_in_the_program() {
        let all = [
            facts!("var" as VarState: value, min, max, step, seed, at, width, op),
            facts!("stream" as StreamState: packets, bytes, len, vars, ip4_at, mark_at, var, head),
            facts!("way" as WayState: rate, burst, due, lost, _credit, last, _rest, stopped, end, ifindex, _position, order_len,
                _reserved, order, stream, _let_go, gaps),
            facts!("times" as TimesState: sum, min, max, bucket),
            facts!("live" as State: ways, _turn, frame_len, wide, epoch, way),
        ];
        agree(
            "the_state_is_laid_out_as_in_the_program",
            "live.bpf.c",
            &all.concat(),
        );
    }
}
