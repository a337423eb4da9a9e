//! The answers of `show` commands about devices, version and configuration.

use std::collections::BTreeMap;
use std::fmt;

use serde::Serialize;

use control::machine::hardware::Hardware;
use kernel::ethtool::Ethtool;
use router::Kind;

use super::daemon::Daemon;
use super::interfaces::{OpenInterface, Phase, Slot};
use ports::Open;

/// `show version`.
#[derive(Serialize)]
pub struct Version {
    /// Of the program.
    version: &'static str,
    /// Target and kind of build.
    build: &'static str,
    /// The running kernel.
    kernel: String,
}

impl Default for Version {
    fn default() -> Self {
        let uname = rustix::system::uname();
        Version {
            version: env!("CARGO_PKG_VERSION"),
            build: if cfg!(debug_assertions) {
                "debug"
            } else {
                "release"
            },
            kernel: uname.release().to_string_lossy().into_owned(),
        }
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "parshall {} ({} build, {}, Linux {})",
            self.version,
            self.build,
            std::env::consts::ARCH,
            self.kernel
        )
    }
}

/// One interface in `show hardware`.
#[derive(Serialize)]
pub struct Row {
    name: String,
    /// The router's number; null for a loopback.
    index: Option<u16>,
    /// The device is there and has carrier, and the port is connected.
    up: bool,
    /// The kernel's device.
    device: Option<String>,
    /// The port that carries the packets, in words.
    port: String,
    /// zero-copy, copy, generic, memif, tap, pcap, null.
    mode: Option<&'static str>,
    /// The lane that forwards the packets: `userspace`, the workers.
    lane: Option<&'static str>,
    mac: Option<String>,
    mtu: Option<u32>,
    /// Packets that the XDP program left to the host.
    passed_to_host: Option<u64>,
    /// Packets that the XDP program gave to the router.
    given_to_router: Option<u64>,
    /// Counters of the port's queues, by queue and name.
    counters: BTreeMap<String, BTreeMap<&'static str, u64>>,
    #[serde(flatten)]
    hardware: Hardware,
}

/// `show hardware`.
#[derive(Serialize)]
pub struct Rows {
    interfaces: Vec<Row>,
}

/// The facts about the interfaces' devices, or about one if `name` is given.
pub fn hardware(daemon: &Daemon, name: Option<&str>) -> Result<Rows, String> {
    let wanted = |s: &&Slot| name.is_none_or(|n| n == s.config.name);
    let mut ethtool = daemon.host.ethtool();
    let astray = daemon.interfaces.astray_ends();
    let interfaces: Vec<Row> = daemon
        .interfaces
        .slots
        .iter()
        .filter(wanted)
        .map(|s| row(daemon, s, astray.get(&s.config.name), ethtool.as_mut()))
        .collect();
    match name {
        Some(name) if interfaces.is_empty() => Err(unknown(daemon, name)),
        _ => Ok(Rows { interfaces }),
    }
}

/// The reason why nothing is known of a name.
fn unknown(daemon: &Daemon, name: &str) -> String {
    let mut slots = daemon.interfaces.slots.iter();
    let of = slots.find(|s| {
        s.number().is_some() && s.ids.host != 0 && Kind::host_name(&s.config.name) == name
    });
    match of.map(|slot| &slot.config.name) {
        Some(of) => {
            format!("{name} is the host interface of {of}: `show hardware {of}` has its device")
        }
        None => format!("unknown interface `{name}`; `show hardware` lists those that there are"),
    }
}

fn row(
    daemon: &Daemon,
    slot: &Slot,
    astray: Option<&String>,
    ethtool: Option<&mut Ethtool>,
) -> Row {
    let open = slot.open();
    let link = open.and_then(|open| daemon.routing.translator.link(open.ifindex));
    let program = daemon.interfaces.program_counters(slot);
    let mut counters = BTreeMap::<_, BTreeMap<_, _>>::new();
    for (queue, counted) in open.into_iter().flat_map(OpenInterface::counters) {
        let queue = counters.entry(queue.clone()).or_default();
        queue.extend(counted.iter());
    }
    Row {
        name: slot.config.name.clone(),
        index: slot.number(),
        up: slot.up && link.is_some_and(|l| l.admin_up && l.carrier),
        device: link.map(|l| l.name.clone()),
        port: match &slot.phase {
            Phase::Waiting(why) => format!("waiting: {why}"),
            Phase::Open(open) => open.describe(&slot.config, astray),
        },
        mode: slot.port().map(Open::mode),
        lane: slot.port().map(|_| "userspace"),
        mac: link.and_then(|l| l.mac).map(|mac| mac.to_string()),
        mtu: link.map(|l| l.mtu),
        passed_to_host: program.map(|p| p.passed),
        given_to_router: program.map(|p| p.redirected),
        counters,
        hardware: match (ethtool, link) {
            (Some(ethtool), Some(link)) => Hardware::of(link, ethtool),
            _ => Hardware::default(),
        },
    }
}

impl fmt::Display for Rows {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "              Name                Idx   Link  Hardware")?;
        self.interfaces.iter().try_for_each(|row| row.fmt(f))
    }
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let device = self.device.as_deref().unwrap_or("-");
        let (link, h) = (if self.up { "up" } else { "down" }, &self.hardware);
        let index = self.index.map_or("-".into(), |index| index.to_string());
        writeln!(f, "{:<32} {index:>4} {link:>6}  {device}", self.name)?;
        let speed = h.speed.map_or("unknown".into(), |s| format!("{s} Mbit/s"));
        writeln!(f, "  Link speed: {speed}")?;
        if let Some(mac) = &self.mac {
            writeln!(
                f,
                "  Ethernet address {mac}, MTU {}",
                self.mtu.unwrap_or_default()
            )?;
        }
        writeln!(f, "  Port: {}", self.port)?;
        if let Some(driver) = &h.driver {
            writeln!(
                f,
                "  Driver: {driver}{}",
                h.pci
                    .as_ref()
                    .map_or(String::new(), |p| format!(", PCI {p}"))
            )?;
        }
        let pair =
            |p: Option<(u32, u32)>| p.map_or("-".into(), |(now, max)| format!("{now} (max {max})"));
        writeln!(
            f,
            "  Queues: rx {}, tx {}",
            pair(h.rx_queues),
            pair(h.tx_queues)
        )?;
        writeln!(f, "  Rings: rx {}, tx {}", pair(h.rx_ring), pair(h.tx_ring))?;
        if !h.offloads.is_empty() {
            writeln!(f, "  Offloads: {}", h.offloads.join(" "))?;
        }
        if let (Some(passed), Some(given)) = (self.passed_to_host, self.given_to_router) {
            writeln!(
                f,
                "  XDP program: {passed} packets left to the host, {given} given to the router"
            )?;
        }
        for (queue, counters) in &self.counters {
            let counted = counters.iter().filter(|(_, count)| **count > 0);
            let list: Vec<_> = counted.map(|(n, count)| format!("{n} {count}")).collect();
            if !list.is_empty() {
                writeln!(f, "  {queue}: {}", list.join(", "))?;
            }
        }
        Ok(())
    }
}

/// A fact, or why it cannot be found out, for people.
pub fn or_say<T>(fact: std::io::Result<T>) -> Result<T, String> {
    fact.map_err(|e| e.to_string())
}
