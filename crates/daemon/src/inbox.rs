//! Messages to the control thread.

use std::collections::VecDeque;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::Duration;

use control::facts::Batch;

use crate::request::ControlRequest;

/// A message to the control thread.
pub enum Message {
    /// News of the kernel.
    Kernel(Batch),
    /// Somebody asks.
    Ask(Box<ControlRequest>),
    /// The configuration file is to be read again.
    Reload,
    /// Stop in good order.
    Stop,
}

/// A message that is taken between the steps of a change: packets wait for the news of the kernel,
/// and who only looks waits for nobody.
pub enum Urgent {
    /// News of the kernel.
    Kernel(Batch),
    /// Somebody looks.
    Ask(Box<ControlRequest>),
}

impl Message {
    /// The same, if it is urgent.
    fn urgent(self) -> Result<Urgent, Self> {
        match self {
            Message::Kernel(batch) => Ok(Urgent::Kernel(batch)),
            Message::Ask(ask) if ask.only_looks() => Ok(Urgent::Ask(ask)),
            other => Err(other),
        }
    }
}

impl From<Batch> for Message {
    fn from(batch: Batch) -> Self {
        Message::Kernel(batch)
    }
}

/// Messages that may wait; then their senders do, so that memory stays bounded while a step of a
/// change takes long.
const DEPTH: usize = 64;

/// The messages for the control thread, in order. While it is busy with a long change it takes out
/// of it first what is urgent.
pub struct Inbox {
    messages: Receiver<Message>,
    /// Those that others have overtaken.
    overtaken: VecDeque<Message>,
}

impl Inbox {
    /// An empty one, and what sends to it.
    pub fn new() -> (SyncSender<Message>, Self) {
        let (sender, messages) = sync_channel(DEPTH);
        let overtaken = VecDeque::new();
        let inbox = Inbox {
            messages,
            overtaken,
        };
        (sender, inbox)
    }

    /// The next message, waited for so long.
    ///
    /// # Errors
    /// None has come; nobody sends any more.
    pub fn next(&mut self, within: Duration) -> Result<Message, RecvTimeoutError> {
        match self.overtaken.pop_front() {
            Some(message) => Ok(message),
            None => self.messages.recv_timeout(within),
        }
    }

    /// The urgent ones among the next messages, as many as may wait at once. It does not wait for
    /// any.
    pub fn urgent(&mut self) -> Vec<Urgent> {
        let mut urgent = Vec::new();
        for message in self.messages.try_iter().take(DEPTH) {
            match message.urgent() {
                Ok(message) => urgent.push(message),
                Err(other) => self.overtaken.push_back(other),
            }
        }
        urgent
    }

    /// Takes no more messages, which releases whoever waits for room.
    pub fn close(&mut self) {
        // A channel without senders; the old one goes with its messages.
        (_, self.messages) = sync_channel(0);
    }
}

#[cfg(test)]
mod tests {
    use control::facts::Batch;

    use super::*;

    #[test]
    fn what_is_urgent_overtakes_and_nothing_else_does() {
        let (sender, mut inbox) = Inbox::new();
        let news = || Message::Kernel(Batch::default());
        for message in [Message::Reload, news(), Message::Stop, news()] {
            sender.send(message).expect("room");
        }
        assert_eq!(inbox.urgent().len(), 2);
        sender.send(Message::Reload).expect("room");
        let mut next = || inbox.next(Duration::ZERO);
        assert!(matches!(next(), Ok(Message::Reload)));
        assert!(matches!(next(), Ok(Message::Stop)));
        assert!(matches!(next(), Ok(Message::Reload)));
        assert!(matches!(next(), Err(RecvTimeoutError::Timeout)));
    }

    /// A flood of news does not keep the change from its next step.
    #[test]
    fn so_much_news_is_taken_at_once() {
        let (sender, mut inbox) = Inbox::new();
        let flood =
            std::thread::spawn(
                move || {
                    while sender.send(Message::Kernel(Batch::default())).is_ok() {}
                },
            );
        for _ in 0..10 {
            assert!(inbox.urgent().len() <= DEPTH);
        }
        inbox.close();
        flood.join().expect("it is released");
    }
}
