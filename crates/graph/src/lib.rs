//! The packet engine: buffers, frames, stages, edges, workers, counters, trace, snapshots, rings, the [`Port`] trait.
//! It knows no protocol.
//!
//! A [`worker::Worker`] takes packets from its [`Port`]s into a [`Frame`] of 256 descriptors, hands the frame to the nodes of its
//! [`Graph`] along their edges until none has packets left, and gives what reached an interface to that interface's port.
//! Three mechanisms carry the speed:
//! - a frame holds [`Desc`]riptors by value, there is no metadata memory beside the packet;
//! - the framework moves, counts, prefetches and traces whole frames, and runs of packets where a frame splits;
//! - a [`Stage`] is written once, as a function of one packet, and fused by [`stage::Fused`] where it pays.

pub mod cable;
pub mod counters;
pub mod cycles;
pub mod desc;
pub mod epoch;
pub mod frame;
pub mod graph;
pub mod node;
pub mod pool;
pub mod port;
pub mod ring;
pub mod stage;
mod sync;
pub mod trace;
pub mod waker;
pub mod worker;
pub mod worker_port;

pub use desc::{Desc, Flag};
pub use frame::{Batch, FRAME, Frame};
pub use graph::Graph;
pub use node::{Each, Node, Out};
pub use pool::{Buffers, Pool};
pub use port::{Port, PortCounters};
pub use stage::{Edge, Edges, Pkt, Stage, To};
