//! Static routes: the kernel has them, with our mark, as long as they are wanted.
//!
//! The kernel drops a route without a word when a device goes down or away. So they are compared
//! whenever links or addresses have changed, and what is missing is put back as soon as it can be.

use std::collections::BTreeMap;
use std::io;
use std::net::IpAddr;

use tracing::{info, warn};

use control::config::{Address, Hop, desired};
use control::facts::{Gateway, Hop as KernelHop};
use control::netlink::{Kernel, StaticRoute};
use router::change::Prefix;

/// The identity of a route: table number, prefix, metric.
pub type Place = (u32, Address, Option<u32>);

/// The static routes that are wanted.
pub struct StaticRoutes {
    wanted: BTreeMap<Place, Wanted>,
}

struct Wanted {
    via: Vec<Hop>,
    /// The reason why it is not in the kernel, if that is known.
    waits: Option<String>,
}

/// The reason why a route is not in the kernel.
enum Missing {
    /// It can be when a link or an address comes.
    Yet(String),
    /// It is, but not by all of its next hops.
    Partly(String),
    /// It cannot be.
    Refused(String),
}

impl StaticRoutes {
    /// Those of a configuration; [`put_back`](Self::put_back) makes them.
    pub fn new(routes: &[desired::Route]) -> Self {
        let wanted = routes.iter().map(|route| {
            let place = (route.table, route.prefix, route.metric);
            let via = route.via.clone();
            (place, Wanted { via, waits: None })
        });
        Self {
            wanted: wanted.collect(),
        }
    }

    /// All that are wanted.
    #[cfg(test)]
    pub fn all(&self) -> impl Iterator<Item = desired::Route> {
        self.wanted.iter().map(|(place, wanted)| desired::Route {
            table: place.0,
            prefix: place.1,
            metric: place.2,
            via: wanted.via.clone(),
        })
    }

    /// Those that are not in the kernel, or not by all of their next hops, each with what it waits
    /// for.
    pub fn waiting(&self) -> impl Iterator<Item = String> {
        self.wanted.iter().filter_map(|(place, wanted)| {
            let why = wanted.waits.as_ref()?;
            Some(format!("route {}: waiting: {why}", place.1))
        })
    }

    /// Gateways that there may be no way to: those of the routes that wait.
    pub fn awaited(&self) -> Vec<IpAddr> {
        let waiting = self.wanted.values().filter(|wanted| wanted.waits.is_some());
        let hops = waiting.flat_map(|wanted| &wanted.via);
        hops.filter_map(|hop| hop.address).collect()
    }

    /// Returns true if there is one for exactly this prefix.
    pub fn has(&self, prefix: Prefix) -> bool {
        let is = |(_, address, _): &Place| Prefix::new(address.address, address.length);
        self.wanted.keys().any(|place| is(place) == Some(prefix))
    }

    /// A route is wanted from now on, in place of what was there of ours. One that has no way yet
    /// waits for it.
    ///
    /// # Errors
    /// The kernel refuses it, or somebody else has one there; nothing is changed.
    pub fn set(
        &mut self,
        place: Place,
        via: &[Hop],
        link: &dyn Fn(&str) -> Option<u32>,
        kernel: &mut dyn Kernel,
    ) -> Result<(), String> {
        let made = resolve(&place, via, link).and_then(|route| install(&route, None, kernel));
        let waits = match made {
            Ok(()) => None,
            Err(Missing::Refused(why)) => return Err(why),
            Err(Missing::Partly(why)) => Some(why),
            Err(Missing::Yet(why)) => {
                self.withdraw(&place, kernel)?;
                Some(why)
            }
        };
        if let Some(why) = &waits {
            warn!("route {}: waiting: {why}", place.1);
        }
        let via = via.to_vec();
        self.wanted.insert(place, Wanted { via, waits });
        Ok(())
    }

    /// A route is wanted no longer.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn remove(&mut self, place: Place, kernel: &mut dyn Kernel) -> Result<(), String> {
        self.withdraw(&place, kernel)?;
        self.wanted.remove(&place);
        Ok(())
    }

    /// Removes a route from the kernel. Only where another of ours has its prefix it matters which
    /// of them is there.
    fn withdraw(&self, place: &Place, kernel: &mut dyn Kernel) -> Result<(), String> {
        let Some(route) = at(place, Vec::new()) else {
            return Ok(());
        };
        let is_other = |of: &Place| (of.0, of.1) == (place.0, place.1) && of.2 != place.2;
        let removed = if self.wanted.keys().any(is_other) {
            kernel.remove_route(&route)
        } else {
            kernel.remove_listed(&route)
        };
        removed.map_err(|e| e.to_string())
    }

    /// Makes what is wanted and missing. False: the kernel refuses some, or does not say what it
    /// has.
    pub fn put_back(
        &mut self,
        link: &dyn Fn(&str) -> Option<u32>,
        kernel: &mut dyn Kernel,
    ) -> bool {
        if self.wanted.is_empty() {
            return true;
        }
        let own = match kernel.own_routes() {
            Ok(own) => own,
            Err(error) => {
                warn!("cannot read the kernel's routes: {error}");
                return false;
            }
        };
        let mut all = true;
        for (place, wanted) in &mut self.wanted {
            let route = resolve(place, &wanted.via, link);
            let made = route.and_then(|route| install(&route, Some(&own), kernel));
            all &= !matches!(made, Err(Missing::Refused(_)));
            let why = made.err().map(|missing| match missing {
                Missing::Yet(why) | Missing::Partly(why) | Missing::Refused(why) => why,
            });
            match (&wanted.waits, &why) {
                (None, Some(why)) => warn!("route {}: waiting: {why}", place.1),
                (Some(_), None) => {
                    info!("route {}: in the kernel, with all its next hops", place.1)
                }
                _ => {}
            }
            wanted.waits = why;
        }
        all
    }

    /// Removes the routes of ours that are not wanted: a router that died has left them.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn sweep(&self, kernel: &mut dyn Kernel) -> io::Result<()> {
        let places = self.wanted.keys().filter_map(|place| at(place, Vec::new()));
        let places: Vec<_> = places.collect();
        for route in kernel.own_routes()? {
            if !places.iter().any(|place| place.is_at(&route)) {
                kernel.remove_listed(&route)?;
            }
        }
        Ok(())
    }
}

