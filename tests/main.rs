//! Whole-program tests: the binary on real interfaces, in network namespaces of their own.
//!
//! A file is a scenario. What cannot run here (no root) prints `SKIP name: why` and returns.
//! Scenarios that attach XDP programs or send live frames run one at a time on the whole machine:
//! whoever makes their links holds the lock.

mod harness;

mod badinput;
mod bgp;
mod differential;
mod idle;
mod life;
mod memif;
mod output;
mod overload;
mod report;
mod routes;
mod show;
mod tcp;
