//! Counts that were cleared.

use graph::counters::ExecutorCounts;

/// Counts that each `clear` command remembers, by executor; nothing was cleared where a list is
/// empty.
#[derive(Debug, Default)]
pub(crate) struct Cleared {
    pub runtime: Vec<ExecutorCounts>,
    pub errors: Vec<ExecutorCounts>,
    pub interface: Vec<ExecutorCounts>,
}
