//! The thread that serves the load tester's ports: it sends on them and counts what they receive.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use graph::{Buffers, Pool, Port};

use crate::clock::{Clock, Monotonic};
use crate::model::stream::Stream;
use crate::model::units::Pps;
use crate::receive::{Counters, Sink};
use crate::send::{Generator, Sender};

/// A port, and what to do with it.
pub struct Endpoint {
    /// The port.
    pub port: Box<dyn Port>,
    /// Streams to send, addressed (see [`Stream::address`]), each with its rate at multiplier 1.
    /// May be empty.
    pub send: Vec<(Stream, Pps)>,
    /// Streams expected to arrive. May be empty.
    pub expect: Vec<Stream>,
}

/// Rounds without a packet before the thread starts to sleep between rounds.
const PATIENCE: u32 = 2000;
/// How long it sleeps between rounds.
const NAP: Duration = Duration::from_micros(50);

/// The running thread. Dropping this stops it and returns all buffers.
#[derive(Debug)]
pub struct Tester {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Tester {
    /// Starts a thread that serves `endpoints`, and returns the control of each, in order. The
    /// thread runs `begin` first, which may pin it to a processor.
    ///
    /// # Errors
    /// If the thread cannot be started.
    pub fn spawn(
        endpoints: Vec<Endpoint>,
        pool: Arc<Pool>,
        begin: impl FnOnce() + Send + 'static,
    ) -> io::Result<(Self, Vec<(Generator, Counters)>)> {
        let entropy = graph::cycles::now() as u32;
        let mut controls = Vec::new();
        let mut lines = Vec::new();
        for Endpoint { port, send, expect } in endpoints {
            let (sender, generator) = Sender::new(&send, entropy);
            let sink = Sink::new(&expect);
            controls.push((generator, sink.counters()));
            lines.push(Line {
                port,
                sender,
                sink,
                quiet: 0,
            });
        }
        let stop = Arc::new(AtomicBool::new(false));
        let seen = stop.clone();
        let thread = std::thread::Builder::new()
            .name("loadgen".into())
            .spawn(move || {
                begin();
                serve(&mut lines, Buffers::new(pool), &seen);
            })?;
        Ok((
            Self {
                stop,
                thread: Some(thread),
            },
            controls,
        ))
    }
}

impl Drop for Tester {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // A panic there has been printed already.
            let _ = thread.join();
        }
    }
}

struct Line {
    port: Box<dyn Port>,
    sender: Sender,
    sink: Sink,
    quiet: u32,
}

impl Line {
    /// Serves the port once. Returns whether packets moved.
    fn poll(&mut self, clock: &Monotonic, bufs: &mut Buffers) -> bool {
        let received = self.sink.poll(clock, &mut *self.port, bufs);
        let sent = self.sender.poll(clock, &mut *self.port, bufs);
        self.port.flush(bufs);
        received + sent > 0
    }
}

fn serve(lines: &mut [Line], mut bufs: Buffers, stop: &AtomicBool) {
    let clock = Monotonic::new();
    while !stop.load(Ordering::Relaxed) {
        let (mut moved, mut idle) = (false, true);
        for line in lines.iter_mut() {
            if line.poll(&clock, &mut bufs) {
                moved = true;
                line.quiet = 0;
            } else {
                line.quiet = line.quiet.saturating_add(1);
            }
            idle &= line.quiet > PATIENCE && !line.sender.is_active();
        }
        if idle {
            clock.sleep(NAP);
        } else if !moved {
            // The device under test may be waiting for this processor.
            std::thread::yield_now();
        }
    }
    for line in lines {
        line.sender.close(&mut bufs);
        line.port.flush(&mut bufs);
        line.port.drain(&mut bufs);
    }
}
