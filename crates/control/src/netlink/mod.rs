//! The kernel's route messages (linux/rtnetlink.h): what they say, and what the kernel is asked.

#![warn(clippy::cast_possible_truncation)]

pub mod decode;
mod request;
mod settings;
mod static_route;

pub use request::{Kernel, KernelAddress, Namespaces, Requests, namespaces};
pub(crate) use request::{dump, has_other_length};
pub use settings::warnings;
pub use static_route::{PROTOCOL, StaticRoute, usual_metric};
