//! What `show` commands print: serde structs, whose `Display` is the text and whose serialization is the JSON.
//!
//! One file a command. Columns are those that operators of vector routers know; a name longer than its column moves the rest of
//! its line, nothing is cut. Counters are written by workers alone, so `clear` remembers what they were: [`Clear`].

mod adjacency;
mod buffers;
mod counts;
mod errors;
mod fib;
mod graph;
mod interface;
mod memory;
mod neighbors;
mod runtime;
mod text;
mod threads;
mod trace;

pub use adjacency::{Adjacencies, Adjacency, adjacencies};
pub use buffers::{Buffers, buffers};
pub use counts::Clear;
pub use errors::{Errors, Severity, errors};
pub use fib::{Fib, FibList, Query, Route, fib, fib_list};
pub use graph::{Graph, graph};
pub use interface::{Addresses, Interface, Interfaces, NoInterface, addresses, interfaces};
pub use memory::{Memory, memory};
pub use neighbors::{Neighbor, Neighbors, neighbors};
pub use runtime::{Runtime, runtime};
pub use threads::{Threads, threads};
pub use trace::{Step, Trace, TraceError, trace};
