//! Interfaces that come, change and go while the router runs.
//!
//! Every wish is written into the slot; a device that is there gets it at once, one
//! that is not when it appears. A new interface is opened with its last setting, its state, as one
//! of the start is: with everything that is known about it.

use std::io;
use std::mem;

use ::io::af_xdp;
use control::config::desired::{self, Kind};
use control::config::{Desired, MTU};
use control::netdev::{self, give_addresses};
use control::netlink::Kernel;
use graph::WorkerPort;
use ports::Open;
use router::{InterfaceId, Mac, Router, Tags};
use tracing::warn;

use super::graveyard::TapLink;
use super::kind;
use super::netdev::{queues, takes};
use super::slot::{Ids, Phase, Slot};
use super::sub::tags;
use super::{Interfaces, fit};
use crate::routing::Routing;
use crate::workers;

/// What is left of an interface whose port has ended.
struct Ended {
    /// The name of the kernel's device.
    netdev: String,
    /// The taps that are that device and its port; they go when these are dropped.
    taps: Vec<(Option<TapLink>, Option<Open>, Vec<WorkerPort>)>,
}

impl Interfaces {
    /// Looks whether the interfaces of a configuration fit into the router's table.
    ///
    /// # Errors
    /// They do not.
    pub fn fit(&self, config: &Desired) -> Result<(), String> {
        fit(config, self.room.interfaces)
    }

    /// Returns true once those of the start have been opened.
    pub fn are_open(&self) -> bool {
        self.started
    }

    /// Returns true if network devices can come while the router runs.
    pub fn takes_devices(&self) -> bool {
        self.opener.host.has_programs()
    }

    /// The interface of a name.
    pub fn named(&mut self, name: &str) -> Option<&mut Slot> {
        self.slots.iter_mut().find(|slot| slot.config.name == name)
    }

    /// An interface comes. It is opened with its [state](Self::set_up); a loopback has none, and is
    /// opened at once.
    ///
    /// # Errors
    /// There are too many; it cannot be opened. There is none then.
    pub fn create(&mut self, name: &str, kind: Kind, routing: &mut Routing) -> Result<(), String> {
        let config = desired::Interface::plain(name, kind);
        let slot = self.add(config, &mut routing.router)?;
        slot.is_new = slot.config.kind != Kind::Loopback;
        if slot.is_new {
            return Ok(());
        }
        let at = self.slots.len() - 1;
        self.open(at, routing).map_err(|error| {
            routing.release(self.slots.remove(at).ids.all());
            error.to_string()
        })
    }

    /// Adds an interface that is not open yet.
    ///
    /// # Errors
    /// There are too many.
    pub(super) fn add(
        &mut self,
        config: desired::Interface,
        router: &mut Router,
    ) -> Result<&mut Slot, String> {
        let ids = Ids::allocate(&config, router);
        let mut slot = Slot::new(config, ids.ok_or_else(|| self.full())?);
        slot.on = self.on(&slot.config.kind);
        Ok(self.slots.push_mut(slot))
    }

    /// What is said when there are no numbers left.
    pub(super) fn full(&self) -> String {
        let most = self.room.interfaces;
        format!("all {most} entries of the interface table are in use")
    }

    /// The number of the interface that a sub-interface is on top of, and its tags.
    fn on(&self, kind: &Kind) -> Option<(InterfaceId, Tags)> {
        let Kind::Sub {
            parent,
            encapsulation,
        } = kind
        else {
            return None;
        };
        let parent = self.slots.iter().find(|slot| slot.config.name == *parent)?;
        Some((parent.ids.port, tags(*encapsulation)))
    }

    /// The Ethernet address of an interface's device where the configuration names none: that which
    /// it was found with, or one of its name and the router's seed. A sub-interface has that of the
    /// interface below: their frames come by one port.
    pub fn usual_mac(&self, name: &str) -> Mac {
        let named = |name: &str| self.slots.iter().find(|slot| slot.config.name == name);
        let slot = named(name);
        let below = slot.and_then(|slot| match &slot.config.kind {
            Kind::Sub { parent, .. } => named(parent),
            _ => None,
        });
        let slot = below.or(slot);
        let found = slot.and_then(|slot| slot.found.as_ref()?.mac);
        found.unwrap_or_else(|| {
            self.opener
                .seed
                .mac(slot.map_or(name, |slot| &slot.config.name))
        })
    }

