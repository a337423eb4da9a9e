//! Look-up structures of the fast path; they know no packet.
//!
//! Flows ([`flow`]) belong to one worker. Every other structure has one writer (the control plane)
//! and any number of readers (workers, and XDP programs that see the same memory). A reader takes
//! no lock and writes nothing: it sees a table change one 32-bit word at a time. What is more than a word (a second-level group, a next-hop
//! group, an adjacency) is filled first and published afterwards by one store; what is taken out of
//! use is *retired* and may be filled again only when every reader that could still hold its number
//! has passed on: see [`ids`].
//!
//! Memory comes from the caller ([`mem::Cells`]; of all tables: [`Memory`]), so that a table may
//! live in a box, in huge pages or in a BPF array map. What a program in C must know of the layouts
//! is written by [`layout`].
//!
//! The way of a packet: [`ip4::Reader::lookup`] gives an entry, as [`ip6::Reader::lookup`] does;
//! that names a group of [`nexthop`], its bucket names an [`adjacency`]; before that, [`interface`]
//! has said how the packet is taken in. Numbers below [`special::FIRST_FREE`] mean the same in all
//! three: see [`special`].

#![cfg_attr(not(test), deny(clippy::unwrap_used))]

pub mod acl;
pub mod adjacency;
pub mod entry;
mod fib;
pub mod field;
pub mod flow;
pub mod hash;
pub mod ids;
pub mod interface;
pub mod ip4;
pub mod ip6;
pub mod layout;
pub mod mac;
pub mod mem;
mod memory;
pub mod nexthop;
#[cfg(test)]
mod oracle;
pub mod prefix;
pub mod random;
pub mod rib;
pub mod special;
pub mod synthetic;
pub mod translated;
pub mod tunnels;

pub use fib::Fib;
pub use memory::{Memory, Sizes};
