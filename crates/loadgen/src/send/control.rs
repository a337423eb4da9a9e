//! The controlling half of the software generator: any thread may tell it what to do and read its
//! counters.

use std::sync::Arc;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::time::Duration;

use graph::counters::Counter;

use crate::clock::Nanos;
use crate::device::{Count, Delay, Failure, Pacing, Transmitter, since};
use crate::histogram::Histogram;
use crate::model::units::Pps;

/// The rate of one that is to go on later where it stopped: none that is sent at is negative.
pub(super) const PAUSED: f64 = -1.0;

/// State shared by the controller and the sending thread.
#[derive(Debug)]
pub(super) struct Shared {
    /// Rate wanted, as the bits of an f64; 0.0: stopped; [`PAUSED`]: stopped for a while.
    pub wanted: AtomicU64,
    /// Length of the next run in nanoseconds.
    pub length: AtomicU64,
    /// The last `wanted` that the thread has put into effect.
    pub applied: AtomicU64,
    pub scheduled: Counter,
    /// By stream.
    pub sent: Box<[Sent]>,
    pub queue_full: Counter,
    /// Delay of packets: when they left, after they were due.
    pub late: Histogram,
    /// Gaps between packets that left.
    pub gaps: Histogram,
    /// Times when the first packet of the latest run was due and the last one left, in nanoseconds,
    /// and the number that did.
    pub first: Counter,
    pub last: Counter,
    pub run: Counter,
    /// True if the profile has come to its end.
    pub over: AtomicBool,
    pub alive: AtomicBool,
}

impl Shared {
    /// For so many streams; stopped.
    pub fn new(streams: usize) -> Self {
        Self {
            wanted: AtomicU64::new(0),
            length: AtomicU64::new(u64::MAX),
            applied: AtomicU64::new(0),
            scheduled: Counter::default(),
            sent: (0..streams).map(|_| Sent::default()).collect(),
            queue_full: Counter::default(),
            late: Histogram::default(),
            gaps: Histogram::default(),
            first: Counter::default(),
            last: Counter::default(),
            run: Counter::default(),
            over: AtomicBool::new(false),
            alive: AtomicBool::new(true),
        }
    }
}

/// Counts of what the port took of a stream.
#[derive(Debug, Default)]
pub(super) struct Sent {
    packets: Counter,
    /// With frame check sequence.
    bytes: Counter,
}

impl Sent {
    pub fn add(&self, count: Count) {
        self.packets.add(count.packets);
        self.bytes.add(count.bytes);
    }
}

/// The control of a software generator, for another thread.
#[derive(Debug)]
pub struct Generator {
    shared: Arc<Shared>,
    /// Counts of the warm-up.
    before: Vec<Count>,
}

impl Generator {
    pub(super) fn new(shared: Arc<Shared>) -> Self {
        Self {
            shared,
            before: Vec::new(),
        }
    }

    /// Waits until the thread has put what is wanted into effect.
    fn settle(&self) -> Result<(), Failure> {
        // Acquire and Release: whoever sees a stop in effect also sees the final counts.
        while self.shared.applied.load(Acquire) != self.shared.wanted.load(Relaxed) {
            if !self.shared.alive.load(Relaxed) {
                return Err("the generator's thread has ended".into());
            }
            std::thread::sleep(Duration::from_micros(20));
        }
        Ok(())
    }

    /// Counts of each stream, the warm-up too.
    fn all_sent(&self) -> Vec<Count> {
        let counters = self.shared.sent.iter();
        let counts = counters.map(|sent| Count {
            packets: sent.packets.get(),
            bytes: sent.bytes.get(),
        });
        counts.collect()
    }

    fn want(&self, rate: Pps) {
        let pps = if rate.0 > 0.0 { rate.0 } else { 0.0 };
        self.want_bits(pps.to_bits());
    }

    pub(super) fn want_bits(&self, bits: u64) {
        // Release: whoever sees it sees the length too.
        self.shared.wanted.store(bits, Release);
    }

    pub(super) fn limit(&self, duration: Option<Duration>) {
        let nanos = duration.and_then(|duration| u64::try_from(duration.as_nanos()).ok());
        let length = nanos.unwrap_or(u64::MAX);
        self.shared.length.store(length, Relaxed);
    }
}

impl Transmitter for Generator {
    fn start(&mut self, rate: Pps) -> Result<(), Failure> {
        self.want(rate);
        self.settle()
    }

