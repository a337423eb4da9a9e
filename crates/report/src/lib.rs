//! Results of a comparison of devices, and how they are shown.
//!
//! [`model`] is the data and its JSON, and [`setup`] what was compared. [`text`] is the table for a
//! terminal and [`html`] the page with graphs; both also show [`published`] figures. [`loadtest`]
//! are the results of single load tests, [`matrix`] those of many configurations; both have pages of
//! their own.

#![forbid(unsafe_code)]
#![cfg_attr(not(test), deny(clippy::unwrap_used))]

pub mod compare;
pub mod conditions;
pub mod html;
mod latency;
pub mod loadtest;
pub mod matrix;
pub mod model;
pub mod published;
pub mod setup;
mod stats;
pub mod text;

pub use conditions::Conditions;
