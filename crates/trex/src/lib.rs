//! T-Rex's RPC server: its clients and scripts drive a load session.

#![forbid(unsafe_code)]
#![cfg_attr(not(test), deny(clippy::unwrap_used))]

pub mod rpc;
pub mod zmtp;
