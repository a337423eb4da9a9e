//! The report of a comparison: its data model and the self-contained HTML page.

pub mod model;
