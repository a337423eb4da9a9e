//! ICMP for IPv4: the errors that a router sends about packets that it forwards (RFC 792, RFC 1812
//! section 4.3).

mod error;

pub(crate) use error::is_host;
pub use error::{Errors, Next};
