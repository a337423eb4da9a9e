//! The kernel's route messages (linux/rtnetlink.h): what they say, and what the kernel is asked.

#![warn(clippy::cast_possible_truncation)]

pub mod decode;
mod request;

pub(crate) use request::dump;
pub use request::{Given, PROTOCOL, Requests, StaticRoute, ip_forward};
