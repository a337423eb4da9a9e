//! An open port: what it is, its counters, its XDP program.

use super::UNFINISHED;
use graph::Port;
use io::{af_xdp, memif};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// An open port.
pub struct Opened {
    /// The kernel's device: the port itself, or its tap.
    pub netdev: String,
    /// Its index.
    pub ifindex: u32,
    /// Whether the device is a tap beside the port.
    pub has_twin: bool,
    /// The queues, until the workers have them.
    pub queues: Vec<Box<dyn Port>>,
    /// The tap's own port, until a worker has it.
    pub twin: Option<Box<dyn Port>>,
    /// Counters of the queues and of the tap, by name.
    pub counters: Vec<(String, graph::PortCounters)>,
    pub(super) kind: Kind,
}

/// What is behind it.
pub(super) enum Kind {
    AfXdp {
        interface: af_xdp::Interface,
        program: Option<xdp::RouterPort>,
        queues: usize,
    },
    Memif(memif::Interface),
    /// By what says that somebody has deleted it.
    Tap(Arc<AtomicBool>),
    Other(&'static str),
}

impl Opened {
    /// What it is, for log and `show hardware`.
    pub fn describe(&self) -> String {
        match &self.kind {
            Kind::AfXdp {
                interface, queues, ..
            } => {
                let copy = if interface.zero_copy() {
                    "zero-copy"
                } else {
                    "copy"
                };
                let long = if interface.long_packets() {
                    ", multi-buffer"
                } else {
                    ""
                };
                format!(
                    "af_xdp on {}, {copy}, {} program, queues: {queues}{long}",
                    self.netdev,
                    self.program().map_or(String::new(), |p| p.to_string())
                )
            }
            Kind::Memif(interface) => {
                let status = interface.status();
                let (rx, tx) = status.rings;
                let trouble = match status.reason.as_str() {
                    "" => String::new(),
                    reason => format!(" ({reason})"),
                };
                let link = match status.up {
                    true => format!(
                        "connected to {} of {}, rings: rx {rx}, tx {tx}",
                        status.peer_interface, status.peer
                    ),
                    false => "not connected".into(),
                };
                format!("memif {link}{trouble}, host by tap {}", self.netdev)
            }
            Kind::Tap(_) => format!("tap, host by tap {}", self.netdev),
            Kind::Other(kind) => format!("{kind}, host by tap {}", self.netdev),
        }
    }

    /// Mode of the port in a word.
    pub fn mode(&self) -> String {
        match &self.kind {
            Kind::AfXdp { interface, .. } => {
                let generic = self.program() == Some(xdp::Mode::Generic);
                match (interface.zero_copy(), generic) {
                    (true, _) => "zero-copy".into(),
                    (false, false) => "copy".into(),
                    (false, true) => "generic".into(),
                }
            }
            Kind::Memif(_) => "memif".into(),
            Kind::Tap(_) => "tap".into(),
            Kind::Other(kind) => (*kind).into(),
        }
    }

    /// Whether the port is a tap that somebody has deleted.
    pub fn is_deleted_tap(&self) -> bool {
        matches!(&self.kind, Kind::Tap(gone) if gone.load(Ordering::Acquire))
    }

    /// Adds the counters of what the workers do not have yet, in place of those of the same name.
    pub(super) fn add_counters(&mut self) {
        for port in self.queues.iter().chain(&self.twin) {
            let name = port.name().to_string();
            self.counters.retain(|(known, _)| *known != name);
            self.counters.push((name, port.counters()));
        }
    }

    /// The connection of a memif.
    pub fn memif(&self) -> Option<memif::Status> {
        match &self.kind {
            Kind::Memif(interface) => Some(interface.status()),
            _ => None,
        }
    }

    /// Brings up to date what the kernel counts for us.
    pub fn refresh(&self) {
        if let Kind::AfXdp { interface, .. } = &self.kind {
            interface.refresh();
        }
    }

    /// Where the XDP program on its device runs, if there is one.
    pub fn program(&self) -> Option<xdp::Mode> {
        let Kind::AfXdp { program, .. } = &self.kind else {
            return None;
        };
        Some(program.as_ref()?.attachment()?.mode())
    }

    /// Whether packets have come whose TCP or UDP checksum the sender left to hardware.
    pub fn has_unfinished(&self) -> bool {
        let mut counters = self.counters.iter().flat_map(|(_, c)| c.iter());
        counters.any(|(name, n)| name == UNFINISHED && n > 0)
    }

    /// Takes the XDP program off: the kernel gets every packet from now on.
    pub fn detach(&mut self) {
        if let Kind::AfXdp { program, .. } = &mut self.kind {
            *program = None;
        }
    }
}
