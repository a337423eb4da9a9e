//! A small seeded generator of random numbers for tests and synthetic route sets: SplitMix64
//! (Steele, Lea, Flood, OOPSLA 2014). The same seed gives the same numbers on every machine.

/// The generator.
#[derive(Debug, Clone)]
pub struct Random(u64);

impl Random {
    /// Starts at `seed`.
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next 64 bits.
    pub const fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// The next 32 bits.
    pub const fn word(&mut self) -> u32 {
        (self.bits() >> 32) as u32
    }

    /// A number below `limit`, which must not be 0; even to within `limit` / 2^32.
    pub const fn below(&mut self, limit: u32) -> u32 {
        ((self.word() as u64 * limit as u64) >> 32) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_numbers() {
        // The generator's published first outputs for seed 1234567.
        let mut random = Random::new(1_234_567);
        assert_eq!(random.bits(), 6_457_827_717_110_365_317);
        assert_eq!(random.bits(), 3_203_168_211_198_807_973);
        assert!((0..1000).all(|_| random.below(7) < 7));
    }
}
