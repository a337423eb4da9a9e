//! A trial: send at a constant rate for a while, wait for packets still on their way, compare.

use std::time::Duration;

use serde::Serialize;

use crate::clock::{Clock, Nanos};
use crate::device::{Count, Failure, Path};
use crate::measure::point::Point;
use crate::measure::steady::{self, Steady, Way};
use crate::measure::way::{LATE, Reading, WayResult, between, loss};
use crate::model::units::{Bits, Pps, WIRE_OVERHEAD};

/// Longest wait for packets still on their way (RFC 2544 section 23: 2 seconds).
pub(crate) const RESIDUAL: Duration = Duration::from_secs(2);
/// Longest wait for those that come later still; they count as lost.
const LEFTOVERS: Duration = Duration::from_secs(30);
/// Interval of looking for more of them, and the time without any that ends the wait.
const LOOK: Duration = Duration::from_millis(10);
const SILENCE: Duration = Duration::from_millis(50);

/// The result of a trial.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Trial {
    /// Rate offered in each direction; unlimited if flat out.
    pub rate: Pps,
    /// Time of sending in seconds.
    pub seconds: f64,
    /// Each direction.
    pub ways: Vec<WayResult>,
    /// Rate that came back, all directions; of a device that does not keep up, while packets were
    /// sent.
    pub forwarded: Pps,
    /// Packets that each direction of the device held: those that it had more when sending ended
    /// than when the first were back. They came back later.
    pub held: Vec<u64>,
    /// True if the generator sent what was offered; only then is loss the device's.
    pub valid: bool,
    /// Reason why it is not valid; empty if it is.
    pub why: String,
    /// True if sending ran late by more than [`LATE`]: then it is not valid.
    pub late: bool,
    /// True if it ended early because somebody asked for that.
    pub interrupted: bool,
}

impl Trial {
    fn packets(&self, of: impl Fn(&WayResult) -> u64) -> u64 {
        self.ways.iter().map(of).sum()
    }

    fn per_second(&self, packets: u64) -> Pps {
        Pps(if self.seconds > 0.0 {
            packets as f64 / self.seconds
        } else {
            0.0
        })
    }

    /// Packets sent, all directions.
    pub fn sent(&self) -> u64 {
        self.packets(|w| w.sent.packets)
    }

    /// Packets that came back, all directions.
    pub fn received(&self) -> u64 {
        self.packets(|w| w.received.packets)
    }

    /// Takes what `ways` did while packets were sent. Flat out there is no schedule to measure the
    /// time by, and a generator may have started before we noticed, so their rates count.
    pub(crate) fn keep_to(&mut self, ways: &[Way]) {
        let sent: f64 = ways.iter().map(|way| way.sent).sum();
        let flat_out = !self.rate.is_limited() && sent > 0.0;
        if flat_out {
            self.seconds = self.sent() as f64 / sent;
        }
        let results = self.ways.iter().zip(ways);
        let back = results.map(|(result, way)| {
            let is_behind = way.held > 0 || steady::is_told(result.lost() as f64, way.sent);
            if flat_out || is_behind {
                way.back
            } else {
                self.per_second(result.received.packets).0
            }
        });
        self.forwarded = Pps(back.sum());
        self.held = ways.iter().map(|way| way.held).collect();
    }

    /// Notes whether sending, which took `seconds` at least, ran late: whether its schedule has
    /// packets for less time.
    pub(crate) fn keep_time(&mut self, seconds: f64) {
        let least = self.ways.iter().map(|way| way.offered).min();
        // Of a slow schedule a packet or two may just not be due.
        let scheduled = (least.unwrap_or(0) + 2) as f64 / self.rate.0;
        if !self.rate.is_limited() || seconds - scheduled <= LATE * seconds {
            return;
        }
        self.seconds = self.seconds.max(seconds);
        self.forwarded = self.per_second(self.received());
        let why = format!(
            "sending was held up: it took {seconds:.3} s for the packets of {scheduled:.3} s"
        );
        self.why = match self.why.is_empty() {
            true => why,
            false => format!("{}; {why}", self.why),
        };
        (self.late, self.valid) = (true, false);
    }

