//! Counts received packets by stream, so that only packets of the test count.
#![cfg_attr(not(test), warn(clippy::cast_possible_truncation))]

use std::sync::Arc;

use graph::counters::Counter;
use graph::{Buffers, Frame, Port};
use wire::eth::MIN_FRAME;

use crate::device::{Count, Receiver};
use crate::model::stream::Stream;
use crate::model::units::FCS;

pub use self::classify::Match;

mod classify;

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
    other: Arc<Received>,
}

impl Receiver for Counters {
    fn counts(&self) -> Vec<Count> {
        self.streams.iter().map(Received::get).collect()
    }

    fn other(&self) -> Count {
        self.other.get()
    }
}

/// A software receiver: takes packets from a port, counts them and frees them.
pub(crate) struct Sink {
    matches: Vec<Option<Match>>,
    frame: Frame,
    /// Counts of one frame: one for each stream, and the last for everything else.
    batch: Vec<Count>,
    counters: Counters,
}

impl Sink {
    /// A receiver of `streams`.
    pub fn new(streams: &[Stream]) -> Self {
        Self {
            matches: streams.iter().map(Match::of).collect(),
            frame: Frame::default(),
            batch: vec![Count::default(); streams.len() + 1],
            counters: Counters {
                streams: streams.iter().map(|_| Received::default()).collect(),
                other: Arc::default(),
            },
        }
    }

    pub fn counters(&self) -> Counters {
        self.counters.clone()
    }

    /// Receives once. Returns the number of packets.
    pub fn poll(&mut self, port: &mut dyn Port, bufs: &mut Buffers) -> usize {
        port.rx(bufs, &mut self.frame);
        let received = self.frame.len();
        if received == 0 {
            return 0;
        }
        for desc in self.frame.drain() {
            let frame = bufs.pool().bytes_of(&desc);
            let stream = self
                .matches
                .iter()
                .position(|m| m.is_some_and(|m| m.matches(frame)));
            let count = &mut self.batch[stream.unwrap_or(self.matches.len())];
            count.packets += 1;
            count.bytes += (bufs.pool().total(&desc).max(MIN_FRAME) + FCS) as u64;
            bufs.free(desc);
        }
        let Counters { streams, other } = &self.counters;
        for (counters, count) in streams.iter().chain([&**other]).zip(&mut self.batch) {
            if count.packets > 0 {
                counters.add(std::mem::take(count));
            }
        }
        received
    }
}
