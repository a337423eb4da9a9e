//! How fast packets go through, two threads, one of them forwarding.

use super::*;
use std::sync::atomic::AtomicBool;

/// Keeps the calling thread on one CPU, if there is such a one.
fn pin(cpu: usize) {
    // SAFETY: all-zero is an empty set; the set lives until the call returns.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(cpu, &mut set);
        libc::sched_setaffinity(0, size_of_val(&set), &set);
    }
}

/// The server's thread sends 64-byte packets and counts what the client's thread, which sends everything back,
/// returns. Packets a second.
pub fn echo(server: &mut End, client: &mut End, time: Duration) -> f64 {
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            pin(1);
            let mut frame: Vec<Desc> = (0..256).map(|_| blank()).collect();
            while !stop.load(Ordering::Relaxed) {
                let n = client.queues[0].rx(&mut client.bufs, &mut frame);
                let mut sent = 0;
                while sent < n && !stop.load(Ordering::Relaxed) {
                    sent += client.queues[0].tx(&mut client.bufs, &frame[sent..n]);
                }
                client.queues[0].flush(&mut client.bufs);
            }
        });
        pin(0);
        let mut frame: Vec<Desc> = (0..256).map(|_| blank()).collect();
        let (start, mut received) = (Instant::now(), 0u64);
        while start.elapsed() < time {
            let template: Vec<Desc> = (0..128)
                .map(|_| {
                    let mut d = server.bufs.alloc().expect("a buffer");
                    server.bufs.resize(&mut d, 64);
                    d
                })
                .collect();
            let n = server.queues[0].tx(&mut server.bufs, &template);
            for d in template.into_iter().skip(n) {
                server.bufs.free(d);
            }
            let n = server.queues[0].rx(&mut server.bufs, &mut frame);
            received += n as u64;
            for d in frame.iter().take(n) {
                // SAFETY: the frame's descriptor is overwritten by the next rx.
                server.bufs.free(unsafe { d.duplicate() });
            }
        }
        stop.store(true, Ordering::Relaxed);
        received as f64 / time.as_secs_f64()
    })
}

/// TSC cycles a packet that the forwarding end (client: receive and send back) and the other end take, both on
/// one thread so that caches are near: the least of many rounds of 256 packets.
pub fn cycles(server: &mut End, client: &mut End) -> (f64, f64) {
    let mut frame: Vec<Desc> = (0..256).map(|_| blank()).collect();
    let mut back: Vec<Desc> = (0..256).map(|_| blank()).collect();
    for d in &mut frame {
        *d = server.bufs.alloc().expect("a buffer");
        server.bufs.resize(d, 64);
    }
    client.receive(0);
    let mut least = (f64::MAX, f64::MAX);
    for _ in 0..20_000 {
        let t0 = graph::cycles::now();
        assert_eq!(server.queues[0].tx(&mut server.bufs, &frame), 256);
        let t1 = graph::cycles::now();
        let n = client.queues[0].rx(&mut client.bufs, &mut back);
        assert_eq!(client.queues[0].tx(&mut client.bufs, &back[..n]), 256);
        let t2 = graph::cycles::now();
        assert_eq!(server.queues[0].rx(&mut server.bufs, &mut frame), 256);
        let t3 = graph::cycles::now();
        least.0 = f64::min(least.0, (t2 - t1) as f64 / 256.0);
        least.1 = f64::min(least.1, (t1 - t0 + t3 - t2) as f64 / 256.0);
    }
    for d in frame {
        server.bufs.free(d);
    }
    least
}
