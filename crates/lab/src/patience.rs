//! How long things may take on a slow machine.

use std::{sync::LazyLock, time::Duration};

/// Name of the environment variable with the factor, a whole number from 1 to 1000.
const FACTOR: &str = "PARSHALL_PATIENCE";

/// A limit that is right on an ordinary machine, lengthened by the factor in the environment variable
/// `PARSHALL_PATIENCE` (1 without it). An emulated processor needs a factor; a test is never skipped for being slow.
pub fn patience(limit: Duration) -> Duration {
    static BY: LazyLock<u32> = LazyLock::new(|| {
        let text = std::env::var(FACTOR).unwrap_or_default();
        text.parse::<u32>().unwrap_or(1).clamp(1, 1000)
    });
    limit * *BY
}
