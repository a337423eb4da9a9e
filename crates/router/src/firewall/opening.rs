//! What rules are to know of the packet that opened a flow, long after it.
//!
//! Its ICMP code was not kept: it is taken to be 0, as that of all queries is.

use tables::acl::{IP4, IP6, Key as AclKey};
use tables::flow::Key;
use wire::ip;

use crate::flow::key::{between4, between6, message, protocol};

/// Of an IPv4 flow with this key; `swapped`: its source was the second end.
pub(super) fn ip4(key: &Key, swapped: bool) -> AclKey<IP4> {
    let [source, destination] = in_order(between4(key), swapped);
    let ports = ports(key, source.1, destination.1);
    AclKey::ip4(source.0, destination.0, protocol(key), ports)
}

/// As [`ip4`], of an IPv6 flow.
pub(super) fn ip6(key: &Key, swapped: bool) -> AclKey<IP6> {
    let [source, destination] = in_order(between6(key), swapped);
    let ports = ports(key, source.1, destination.1);
    AclKey::ip6(source.0, destination.0, protocol(key), ports)
}

fn in_order<T>([first, second]: [T; 2], swapped: bool) -> [T; 2] {
    if swapped {
        [second, first]
    } else {
        [first, second]
    }
}

fn ports(key: &Key, source: u16, destination: u16) -> Option<(u16, u16)> {
    match message(key) {
        Some(message) => Some((message.into(), 0)),
        None => ip::has_ports(protocol(key)).then_some((source, destination)),
    }
}
