//! The interfaces of the configuration: opened when their devices appear, given up when these
//! vanish.

mod bond;
mod change;
mod device;
mod filters;
mod graveyard;
mod host_end;
mod kind;
mod layer2;
mod loopback;
mod netdev;
mod open;
mod opener;
mod punt;
mod punt_tap;
mod slot;
mod software;
mod strays;
mod sub;
mod tap;
mod vxlan;

use std::collections::BTreeMap;
use std::mem;
use std::time::{Duration, Instant};

use tracing::{info, warn};

use control::config::Desired;
use control::config::desired::Bridge;
use control::mirror::{LinkNews, Translator};
use ports::{Open, OpenError};
use router::show::{Other, OtherState};
use router::{InterfaceId, Router};

use super::routing::Routing;
use super::workers;
use graveyard::Graveyard;
use layer2::Bridges;
use open::Part;

pub use netdev::buffers;
pub use open::OpenInterface;
pub use opener::Opener;
pub use slot::{Phase, Slot};

/// Time between two looks for taps that must be made again.
const RETRY: Duration = Duration::from_secs(1);

/// Time between two lines of the log about a start that takes long.
const PROGRESS: Duration = Duration::from_secs(1);

/// The interfaces of the configuration.
pub struct Interfaces {
    /// Those of every kind, in the order of the configuration.
    pub slots: Vec<Slot>,
    /// The bridge domains.
    pub bridges: Bridges,
    /// Those of the start, until it.
    first_bridges: Vec<Bridge>,
    opener: Opener,
    /// Taps of those that are no more.
    graveyard: Graveyard,
    /// The node that packets of a port enter the graph at.
    entry: u16,
    /// The time of the next look for taps that are gone.
    retry: Instant,
    /// Ports are opened as their devices appear.
    started: bool,
    /// Ports were opened that do not take packets in yet.
    new_ports: bool,
    room: Room,
}

/// Room for interfaces.
#[derive(Debug, Clone, Copy)]
pub struct Room {
    /// Numbers of interfaces, those of host interfaces included.
    pub interfaces: usize,
    /// Packet buffers for the rings of ports: of those of the start, and spare ones.
    pub buffers: u32,
}

impl Interfaces {
    /// None is open yet.
    ///
    /// # Errors
    /// They do not fit into the router's table.
    pub fn new(
        config: &Desired,
        room: Room,
        opener: Opener,
        entry: u16,
        router: &mut Router,
    ) -> Result<Self, String> {
        fit(config, room.interfaces)?;
        let mut interfaces = Self {
            slots: Vec::new(),
            bridges: Bridges::default(),
            first_bridges: config.bridges.clone(),
            opener,
            graveyard: Graveyard::default(),
            entry,
            retry: Instant::now(),
            started: false,
            new_ports: false,
            room,
        };
        for config in &config.interfaces {
            interfaces.add(config.clone(), router)?;
        }
        Ok(interfaces)
    }

    /// Puts back what routers that died have done to other devices, and opens every port whose
    /// device is there. A device that is not is waited for; anything else is
    /// an error.
    ///
    /// Not to be called before the kernel's tables have been seen: until then a packet finds no
    /// route.
    ///
    /// # Errors
    /// The first that cannot be opened, and why.
    pub fn open_all(&mut self, routing: &mut Routing) -> Result<(), String> {
        self.started = true;
        let bridges = mem::take(&mut self.first_bridges);
        self.start_layer2(bridges, routing)?;
        self.start_filters(routing)?;
        let wanted: Vec<_> = self.slots.iter().map(|slot| slot.config.clone()).collect();
        self.opener.put_back_unwanted(&wanted);
        let (count, mut said) = (self.slots.len(), Instant::now());
        for index in 0..count {
            self.open(index, routing)
                .map_err(|e| format!("interface {}: {e}", self.slots[index].config.name))?;
            if said.elapsed() >= PROGRESS {
                info!("opened {} of {count} interfaces", index + 1);
                said = Instant::now();
            }
        }
        Ok(())
    }

    /// Takes note of what has become of a device.
    pub fn take(&mut self, news: LinkNews, routing: &mut Routing) {
        match news {
            LinkNews::Appeared { index, name } => self.appeared(index, &name, routing),
            LinkNews::Vanished { index } => self.vanished(index, routing),
        }
    }

    /// Looks after memifs, taps and checksums.
    pub fn tick(&mut self, now: Instant, routing: &mut Routing) {
        for slot in &mut self.slots {
            slot.look_at_memif(routing);
            slot.look_at_bond(routing);
            slot.warn_of_checksums();
        }
        if self.started && now >= self.retry {
            self.retry = now + RETRY;
            self.reopen(routing);
            self.follow_translation(routing);
            // It has been said once that it failed.
            let _ = self.opener.places.remove_unneeded();
        }
    }

    /// The kernel's index of the device behind an interface of the router.
    pub fn link_of(&self, interface: InterfaceId) -> Option<u32> {
        let slot = self.slots.iter().find(|slot| slot.ids.port == interface);
        slot.and_then(|slot| slot.link)
    }

