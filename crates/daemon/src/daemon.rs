//! The control thread's state: the router and what the kernel says, the interfaces, the neighbors.

use std::collections::HashMap;
use std::error::Error;
use std::io;
use std::net::IpAddr;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::mpsc::SyncSender;
use std::time::{Duration, Instant};

use tracing::{info, warn};

use ::io::af_xdp::Queue;
use control::config::{Desired, Tables, desired};
use control::facts::{Batch, Event};
use control::history::Seed;
use control::netdev::{self, LOCKS, NamespaceLock, give_addresses};
use control::netlink::Kernel;
use graph::Pool;
use graph::pool::{STRIDE, STRIDE_AF_XDP};
use router::{Router, Setup, Unresolved};

use crate::faults::Faults;
use crate::filters::Filters;
use crate::host::{self, Host, Linux};
use crate::inbox::{Inbox, Message};
use crate::interfaces::{self, Interfaces, Opener, Phase, Room};
use crate::neighbors::Neighbors;
use crate::routing::Routing;
use crate::static_routes::StaticRoutes;
use crate::warnings::Warnings;
use crate::{displaced, flows, memory, sflow, workers};

/// Packet buffers for each worker: its cache, its frames, what it holds for neighbors. Those in the
/// rings of ports come on top.
const BUFFERS: u32 = 16_384;
/// Time for the kernel to finish what it has begun, before a look for what it has dropped.
const SETTLE: Duration = Duration::from_millis(100);

/// Time before another try of what the kernel has refused to take back: it may have been
/// short of memory for a moment.
const AGAIN: Duration = Duration::from_secs(10);

/// A machine, and what a daemon takes of it.
pub(crate) struct Parts {
    pub host: Rc<dyn Host>,
    /// Of the router.
    pub setup: Setup,
    /// The processor of each worker; `None`: any.
    pub cpus: Vec<Option<usize>>,
    pub room: Room,
    /// Directory of the notes of what is changed about devices.
    pub notes: PathBuf,
    /// Directory of the locks of namespaces.
    pub locks: PathBuf,
    pub seed: Seed,
}

/// The daemon.
pub struct Daemon {
    /// The machine.
    pub host: Rc<dyn Host>,
    /// The router and what the kernel has said.
    pub routing: Routing,
    /// The interfaces.
    pub interfaces: Interfaces,
    /// The access control lists.
    pub filters: Filters,
    /// What sends samples of packets.
    pub sflow: sflow::Agent,
    /// What operators ask about flows.
    pub flows: flows::Questions,
    /// The static routes.
    pub static_routes: StaticRoutes,
    /// The kernel, for changes.
    pub kernel: Box<dyn Kernel>,
    neighbors: Neighbors,
    /// The time of the next look for addresses and routes that the kernel has dropped.
    look: Option<Instant>,
    /// Settings of the kernel that are in the way.
    pub warnings: Warnings,
    /// The messages that wait.
    pub inbox: Inbox,
    /// The failures that tests ask for.
    pub faults: Faults,
    /// What the change in progress has seen.
    pub seen: displaced::Seen,
    lock: NamespaceLock,
    /// The mirror's answer that new ports wait for before they take packets in.
    awaited: Option<u64>,
}

