//! The results of a comparison of devices: what is written down, and how it is shown.
//!
//! [`model`] is the data and its JSON, [`setup`] what they are of; [`text`] the table for a terminal, [`html`] the page with graphs. Both show
//! [`published`] figures beside it; [`stats`] sums up repeated measurements.

#![forbid(unsafe_code)]

pub mod html;
pub mod model;
pub mod published;
pub mod setup;
pub mod stats;
pub mod text;
