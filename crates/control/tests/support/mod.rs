//! Support for the tests against a real kernel: network namespaces, and a router that only
//! remembers.

#![allow(dead_code, reason = "not every test needs all of it")]

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::PathBuf;
use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant};

use control::facts::{Batch, Link};
use control::mirror::{Binding, Mirror, Translator};
use router::change::{Address, Change, Interface, InterfaceId, Mac, Prefix, Route};
use testbed::patience;

/// A network namespace with IPv6 that is removed when dropped.
pub struct Netns(testbed::Netns);

impl Netns {
    /// A fresh one; says SKIP and gives `None` without root.
    pub fn new(test: &str) -> Option<Netns> {
        let root = testbed::root(test);
        root.then(|| Netns(testbed::Netns::with_ipv6(test).expect("root makes namespaces")))
    }

    /// Name as `ip netns` knows it.
    pub fn name(&self) -> &str {
        self.0.name()
    }

    /// Its path.
    pub fn path(&self) -> PathBuf {
        self.0.path()
    }

    /// Runs `ip` inside, which must succeed; gives what it prints.
    pub fn ip(&self, words: &str) -> String {
        self.0.ip(words).unwrap_or_else(|e| panic!("{e}"))
    }

    /// Runs `ip` inside, which may fail: `None` then.
    pub fn try_ip(&self, words: &str) -> Option<String> {
        self.0.ip(words).ok()
    }

    /// Writes a kernel setting below /proc/sys inside.
    pub fn write(&self, setting: &str, value: &str) {
        let echo = format!("echo {value} > /proc/sys/{setting}");
        self.0.sh(&echo).unwrap_or_else(|e| panic!("{e}"));
    }

    /// Runs a shell's command inside, which must succeed; gives what it prints.
    pub fn sh(&self, command: &str) -> String {
        self.0.sh(command).unwrap_or_else(|e| panic!("{e}"))
    }

    /// Runs `ip -batch` inside.
    pub fn batch(&self, lines: &str) {
        self.0.ip_batch(lines).unwrap_or_else(|e| panic!("{e}"));
    }
}

/// A router that remembers what it was told.
#[derive(Default)]
pub struct Memory {
    pub interfaces: BTreeMap<InterfaceId, Interface>,
    pub addresses: BTreeMap<InterfaceId, Vec<Address>>,
    pub sources: (Option<Ipv4Addr>, Option<Ipv6Addr>),
    pub neighbors: BTreeMap<(InterfaceId, IpAddr), Mac>,
    pub routes: BTreeMap<Prefix, Route>,
}

impl Memory {
    /// Takes in changes.
    pub fn apply(&mut self, changes: Vec<Change>) {
        for change in changes {
            match change {
                Change::InterfaceSet(interface) => {
                    drop(self.interfaces.insert(interface.id, interface))
                }
                Change::InterfaceDelete(id) => {
                    self.interfaces.remove(&id);
                    self.addresses.remove(&id);
                    self.neighbors.retain(|(on, _), _| *on != id);
                }
                Change::AddressesSet {
                    interface,
                    addresses,
                } => drop(self.addresses.insert(interface, addresses)),
                Change::FeatureSet { .. }
                | Change::FeaturesDelete(_)
                | Change::BridgeSet(_)
                | Change::BridgeDelete(_)
                | Change::AclSet { .. }
                | Change::AclDelete(_)
                | Change::AclsAttach { .. }
                | Change::PolicySet { .. }
                | Change::PolicyDelete(_)
                | Change::PolicyAttach { .. }
                | Change::NatSet(_) => panic!("that is not the kernel's"),
                Change::SourceSet { ip4, ip6 } => self.sources = (ip4, ip6),
                Change::NeighborSet {
                    interface,
                    address,
                    mac,
                } => {
                    self.neighbors.insert((interface, address), mac);
                }
                Change::NeighborDelete { interface, address } => {
                    self.neighbors.remove(&(interface, address));
                }
                Change::RouteSet { prefix, route } => drop(self.routes.insert(prefix, route)),
                Change::RouteDelete { prefix } => drop(self.routes.remove(&prefix)),
            }
        }
    }

    /// The route of a prefix.
    pub fn route(&self, prefix: &str) -> Option<&Route> {
        self.routes.get(&prefix.parse().expect("a prefix"))
    }
}

/// A translator with its memory, fed by a mirror.
pub struct Follower {
    pub translator: Translator,
    pub memory: Memory,
    batches: Receiver<Batch>,
}

impl Follower {
    /// A mirror of a namespace that has seen everything once, and its follower, to whom the devices
    /// `pa` and `pb` belong, as 1 and 2.
    pub fn of_two(netns: &Netns) -> (Mirror, Self) {
        let (mirror, batches) = Mirror::open(Some(&netns.path())).expect("a mirror");
        let mut follower = Self::new(batches);
        follower.until("all was seen once", |translator, _| translator.synced());
        follower.bind("pa", 1);
        follower.bind("pb", 2);
        (mirror, follower)
    }

    /// Follows a mirror.
    pub fn new(batches: Receiver<Batch>) -> Self {
        Follower {
            translator: Translator::new(),
            memory: Memory::default(),
            batches,
        }
    }

    /// Follows until something is so, 20 seconds at most, lengthened by [`patience`].
    pub fn until(&mut self, what: &str, mut so: impl FnMut(&Translator, &Memory) -> bool) {
        let end = Instant::now() + patience(Duration::from_secs(20));
        while !so(&self.translator, &self.memory) {
            let left = end.saturating_duration_since(Instant::now());
            let next = (!left.is_zero()).then(|| self.batches.recv_timeout(left).ok());
            let Some(batch) = next.flatten() else {
                panic!(
                    "waited in vain until {what}; routes: {:#?}",
                    self.memory.routes.iter().take(30).collect::<Vec<_>>()
                )
            };
            self.memory.apply(self.translator.apply(batch));
        }
    }

    /// The index of a device.
    pub fn index(&self, name: &str) -> u32 {
        let link = Link::named(self.translator.links(), name);
        link.expect("the device is there").index
    }

    /// Takes over a device as interface `id`.
    pub fn bind(&mut self, name: &str, id: InterfaceId) {
        let link = self.index(name);
        let owned = Binding {
            id,
            name: name.to_owned(),
            host: None,
            port_up: true,
            serving: true,
            on: None,
            bond: None,
            tunnel: None,
            l2: None,
        };
        self.memory.apply(self.translator.bind(link, owned));
    }
}
