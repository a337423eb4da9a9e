//! Processor time by kind, of the whole machine, from `/proc/stat`.

use std::ops::Sub;

use sandbox::Error;

/// The kernel counts processor time in hundredths of a second (`USER_HZ`) whatever its own tick is.
const HERTZ: f64 = 100.0;

/// Processor seconds of one processor, or the difference of two readings.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Time {
    /// In user space, nice ones included.
    pub user: f64,
    /// In system calls and kernel threads.
    pub system: f64,
    /// In interrupt handlers.
    pub irq: f64,
    /// In software interrupts: network receive and what it forwards.
    pub softirq: f64,
    /// Taken away by the hypervisor; not part of [`Time::busy`].
    pub steal: f64,
    /// Idle or waiting for a disk.
    pub idle: f64,
}

impl Time {
    /// All time in use, in seconds.
    pub fn busy(&self) -> f64 {
        self.user + self.system + self.irq + self.softirq
    }

    /// Share of all time that the hypervisor took away, in percent.
    pub fn steal_percent(&self) -> f64 {
        let all = self.busy() + self.idle + self.steal;
        if all > 0.0 {
            100.0 * self.steal / all
        } else {
            0.0
        }
    }

    fn plus(self, other: Self) -> Self {
        Self {
            user: self.user + other.user,
            system: self.system + other.system,
            irq: self.irq + other.irq,
            softirq: self.softirq + other.softirq,
            steal: self.steal + other.steal,
            idle: self.idle + other.idle,
        }
    }
}

impl Sub for Time {
    type Output = Self;

    fn sub(self, then: Self) -> Self {
        Self {
            user: self.user - then.user,
            system: self.system - then.system,
            irq: self.irq - then.irq,
            softirq: self.softirq - then.softirq,
            steal: self.steal - then.steal,
            idle: self.idle - then.idle,
        }
    }
}

/// A reading of all processors.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Stat(Vec<(usize, Time)>);

impl Stat {
    /// Reads the counters now.
    ///
    /// # Errors
    /// If `/proc/stat` cannot be read.
    pub fn now() -> Result<Self, Error> {
        let text =
            std::fs::read_to_string("/proc/stat").map_err(|e| Error::file("/proc/stat", e))?;
        Ok(Self::parse(&text))
    }

    fn parse(text: &str) -> Self {
        let lines = text.lines().filter_map(|line| {
            let mut words = line.strip_prefix("cpu")?.split_whitespace();
            let number = words.next()?.parse().ok()?;
            let ticks: Vec<f64> = words
                .map_while(|word| word.parse::<f64>().ok())
                .map(|t| t / HERTZ)
                .collect();
            let at = |column: usize| ticks.get(column).copied().unwrap_or(0.0);
            let time = Time {
                user: at(0) + at(1),
                system: at(2),
                idle: at(3) + at(4),
                irq: at(5),
                softirq: at(6),
                steal: at(7),
            };
            // The line of the sum, `cpu` and a blank, has no number: its first count would be taken
            // for one.
            (!line.starts_with("cpu ")).then_some((number, time))
        });
        Self(lines.collect())
    }

    /// Total time since `then` of the processors that `which` picks.
    pub fn since(&self, then: &Self, which: impl Fn(usize) -> bool) -> Time {
        let picked = self.0.iter().filter(|(cpu, _)| which(*cpu));
        picked.fold(Time::default(), |sum, (cpu, now)| {
            match then.0.iter().find(|(other, _)| other == cpu) {
                Some((_, before)) => sum.plus(*now - *before),
                None => sum,
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const THEN: &str = "cpu  30 0 40 900 0 0 10 0 0 0\ncpu0 10 0 20 500 0 0 10 0 0 0\ncpu1 20 0 20 400 0 0 0 0 0 0\nintr 5\n";
    const NOW: &str = "cpu  90 0 60 950 0 0 50 3 0 0\ncpu0 20 5 30 520 0 0 40 3 0 0\ncpu1 70 0 30 430 0 2 10 0 0 0\nintr 9\n";

    #[test]
    fn differences_add_up() {
        let (then, now) = (Stat::parse(THEN), Stat::parse(NOW));
        let all = now.since(&then, |_| true);
        assert!((all.busy() - 1.27).abs() < 1e-9, "{all:?}");
        assert!((all.steal - 0.03).abs() < 1e-9);
        let second = now.since(&then, |cpu| cpu == 1);
        assert!((second.user - 0.5).abs() < 1e-9);
        assert!((second.softirq - 0.1).abs() < 1e-9);
        assert!((second.irq - 0.02).abs() < 1e-9);
    }

    #[test]
    fn this_machine_is_read() {
        assert!(!Stat::now().unwrap().0.is_empty());
    }
}
