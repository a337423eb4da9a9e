//! Taps of interfaces that are no more, which the kernel removes all at once.
//!
//! One by one each of them takes 20 ms (`Kernel::remove_all`). So those of interfaces that a change
//! removes one behind the other wait for the last one; nothing else is done meanwhile, as their names
//! and addresses are not free before.

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::path::PathBuf;

use control::config::desired::Kind;
use control::netlink::Kernel;
use graph::WorkerPort;
use ports::Open;
use tracing::warn;

use super::{Interfaces, OpenInterface, Slot};
use crate::routing::Routing;

/// The kernel's device of a tap.
#[derive(Clone)]
pub(super) struct TapLink {
    /// The file of its namespace; `None`: our own.
    pub namespace: Option<PathBuf>,
    /// Its index there.
    pub index: u32,
    /// Its name.
    pub name: String,
}

/// Taps that wait to be removed. They go when they are dropped, in any case.
#[derive(Default)]
pub(super) struct Graveyard {
    links: Vec<TapLink>,
    taps: Vec<Open>,
    /// Their queues, as workers have given them back.
    queues: Vec<WorkerPort>,
}

impl Graveyard {
    /// Keeps a tap with its queues.
    pub fn bury(&mut self, link: Option<TapLink>, tap: Option<Open>, queues: Vec<WorkerPort>) {
        self.links.extend(link);
        self.taps.extend(tap);
        self.queues.extend(queues);
    }
}

impl Interfaces {
    /// Removes the taps of all interfaces that are no more, and what was made for them.
    pub fn remove_taps(&mut self) {
        let Graveyard {
            links,
            taps,
            queues,
        } = std::mem::take(&mut self.graveyard);
        let any = !links.is_empty();
        self.remove_links(links);
        drop((taps, queues));
        if any {
            self.opener.remove_places();
        }
    }

    /// Removes the taps of all interfaces that are open, which are to be closed.
    pub fn remove_all_taps(&self, routing: &Routing) {
        let open = self
            .slots
            .iter()
            .filter_map(|slot| Some((slot, slot.open()?)));
        let taps = open.flat_map(|(slot, open)| self.links(slot, open, routing));
        self.remove_links(taps.flatten().collect());
    }

    /// The kernel's devices of the taps of an open interface: that which is its port, that which has
    /// its settings.
    pub(super) fn links(
        &self,
        slot: &Slot,
        open: &OpenInterface,
        routing: &Routing,
    ) -> [Option<TapLink>; 2] {
        [self.port_link(slot, routing), self.own_link(open)]
    }

    /// Removes taps all at once in each namespace; those that are left go with their ports.
    fn remove_links(&self, taps: Vec<TapLink>) {
        let mut places: BTreeMap<Option<PathBuf>, Vec<TapLink>> = BTreeMap::new();
        for tap in taps {
            places.entry(tap.namespace.clone()).or_default().push(tap);
        }
        for (namespace, taps) in places {
            if taps.len() < 2 {
                continue;
            }
            let kernel = (self.opener.host.namespaces())(namespace.as_deref());
            if let Err(e) = kernel.and_then(|kernel| remove(kernel, &taps)) {
                warn!("the kernel removes taps one by one, which takes long: {e}");
            }
        }
    }

    /// The kernel's device of the tap that is the port of an interface, if it is where it was made.
    fn port_link(&self, slot: &Slot, routing: &Routing) -> Option<TapLink> {
        let name = slot.port_tap()?;
        let (namespace, index) = match slot.config.kind {
            Kind::Tap { .. } => self.opener.places.end(&slot.config.name)?,
            _ => {
                let mut links = routing.translator.links();
                let link = links.find(|link| link.name == name)?;
                (self.opener.netns.clone(), link.index)
            }
        };
        Some(TapLink {
            namespace,
            index,
            name,
        })
    }

    /// The kernel's device of the tap that has the settings of an open interface, if it has one.
    fn own_link(&self, open: &OpenInterface) -> Option<TapLink> {
        Some(TapLink {
            namespace: self.opener.netns.clone(),
            index: open.own_tap()?,
            name: open.netdev.clone(),
        })
    }
}

/// Removes those taps of one namespace that are there. By now somebody may have moved one away, and
/// another device may have its index.
fn remove(mut kernel: Box<dyn Kernel>, taps: &[TapLink]) -> io::Result<()> {
    let names: HashMap<u32, String> = (kernel.links()?.into_iter())
        .map(|link| (link.index, link.name))
        .collect();
    let is_there = |tap: &&TapLink| names.get(&tap.index) == Some(&tap.name);
    let there: Vec<u32> = taps.iter().filter(is_there).map(|tap| tap.index).collect();
    kernel.remove_all(&there)
}
