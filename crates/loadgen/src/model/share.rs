//! A core's share of a stream.

/// Every `cores`th packet of a stream, the first being number `core`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Share {
    /// Number of the core, from 0 to below `cores`.
    pub core: u32,
    /// Cores, 1 or more.
    pub cores: u32,
}

impl Share {
    /// All packets.
    pub const WHOLE: Self = Self { core: 0, cores: 1 };

    /// The seed that it has of a random number generator's, so that no two cores draw the same.
    pub fn seed(self, seed: u32) -> u32 {
        seed.wrapping_mul((self.core + 1).wrapping_mul(514_229))
    }

    /// Number of `packets` that it has.
    pub fn of(self, packets: u64) -> u64 {
        let (core, cores) = (u64::from(self.core), u64::from(self.cores));
        packets / cores + u64::from(core < packets % cores)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_are_divided_without_a_rest() {
        let parts = |packets, cores| -> Vec<u64> {
            (0..cores)
                .map(|core| Share { core, cores }.of(packets))
                .collect()
        };
        assert_eq!(parts(10, 4), [3, 3, 2, 2]);
        assert_eq!(parts(3, 3), [1, 1, 1]);
        assert_eq!(parts(u64::MAX, 1), [u64::MAX]);
    }
}
