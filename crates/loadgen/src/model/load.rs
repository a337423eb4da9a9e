//! Offered load of a profile: the sum of its streams' rates, at the moment when that is highest.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use crate::model::stream::{Mode, Stream};
use crate::model::units::{Bits, Pps, WIRE_OVERHEAD};

/// The load of a profile. Every rate is resolved against it.
///
/// The moment with the most packets need not be the one with the most bits, and another rate of the
/// port may make others of them: so it knows all of them.
#[derive(Debug, Clone, PartialEq)]
pub struct Load {
    /// Highest sum of the streams' own rates at multiplier 1.
    pub base: Pps,
    /// Highest sum of those rates that no rate of the port scales.
    pub fixed: Pps,
    /// True if a rate of the port changes anything: some stream has a pace that follows it.
    pub is_scalable: bool,
    /// Mean frame size in bytes, weighted by rate, with frame check sequence, when most is on the
    /// wire at multiplier 1.
    pub size: f64,
    moments: Vec<Moment>,
}

/// Bursts that are looked at. The rates of a profile that loops are known long before.
const LONGEST_LOOK: usize = 10_000;

/// A time in nanoseconds, and the stream whose burst begins (or ends) then.
type Change = (u64, usize, bool);

/// Packets and bytes sent in a second.
#[derive(Debug, Clone, Copy, Default, PartialEq, PartialOrd)]
struct Flow {
    pps: f64,
    bytes: f64,
}

/// In what a flow is measured.
type Unit = fn(&Flow) -> f64;

impl Flow {
    fn packets(&self) -> f64 {
        self.pps
    }

    fn l2(&self) -> f64 {
        self.bytes * 8.0
    }

    fn l1(&self) -> f64 {
        (self.bytes + self.pps * WIRE_OVERHEAD) * 8.0
    }

    fn add(&mut self, pps: f64, size: f64) {
        self.pps += pps;
        self.bytes += pps * size;
    }
}

/// Rates at multiplier 1 of the streams that are active at one time: those that keep their rate,
/// and those that follow the port's.
#[derive(Debug, Clone, Copy, Default, PartialEq, PartialOrd)]
struct Moment {
    fixed: Flow,
    scaled: Flow,
}

impl Moment {
    fn of<'a>(active: impl Iterator<Item = &'a (Stream, Pps)>) -> Self {
        let mut moment = Self::default();
        for (stream, pps) in active.filter(|(stream, _)| !stream.dummy) {
            let part = if stream.is_fixed() {
                &mut moment.fixed
            } else {
                &mut moment.scaled
            };
            part.add(pps.0, stream.size());
        }
        moment
    }

    fn at(&self, factor: f64, unit: Unit) -> f64 {
        match unit(&self.scaled) {
            0.0 => unit(&self.fixed),
            scaled => unit(&self.fixed) + factor * scaled,
        }
    }
}

impl Load {
    /// The load of streams with their rates at multiplier 1. None if nothing is offered.
    pub fn of(streams: &[(Stream, Pps)]) -> Option<Self> {
        let is_scalable = streams.iter().any(|(stream, _)| stream.is_scalable());
        Self::new(moments(streams), is_scalable)
    }

    fn new(moments: Vec<Moment>, is_scalable: bool) -> Option<Self> {
        let on_wire = |m: &&Moment| m.at(1.0, Flow::l1);
        let fullest = moments
            .iter()
            .max_by(|a, b| on_wire(a).total_cmp(&on_wire(b)))?;
        let size = fullest.at(1.0, Flow::l2) / 8.0 / fullest.at(1.0, Flow::packets);
        let mut load = Self {
            base: Pps(0.0),
            fixed: Pps(0.0),
            is_scalable,
            size,
            moments,
        };
        load.base = load.pps(1.0);
        load.fixed = load.pps(0.0);
        (load.base.0 > 0.0 && load.base.is_limited()).then_some(load)
    }

    /// Packets a second with the streams' own rates times `factor`, at the moment when they are
    /// most.
    pub fn pps(&self, factor: f64) -> Pps {
        Pps(self.most(factor, Flow::packets))
    }

    /// Factor by which the streams' own rates have to be multiplied so that they come to `rate`;
    /// infinite for a rate without a limit.
    pub fn factor(&self, rate: Pps) -> f64 {
        self.factor_to(rate.0, Flow::packets)
    }

