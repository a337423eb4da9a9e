//! The state that workers read beside the tables: immutable, published as a whole.

/// The published state.
#[derive(Debug, Default)]
pub struct Snapshot {
    /// An own address to send from where the adjacency names none; 0 for none.
    pub source: u32,
}
