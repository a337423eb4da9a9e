//! Comparison of sets of measurements as ministat does it: whether a difference is proven, by
//! Student's t test (Student, Biometrika 6, 1908).
//!
//! [`Sample`] is a set of measurements, [`Difference`] what two of them prove, [`picture`] and
//! [`text`] show them. Numbers and pictures are those of Debian's ministat, so that results can be
//! set beside those of others.

mod columns;
pub mod figures;
mod number;
pub mod picture;
pub mod results;
mod sample;
mod student;
pub mod text;

pub use columns::{Columns, Unreadable};
pub use sample::{LEAST, Sample};
pub use student::{Confidence, Difference};
