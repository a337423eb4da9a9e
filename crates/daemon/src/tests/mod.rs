//! The daemon on a machine in memory.

mod machine;
mod others;
mod punt;
mod put_back;
mod sflow;
mod shown;
mod start;
mod transitions;

use std::collections::BTreeSet;
use std::rc::Rc;
use std::time::{Duration, Instant};

use control::apply::{self, Failure, Target};
use control::config::{Config, Desired, desired};
use control::history::Seed;
use control::plan::Plan;
use graph::Pool;
use graph::pool::STRIDE;
use router::{InterfaceId, L2, Setup};
use tables::{Memory, Sizes};
use tempfile::TempDir;

use crate::daemon::Parts;
use crate::inbox::Inbox;
use crate::interfaces::Room;
use crate::{Daemon, answer};
use machine::Machine;

/// The kernel, and what a daemon wants of it.
#[derive(Debug, PartialEq, Eq)]
struct State {
    kernel: BTreeSet<String>,
    interfaces: Vec<desired::Interface>,
    routes: Vec<desired::Route>,
    bridges: BTreeSet<String>,
    /// The router's access lists, and the interfaces that have them.
    acls: String,
    /// `show policy`.
    policies: String,
    /// The settings of the sFlow agent.
    sflow: String,
    /// What the router has been told of each interface, by names.
    told: BTreeSet<String>,
}

/// A daemon, and the machine that it runs on.
struct Lab {
    machine: Machine,
    daemon: Daemon,
    /// The configuration that was last applied.
    running: Config,
    /// Time, which goes on when it is told to.
    now: Instant,
    _directory: TempDir,
}

impl Lab {
    /// On a machine with these devices.
    fn start(devices: &[&str], config: Config) -> Self {
        Self::with_buffers(1 << 20, devices, config)
    }

    /// The same with so many packet buffers for the rings of ports.
    fn with_buffers(buffers: u32, devices: &[&str], config: Config) -> Self {
        // In memory, where there is such a place: thousands of notes are synced to it.
        let memory = tempfile::tempdir_in("/dev/shm");
        let directory = memory
            .or_else(|_| tempfile::tempdir())
            .expect("a directory");
        let (sender, inbox) = Inbox::new();
        let machine = Machine::new(devices, sender);
        let sizes = Sizes {
            interfaces: 64,
            ..Sizes::default()
        };
        let parts = Parts {
            host: Rc::new(machine.clone()),
            setup: Setup {
                pool: Pool::new(4096, STRIDE).expect("memory"),
                memory: Memory::mapped(sizes).expect("memory"),
                workers: 1,
                flows: tables::flow::Sizes::default(),
                grace: None,
            },
            cpus: vec![None],
            room: Room {
                interfaces: sizes.interfaces as usize - 1,
                buffers,
            },
            notes: directory.path().join("devices"),
            locks: directory.path().join("namespaces"),
            seed: Seed::new(*b"sixteen bytes ok"),
        };
        let desired = Desired::of(&config).expect("it can be done");
        let daemon = Daemon::on(parts, desired, inbox).expect("a router");
        let mut lab = Lab {
            machine,
            daemon,
            running: config,
            now: Instant::now(),
            _directory: directory,
        };
        lab.look();
        lab.daemon.comes_up().expect("everything can be opened");
        lab.settle();
        assert_eq!(lab.daemon.comes_up(), Ok(true));
        lab
    }

    /// Hears what the kernel has to say.
    fn look(&mut self) {
        self.machine.tell();
        answer::look_between(&mut self.daemon, &self.running);
    }

    /// Until nothing is left to be done.
    fn settle(&mut self) {
        for _ in 0..3 {
            self.now += Duration::from_secs(15);
            self.look();
            self.daemon.tick(self.now).expect("workers live");
        }
    }

    /// The kernel's state, and the daemon's wishes for it.
    fn state(&mut self) -> State {
        let mut interfaces: Vec<_> = self.daemon.wanted().cloned().collect();
        interfaces.sort_by(|a, b| a.name.cmp(&b.name));
        for interface in &mut interfaces {
            interface.addresses.sort_by_key(ToString::to_string);
        }
        let bridges = self.daemon.interfaces.bridges.numbered();
        State {
            bridges: bridges.map(|(_, bridge)| format!("{bridge:?}")).collect(),
            acls: self.acls(),
            policies: self.policies(),
            sflow: format!(
                "{:?}",
                self.daemon.sflow.settings().map(|(settings, _)| settings)
            ),
            kernel: self.machine.state(),
            interfaces,
            routes: self.daemon.static_routes.all().collect(),
            told: self.told(),
        }
    }

    fn acls(&self) -> String {
        let shown = router::acl::show::acls(&self.daemon.routing.router, None);
        shown.expect("all of them").to_string()
    }

    fn policies(&self) -> String {
        let shown = router::firewall::show::policies(&self.daemon.routing.router, None);
        shown.expect("all of them").to_string()
    }

    /// What the router has been told of each interface, by names.
    fn told(&self) -> BTreeSet<String> {
        let interfaces = &self.daemon.interfaces;
        let name = |id: InterfaceId| {
            let slot = interfaces.slots.iter().find(|slot| slot.ids.port == id);
            slot.map_or("-", |slot| &slot.config.name)
        };
        let l2 = |l2| match l2 {
            L2::CrossConnect(to) => format!("to {}", name(to)),
            L2::Bond(bond) => format!("of {}", name(bond)),
            L2::Bridge(id) => {
                let mut bridges = interfaces.bridges.numbered();
                let bridge = bridges.find(|(number, _)| *number == id);
                format!("in {}", bridge.map_or("-", |(_, bridge)| &bridge.name))
            }
        };
        let owned = self.daemon.routing.translator.owned();
        owned
            .map(|(_, its)| {
                let on = its.on.map(|(parent, tags)| (name(parent), tags));
                let host = its.host.is_some();
                let (l2, up, serving) = (its.l2.map(l2), its.port_up, its.serving);
                let bond = its.bond;
                format!(
                    "{} {host} {on:?} {bond:?} {l2:?} {up} {serving}",
                    name(its.id)
                )
            })
            .collect()
    }

    /// Makes it what a configuration says, if nothing fails.
    fn become_this(&mut self, config: &Config) -> Result<(), Failure> {
        let plan = Plan::new(&self.daemon.found(&self.running), config);
        assert_eq!(self.daemon.accepts(config, &plan), Ok(()));
        let done = apply::apply(&mut self.daemon, &self.running, &plan.steps);
        if done.is_ok() {
            self.running = config.clone();
        }
        self.settle();
        done
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        self.daemon.halt();
    }
}
