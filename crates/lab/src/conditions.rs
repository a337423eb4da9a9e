//! The conditions of a measurement: whether the machine kept still meanwhile, and what governs its
//! processors.

use std::collections::BTreeSet;
use std::fs;
use std::hint::black_box;
use std::path::Path;
use std::time::{Duration, Instant};

use kernel::cpu::pin;
use report::Conditions;
use sandbox::Error;

use crate::cpu::Stat;
use crate::probe::tsc_ghz;

/// The speed is looked at for this long.
const DURATION: Duration = Duration::from_millis(5);
/// Additions between two looks at the clock: some ten microseconds, against which a look is nothing.
const BATCH: u32 = 20_000;

/// The processors' directories.
const PROCESSORS: &str = "/sys/devices/system/cpu";

/// A measurement that is watched.
#[derive(Debug)]
pub struct Watch {
    before: Stat,
    cycles: Option<f64>,
}

impl Watch {
    /// Begins to watch.
    ///
    /// # Errors
    /// The processors' time cannot be read.
    pub fn start() -> Result<Self, Error> {
        let cycles = cycles_per_add();
        Ok(Self {
            before: Stat::now()?,
            cycles,
        })
    }

    /// What has been seen.
    ///
    /// # Errors
    /// The processors' time cannot be read.
    pub fn end(self) -> Result<Conditions, Error> {
        let time = Stat::now()?.since(&self.before, |_| true);
        Ok(Conditions {
            steal_percent: time.steal_percent(),
            cycles_per_add: self.cycles.zip(cycles_per_add()),
            governor: governor(Path::new(PROCESSORS)),
            ..Conditions::default()
        })
    }
}

/// The names of the governors of the processors' frequency, each once; `none` where there is none,
/// as on most virtual machines.
fn governor(processors: &Path) -> String {
    let read =
        |entry: fs::DirEntry| fs::read_to_string(entry.path().join("cpufreq/scaling_governor"));
    let entries = fs::read_dir(processors).into_iter().flatten().flatten();
    let names: BTreeSet<String> = entries
        .filter_map(|entry| Some(read(entry).ok()?.trim().to_owned()))
        .collect();
    match names.is_empty() {
        true => "none".to_owned(),
        false => Vec::from_iter(names).join(", "),
    }
}

/// TSC cycles of an addition that needs the one before, on the first processor that we may use: the
/// least of many batches, so that what else runs there does not count. None if it cannot be used.
fn cycles_per_add() -> Option<f64> {
    let cpu = *kernel::cpu::usable().first()?;
    let measured = std::thread::spawn(move || {
        pin(cpu).ok()?;
        let end = Instant::now() + DURATION;
        let mut least = f64::INFINITY;
        while Instant::now() < end {
            let start = Instant::now();
            black_box(chain(black_box(1)));
            least = least.min(start.elapsed().as_nanos() as f64);
        }
        least
            .is_finite()
            .then(|| least / f64::from(BATCH) * tsc_ghz())
    });
    measured.join().ok().flatten()
}

/// Additions, each of which needs the result of the one before. The rotation between them keeps the
/// compiler from making one of all.
fn chain(mut x: u64) -> u64 {
    for _ in 0..BATCH {
        x = x.rotate_left(1).wrapping_add(x);
    }
    x
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_machine_is_watched() {
        let seen = Watch::start().unwrap().end().unwrap();
        let (before, after) = seen.cycles_per_add.unwrap();
        // At least the addition itself, at most what a very slow machine takes.
        assert!(
            (0.2..200.0).contains(&before) && (0.2..200.0).contains(&after),
            "{seen:?}"
        );
        assert!((0.0..=100.0).contains(&seen.steal_percent), "{seen:?}");
        assert!(!seen.governor.is_empty());
    }

    #[test]
    fn governors_are_named_once() {
        let directory = tempfile::tempdir().unwrap();
        assert_eq!(governor(directory.path()), "none");
        for (cpu, name) in [
            ("cpu0", "performance"),
            ("cpu1", "powersave"),
            ("cpu2", "performance"),
        ] {
            let of = directory.path().join(cpu).join("cpufreq");
            fs::create_dir_all(&of).unwrap();
            fs::write(of.join("scaling_governor"), format!("{name}\n")).unwrap();
        }
        fs::create_dir(directory.path().join("cpuidle")).unwrap();
        assert_eq!(governor(directory.path()), "performance, powersave");
    }
}
