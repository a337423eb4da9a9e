//! A route of ours, as it is asked for and as the kernel shows it.

use std::net::IpAddr;

use router::change::Prefix;

use crate::facts::Hop;

/// The mark of what we have made, in addresses (IFA_PROTO, from Linux 5.18 on) and routes
/// (`rtm_protocol`). Nobody else uses it (linux/rtnetlink.h, iproute2's rt_protos).
pub const PROTOCOL: u8 = 80;

/// The kernel's metric of a route that is given none, by the family of its prefix.
pub fn usual_metric(prefix: IpAddr) -> u32 {
    match prefix {
        IpAddr::V4(_) => 0,
        // IP6_RT_PRIO_USER
        IpAddr::V6(_) => 1024,
    }
}

/// A route as we make it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StaticRoute {
    /// The destinations.
    pub prefix: Prefix,
    /// Number of the table that it is in; 254 is the main one.
    pub table: u32,
    /// Of equal prefixes the lowest is used; `None`: the kernel's choice.
    pub metric: Option<u32>,
    /// Next hops; none: packets are dropped.
    pub hops: Vec<Hop>,
}

impl StaticRoute {
    /// Its metric, also where the kernel chose it.
    pub fn metric(&self) -> u32 {
        let given = self.metric.filter(|metric| *metric != 0);
        given.unwrap_or(usual_metric(self.prefix.address()))
    }

    /// Returns true if it is at the place of another: only one of them can be there.
    pub fn is_at(&self, other: &Self) -> bool {
        let place = |route: &Self| (route.prefix, route.table, route.metric());
        place(self) == place(other)
    }

    /// Returns true if what the kernel has is this route. Where no interface was given the kernel
    /// has chosen one.
    pub fn is(&self, kernel: &Self) -> bool {
        let same = |(ours, its): (&Hop, &Hop)| {
            let link = ours.link == 0 || ours.link == its.link;
            link && ours.gateway == its.gateway && ours.weight == its.weight
        };
        let sorted = |route: &Self| {
            let mut hops = route.hops.clone();
            hops.sort_by_key(|hop| (format!("{:?}", hop.gateway), hop.weight, hop.link));
            hops
        };
        self.is_at(kernel)
            && self.hops.len() == kernel.hops.len()
            && sorted(self).iter().zip(&sorted(kernel)).all(same)
    }
}
