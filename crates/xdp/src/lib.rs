//! What runs in the kernel: XDP programs, loader, maps, map-backed memory.
//!
//! Three programs, their sources in `bpf/`, their objects built in:
//! - [`Router`]: on each AF_XDP port, forwards packets, gives them to the router, or leaves them to the kernel, out of the route
//!   tables that userspace writes as plain atomics ([`Router::memory`]);
//! - [`Live`]: a traffic generator that runs inside the kernel over live frames (`BPF_PROG_TEST_RUN`);
//! - [`Sink`]: the receiving end of a load test, which counts by stream and drops.
//!
//! Programs are attached by BPF links, so the end of the process, however it comes, detaches them. Beside them is what
//! asks the kernel about programs and devices: [`attached`], [`links`], [`features`], [`cleanup`].
//!
//! Linux 6.1 or later. Interfaces are named by index in the network namespace of the calling thread.

mod attach;
mod error;
mod inventory;
#[cfg(test)]
mod layout;
mod live;
mod map;
mod netlink;
mod object;
mod router;
mod sink;
mod sys;

pub use attach::{Attachment, Mode};
pub use error::Error;
pub use inventory::{Attached, Features, LinkInfo, attached, features, links};
pub use live::{
    Live, LiveError, LivePlan, LiveStream, LiveTotals, MAX_FRAME, MAX_STREAMS, MAX_VARS, MAX_WAYS,
    Op, Rate, Var,
};
pub use router::{Counters, DROPS, Router, RouterPort};
pub use sink::{MAX_MATCHES, Match, Sink};

/// Waits until no XDP program runs any more that began before this call, so that nothing retired from the tables before it is
/// still read (milliseconds). False where the kernel cannot say (booted with `nohz_full`): then wait some other way.
pub fn grace_period() -> bool {
    sys::membarrier()
}

/// Packets and bytes of one stream. Bytes are those of the frames without the check sequence (FCS).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StreamCount {
    /// Frames.
    pub packets: u64,
    /// Bytes of these frames, from the destination address to the last byte before the FCS.
    pub bytes: u64,
}

/// What a program did with a packet in a dry run; the numbers are those of `enum xdp_action` (linux/bpf.h).
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
