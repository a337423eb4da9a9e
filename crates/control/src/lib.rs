//! Netlink mirror of the kernel, configuration, API, command line.
//!
//! The kernel is the truth about links, addresses, neighbors and routes: [`mirror`] follows it and
//! yields the router's changes. [`config`] reads what an operator wrote, [`plan`] compares two
//! configurations, [`netdev`] prepares
//! network devices for it, and [`api`] and [`cli`] answer those who ask.

pub mod api;
pub mod apply;
pub mod cli;
pub mod config;
pub mod facts;
mod mac;
pub mod machine;
pub mod mirror;
pub mod netdev;
pub mod netlink;
pub mod plan;
