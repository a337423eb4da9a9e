//! ICMP for IPv6: the errors that a router sends about packets that it forwards (RFC 4443).

mod error;

pub(crate) use error::is_host;
pub use error::{Errors, Next};
