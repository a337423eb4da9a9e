//! The load test: warm-up, a staircase up to a target rate, hold; sampled at a steady interval.

use std::time::Duration;

use serde::Serialize;

use crate::clock::{Clock, Nanos};
use crate::device::{Failure, Path};
use crate::point::Point;
use crate::threshold::Threshold;
use crate::trial::{self, Reading, SHORTFALL, Trial, WayResult};
use crate::units::{Bits, Pps, WIRE_OVERHEAD};

/// What to do. Rates are each way.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Plan {
    /// Rate of the warm-up.
    pub warmup_rate: Pps,
    /// Length of the warm-up; nothing of it is reported.
    pub warmup: Duration,
    /// Rate at the end of the ramp, and of the hold.
    pub target: Pps,
    /// Length of the ramp.
    pub ramp: Duration,
    /// Steps of the staircase from nothing to the target; 1 or more.
    pub steps: u32,
    /// Length of the hold.
    pub hold: Duration,
    /// Distance of two samples.
    pub sample: Duration,
}

impl Default for Plan {
    /// The lengths that T-Rex users know: 30 s warm-up at 1 kpps, 600 s in 100 steps, 30 s hold, a sample a second.
    fn default() -> Self {
        Plan {
            warmup_rate: Pps(1000.0),
            warmup: Duration::from_secs(30),
            target: Pps(0.0),
            ramp: Duration::from_secs(600),
            steps: 100,
            hold: Duration::from_secs(30),
            sample: Duration::from_secs(1),
        }
    }
}

/// One direction in one sample.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct WaySample {
    /// Rate wanted in the interval, packets a second.
    pub offered_pps: f64,
    /// Rate sent, packets a second.
    pub tx_pps: f64,
    /// Rate that came back, packets a second.
    pub rx_pps: f64,
    /// Sent on layer 2, bits a second.
    pub tx_bps: f64,
    /// Came back on layer 2, bits a second.
    pub rx_bps: f64,
    /// Sent on layer 1, bits a second.
    pub tx_l1_bps: f64,
    /// Came back on layer 1, bits a second.
    pub rx_l1_bps: f64,
    /// Share of what was sent in the interval that did not come back in it, 0.0 to 1.0.
    pub loss: f64,
    /// Counts since the ramp began.
    pub total: WayResult,
}

/// All directions at one moment.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Sample {
    /// Seconds since the ramp began.
    pub at: f64,
    /// Each direction.
    pub ways: Vec<WaySample>,
    /// No generator fell short of the offer by more than 0.1 % in this interval.
    pub valid: bool,
}

/// The result of a ramp.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Ramp {
    /// In order of time.
    pub samples: Vec<Sample>,
    /// The whole ramp and hold as one trial, packets that came late included.
    pub whole: Trial,
}

/// What a ramp says about the highest rate. Rates are sums of all ways, in packets a second.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Highest {
    /// The rate that as many samples pass as fail; no higher than the highest that passed.
    pub max_pps: f64,
    /// It lies between these with a confidence of 95 %.
    pub interval_pps: (f64, f64),
    /// Loss in the sample that passed next to it, 0.0 to 1.0.
    pub loss: f64,
}

impl Sample {
    fn sum(&self, of: impl Fn(&WaySample) -> f64) -> f64 {
        self.ways.iter().map(of).sum()
    }

    /// Rate sent, all ways, in packets a second.
    #[must_use]
    pub fn sent_pps(&self) -> f64 {
        self.sum(|way| way.tx_pps)
    }

    /// Rate that came back, all ways, in packets a second.
    #[must_use]
    pub fn received_pps(&self) -> f64 {
        self.sum(|way| way.rx_pps)
    }

    /// Share that a way lost. What is under way `in_flight` seconds is more when the rate rises, and is not lost.
    fn loses(&self, way: usize, before: Option<&Sample>, in_flight: f64) -> f64 {
        let slower = before.map_or(0.0, |sample| sample.ways[way].tx_pps);
        let length = self.at - before.map_or(0.0, |sample| sample.at);
        let way = self.ways[way];
        if way.rx_pps <= 0.0 {
            return 1.0;
        }
        let rising = in_flight * (way.tx_pps - slower) / length.max(f64::MIN_POSITIVE);
        1.0 - (way.rx_pps + rising) / way.tx_pps
    }
}

