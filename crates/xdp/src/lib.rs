//! Code that runs in the kernel: XDP programs, with their loader, maps, and memory backed by maps.
//!
//! Four programs, their sources in `bpf/`, their objects built in:
//! - [`Router`]: on each AF_XDP port, forwards packets, gives them to the router, or leaves them to
//!   the kernel, out of the route tables that userspace writes as plain atomics
//!   ([`Router::memory`]);
//! - [`Receiver`]: on a port that only receives, gives everything to AF_XDP sockets;
//! - [`Live`]: a traffic generator that runs inside the kernel over live frames
//!   (`BPF_PROG_TEST_RUN`);
//! - [`Sink`]: the receiving end of a load test, which counts by stream, measures latency, and drops.
//!
//! Programs are attached by BPF links, so the end of the process, however it comes, detaches them.
//! Beside them is what asks the kernel about programs and devices: [`attached`], [`links`],
//! [`features`].
//!
//! Linux 6.1 or later. Interfaces are named by index in the network namespace of the calling
//! thread.

// What the kernel says is converted or refused, never cut. Tests know their numbers.
#![cfg_attr(not(test), deny(clippy::cast_possible_truncation))]
#![cfg_attr(not(test), deny(clippy::unwrap_used))]

mod attach;
mod device;
mod error;
mod grace;
mod inventory;
#[cfg(test)]
mod layout;
mod link;
mod live;
mod map;
mod mode;
mod object;
mod receiver;
mod router;
mod sink;
mod sys;
mod times;

pub use attach::Attachment;
pub use device::{Device, device_counters};
pub use error::Error;
pub use grace::Grace;
pub use inventory::{Attached, Features, LinkInfo, attached, features, links};
pub use link::DeviceCounters;
#[doc(hidden)]
pub use link::{Link, features as features_in};
pub use live::{
    Live, LiveError, LivePlan, LiveStream, LiveTotals, MAX_FRAME, MAX_ROUND, MAX_STREAMS, MAX_VARS,
    MAX_WAYS, Op, Rate, Var,
};
pub use mode::Mode;
pub use receiver::Receiver;
pub use router::{Counters, DROPS, Router, RouterPort};
pub use sink::{MAX_MATCHES, Match, Sink};
pub use sys::monotonic;
pub use times::{TIME_BITS, Times};

/// Packets and bytes of one stream. Bytes are those of the frames without the check sequence (FCS).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StreamCount {
    /// Frames.
    pub packets: u64,
    /// Bytes of these frames, from the destination address to the last byte before the FCS.
    pub bytes: u64,
}

/// The verdict of a program on a packet in a dry run; the numbers are those of `enum xdp_action`
/// (linux/bpf.h).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// An error in the program: counted by the kernel, and dropped.
    Aborted,
    /// Dropped.
    Drop,
    /// Left to the kernel's stack.
    Pass,
    /// Sent back out of the same interface.
    Tx,
    /// Given to a socket or another interface.
    Redirect,
}
