//! Counts received packets by stream, so that only packets of the test count.
#![cfg_attr(not(test), warn(clippy::cast_possible_truncation))]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use graph::counters::Counter;
use graph::{Buffers, Frame, Port};
use wire::eth::MIN_FRAME;

use crate::clock::Clock;
use crate::device::{Count, Receiver, since};
use crate::histogram;
use crate::model::stream::{ID_BASE, Stream};
use crate::model::units::{FCS, MAX_FRAME};
use crate::source::mark::{self, Trailer, counters_of};

use self::classify::Key;
pub use self::classify::{Match, Version};
use self::flow::{Flow, FlowCounters, Follower};
pub use self::together::{Knows, together};

mod classify;
pub mod flow;
mod together;

/// Packets and bytes of one stream, or of everything else.
#[derive(Debug, Default)]
struct Received {
    packets: Counter,
    bytes: Counter,
}

impl Received {
    fn add(&self, count: Count) {
        self.packets.add(count.packets);
        self.bytes.add(count.bytes);
    }

    fn get(&self) -> Count {
        Count {
            packets: self.packets.get(),
            bytes: self.bytes.get(),
        }
    }
}

/// The counters of a software receiver; any thread may read them.
#[derive(Debug, Clone)]
pub struct Counters {
    streams: Arc<[Received]>,
    /// Of the streams that measure latency.
    flows: Arc<[Option<FlowCounters>]>,
    other: Arc<Received>,
    /// Asks the receiver to forget the flows, and says that it has not yet.
    forget: Arc<AtomicBool>,
    /// Counts of the warm-up.
    before: Vec<Count>,
}

/// Longest wait for a receiver to forget its flows: its thread may have ended.
const PATIENCE: Duration = Duration::from_secs(1);

impl Counters {
    /// Of each stream, the warm-up too.
    fn all_counts(&self) -> Vec<Count> {
        self.streams.iter().map(Received::get).collect()
    }
}

impl Receiver for Counters {
    fn counts(&self) -> Vec<Count> {
        since(self.all_counts(), &self.before)
    }

    fn start_over(&mut self) {
        self.before = self.all_counts();
        // Relaxed: the flag asks, and every counter stands for itself.
        self.forget.store(true, Ordering::Relaxed);
        let until = Instant::now() + PATIENCE;
        while self.forget.load(Ordering::Relaxed) && Instant::now() < until {
            std::thread::sleep(Duration::from_micros(50));
        }
    }

    fn flows(&self) -> Vec<Option<Flow>> {
        let flows = self.flows.iter();
        flows
            .map(|flow| flow.as_ref().map(FlowCounters::read))
            .collect()
    }

    fn times(&self) -> Option<histogram::Counts> {
        let flows = self.flows.iter().flatten();
        flows
            .map(FlowCounters::times)
            .reduce(histogram::Counts::and)
    }

    fn other(&self) -> Count {
        self.other.get()
    }
}

/// A software receiver: takes packets from a port, counts them and frees them.
pub(crate) struct Sink {
    matches: Vec<Option<Match>>,
    marks: Marks,
    followers: Vec<Follower>,
    /// A packet of several buffers in one piece.
    whole: Vec<u8>,
    frame: Frame,
    /// Counts of one frame: one for each stream, and the last for everything else.
    batch: Vec<Count>,
    counters: Counters,
}

impl Sink {
    /// A receiver of `streams`.
    pub fn new(streams: &[Stream]) -> Self {
        Self {
            // Streams with a mark are known by that alone.
            matches: streams
                .iter()
                .map(|s| Match::of(s).filter(|_| s.mark.is_none()))
                .collect(),
            marks: Marks::new(streams),
            followers: streams.iter().map(|_| Follower::new()).collect(),
            whole: Vec::with_capacity(MAX_FRAME),
            frame: Frame::default(),
            batch: vec![Count::default(); streams.len() + 1],
            counters: Counters {
                streams: streams.iter().map(|_| Received::default()).collect(),
                flows: streams
                    .iter()
                    .map(|s| s.is_fixed().then(FlowCounters::default))
                    .collect(),
                other: Arc::default(),
                forget: Arc::default(),
                before: Vec::new(),
            },
        }
    }