    /// The configuration of an interface, with the Ethernet address that it has by another.
    pub(super) fn whole(&self, at: usize) -> desired::Interface {
        let slot = &self.slots[at];
        let mut config = slot.config.clone();
        if slot.on.is_some() {
            let usual = || self.usual_mac(&config.name);
            config.mac = config.mac.or_else(|| Some(usual()));
        }
        config
    }

    /// An interface is no more; its device is as it was found. A tap is there until
    /// [`remove_taps`](Self::remove_taps).
    ///
    /// # Errors
    /// Its device cannot be put back; the interface is there still.
    pub fn remove(&mut self, name: &str, routing: &mut Routing) -> Result<(), String> {
        let Some(at) = self.slots.iter().position(|slot| slot.config.name == name) else {
            return Ok(());
        };
        self.close_one(at, routing)?;
        let slot = self.slots.remove(at);
        routing.release(slot.ids.all());
        // Its parent's device may have listened for its sake; ceasing to cannot fail.
        let _ = self.listen(slot.carrier());
        Ok(())
    }

    /// Sets an interface up or down, and opens it if it is new.
    ///
    /// # Errors
    /// It cannot be opened; what the kernel reports. It is as it was before.
    pub fn set_up(
        &mut self,
        name: &str,
        up: bool,
        kernel: &mut dyn Kernel,
        routing: &mut Routing,
    ) -> Result<(), String> {
        let Some(at) = self.slots.iter().position(|slot| slot.config.name == name) else {
            return Ok(());
        };
        let slot = &mut self.slots[at];
        let before = mem::replace(&mut slot.config.up, up);
        let is_new = mem::take(&mut slot.is_new);
        let done = if is_new {
            self.open(at, routing).map_err(|e| e.to_string())
        } else {
            slot.switch(before, kernel).map_err(|e| e.to_string())
        };
        let slot = &mut self.slots[at];
        done.inspect_err(|_| (slot.config.up, slot.is_new) = (before, is_new))
    }

    /// The name of the host's device becomes another; `None`: its own. An open interface stays open.
    ///
    /// # Errors
    /// The name is taken; it has the old one then.
    pub fn rename(&mut self, name: &str, lcp: Option<String>) -> Result<(), String> {
        let Some(slot) = self.slots.iter_mut().find(|slot| slot.config.name == name) else {
            return Ok(());
        };
        if let Phase::Open(open) = &mut slot.phase {
            let device = kind::of(&slot.config);
            let renamed = device.rename(&mut self.opener, &slot.config, open, lcp.as_deref());
            open.renamed(renamed.map_err(|error| match (error.kind(), &lcp) {
                (io::ErrorKind::AlreadyExists, Some(_)) => {
                    "another device has that name; choose another name".to_owned()
                }
                (io::ErrorKind::AlreadyExists, None) => {
                    "another device has its own name by now; rename that device".to_owned()
                }
                _ => error.to_string(),
            })?);
        }
        slot.config.lcp = lcp;
        Ok(())
    }

    /// Writes down what the device of an interface is about to be given: Ethernet address, MTU in
    /// bytes.
    ///
    /// # Errors
    /// It cannot be written down.
    pub fn note(&mut self, name: &str, mac: Option<Mac>, mtu: Option<u16>) -> Result<(), String> {
        let slot = self.slots.iter().find(|slot| slot.config.name == name);
        let Some(open) = slot.and_then(Slot::open) else {
            return Ok(());
        };
        let noted = self.opener.note(&open.netdev, mac, mtu);
        noted.map_err(|error| format!("cannot write down what {} is like: {error}", open.netdev))
    }