    /// Those whose device is absent, and loopbacks.
    pub fn others(&self, translator: &Translator) -> Vec<Other> {
        let other = |slot: &Slot| {
            let state = match &slot.phase {
                Phase::Waiting(why) => OtherState::Absent(why.clone()),
                Phase::Open(open) if slot.number().is_none() => {
                    let link = translator.link(open.ifindex)?;
                    OtherState::Kernel {
                        up: link.admin_up && link.carrier,
                        mtu: u16::try_from(link.mtu).unwrap_or(u16::MAX),
                        mac: link.mac.unwrap_or_default(),
                        addresses: translator.addresses_of(link.index),
                    }
                }
                Phase::Open(_) => return None,
            };
            Some(Other {
                name: slot.config.name.clone(),
                index: slot.number(),
                state,
            })
        };
        self.slots.iter().filter_map(other).collect()
    }

    /// Counters of the XDP program on an interface; `None` where none is.
    pub fn program_counters(&self, slot: &Slot) -> Option<xdp::Counters> {
        slot.port().and_then(Open::program)?;
        self.opener.host.program_counters(slot.ids.port)
    }

    /// Takes the XDP programs off: from then on the kernel gets every packet.
    pub fn detach(&mut self) {
        for slot in &mut self.slots {
            if let Phase::Open(open) = &mut slot.phase {
                open.detach();
            }
        }
    }

    /// Closes everything, and leaves devices as they are, for whoever goes on from there.
    pub fn leave(&mut self) {
        self.slots.clear();
    }

    /// Closes everything, and undoes what was done to devices. The workers must have ended.
    pub fn close(&mut self) {
        self.slots.clear();
        self.opener.restore();
    }

    /// Returns true if ports were opened since the last call. They take packets in once all that came
    /// with them is known, such as addresses: [`Routing::serve_all`].
    pub fn take_new_ports(&mut self) -> bool {
        mem::take(&mut self.new_ports)
    }

    fn open(&mut self, index: usize, routing: &mut Routing) -> Result<(), OpenError> {
        let (config, slot) = (self.whole(index), &self.slots[index]);
        let (device, id) = (slot.device(), slot.ids.port);
        if let Some((parent, _)) = slot.on {
            self.listen(parent)?;
        }
        let carries = self.carries(id);
        let opened = device.open(&mut self.opener, &config, carries, routing.router.pool());
        self.opened(index, opened, routing)
    }

    /// Opens an interface whose device is ours, and stays so if it cannot be opened.
    fn reopen_port(&mut self, index: usize, routing: &mut Routing) -> Result<(), OpenError> {
        let slot = &self.slots[index];
        let (config, carries) = (self.whole(index), self.carries(slot.ids.port));
        let device = slot.device();
        let opened = device.reopen(&mut self.opener, &config, carries, routing.router.pool());
        self.opened(index, opened, routing)
    }

    /// Takes note of an attempt to open an interface.
    fn opened(
        &mut self,
        index: usize,
        opened: Result<OpenInterface, OpenError>,
        routing: &mut Routing,
    ) -> Result<(), OpenError> {
        let slot = &mut self.slots[index];
        match opened {
            Ok(open) => {
                slot.found = open.found.clone();
                self.put_to_work(index, Box::new(open), None, routing);
            }
            Err(OpenError::NotThere(what)) => {
                info!("interface {}: waiting: {what}", slot.config.name);
                slot.phase = Phase::Waiting(what);
                if let Some(link) = slot.link.take() {
                    routing.unbind(link);
                }
            }
            Err(error) => return Err(error),
        }
        Ok(())
    }

    /// False: it cannot, for a reason other than that its device is not there.
    fn open_if_it_can_be(&mut self, index: usize, routing: &mut Routing) -> bool {
        let Err(e) = self.open(index, routing) else {
            return true;
        };
        let (slot, why) = (&mut self.slots[index], e.to_string());
        if !matches!(&slot.phase, Phase::Waiting(known) if *known == why) {
            warn!("interface {}: {why}", slot.config.name);
            slot.phase = Phase::Waiting(why);
        }
        false
    }

    /// Gives the workers the parts of an open interface that they do not have yet.
    fn put_to_work(
        &mut self,
        index: usize,
        mut open: Box<OpenInterface>,
        astray: Option<&String>,
        routing: &mut Routing,
    ) {
        let slot = &mut self.slots[index];
        info!(
            "interface {}: {}",
            slot.config.name,
            open.describe(&slot.config, astray)
        );
        let ids = slot.ids;
        let ends = [(ids.port, &mut open.port), (ids.host, &mut open.tap)];
        // A tap without a number is there for its addresses: nobody reads from it.
        for (id, end) in ends.into_iter().filter(|(id, _)| *id != 0) {
            let queues = end.as_mut().map(|end| mem::take(&mut end.queues));
            if let Some(queues) = queues.filter(|queues| !queues.is_empty()) {
                workers::add_port(&mut routing.router.workers, id, queues, self.entry);
            }
        }
        if let Some((parent, _)) = slot.on {
            workers::leave_by(&mut routing.router.workers, ids.port, parent);
        }
        self.new_ports |= slot.number().is_some();
        slot.phase = Phase::Open(open);
        slot.claim(routing);
        if let Some(link) = slot.link {
            routing.set_port_up(link, slot.up);
        }
    }

