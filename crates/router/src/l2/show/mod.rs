//! `show bridge-domain`, `show l2fib`, `show mode`.

mod bridged;
mod text;

pub(crate) use bridged::bridged;

use std::collections::HashMap;
use std::net::Ipv4Addr;

use serde::Serialize;
use tables::interface::L2;

use super::{Domain, Loop};
use crate::change::{ArpRequests, Interface, InterfaceId, Kind, Mac};
use crate::show::text::name;
use crate::{BridgeDomain, Router};

/// `show bridge-domain`.
#[derive(Debug, Clone, Serialize)]
pub struct BridgeDomains {
    /// By the number in their names.
    pub bridge_domains: Vec<Row>,
    /// The text has the members, too.
    #[serde(skip)]
    detail: bool,
}

/// A bridge domain.
#[derive(Debug, Clone, Serialize)]
pub struct Row {
    /// Name as configured.
    pub name: String,
    /// The router's number of it.
    pub index: u16,
    /// Minutes after which a station is forgotten that is not seen again; null: never.
    pub age_minutes: Option<u8>,
    /// Addresses are learned.
    pub learn: bool,
    /// What is addressed to somebody known is forwarded.
    pub forward: bool,
    /// What is addressed to nobody known goes to all members.
    pub unknown_flood: bool,
    /// Broadcast and multicast go to all members.
    pub flood: bool,
    /// Stations that are known and were learned.
    pub learned: usize,
    /// Most stations that are learned.
    pub limit: usize,
    /// Its own interface.
    pub bvi: Option<String>,
    /// Its members.
    pub members: Vec<Member>,
    /// What becomes of ARP requests for addresses whose owners are known: `flood`, `answer`,
    /// `forward`.
    pub arp: &'static str,
    /// The owners of addresses, as ARP has said; none where requests are just flooded.
    pub owners: Vec<Owner>,
    /// What has become of frames and stations since the domain is there.
    pub counters: Counters,
}

/// Counters of a bridge domain.
#[derive(Debug, Clone, Serialize)]
pub struct Counters {
    /// Broadcast frames that were flooded.
    pub flooded_broadcast: u64,
    /// Multicast frames that were flooded.
    pub flooded_multicast: u64,
    /// Frames to stations that nobody knew, which were flooded.
    pub flooded_unknown: u64,
    /// Times that a station was seen behind another interface than before.
    pub moves: u64,
    /// Times that a station was not learned since the domain or the table was full.
    pub not_learned: u64,
    /// Frames of stations that were not learned from them since too many came at once; the
    /// stations' next frames are.
    pub learns_lost: u64,
}

/// A station that has an address.
#[derive(Debug, Clone, Serialize)]
pub struct Owner {
    /// The address.
    pub address: Ipv4Addr,
    /// The station's own.
    pub mac: String,
    /// Seconds since it was last heard.
    pub age_seconds: u32,
}

/// A member of a bridge domain.
#[derive(Debug, Clone, Serialize)]
pub struct Member {
    /// Name of the interface.
    pub interface: String,
    /// Its number.
    pub index: InterfaceId,
    /// It is the domain's own.
    pub bvi: bool,
    /// Tags that are taken from what comes in, and put on what leaves.
    pub tags: usize,
}

/// `show l2fib`.
#[derive(Debug, Clone, Serialize)]
pub struct L2Fib {
    /// By domain, then by address.
    pub entries: Vec<Entry>,
    /// Stations that there is room for, in all domains together.
    pub capacity: usize,
    /// The text has them, not only their number.
    #[serde(skip)]
    verbose: bool,
}

/// A station of a bridge domain.
#[derive(Debug, Clone, Serialize)]
pub struct Entry {
    /// Its address.
    pub mac: String,
    /// Name of the domain.
    pub bridge_domain: String,
    /// Name of the interface that it is behind.
    pub interface: String,
    /// The number of that.
    pub index: InterfaceId,
    /// Seconds since a frame of it was last seen, to the nearest second or so; null: it does not
    /// age.
    pub age_seconds: Option<u32>,
    /// It was not learned.
    pub fixed: bool,
    /// It is the domain's own interface.
    pub bvi: bool,
}

