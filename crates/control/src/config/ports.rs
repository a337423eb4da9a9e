//! From the `ports` of the language to [`Port`]s.

use std::path::PathBuf;

use serde_saphyr::Spanned;

use super::check::Checker;
use super::schema::{self, Given};
use super::{Memif, Port, PortKind, Role, Secret};

impl Checker {
    /// The port, if it is one.
    pub(super) fn port(&mut self, name: &Spanned<String>, raw: schema::Port) -> Option<Port> {
        let queues = self.number(
            raw.queues,
            &format!("queues of port {}", name.value),
            1,
            256,
        );
        let mode = raw.mode.0.map(|mode| mode.value).unwrap_or_default();
        // A kind with a mistake in it has been reported already, and still is the one that was
        // meant.
        let kinds = [
            raw.netdev.0.map(|netdev| self.netdev(netdev)),
            raw.pci.0.map(|pci| self.pci(pci)),
            raw.memif.0.map(|memif| self.memif(memif)),
            raw.tap.0.map(|tap| self.tap(tap.value)),
            raw.pcap.0.map(|files| Some(pcap(files.value))),
            raw.null.0.map(|_| Some(PortKind::Null)),
        ];
        let mut kinds: Vec<Option<PortKind>> = kinds.into_iter().flatten().collect();
        if kinds.len() != 1 {
            let message = format!("port {} names {} devices", name.value, kinds.len());
            self.say(
                name.referenced,
                message,
                "name exactly one of netdev, pci, memif, tap, pcap, null",
            );
        }
        kinds
            .pop()
            .flatten()
            .map(|kind| Port { kind, queues, mode })
    }

    fn netdev(&mut self, name: Spanned<String>) -> Option<PortKind> {
        self.device_name(&name, "netdev");
        Some(PortKind::Netdev(name.value))
    }

    fn tap(&mut self, raw: schema::Tap) -> Option<PortKind> {
        if let Some(name) = &raw.name.0 {
            self.device_name(name, "tap");
        }
        Some(PortKind::Tap {
            name: raw.name.0.map(|name| name.value),
        })
    }

    fn pci(&mut self, text: Spanned<String>) -> Option<PortKind> {
        let hex = |part: &str, digits| {
            part.len() == digits && part.chars().all(|c| c.is_ascii_hexdigit())
        };
        let parts: Vec<&str> = text.value.split([':', '.']).collect();
        if let [domain, bus, device, function] = parts[..]
            && hex(domain, 4)
            && hex(bus, 2)
            && hex(device, 2)
            && hex(function, 1)
        {
            return Some(PortKind::Pci(text.value.to_ascii_lowercase()));
        }
        let message = format!("{:?} is not a PCI address", text.value);
        self.say(
            text.referenced,
            message,
            "write it as `parshall show pci` does: 0000:03:00.0",
        );
        None
    }

    fn memif(&mut self, raw: Spanned<schema::Memif>) -> Option<PortKind> {
        let (at, raw) = (raw.referenced, raw.value);
        let Some(socket) = raw.socket.0 else {
            self.say(
                at,
                "this memif has no socket",
                "add `socket: /run/parshall/memif.sock`, the same on both sides",
            );
            return None;
        };
        self.ring_size_fits(&raw.ring_size);
        self.secret_fits(&raw.secret);
        Some(PortKind::Memif(Memif {
            socket: socket.value.into(),
            id: self
                .number(raw.id, "id of this memif", 0, u32::MAX)
                .unwrap_or(0),
            role: raw.role.0.map_or(Role::Client, |role| role.value),
            rings: self
                .number(raw.rings, "rings", 1, Memif::RINGS)
                .unwrap_or(1),
            ring_size: self
                .number(raw.ring_size, "ring-size", 64, 16384)
                .unwrap_or(1024),
            secret: raw.secret.0.map(|secret| Secret(secret.value)),
        }))
    }

    fn ring_size_fits(&mut self, given: &Given<i64>) {
        let Some(size) = &given.0 else { return };
        if size.value <= 0 || size.value.count_ones() != 1 {
            let message = format!("ring-size is {}", size.value);
            self.say(size.referenced, message, "it must be a power of two");
        }
    }

    fn secret_fits(&mut self, given: &Given<String>) {
        let Some(secret) = &given.0 else { return };
        if secret.value.len() > Secret::MEMIF {
            let help = format!("{} bytes at most", Secret::MEMIF);
            self.say(secret.referenced, "this secret is too long", help);
        }
    }
}

fn pcap(raw: schema::Pcap) -> PortKind {
    let path = |given: Given<String>| given.0.map(|path| PathBuf::from(path.value));
    PortKind::Pcap {
        rx: path(raw.rx),
        tx: path(raw.tx),
    }
}