impl Ramp {
    /// Each sample as a point, all ways in sum.
    #[must_use]
    pub fn points(&self) -> Vec<Point> {
        let mut before = 0.0;
        let point = |sample: &Sample| {
            let (sent, received) = (sample.sent_pps(), sample.received_pps());
            Point {
                offered_pps: sample.sum(|way| way.offered_pps),
                sent_pps: sent,
                forwarded_pps: received,
                loss: if sent > 0.0 {
                    (1.0 - received / sent).max(0.0)
                } else {
                    0.0
                },
                valid: sample.valid,
                seconds: sample.at - std::mem::replace(&mut before, sample.at),
            }
        };
        self.samples.iter().map(point).collect()
    }

    /// The highest rate at which no way loses more than the share `allowed`: what all samples say together, not the
    /// luckiest of them. None if no sample passed.
    #[must_use]
    pub fn max_rate(&self, allowed: f64) -> Option<Highest> {
        let ways = self.whole.ways.len();
        let in_flight: Vec<f64> = (0..ways).map(|way| self.in_flight(way)).collect();
        let (mut verdicts, mut before) = (Vec::new(), None);
        for sample in &self.samples {
            if sample.valid && sample.sent_pps() > 0.0 {
                let losses = (0..ways).map(|way| sample.loses(way, before, in_flight[way]));
                verdicts.push((sample, losses.fold(0.0, f64::max)));
            }
            before = Some(sample);
        }
        let rates = || verdicts.iter().map(|(sample, _)| sample.sent_pps());
        let lowest = rates().fold(f64::INFINITY, f64::min);
        let highest = rates().fold(0.0, f64::max);
        let passed = || verdicts.iter().filter(|v| v.1 <= allowed);
        let most = passed().map(|v| v.0.sent_pps()).reduce(f64::max)?;
        // Beyond its ends the ramp says nothing.
        let mut threshold = Threshold::between(lowest * 0.9, highest * 1.1);
        for (sample, lost) in &verdicts {
            threshold.learn(sample.sent_pps(), *lost <= allowed);
        }
        let max_pps = threshold.median().min(most);
        let distance = |v: &&(&Sample, f64)| (v.0.sent_pps() - max_pps).abs();
        let (_, loss) = passed().min_by(|a, b| distance(a).total_cmp(&distance(b)))?;
        let (low, high) = threshold.interval();
        Some(Highest {
            max_pps,
            interval_pps: (low.min(max_pps), high.min(highest)),
            loss: *loss,
        })
    }

    /// How long packets of a way are under way while nothing is lost, in seconds.
    fn in_flight(&self, way: usize) -> f64 {
        let ways = self.samples.iter().filter_map(|s| s.ways.get(way));
        let sending = ways.filter(|way| way.tx_pps > 0.0);
        let times = sending.map(|way| way.total.lost() as f64 / way.tx_pps);
        times.reduce(f64::min).unwrap_or(0.0)
    }
}

/// Packets that sampling may find on their way from schedule to port; they are not missing.
const UNDERWAY: u64 = 256;

impl WaySample {
    fn new(interval: &WayResult, total: WayResult, seconds: f64) -> WaySample {
        let per_second = |n: f64| n / seconds.max(1e-9);
        let l1 =
            |c: crate::device::Count| (c.bytes as f64 + WIRE_OVERHEAD * c.packets as f64) * 8.0;
        let (sent, received) = (interval.sent, interval.received);
        WaySample {
            offered_pps: per_second(interval.offered as f64),
            tx_pps: per_second(sent.packets as f64),
            rx_pps: per_second(received.packets as f64),
            tx_bps: per_second(sent.bytes as f64 * 8.0),
            rx_bps: per_second(received.bytes as f64 * 8.0),
            tx_l1_bps: per_second(l1(sent)),
            rx_l1_bps: per_second(l1(received)),
            loss: interval.loss(),
            total,
        }
    }

    /// Share of a line in percent that was sent.
    #[must_use]
    pub fn tx_util(&self, line: Bits) -> f64 {
        self.tx_l1_bps / line.0 * 100.0
    }

    /// Share of a line in percent that came back.
    #[must_use]
    pub fn rx_util(&self, line: Bits) -> f64 {
        self.rx_l1_bps / line.0 * 100.0
    }
}

fn is_whole(interval: &WayResult) -> bool {
    let missing = interval
        .offered
        .saturating_sub(interval.sent.packets)
        .saturating_sub(UNDERWAY);
    missing as f64 <= SHORTFALL * interval.offered as f64
}

