//! Distance between two processors: a ping-pong on one shared cache line.
//!
//! Virtual processors move: the same two may share a cache now and none a minute later, and
//! everything that crosses them (memif, AF_XDP with the application on another processor) changes
//! by a factor of three to four. So the distance is measured before and after each trial that uses
//! two, and only trials of one kind are compared.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

use kernel::cpu::pin;
use report::setup::Placement;

/// From this many cycles a round trip on, two processors are far apart. Near ones take about 290,
/// far ones about 960.
const FAR_CYCLES: f64 = 600.0;

/// A measurement lasts this long.
const DURATION: Duration = Duration::from_millis(3);

/// Round trips between two looks at the clock: together some ten microseconds, against which a look
/// is nothing.
const BATCH: u32 = 64;

/// Cache-line round trip between two processors.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RoundTrip {
    /// Median in nanoseconds.
    pub nanos: f64,
    /// Median in TSC cycles.
    pub cycles: f64,
}

impl RoundTrip {
    /// Near or far.
    pub fn placement(&self) -> Placement {
        if self.cycles < FAR_CYCLES {
            Placement::Near
        } else {
            Placement::Far
        }
    }
}

/// The placement of a trial between two measurements.
pub fn between(before: RoundTrip, after: RoundTrip) -> Placement {
    if before.placement() == after.placement() {
        before.placement()
    } else {
        Placement::Flipped
    }
}

/// The line: alone, so that nothing else moves with it.
#[repr(align(128))]
struct Line(AtomicU32);

/// Measures the round trip between two processors in about 3 ms. `None` if they are the same one,
/// if one cannot be used, or if others kept them so busy that no batch was completed.
pub fn round_trip(a: usize, b: usize) -> Option<RoundTrip> {
    if a == b {
        return None;
    }
    let line = Line(AtomicU32::new(0));
    let stop = AtomicBool::new(false);
    let mut samples = std::thread::scope(|scope| {
        scope.spawn(|| {
            if pin(b).is_ok() {
                answer(&line, &stop)
            }
        });
        let asked = scope.spawn(|| {
            let samples = pin(a).map_or_else(|_| Vec::new(), |()| ask(&line));
            stop.store(true, Ordering::Relaxed);
            samples
        });
        asked.join().unwrap_or_default()
    });
    samples.sort_by(f64::total_cmp);
    let nanos = *samples.get(samples.len() / 2)?;
    Some(RoundTrip {
        nanos,
        cycles: nanos * tsc_ghz(),
    })
}

/// Makes the value odd and waits for the answer; returns the nanoseconds of a round trip, batch by
/// batch.
fn ask(line: &Line) -> Vec<f64> {
    let end = Instant::now() + DURATION;
    let mut samples = Vec::new();
    let mut value = 0;
    loop {
        let start = Instant::now();
        if start >= end {
            return samples;
        }
        for _ in 0..BATCH {
            line.0.store(value + 1, Ordering::Release);
            value += 2;
            while line.0.load(Ordering::Acquire) != value {
                if Instant::now() >= end + DURATION {
                    return samples;
                }
            }
        }
        samples.push(start.elapsed().as_nanos() as f64 / f64::from(BATCH));
    }
}

/// Makes every odd value even.
fn answer(line: &Line, stop: &AtomicBool) {
    while !stop.load(Ordering::Relaxed) {
        // The flag is looked at seldom, so that the ping-pong has the line to itself.
        for _ in 0..1024 {
            let value = line.0.load(Ordering::Acquire);
            if value & 1 == 1 {
                line.0.store(value + 1, Ordering::Release);
            }
        }
    }
}

/// Rate of the time stamp counter in GHz: the kernel derives the BogoMIPS of an x86 processor from
/// it (two loops a cycle). Elsewhere, or if it is unknown, 1.0: then cycles are nanoseconds.
pub fn tsc_ghz() -> f64 {
    let text = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let line = text.lines().find(|line| line.starts_with("bogomips"));
    let bogomips = line.and_then(|line| line.split(':').nth(1)?.trim().parse::<f64>().ok());
    bogomips.map_or(1.0, |bogomips| bogomips / 2000.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distance_is_measured() {
        let cpus = kernel::cpu::usable();
        if cpus.len() < 2 {
            println!("SKIP distance_is_measured: needs two processors");
            return;
        }
        assert_eq!(round_trip(cpus[0], cpus[0]), None);
        // Other tests run beside this one: both processors must be free at the same moment.
        let end = Instant::now() + Duration::from_secs(60);
        let trip = loop {
            match round_trip(cpus[0], cpus[1]) {
                Some(trip) => break trip,
                None => assert!(Instant::now() < end, "nothing measured for a minute"),
            }
        };
        assert!(trip.nanos > 1.0 && trip.cycles > 1.0, "{trip:?}");
    }

    #[test]
    fn a_change_is_called_flipped() {
        let near = RoundTrip {
            nanos: 110.0,
            cycles: 290.0,
        };
        let far = RoundTrip {
            nanos: 370.0,
            cycles: 960.0,
        };
        assert_eq!(between(near, near), Placement::Near);
        assert_eq!(between(far, far), Placement::Far);
        assert_eq!(between(near, far), Placement::Flipped);
    }
}
