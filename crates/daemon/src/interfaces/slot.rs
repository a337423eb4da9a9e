//! An interface of the configuration, and how far it has come.

use tracing::{info, warn};

use control::config::PortKind;
use control::config::desired::{self, IP6_MTU, Kind};
use control::facts::Link;
use control::mirror::Binding;
use io::memif;
use ports::Open;
use router::bond::Spread;
use router::{InterfaceId, L2, Router, Tags};

use super::device::Device;
use super::kind;
use super::netdev::{LONGER, ONE_BUFFER};
use super::open::OpenInterface;
use crate::routing::Routing;

/// Troubles of a memif that are logged until it is connected again: a peer could make up ever
/// new ones.
const TROUBLES: usize = 16;

/// The numbers that a loopback has besides its own if it routes for a bridge domain.
pub const BVI_NUMBERS: usize = 2;

/// An interface of the configuration.
pub struct Slot {
    /// Its configuration.
    pub config: desired::Interface,
    /// The router's indexes for it.
    pub ids: Ids,
    /// The interface that it is on top of, and its tags, if it is a sub-interface.
    pub on: Option<(InterfaceId, Tags)>,
    /// What it does at layer 2 instead of routing.
    pub l2: Option<L2>,
    /// It is a loopback that routes for a bridge domain.
    pub is_bvi: bool,
    /// Its state.
    pub phase: Phase,
    /// The kernel's index of the netdev or tap, once it is ours.
    pub link: Option<u32>,
    /// The memif is connected, or the bond's other end has agreed; true for all others.
    pub up: bool,
    /// Its network device as it was before we changed it.
    pub found: Option<Link>,
    /// It has come while the router runs, and is to be opened once everything is known about it.
    pub is_new: bool,
    /// The kernel's index of a device that could not be opened: putting it back looks as if it
    /// appeared again.
    pub refused: Option<u32>,
    /// The reason, which has been logged, why packets to own addresses are not translated.
    pub(super) untranslated: Option<String>,
    /// It has been logged that packets come with unfinished checksums.
    warned: bool,
    /// Troubles of its memif that have been logged since it was last connected.
    logged: Vec<String>,
}

/// The router's numbers of an interface; 0 is none.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Ids {
    /// Of the port.
    pub port: InterfaceId,
    /// Of its host interface.
    pub host: InterfaceId,
}

impl Ids {
    /// Those that an interface needs; `None`: there are not so many left.
    pub fn allocate(config: &desired::Interface, router: &mut Router) -> Option<Ids> {
        Ids::take(kind::of(config).numbers(), router)
    }

    /// So many; `None`: there are not so many left.
    pub fn take(numbers: usize, router: &mut Router) -> Option<Ids> {
        let mut ids = Ids::default();
        let ends = [&mut ids.port, &mut ids.host];
        for id in ends.into_iter().take(numbers) {
            *id = router.allocate().unwrap_or_default();
        }
        if ids.all().count() == numbers {
            return Some(ids);
        }
        for id in ids.all() {
            // It has never been in use.
            let _ = router.release(id);
        }
        None
    }

    /// All that it has.
    pub fn all(self) -> impl Iterator<Item = InterfaceId> {
        [self.port, self.host].into_iter().filter(|id| *id != 0)
    }

    /// The queues that workers have of an open interface: those of its port and of its tap, by
    /// index, and how many.
    pub fn queues(self, open: &OpenInterface) -> [(InterfaceId, usize); 2] {
        let taps = usize::from(open.tap.is_some() && self.host != 0);
        [(self.port, open.queues), (self.host, taps)]
    }
}

/// The state of an interface.
pub enum Phase {
    /// It is not there, and why.
    Waiting(String),
    /// It is open.
    Open(Box<OpenInterface>),
}

impl Slot {
    /// A slot for an interface that is not open yet.
    pub fn new(config: desired::Interface, ids: Ids) -> Slot {
        Slot {
            ids,
            on: None,
            l2: None,
            is_bvi: false,
            phase: Phase::Waiting(String::new()),
            link: None,
            up: !matches!(config.port_kind(), Some(PortKind::Memif(_)))
                && !matches!(config.kind, Kind::Bond(Spread::Lacp(_))),
            found: None,
            is_new: false,
            refused: None,
            config,
            untranslated: None,
            warned: false,
            logged: Vec::new(),
        }
    }

