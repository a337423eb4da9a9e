//! Time limits that suit a slow machine, and ways to wait.

use std::sync::LazyLock;
use std::thread;
use std::time::{Duration, Instant};

/// Time between two checks of a condition that is waited for.
const TICK: Duration = Duration::from_millis(10);

/// Name of the environment variable with the factor, a whole number from 1 to 1000.
const FACTOR: &str = "PARSHALL_PATIENCE";

/// A limit that suits an ordinary machine, multiplied by the environment variable
/// `PARSHALL_PATIENCE` (default 1). Emulated processors need it; a test is never skipped for being
/// slow.
pub fn patience(limit: Duration) -> Duration {
    static BY: LazyLock<u32> = LazyLock::new(|| {
        let text = std::env::var(FACTOR).unwrap_or_default();
        text.parse::<u32>().unwrap_or(1).clamp(1, 1000)
    });
    limit * *BY
}

/// Checks `condition` every 10 ms until it is true or `limit` has passed. Returns whether it became
/// true.
pub fn until(limit: Duration, mut condition: impl FnMut() -> bool) -> bool {
    let end = Instant::now() + limit;
    loop {
        if condition() {
            return true;
        }
        if Instant::now() >= end {
            return false;
        }
        thread::sleep(TICK);
    }
}
