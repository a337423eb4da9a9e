//! A route of the kernel as the mirror keeps it: its prefix is the key, the rest the entry.

use std::net::IpAddr;

use router::change::Prefix;

use crate::facts::{Gateway, Hop, Hops, Preference, Route, RouteKind, Table};

/// A route, less its prefix.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Entry {
    pub table: Table,
    pub tos: u8,
    pub metric: u32,
    pub protocol: u8,
    pub advertised: Option<Preference>,
    pub kind: RouteKind,
    pub mtu: Option<u16>,
    pub source: Option<IpAddr>,
    pub hops: Hops,
}

impl Entry {
    /// Takes a route apart. The hops of IPv6 are put in order: the kernel shows them in any, as they
    /// come and go.
    pub fn split(route: Route) -> (Prefix, Entry) {
        let Route {
            prefix,
            table,
            tos,
            metric,
            protocol,
            advertised,
            kind,
            mtu,
            source,
            mut hops,
        } = route;
        if let (Prefix::V6(_), Hops::Many(hops)) = (prefix, &mut hops) {
            hops.sort_unstable();
        }
        (
            prefix,
            Entry {
                table,
                tos,
                metric,
                protocol,
                advertised,
                kind,
                mtu,
                source,
                hops,
            },
        )
    }

    /// The links and objects that it needs, with its maker.
    pub fn uses(&self) -> impl Iterator<Item = (Need, u8)> {
        Need::of(&self.hops).map(|need| (need, self.protocol))
    }

    /// Lowest first: the order of the entries of a prefix.
    pub fn rank(&self) -> (Table, u8, u32) {
        (self.table, self.tos, self.metric)
    }

    /// The preference among entries of equal rank in a look-up (RFC 4191), which comes before their
    /// order.
    pub fn preference(&self) -> Preference {
        self.advertised.unwrap_or(Preference::Medium)
    }

    /// Returns true if the kernel makes this IPv6 route and another of its kind and rank one with
    /// several next hops (`rt6_qualify_for_ecmp`): not those that it has from router advertisements
    /// itself.
    pub fn spreads(&self) -> bool {
        match &self.hops {
            Hops::One(hop) => self.advertised.is_none() && hop.gateway != Gateway::OnLink,
            Hops::Many(_) => true,
            Hops::Object(_) => false,
        }
    }

    /// Returns true if this IPv6 route is another one and further next hops. Programs, too, make
    /// routes of router advertisements, and only what becomes of them shows that the kernel did
    /// not.
    pub fn extends(&self, other: &Entry) -> bool {
        match (&self.hops, &other.hops) {
            (Hops::Many(all), Hops::One(hop)) => all.iter().any(|of_all| same(of_all, hop)),
            _ => false,
        }
    }

    /// Returns true if it has any of the next hops that a deleted IPv6 route had.
    pub fn has(&self, gone: &Entry) -> bool {
        (self.table, self.metric, self.kind) == (gone.table, gone.metric, gone.kind)
            && match (self.hops.list(), gone.hops.list()) {
                (Some(mine), Some(theirs)) => {
                    mine.iter().any(|a| theirs.iter().any(|b| same(a, b)))
                }
                _ => self.hops == gone.hops,
            }
    }

    /// Takes away the next hops that a deleted IPv6 route had, of which it has some. True if none
    /// is left.
    pub fn lose(&mut self, gone: &Entry) -> bool {
        let (Some(mine), Some(theirs)) = (self.hops.list(), gone.hops.list()) else {
            return true;
        };
        let is_gone = |hop: &&Hop| theirs.iter().any(|other| same(hop, other));
        let left: Box<[Hop]> = mine.iter().filter(|hop| !is_gone(hop)).copied().collect();
        let empty = left.is_empty();
        self.hops = match *left {
            [hop] => Hops::One(hop),
            _ => Hops::Many(left),
        };
        empty
    }
}

/// Returns true if two hops are the same; a lone one comes without its weight.
fn same(a: &Hop, b: &Hop) -> bool {
    (a.link, a.gateway) == (b.link, b.gateway)
}

/// A link or object that a route needs so that it can be used.
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
        let object = match hops {
            Hops::Object(id) => Some(Need::Object(*id)),
            _ => None,
        };
        let list = hops.list().unwrap_or_default();
        let links = list.iter().map(|hop| hop.link).filter(|link| *link != 0);
        links.map(Need::Link).chain(object)
    }
}
