//! What we ask of Linux, asked in one place: [`netlink`] and [`ethtool`], network namespaces
//! ([`netns`]), names of devices ([`netdev`]), processors ([`cpu`]) and event counters ([`event`]).
//!
//! This crate knows messages and system calls. What an answer means is for its callers to say.

pub mod cpu;
pub mod ethtool;
pub mod event;
pub mod netdev;
pub mod netlink;
pub mod netns;
