//! Where packets come from.

pub mod fields;