/// `show mode`.
#[derive(Debug, Clone, Serialize)]
pub struct Modes {
    /// By name.
    pub interfaces: Vec<Mode>,
}

/// What an interface does with what comes in.
#[derive(Debug, Clone, Serialize)]
pub struct Mode {
    /// Its name.
    pub interface: String,
    /// At layer 2 or 3.
    pub mode: Does,
}

/// What an interface does with what comes in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Does {
    /// It routes.
    L3,
    /// It sends it by this interface.
    CrossConnect(String),
    /// It bridges it in this domain.
    Bridge(String),
    /// It is this domain's own interface.
    Bvi(String),
    /// It is a member of this bond.
    Bond(String),
}

/// No bridge domain has this name or number.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("no bridge domain {0}; `show bridge-domain` lists those that there are")]
pub struct NoDomain(pub String);

/// One bridge domain, by name (`bd10`) or by the number in it (`10`), or all.
///
/// # Errors
/// [`NoDomain`].
pub fn bridge_domains(
    router: &Router,
    which: Option<&str>,
    detail: bool,
) -> Result<BridgeDomains, NoDomain> {
    let domains = router.state.bridges.domains();
    let is_asked = |name: &str| which.is_none_or(|which| which == name || which == number(name));
    let found = domains
        .iter()
        .flatten()
        .filter(|domain| is_asked(&domain.settings.name));
    let learned = learned(router);
    let row = |domain: &Domain| {
        let learned = learned.get(&domain.settings.id);
        row(router, domain, learned.copied().unwrap_or(0))
    };
    let mut found: Vec<Row> = found.map(|domain| row(domain)).collect();
    if let Some(which) = which
        && found.is_empty()
    {
        return Err(NoDomain(which.to_owned()));
    }
    found.sort_by_cached_key(|row| (number(&row.name).parse::<u32>().ok(), row.name.clone()));
    Ok(BridgeDomains {
        bridge_domains: found,
        detail,
    })
}

/// The number in a domain's name: 10 of `bd10`.
fn number(name: &str) -> &str {
    name.strip_prefix("bd").unwrap_or(name)
}

/// The stations that each domain has learned, by its number.
fn learned(router: &Router) -> HashMap<u16, usize> {
    let mut learned = HashMap::new();
    let stations = router.state.bridges.stations.iter();
    for (key, ..) in stations.filter(|(_, station, _)| !station.fixed) {
        *learned.entry(key.domain()).or_default() += 1;
    }
    learned
}

fn row(router: &Router, domain: &Domain, learned: usize) -> Row {
    let BridgeDomain {
        id,
        name: domain_name,
        learn,
        flood,
        unknown_flood,
        forward,
        bvi,
        age_minutes,
        limit,
        arp,
    } = domain.settings.clone();
    let stations = &router.state.bridges.stations;
    let member = |interface: InterfaceId| Member {
        interface: name(router, interface),
        index: interface,
        bvi: bvi == Some(interface),
        tags: known(router, interface).map_or(0, |i| i.kind.tags().count.into()),
    };
    let now = stations.clock();
    let owners = router.state.bridges.owners(id);
    let owners = owners.map(|(address, mac, heard)| Owner {
        address: address.into(),
        mac: mac.to_string(),
        age_seconds: now.wrapping_sub(heard),
    });
    let [flooded_broadcast, flooded_multicast, flooded_unknown] = domain.frames.flooded();
    let (moves, not_learned) = router.state.bridges.learned(id);
    let counters = Counters {
        flooded_broadcast,
        flooded_multicast,
        flooded_unknown,
        moves,
        not_learned,
        learns_lost: domain.frames.untold(),
    };
    let members = bvi.into_iter().chain(domain.members.iter().copied());
    Row {
        name: domain_name,
        index: id,
        age_minutes,
        learn,
        forward,
        unknown_flood,
        flood,
        learned,
        limit: limit.map_or(stations.capacity(), |limit| limit as usize),
        bvi: bvi.map(|bvi| name(router, bvi)),
        members: members.map(member).collect(),
        arp: match arp {
            ArpRequests::Flood => "flood",
            ArpRequests::Answer => "answer",
            ArpRequests::Forward => "forward",
        },
        owners: owners.collect(),
        counters,
    }
}

