//! An interface of the configuration, and how far it has come.

use control::config::{self, Config, PortKind};
use io::memif;
use router::InterfaceId;
use tracing::warn;

use super::interfaces::OpenInterface;

/// Troubles of a memif that are logged until it is connected again; a peer could make up ever new
/// ones.
const TROUBLES: usize = 16;

/// An interface of the configuration.
pub struct Slot {
    /// What is wanted.
    pub config: config::Interface,
    /// The router's indexes for it.
    pub ids: Ids,
    /// How far it has come.
    pub phase: Phase,
    /// The kernel's index of the netdev or tap, once it is ours.
    pub link: Option<u32>,
    /// The memif is connected; true for all other ports.
    pub up: bool,
    /// It has been logged that packets come with unfinished checksums.
    warned: bool,
    /// Troubles of its memif that have been logged since that was last connected.
    logged: Vec<String>,
}

/// The router's indexes of an interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ids {
    /// Of the port.
    pub port: InterfaceId,
    /// Of the tap that is its host's end, where it has one.
    pub twin: InterfaceId,
}

/// How far an interface has come.
pub enum Phase {
    /// It is not there, and why.
    Waiting(String),
    /// It is open.
    Open(Box<OpenInterface>),
}

impl Slot {
    /// A slot for each interface, in the order of the configuration.
    pub fn all(config: &Config) -> Vec<Slot> {
        // Index 0 is none.
        let ids = (1..).step_by(2).map(|port| Ids {
            port,
            twin: port + 1,
        });
        let slot = |(ids, interface): (Ids, &config::Interface)| Slot {
            config: interface.clone(),
            ids,
            phase: Phase::Waiting(String::new()),
            link: None,
            up: !matches!(interface.port.kind, PortKind::Memif(_)),
            warned: false,
            logged: Vec::new(),
        };
        ids.zip(&config.interfaces).map(slot).collect()
    }

    /// The interface, if it is open.
    pub fn open(&self) -> Option<&OpenInterface> {
        match &self.phase {
            Phase::Open(open) => Some(open),
            Phase::Waiting(_) => None,
        }
    }

    /// Takes note of the state of its memif. True if it has been connected or disconnected since.
    pub fn take_memif(&mut self, memif: memif::Status) -> bool {
        let reason = memif.reason;
        let new = !reason.is_empty() && !self.logged.contains(&reason);
        if new && self.logged.len() < TROUBLES {
            warn!("interface {}: memif: {reason}", self.config.name);
            self.logged.push(reason);
        }
        let changed = self.up != memif.up;
        if changed && memif.up {
            self.logged.clear();
        }
        self.up = memif.up;
        changed
    }

    /// Says once what to do about packets whose checksums nobody finished.
    pub fn warn_of_checksums(&mut self) {
        let open = self.open().filter(|open| open.port.has_unfinished());
        let (Some(open), false) = (open, self.warned) else {
            return;
        };
        warn!(
            "interface {}: packets come with unfinished TCP or UDP checksums and will be dropped by their receivers: \
             run `ethtool -K DEVICE tx off` at the other end of {}, DEVICE being that end",
            self.config.name, open.netdev
        );
        self.warned = true;
    }
}
