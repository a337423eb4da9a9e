//! Sources of packets.
#![cfg_attr(not(test), warn(clippy::cast_possible_truncation))]

mod checksum;
pub mod fields;
pub mod mark;
mod random;
mod variable;
