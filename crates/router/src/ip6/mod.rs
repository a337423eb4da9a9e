//! IPv6 forwarding (RFC 8200, RFC 4291).

pub mod input;
pub mod input_features;
pub mod lookup;
pub mod output_features;
pub mod rewrite;

pub use input::Input;
pub use input_features::InputFeatures;
pub use lookup::Lookup;
pub use output_features::OutputFeatures;
pub use rewrite::Rewrite;
