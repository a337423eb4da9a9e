//! The software generator: builds packets and gives them to a port on schedule.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::time::Duration;

use graph::counters::Counter;
use graph::{Buffers, Desc, Frame, Port};

use crate::clock::Nanos;
use crate::device::{Count, Failure, Transmitter};
use crate::model::stream::Stream;
use crate::model::units::Pps;
use crate::schedule::{Interleave, Pacer};
use crate::source::fields::Fields;

/// Packets built and offered to the port at a time.
const BURST: usize = 128;

/// How far a schedule catches up after the thread was held up, and how long a stop waits for the
/// last packets.
pub const BACKLOG: Duration = Duration::from_millis(20);

/// State shared by the controller and the sending thread.
#[derive(Debug)]
struct Shared {
    /// Rate wanted, as the bits of an f64; 0.0: stopped.
    wanted: AtomicU64,
    /// The last `wanted` that the thread has put into effect.
    applied: AtomicU64,
    scheduled: Counter,
    /// Packets, by stream.
    sent: Box<[Counter]>,
    queue_full: Counter,
    alive: AtomicBool,
}

/// The control of a software generator, for another thread.
#[derive(Debug)]
pub struct Generator {
    shared: Arc<Shared>,
    sizes: Vec<u64>,
}

impl Generator {
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

    fn want(&self, rate: Pps) {
        let pps = if rate.0 > 0.0 { rate.0 } else { 0.0 };
        self.shared.wanted.store(pps.to_bits(), Relaxed);
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
        let counters = self.shared.sent.iter().map(Counter::get);
        let counts = counters.zip(&self.sizes).map(|(packets, size)| Count {
            packets,
            bytes: packets * size,
        });
        counts.collect()
    }

    fn queue_full(&self) -> u64 {
        self.shared.queue_full.get()
    }

    fn stop(&mut self) -> Result<(), Failure> {
        self.want(Pps(0.0));
        self.settle()
    }
}

/// State of the sender.
enum State {
    Stopped,
    Sending(Pacer),
    /// Sending the rest up to this number of packets, but no later than this time.
    Stopping(Pacer, u64, Nanos),
}

/// The sending half of a port, run by its thread.
pub(crate) struct Sender {
    fields: Vec<Fields>,
    order: Interleave,
    state: State,
    /// Packets that are built, and their streams.
    pending: Frame,
    streams: VecDeque<usize>,
    /// Packets scheduled in earlier runs.
    base: u64,
    seen: u64,
    scratch: Vec<u8>,
    shared: Arc<Shared>,
}

impl Sender {
    /// A sender of `streams`, in proportion to `rates`, and its control.
    pub fn new(streams: &[Stream], rates: &[Pps], entropy: u32) -> (Self, Generator) {
        let shared = Arc::new(Shared {
            wanted: AtomicU64::new(0),
            applied: AtomicU64::new(0),
            scheduled: Counter::default(),
            sent: streams.iter().map(|_| Counter::default()).collect(),
            queue_full: Counter::default(),
            alive: AtomicBool::new(true),
        });
        let weights: Vec<_> = rates
            .iter()
            .zip(streams)
            .map(|(&rate, s)| (rate, s.isg))
            .collect();
        let sender = Self {
            fields: streams.iter().map(|s| Fields::new(s, entropy)).collect(),
            order: Interleave::new(&weights),
            state: State::Stopped,
            pending: Frame::default(),
            streams: VecDeque::with_capacity(BURST),
            base: 0,
            seen: 0,
            scratch: Vec::new(),
            shared: shared.clone(),
        };
        let sizes = streams.iter().map(|s| s.size() as u64).collect();
        (sender, Generator { shared, sizes })
    }

    /// Whether it is sending or about to.
    pub fn is_active(&self) -> bool {
        !matches!(self.state, State::Stopped) || self.shared.wanted.load(Relaxed) != 0
    }