/// A route of these hops at a place.
fn at((table, prefix, metric): &Place, hops: Vec<KernelHop>) -> Option<StaticRoute> {
    Some(StaticRoute {
        prefix: Prefix::new(prefix.address, prefix.length)?,
        table: *table,
        metric: *metric,
        hops,
    })
}

/// The route as the kernel is to have it.
fn resolve(
    place: &Place,
    via: &[Hop],
    link: &dyn Fn(&str) -> Option<u32>,
) -> Result<StaticRoute, Missing> {
    let hop = |hop: &Hop| {
        let there = |name: &String| {
            link(name).ok_or_else(|| Missing::Yet(format!("interface {name} does not exist yet")))
        };
        Ok(KernelHop {
            link: hop.interface.as_ref().map_or(Ok(0), there)?,
            gateway: hop.address.map_or(Gateway::OnLink, Gateway::Via),
            weight: match via.len() {
                1 => 1,
                _ => hop.weight.into(),
            },
        })
    };
    let hops = via.iter().map(hop).collect::<Result<_, _>>()?;
    at(place, hops).ok_or_else(|| Missing::Refused(format!("{} is not a prefix", place.1)))
}

/// Sees to it that the kernel has a route, by those of its next hops that there is a way to. `own`
/// is what the kernel has of ours; `None`: not known.
fn install(
    route: &StaticRoute,
    own: Option<&[StaticRoute]>,
    kernel: &mut dyn Kernel,
) -> Result<(), Missing> {
    if own.is_some_and(|own| own.iter().any(|own| route.is(own))) {
        return Ok(());
    }
    let refused = |error| missing(route, error);
    let made = match kernel.add_route(route) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            let own = kernel.own_routes();
            let own = own.map_err(|e| Missing::Refused(e.to_string()))?;
            let Some(there) = own.into_iter().find(|own| route.is_at(own)) else {
                let metric = route.metric();
                return Err(Missing::Refused(format!(
                    "the kernel has a route of that prefix with metric {metric} that is not the \
                     router's; remove it, or choose another metric"
                )));
            };
            if route.is(&there) {
                return Ok(());
            }
            let replaced = kernel.replace_route(route).map_err(refused);
            return match replaced {
                Err(Missing::Yet(why)) if route.hops.len() > 1 => {
                    extend(route, there.hops, why, kernel)
                }
                replaced => replaced,
            };
        }
        made => made.map_err(refused),
    };
    match made {
        Err(Missing::Yet(why)) if route.hops.len() > 1 => extend(route, Vec::new(), why, kernel),
        made => made,
    }
}

/// Adds to the next hops that a route of ours has in the kernel those that there is a way to.
fn extend(
    route: &StaticRoute,
    there: Vec<KernelHop>,
    why: String,
    kernel: &mut dyn Kernel,
) -> Result<(), Missing> {
    // One hop alone has no weight.
    let same = |ours: &KernelHop, its: &KernelHop| {
        let (link, alone) = (ours.link == 0 || ours.link == its.link, there.len() == 1);
        link && ours.gateway == its.gateway && (alone || ours.weight == its.weight)
    };
    let wanted = |its: &KernelHop| route.hops.iter().any(|ours| same(ours, its));
    let mut new = there.is_empty();
    let mut hops = if there.iter().all(wanted) {
        there.clone()
    } else {
        Vec::new()
    };
    for hop in &route.hops {
        if hops.iter().any(|its| same(hop, its)) {
            continue;
        }
        let more = StaticRoute {
            hops: [&hops[..], &[*hop]].concat(),
            ..route.clone()
        };
        let made = if new {
            kernel.add_route(&more)
        } else {
            kernel.replace_route(&more)
        };
        if made.is_ok() {
            (hops, new) = (more.hops, false);
        }
    }
    if hops.is_empty() {
        Err(Missing::Yet(why))
    } else {
        Err(Missing::Partly(format!(
            "only some of its next hops are in use: {why}"
        )))
    }
}

/// The reason why the kernel does not take a route.
fn missing(route: &StaticRoute, error: io::Error) -> Missing {
    let gateways = route.hops.iter().filter_map(|hop| match hop.gateway {
        Gateway::Via(address) => Some(address.to_string()),
        Gateway::OnLink | Gateway::Foreign => None,
    });
    let gateways = gateways.collect::<Vec<_>>().join(" or ");
    match error.raw_os_error() {
        Some(libc::ENETUNREACH | libc::EHOSTUNREACH) => Missing::Yet(format!(
            "no address or on-link route of an interface that is up reaches next hop {gateways}"
        )),
        Some(libc::ENETDOWN) => Missing::Yet("the device of a next hop is down".to_owned()),
        Some(libc::ENODEV) => Missing::Yet("the device of a next hop is gone".to_owned()),
        _ => Missing::Refused(format!("the kernel refuses it: {error}")),
    }
}