    fn set_rate(&mut self, rate: Pps) {
        self.want(rate);
    }

    fn due(&self) -> u64 {
        self.shared.scheduled.get()
    }

    fn sent(&self) -> Vec<Count> {
        since(self.all_sent(), &self.before)
    }

    fn start_over(&mut self) {
        self.before = self.all_sent();
    }

    fn is_over(&self) -> bool {
        self.shared.over.load(Relaxed)
    }

    fn queue_full(&self) -> u64 {
        self.shared.queue_full.get()
    }

    fn pacing(&self) -> Pacing {
        pacing(std::slice::from_ref(self))
    }

    fn stop(&mut self) -> Result<(), Failure> {
        self.want(Pps(0.0));
        self.settle()
    }
}

/// Measure of how well generators kept a schedule that they share. Gaps are each one's own: where
/// two send between each other's packets, nobody looks.
fn pacing(generators: &[Generator]) -> Pacing {
    let shared = || generators.iter().map(|generator| &*generator.shared);
    let sending = || shared().filter(|shared| shared.run.get() > 0);
    let first = sending().map(|shared| shared.first.get()).min();
    let last = sending().map(|shared| shared.last.get()).max();
    Pacing {
        gaps: Histogram::together(shared().map(|shared| &shared.gaps)),
        delay: Some(Delay {
            late: Histogram::together(shared().map(|shared| &shared.late)),
            span: Nanos(last.unwrap_or(0)).since(Nanos(first.unwrap_or(0))),
            packets: sending().map(|shared| shared.run.get()).sum(),
        }),
    }
}

/// The generators of several cores that send one profile, divided among them
/// ([`crate::model::divide`]).
#[derive(Debug)]
pub struct Cores(pub Vec<Generator>);

impl Cores {
    /// At a rate of the whole profile: each core knows its share.
    fn want(&self, rate: Pps) {
        self.0.iter().for_each(|core| core.want(rate));
    }

    fn settle(&self) -> Result<(), Failure> {
        self.0.iter().try_for_each(Generator::settle)
    }

    /// Starts the profile from its beginning, for `duration` if one is given; packets that are due
    /// within it are sent, and then it [is over](Transmitter::is_over). What was sent before ends.
    ///
    /// # Errors
    /// The thread has ended.
    pub fn start_for(&mut self, rate: Pps, duration: Option<Duration>) -> Result<(), Failure> {
        self.stop()?;
        self.0.iter().for_each(|core| core.limit(duration));
        self.start(rate)
    }

    /// Stops sending, to [go on](Self::resume) later where it stopped: a burst has its rest, a
    /// duration what is left of it. Of one that is over nothing is left to send.
    ///
    /// # Errors
    /// The thread has ended.
    pub fn pause(&mut self) -> Result<(), Failure> {
        let bits = PAUSED.to_bits();
        self.0.iter().for_each(|core| core.want_bits(bits));
        self.settle()
    }

    /// Goes on after a [pause](Self::pause), at `rate`.
    ///
    /// # Errors
    /// The thread has ended.
    pub fn resume(&mut self, rate: Pps) -> Result<(), Failure> {
        self.start(rate)
    }

    fn sum(&self, of: impl Fn(&Generator) -> u64) -> u64 {
        self.0.iter().map(of).sum()
    }
}

impl Transmitter for Cores {
    fn start(&mut self, rate: Pps) -> Result<(), Failure> {
        self.want(rate);
        self.settle()
    }

    fn set_rate(&mut self, rate: Pps) {
        self.want(rate);
    }

    fn due(&self) -> u64 {
        self.sum(Generator::due)
    }

    fn sent(&self) -> Vec<Count> {
        let cores: Vec<Vec<Count>> = self.0.iter().map(Generator::sent).collect();
        let streams = cores.first().map_or(0, Vec::len);
        let of = |stream: usize| cores.iter().filter_map(|c| c.get(stream).copied()).sum();
        (0..streams).map(of).collect()
    }

    fn start_over(&mut self) {
        self.0.iter_mut().for_each(Generator::start_over);
    }

    fn queue_full(&self) -> u64 {
        self.sum(Generator::queue_full)
    }

    fn pacing(&self) -> Pacing {
        pacing(&self.0)
    }

    fn is_over(&self) -> bool {
        self.0.iter().all(Generator::is_over)
    }

    fn stop(&mut self) -> Result<(), Failure> {
        self.want(Pps(0.0));
        self.settle()
    }
}
