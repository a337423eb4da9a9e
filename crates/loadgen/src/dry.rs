//! Packets that a profile would send, and their times, without a port.

use crate::clock::Nanos;
use crate::model::divide::divide;
use crate::model::load::Load;
use crate::model::stream::Stream;
use crate::model::units::Pps;
use crate::schedule::Schedule;
use crate::source::fields::Fields;
use crate::source::mark::counters_of;

/// Seed of streams that ask for a different sequence every time: what is written down is what others
/// can repeat.
pub const SEED: u32 = 1;

/// The packets of a port in their order, from time 0 on.
pub struct Dry(Vec<Core>);

/// Packets of one core.
struct Core {
    schedule: Schedule,
    sources: Vec<Fields>,
    frame: Vec<u8>,
    /// The packet in `frame`: its time, its stream and its length.
    ready: Option<(Nanos, usize, usize)>,
}

impl Dry {
    /// The packets of streams, addressed, each with its rate at multiplier 1, when the port sends
    /// at `rate`; an unlimited one stands for multiplier 1. Streams without a seed have [`SEED`].
    pub fn new(streams: &[(Stream, Pps)], rate: Pps) -> Self {
        Self(vec![Core::new(streams, rate)])
    }

    /// The same, divided among `cores` (1 or more) and put together again by time.
    pub fn divided(streams: &[(Stream, Pps)], cores: u32, rate: Pps) -> Self {
        let cores = divide(streams, cores).into_iter();
        Self(cores.map(|s| Core::new(&s, rate)).collect())
    }

    /// The next packet that is due at `until` or before: its time, its stream and its bytes. None
    /// if there is none.
    pub fn next(&mut self, until: Nanos) -> Option<(Nanos, usize, &[u8])> {
        for core in &mut self.0 {
            core.make(until);
        }
        let ready = self.0.iter_mut().filter(|core| core.ready.is_some());
        let core = ready.min_by_key(|core| core.ready)?;
        let (at, stream, len) = core.ready.take()?;
        Some((at, stream, &core.frame[..len]))
    }
}

impl Core {
    fn new(streams: &[(Stream, Pps)], rate: Pps) -> Self {
        let mut schedule = Schedule::new(streams.iter().map(|(s, pps)| (s, *pps)));
        let factor = Load::of(streams).map_or(1.0, |load| load.factor(rate));
        schedule.start(Nanos(0), factor);
        let counters = counters_of(streams.iter().map(|(s, _)| s));
        let sources = streams.iter().zip(counters);
        let longest = streams.iter().map(|(s, _)| s.frame_len()).max();
        Self {
            schedule,
            sources: sources
                .map(|((s, _), counter)| Fields::new(s, SEED, counter))
                .collect(),
            frame: vec![0; longest.unwrap_or(0)],
            ready: None,
        }
    }

    /// Makes the next packet that is due at `until` or before, if none is ready.
    fn make(&mut self, until: Nanos) {
        while self.ready.is_none() && !self.schedule.is_over() && self.schedule.is_due(until) {
            self.ready = self.schedule.next(until).map(|(stream, at)| {
                let len = self.sources[stream].write(at, &mut self.frame);
                (at, stream, len)
            });
        }
    }
}
