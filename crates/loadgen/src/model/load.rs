//! What a profile offers: the sum of its streams' rates, at the moment when that is highest.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::model::stream::{Mode, Stream};
use crate::model::units::Pps;

/// The load of a profile at multiplier 1. Every rate is resolved against it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Load {
    /// Highest sum of the streams' own rates.
    pub base: Pps,
    /// The part of it that no rate of the port scales.
    pub fixed: Pps,
    /// Whether a rate of the port changes anything: some stream has a pace that follows it.
    pub is_scalable: bool,
    /// Mean frame size in bytes, weighted by rate, with frame check sequence.
    pub size: f64,
}

/// Bursts that are looked at. The rates of a profile that loops are known long before.
const LONGEST_LOOK: usize = 10_000;

/// A time in nanoseconds, and how rates change then.
type Change = (u64, Sum);

#[derive(Clone, Copy, Default)]
struct Sum {
    pps: f64,
    fixed: f64,
    bytes: f64,
}

impl Sum {
    fn plus(self, other: Self, sign: f64) -> Self {
        Self {
            pps: self.pps + sign * other.pps,
            fixed: self.fixed + sign * other.fixed,
            bytes: self.bytes + sign * other.bytes,
        }
    }
}

impl Load {
    /// The load of streams with their rates at multiplier 1. None if nothing is offered.
    pub fn of(streams: &[(Stream, Pps)]) -> Option<Self> {
        let mut changes = changes(streams);
        changes.sort_by_key(|(at, _)| *at);
        let (mut now, mut peak) = (Sum::default(), Sum::default());
        for (i, (at, change)) in changes.iter().enumerate() {
            now = now.plus(*change, 1.0);
            // At a moment when one burst ends and another begins, both are not counted.
            if changes.get(i + 1).is_none_or(|(next, _)| next != at) {
                peak = Sum {
                    pps: peak.pps.max(now.pps),
                    fixed: peak.fixed.max(now.fixed),
                    bytes: peak.bytes.max(now.bytes),
                };
            }
        }
        (peak.pps > 0.0 && peak.pps.is_finite()).then(|| Self {
            base: Pps(peak.pps),
            fixed: Pps(peak.fixed.min(peak.pps)),
            is_scalable: streams.iter().any(|(stream, _)| stream.is_scalable()),
            size: peak.bytes / peak.pps,
        })
    }

    /// What the streams' own rates have to be multiplied by so that they come to `rate`; infinite
    /// for a rate without a limit.
    pub fn factor(&self, rate: Pps) -> f64 {
        let scaled = self.base.0 - self.fixed.0;
        if scaled > 0.0 {
            ((rate.0 - self.fixed.0) / scaled).max(0.0)
        } else {
            rate.0 / self.base.0
        }
    }
}

fn sum(stream: &Stream, pps: Pps) -> Sum {
    let pps = if stream.dummy { 0.0 } else { pps.0 };
    Sum {
        pps,
        fixed: if stream.is_fixed() { pps } else { 0.0 },
        bytes: pps * stream.size(),
    }
}

/// The beginnings and ends of all bursts.
fn changes(streams: &[(Stream, Pps)]) -> Vec<Change> {
    let mut changes: Vec<Change> = Vec::new();
    let mut actions: Vec<u32> = streams.iter().map(|(s, _)| s.action_count).collect();
    let mut starts: BinaryHeap<Reverse<(u64, usize)>> = BinaryHeap::new();
    let first = streams
        .iter()
        .enumerate()
        .filter(|(_, (s, _))| s.self_start);
    starts.extend(first.map(|(i, (s, _))| Reverse((nanos(s.isg), i))));
    while let Some(Reverse((at, index))) = starts.pop()
        && changes.len() < LONGEST_LOOK
    {
        let (stream, pps) = &streams[index];
        let Some(end) = bursts(stream, *pps, at, &mut changes) else {
            continue;
        };
        if let Some(next) = stream.follower(&mut actions[index]) {
            let isg = streams.get(next).map_or(0, |(s, _)| nanos(s.isg));
            starts.push(Reverse((end.saturating_add(isg), next)));
        }
    }
    changes
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "fractions of a nanosecond do not matter, nor what is 500 years away"
)]
fn nanos(micros: f64) -> u64 {
    (micros * 1e3) as u64
}

