//! What workers tell the control thread: events, by one ring from each worker.

use crate::change::InterfaceId;
use graph::ring::{Consumer, Producer, ring};
use std::cell::RefCell;
use std::net::Ipv4Addr;

/// Something that a worker has met with, for the control thread to act on.
// What a bridge learns from packets and what ages in the workers' tables will be kinds of it, too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// Packets wait for a neighbor: resolve it.
    Resolve {
        /// Interface that it is on.
        interface: InterfaceId,
        /// Its address.
        address: Ipv4Addr,
    },
}

/// Events that may wait for the control thread, of each worker.
const WAITING: usize = 1024;

/// A worker's end of its ring; all its nodes share it.
// Boxed: a context with a cell in itself may change at any write, and its table pointers would be loaded anew for each packet.
pub struct Events(Box<RefCell<Producer<Event>>>);

/// A worker's end of a ring of events, and the control thread's.
pub(crate) fn events() -> (Events, Consumer<Event>) {
    let (producer, consumer) = ring(WAITING);
    (Events(Box::new(RefCell::new(producer))), consumer)
}

impl Events {
    /// Sends an event. False if the ring is full: the control thread will not see it.
    pub fn send(&self, event: Event) -> bool {
        self.0.borrow_mut().push(event).is_ok()
    }
}