    /// Layer 1 bits a second at the moment when they are most, if packets come to `rate`.
    pub fn l1(&self, rate: Pps) -> Bits {
        Bits(self.most(self.factor(rate), Flow::l1))
    }

    /// Packets a second, if the most on layer 1 is `bits`. Below what no rate scales, and where none
    /// scales anything, in that proportion.
    pub fn l1_pps(&self, bits: Bits) -> Pps {
        self.pps_to(bits.0, Flow::l1)
    }

    /// The same of layer 2.
    pub fn l2_pps(&self, bits: Bits) -> Pps {
        self.pps_to(bits.0, Flow::l2)
    }

    fn most(&self, factor: f64, unit: Unit) -> f64 {
        let moments = self.moments.iter().map(|moment| moment.at(factor, unit));
        moments.fold(0.0, f64::max)
    }

    fn scales(&self) -> bool {
        self.moments.iter().any(|moment| moment.scaled.pps > 0.0)
    }

    fn factor_to(&self, wanted: f64, unit: Unit) -> f64 {
        if !self.scales() {
            return wanted / self.most(1.0, unit);
        }
        let scaled = self.moments.iter().filter(|m| m.scaled.pps > 0.0);
        let factors = scaled.map(|m| (wanted - unit(&m.fixed)) / unit(&m.scaled));
        factors.fold(f64::INFINITY, f64::min).max(0.0)
    }

    fn pps_to(&self, wanted: f64, unit: Unit) -> Pps {
        let fixed = self.most(0.0, unit);
        if self.scales() && wanted >= fixed {
            self.pps(self.factor_to(wanted, unit))
        } else {
            Pps(self.fixed.0 * wanted / fixed)
        }
    }
}