    /// Rate offered, all directions; flat out, the rate sent.
    pub fn offered_pps(&self) -> Pps {
        if self.rate.is_limited() {
            Pps(self.rate.0 * self.ways.len() as f64)
        } else {
            self.sent_pps()
        }
    }

    /// Rate sent, all directions.
    pub fn sent_pps(&self) -> Pps {
        self.per_second(self.sent())
    }

    /// Bits a second sent, on layer 1, all directions.
    pub fn l1(&self) -> Bits {
        let bytes = self.packets(|w| w.sent.bytes) as f64 + WIRE_OVERHEAD * self.sent() as f64;
        Bits(if self.seconds > 0.0 {
            bytes * 8.0 / self.seconds
        } else {
            0.0
        })
    }

    /// Share of all packets sent that was lost, from 0.0 to 1.0.
    pub fn loss(&self) -> f64 {
        loss(self.sent(), self.received())
    }

    /// Packets that each direction lost or held, and those that it sent.
    pub fn missing(&self) -> impl Iterator<Item = (u64, u64)> {
        let ways = self.ways.iter().zip(&self.held);
        ways.map(|(way, held)| (way.lost() + held, way.sent.packets))
    }

    /// True if the device forwards this rate: the trial is valid, and no direction lost or held
    /// more than the share `allowed`.
    pub fn passes(&self, allowed: f64) -> bool {
        let within = |(missing, sent)| missing as f64 <= allowed * sent as f64;
        self.valid && self.missing().all(within)
    }

    /// True if it says something about the device.
    pub fn counts(&self) -> bool {
        self.valid && !self.interrupted
    }

    /// Reason why the device does not forward this rate, where it does not pass.
    pub fn failure(&self) -> String {
        if !self.valid {
            return self.why.clone();
        }
        let losses = self.ways.iter().map(WayResult::loss);
        let lost = format!("{:.2} % was lost", 100.0 * losses.fold(0.0, f64::max));
        match self.held.iter().sum() {
            0 => lost,
            held => format!(
                "{lost}, but the device held {held} packets more when sending ended than when the \
                 first were back: until then {:.3} came back",
                self.forwarded
            ),
        }
    }

    /// The trial as a point of a result.
    pub fn point(&self) -> Point {
        Point {
            offered_pps: self.offered_pps().0,
            sent_pps: self.sent_pps().0,
            forwarded_pps: self.forwarded.0,
            loss: self.loss(),
            valid: self.valid,
            seconds: self.seconds,
            disturbed: false,
            unfit: match (self.interrupted, self.valid) {
                (true, _) => "interrupted".to_owned(),
                (false, false) => self.why.clone(),
                (false, true) => String::new(),
            },
        }
    }
}

/// The rate nearest to `rate` that all generators send at.
pub(crate) fn nearest(paths: &[Path], rate: Pps) -> Pps {
    paths.iter().fold(rate, |rate, path| path.tx.nearest(rate))
}

/// Sends at `rate` each way, or the nearest that there is, for `length` and waits for what is still
/// on its way. It ends early if the clock is interrupted, and sends nothing if it is from the start.
///
/// # Errors
/// If a generator cannot send; all are stopped then.
pub fn run(
    paths: &mut [Path],
    rate: Pps,
    length: Duration,
    clock: &dyn Clock,
) -> Result<Trial, Failure> {
    let rate = nearest(paths, rate);
    if clock.is_interrupted() {
        let nothing = vec![WayResult::default(); paths.len()];
        return Ok(Trial {
            interrupted: true,
            ..judge(rate, 0.0, nothing)
        });
    }
    let before = Reading::all(paths);
    let started = start(paths, rate);
    let begin = clock.now();
    let mut steady = Steady::new(&before, begin, length);
    if started.is_ok() {
        let end = begin.after(length);
        steady.watch(paths, end, clock);
        clock.wait_until(end);
    }
    let interrupted = clock.is_interrupted();
    let took = clock.now().since(begin).as_secs_f64();
    let (seconds, at_end, stopped) = stop(paths, begin, clock);
    let end = begin.after(Duration::from_secs_f64(seconds));
    started.and(stopped)?;
    let is_quiet = settle(paths, RESIDUAL, clock);
    let now = Reading::all(paths);
    if !is_quiet {
        // The next trial must not count what is left of this one.
        settle(paths, LEFTOVERS, clock);
    }
    let ways = between(&before, &now);
    let seconds = scheduled(rate, &ways).unwrap_or(seconds);
    let mut trial = judge(rate, seconds, ways);
    trial.interrupted = interrupted;
    if !interrupted || steady.next().is_none() {
        trial.keep_to(&steady.ways(end, &at_end, &now));
    }
    trial.keep_time(took);
    Ok(trial)
}

