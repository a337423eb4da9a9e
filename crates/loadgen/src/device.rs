//! Generators and receivers as measurements see them, whichever they are: software on a port, XDP
//! live frames, an XDP program that counts.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::histogram::{self, Times};
use crate::model::units::Pps;
use crate::receive::flow::Flow;

/// Way in which packets are made and sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Sender {
    /// XDP live frames, sent by the kernel.
    Live,
    /// Software, through AF_XDP sockets.
    AfXdp,
    /// Software, through shared memory.
    Memif,
    /// Software, into a capture file.
    Pcap,
}

impl fmt::Display for Sender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}

/// Packets and bytes. Bytes include the frame check sequence, so the smallest frame has 64.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Count {
    /// Packets.
    pub packets: u64,
    /// Bytes.
    pub bytes: u64,
}

impl Count {
    /// The packets and bytes counted since `before`.
    pub fn since(self, before: Self) -> Self {
        Self {
            packets: self.packets.saturating_sub(before.packets),
            bytes: self.bytes.saturating_sub(before.bytes),
        }
    }
}

/// Counts since `before`, which has nothing or as much as `now`.
pub fn since(now: Vec<Count>, before: &[Count]) -> Vec<Count> {
    let before = before
        .iter()
        .copied()
        .chain(std::iter::repeat(Count::default()));
    let counts = now.into_iter().zip(before);
    counts.map(|(now, before)| now.since(before)).collect()
}

impl std::iter::Sum for Count {
    fn sum<I: Iterator<Item = Self>>(counts: I) -> Self {
        counts.fold(Self::default(), |a, b| Self {
            packets: a.packets + b.packets,
            bytes: a.bytes + b.bytes,
        })
    }
}

/// Measure of how well a schedule was kept.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Pacing {
    /// Gaps between packets that left, of all runs: a time for each packet but the first of a run.
    /// Those that were handed over together are 0 apart. Nothing where nobody looks.
    pub gaps: Times,
    /// Delay, which only software knows; None for live frames, which the kernel sends.
    pub delay: Option<Delay>,
}

/// Time that packets waited for their port.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Delay {
    /// Time from when each packet was due until the port took it, of all runs. Packets that are
    /// sent without a limit are not due at any time.
    pub late: Times,
    /// Time from when the first packet of the latest run was due to when its last one left: n
    /// packets have n - 1 gaps.
    pub span: Duration,
    /// Packets of that run.
    pub packets: u64,
}

impl Delay {
    /// Rate of the latest run, from its first packet to its last. None if there are less than two.
    pub fn pps(&self) -> Option<Pps> {
        let seconds = self.span.as_secs_f64();
        let gaps = self.packets.saturating_sub(1);
        (gaps > 0 && seconds > 0.0).then(|| Pps(gaps as f64 / seconds))
    }
}

/// Failure of a device of the load tester, in one line.
pub type Failure = Box<dyn std::error::Error + Send + Sync>;

/// Sends the streams of one port. Counts only ever grow, and go on growing when it is started
/// again, but for [`Transmitter::start_over`].
pub trait Transmitter: Send {
    /// Starts sending at `rate`, all streams together; at [`Pps::UNLIMITED`], as fast as the port
    /// takes packets. It is sending when this returns.
    ///
    /// # Errors
    /// If it cannot send, or can no longer.
    fn start(&mut self, rate: Pps) -> Result<(), Failure>;

    /// The rate that it really sends at where `rate` is asked for.
    fn nearest(&self, rate: Pps) -> Pps {
        rate
    }

    /// Changes the rate without a gap. At rate 0 no more packets become due.
    fn set_rate(&mut self, rate: Pps);

    /// Packets that were due up to now, or up to the stop. Without a limit: packets sent.
    fn due(&self) -> u64;

    /// Packets that the port took, for each stream.
    fn sent(&self) -> Vec<Count>;

    /// Number of attempts that found the port full.
    fn queue_full(&self) -> u64 {
        0
    }

    /// Measure of how well the schedule was kept, as far as somebody looks.
    fn pacing(&self) -> Pacing {
        Pacing::default()
    }

    /// Counts what streams send anew, from 0 on: what was sent before was a warm-up. Only while it
    /// is stopped.
    fn start_over(&mut self) {}

    /// True if everything has been sent: only a profile of bursts comes to an end.
    fn is_over(&self) -> bool {
        false
    }

    /// Stops sending. When it returns, nothing more is sent and the counts are final.
    ///
    /// # Errors
    /// If sending failed.
    fn stop(&mut self) -> Result<(), Failure>;
}

/// Counts what comes back at one port. Counts only ever grow, but for [`Receiver::start_over`].
pub trait Receiver: Send {
    /// Packets that came back, for each stream expected here.
    fn counts(&self) -> Vec<Count>;

    /// Measurements of each stream that measures latency; nothing where nobody looks.
    fn flows(&self) -> Vec<Option<Flow>> {
        Vec::new()
    }

    /// How long the packets of each stream took that measures latency, where nobody follows their
    /// numbers and [`Receiver::flows`] has nothing.
    fn latencies(&self) -> Vec<Option<Times>> {
        Vec::new()
    }

    /// How many packets took how long, of all streams together that measure it; None if none does.
    fn times(&self) -> Option<histogram::Counts> {
        None
    }

    /// Counts streams anew, from 0 on: what came before was a warm-up. Only while nothing of it is
    /// on its way.
    fn start_over(&mut self) {}

    /// Everything else that was received.
    fn other(&self) -> Count;
}

/// One direction of a test: sent by one port and expected at another.
pub struct Path {
    /// Sends.
    pub tx: Box<dyn Transmitter>,
    /// Counts what comes back of it.
    pub rx: Box<dyn Receiver>,
}

impl Path {
    /// Forgets the warm-up: the counts of streams begin anew.
    pub fn start_over(&mut self) {
        self.tx.start_over();
        self.rx.start_over();
    }
}
