//! What the controller needs of a generator and of a receiver, whoever they are: software over a port, XDP live
//! frames, an XDP program that counts.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::model::units::Pps;

/// How packets are made and sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Sender {
    /// By the kernel, as XDP live frames.
    Live,
    /// In software, by AF_XDP sockets.
    AfXdp,
    /// In software, through shared memory.
    Memif,
}

impl fmt::Display for Sender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}

/// Packets and bytes; the frame check sequence counts (64 is the smallest frame).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Count {
    /// Packets.
    pub packets: u64,
    /// Bytes.
    pub bytes: u64,
}

impl Count {
    /// What was counted since `before`.
    #[must_use]
    pub fn since(self, before: Count) -> Count {
        Count {
            packets: self.packets.saturating_sub(before.packets),
            bytes: self.bytes.saturating_sub(before.bytes),
        }
    }
}

impl std::iter::Sum for Count {
    fn sum<I: Iterator<Item = Count>>(counts: I) -> Count {
        counts.fold(Count::default(), |a, b| Count {
            packets: a.packets + b.packets,
            bytes: a.bytes + b.bytes,
        })
    }
}

/// Why a device of the load tester failed, in one line.
pub type Failure = Box<dyn std::error::Error + Send + Sync>;

/// Sends the streams of one port. All counts only ever grow, also over several starts.
pub trait Transmitter: Send {
    /// Begins to send at `rate` (all streams together); [`Pps::UNLIMITED`]: as fast as the port takes packets. When it
    /// returns, it sends.
    ///
    /// # Errors
    /// If it cannot send (any more).
    fn start(&mut self, rate: Pps) -> Result<(), Failure>;

    /// Goes on at another rate without a gap; at rate 0 nothing more becomes due.
    fn set_rate(&mut self, rate: Pps);

    /// Packets that the schedule wanted sent by now or by the stop; unlimited: what was sent.
    fn due(&self) -> u64;

    /// What the port took, by stream.
    fn sent(&self) -> Vec<Count>;

    /// Attempts that found the port full.
    fn queue_full(&self) -> u64 {
        0
    }

    /// Stops sending. When it returns, nothing more is sent and the counts are final.
    ///
    /// # Errors
    /// If sending had failed.
    fn stop(&mut self) -> Result<(), Failure>;
}

/// Counts what comes back at one port. All counts only ever grow.
pub trait Receiver: Send {
    /// What came of the streams expected here, by stream.
    fn counts(&self) -> Vec<Count>;

    /// Everything else that came.
    fn other(&self) -> Count;
}

/// One direction of a test: what is sent at one port and expected at another.
pub struct Path {
    /// Sends.
    pub tx: Box<dyn Transmitter>,
    /// Receives what `tx` sent.
    pub rx: Box<dyn Receiver>,
}
