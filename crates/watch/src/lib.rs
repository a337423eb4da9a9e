//! Looks at a running router once a second, for whoever shows it: the live page and `parshall top`.
//!
//! A [`Watch`] is a client of the router's control socket, as `parshall show` is. Its thread asks
//! what the router's counters are ([`model`]) and keeps rates between two looks ([`sample`]), so
//! that many viewers cost the router no more than one ([`Live`]).

#![forbid(unsafe_code)]
#![cfg_attr(not(test), deny(clippy::unwrap_used))]

mod live;
pub mod model;
mod poll;
pub mod sample;

pub use live::{Latest, Live};
pub use poll::{PERIOD, Watch};
