//! The way from the control socket to the control thread.

use std::sync::Arc;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::time::Duration;

use control::api::{Handler, Request};
use control::cli::Command;
use control::history::Who;

use crate::inbox::Message;
use crate::reply::Reply;
use crate::request::ControlRequest;

/// Time that a client waits for the control thread: it answers between two steps of a
/// change, and no step takes that long.
const PATIENCE: Duration = Duration::from_secs(20);
/// Time that it waits for a command that [takes its time](control::cli::Verb::is_long):
/// a change may have thousands of steps, and some wait for a driver.
const LONG_PATIENCE: Duration = Duration::from_secs(600);

/// Hands commands to the control thread.
pub struct ControlHandle {
    sender: SyncSender<Message>,
}

impl ControlHandle {
    /// One that sends to this channel.
    pub fn new(sender: SyncSender<Message>) -> Arc<Self> {
        Arc::new(ControlHandle { sender })
    }
}

impl Handler for ControlHandle {
    fn call(&self, command: &Command, request: &Request, who: &Who) -> Reply {
        // Room for the answer: the control thread does not wait for a client that has given up.
        let (reply, answer) = sync_channel(1);
        let ask = ControlRequest {
            command: command.clone(),
            request: request.clone(),
            who: who.clone(),
            reply,
        };
        self.sender
            .send(Message::Ask(Box::new(ask)))
            .map_err(|_| "the router is stopping".to_string())?;
        let patience = if command.verb.is_long() {
            LONG_PATIENCE
        } else {
            PATIENCE
        };
        answer
            .recv_timeout(patience)
            .map_err(|_| "the router is busy; try again".to_string())?
    }
}
