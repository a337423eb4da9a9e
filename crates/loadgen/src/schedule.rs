//! Times at which packets are due, and of which stream.
//!
//! Each stream has its own pace, as a T-Rex profile gives it: continuous, or in bursts after which
//! another stream starts. All active streams stand in a heap by the time of their next packet; the
//! rate of the port is what falls out.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;

use crate::clock::Nanos;
use crate::model::share::Share;
use crate::model::stream::{Mode, Stream};
use crate::model::units::Pps;

/// A point in time or a length of time in nanoseconds, with 64 fractional bits: the sum of many
/// gaps is exact.
type Fixed = u128;

const FRACTION: u32 = 64;

fn fixed(nanos: u64) -> Fixed {
    Fixed::from(nanos) << FRACTION
}

/// The whole nanosecond nearest to `time`.
#[inline(always)]
fn nanos(time: Fixed) -> u64 {
    (time.saturating_add(1 << (FRACTION - 1)) >> FRACTION) as u64
}

/// Microseconds; negative and senseless ones are none.
fn micros(value: f64) -> Fixed {
    scaled(value * 1e3)
}

/// Nanoseconds with a fraction, up to the far end of time.
fn scaled(nanos: f64) -> Fixed {
    (nanos * (1u128 << FRACTION) as f64).min(FAR as f64) as Fixed
}

/// Later than anything: times stay below it, so that two can be added.
const FAR: Fixed = 1 << 126;

/// Time from packet to packet.
fn gap(pps: f64) -> Fixed {
    const SECOND: Fixed = 1_000_000_000;
    if (1.0..1e18).contains(&pps) && pps.fract() == 0.0 {
        return (SECOND << FRACTION) / pps as Fixed;
    }
    if pps > 0.0 { scaled(1e9 / pps) } else { FAR }
}

/// `count` gaps, up to the far end of time.
fn times(gap: Fixed, count: u64) -> Fixed {
    gap.saturating_mul(count.into()).min(FAR)
}

/// Slots of dummy streams that are passed at a time.
const DUMMIES: u32 = 1024;

/// Packets that lie at no common stride and are passed over at a time: a millisecond's worth of
/// work.
const SINGLES: u32 = 16_384;

/// A stream's timing, and how far it has come.
#[derive(Debug, Clone)]
struct Run {
    /// Its own rate.
    pps: Pps,
    mode: Mode,
    isg: Fixed,
    next: Option<usize>,
    action_count: u32,
    self_start: bool,
    dummy: bool,
    /// True if it or what follows it sends anything.
    sends: bool,
    is_fixed: bool,
    /// Part of its packets that is sent here.
    share: Share,
    /// Time from packet to packet of the whole stream at the present rate, and of those sent here.
    gap: Fixed,
    stride: Fixed,
    active: bool,
    /// True if the time to its next packet is one that no rate changes.
    waits: bool,
    /// Packets left in this burst, and bursts left after it.
    packets: u64,
    bursts: u64,
    /// Number of times that it still starts the next stream.
    actions: u32,
}

/// The timing of all streams of a port.
#[derive(Debug, Clone)]
pub struct Schedule {
    runs: Vec<Run>,
    /// Active streams by the time of their next packet; of equals, the first stream is next.
    due: BinaryHeap<Reverse<(Fixed, usize)>>,
    factor: f64,
}

impl Run {
    fn new(stream: &Stream, pps: Pps) -> Self {
        Self {
            pps,
            mode: stream.mode,
            isg: micros(stream.isg),
            next: stream.next,
            action_count: stream.action_count,
            self_start: stream.self_start && stream.share.is_some(),
            dummy: stream.dummy,
            sends: !stream.dummy,
            is_fixed: stream.is_fixed(),
            share: stream.share.unwrap_or(Share::WHOLE),
            gap: 0,
            stride: 0,
            active: false,
            waits: false,
            packets: 0,
            bursts: 0,
            actions: stream.action_count,
        }
    }

    fn pace(&mut self, factor: f64) {
        let factor = if self.is_fixed { 1.0 } else { factor };
        self.gap = gap(self.pps.0 * factor);
        self.stride = times(self.gap, self.share.cores.into());
    }

