//! Random numbers that can be repeated: the seed is printed, and taken from `PARSHALL_SEED` if that
//! is set.

use std::time::{SystemTime, UNIX_EPOCH};

/// The generator of all tests, with a seed that can be given.
pub struct Random(tables::random::Random);

impl Random {
    /// A new one for the test `name`.
    pub fn new(name: &str) -> Self {
        let given = std::env::var("PARSHALL_SEED")
            .ok()
            .and_then(|seed| seed.parse().ok());
        let now = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .map_or(1, |time| time.as_nanos() as u64);
        let seed = given.unwrap_or(now);
        println!("{name}: PARSHALL_SEED={seed}");
        Self(tables::random::Random::new(seed))
    }

    /// The next 64 bits.
    pub fn bits(&mut self) -> u64 {
        self.0.bits()
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
