//! `show ip fib`, `show ip6 fib` and `show adjacency`.

mod adjacency;
mod fib;
mod fib_list;

pub(crate) use adjacency::adjacency;
pub use adjacency::{Adjacencies, Adjacency, adjacencies};
pub use fib::{Buckets, Fib, Path, Query, Route, fib};
pub use fib_list::{FibList, Listed, Nodes, fib_list};