    /// Its kind.
    pub fn device(&self) -> &'static dyn Device {
        kind::of(&self.config)
    }

    /// The router's number of it; `None`: a loopback has none.
    pub fn number(&self) -> Option<InterfaceId> {
        self.is_routed().then_some(self.ids.port)
    }

    /// The router's number of the port that carries it: its own, or its parent's.
    pub fn carrier(&self) -> InterfaceId {
        self.on.map_or(self.ids.port, |(parent, _)| parent)
    }

    /// Returns true if the router has it: a loopback only while it routes for a bridge domain.
    fn is_routed(&self) -> bool {
        self.is_bvi || self.config.kind != Kind::Loopback
    }

    /// The interface, if it is open.
    pub fn open(&self) -> Option<&OpenInterface> {
        match &self.phase {
            Phase::Open(open) => Some(open),
            Phase::Waiting(_) => None,
        }
    }

    /// Its port, if it has one and is open.
    pub fn port(&self) -> Option<&Open> {
        self.open()?.port.as_ref()
    }

    /// Claims a device that will be opened as it is, before the kernel's routes come, so that these
    /// are translated only once.
    pub fn reserve(&mut self, link: u32, routing: &mut Routing) {
        let is_named = matches!(self.config.port_kind(), Some(PortKind::Netdev(_)));
        if self.config.lcp.is_none() && is_named {
            self.bind(link, routing);
        }
    }

    /// Tells the translator that the device of an open interface is ours, as soon as the kernel has
    /// shown it.
    pub fn claim(&mut self, routing: &mut Routing) {
        let Some(open) = self.open().filter(|_| self.is_routed()) else {
            return;
        };
        let ifindex = open.ifindex;
        if self.link.is_none() && routing.translator.link(ifindex).is_some() {
            self.bind(ifindex, routing);
        }
    }

    fn bind(&mut self, link: u32, routing: &mut Routing) {
        self.link = Some(link);
        let owned = Binding {
            id: self.ids.port,
            name: self.config.name.clone(),
            host: Some(self.ids.host).filter(|id| *id != 0),
            port_up: self.up,
            serving: false,
            on: self.on,
            bond: match self.config.kind {
                Kind::Bond(spread) => Some(spread),
                _ => None,
            },
            tunnel: match self.config.kind {
                Kind::Vxlan(tunnel) => Some(tunnel),
                _ => None,
            },
            l2: self.l2,
        };
        routing.bind(link, owned);
    }

    /// Says so if the peer of its memif has come or gone.
    pub fn look_at_memif(&mut self, routing: &mut Routing) {
        let memif = self.port().and_then(Open::memif);
        if !memif.is_some_and(|memif| self.take_memif(memif)) {
            return;
        }
        let state = if self.up { "up" } else { "down" };
        info!("interface {}: link {state}", self.config.name);
        if let Some(link) = self.link {
            routing.set_port_up(link, self.up);
        }
    }

    /// Says so if the other end of its bond has agreed that members carry, or does so no longer.
    pub fn look_at_bond(&mut self, routing: &mut Routing) {
        let up = match self.config.kind {
            Kind::Bond(Spread::Lacp(_)) => routing.router.has_partner(self.ids.port),
            Kind::Bond(_) => true,
            _ => return,
        };
        if self.up == up {
            return;
        }
        self.up = up;
        let state = if up { "up" } else { "down" };
        info!("interface {}: link {state}", self.config.name);
        if let Some(link) = self.link {
            routing.set_port_up(link, up);
        }
    }

    /// Takes note of the state of its memif. True if it has been connected or disconnected since.
    fn take_memif(&mut self, memif: memif::Status) -> bool {
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

    /// The trouble with its memif, beside that no peer has come, or with what is translated.
    pub fn trouble(&self) -> Option<String> {
        if let Some(why) = &self.untranslated {
            let name = &self.config.name;
            return Some(format!(
                "interface {name}: packets to own addresses are not translated: {why}"
            ));
        }
        let memif = self.port().and_then(Open::memif)?;
        let reason = (!memif.up && !memif.reason.is_empty()).then_some(memif.reason)?;
        Some(format!("interface {}: memif: {reason}", self.config.name))
    }

    /// Its device as the kernel has last shown it.
    pub(super) fn device_now<'r>(&self, routing: &'r Routing) -> Option<&'r Link> {
        routing.translator.link(self.open()?.ifindex)
    }

    /// The fault of the MTU that its device has by now, whoever has set it, and the remedy.
    pub fn wrong_mtu(&self, routing: &Routing) -> Option<String> {
        let (name, open) = (&self.config.name, self.open()?);
        let link = self.device_now(routing)?;
        let (device, mtu) = (&link.name, link.mtu);
        if mtu > ONE_BUFFER && !open.port.as_ref().is_none_or(Open::long_packets) {
            return Some(format!(
                "interface {name}: packets of more than {ONE_BUFFER} bytes are lost, and its MTU of {mtu} allows them: \
                 lower it, or {LONGER}"
            ));
        }
        let address = self.config.ip6().filter(|_| mtu < IP6_MTU.into())?;
        let write = match self.config.mtu {
            Some(enough) if enough >= IP6_MTU => String::new(),
            _ => format!(", or write `mtu: {IP6_MTU}`"),
        };
        Some(format!(
            "interface {name} lacks IPv6 address {address}: its MTU is {mtu}, and IPv6 needs at least {IP6_MTU} \
             (RFC 8200 section 5): `ip link set {device} mtu {IP6_MTU}` or more{write}"
        ))
    }

    /// Says once what to do about packets whose checksums nobody finished.
    pub fn warn_of_checksums(&mut self) {
        if self.warned || !self.port().is_some_and(Open::has_unfinished) {
            return;
        }
        let Some(open) = self.open() else { return };
        warn!(
            "interface {}: packets come with unfinished TCP or UDP checksums, and their receivers will drop them: \
             run `ethtool -K DEVICE tx off` at the other end of {}, DEVICE being that end",
            self.config.name, open.netdev
        );
        self.warned = true;
    }
}
