//! Ethernet headers with VLAN tags.

use tables::interface::Tags;
use wire::eth::{self, Mac};
use wire::vlan::{self, Tag};

/// The tags as they stand in a frame: the first [`Tags::len`] bytes.
pub(super) fn encode(tags: Tags) -> [u8; 2 * vlan::LEN] {
    let outer = if tags.service {
        eth::SERVICE_VLAN
    } else {
        eth::VLAN
    };
    let [a, b, c, d] = Tag::new(outer, tags.outer).to_bytes();
    let [e, f, g, h] = Tag::new(eth::VLAN, tags.inner).to_bytes();
    [a, b, c, d, e, f, g, h]
}

/// The Ethernet header with tags of a packet of this type.
pub(crate) fn tagged(to: Mac, from: Mac, tags: Tags, ethertype: u16) -> Vec<u8> {
    let header = eth::Header::new(to, from, ethertype);
    let (macs, ethertype) = header.bytes().split_at(vlan::AT);
    [macs, &encode(tags)[..tags.len()], ethertype].concat()
}