/// Time of sending by the schedule: on a busy processor a generator may start well before we
/// notice. None without a schedule, or with too few packets to measure the time by.
fn scheduled(rate: Pps, ways: &[WayResult]) -> Option<f64> {
    // With one packet more or less the time is still good to a ten-thousandth.
    const ENOUGH: u64 = 10_000;
    let least = ways.iter().map(|way| way.offered).min()?;
    let all: u64 = ways.iter().map(|way| way.offered).sum();
    (rate.is_limited() && least >= ENOUGH).then(|| all as f64 / (rate.0 * ways.len() as f64))
}

/// Starts all transmitters.
pub(crate) fn start(paths: &mut [Path], rate: Pps) -> Result<(), Failure> {
    paths.iter_mut().try_for_each(|path| path.tx.start(rate))
}

/// Stops all transmitters, even if one fails. Returns the seconds of sending since `begin`, the
/// counters at its end, and the first failure.
pub(crate) fn stop(
    paths: &mut [Path],
    begin: Nanos,
    clock: &dyn Clock,
) -> (f64, Vec<Reading>, Result<(), Failure>) {
    // Stopping may take a while; sending ends with the schedule.
    paths.iter_mut().for_each(|path| path.tx.set_rate(Pps(0.0)));
    let seconds = clock.now().since(begin).as_secs_f64();
    let at_end = Reading::all(paths);
    let mut result = Ok(());
    for path in paths {
        result = result.and(path.tx.stop());
    }
    (seconds, at_end, result)
}

/// Waits until no packets have come back for a while, but not longer than `longest`. Says whether
/// none came anymore.
pub(crate) fn settle(paths: &[Path], longest: Duration, clock: &dyn Clock) -> bool {
    let received = || -> u64 {
        paths
            .iter()
            .map(|p| p.rx.counts().into_iter().sum::<Count>().packets)
            .sum()
    };
    let begin = clock.now();
    let (mut last, mut since) = (received(), begin);
    while clock.now().since(since) < SILENCE {
        if clock.now().since(begin) >= longest {
            return false;
        }
        clock.sleep(LOOK);
        let now = received();
        if now != last {
            (last, since) = (now, clock.now());
        }
    }
    true
}