    /// The port of an interface becomes another one on the same device, which stays as it is: up,
    /// with its addresses and routes. A sub-interface gets other tags, a bond another mode, a
    /// tunnel other ends.
    ///
    /// # Errors
    /// It cannot be opened; it has the old port then.
    pub fn set_kind(
        &mut self,
        name: &str,
        kind: Kind,
        routing: &mut Routing,
    ) -> Result<(), String> {
        let Some(at) = self.slots.iter().position(|slot| slot.config.name == name) else {
            return Ok(());
        };
        if let Some(on) = self.on(&kind) {
            let slot = &mut self.slots[at];
            (slot.config.kind, slot.on) = (kind, Some(on));
            if let Some(link) = slot.link {
                routing.set_on(link, on);
            }
            return Ok(());
        }
        if let Kind::Bond(_) | Kind::Vxlan(_) = kind {
            let slot = &mut self.slots[at];
            if let Some(link) = slot.link {
                match kind {
                    Kind::Bond(spread) => routing.set_bond(link, spread),
                    Kind::Vxlan(tunnel) => routing.set_tunnel(link, tunnel),
                    _ => {}
                }
            }
            slot.config.kind = kind;
            return Ok(());
        }
        let was_open = self.end_port(at, routing).is_some();
        let before = mem::replace(&mut self.slots[at].config.kind, kind);
        // One that waits may have waited for just this.
        let opened = if was_open {
            self.reopen_port(at, routing)
        } else {
            self.open(at, routing)
        };
        let opened = opened.map_err(|e| e.to_string());
        opened.inspect_err(|_| {
            self.slots[at].config.kind = before;
            if was_open && let Err(error) = self.reopen_port(at, routing) {
                warn!("interface {name}: {error}");
                self.open_if_it_can_be(at, routing);
            }
        })
    }

    /// Ends the port of an interface, and puts its device back. If that cannot be, the interface is
    /// opened again.
    fn close_one(&mut self, at: usize, routing: &mut Routing) -> Result<(), String> {
        let Some(ended) = self.end_port(at, routing) else {
            return Ok(());
        };
        let Ended { netdev, taps } = ended;
        for (link, tap, queues) in taps {
            self.graveyard.bury(link, tap, queues);
        }
        let device = self.slots[at].device();
        let config = &self.slots[at].config;
        if let Err(error) = device.close(&mut self.opener, config, &netdev) {
            self.open_if_it_can_be(at, routing);
            return Err(format!("cannot put {netdev} back as it was: {error}"));
        }
        self.slots[at].found = None;
        Ok(())
    }

    /// Ends the port of an interface, and leaves its device as it is; `None`: it was not open.
    fn end_port(&mut self, at: usize, routing: &mut Routing) -> Option<Ended> {
        let slot = &mut self.slots[at];
        let closed = Phase::Waiting("closed".into());
        let phase = mem::replace(&mut slot.phase, closed);
        // The program first: from then on the kernel gets every packet.
        let open = match phase {
            Phase::Open(mut open) => {
                open.detach();
                Some(open)
            }
            Phase::Waiting(_) => None,
        };
        if let Some(link) = slot.link.take() {
            routing.unbind(link);
        }
        let mut open = open?;
        open.punt
            .take()
            .into_iter()
            .for_each(|punt| punt.end(routing));
        let slot = &self.slots[at];
        let links = self.links(slot, &open, routing);
        let [port, tap] = slot.ids.queues(&open);
        let [port, tap] = [port, tap].map(|queues| workers::take_back(&mut routing.router, queues));
        let is_tap = slot.port_tap().is_some();
        let mut taps = Vec::new();
        let [port_link, own_link] = links;
        if is_tap {
            taps.push((port_link, open.port, port));
        }
        if open.tap.is_some() {
            taps.push((own_link, open.tap, tap));
        }
        Some(Ended {
            netdev: open.netdev,
            taps,
        })
    }