    pub fn counters(&self) -> Counters {
        self.counters.clone()
    }

    /// Receives once. Returns the number of packets.
    pub fn poll(&mut self, clock: &impl Clock, port: &mut dyn Port, bufs: &mut Buffers) -> usize {
        if self.counters.forget.load(Ordering::Relaxed) {
            self.counters
                .flows
                .iter()
                .flatten()
                .for_each(FlowCounters::clear);
            self.counters.forget.store(false, Ordering::Relaxed);
        }
        port.rx(bufs, &mut self.frame);
        let received = self.frame.len();
        if received == 0 {
            return 0;
        }
        let now = clock.now();
        for desc in self.frame.drain() {
            let mut frame = bufs.pool().bytes_of(&desc);
            if desc.is_chained() && !self.marks.is_empty() {
                // What a packet that measures latency says is at its end.
                self.whole.clear();
                let pool = bufs.pool();
                pool.segments(&desc, |bytes| self.whole.extend_from_slice(bytes));
                frame = &self.whole;
            }
            let marked = self.marks.of(frame);
            if let Some((stream, Some(trailer))) = &marked
                && let Some(flow) = &self.counters.flows[*stream]
            {
                self.followers[*stream].packet(trailer, now, flow);
            }
            let matched = || {
                let packet = Key::of(frame)?;
                let mut matches = self.matches.iter();
                matches.position(|m| m.is_some_and(|m| m.matches(&packet)))
            };
            let stream = marked.map(|(stream, _)| stream).or_else(matched);
            let count = &mut self.batch[stream.unwrap_or(self.matches.len())];
            count.packets += 1;
            count.bytes += (bufs.pool().total(&desc).max(MIN_FRAME) + FCS) as u64;
            bufs.free(desc);
        }
        let Counters { streams, other, .. } = &self.counters;
        for (counters, count) in streams.iter().chain([&**other]).zip(&mut self.batch) {
            if count.packets > 0 {
                counters.add(std::mem::take(count));
            }
        }
        received
    }
}

/// Finds the stream of a packet with a mark.
struct Marks {
    /// Streams by counter: those without latency, and those with.
    streams: [Vec<usize>; 2],
    /// Identification of the first counter without latency.
    base: u16,
    /// Tells for each stream if its packets are IP; those that are not are known by their trailer
    /// alone.
    are_ip: Vec<bool>,
}

impl Marks {
    fn new(streams: &[Stream]) -> Self {
        let is_ip = |stream: &Stream| mark::network(&stream.frame()).is_some();
        let mut this = Self {
            streams: Default::default(),
            base: streams.first().map_or(ID_BASE, |s| s.id_base),
            are_ip: streams.iter().map(is_ip).collect(),
        };
        for ((i, stream), counter) in streams.iter().enumerate().zip(counters_of(streams)) {
            let Some(mark) = stream.mark else { continue };
            let known = &mut this.streams[usize::from(mark.latency)];
            // Streams of one group count as its first.
            if known.len() == usize::from(counter) {
                known.push(i);
            }
        }
        this
    }

    fn is_empty(&self) -> bool {
        self.streams.iter().all(Vec::is_empty)
    }

    /// The stream of a frame, and what it says at its end if it measures latency. None if it has no
    /// mark of these streams.
    #[inline]
    fn of(&self, frame: &[u8]) -> Option<(usize, Option<Trailer>)> {
        if self.is_empty() {
            return None;
        }
        let [plain, latency] = &self.streams;
        let network = mark::network(frame);
        if let Some(network) = network {
            let number = mark::read(frame, network)?;
            if number != mark::LATENCY {
                let counter = number.checked_sub(self.base)?;
                let stream = plain.get(usize::from(counter))?;
                return Some((*stream, None));
            }
        }
        let trailer = Trailer::read(frame)?;
        let stream = *latency.get(usize::from(trailer.counter))?;
        (self.are_ip[stream] == network.is_some()).then_some((stream, Some(trailer)))
    }
}
