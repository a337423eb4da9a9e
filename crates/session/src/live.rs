//! XDP live frames as a generator, and the counting XDP program as a receiver.
//!
//! A profile that the program cannot send is [`LiveError::DoesNotFit`], and has to be sent another
//! way.

use std::sync::OnceLock;

use loadgen::clock::{Clock, Monotonic};
use loadgen::device::{Count, Failure, Pacing, Receiver, Transmitter, since};
use loadgen::histogram::{self, Times};
use loadgen::live_plan;
use loadgen::model::fields::Op;
use loadgen::model::stream::Stream;
use loadgen::model::units::{FCS, Pps};
use loadgen::receive;
use loadgen::send::BACKLOG;
use xdp::{Live, LiveError, LivePlan, LiveStream, MAX_ROUND, Rate, Sink, StreamCount, Var};

/// The highest rate that the program takes.
const HIGHEST: Pps = Pps(1e8);

/// Sends live frames through one interface.
pub struct Generator {
    live: Live,
    /// The rate that no other one changes, if it has one.
    own_rate: Option<Pps>,
    /// Counts of what was sent as a warm-up.
    before: Vec<Count>,
}

impl Generator {
    /// Prepares one generator for all these interfaces, which does not send yet. The streams of
    /// each are addressed, and have their rates at multiplier 1. `rates` are those that they are to
    /// be sent at, as far as known.
    ///
    /// # Errors
    /// [`LiveError::DoesNotFit`] if only another generator can send these streams; otherwise what
    /// the kernel refuses.
    pub fn open(
        ways: &[(u32, &[(Stream, Pps)])],
        rates: &[Pps],
        cpu: Option<usize>,
    ) -> Result<Vec<Generator>, LiveError> {
        let plans = ways
            .iter()
            .map(|(ifindex, streams)| plan(*ifindex, streams, rates));
        let (plans, own_rates): (Vec<_>, Vec<_>) =
            plans.collect::<Result<Vec<_>, _>>()?.into_iter().unzip();
        let own = own_rates.iter().copied().flatten();
        let mut rates = rates.iter().copied().chain(own);
        if let Some(rate) = rates.find(|rate| !is_exact(*rate)) {
            return Err(LiveError::DoesNotFit {
                why: format!(
                    "a rate of {rate:.3}; it takes whole packets a second, up to {HIGHEST:.0}"
                ),
            });
        }
        let generators = Live::open(&plans, cpu)?.into_iter().zip(own_rates);
        Ok(generators
            .map(|(live, own_rate)| Generator {
                live,
                own_rate,
                before: Vec::new(),
            })
            .collect())
    }

    /// True if the kernel keeps the program between two runs.
    pub fn is_registered(&self) -> bool {
        self.live.is_registered()
    }
}

/// The plan for an interface, and the rate that no other one changes.
fn plan(
    ifindex: u32,
    streams: &[(Stream, Pps)],
    rates: &[Pps],
) -> Result<(LivePlan, Option<Pps>), LiveError> {
    let plan = live_plan::plan(streams, rates, MAX_ROUND as u32)
        .map_err(|why| LiveError::DoesNotFit { why })?;
    let live = LivePlan {
        ifindex,
        streams: plan.streams.into_iter().map(live_stream).collect(),
        packets: plan.packets,
        epoch: epoch(),
        burst: BACKLOG,
    };
    Ok((live, plan.rate))
}

/// What the kernel's clock was when that of marks was 0.
fn epoch() -> u64 {
    // One for all, since what separates two would be in every latency. The clocks are read one after
    // the other: the least of several differences has the least between them.
    static EPOCH: OnceLock<u64> = OnceLock::new();
    *EPOCH.get_or_init(|| {
        let clock = Monotonic::new();
        let read = || {
            let shown = clock.now().0;
            xdp::monotonic().saturating_sub(shown)
        };
        (0..16).map(|_| read()).min().unwrap_or_default()
    })
}

fn live_stream(stream: live_plan::LiveStream) -> LiveStream {
    let seed = stream.seed;
    let vars = stream.fields.into_iter().map(|field| Var {
        at: field.at,
        width: field.width,
        op: match field.op {
            Op::Inc => xdp::Op::Inc,
            Op::Dec => xdp::Op::Dec,
            Op::Random => xdp::Op::Random(seed),
        },
        init: field.init,
        min: field.min,
        max: field.max,
        step: field.step,
    });
    LiveStream {
        frame: stream.frame,
        weight: stream.weight,
        vars: vars.collect(),
        ip4_checksum_at: stream.ip4_checksum_at,
        mark_at: stream.mark_at,
    }
}

impl Generator {
    /// The rate that it sends at where `rate` is asked for.
    fn paced(&self, rate: Pps) -> Pps {
        let changes = rate.0 > 0.0 && rate.is_limited();
        self.own_rate.filter(|_| changes).unwrap_or(rate)
    }

    fn all_sent(&self) -> Vec<Count> {
        self.live.sent().into_iter().map(with_fcs).collect()
    }
}

impl Transmitter for Generator {
    fn start(&mut self, rate: Pps) -> Result<(), Failure> {
        Ok(self.live.start(whole(self.paced(rate)))?)
    }

    fn nearest(&self, rate: Pps) -> Pps {
        nearest(rate)
    }

    fn set_rate(&mut self, rate: Pps) {
        self.live.set_rate(whole(self.paced(rate)));
    }

    fn due(&self) -> u64 {
        self.live.due()
    }

