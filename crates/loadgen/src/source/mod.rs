//! Where packets come from.
#![cfg_attr(not(test), warn(clippy::cast_possible_truncation))]

pub mod fields;
