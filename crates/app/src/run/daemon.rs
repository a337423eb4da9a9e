//! The control thread's state: the router and what the kernel says, the interfaces, the neighbors.

use std::error::Error;
use std::path::Path;
use std::sync::mpsc::SyncSender;
use std::time::Instant;

use tracing::warn;

use control::config::Wanted;
use control::facts::Batch;
use control::mirror::{Mirror, Options};
use control::netlink::{Requests, ip_forward};
use graph::Pool;
use graph::pool::{STRIDE, STRIDE_AF_XDP};
use router::{Event, Router, Setup};

use super::interfaces::{self, Interfaces, Opener};
use super::neighbors::Neighbors;
use super::routing::Routing;
use super::{Message, memory, workers};

/// Packet buffers for each worker: its cache, its frames, what it holds for neighbors. Those in the
/// rings of ports come on top.
const BUFFERS: u32 = 16_384;

/// The daemon.
pub struct Daemon {
    /// The router and what the kernel has said.
    pub routing: Routing,
    /// The interfaces.
    pub interfaces: Interfaces,
    /// The configuration.
    pub config: Wanted,
    neighbors: Neighbors,
    _mirror: Mirror,
}

impl Daemon {
    /// Starts router, workers and the mirror of the kernel. A failure leaves nothing behind.
    ///
    /// # Errors
    /// There are too many interfaces, or the machine does not have what they need.
    pub fn start(config: Wanted, sender: SyncSender<Message>) -> Result<Self, Box<dyn Error>> {
        // Each takes an index of its own and one for its host interface.
        let most = (router::INTERFACES - 1) / 2;
        if config.interfaces.len() > most {
            let found = config.interfaces.len();
            return Err(format!("run: {found} interfaces; there can be {most} at most").into());
        }
        let netns = config.netns.as_deref();
        let cpus = workers::cpus(&config.workers, &kernel::cpu::usable());
        let buffers = BUFFERS * cpus.len() as u32 + interfaces::buffers(&config);
        let available = kernel::memory::available().ok();
        let sizes = memory::sizes(available);
        memory::check(available, sizes.bytes(), u64::from(buffers) * STRIDE as u64)?;
        let opener = Opener::new(&config, sizes)?;
        let (router, entry) = start_router(&opener, &cpus, buffers)?;
        let options = Options {
            netns: config.netns.clone(),
            ..Options::default()
        };
        Ok(Daemon {
            routing: Routing::new(router),
            _mirror: Mirror::start(options, sender)?,
            interfaces: Interfaces::new(&config, opener, entry),
            neighbors: Neighbors::new(Requests::open(netns)?),
            config,
        })
    }

    /// Opens every port whose device is there, once the kernel's tables have been seen.
    ///
    /// # Errors
    /// The first that cannot be opened, and why.
    pub fn open_all(&mut self) -> Result<(), String> {
        self.interfaces.open_all(&mut self.routing)?;
        tell_limits(self.config.netns.as_deref());
        Ok(())
    }

    /// Takes in what the kernel says.
    pub fn kernel(&mut self, batch: Batch) {
        for news in self.routing.follow(batch) {
            self.interfaces.take(news, &mut self.routing);
        }
    }

    /// Looks after workers, interfaces and neighbors.
    ///
    /// # Errors
    /// A worker has ended. Its packets and ports are gone with it: our supervisor is to start us
    /// again.
    pub fn tick(&mut self) -> Result<(), String> {
        workers::all_alive(&mut self.routing.router.workers)?;
        let now = Instant::now();
        self.interfaces.tick(now, &mut self.routing);
        self.look_after_neighbors(now);
        self.routing.tick();
        Ok(())
    }

    fn look_after_neighbors(&mut self, now: Instant) {
        let router = &mut self.routing.router;
        for event in router.events() {
            let Event::Resolve { interface, address } = event;
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

    /// Ends workers and ports, and undoes what was done to devices.
    pub fn stop(&mut self) {
        // The programs first: from then on the kernel gets every packet.
        self.interfaces.detach();
        let router = &mut self.routing.router;
        for worker in &mut router.workers {
            worker.stop();
        }
        drop(router.collect());
        self.interfaces.close();
    }
}

/// A router whose workers run, and the node that packets enter its graph at.
fn start_router(
    opener: &Opener,
    cpus: &[Option<usize>],
    buffers: u32,
) -> Result<(Router, u16), Box<dyn Error>> {
    let (stride, grace) = match opener.has_programs() {
        true => (STRIDE_AF_XDP, Some(interfaces::grace()?)),
        false => (STRIDE, None),
    };
    let setup = Setup {
        pool: Pool::new(buffers, stride)?,
        memory: opener.memory()?,
        workers: cpus.len(),
        grace,
    };
    let (mut router, idle) = Router::new(setup)?;
    let entry = idle
        .first()
        .and_then(|(worker, _)| worker.graph().index_of(router::nodes::ENTRY))
        .ok_or("run: the graph has no entry node")?;
    router.attach(workers::start(idle, cpus)?);
    Ok((router, entry))
}

/// Says what in the kernel's setup will make packets go another way than the operator may expect.
fn tell_limits(netns: Option<&Path>) {
    if let Ok(false) = ip_forward(netns) {
        warn!(
            "net.ipv4.ip_forward is 0: the kernel drops packets that only it can forward, those with IP options or routed by devices that are not ours (sysctl -w net.ipv4.ip_forward=1)"
        );
    }
    let rules = Requests::open(netns).and_then(|mut requests| requests.has_policy_rules());
    if let Ok(true) = rules {
        warn!(
            "there are policy rules (ip rule): the router ignores them and follows the main table (ip rule show)"
        );
    }
}