    fn sent(&self) -> Vec<Count> {
        since(self.all_sent(), &self.before)
    }

    fn pacing(&self) -> Pacing {
        Pacing {
            gaps: times(self.live.gaps()),
            delay: None,
        }
    }

    fn start_over(&mut self) {
        self.before = self.all_sent();
    }

    fn is_over(&self) -> bool {
        self.live.is_over()
    }

    fn stop(&mut self) -> Result<(), Failure> {
        self.live.stop()?;
        Ok(())
    }
}

/// True if the program sends at `rate`, give or take a thousandth.
fn is_exact(rate: Pps) -> bool {
    let off = (nearest(rate).0 - rate.0).abs();
    !rate.is_limited() || off <= 1e-3 * rate.0
}

/// The program's rate is a whole number of packets a second, and 0 only if it is to pause.
fn nearest(rate: Pps) -> Pps {
    if rate.is_limited() && rate.0 > 0.0 {
        Pps(rate.0.round().clamp(1.0, HIGHEST.0))
    } else {
        rate
    }
}

fn whole(rate: Pps) -> Rate {
    if rate.is_limited() {
        Rate::Pps(nearest(rate).0 as u32)
    } else {
        Rate::Unpaced
    }
}

fn times(noted: xdp::Times) -> Times {
    let xdp::Times {
        buckets,
        sum,
        min,
        max,
    } = noted;
    Times::of(&buckets, xdp::TIME_BITS, sum as f64, min, max)
}

fn with_fcs(count: StreamCount) -> Count {
    Count {
        packets: count.packets,
        bytes: count.bytes + FCS as u64 * count.packets,
    }
}

/// Counts packets in the XDP program of an interface.
pub struct Counter {
    sink: Sink,
    /// Counts of what was received as a warm-up.
    before: Vec<Count>,
}

impl Counter {
    /// Attaches the program to an interface. Each of the `streams` says if its packets measure
    /// latency. Packets of none of them are left to the kernel.
    ///
    /// # Errors
    /// If another program is attached, if there are too many streams, or what the kernel refuses.
    pub fn open(ifindex: u32, streams: &[(receive::Match, bool)]) -> Result<Counter, xdp::Error> {
        let matches: Vec<xdp::Match> = streams
            .iter()
            .map(|(m, latency)| xdp::Match {
                latency: *latency,
                version: match m.version {
                    receive::Version::Ip4 => 4,
                    receive::Version::Ip6 => 6,
                },
                length: m.length,
                protocol: m.protocol,
                src: m.source,
                dst: m.destination,
                sport: m.ports.map_or(0, |ports| (ports >> 16) as u16),
                dport: m.ports.map_or(0, |ports| ports as u16),
            })
            .collect();
        let sink = Sink::attach(ifindex, &matches, epoch())?;
        Ok(Counter {
            sink,
            before: Vec::new(),
        })
    }
}

impl Counter {
    fn all_counts(&self) -> Vec<Count> {
        // The map is ours and its rows exist, so reading them does not fail.
        let counts = self.sink.counts().unwrap_or_default();
        counts.into_iter().map(with_fcs).collect()
    }
}

impl Receiver for Counter {
    fn counts(&self) -> Vec<Count> {
        since(self.all_counts(), &self.before)
    }

    fn latencies(&self) -> Vec<Option<Times>> {
        let noted = self.sink.latencies().into_iter();
        noted.map(|noted| noted.map(times)).collect()
    }

    fn times(&self) -> Option<histogram::Counts> {
        let noted = self.sink.latencies().into_iter().flatten();
        let counts = noted
            .map(|noted| histogram::Counts::new(noted.buckets, xdp::TIME_BITS, noted.sum as f64));
        counts.reduce(histogram::Counts::and)
    }

    fn start_over(&mut self) {
        self.before = self.all_counts();
        self.sink.forget_latencies();
    }

    fn other(&self) -> Count {
        Count {
            packets: self.sink.other().unwrap_or_default(),
            bytes: 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_rates_do_not_fit() {
        for rate in [1.0, 7.0, 500.4, 1_488_095.24, 1e8, f64::INFINITY] {
            assert!(is_exact(Pps(rate)), "{rate}");
        }
        for rate in [0.2, 1.5, 200.3, 1.01e8] {
            assert!(!is_exact(Pps(rate)), "{rate}");
            let stream = loadgen::model::stream::StreamRate::Packets(Pps(1.0));
            let stream = Stream::new("s", vec![0; 60], stream);
            let ways: [(u32, &[_]); 1] = [(u32::MAX, &[(stream, Pps(1.0))])];
            let refused = Generator::open(&ways, &[Pps(1.0), Pps(rate)], None).map(drop);
            assert!(
                matches!(refused, Err(LiveError::DoesNotFit { .. })),
                "{rate}"
            );
        }
    }

    #[test]
    fn rates_are_whole() {
        assert_eq!(
            [0.0, 0.2, 200.3, 2e8, f64::INFINITY].map(|rate| nearest(Pps(rate)).0),
            [0.0, 1.0, 200.0, 1e8, f64::INFINITY]
        );
        assert_eq!(whole(Pps(0.2)), Rate::Pps(1));
        assert_eq!(whole(Pps(0.0)), Rate::Pps(0));
        assert_eq!(whole(Pps(1.5e6)), Rate::Pps(1_500_000));
        assert_eq!(whole(Pps::UNLIMITED), Rate::Unpaced);
    }
}
