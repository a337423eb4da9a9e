//! Ethernet headers with VLAN tags.

use tables::interface::Tags;
use wire::eth::{self, Mac};
use wire::vlan::{self, Tag};

/// The tags as they stand in a frame: the first [`Tags::count`] of these.
#[inline]
pub(super) fn encode(tags: Tags) -> [Tag; 2] {
    let outer = if tags.service {
        eth::SERVICE_VLAN
    } else {
        eth::VLAN
    };
    [Tag::new(outer, tags.outer), Tag::new(eth::VLAN, tags.inner)]
}

/// The Ethernet header with tags of a packet of this type.
pub(crate) fn tagged(to: Mac, from: Mac, tags: Tags, ethertype: u16) -> Vec<u8> {
    let header = eth::Header::new(to, from, ethertype);
    let (macs, ethertype) = header.bytes().split_at(vlan::AT);
    let tags = encode(tags).map(Tag::to_bytes).concat()[..tags.len()].to_vec();
    [macs, &tags, ethertype].concat()
}
