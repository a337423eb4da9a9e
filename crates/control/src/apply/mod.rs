//! Carrying out a plan as one transaction: every step, or none.

use crate::config::Config;
use crate::plan::{Action, Plan};

/// What plans are carried out on: the router, or a model of it in tests.
pub trait Target {
    /// Whether all of this can be done. Nothing is changed.
    ///
    /// # Errors
    /// All that cannot be done, by name, a line each.
    fn accepts(&mut self, to: &Config, plan: &Plan) -> Result<(), Vec<String>>;

    /// Does one thing, wholly or not at all.
    ///
    /// # Errors
    /// Why it was not done, in one line. It is as it was before.
    fn apply(&mut self, action: &Action) -> Result<(), String>;
}
