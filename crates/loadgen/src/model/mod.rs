//! Traffic as plain data: profiles, streams, rates and their units.
#![cfg_attr(not(test), warn(clippy::cast_possible_truncation))]

pub mod divide;
pub mod fields;
pub mod load;
pub mod profile;
pub mod rate;
pub mod share;
pub mod stream;
pub mod units;
mod values;
