//! IPv4 forwarding (RFC 791, RFC 1812).

pub mod features;
pub mod fragment;
pub mod input;
pub mod lookup;
pub mod rewrite;

pub use features::Features;
pub use fragment::Fragment;
pub use input::Input;
pub use lookup::Lookup;
pub use rewrite::Rewrite;
