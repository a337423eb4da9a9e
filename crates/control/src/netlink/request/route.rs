//! Static routes: making, replacing and removing those that are ours.
//!
//! A route is ours if it carries [`PROTOCOL`]; whoever else made one keeps it.

use std::io;

use kernel::netlink::Builder;
use kernel::netlink::layout::{Header, INET, INET6, RouteHeader, UNSPEC};

use router::change::Prefix;

use super::{Requests, bytes};
use crate::facts::{Gateway, Hop};
use crate::netlink::{PROTOCOL, StaticRoute, decode};

/// Bytes of `struct rtnexthop`.
const HOP_HEADER: usize = 8;

impl Requests {
    /// Makes a route.
    ///
    /// # Errors
    /// AlreadyExists: there is one of its prefix, metric and table; NetworkUnreachable: no link
    /// leads to a next hop; ENETDOWN: its interface is down; what else the kernel reports.
    pub fn add_route(&mut self, route: &StaticRoute) -> io::Result<()> {
        let flags = libc::NLM_F_CREATE | libc::NLM_F_EXCL;
        self.socket.command(whole(route).flags(flags))
    }

    /// Puts a route in the place of one of ours of the same prefix, metric and table.
    ///
    /// # Errors
    /// As [`add_route`](Self::add_route), but that there may be one.
    pub fn replace_route(&mut self, route: &StaticRoute) -> io::Result<()> {
        let flags = libc::NLM_F_CREATE | libc::NLM_F_REPLACE;
        self.socket.command(whole(route).flags(flags))
    }

    /// Removes a route of ours, whatever its next hops; it is no error if it is not there.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn remove_route(&mut self, route: &StaticRoute) -> io::Result<()> {
        // Without a metric the kernel takes the one with the lowest that there is. The list costs
        // 0.1 s beside a million routes, so it is not read where the metric says which is meant.
        if route.metric() == 0 && !self.own_routes()?.iter().any(|own| route.is_at(own)) {
            return Ok(());
        }
        self.remove_listed(route)
    }

    /// Removes a route that [`own_routes`](Self::own_routes) has just listed, or the only one of
    /// ours of its prefix.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn remove_listed(&mut self, route: &StaticRoute) -> io::Result<()> {
        let wildcard = RouteHeader {
            scope: libc::RT_SCOPE_NOWHERE,
            kind: 0,
            ..header(route)
        };
        let request = placed(wildcard.message(libc::RTM_DELROUTE), route);
        match self.socket.command(request) {
            Err(error) if error.raw_os_error() == Some(libc::ESRCH) => Ok(()),
            done => done,
        }
    }

    /// The routes that are ours, of both families and in all tables.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn own_routes(&mut self) -> io::Result<Vec<StaticRoute>> {
        let mut routes = Vec::new();
        for family in [INET, INET6] {
            let asked = RouteHeader {
                protocol: PROTOCOL,
                ..RouteHeader::of(family)
            };
            self.socket
                .dump(asked.message(libc::RTM_GETROUTE), |message| {
                    routes.extend(decode::own_route(message.payload));
                })?;
        }
        Ok(routes)
    }
}

/// The request for a route with everything that it has.
fn whole(route: &StaticRoute) -> Builder {
    let request = placed(header(route).message(libc::RTM_NEWROUTE), route);
    let family = family(route);
    match &route.hops[..] {
        [] => request,
        [hop] => to(request, family, hop),
        hops => {
            let all: Vec<u8> = hops.iter().flat_map(|hop| member(family, hop)).collect();
            request.attribute(libc::RTA_MULTIPATH, &all)
        }
    }
}

fn family(route: &StaticRoute) -> u8 {
    match route.prefix {
        Prefix::V4(_) => INET,
        Prefix::V6(_) => INET6,
    }
}

fn header(route: &StaticRoute) -> RouteHeader {
    let on_link = |hop: &Hop| hop.gateway == Gateway::OnLink;
    let near = !route.hops.is_empty() && route.hops.iter().all(on_link);
    RouteHeader {
        length: route.prefix.length(),
        // RTA_TABLE has the number.
        table: UNSPEC,
        protocol: PROTOCOL,
        scope: if near && family(route) == INET {
            libc::RT_SCOPE_LINK
        } else {
            libc::RT_SCOPE_UNIVERSE
        },
        kind: if route.hops.is_empty() {
            libc::RTN_BLACKHOLE
        } else {
            libc::RTN_UNICAST
        },
        ..RouteHeader::of(family(route))
    }
}

/// Says where a route is: prefix, table, metric.
fn placed(request: Builder, route: &StaticRoute) -> Builder {
    let (_, prefix) = bytes(route.prefix.address());
    let request = request
        .attribute(libc::RTA_DST, &prefix)
        .number(libc::RTA_TABLE, route.table);
    match route.metric() {
        0 => request,
        metric => request.number(libc::RTA_PRIORITY, metric),
    }
}

/// Adds a next hop.
fn to(request: Builder, family: u8, hop: &Hop) -> Builder {
    let request = by(request, family, hop);
    match hop.link {
        0 => request,
        link => request.number(libc::RTA_OIF, link),
    }
}

/// Adds a gateway, which may be of another family than the route (RFC 8950).
fn by(request: Builder, family: u8, hop: &Hop) -> Builder {
    let Gateway::Via(address) = hop.gateway else {
        return request;
    };
    let (its, bytes) = bytes(address);
    if its == family {
        request.attribute(libc::RTA_GATEWAY, &bytes)
    } else {
        let via = [&u16::from(its).to_ne_bytes()[..], &bytes].concat();
        request.attribute(libc::RTA_VIA, &via)
    }
}

/// A hop of RTA_MULTIPATH: `struct rtnexthop`, and its attributes.
fn member(family: u8, hop: &Hop) -> Vec<u8> {
    let attributes = Builder::attributes(|hop_of| by(hop_of, family, hop));
    let length = u16::try_from(HOP_HEADER + attributes.len()).unwrap_or(u16::MAX);
    let share = u8::try_from(hop.weight.saturating_sub(1)).unwrap_or(u8::MAX);
    let [low, high] = length.to_ne_bytes();
    let header = [low, high, 0, share];
    [&header[..], &hop.link.to_ne_bytes(), &attributes].concat()
}
