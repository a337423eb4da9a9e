//! One place for all requests to Linux: [`netlink`] and [`ethtool`], network namespaces
//! ([`netns`]), names of devices ([`netdev`]), processors ([`cpu`]), processes ([`process`]),
//! memory ([`memory`]), receive queues ([`rx_queues`]), event counters ([`event`]), times ([`clock`]), devices that listen to
//! everything ([`promiscuous`]) and devices whose packets are another one's ([`redirect`]).
//!
//! This crate knows messages and system calls. The meaning of an answer is for its callers.

#![cfg_attr(not(test), deny(clippy::unwrap_used))]

pub mod clock;
pub mod cpu;
pub mod ethtool;
pub mod event;
pub mod memory;
pub mod netdev;
pub mod netlink;
pub mod netns;
pub mod process;
pub mod promiscuous;
pub mod redirect;
pub mod rx_queues;
