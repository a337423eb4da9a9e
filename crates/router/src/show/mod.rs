//! Text that `show` commands print of the router as a whole. A feature's own commands are in its
//! folder: [`neighbor::show`](crate::neighbor::show), [`ip::show`](crate::ip::show).
//!
//! They are serde structs, one file a command: `Display` is the text, the serialization the JSON.
//! Columns are those of VPP where we have a value for them. A name longer than its column moves the
//! rest of its line; nothing is cut off. Only workers write counters; [`Clear`] remembers what
//! they were.

mod address;
mod buffers;
mod counts;
mod errors;
mod graph;
mod interface;
mod memory;
mod runtime;
pub(crate) mod text;
mod threads;
pub(crate) mod trace;

pub use address::{Addressed, Addresses, addresses};
pub use buffers::{Buffers, buffers};
pub use counts::Clear;
pub use errors::{Error, Errors, Severity, errors};
pub use graph::{Edge, Graph, Node, graph};
pub(crate) use interface::counts_of;
pub use interface::{Interface, Interfaces, NoInterface, Other, OtherState, interfaces, number_of};
pub use memory::{Memory, memory};
pub use runtime::{Runtime, runtime};
pub use threads::{Threads, threads};
pub use trace::{Step, Trace, TraceError, trace};