    /// Time from the first packet of a burst to the first one that is sent here.
    fn phase(&self) -> Fixed {
        times(self.gap, self.share.core.into())
    }

    /// Time from the last packet of a burst that is sent here to its last one.
    fn rest(&self) -> Fixed {
        let (Mode::SingleBurst { packets } | Mode::MultiBurst { packets, .. }) = self.mode else {
            return 0;
        };
        let Share { core, cores } = self.share;
        let last = u64::from(core) + self.share.of(packets).saturating_sub(1) * u64::from(cores);
        times(self.gap, (packets - 1).saturating_sub(last))
    }

    /// Starts at `at`; returns the time of its first packet.
    fn start(&mut self, at: Fixed) -> Fixed {
        (self.active, self.waits) = (true, true);
        (self.packets, self.bursts) = match self.mode {
            Mode::Continuous => (u64::MAX, 0),
            Mode::SingleBurst { packets } => (self.share.of(packets), 0),
            Mode::MultiBurst {
                packets, bursts, ..
            } => (self.share.of(packets), bursts.saturating_sub(1)),
        };
        at.saturating_add(self.isg)
            .saturating_add(self.phase())
            .min(FAR)
    }

    /// The time of the packet after the one at `at`; None if that was the last.
    #[inline(always)]
    fn step(&mut self, at: Fixed) -> Option<Fixed> {
        self.waits = false;
        // Continuous: never counted down.
        if self.packets == u64::MAX {
            return Some((at + self.stride).min(FAR));
        }
        self.packets -= 1;
        if self.packets > 0 {
            return Some((at + self.stride).min(FAR));
        }
        self.burst(at)
    }

    fn burst(&mut self, at: Fixed) -> Option<Fixed> {
        let Mode::MultiBurst { packets, ibg, .. } = self.mode else {
            return None;
        };
        self.bursts = self.bursts.checked_sub(1)?;
        self.packets = self.share.of(packets);
        self.waits = true;
        let pause = self.rest().saturating_add(self.phase());
        Some((at + micros(ibg)).saturating_add(pause).min(FAR))
    }

    /// The stream that starts when this one has ended.
    fn follower(&mut self) -> Option<usize> {
        if self.action_count > 0 {
            self.actions = self.actions.saturating_sub(1);
            if self.actions == 0 {
                return None;
            }
        }
        self.next
    }
}