impl Daemon {
    /// Starts router, workers and the mirror of the kernel. The router's own devices have Ethernet
    /// addresses of the seed. A failure leaves nothing behind.
    ///
    /// # Errors
    /// There are too many interfaces, or the machine does not have what they need.
    pub fn start(
        config: Desired,
        seed: Seed,
        sender: SyncSender<Message>,
        inbox: Inbox,
    ) -> Result<Self, Box<dyn Error>> {
        let available = kernel::memory::available().ok();
        let sizes = memory::sizes(available, config.tables);
        let netns = config.netns.as_deref();
        let cpus = workers::cpus(&config.workers, &kernel::cpu::usable());
        let mut for_ports = interfaces::buffers(&config, |device| host::queues(netns, device));
        if config.may_have_devices() {
            let processors = host::processors();
            for_ports += memory::spare(available, processors, Queue::HOLDS, STRIDE_AF_XDP as u64);
        }
        let buffers = BUFFERS * cpus.len() as u32 + for_ports;
        let packets = u64::from(buffers) * STRIDE as u64;
        let flows = config.tables.flows.unwrap_or(Tables::FLOWS);
        let flows = tables::flow::Sizes::of(flows);
        let for_flows = flows.bytes() * cpus.len() as u64;
        memory::check(available, config.tables, (sizes, for_flows), packets)?;
        let host = Linux::start(&config, sizes, sender)?;
        let stride = if host.has_programs() {
            STRIDE_AF_XDP
        } else {
            STRIDE
        };
        let setup = Setup {
            pool: Pool::new(buffers, stride)?,
            memory: host.memory(sizes)?,
            workers: cpus.len(),
            flows,
            grace: host.grace()?,
        };
        let parts = Parts {
            host: Rc::new(host),
            setup,
            cpus,
            room: Room {
                interfaces: sizes.interfaces as usize - 1,
                buffers: for_ports,
            },
            notes: netdev::NOTES.into(),
            locks: LOCKS.into(),
            seed,
        };
        Self::on(parts, config, inbox)
    }

    /// Starts router and workers on a machine.
    ///
    /// # Errors
    /// A worker cannot be started; the namespace cannot be entered.
    pub(crate) fn on(parts: Parts, config: Desired, inbox: Inbox) -> Result<Self, Box<dyn Error>> {
        let Parts { host, room, .. } = parts;
        let netns = config.netns.as_deref();
        let kernel = || (host.namespaces())(netns);
        let (mut router, entry) = start_router(parts.setup, &parts.cpus)?;
        let opener = Opener::new(&config, host.clone(), &parts.notes, parts.seed);
        let interfaces = Interfaces::new(&config, room, opener, entry, &mut router);
        let interfaces = interfaces.map_err(|why| format!("run: {why}"))?;
        let mut routing = Routing::new(router);
        let filters = Filters::new(&config, &mut routing);
        let mut sflow = sflow::Agent::default();
        let (settings, slots) = (config.sflow.as_ref(), &interfaces.slots);
        sflow
            .configure(settings, &*host, slots, &mut routing)
            .map_err(|why| format!("run: {why}"))?;
        Ok(Daemon {
            filters: filters.map_err(|why| format!("run: {why}"))?,
            interfaces,
            routing,
            awaited: None,
            static_routes: StaticRoutes::new(&config.routes),
            kernel: kernel()?,
            neighbors: Neighbors::new(kernel()?),
            look: None,
            warnings: Warnings::default(),
            inbox,
            faults: Faults::default(),
            seen: displaced::Seen::default(),
            lock: NamespaceLock::of(netns, &parts.locks)?,
            sflow,
            flows: flows::Questions::default(),
            host,
        })
    }

    /// Opens everything once the kernel's tables have been seen. Whether packets are forwarded.
    ///
    /// # Errors
    /// The first device or port that cannot be made or opened, and why.
    pub fn comes_up(&mut self) -> Result<bool, String> {
        if !self.interfaces.are_open() && self.routing.translator.synced() {
            let seconds = self.routing.router.started().elapsed().as_secs_f64();
            info!("the kernel's tables are here after {seconds:.3} s");
            self.open_all()?;
            self.serve_new_ports();
        }
        Ok(self.interfaces.are_open() && self.awaited.is_none())
    }

    /// Opens every interface whose device is there, and makes the static routes, once the kernel's
    /// tables have been seen.
    ///
    /// # Errors
    /// The first that cannot be made or opened, and why.
    fn open_all(&mut self) -> Result<(), String> {
        self.interfaces.open_all(&mut self.routing)?;
        self.sweep()
            .map_err(|e| format!("cannot remove what an earlier router has left: {e}"))?;
        self.put_back(Instant::now());
        Ok(())
    }

