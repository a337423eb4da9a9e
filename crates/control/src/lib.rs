//! Netlink mirror of the kernel, configuration, API, command line.
//!
//! The kernel is the truth about links, addresses, neighbors and routes: [`mirror`] follows it and
//! yields the router's changes. [`config`] reads what an operator wrote, [`plan`] compares two
//! configurations, [`apply`] and [`history`] lead from one to the other and back. [`netdev`]
//! prepares network devices, and [`api`] and [`cli`] answer those who ask.

#![cfg_attr(not(test), deny(clippy::unwrap_used))]

pub mod api;
pub mod apply;
pub mod cli;
pub mod config;
pub mod facts;
pub mod history;
pub mod lock;
mod mac;
pub mod machine;
pub mod mirror;
pub mod netdev;
pub mod netlink;
pub mod plan;
pub mod random;
mod text_file;