    /// Sends what is due. Returns how many packets the port took.
    pub fn poll(&mut self, now: Nanos, port: &mut dyn Port, bufs: &mut Buffers) -> usize {
        let wanted = self.shared.wanted.load(Relaxed);
        if wanted != self.seen {
            self.change(now, f64::from_bits(wanted), wanted);
        }
        let due = match &mut self.state {
            State::Stopped => return 0,
            State::Sending(pacer) => {
                let due = pacer.due(now);
                self.shared.scheduled.set(self.base + pacer.scheduled(now));
                due
            }
            State::Stopping(pacer, last, _) => last.saturating_sub(pacer.taken()),
        };
        let built = self.pending.len();
        self.build(due.saturating_sub(built as u64), bufs);
        let took = self.offer(due, port, bufs);
        if let State::Stopping(pacer, last, until) = &self.state
            && (pacer.taken() >= *last || now >= *until)
        {
            self.finish(bufs);
        }
        took
    }

    fn change(&mut self, now: Nanos, rate: f64, bits: u64) {
        self.seen = bits;
        self.state = match (
            std::mem::replace(&mut self.state, State::Stopped),
            rate > 0.0,
        ) {
            (State::Sending(mut pacer) | State::Stopping(mut pacer, ..), true) => {
                pacer.set_rate(now, Pps(rate));
                State::Sending(pacer)
            }
            (State::Stopped, true) => State::Sending(Pacer::new(now, Pps(rate), BACKLOG)),
            (State::Sending(pacer), false) => {
                let last = pacer.scheduled(now);
                self.shared.scheduled.set(self.base + last);
                // It takes effect when the rest has been sent.
                self.state = State::Stopping(pacer, last, now.after(BACKLOG));
                return;
            }
            (state, false) => state,
        };
        self.shared.applied.store(bits, Release);
    }

    /// Builds up to `wanted` packets, as many as a burst has room for.
    fn build(&mut self, wanted: u64, bufs: &mut Buffers) {
        let room = BURST - self.pending.len();
        for _ in 0..wanted.min(room as u64) {
            let stream = self.order.turn();
            let Some(desc) = packet(&mut self.fields[stream], &mut self.scratch, bufs) else {
                return;
            };
            self.pending.put(desc);
            self.streams.push_back(stream);
        }
    }

    /// Offers the packets that are built and due, and counts those that the port takes.
    fn offer(&mut self, due: u64, port: &mut dyn Port, bufs: &mut Buffers) -> usize {
        let ready = self
            .pending
            .len()
            .min(usize::try_from(due).unwrap_or(usize::MAX));
        if ready == 0 {
            return 0;
        }
        let took = self.pending.offer(ready, |batch| port.tx(bufs, batch));
        for stream in self.streams.drain(..took) {
            self.shared.sent[stream].add(1);
        }
        if took < ready {
            self.shared.queue_full.add(1);
        }
        if let State::Sending(pacer) | State::Stopping(pacer, ..) = &mut self.state {
            pacer.take(took as u64);
            if pacer.is_unlimited() {
                self.shared.scheduled.set(self.base + pacer.taken());
            }
        }
        took
    }

    /// Ends a run, and frees packets that were built but not sent.
    fn finish(&mut self, bufs: &mut Buffers) {
        self.pending.drain().for_each(|desc| bufs.free(desc));
        self.streams.clear();
        self.base = self.shared.scheduled.get();
        self.state = State::Stopped;
        self.shared.applied.store(self.seen, Release);
    }

    /// Stops at once and for good.
    pub fn close(&mut self, bufs: &mut Buffers) {
        self.finish(bufs);
        self.shared.alive.store(false, Relaxed);
    }
}

impl Drop for Sender {
    fn drop(&mut self) {
        // Even if the thread panics, nobody may wait for it.
        self.shared.alive.store(false, Relaxed);
    }
}

/// The next packet of a stream, in buffers of the pool. None if there are none left.
#[inline]
fn packet(fields: &mut Fields, scratch: &mut Vec<u8>, bufs: &mut Buffers) -> Option<Desc> {
    if fields.frame_len() > usize::from(bufs.pool().room()) {
        scratch.clear();
        fields.append(scratch);
        return bufs.copy_in(scratch);
    }
    let (mut desc, _) = bufs.alloc_len(fields.frame_len())?;
    fields.write(bufs.pool().bytes_of_mut(&mut desc));
    Some(desc)
}
