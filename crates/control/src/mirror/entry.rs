//! A route of the kernel as the mirror keeps it: its prefix is the key, the rest the entry.

use std::net::Ipv4Addr;
use std::slice;

use router::change::Prefix;

use crate::facts::{Hops, Route, RouteKind, Table};

/// A route, less its prefix.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Entry {
    pub table: Table,
    pub tos: u8,
    pub metric: u32,
    pub kind: RouteKind,
    pub mtu: Option<u16>,
    pub source: Option<Ipv4Addr>,
    pub hops: Hops,
}

impl Entry {
    /// Takes a route apart.
    pub fn split(route: Route) -> (Prefix, Entry) {
        let Route {
            destination,
            length,
            table,
            tos,
            metric,
            kind,
            mtu,
            source,
            hops,
        } = route;
        (
            Prefix::cut(destination, length),
            Entry {
                table,
                tos,
                metric,
                kind,
                mtu,
                source,
                hops,
            },
        )
    }

    /// Lowest first: the order of the entries of a prefix.
    pub fn rank(&self) -> (Table, u8, u32) {
        (self.table, self.tos, self.metric)
    }
}

/// What a route needs so that it can be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Need {
    /// A link, by the kernel's index.
    Link(u32),
    /// A next-hop object.
    Object(u32),
}

impl Need {
    /// All that these hops need.
    pub fn of(hops: &Hops) -> impl Iterator<Item = Need> {
        let (list, object) = match hops {
            Hops::One(hop) => (slice::from_ref(hop), None),
            Hops::Many(hops) => (&hops[..], None),
            Hops::Object(id) => (&[][..], Some(Need::Object(*id))),
        };
        let links = list.iter().map(|hop| hop.link).filter(|link| *link != 0);
        links.map(Need::Link).chain(object)
    }
}