    fn appeared(&mut self, link: u32, name: &str, routing: &mut Routing) {
        for index in 0..self.slots.len() {
            let slot = &mut self.slots[index];
            // A new one is opened with its last setting.
            let awaited = || slot.device().awaits(&slot.config, name);
            let closed = slot.open().is_none() && !slot.is_new && awaited();
            if !self.started && closed {
                slot.reserve(link, routing);
            } else if closed && slot.refused != Some(link) {
                let opened = self.open_if_it_can_be(index, routing);
                self.slots[index].refused = (!opened).then_some(link);
            } else if !closed {
                slot.claim(routing);
            }
        }
    }

    fn vanished(&mut self, link: u32, routing: &mut Routing) {
        for index in 0..self.slots.len() {
            let slot = &mut self.slots[index];
            if slot.link == Some(link) {
                slot.link = None;
            }
            if slot.refused == Some(link) {
                slot.refused = None;
            }
            match slot.open().filter(|open| open.ifindex == link) {
                Some(open) if open.tap.is_some() => self.lost(index, Part::Tap, routing),
                Some(_) => self.lost(index, Part::Port, routing),
                None => {}
            }
        }
    }

    /// The device of an interface is gone: it is opened again with the next one of that name. A tap
    /// is made again at once.
    fn lost(&mut self, index: usize, part: Part, routing: &mut Routing) {
        let mut astray = match part {
            // It is made in its place.
            Part::Port => BTreeMap::new(),
            Part::Tap => self.astray_ends(),
        };
        let astray = astray.remove(&self.slots[index].config.name);
        let slot = &mut self.slots[index];
        let Some(open) = slot.open() else { return };
        let tap = slot.port_tap().filter(|_| part == Part::Port);
        let device = tap.unwrap_or_else(|| open.netdev.clone());
        let gone = format!("its device {device} is gone");
        warn!("interface {}: {gone}", slot.config.name);
        let Phase::Open(mut open) = mem::replace(&mut slot.phase, Phase::Waiting(gone)) else {
            return;
        };
        let [port, tap] = slot.ids.queues(&open);
        let (lost, other) = match part {
            Part::Port => (port, tap),
            Part::Tap => (tap, port),
        };
        // Nothing leaves by it from here on: packets take other ways before it goes.
        if let Some(link) = slot.link.filter(|_| part == Part::Port) {
            routing.set_port_up(link, false);
        }
        workers::take_back(&mut routing.router, lost);
        if open.tap.is_none() {
            open.punt
                .take()
                .into_iter()
                .for_each(|punt| punt.end(routing));
            return;
        }
        let (kind, config) = (slot.device(), self.whole(index));
        let renewed = kind.renew(&mut self.opener, &config, &mut open, part);
        let slot = &mut self.slots[index];
        match renewed {
            Ok(()) => {
                info!("interface {}: {device} is made again", slot.config.name);
                self.put_to_work(index, open, astray.as_ref(), routing);
            }
            Err(why) => {
                warn!("interface {}: {why}", slot.config.name);
                slot.phase = Phase::Waiting(why.to_string());
                slot.link = None;
                workers::take_back(&mut routing.router, other);
            }
        }
    }

    /// Looks for taps that somebody has deleted, and for ports whose tap could not be made again.
    fn reopen(&mut self, routing: &mut Routing) {
        for index in 0..self.slots.len() {
            let slot = &self.slots[index];
            match slot.open() {
                None if slot.config.netdev().is_none() && !slot.is_new => {
                    self.open_if_it_can_be(index, routing);
                }
                Some(_) if slot.port().is_some_and(Open::is_deleted_tap) => {
                    self.lost(index, Part::Port, routing);
                }
                _ => {}
            }
        }
    }
}

/// Looks whether the interfaces of a configuration fit into a table of `most`.
///
/// # Errors
/// They do not.
fn fit(config: &Desired, most: usize) -> Result<(), String> {
    let numbers = |config| kind::of(config).numbers();
    let bvis = config.bridges.iter().filter(|bridge| bridge.bvi.is_some());
    let bvis = bvis.count() * slot::BVI_NUMBERS;
    let needed = config.interfaces.iter().map(numbers).sum::<usize>() + bvis;
    if needed > most {
        return Err(format!(
            "the interfaces need {needed} entries of a table that has {most}: one each, and two \
             where the port is no network device, for a bond, a tunnel, a sub-interface and a BVI; configure fewer"
        ));
    }
    Ok(())
}
