//! `show ip fib` and `show adjacency`.

mod adjacency;
mod fib;

pub(crate) use adjacency::adjacency;
pub use adjacency::{Adjacencies, Adjacency, adjacencies};
pub use fib::{Buckets, Fib, FibList, Listed, Path, Query, Route, fib, fib_list};
