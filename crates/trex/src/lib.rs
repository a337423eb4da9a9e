//! T-Rex's RPC server: its clients and scripts drive a load session.
//!
//! A [`Server`] answers requests ([`rpc`]) that come by ZeroMQ ([`zmtp`]). A table of commands says
//! which there are and what each needs. What is not there is refused, never done otherwise. A
//! [`Client`] asks such a server; [`Local`] is the same without one, in this process.

#![forbid(unsafe_code)]
#![cfg_attr(not(test), deny(clippy::unwrap_used))]

mod client;
mod commands;
mod events;
mod local;
mod rates;
pub mod rpc;
mod server;
mod state;
pub mod zmtp;

pub use client::{Client, Failure};
pub use local::Local;
pub use server::{Addresses, Server};
pub use state::PortFacts;
