//! The time stamp counter, the clock of `show runtime` and of the pacers.

use std::time::{Duration, Instant};

/// The time stamp counter (TSC). On processors without one: nanoseconds.
#[inline(always)]
#[allow(unsafe_code)]
pub fn now() -> u64 {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: every x86-64 processor has rdtsc.
    unsafe {
        std::arch::x86_64::_rdtsc()
    }
    #[cfg(not(target_arch = "x86_64"))]
    {
        static START: std::sync::OnceLock<Instant> = std::sync::OnceLock::new();
        START.get_or_init(Instant::now).elapsed().as_nanos() as u64
    }
}

/// Counts of [`now`] in a second, measured once against the monotonic clock, which takes 20 ms.
pub fn per_second() -> f64 {
    static RATE: std::sync::OnceLock<f64> = std::sync::OnceLock::new();
    *RATE.get_or_init(|| {
        let (t0, c0) = (Instant::now(), now());
        std::thread::sleep(Duration::from_millis(20));
        let (c1, t1) = (now(), t0.elapsed());
        (c1 - c0) as f64 / t1.as_secs_f64()
    })
}

/// Counts of [`now`] in `time`.
pub fn of(time: Duration) -> u64 {
    (time.as_secs_f64() * per_second()) as u64
}