/// The result of a trial, and whether it is valid. It took `seconds`, but no less than the schedule
/// needs for the packets that were due.
pub(crate) fn judge(rate: Pps, seconds: f64, ways: Vec<WayResult>) -> Trial {
    let objections: Vec<String> = ways.iter().filter_map(WayResult::objection).collect();
    let due = ways.iter().map(|way| way.offered).max().unwrap_or(0) as f64;
    let least = if rate.0 > 0.0 { due / rate.0 } else { 0.0 };
    let mut trial = Trial {
        rate,
        seconds: seconds.max(least),
        held: vec![0; ways.len()],
        ways,
        forwarded: Pps::default(),
        valid: objections.is_empty(),
        why: objections.join("; "),
        late: false,
        interrupted: false,
    };
    trial.forwarded = trial.per_second(trial.received());
    trial
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::simulated::{Device, Simulation};

    fn way(offered: u64, sent: u64, received: u64) -> WayResult {
        let count = |packets| Count {
            packets,
            bytes: packets * 64,
        };
        WayResult {
            offered,
            sent: count(sent),
            received: count(received),
            other: Count::default(),
        }
    }

    #[test]
    fn short_by_more_than_a_thousandth_and_a_packet_is_invalid() {
        for (offered, sent, valid) in [
            (1_000_000, 1_000_000, true),
            (1_000_000, 999_000, true),
            (1_000_000, 998_999, false),
            (100, 99, true),
            (100, 98, false),
            (1, 0, false),
            (0, 0, false),
            (100, 101, true),
        ] {
            let trial = judge(Pps(1.0), 1.0, vec![way(offered, sent, sent)]);
            assert_eq!(
                (trial.valid, trial.why.is_empty()),
                (valid, valid),
                "{sent} of {offered}: {}",
                trial.why
            );
            assert_eq!(trial.loss(), 0.0, "what was not sent is not lost");
        }
        let one_short = judge(
            Pps(1.0),
            1.0,
            vec![way(1000, 1000, 900), way(1000, 500, 500)],
        );
        assert!(
            !one_short.valid && one_short.why.contains("500 of 1000"),
            "{}",
            one_short.why
        );
    }

    #[test]
    fn more_than_was_sent_is_invalid() {
        let trial = judge(Pps(1.0), 1.0, vec![way(1000, 1000, 1001)]);
        assert!(
            !trial.valid && trial.why.contains("1001 packets came back of 1000"),
            "{}",
            trial.why
        );
        assert_eq!(trial.loss(), 0.0);
    }

    #[test]
    fn sums_over_the_ways() {
        let trial = judge(
            Pps(1000.0),
            2.0,
            vec![way(2000, 2000, 1900), way(2000, 2000, 2000)],
        );
        assert_eq!(
            (trial.offered_pps(), trial.sent_pps(), trial.forwarded),
            (Pps(2000.0), Pps(2000.0), Pps(1950.0))
        );
        assert_eq!(
            (trial.loss(), trial.l1()),
            (0.025, Bits(2000.0 * 84.0 * 8.0))
        );
    }

    #[test]
    fn each_way_has_to_pass() {
        let trial = judge(
            Pps(1e6),
            1.0,
            vec![
                way(1_000_000, 1_000_000, 998_500),
                way(1_000_000, 1_000_000, 1_000_000),
            ],
        );
        assert!(trial.valid && trial.loss() < 0.001);
        assert!(!trial.passes(0.001) && trial.passes(0.0015));
    }

    /// Flat out, packets that wait in the device at the end do not count as forwarded.
    #[test]
    fn a_full_queue_is_not_forwarded_while_sending() {
        let simulation = Simulation::new(Device {
            capacity: 1e6,
            queue: 50_000.0,
            ..Device::default()
        });
        let mut paths = simulation.paths(1);
        let trial = run(
            &mut paths,
            Pps::UNLIMITED,
            Duration::from_secs(1),
            &simulation,
        )
        .unwrap();
        assert!(trial.received() > 1_040_000, "{trial:?}");
        assert!((trial.forwarded.0 / 1e6 - 1.0).abs() < 1e-3, "{trial:?}");
        assert!((trial.seconds - 1.0).abs() < 1e-3);
    }

    /// Late packets count; the wait ends soon after the last one.
    #[test]
    fn late_packets_count() {
        let simulation = Simulation::new(Device {
            capacity: 2e6,
            delay: Duration::from_millis(45),
            ..Device::default()
        });
        let trial = run(
            &mut simulation.paths(2),
            Pps(1e6),
            Duration::from_secs(1),
            &simulation,
        )
        .unwrap();
        assert_eq!(
            (trial.sent(), trial.received(), trial.seconds),
            (2_000_000, 2_000_000, 1.0)
        );
        assert!(trial.valid);
        assert!(simulation.now().since(Nanos(0)) < Duration::from_millis(1300));
    }

    /// All was sent, but in another time: the rate was not that of the trial.
    #[test]
    fn a_trial_that_ran_late_is_invalid() {
        for (pps, held, late) in [
            (5000.0, 400, true),
            (1e6, 400, true),
            (100.0, 400, true),
            (5000.0, 4, false),
            (3.0, 200, false),
        ] {
            let simulation = Simulation::new(Device {
                stopped: (Duration::from_millis(800), Duration::from_millis(held)),
                ..Device::default()
            });
            let mut paths = simulation.paths(1);
            let length = Duration::from_secs(1);
            let trial = run(&mut paths, Pps(pps), length, &simulation).unwrap();
            assert_eq!((trial.late, trial.valid), (late, !late), "{pps}: {trial:?}");
            assert_eq!(trial.why.contains("held up"), late, "{}", trial.why);
            assert!(!late || trial.sent_pps().0 < 0.8 * pps, "{trial:?}");
        }
    }
}
