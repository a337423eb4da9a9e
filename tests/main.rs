//! Whole-program tests: the binary on real interfaces, in network namespaces of their own.
//!
//! A file is a scenario. What cannot run here (no root, a program missing) prints `SKIP name: why` and returns.

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