/// Adds the bursts of a stream that starts at `begin`; returns when the last one ends, which is
/// taken to be a gap after its last packet. None if there is no end.
fn bursts(stream: &Stream, pps: Pps, mut begin: u64, changes: &mut Vec<Change>) -> Option<u64> {
    let sum = sum(stream, pps);
    let (packets, bursts, ibg) = match stream.mode {
        Mode::Continuous => {
            changes.push((begin, sum));
            return None;
        }
        Mode::SingleBurst { packets } => (packets, 1, 0.0),
        Mode::MultiBurst {
            packets,
            bursts,
            ibg,
        } => (packets, bursts, ibg),
    };
    let length = nanos(packets as f64 * 1e6 / pps.0);
    let mut end = begin;
    for _ in 0..bursts {
        if changes.len() >= LONGEST_LOOK {
            return None;
        }
        end = begin.saturating_add(length.max(1));
        changes.extend([(begin, sum), (end, Sum::default().plus(sum, -1.0))]);
        begin = end.saturating_add(nanos(ibg));
    }
    Some(end)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::stream::StreamRate;

    fn stream(mode: Mode, isg: f64, pps: f64) -> (Stream, Pps) {
        let stream = Stream {
            mode,
            isg,
            ..Stream::new("s", vec![0; 60], StreamRate::Packets(Pps(pps)))
        };
        (stream, Pps(pps))
    }

    #[test]
    fn bursts_that_overlap_are_added() {
        let burst = Mode::SingleBurst { packets: 10 };
        // 10 packets of 1000 pps take 10 ms.
        let apart = [stream(burst, 0.0, 1000.0), stream(burst, 10_000.0, 500.0)];
        assert_eq!(Load::of(&apart).map(|l| l.base), Some(Pps(1000.0)));
        let together = [stream(burst, 0.0, 1000.0), stream(burst, 9_999.0, 500.0)];
        assert_eq!(Load::of(&together).map(|l| l.base), Some(Pps(1500.0)));
        let repeated = Mode::MultiBurst {
            packets: 10,
            bursts: 3,
            ibg: 100_000.0,
        };
        let meet = [stream(repeated, 0.0, 1000.0), stream(burst, 215_000.0, 5.0)];
        assert_eq!(Load::of(&meet).map(|l| l.base), Some(Pps(1005.0)));
    }

    #[test]
    fn a_chain_counts_where_it_is_fastest() {
        let burst = Mode::SingleBurst { packets: 2 };
        let mut streams = [stream(burst, 0.0, 10.0), stream(burst, 500_000.0, 70.0)];
        (streams[0].0.next, streams[1].0.next) = (Some(1), Some(0));
        streams[1].0.self_start = false;
        let load = Load::of(&streams).unwrap();
        assert_eq!((load.base, load.size), (Pps(70.0), 64.0));
        streams[0].0.next = None;
        assert_eq!(Load::of(&streams).map(|l| l.base), Some(Pps(10.0)));
        streams[0].0.dummy = true;
        assert_eq!(Load::of(&streams), None);
    }

    #[test]
    fn rates_that_are_fixed_are_not_scaled() {
        let mut streams = [
            stream(Mode::Continuous, 0.0, 1000.0),
            stream(Mode::Continuous, 0.0, 100.0),
        ];
        streams[1].0.mark = Some(crate::model::stream::Mark {
            group: 7,
            latency: true,
        });
        let load = Load::of(&streams).unwrap();
        assert_eq!((load.base, load.fixed), (Pps(1100.0), Pps(100.0)));
        assert_eq!(load.factor(Pps(5100.0)), 5.0);
        assert_eq!(load.factor(Pps(50.0)), 0.0);
        assert_eq!(load.factor(Pps::UNLIMITED), f64::INFINITY);
    }
}
