//! Ports and workers: what stands behind the interfaces.

use std::collections::HashMap;

use router::change::Kind;

use crate::config::forms;
use crate::config::model::{PortKind, Role};

use super::{Checker, to};

pub(super) fn check(c: &mut Checker<'_>) {
    let mut devices: HashMap<String, &str> = HashMap::new();
    let config = c.config;
    let unported = config
        .interfaces
        .keys()
        .filter(|name| !config.ports.contains_key(*name));
    for name in unported {
        devices.insert(name.clone(), name);
    }
    for (name, port) in &config.ports {
        let key = to!["ports", name];
        let kinds = port.kinds();
        // A device that is written wrongly has been reported, and is the one that was meant.
        let wrong = format!("ports.{name}.");
        let mut findings = c.findings.0.iter();
        let meant = kinds.is_empty() && findings.any(|p| p.message.starts_with(&wrong));
        if kinds.len() != 1 && !meant {
            let message = format!("port {name} names {} devices", kinds.len());
            let help = "name exactly one of netdev, pci, memif, tap, pcap, null";
            c.error(&key, message, help);
        }
        for kind in &kinds {
            let (device, field) = match kind {
                PortKind::Netdev(device) => (device, "netdev"),
                PortKind::Pci(device) => (device, "pci"),
                PortKind::Memif(memif) => {
                    if !memif.ring_size.is_power_of_two() {
                        let message = format!("port {name} ring-size must be a power of two");
                        let path = to!["ports", name, "memif", "ring-size"];
                        c.error(&path, message, "such as 512, 1024 or 2048");
                    }
                    continue;
                }
                _ => continue,
            };
            if let Some(other) = devices.insert(device.clone(), name) {
                let message = format!("port {name} is {device}, as {other} is");
                c.error(
                    &to!["ports", name, field],
                    message,
                    "a device can be only one interface",
                );
            }
        }
    }
    host_names(c);
    memifs(c);
    workers(c);
    if config
        .netns
        .as_deref()
        .is_some_and(|netns| forms::netns(netns).as_os_str().is_empty())
    {
        c.error(
            &to!["netns"],
            "netns is empty".into(),
            "name it, or remove it",
        );
    }
}

/// The host's end of a port that is no network device has a name of its own.
fn host_names(c: &mut Checker<'_>) {
    let config = c.config;
    for (name, port) in &config.ports {
        let has_host = port.kinds().iter().any(|kind| !kind.is_device());
        let host = Kind::host_name(name);
        let taken = config.ports.contains_key(&host) || config.interfaces.contains_key(&host);
        if has_host && taken {
            let section = if config.interfaces.contains_key(&host) {
                "interfaces"
            } else {
                "ports"
            };
            let message = format!("interface {host} has the name of the host's end of {name}");
            c.error(&to![section, &host], message, "give it another");
        }
    }
}

/// At each end of a socket, a number is one interface. Both ends may be ours.
fn memifs(c: &mut Checker<'_>) {
    let mut ends: HashMap<_, &str> = HashMap::new();
    let config = c.config;
    for (name, port) in &config.ports {
        for kind in port.kinds() {
            let PortKind::Memif(memif) = kind else {
                continue;
            };
            let (socket, id) = (memif.socket.display().to_string(), memif.id);
            let role = memif.role == Role::Server;
            if let Some(other) = ends.insert((memif.socket, id, role), name) {
                let message = format!("port {name} is memif {id} of {socket}, as {other} is");
                let path = to!["ports", name, "memif"];
                c.error(&path, message, "give it another id or socket");
            }
        }
    }
}

fn workers(c: &mut Checker<'_>) {
    let workers = &c.config.workers;
    for (index, cpu) in workers.cpus.iter().enumerate() {
        if workers.cpus[..index].contains(cpu) {
            let message = format!("processor {cpu} is named twice");
            let path = to!["workers", "cpus", index];
            c.error(&path, message, "a worker has its processor to itself");
        }
    }
    let (count, cpus) = (workers.count, workers.cpus.len());
    if let Some(count) = count.filter(|count| cpus > 0 && usize::from(*count) != cpus) {
        let message = format!("{count} workers on {cpus} processors");
        let help = "give one of count and cpus, or as many cpus as workers";
        c.error(&to!["workers", "count"], message, help);
    }
}
