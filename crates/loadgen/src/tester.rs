//! The thread that serves the load tester's ports: it sends on them and counts what they receive.
//!
//! Senders and sinks of an endpoint are replaced while the thread goes on: the new one is made by
//! whoever controls it, goes in by a ring, and the old one comes back to be dropped there. So the
//! thread takes no lock and no memory.

use std::io;
use std::mem;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use graph::ring::{Consumer, Producer, ring};
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
/// Time that it sleeps between rounds.
const NAP: Duration = Duration::from_micros(50);

/// Time between two looks whether the thread has obeyed.
const LOOK: Duration = Duration::from_micros(20);

/// New sender or sink for an endpoint, by its place; and, on its way back, the old one.
enum Work {
    Send(usize, Box<Sender>),
    Expect(usize, Box<Sink>),
}

/// The thread has ended: it panicked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the load tester's thread has ended")]
pub struct Ended;

/// The running thread. Dropping this stops it and returns all buffers.
pub struct Tester {
    stop: Arc<AtomicBool>,
    commands: Producer<Work>,
    returned: Consumer<Work>,
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
        let entropy = entropy();
        let mut controls = Vec::new();
        let mut lines = Vec::new();
        for Endpoint { port, send, expect } in endpoints {
            let (sender, generator) = Sender::new(&send, entropy);
            let sink = Sink::new(&expect);
            controls.push((generator, sink.counters()));
            lines.push(Line {
                port,
                sender: Box::new(sender),
                sink: Box::new(sink),
                quiet: 0,
            });
        }
        let stop = Arc::new(AtomicBool::new(false));
        let seen = stop.clone();
        // One command is under way at most.
        let (commands, orders) = ring(1);
        let (done, returned) = ring(1);
        let thread = std::thread::Builder::new()
            .name("loadgen".into())
            .spawn(move || {
                begin();
                serve(&mut lines, Buffers::new(pool), &seen, (orders, done));
            })?;
        Ok((
            Self {
                stop,
                commands,
                returned,
                thread: Some(thread),
            },
            controls,
        ))
    }

    /// Replaces what an endpoint, by its place in [`spawn`](Self::spawn), sends. Its generator, if
    /// it was sending, stops at once and for good; the new one waits for a start. All other
    /// endpoints, and what this one expects, stay as they are.
    ///
    /// # Errors
    /// The thread has ended.
    pub fn send(&mut self, place: usize, streams: &[(Stream, Pps)]) -> Result<Generator, Ended> {
        let (sender, generator) = Sender::new(streams, entropy());
        self.replace(Work::Send(place, Box::new(sender)))?;
        Ok(generator)
    }

    /// Replaces what an endpoint, by its place in [`spawn`](Self::spawn), expects. The counts of
    /// before are final when this returns; all other endpoints, and what this one sends, stay as
    /// they are.
    ///
    /// # Errors
    /// The thread has ended.
    pub fn expect(&mut self, place: usize, streams: &[Stream]) -> Result<Counters, Ended> {
        let sink = Sink::new(streams);
        let counters = sink.counters();
        self.replace(Work::Expect(place, Box::new(sink)))?;
        Ok(counters)
    }

    /// Waits until the thread has obeyed, and drops what comes back.
    fn replace(&mut self, work: Work) -> Result<(), Ended> {
        self.commands.push(work).map_err(|_| Ended)?;
        while self.returned.pop().is_none() {
            if self.thread.as_ref().is_none_or(JoinHandle::is_finished) {
                return Err(Ended);
            }
            std::thread::sleep(LOOK);
        }
        Ok(())
    }
}

/// Start of the random numbers of streams without a seed.
fn entropy() -> u32 {
    graph::cycles::now() as u32
}

impl Drop for Tester {
    fn drop(&mut self) {
        // Relaxed: the flag stands for itself, and the join orders what the thread has done.
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // A panic there has been printed already.
            let _ = thread.join();
        }
    }
}

struct Line {
    port: Box<dyn Port>,
    sender: Box<Sender>,
    sink: Box<Sink>,
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

/// Gives an endpoint its new work, and returns the old one. A place that there is not has none.
fn obey(lines: &mut [Line], mut work: Work, bufs: &mut Buffers) -> Work {
    match &mut work {
        Work::Send(place, sender) => {
            if let Some(line) = lines.get_mut(*place) {
                line.sender.close(bufs);
                mem::swap(&mut line.sender, sender);
            }
        }
        Work::Expect(place, sink) => {
            if let Some(line) = lines.get_mut(*place) {
                mem::swap(&mut line.sink, sink);
            }
        }
    }
    work
}

fn serve(
    lines: &mut [Line],
    mut bufs: Buffers,
    stop: &AtomicBool,
    (mut orders, mut done): (Consumer<Work>, Producer<Work>),
) {
    let clock = Monotonic::new();
    while !stop.load(Ordering::Relaxed) {
        if let Some(work) = orders.pop() {
            // There is room: the next command comes only after this one is back.
            let _ = done.push(obey(lines, work, &mut bufs));
        }
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
