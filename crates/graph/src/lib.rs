//! The packet engine: buffers, frames, stages, edges, workers, counters, trace, snapshots, rings,
//! the [`Port`] trait. It knows no protocol.
//!
//! A [`worker::Worker`] takes packets from its [`Port`]s into a [`Frame`] of 256 descriptors, hands
//! the frame to the nodes of its [`Graph`] along their edges until none has packets left, and gives
//! packets that reach an interface to that interface's port. Three mechanisms carry the speed:
//! - a frame holds [`Desc`]riptors by value; there is no metadata memory beside the packet;
//! - the engine moves, counts, prefetches and traces whole frames, and runs of packets where a
//!   frame splits;
//! - a [`Stage`] is written once, as a function of one packet, and fused by [`Fused`] where it
//!   pays.

#![cfg_attr(not(test), deny(clippy::unwrap_used))]

mod arc;
pub mod counters;
pub mod cycles;
mod desc;
mod edge;
mod emit;
pub mod epoch;
mod frame;
mod fused;
mod graph;
mod handle;
mod handoff;
pub mod memory_port;
mod nap;
pub mod node;
mod out;
mod pkt;
pub mod pool;
mod port;
mod queues;
pub mod ring;
pub mod stage;
mod sync;
mod targets;
mod timers;
pub mod trace;
mod transmit;
pub mod waker;
pub mod worker;
mod worker_port;

pub use arc::{By, FEATURES, FeatureArc, Mask};
pub use desc::{Desc, Flag};
pub use edge::{Class, Edge, Edges, To};
pub use emit::Emit;
pub use frame::{Batch, FRAME, Frame};
pub use fused::Fused;
pub use graph::Graph;
pub use handle::{Command, Handle, Returned};
pub use handoff::Handoff;
pub use node::{Each, Node};
pub use pkt::{Packets, Pkt};
pub use pool::{Buffers, Pool};
pub use port::{Port, PortCounters, PortId};
pub use stage::Stage;
pub use targets::GraphError;
pub use timers::Timers;
pub use transmit::TxPlacement;
pub use worker_port::WorkerPort;
