//! IPv4 forwarding (RFC 791, RFC 1812).

pub mod fragment;
pub mod input;
pub mod input_features;
pub mod lookup;
pub mod output_features;
pub mod rewrite;

pub use fragment::Fragment;
pub use input::Input;
pub use input_features::InputFeatures;
pub use lookup::Lookup;
pub use output_features::OutputFeatures;
pub use rewrite::Rewrite;
