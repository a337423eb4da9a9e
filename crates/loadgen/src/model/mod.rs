//! What is to be sent, as plain data: profiles, streams, rates and their units.

pub mod profile;
pub mod rate;
pub mod stream;
pub mod units;
