//! A tap by which the kernel of a network device is given packets that the router took in.

use ports::Open;
use router::{InterfaceId, Mac};

use crate::routing::Routing;
use crate::workers;

/// The tap, which workers serve.
pub struct PuntTap {
    /// The router's number of it.
    pub id: InterfaceId,
    /// The Ethernet address that the device had: the kernel takes frames to the tap's alone.
    pub mac: Mac,
    /// The tap.
    pub tap: Open,
}

impl PuntTap {
    /// Takes it from the workers, and gives its number back. The interface has none then.
    pub fn end(self, routing: &mut Routing) {
        workers::take_back(&mut routing.router, (self.id, 1));
        drop(self.tap);
        routing.release([self.id].into_iter());
    }
}
