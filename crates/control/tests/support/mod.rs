//! What the tests against a real kernel share: network namespaces, and a router that only remembers.

#![allow(dead_code, reason = "not every test needs all of it")]

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant};

use control::kernel::Batch;
use control::mirror::{Owned, Translator};
use router::change::{Address, Change, Interface, InterfaceId, Mac, Prefix, Route};

/// A network namespace that is removed when dropped.
pub struct Netns(pub String);

impl Netns {
    /// A fresh one; `None`, with a note, where that is not permitted.
    pub fn new(test: &str) -> Option<Netns> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let name = format!(
            "psh-control-{}-{}",
            std::process::id(),
            COUNT.fetch_add(1, Ordering::Relaxed)
        );
        let made = Command::new("ip")
            .args(["netns", "add", &name])
            .stderr(Stdio::null())
            .status();
        if !made.is_ok_and(|status| status.success()) {
            println!("SKIP {test}: cannot make network namespaces");
            return None;
        }
        let netns = Netns(name);
        netns.ip("link set lo up");
        Some(netns)
    }

    /// Its path.
    pub fn path(&self) -> PathBuf {
        PathBuf::from("/run/netns").join(&self.0)
    }

    /// Runs `ip` inside, which must succeed; gives what it prints.
    pub fn ip(&self, words: &str) -> String {
        let output = Command::new("ip")
            .args(["-n", &self.0])
            .args(words.split(' '))
            .output()
            .expect("ip runs");
        assert!(
            output.status.success(),
            "ip {words}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// Writes a kernel setting below /proc/sys inside.
    pub fn write(&self, setting: &str, value: &str) {
        let echo = format!("echo {value} > /proc/sys/{setting}");
        let status = Command::new("ip")
            .args(["netns", "exec", &self.0, "sh", "-c", &echo])
            .status();
        assert!(status.expect("ip runs").success());
    }

    /// Runs `ip -batch` inside.
    pub fn batch(&self, lines: &str) {
        let file = tempfile::NamedTempFile::new().expect("a file");
        std::fs::write(file.path(), lines).expect("written");
        let status = Command::new("ip")
            .args(["-n", &self.0, "-batch"])
            .arg(file.path())
            .status();
        assert!(status.expect("ip runs").success());
    }
}

impl Drop for Netns {
    fn drop(&mut self) {
        let _ = Command::new("ip").args(["netns", "del", &self.0]).status();
    }
}

/// A router that remembers what it was told.
#[derive(Default)]
pub struct Memory {
    pub interfaces: BTreeMap<InterfaceId, Interface>,
    pub addresses: BTreeMap<InterfaceId, Vec<Address>>,
    pub source: Option<Ipv4Addr>,
    pub neighbors: BTreeMap<(InterfaceId, Ipv4Addr), Mac>,
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
                Change::SourceSet(address) => self.source = address,
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
    /// Follows a mirror.
    pub fn new(batches: Receiver<Batch>) -> Self {
        Follower {
            translator: Translator::new(),
            memory: Memory::default(),
            batches,
        }
    }

    /// Follows until something is so, 20 seconds at most.
    pub fn until(&mut self, what: &str, mut so: impl FnMut(&Translator, &Memory) -> bool) {
        let end = Instant::now() + Duration::from_secs(20);
        while !so(&self.translator, &self.memory) {
            let left = end.saturating_duration_since(Instant::now());
            let Ok(batch) = self.batches.recv_timeout(left) else {
                panic!(
                    "waited in vain until {what}; routes: {:#?}",
                    self.memory.routes.iter().take(30).collect::<Vec<_>>()
                )
            };
            self.memory.apply(self.translator.apply(batch));
        }
    }

    /// Takes over a device as interface `id`.
    pub fn own(&mut self, name: &str, id: InterfaceId) {
        let link = self
            .translator
            .link_named(name)
            .expect("the device is there")
            .index;
        let owned = Owned {
            id,
            name: name.to_owned(),
            twin: None,
            port_up: true,
        };
        self.memory.apply(self.translator.own(link, owned));
    }
}