    /// Takes in what the kernel says.
    pub fn kernel(&mut self, batch: Batch) {
        let static_routes = &self.static_routes;
        let awaited = static_routes.awaited();
        let concerns_us = |event: &Event| match event {
            Event::Link(_) | Event::AddressGone(..) => true,
            Event::RouteGone(route) => static_routes.has(route.prefix),
            Event::Address(..) => !awaited.is_empty(),
            Event::Route(route, _) => {
                let leads_there = |gateway: &IpAddr| route.prefix.contains(*gateway);
                route.is_on_link() && awaited.iter().any(leads_there)
            }
            _ => false,
        };
        if batch.events.iter().any(concerns_us) {
            self.look_soon();
        }
        for news in self.routing.follow(batch) {
            self.interfaces.take(news, &mut self.routing);
        }
        self.serve_new_ports();
    }

    /// Lets new ports take packets in, all of them at once, when the mirror has told what came with
    /// them. Until then the kernel forwards what arrives there: a packet that we take has its way.
    fn serve_new_ports(&mut self) {
        if self.interfaces.take_new_ports() {
            self.awaited = Some(self.host.catch_up());
        }
        if self.awaited == Some(self.routing.translator.caught_up()) {
            self.awaited = None;
            self.interfaces.follow_translation(&mut self.routing);
            self.routing.serve_all();
        }
    }

    /// Looks after workers, interfaces and neighbors.
    ///
    /// # Errors
    /// A worker has ended. Its packets and ports are gone with it: our supervisor is to start us
    /// again.
    pub fn tick(&mut self, now: Instant) -> Result<(), String> {
        workers::all_alive(&mut self.routing.router.workers)?;
        self.look_after_neighbors(now);
        self.look_after_samples(now);
        self.look_after_flows(now);
        self.routing.negotiate();
        self.interfaces.tick(now, &mut self.routing);
        self.serve_new_ports();
        if self.look.is_some_and(|look| now >= look) {
            self.put_back(now);
        }
        self.routing.tick();
        Ok(())
    }

    /// Looks for what is in the way, if it is time to. `refused`: why the configuration is not that
    /// of the file, in lines.
    pub fn look_at_settings(&mut self, refused: Option<&str>) {
        if self.warnings.are_due(Instant::now()) {
            self.look_at_settings_now(refused);
        }
    }

    /// As [`look_at_settings`](Self::look_at_settings), for somebody who asks.
    pub fn look_at_settings_now(&mut self, refused: Option<&str>) {
        let mut found = self.host.warnings();
        for slot in &self.interfaces.slots {
            found.extend(slot.wrong_mtu(&self.routing));
            found.extend(slot.strays(&self.routing));
        }
        found.extend(self.interfaces.astray_in_words());
        let missing = self.missing();
        found.extend(missing.iter().map(ToString::to_string));
        found.extend(refused.into_iter().flat_map(str::lines).map(str::to_owned));
        self.warnings.become_these(found, Instant::now());
    }

    /// The configuration of each interface.
    pub fn wanted(&self) -> impl Iterator<Item = &desired::Interface> {
        self.interfaces.slots.iter().map(|slot| &slot.config)
    }

    /// Those of the configuration in force; none if the kernel does not say what there is.
    pub fn missing(&mut self) -> Vec<displaced::Displaced> {
        let there = self.kernel.ip6_addresses().unwrap_or_default();
        displaced::displaced(&there, &self.links(), self.wanted()).collect()
    }

    /// Interfaces that wait for a device or have trouble with the peer of their memif, and routes
    /// that wait for a way, a line each.
    pub fn waiting(&self) -> Vec<String> {
        let slots = self.interfaces.slots.iter();
        let absent = slots.filter_map(|slot| match &slot.phase {
            Phase::Waiting(why) => Some(format!("interface {}: absent: {why}", slot.config.name)),
            Phase::Open(_) => None,
        });
        let slots = self.interfaces.slots.iter();
        let memifs = slots.filter_map(|slot| slot.trouble());
        let waiting = absent.chain(memifs).chain(self.static_routes.waiting());
        waiting.collect()
    }