/// Stations that move to and fro, at this time in seconds since any moment: of each domain the worst,
/// once a minute. To be called each second.
pub fn loops(router: &mut Router, now: u32) -> Vec<Loop> {
    let moving = router.state.bridges.moving(now);
    let domains = router.state.bridges.domains();
    let told = moving.into_iter().filter_map(|(key, moves, interfaces)| {
        let domain = domains.get(usize::from(key.domain()))?.as_ref()?;
        Some(Loop {
            bridge: domain.settings.name.clone(),
            mac: Mac(key.mac()),
            interfaces: interfaces.map(|interface| name(router, interface)),
            moves,
        })
    });
    told.collect()
}

fn known(router: &Router, interface: InterfaceId) -> Option<&Interface> {
    router.state.links.interfaces.get(&interface)
}

/// The stations of all bridge domains. `verbose`: the text lists them, too.
pub fn l2fib(router: &Router, verbose: bool) -> L2Fib {
    let bridges = &router.state.bridges;
    let (domains, now) = (bridges.domains(), bridges.stations.clock());
    let mut stations: Vec<_> = bridges.stations.iter().collect();
    stations.sort_unstable_by_key(|(key, ..)| (key.domain(), key.mac()));
    let entries = stations.into_iter().filter_map(|(key, station, seen)| {
        let domain = domains.get(usize::from(key.domain()))?.as_ref()?;
        let settings = &domain.settings;
        let ages = settings.age_minutes.is_some() && !station.fixed;
        Some(Entry {
            mac: Mac(key.mac()).to_string(),
            bridge_domain: settings.name.clone(),
            interface: name(router, station.interface),
            index: station.interface,
            age_seconds: ages.then(|| now.wrapping_sub(seen)),
            fixed: station.fixed,
            bvi: settings.bvi == Some(station.interface),
        })
    });
    L2Fib {
        entries: entries.collect(),
        capacity: bridges.stations.capacity(),
        verbose,
    }
}

/// What each interface does with what comes in. Host interfaces have no choice.
pub fn modes(router: &Router) -> Modes {
    let bridges = &router.state.bridges;
    let domains = bridges.domains();
    let domain = |id: u16| {
        let domain = domains.get(usize::from(id)).and_then(Option::as_ref);
        domain.map_or_else(|| id.to_string(), |domain| domain.settings.name.clone())
    };
    let all = router.state.links.interfaces.values();
    let all = all.filter(|i| !matches!(i.kind, Kind::Host { .. }));
    let mode = |i: &Interface| Mode {
        interface: i.name.clone(),
        mode: match (i.l2, bridges.of_bvi(i.id)) {
            (Some(L2::CrossConnect(to)), _) => Does::CrossConnect(name(router, to)),
            (Some(L2::Bridge(id)), _) => Does::Bridge(domain(id)),
            (Some(L2::Bond(bond)), _) => Does::Bond(name(router, bond)),
            (None, Some(id)) => Does::Bvi(domain(id)),
            (None, None) => Does::L3,
        },
    };
    let mut interfaces: Vec<Mode> = all.map(mode).collect();
    interfaces.sort_by(|a, b| a.interface.cmp(&b.interface));
    Modes { interfaces }
}
