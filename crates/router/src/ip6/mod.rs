//! IPv6 forwarding (RFC 8200, RFC 4291).

pub mod input;
pub mod lookup;
pub mod rewrite;

pub use input::Input;
pub use lookup::Lookup;
pub use rewrite::Rewrite;
