//! Whole-program tests: the binary on real interfaces, in network namespaces of their own.
//!
//! One file a topic. A test that cannot run here (no root) prints `SKIP name: why` and returns.
//! Tests that attach XDP programs or send live frames run one at a time on the whole machine:
//! whoever makes their links holds the lock.

mod harness;

mod advice;
mod apply;
mod badinput;
mod bgp;
mod bonds;
mod captures;
mod cards;
mod change;
mod configuration;
mod console;
mod differential;
mod dry;
mod firewall;
mod guests;
mod host_ends;
mod idle;
mod layer2;
mod life;
mod matrix;
mod memif;
mod nat;
mod output;
mod overload;
mod pacing;
mod replay;
mod report;
mod routes;
mod search;
mod sflow;
mod show;
mod streams;
mod subs;
mod tags;
mod taps;
mod tcp;
mod testpmd;
mod top;
mod trex;
mod ui;
mod unnumbered;
mod vxlan;
