//! Time, behind a trait, so that trials and searches can be tested without waiting.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

/// A point in time: nanoseconds since an arbitrary start. It never runs backwards.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Nanos(pub u64);

impl Nanos {
    /// The time from `earlier` to `self`; zero if `earlier` is later.
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }

    /// This time plus `duration`.
    pub fn after(self, duration: Duration) -> Self {
        Self(
            self.0
                .saturating_add(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)),
        )
    }
}

/// Time between two looks whether a measurement is to end early: nobody who interrupts it notices
/// so short a wait.
const LOOK: Duration = Duration::from_millis(50);

/// A source of time.
pub trait Clock {
    /// Now.
    fn now(&self) -> Nanos;
    /// Waits for `duration` or longer.
    fn sleep(&self, duration: Duration);

    /// True if the measurement is to end early. To sleep goes on all the same.
    fn is_interrupted(&self) -> bool {
        false
    }

    /// Waits until `time` or later, or until the measurement is to end early.
    fn wait_until(&self, time: Nanos) {
        while !self.is_interrupted() && self.now() < time {
            self.sleep(time.since(self.now()).min(LOOK));
        }
    }
}

/// The system's monotonic clock.
#[derive(Debug, Clone, Copy)]
pub struct Monotonic(Instant);

/// Time when the first clock was made: all show the same time, so that one thread can read what
/// another has stamped.
static START: OnceLock<Instant> = OnceLock::new();

impl Monotonic {
    /// The clock.
    pub fn new() -> Self {
        Self(*START.get_or_init(Instant::now))
    }
}

impl Default for Monotonic {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for Monotonic {
    #[inline]
    fn now(&self) -> Nanos {
        Nanos(u64::try_from(self.0.elapsed().as_nanos()).unwrap_or(u64::MAX))
    }

    fn sleep(&self, duration: Duration) {
        std::thread::sleep(duration);
    }
}

/// The system's monotonic clock, for a measurement that ends early once the flag is set.
#[derive(Debug, Clone)]
pub struct Interruptible(Monotonic, Arc<AtomicBool>);

impl Interruptible {
    /// The clock with its flag.
    pub fn new(flag: Arc<AtomicBool>) -> Self {
        Self(Monotonic::new(), flag)
    }
}

impl Clock for Interruptible {
    fn now(&self) -> Nanos {
        self.0.now()
    }

    fn sleep(&self, duration: Duration) {
        self.0.sleep(duration);
    }

    fn is_interrupted(&self) -> bool {
        self.1.load(Ordering::Relaxed)
    }
}
