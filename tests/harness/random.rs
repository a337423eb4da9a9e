//! Random numbers that can be repeated: the seed is printed, and taken from `PARSHALL_SEED` if that
//! is set.

use std::time::{SystemTime, UNIX_EPOCH};

/// A xorshift generator (Marsaglia, 2003: shifts 13, 7, 17).
pub struct Random(u64);

impl Random {
    /// A new one for the test `name`.
    pub fn new(name: &str) -> Self {
        let given = std::env::var("PARSHALL_SEED")
            .ok()
            .and_then(|seed| seed.parse().ok());
        let now = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .map_or(1, |time| time.as_nanos() as u64);
        let seed = given.unwrap_or(now).max(1);
        println!("{name}: PARSHALL_SEED={seed}");
        Self(seed)
    }

    /// The next 64 bits.
    pub fn bits(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// A number below `end`.
    pub fn below(&mut self, end: usize) -> usize {
        (self.bits() >> 16) as usize % end
    }

    /// One of the values.
    pub fn one_of<T: Copy>(&mut self, values: &[T]) -> T {
        values[self.below(values.len())]
    }
}
