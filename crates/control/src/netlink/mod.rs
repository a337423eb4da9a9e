//! What the kernel's route messages say, and what is asked of it (linux/rtnetlink.h).

pub mod decode;
pub mod request;

pub use request::Requests;
