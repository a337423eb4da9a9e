//! How benches are run and shown.

use std::time::Instant;

/// Runs `work` on `count` things five times and prints the median cost of one.
pub fn report(name: &str, count: usize, mut work: impl FnMut()) {
    let mut nanos: Vec<f64> = (0..5)
        .map(|_| {
            let start = Instant::now();
            work();
            start.elapsed().as_nanos() as f64 / count as f64
        })
        .collect();
    nanos.sort_by(f64::total_cmp);
    println!("{name:<44} {:>8.2} ns (least {:.2})", nanos[2], nanos[0]);
}