/// Every combination of streams that are active at one time, once.
fn moments(streams: &[(Stream, Pps)]) -> Vec<Moment> {
    let mut changes = changes(streams);
    changes.sort_by_key(|(at, ..)| *at);
    let mut active: BTreeMap<usize, u32> = BTreeMap::new();
    let mut moments = Vec::new();
    // At a moment when one burst ends and another begins, both are not counted.
    for changes in changes.chunk_by(|a, b| a.0 == b.0) {
        // What is active may be started again by another stream, but is active once.
        for (_, stream, _) in changes.iter().filter(|(.., begins)| *begins) {
            *active.entry(*stream).or_default() += 1;
        }
        for (_, stream, _) in changes.iter().filter(|(.., begins)| !begins) {
            if let Some(count) = active.get_mut(stream) {
                *count -= 1;
            }
        }
        active.retain(|_, count| *count > 0);
        moments.push(Moment::of(active.keys().map(|index| &streams[*index])));
    }
    moments.retain(|moment| *moment != Moment::default());
    moments.sort_by(|a, b| a.partial_cmp(b).unwrap_or(std::cmp::Ordering::Equal));
    moments.dedup();
    moments
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
        let Some(end) = bursts(index, (stream, *pps), at, &mut changes) else {
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
fn bursts(
    index: usize,
    (stream, pps): (&Stream, Pps),
    mut begin: u64,
    changes: &mut Vec<Change>,
) -> Option<u64> {
    let (packets, bursts, ibg) = match stream.mode {
        Mode::Continuous => {
            changes.push((begin, index, true));
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
        changes.extend([(begin, index, true), (end, index, false)]);
        begin = end.saturating_add(nanos(ibg));
    }
    Some(end)
}

#[cfg(test)]
impl Load {
    /// A load that is the same all the time: `base` packets a second of `size` bytes, `fixed` of
    /// them at their own rate.
    pub(crate) fn steady(base: f64, fixed: f64, is_scalable: bool, size: f64) -> Self {
        let mut moment = Moment::default();
        moment.fixed.add(fixed, size);
        moment.scaled.add(base - fixed, size);
        Self::new(vec![moment], is_scalable).expect("a load")
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

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

    /// Streams of a chain are never active together, however small and fast the one and however
    /// large and slow the other.
    #[test]
    fn a_chain_at_line_rate_fills_the_line_once() {
        let line = Bits(1e10);
        let chain = [60, 1514, 64].map(|len| {
            let stream = Stream {
                mode: Mode::SingleBurst { packets: 1 },
                ..Stream::new("s", vec![0; len], StreamRate::Percent(100.0))
            };
            let pps = stream.rate.pps(stream.size(), Some(line)).unwrap();
            (stream, pps)
        });
        let mut chain = chain.to_vec();
        (chain[0].0.next, chain[1].0.next) = (Some(1), Some(2));
        (chain[1].0.self_start, chain[2].0.self_start) = (false, false);
        let load = Load::of(&chain).unwrap();
        let own = load.l1(load.base).0 / line.0;
        assert!((own - 1.0).abs() < 1e-9, "{own}");
        assert_eq!(load.base.0.floor(), 14_880_952.0);
        assert!((load.l1_pps(line).0 / load.base.0 - 1.0).abs() < 1e-9);
    }

    /// A stream that starts another which is active does not make two of it.
    #[test]
    fn what_is_active_is_active_once() {
        let burst = Mode::SingleBurst { packets: 10 };
        let mut streams = [
            stream(burst, 0.0, 1000.0),
            stream(burst, 5000.0, 1000.0),
            stream(Mode::Continuous, 0.0, 70.0),
        ];
        (streams[0].0.next, streams[1].0.next) = (Some(2), Some(2));
        streams[2].0.self_start = false;
        // The two overlap, and then the second one and what follows both.
        assert_eq!(Load::of(&streams).unwrap().base, Pps(2000.0));
        streams[1].0.isg = 20_000.0;
        assert_eq!(Load::of(&streams).unwrap().base, Pps(1070.0));
    }

    /// A chain of bursts that goes round, and beside it a stream without an end.
    fn any_profile() -> impl Strategy<Value = Vec<(Stream, Pps)>> {
        let burst = (60..1515usize, 1.0..1e5f64, 1..20u64, 0.0..1e4f64);
        let chain = prop::collection::vec(burst, 1..6);
        (chain, 60..1515usize, 1.0..1e5f64, any::<bool>(), 0..3u32).prop_map(
            |(chain, len, pps, latency, rounds)| {
                let last = chain.len() - 1;
                let chain = chain.into_iter().enumerate();
                let chain = chain.map(|(i, (len, pps, packets, isg))| {
                    let (mut stream, pps) = stream(Mode::SingleBurst { packets }, isg, pps);
                    stream.packet = vec![0; len];
                    stream.self_start = i == 0;
                    (stream.next, stream.action_count) = if i == last {
                        (Some(0), rounds + 1)
                    } else {
                        (Some(i + 1), 0)
                    };
                    (stream, pps)
                });
                let mut all: Vec<_> = chain.collect();
                let (mut beside, pps) = stream(Mode::Continuous, 0.0, pps);
                beside.packet = vec![0; len];
                beside.mark = latency.then_some(crate::model::stream::Mark { group: 1, latency });
                all.push((beside, pps));
                all
            },
        )
    }

    proptest! {
        /// Of a chain, the schedule sends one stream at a time: at any factor the most is that of
        /// the one which has the most, and what goes beside it.
        #[test]
        fn the_most_is_that_of_what_the_schedule_sends(
            streams in any_profile(),
            factor in 0.1..10.0f64,
        ) {
            let load = Load::of(&streams).unwrap();
            let mut schedule = crate::schedule::Schedule::new(streams.iter().map(|(s, p)| (s, *p)));
            schedule.start(crate::clock::Nanos(0), factor);
            let (beside, mut most) = (streams.len() - 1, [0.0f64; 3]);
            let units: [Unit; 3] = [Flow::packets, Flow::l2, Flow::l1];
            let flow = |index: usize| {
                let (stream, pps) = &streams[index];
                let pps = if stream.is_fixed() { pps.0 } else { pps.0 * factor };
                let mut flow = Flow::default();
                flow.add(pps, stream.size());
                units.map(|unit| unit(&flow))
            };
            let all: std::collections::BTreeSet<usize> = (0..20_000)
                .map_while(|_| schedule.next(crate::clock::Nanos(u64::MAX)))
                .map(|(stream, _)| stream)
                .collect();
            // The stream beside may be so fast that the chain is not over yet; it has no end then.
            prop_assume!(all.len() == streams.len());
            for stream in all.into_iter().filter(|stream| *stream != beside) {
                for (most, one) in most.iter_mut().zip(flow(stream)) {
                    *most = most.max(one);
                }
            }
            for ((unit, most), beside) in units.into_iter().zip(most).zip(flow(beside)) {
                let right = most + beside;
                let found = load.most(factor, unit);
                prop_assert!((found / right - 1.0).abs() < 1e-9, "{found} is not {right}");
                let back = load.factor_to(found, unit);
                prop_assert!((back / factor - 1.0).abs() < 1e-6, "{back} is not {factor}");
            }
        }
    }
}