impl Schedule {
    /// The schedule of `streams`, each with its own rate; nothing is due before [`Self::start`].
    pub fn new<'a>(streams: impl IntoIterator<Item = (&'a Stream, Pps)>) -> Self {
        let mut runs: Vec<Run> = streams
            .into_iter()
            .map(|(s, pps)| Run::new(s, pps))
            .collect();
        // Links mostly lead to the stream after: two rounds, rarely more.
        let mut is_known = false;
        while !is_known {
            is_known = true;
            for index in (0..runs.len()).rev() {
                let next = runs[index].next.and_then(|next| runs.get(next));
                if !runs[index].sends && next.is_some_and(|next| next.sends) {
                    (runs[index].sends, is_known) = (true, false);
                }
            }
        }
        Self {
            due: BinaryHeap::with_capacity(runs.len()),
            runs,
            factor: 1.0,
        }
    }

    /// Starts the profile from its beginning at `at`, all rates times `factor`. An infinite factor
    /// is 1, for a sender that does not wait: it keeps the order and the proportions.
    pub fn start(&mut self, at: Nanos, factor: f64) {
        self.due.clear();
        self.factor = 1.0;
        self.apply(factor);
        for (index, run) in self.runs.iter_mut().enumerate() {
            run.active = false;
            run.actions = run.action_count;
            if run.self_start {
                self.due.push(Reverse((run.start(fixed(at.0)), index)));
            }
        }
    }

    /// Changes the factor from `now` on. Within a burst the way to the next packet that is already
    /// covered stays covered; gaps between bursts and streams remain as they are.
    pub fn set_factor(&mut self, now: Nanos, factor: f64) {
        let before = self.factor;
        self.apply(factor);
        let (now, ratio) = (fixed(now.0), before / self.factor);
        let runs = &self.runs;
        let moved = self.due.drain().map(|Reverse((at, index))| {
            let run = &runs[index];
            let at = match at.checked_sub(now) {
                Some(left) if !run.waits && !run.is_fixed => now + stretch(left, ratio),
                _ => at,
            };
            Reverse((at.min(FAR), index))
        });
        self.due = moved.collect();
    }

    fn apply(&mut self, factor: f64) {
        self.factor = if factor.is_finite() { factor } else { 1.0 };
        let factor = self.factor;
        self.runs.iter_mut().for_each(|run| run.pace(factor));
    }

    /// Moves all times so that the first packet is due `now`: what was sent without waiting goes on
    /// at a pace.
    pub fn catch_up(&mut self, now: Nanos) {
        let Some(&Reverse((first, _))) = self.due.peek() else {
            return;
        };
        let moved = self.due.drain().map(|Reverse((at, index))| {
            let at = fixed(now.0).saturating_add(at - first).min(FAR);
            Reverse((at, index))
        });
        self.due = moved.collect();
    }

    /// True if no packet will ever be due again.
    pub fn is_over(&self) -> bool {
        let mut due = self.due.iter();
        !due.any(|Reverse((_, index))| self.runs[*index].sends)
    }

    /// True if something is due at `until` or before, if only the slot of a dummy.
    pub fn is_due(&self, until: Nanos) -> bool {
        let first = self.due.peek();
        first.is_some_and(|Reverse((at, _))| Nanos(nanos(*at)) <= until)
    }

    /// The next packet that is due at `until` or before: its stream, and the time. None also where
    /// so many slots of dummies come first that the caller had better look after other things.
    #[inline]
    pub fn next(&mut self, until: Nanos) -> Option<(usize, Nanos)> {
        for _ in 0..DUMMIES {
            let mut top = self.due.peek_mut()?;
            let Reverse((at, index)) = *top;
            let time = Nanos(nanos(at));
            if time > until {
                return None;
            }
            let run = &mut self.runs[index];
            let dummy = run.dummy;
            match run.step(at) {
                Some(next) => {
                    *top = Reverse((next, index));
                }
                None => {
                    PeekMut::pop(top);
                    self.end(index, at);
                }
            }
            if !dummy {
                return Some((index, time));
            }
        }
        None
    }

    /// Stream `index` has sent its last packet `at`.
    fn end(&mut self, index: usize, at: Fixed) {
        let run = &mut self.runs[index];
        run.active = false;
        let at = at.saturating_add(run.rest());
        if let Some(next) = run.follower()
            && let Some(run) = self.runs.get_mut(next)
            && !run.active
        {
            self.due.push(Reverse((run.start(at), next)));
        }
    }

    /// Passes over the packets that are due before `time`, and returns how many. Where a great many
    /// of them are bursts of one, some are left for the next call, so that the caller can look
    /// after other things.
    pub fn skip(&mut self, time: Nanos) -> u64 {
        let (mut skipped, mut singles) = (0, 0);
        let Some(until) = time.0.checked_sub(1).map(Nanos) else {
            return 0;
        };
        while let Some(&Reverse((at, index))) = self.due.peek() {
            if Nanos(nanos(at)) > until {
                break;
            }
            let run = &mut self.runs[index];
            // All but the last packet of a burst lie one stride apart.
            let rest = fixed(time.0).saturating_sub(at) / run.stride.max(1);
            let many = (rest.min(u128::from(u64::MAX)) as u64).min(run.packets - 1);
            if many > 1 {
                run.waits = false;
                if run.packets < u64::MAX {
                    run.packets -= many;
                }
                skipped += if run.dummy { 0 } else { many };
                let at = at + run.stride * u128::from(many);
                self.due.pop();
                self.due.push(Reverse((at, index)));
                continue;
            }
            skipped += u64::from(self.next(until).is_some());
            singles += 1;
            if singles == SINGLES {
                break;
            }
        }
        skipped
    }
}

/// `time` times `ratio`.
fn stretch(time: Fixed, ratio: f64) -> Fixed {
    if ratio.is_finite() {
        (time as f64 * ratio).min(FAR as f64) as Fixed
    } else {
        FAR
    }
}

#[cfg(test)]
mod tests;
