//! Which interfaces' packets make a detour by a node, on their way in or out: told to the workers,
//! whose ports and ways out know it, so that all others' packets pay nothing.

use std::collections::BTreeSet;

use graph::{Command, Handle};
use tables::interface::{Features, Mask};

use crate::change::{Change, InterfaceId};
use crate::state::Links;

/// The interfaces whose packets pass a node.
pub(crate) struct Detour {
    /// The features that make them pass it.
    mask: Mask,
    /// Those of an interface.
    of: fn(Features) -> u32,
    /// Tells a worker.
    command: fn(InterfaceId, Option<u16>) -> Command,
    /// The index of that node; `None` in a graph without it.
    node: Option<u16>,
    /// The interfaces that are to.
    wanted: BTreeSet<InterfaceId>,
    /// Those that each worker knows of.
    told: Vec<BTreeSet<InterfaceId>>,
    /// Whether a worker may not know what is wanted.
    untold: bool,
}

impl Detour {
    /// Before what leaves goes to its port.
    pub(crate) fn output() -> Self {
        let of = |features: Features| features.interface_output;
        Self::new(Mask::InterfaceOutput, of, Command::Output)
    }

    /// Before what comes in by a port goes on.
    pub(crate) fn input() -> Self {
        let of = |features: Features| features.interface_input;
        Self::new(Mask::InterfaceInput, of, Command::Input)
    }

    fn new(
        mask: Mask,
        of: fn(Features) -> u32,
        command: fn(InterfaceId, Option<u16>) -> Command,
    ) -> Self {
        Detour {
            mask,
            of,
            command,
            node: None,
            wanted: BTreeSet::new(),
            told: Vec::new(),
            untold: false,
        }
    }

    /// The node is this one, in each worker's graph.
    pub(crate) fn pass(&mut self, node: Option<u16>) {
        self.node = node;
    }

    /// Takes in a change that `links` know already.
    pub(crate) fn follow(&mut self, change: &Change, links: &Links) {
        let interface = match change {
            Change::FeatureSet {
                interface, feature, ..
            } if feature.mask() == self.mask => *interface,
            Change::FeaturesDelete(interface) => *interface,
            Change::InterfaceSet(interface) => interface.id,
            Change::BridgeSet(_) | Change::BridgeDelete(_) => return self.follow_all(links),
            _ => return,
        };
        self.untold |= match (self.of)(links.features(interface)) {
            0 => self.wanted.remove(&interface),
            _ => self.wanted.insert(interface),
        };
    }

    /// As [`follow`](Self::follow), whatever has changed.
    fn follow_all(&mut self, links: &Links) {
        let with = links.features.keys();
        let wanted = with.filter(|(_, feature)| feature.mask() == self.mask);
        self.wanted = wanted.map(|(interface, _)| *interface).collect();
        self.untold = true;
    }

    /// What a worker that knows of none is to be told, if the node is this one in its graph.
    pub(crate) fn commands(&self, node: Option<u16>) -> impl Iterator<Item = Command> {
        self.wanted.iter().map(move |of| (self.command)(*of, node))
    }

    /// Tells the workers, as far as their rings have room: the rest at the next call.
    pub(crate) fn tell(&mut self, workers: &mut [Handle]) {
        if !self.untold || workers.is_empty() {
            return;
        }
        self.told.resize_with(workers.len(), BTreeSet::new);
        for (worker, told) in workers.iter_mut().zip(&mut self.told) {
            let news: Vec<_> = self.wanted.symmetric_difference(told).copied().collect();
            for interface in news {
                let node = self.node.filter(|_| self.wanted.contains(&interface));
                if worker.command((self.command)(interface, node)).is_err() {
                    return;
                }
                if !told.remove(&interface) {
                    told.insert(interface);
                }
            }
        }
        self.untold = false;
    }
}
