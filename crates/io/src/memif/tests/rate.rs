//! Measures the rate at which packets go through, two threads, one of them forwarding.

use std::sync::atomic::AtomicBool;

use kernel::cpu::pin;

use super::*;

/// Packets of 64 bytes, whatever is in them.
fn blank(bufs: &mut Buffers, count: usize) -> Frame {
    let mut frame = Frame::default();
    for _ in 0..count {
        let (d, _) = bufs.alloc_len(64).expect("a buffer");
        frame.push(d).expect("room in the frame");
    }
    frame
}

/// The server's thread sends 64-byte packets and counts what the client's thread, which sends
/// everything back, returns. Packets a second.
pub fn echo(server: &mut End, client: &mut End, time: Duration) -> f64 {
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            let _ = pin(1);
            let mut frame = Frame::default();
            while !stop.load(Ordering::Relaxed) {
                client.queues[0].rx(&mut client.bufs, &mut frame);
                while !frame.is_empty() && !stop.load(Ordering::Relaxed) {
                    frame.send(&mut client.queues[0], &mut client.bufs);
                }
                client.queues[0].flush(&mut client.bufs);
            }
            frame.drain().for_each(|d| client.bufs.free(d));
        });
        let _ = pin(0);
        let mut frame = Frame::default();
        let (start, mut received) = (Instant::now(), 0u64);
        while start.elapsed() < time {
            let mut template = blank(&mut server.bufs, 128);
            template.send(&mut server.queues[0], &mut server.bufs);
            template.drain().for_each(|d| server.bufs.free(d));
            server.queues[0].rx(&mut server.bufs, &mut frame);
            received += frame.len() as u64;
            frame.drain().for_each(|d| server.bufs.free(d));
        }
        stop.store(true, Ordering::Relaxed);
        received as f64 / time.as_secs_f64()
    })
}

/// TSC cycles a packet that the forwarding end (client: receive and send back) and the other end
/// take, both on one thread so that caches are near: the least of many rounds of 256 packets.
pub fn cycles(server: &mut End, client: &mut End) -> (f64, f64) {
    let (mut frame, mut back) = (blank(&mut server.bufs, 256), Frame::default());
    client.receive(0);
    let mut least = (f64::MAX, f64::MAX);
    for _ in 0..20_000 {
        let t0 = graph::cycles::now();
        assert_eq!(frame.send(&mut server.queues[0], &mut server.bufs), 256);
        let t1 = graph::cycles::now();
        client.queues[0].rx(&mut client.bufs, &mut back);
        assert_eq!(back.send(&mut client.queues[0], &mut client.bufs), 256);
        let t2 = graph::cycles::now();
        server.queues[0].rx(&mut server.bufs, &mut frame);
        let t3 = graph::cycles::now();
        assert_eq!(frame.len(), 256);
        least.0 = f64::min(least.0, (t2 - t1) as f64 / 256.0);
        least.1 = f64::min(least.1, (t1 - t0 + t3 - t2) as f64 / 256.0);
    }
    frame.drain().for_each(|d| server.bufs.free(d));
    least
}
