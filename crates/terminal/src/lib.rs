//! The router and the load tester on a terminal.
//!
//! [`top`] is a live view of a running router, or of a load tester that serves T-Rex's clients.
//! [`console`] has T-Rex's console words.

#![forbid(unsafe_code)]
#![cfg_attr(not(test), deny(clippy::unwrap_used))]

pub mod console;
mod groups;
mod hang_up;
pub mod top;
