//! Samples of the packets that come in, for sFlow (sflow.org/sflow_version_5.txt).
//!
//! What comes in by the port of an interface with [`SAMPLED`](crate::arc::SAMPLED) passes a node
//! before all else; the first bytes of one packet in N go to the control thread by a ring of the
//! worker's. What finds it full is lost and counted.

mod collect;
mod node;
mod samples;

pub use collect::Counted;
pub use node::Input;
pub(crate) use samples::{Collected, samples};
pub use samples::{Sample, Samples};
pub use wire::sflow::{Counters, Datagram, Direction, Flow, PORT, UNKNOWN};
