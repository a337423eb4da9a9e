//! Events from workers to the control thread, by one ring from each worker.

use std::cell::RefCell;
use std::net::IpAddr;

use graph::ring::{Consumer, Producer, ring};

use wire::lacp::Info;

use crate::change::{DomainId, InterfaceId};

/// Something that a worker has found out, for the control thread to act on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// Packets wait for a neighbor: resolve it.
    Resolve(Unresolved),
    /// A station of a bridge domain is behind an interface: learn it.
    Station {
        /// Number of the domain.
        domain: DomainId,
        /// Its address.
        mac: [u8; 6],
        /// The interface.
        interface: InterfaceId,
    },
    /// A station of a bridge domain has said by ARP that it has an address.
    Owner {
        /// Number of the domain.
        domain: DomainId,
        /// The address, in host byte order.
        address: u32,
        /// Its own.
        mac: [u8; 6],
    },
    /// A member of a bond has got an LACPDU.
    Lacpdu {
        /// The member.
        member: InterfaceId,
        /// What it says.
        lacpdu: Lacpdu,
    },
}

/// What an LACPDU says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lacpdu {
    /// Of its sender.
    pub actor: Info,
    /// Of its receiver, as far as the sender knows it.
    pub partner: Info,
}

/// A neighbor that packets wait for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unresolved {
    /// Interface that it is on.
    pub interface: InterfaceId,
    /// Its address.
    pub address: IpAddr,
}

/// Most events of a worker that wait for the control thread.
const WAITING: usize = 1024;

/// A worker's end of its ring; all its nodes share it.
// Boxed: a context that contains a cell might change with any write, so the compiler would load its
// table pointers anew for each packet.
pub struct Events(Box<RefCell<Producer<Event>>>);

/// A worker's end of a ring of events, and the control thread's.
pub(crate) fn events() -> (Events, Consumer<Event>) {
    let (producer, consumer) = ring(WAITING);
    (Events(Box::new(RefCell::new(producer))), consumer)
}

impl Events {
    /// Sends an event. False if the ring is full, and the event lost.
    pub fn send(&self, event: Event) -> bool {
        self.0.borrow_mut().push(event).is_ok()
    }
}