    /// The obstacles to opening interfaces, a line each, as far as they can be known before
    /// anything is changed. `all` are those of the configuration that is to come, the ones of the
    /// names in `new` are to be opened.
    pub fn obstacles(&self, all: &[desired::Interface], new: &[&str]) -> Vec<String> {
        let devices = all.iter().filter(|config| config.netdev().is_some());
        let (new, others): (Vec<_>, Vec<_>) =
            devices.partition(|config| new.contains(&config.name.as_str()));
        let queues = |config: &&desired::Interface| {
            let present = |name: &str| self.opener.host.queues(name);
            config.netdev().map_or(0, |port| queues(port, present))
        };
        let held = |config: &&desired::Interface| {
            let slot = self.slots.iter().find(|s| s.config.name == config.name);
            let open = slot.and_then(Slot::open);
            open.map_or_else(|| queues(config), |open| open.queues as u32)
        };
        let held: u32 = others.iter().map(held).sum();
        let mut left = (self.room.buffers / af_xdp::Queue::HOLDS).saturating_sub(held);
        let too_long = others.iter().filter_map(|config| {
            let slot = self.slots.iter().find(|s| s.config.name == config.name)?;
            let why = takes(config, slot.port()?.long_packets()).err()?;
            Some(format!("interface {}: {why}", config.name))
        });
        let mut obstacles: Vec<_> = too_long.collect();
        for config in new {
            let (name, wanted) = (&config.name, queues(&config));
            if let Err(why) = kind::of(config).possible(&self.opener, config) {
                obstacles.push(format!("interface {name}: {why}"));
            }
            if wanted > left {
                obstacles.push(format!(
                    "interface {name}: there are packet buffers for {left} more queues, and it has \
                     {wanted}: give it fewer (`ports:`), or restart the router"
                ));
            }
            left = left.saturating_sub(wanted);
        }
        obstacles
    }
}

impl Interfaces {
    /// Checks that the device of an interface takes its IPv6 addresses; `new`: it
    /// is to be opened. A device that is not there yet may.
    ///
    /// # Errors
    /// It takes none, and why.
    pub fn takes_ip6(
        &self,
        kernel: &mut dyn Kernel,
        config: &desired::Interface,
        new: bool,
    ) -> io::Result<()> {
        let slots = self.slots.iter().filter(|_| !new);
        let slot = slots
            .into_iter()
            .find(|slot| slot.config.name == config.name);
        let found = match slot.and_then(|slot| Some((slot, slot.open()?))) {
            Some((slot, open)) => {
                let mtu = match slot.config.mtu {
                    Some(_) => slot.usual_mtu(),
                    None => kernel.link_named(&open.netdev)?.mtu,
                };
                Some((open.netdev.clone(), mtu))
            }
            None => kind::of(config).to_be(&self.opener, config)?,
        };
        found.map_or(Ok(()), |(name, own)| {
            let mtu = config.mtu.map_or(own, u32::from);
            netdev::takes_ip6(kernel, &name, mtu, config)
        })
    }
}

impl Slot {
    /// Its device becomes up or down, as is wanted, and is given the IPv6 addresses that the kernel
    /// has dropped meanwhile. If that fails it is as `before`.
    fn switch(&self, before: bool, kernel: &mut dyn Kernel) -> io::Result<()> {
        let Some(link) = self.open().map(|open| open.ifindex) else {
            return Ok(());
        };
        kernel.set_up(link, self.config.up)?;
        give_addresses(kernel, link, &self.config).inspect_err(|_| {
            // It was that way.
            let _ = kernel.set_up(link, before);
        })
    }

    /// The MTU of its device where the configuration names none.
    pub fn usual_mtu(&self) -> u32 {
        let found = self.found.as_ref().map(|link| link.mtu);
        found.unwrap_or(u32::from(MTU))
    }

    /// Name of the tap that is its port, if it has such a port; it may be in another namespace.
    pub fn port_tap(&self) -> Option<String> {
        match &self.config.kind {
            Kind::Tap { host, .. } => Some(host.name.clone()),
            kind => kind.port()?.tap(&self.config.name),
        }
    }
}
