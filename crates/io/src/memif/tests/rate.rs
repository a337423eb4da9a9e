//! How fast packets go through, two threads, one of them forwarding.

use super::*;
use std::sync::atomic::AtomicBool;

/// The server's thread sends 64-byte packets and counts what the client's thread, which sends everything back,
/// returns. Packets a second.
pub fn echo(server: &mut End, client: &mut End, time: Duration) -> f64 {
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
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
