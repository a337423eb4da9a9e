//! A command of an operator, on its way to the control thread.

use std::sync::mpsc::SyncSender;

use control::api::Request;
use control::cli::{Command, Verb};
use control::history::Who;

use crate::reply::Reply;

/// A command and where its answer goes.
pub struct ControlRequest {
    pub(crate) command: Command,
    pub(crate) request: Request,
    pub(crate) who: Who,
    pub(crate) reply: SyncSender<Reply>,
}

impl ControlRequest {
    /// Returns true if it only reads the router's present state.
    pub fn only_looks(&self) -> bool {
        !(self.command.spec.write || matches!(self.command.verb, Verb::Plan | Verb::History))
    }
}