impl Plan {
    /// Rate at `at` after the ramp's begin, each way.
    #[must_use]
    pub fn rate(&self, at: Duration) -> Pps {
        let steps = self.steps.max(1);
        if at >= self.ramp {
            return self.target;
        }
        let step = (at.as_secs_f64() / self.ramp.as_secs_f64() * f64::from(steps)) as u32 + 1;
        Pps(self.target.0 * f64::from(step.min(steps)) / f64::from(steps))
    }

    /// Begin of step `index` (from 0) after the ramp's begin.
    fn step_at(&self, index: u32) -> Duration {
        self.ramp
            .mul_f64(f64::from(index) / f64::from(self.steps.max(1)))
    }

    /// Warm-up, ramp and hold together.
    #[must_use]
    pub fn length(&self) -> Duration {
        self.warmup + self.ramp + self.hold
    }
}

/// Carries out `plan`; `watch` sees each sample when it is taken.
///
/// # Errors
/// If a generator cannot send; all are stopped then.
pub fn run(
    plan: &Plan,
    paths: &mut [Path],
    clock: &dyn Clock,
    watch: &mut dyn FnMut(&Sample),
) -> Result<Ramp, Failure> {
    if !plan.warmup.is_zero() {
        trial::run(paths, plan.warmup_rate, plan.warmup, clock)?;
    }
    let before = Reading::all(paths);
    let begin = clock.now();
    let result = climb(plan, paths, clock, &before, watch);
    let (seconds, _, stopped) = trial::stop(paths, begin, clock);
    let samples = result?;
    stopped?;
    trial::settle(paths, clock);
    let ways = Reading::all(paths)
        .iter()
        .zip(&before)
        .map(|(now, before)| now.since(before))
        .collect();
    Ok(Ramp {
        samples,
        whole: trial::judge(plan.target, seconds, ways),
    })
}

/// Sends ramp and hold. The transmitters still send when it returns.
fn climb(
    plan: &Plan,
    paths: &mut [Path],
    clock: &dyn Clock,
    before: &[Reading],
    watch: &mut dyn FnMut(&Sample),
) -> Result<Vec<Sample>, Failure> {
    let begin = clock.now();
    let end = begin.after(plan.ramp + plan.hold);
    let sample = plan.sample.max(Duration::from_millis(1));
    trial::start(paths, plan.rate(Duration::ZERO))?;
    let (mut samples, mut step) = (Vec::new(), 1);
    let (mut last, mut last_at) = (before.to_vec(), begin);
    let mut next_sample = begin.after(sample);
    loop {
        let next_step = if step < plan.steps {
            begin.after(plan.step_at(step))
        } else {
            Nanos(u64::MAX)
        };
        let next = next_step.min(next_sample).min(end);
        clock.sleep_until(next);
        if next == next_step {
            let rate = plan.rate(plan.step_at(step).max(next.since(begin)));
            paths.iter_mut().for_each(|path| path.tx.set_rate(rate));
            step += 1;
        }
        if next == next_sample {
            let (now, readings) = (clock.now(), Reading::all(paths));
            let taken = take(begin, now, now.since(last_at), before, &last, &readings);
            watch(&taken);
            samples.push(taken);
            (last, last_at) = (readings, now);
            next_sample = next_sample.after(sample);
        }
        if next == end {
            return Ok(samples);
        }
    }
}

