//! Sub-interfaces: what has its tags on the port of another interface.
//!
//! The kernel's device is a tap of its own: the host's kernel may have no 802.1Q.

use std::sync::Arc;

use control::config::Encapsulation;
use control::config::desired::Interface;
use graph::Pool;
use ports::OpenError;
use router::{InterfaceId, Tags};

use super::device::Device;
use super::open::OpenInterface;
use super::opener::Opener;

/// A tap, and tags on another's port.
pub struct Sub;

impl Device for Sub {
    fn numbers(&self) -> usize {
        1
    }

    fn open(
        &self,
        opener: &mut Opener,
        config: &Interface,
        _: InterfaceId,
        _: &Arc<Pool>,
    ) -> Result<OpenInterface, OpenError> {
        OpenInterface::tap(opener, config)
    }
}

/// The tags of a sub-interface, as the router has them.
pub fn tags(of: Encapsulation) -> Tags {
    // The language has checked them: a VLAN is 0 to 4095.
    let [outer, inner] = [of.dot1q.max(of.dot1ad), of.inner_dot1q].map(|vlan| vlan as u16);
    let tags = match inner {
        0 => Tags::one(outer),
        inner => Tags::two(outer, inner),
    };
    Tags {
        service: of.dot1ad > 0,
        further: !of.exact_match,
        ..tags
    }
}
