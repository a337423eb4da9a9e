//! Ports: af_xdp, memif, tap, ring, pcap, null, recirculation, and wrappers over any port.
//!
//! Every port is a [`graph::Port`]: one receive and transmit queue of an interface, served by one
//! worker. What opens, connects and watches a port runs on the control side; a port itself never
//! blocks.

// What a peer or the kernel says is converted or refused, never cut. Tests know their numbers.
#![cfg_attr(not(test), deny(clippy::cast_possible_truncation))]
#![cfg_attr(not(test), deny(clippy::unwrap_used))]

pub mod af_xdp;
pub mod memif;
pub mod null;
pub mod pcap;
pub mod recirculation;
pub mod ring;
pub mod tap;
#[cfg(test)]
mod testbed;
pub mod wrap;
