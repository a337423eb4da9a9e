//! Ports: af_xdp, memif, tap, ring, pcap, null, and wrappers over any port.
//!
//! Every port is a [`graph::Port`]: one receive and transmit queue of an interface, served by one worker.
//! What opens, connects and watches a port runs on the control side; a port itself never blocks.
#![allow(unsafe_code)]

mod event;
pub mod memif;
pub mod null;
pub mod pcap;
pub mod ring;
pub mod wrap;
