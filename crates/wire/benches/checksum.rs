//! Cost of checksums: `cargo bench -p wire`.

use std::hint::black_box;
use std::time::Instant;

use wire::{checksum, ip, ip4};

const COUNT: usize = 1 << 20;

/// Runs `work` on a million things nine times and prints the median cost of one.
fn report(name: &str, mut work: impl FnMut(usize) -> u16) {
    let mut nanos: Vec<f64> = (0..9)
        .map(|_| {
            let start = Instant::now();
            black_box((0..COUNT).fold(0, |sum, at| sum ^ work(at)));
            start.elapsed().as_nanos() as f64 / COUNT as f64
        })
        .collect();
    nanos.sort_by(f64::total_cmp);
    println!("{name:<40} {:>8.2} ns (least {:.2})", nanos[4], nanos[0]);
}

fn main() {
    let mut headers: Vec<_> = (0..256)
        .map(|at| ip4::Header::new(at, !at, ip::UDP, at as usize))
        .collect();
    report("IPv4 header checked", |at| {
        headers[at & 255].checksum_ok().into()
    });
    report("TTL decremented", |at| {
        let header = &mut headers[at & 255];
        header.decrement_ttl();
        header.checksum()
    });
    let bytes = vec![0x5a; 1480];
    report("1480 bytes", |at| checksum::of(&bytes[at & 1..]));
    report("46 bytes", |at| checksum::of(&bytes[at & 1..][..46]));
}