    /// The ifindex of each interface's device that is there, by name of the interface.
    pub fn links(&self) -> HashMap<String, u32> {
        let slots = self.interfaces.slots.iter();
        let open = slots.filter_map(|s| Some((s.config.name.clone(), s.open()?.ifindex)));
        open.collect()
    }

    /// Soon looks for addresses and routes that the kernel has dropped.
    pub fn look_soon(&mut self) {
        let soon = Instant::now() + SETTLE;
        self.look = Some(self.look.map_or(soon, |look| look.min(soon)));
    }

    /// Gives the kernel again what it has dropped: IPv6 addresses and routes of a device that was
    /// down, routes by a device that was away.
    fn put_back(&mut self, now: Instant) {
        let kernel = &mut *self.kernel;
        let mut all = true;
        for slot in &self.interfaces.slots {
            if let Some(open) = slot.open() {
                // One that is going away takes none; it gets them when it is there again. Of one
                // that cannot have some there is a warning.
                all &= give_addresses(kernel, open.ifindex, &slot.config).is_ok();
            }
        }
        let links = self.links();
        let link = |name: &str| links.get(name).copied();
        all &= self.static_routes.put_back(&link, &mut *self.kernel);
        self.look = (!all).then(|| now + AGAIN);
    }

    /// Removes what routers that have ended have left in the namespace, unless another one lives there.
    fn sweep(&mut self) -> io::Result<()> {
        if self.lock.are_of_the_dead()? {
            let links: Vec<u32> = self.links().into_values().collect();
            let removed = netdev::sweep(&mut *self.kernel, &links)?;
            for what in removed {
                info!("removed what an earlier router has left: {what}");
            }
            self.static_routes.sweep(&mut *self.kernel)?;
        }
        self.lock.share()
    }

    /// Asks the kernel for the neighbors that packets wait for, and keeps those in use.
    pub fn look_after_neighbors(&mut self, now: Instant) {
        let router = &mut self.routing.router;
        for Unresolved { interface, address } in router.unresolved() {
            if let Some(link) = self.interfaces.link_of(interface) {
                self.neighbors.resolve(now, link, address);
            }
        }
        if self.neighbors.are_to_be_confirmed(now) {
            for (interface, address) in router.next_hops_in_use() {
                if let Some(link) = self.interfaces.link_of(interface) {
                    self.neighbors.confirm(link, address);
                }
            }
        }
    }

    /// Takes the samples that workers have made, and sends what is due.
    pub fn look_after_samples(&mut self, now: Instant) {
        let slots = &self.interfaces.slots;
        self.sflow.tick(now, slots, &mut self.routing.router);
    }

    /// Gives the answers of workers about their flows to who has asked.
    pub fn look_after_flows(&mut self, now: Instant) {
        self.flows.tick(now, &mut self.routing.router);
    }

    /// Ends workers and ports, and undoes what was done to devices.
    pub fn stop(mut self) {
        self.halt();
        self.interfaces.close();
        if let Err(e) = self.lock.settle() {
            warn!("parshall cleanup will remove the router's addresses and routes: {e}");
        }
    }

    /// Ends workers and ports, and leaves the kernel as it is: the next one goes on from there, as
    /// after a sudden end.
    pub fn leave(mut self) {
        self.halt();
        self.interfaces.leave();
    }

    pub(crate) fn halt(&mut self) {
        // The programs first: from then on the kernel gets every packet.
        self.interfaces.detach();
        // Workers that close their queues would remove taps one by one.
        self.interfaces.remove_all_taps(&self.routing);
        let router = &mut self.routing.router;
        for worker in &mut router.workers {
            worker.stop();
        }
        drop(router.collect());
    }
}

/// Starts a router's workers, and finds the node that packets enter its graph at.
fn start_router(setup: Setup, cpus: &[Option<usize>]) -> Result<(Router, u16), Box<dyn Error>> {
    let (mut router, idle) = Router::new(setup)?;
    let entry = idle
        .first()
        .and_then(|(worker, _)| worker.graph().index_of(router::nodes::ENTRY))
        .ok_or("run: the graph has no entry node")?;
    router.attach(workers::start(idle, cpus)?);
    Ok((router, entry))
}