fn take(
    begin: Nanos,
    now: Nanos,
    length: Duration,
    first: &[Reading],
    last: &[Reading],
    readings: &[Reading],
) -> Sample {
    let mut valid = true;
    let ways = readings
        .iter()
        .zip(first.iter().zip(last))
        .map(|(reading, (first, last))| {
            let interval = reading.since(last);
            valid &= is_whole(&interval);
            WaySample::new(&interval, reading.since(first), length.as_secs_f64())
        });
    let ways = ways.collect();
    Sample {
        at: now.since(begin).as_secs_f64(),
        ways,
        valid,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulated::{Device, Simulation};

    fn plan() -> Plan {
        Plan {
            target: Pps(1e6),
            warmup: Duration::from_secs(2),
            ramp: Duration::from_secs(20),
            steps: 40,
            hold: Duration::from_secs(5),
            ..Plan::default()
        }
    }

    fn ramp(device: Device, ways: usize) -> Ramp {
        let simulation = Simulation::new(device);
        let mut seen = 0;
        let ramp = run(
            &plan(),
            &mut simulation.paths(ways),
            &simulation,
            &mut |_| seen += 1,
        )
        .unwrap();
        assert_eq!(seen, ramp.samples.len());
        ramp
    }

    #[test]
    fn the_staircase_rises_to_the_target_and_holds() {
        let ramp = ramp(
            Device {
                capacity: 5e6,
                ..Device::default()
            },
            1,
        );
        assert_eq!(ramp.samples.len(), 25);
        for (i, sample) in ramp.samples.iter().enumerate() {
            assert!((sample.at - (i + 1) as f64).abs() < 1e-6);
            let wanted = if i < 20 {
                1e6 * (2.0 * i as f64 + 1.5) / 40.0
            } else {
                1e6
            };
            assert!(
                (sample.ways[0].tx_pps / wanted - 1.0).abs() < 1e-3,
                "{i}: {sample:?}"
            );
            assert!(sample.valid);
        }
        assert!(
            ramp.whole.valid && ramp.whole.loss() == 0.0,
            "{:?}",
            ramp.whole
        );
        let last = ramp.samples[24].ways[0];
        assert!((last.tx_util(Bits(672e6)) - 100.0).abs() < 0.1, "{last:?}");
        assert!((last.tx_l1_bps / last.tx_bps - 84.0 / 64.0).abs() < 1e-9);
    }

    #[test]
    fn loss_is_seen_where_it_begins() {
        let ramp = ramp(
            Device {
                capacity: 5e5,
                ..Device::default()
            },
            2,
        );
        assert!(ramp.samples[8].ways[1].loss < 0.2);
        assert!((ramp.samples[24].ways[1].loss - 0.5).abs() < 1e-3);
        assert!(ramp.samples.iter().all(|s| s.valid) && ramp.whole.valid);
        assert_eq!(ramp.whole.ways.len(), 2);
    }

    /// One second that a queue made lucky, far above where loss begins, is not the result.
    #[test]
    fn the_highest_rate_is_what_all_samples_say() {
        let device = Device {
            capacity: 5e5,
            ..Device::default()
        };
        let mut ramp = ramp(device, 1);
        let highest = ramp.max_rate(0.001).unwrap();
        assert!(
            (0.96..1.01).contains(&(highest.max_pps / 5e5)),
            "{highest:?}"
        );
        let (low, high) = highest.interval_pps;
        assert!(low < 5e5 && 5e5 < high, "{highest:?}");
        ramp.samples[17].ways[0].rx_pps = ramp.samples[17].ways[0].tx_pps;
        let lucky = ramp.max_rate(0.001).unwrap();
        assert!(
            (lucky.max_pps / highest.max_pps - 1.0).abs() < 0.06,
            "{lucky:?}"
        );
        assert!(lucky.loss <= 0.001);
    }

    #[test]
    fn a_device_that_keeps_up_is_as_fast_as_the_ramp_goes() {
        let device = Device {
            capacity: 5e6,
            ..Device::default()
        };
        let ramp = ramp(device, 2);
        let highest = ramp.max_rate(0.001).unwrap();
        assert!((highest.max_pps / 2e6 - 1.0).abs() < 0.001, "{highest:?}");
        let nothing = Ramp {
            samples: Vec::new(),
            ..ramp
        };
        assert_eq!(nothing.max_rate(0.001), None);
    }

    /// A way that loses is not made up for by one that does not.
    #[test]
    fn each_way_counts() {
        let device = Device {
            capacity: 5e6,
            ..Device::default()
        };
        let mut ramp = ramp(device, 2);
        for sample in &mut ramp.samples {
            sample.ways[1].rx_pps *= 0.9985;
        }
        assert_eq!(ramp.max_rate(0.001), None);
    }

    #[test]
    fn short_sending_is_marked_and_is_no_loss() {
        let ramp = ramp(
            Device {
                capacity: 5e6,
                ceiling: 6e5,
                ..Device::default()
            },
            1,
        );
        assert!(ramp.samples[5].valid && !ramp.samples[24].valid);
        assert!(
            !ramp.whole.valid && ramp.whole.why.contains("short"),
            "{}",
            ramp.whole.why
        );
        assert_eq!(ramp.whole.loss(), 0.0);
    }

    #[test]
    fn a_plan_of_nothing_ends() {
        let simulation = Simulation::new(Device::default());
        let zero = Duration::ZERO;
        let plan = Plan {
            warmup: zero,
            ramp: zero,
            hold: zero,
            steps: 0,
            sample: zero,
            ..Plan::default()
        };
        let ramp = run(&plan, &mut simulation.paths(1), &simulation, &mut |_| {}).unwrap();
        assert!(ramp.samples.is_empty() && !ramp.whole.valid);
    }
}
