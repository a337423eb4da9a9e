//! Sub-interfaces: what has its tags on the port of another interface.
//!
//! The kernel's device is a tap of its own: the host's kernel may have no 802.1Q.

use control::config::Encapsulation;
use router::Tags;

use super::device::Device;

/// A tap, and tags on another's port.
pub struct Sub;

impl Device for Sub {
    fn numbers(&self) -> usize {
        2
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
