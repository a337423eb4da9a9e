//! What a profile would send, and when, without a port.

use crate::clock::Nanos;
use crate::model::load::Load;
use crate::model::stream::Stream;
use crate::model::units::Pps;
use crate::schedule::Schedule;
use crate::source::fields::Fields;
use crate::source::mark::counters_of;

/// The packets of a port in their order, from time 0 on.
pub struct Dry {
    schedule: Schedule,
    sources: Vec<Fields>,
    frame: Vec<u8>,
}

impl Dry {
    /// The packets of streams, addressed, each with its rate at multiplier 1, when the port sends
    /// at `rate`; an unlimited one stands for multiplier 1. `entropy` is the seed of streams that
    /// ask for a different one every time.
    pub fn new(streams: &[(Stream, Pps)], rate: Pps, entropy: u32) -> Self {
        let mut schedule = Schedule::new(streams.iter().map(|(s, pps)| (s, *pps)));
        let factor = Load::of(streams).map_or(1.0, |load| load.factor(rate));
        schedule.start(Nanos(0), factor);
        let counters = counters_of(streams.iter().map(|(s, _)| s));
        let sources = streams.iter().zip(counters);
        let longest = streams.iter().map(|(s, _)| s.frame_len()).max();
        Self {
            schedule,
            sources: sources
                .map(|((s, _), counter)| Fields::new(s, entropy, counter))
                .collect(),
            frame: vec![0; longest.unwrap_or(0)],
        }
    }

    /// The next packet that is due at `until` or before: its time, its stream and its bytes. None
    /// if there is none.
    pub fn next(&mut self, until: Nanos) -> Option<(Nanos, usize, &[u8])> {
        let (stream, at) = self.schedule.next(until)?;
        let len = self.sources[stream].write(at, &mut self.frame);
        Some((at, stream, &self.frame[..len]))
    }
}
