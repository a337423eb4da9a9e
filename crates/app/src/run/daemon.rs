//! The control thread's state: the router, its interfaces and what the kernel says.

use std::error::Error;
use std::mem;
use std::path::PathBuf;
use std::sync::mpsc::SyncSender;
use std::time::{Duration, Instant};

use control::config::{self, Config};
use control::facts::Batch;
use control::mirror::{LinkNews, Mirror, Options, Owned, Translator};
use control::netlink::Requests;
use graph::pool::{STRIDE, STRIDE_AF_XDP};
use graph::{Command, Handle, Pool, TxPlacement, WorkerPort};
use ports::OpenError;
use router::{Change, Event, InterfaceId, Router, Setup};
use tracing::{info, warn};

use super::Message;
use super::interfaces::{self, Interfaces, OpenInterface, Part};
use super::neighbors::Neighbors;
use super::slot::{Phase, Slot};

/// Packet buffers for each worker: its cache, its frames, what it holds for neighbors. Those in the
/// rings of ports come on top.
const BUFFERS: u32 = 16_384;
/// Between two looks for taps that are to be made again.
const RETRY: Duration = Duration::from_secs(1);

/// The daemon.
pub struct Daemon {
    /// The router.
    pub router: Router,
    /// What the kernel has said.
    pub translator: Translator,
    /// The interfaces, in the order of the configuration.
    pub slots: Vec<Slot>,
    /// The configuration.
    pub config: Config,
    interfaces: Interfaces,
    requests: Requests,
    neighbors: Neighbors,
    entry: u16,
    /// When taps that are gone are looked for next.
    retry: Instant,
    /// Ports are opened as their devices appear.
    serving: bool,
    _mirror: Mirror,
}

impl Daemon {
    /// Starts router, workers and the mirror of the kernel. What goes wrong here leaves nothing
    /// behind.
    pub fn start(config: Config, sender: SyncSender<Message>) -> Result<Self, Box<dyn Error>> {
        // Each takes an index for itself and one for its twin.
        let most = (router::INTERFACES - 1) / 2;
        if config.interfaces.len() > most {
            let found = config.interfaces.len();
            return Err(format!("run: {found} interfaces; there can be {most} at most").into());
        }
        let netns: Option<PathBuf> = config.netns.clone();
        let interfaces = Interfaces::new(&config)?;
        let (stride, grace) = match interfaces.has_programs() {
            true => (STRIDE_AF_XDP, Some(interfaces::grace()?)),
            false => (STRIDE, None),
        };
        let cpus = worker_cpus(&config.workers, &kernel::cpu::usable());
        let buffers = BUFFERS * cpus.len() as u32 + interfaces::buffers(&config);
        let pool = Pool::new(buffers, stride)?;
        let setup = Setup {
            pool: pool.clone(),
            memory: interfaces.memory()?,
            workers: cpus.len(),
            grace,
        };
        let (mut router, idle) = Router::new(setup)?;
        let mut handles = Vec::new();
        let mut entry = 0;
        for ((worker, handle), (i, cpu)) in idle.into_iter().zip(cpus.iter().enumerate()) {
            entry = worker
                .graph()
                .index_of(router::nodes::ENTRY)
                .ok_or("run: the graph has no entry node")?;
            let cpu = *cpu;
            let begin = move || cpu.map_or(Ok(()), kernel::cpu::pin);
            let started = worker.start(format!("worker-{i}"), begin, handle);
            let mut handle = started.map_err(|e| format!("worker {i}: {e}"))?;
            handle.cpu = cpu;
            handles.push(handle);
        }
        router.attach(handles);
        let options = Options {
            netns: netns.clone(),
            ..Options::default()
        };
        Ok(Daemon {
            router,
            translator: Translator::new(),
            _mirror: Mirror::start(options, sender)?,
            slots: Slot::all(&config),
            config,
            interfaces,
            requests: Requests::open(netns.as_deref())?,
            neighbors: Neighbors::default(),
            entry,
            retry: Instant::now(),
            serving: false,
        })
    }

    /// Opens every port whose device is there; a device that is not is waited for, anything else is
    /// an error.
    ///
    /// Not before the kernel's tables have been seen: a packet that comes in by then finds no
    /// route.
    pub fn open_all(&mut self) -> Result<(), Box<dyn Error>> {
        self.serving = true;
        for index in 0..self.slots.len() {
            self.open(index)
                .map_err(|e| format!("interface {}: {e}", self.slots[index].config.name))?;
        }
        self.tell_limits();
        Ok(())
    }

    /// Says what of the kernel's setup will make packets go another way than the operator may
    /// expect.
    fn tell_limits(&mut self) {
        if let Ok(false) = control::netlink::ip_forward(self.config.netns.as_deref()) {
            warn!(
                "net.ipv4.ip_forward is 0: packets with IP options, and routes by devices that are not ours, are for the kernel, which drops them (sysctl -w net.ipv4.ip_forward=1)"
            );
        }
        if let Ok(true) = self.requests.has_policy_rules() {
            warn!(
                "there are policy rules (ip rule): they are not followed, the main table is (ip rule show)"
            );
        }
    }

    fn open(&mut self, index: usize) -> Result<(), OpenError> {
        let slot = &mut self.slots[index];
        let id = slot.ids.port;
        match self.interfaces.open(&slot.config, id, self.router.pool()) {
            Ok(open) => self.put_to_work(index, Box::new(open)),
            Err(OpenError::NotThere(what)) => {
                info!("interface {}: waiting: {what}", slot.config.name);
                slot.phase = Phase::Waiting(what);
            }
            Err(error) => return Err(error),
        }
        Ok(())
    }

    /// Gives the workers the parts of an open interface that they do not have yet.
    fn put_to_work(&mut self, index: usize, mut open: Box<OpenInterface>) {
        let slot = &mut self.slots[index];
        info!("interface {}: {}", slot.config.name, open.describe());
        let ids = slot.ids;
        let queues = mem::take(&mut open.port.queues);
        let tap = open.tap.as_mut().map(|tap| mem::take(&mut tap.queues));
        slot.phase = Phase::Open(open);
        for (id, queues) in [(ids.port, queues), (ids.twin, tap.unwrap_or_default())] {
            if !queues.is_empty() {
                self.serve(id, queues);
            }
        }
        self.claim(index);
    }

    /// Spreads the queues of an interface over the workers; a worker without one hands its packets
    /// to one that has.
    fn serve(&mut self, interface: InterfaceId, queues: Vec<Box<dyn graph::Port>>) {
        let workers = self.router.workers.len();
        let serving = queues.len().min(workers);
        for (i, port) in queues.into_iter().enumerate() {
            let served = Box::new(WorkerPort::new(port, interface, self.entry));
            send(
                &mut self.router.workers[i % workers],
                Command::AddPort(served),
            );
        }
        for worker in serving..workers {
            let placement = TxPlacement::Worker(worker % serving.max(1));
            send(
                &mut self.router.workers[worker],
                Command::PlaceTx(interface, placement),
            );
        }
    }

    /// Claims a device that will be opened as it is before the kernel's routes come: they need
    /// translating once only.
    fn reserve(&mut self, index: usize, link: u32) {
        let slot = &mut self.slots[index];
        let config = &slot.config;
        if config.lcp.is_some() || !matches!(config.port.kind, config::PortKind::Netdev(_)) {
            return;
        }
        let owned = Owned {
            id: slot.ids.port,
            name: config.name.clone(),
            twin: None,
            port_up: slot.up,
        };
        slot.link = Some(link);
        let changes = self.translator.own(link, owned);
        self.apply(changes);
    }

    /// Tells the translator that the device of an open port is ours, as soon as the kernel has
    /// shown it.
    fn claim(&mut self, index: usize) {
        let slot = &mut self.slots[index];
        let Some(open) = slot.open() else { return };
        let (ifindex, has_tap) = (open.ifindex, open.tap.is_some());
        let shown = self.translator.link_named(&open.netdev);
        if slot.link.is_some() || shown.is_none_or(|link| link.index != ifindex) {
            return;
        }
        slot.link = Some(ifindex);
        let owned = Owned {
            id: slot.ids.port,
            name: slot.config.name.clone(),
            twin: has_tap.then_some(slot.ids.twin),
            port_up: slot.up,
        };
        let changes = self.translator.own(ifindex, owned);
        self.apply(changes);
    }

    /// Takes in what the kernel says.
    pub fn kernel(&mut self, batch: Batch) {
        let changes = self.translator.apply(batch);
        self.apply(changes);
        for news in self.translator.take_news() {
            match news {
                LinkNews::Appeared { index, name } => self.appeared(index, &name),
                LinkNews::Vanished { index, .. } => self.vanished(index),
            }
        }
    }

    fn apply(&mut self, changes: Vec<Change>) {
        if changes.is_empty() {
            return;
        }
        match self.router.apply(changes) {
            Ok(0) => {}
            Ok(full) => {
                warn!(
                    "{full} changes do not fit into the tables: the old routes stay until there is room (show memory)"
                )
            }
            Err(e) => warn!("the kernel's news was not taken: {e}"),
        }
    }

    fn appeared(&mut self, link: u32, name: &str) {
        for index in 0..self.slots.len() {
            let slot = &self.slots[index];
            let closed = slot.open().is_none() && interfaces::stands_for(&slot.config, name);
            if !self.serving && closed {
                self.reserve(index, link);
            } else if closed {
                self.open_if_it_can_be(index);
            } else {
                self.claim(index);
            }
        }
    }

    fn open_if_it_can_be(&mut self, index: usize) {
        if let Err(e) = self.open(index) {
            let (slot, why) = (&mut self.slots[index], e.to_string());
            if !matches!(&slot.phase, Phase::Waiting(known) if *known == why) {
                warn!("interface {}: {why}", slot.config.name);
                slot.phase = Phase::Waiting(why);
            }
        }
    }

    fn vanished(&mut self, link: u32) {
        for index in 0..self.slots.len() {
            let slot = &mut self.slots[index];
            if slot.link == Some(link) {
                slot.link = None;
            }
            match slot.open().filter(|open| open.ifindex == link) {
                Some(open) if open.tap.is_some() => self.lost(index, Part::Tap),
                Some(_) => self.lost(index, Part::Port),
                None => {}
            }
        }
    }

    /// The device of an interface is gone: it is opened again with the next one of that name. A tap
    /// is made again at once.
    fn lost(&mut self, index: usize, part: Part) {
        let slot = &mut self.slots[index];
        warn!("interface {}: its device is gone", slot.config.name);
        let gone = Phase::Waiting("its device is gone".into());
        let Phase::Open(mut open) = mem::replace(&mut slot.phase, gone) else {
            return;
        };
        let ids = slot.ids;
        self.remove_port(match part {
            Part::Port => ids.port,
            Part::Tap => ids.twin,
        });
        if open.tap.is_none() {
            return;
        }
        let slot = &mut self.slots[index];
        let renewed = self
            .interfaces
            .renew(&slot.config, ids.port, &mut open, part);
        match renewed {
            Ok(()) => self.put_to_work(index, open),
            Err(why) => {
                warn!("interface {}: {why}", slot.config.name);
                slot.phase = Phase::Waiting(why.to_string());
                slot.link = None;
                self.remove_port(ids.port);
                self.remove_port(ids.twin);
            }
        }
    }

    /// Looks for taps that somebody has deleted, and for ports whose tap could not be made again.
    fn reopen(&mut self, now: Instant) {
        if !self.serving || now < self.retry {
            return;
        }
        self.retry = now + RETRY;
        for index in 0..self.slots.len() {
            let slot = &self.slots[index];
            match slot.open() {
                None if !slot.config.port.kind.is_device() => self.open_if_it_can_be(index),
                Some(open) if open.port.is_deleted_tap() => self.lost(index, Part::Port),
                _ => {}
            }
        }
    }

    fn remove_port(&mut self, interface: InterfaceId) {
        for worker in &mut self.router.workers {
            send(worker, Command::RemovePort(interface));
        }
    }

    /// Looks for memifs whose peer has come or gone.
    fn links(&mut self) {
        for index in 0..self.slots.len() {
            let slot = &mut self.slots[index];
            let Some(memif) = slot.open().and_then(|open| open.port.memif()) else {
                continue;
            };
            let up = memif.up;
            if !slot.take_memif(memif) {
                continue;
            }
            let state = if up { "up" } else { "down" };
            info!("interface {}: link {state}", slot.config.name);
            if let Some(link) = slot.link {
                let changes = self.translator.set_port_up(link, up);
                self.apply(changes);
            }
        }
    }

    /// Looks after workers, links and neighbors.
    ///
    /// # Errors
    /// A worker has ended. Its packets and ports are gone with it: whoever supervises us starts us
    /// again.
    pub fn tick(&mut self) -> Result<(), Box<dyn Error>> {
        dead(&mut self.router.workers)?;
        self.links();
        let now = Instant::now();
        self.reopen(now);
        for event in self.router.events() {
            let Event::Resolve { interface, address } = event;
            if let Some(link) = self.link_of(interface) {
                self.neighbors
                    .resolve(&mut self.requests, now, link, address);
            }
        }
        if self.neighbors.are_to_be_confirmed(now) {
            for (interface, address) in self.router.next_hops_in_use() {
                if let Some(link) = self.link_of(interface) {
                    let _ = self.requests.use_neighbor(link, address);
                }
            }
        }
        let deferred = self.router.deferred();
        self.router.tick();
        if deferred > 0 && self.router.deferred() == 0 {
            info!("the tables have room again: all routes are in");
        }
        drop(self.router.collect());
        self.slots.iter_mut().for_each(Slot::warn_of_checksums);
        Ok(())
    }

    /// What the XDP program did with the packets of an interface; `None` where none is.
    pub fn program_counters(&self, slot: &Slot) -> Option<xdp::Counters> {
        slot.open().filter(|open| open.port.program().is_some())?;
        self.interfaces.program_counters(slot.ids.port)
    }

    fn link_of(&self, interface: InterfaceId) -> Option<u32> {
        self.slots
            .iter()
            .find(|s| s.ids.port == interface)
            .and_then(|s| s.link)
    }

    /// Ends workers and ports, and undoes what was done to devices.
    pub fn stop(&mut self) {
        // First the programs: from then on the kernel takes every packet.
        for slot in &mut self.slots {
            if let Phase::Open(open) = &mut slot.phase {
                open.port.detach();
            }
        }
        for worker in &mut self.router.workers {
            worker.stop();
        }
        drop(self.router.collect());
        self.slots.clear();
        self.interfaces.restore();
    }
}

/// Fails if a worker's thread has ended.
fn dead(workers: &mut [Handle]) -> Result<(), String> {
    for (i, worker) in workers.iter_mut().enumerate() {
        if let Some(why) = worker.death() {
            return Err(format!("run: worker {i} has died: {why}"));
        }
    }
    Ok(())
}

/// The processors of the workers: as configured, else the last ones that we may use, so that the
/// first keeps the system's work.
fn worker_cpus(workers: &config::Workers, usable: &[usize]) -> Vec<Option<usize>> {
    if !workers.cpus.is_empty() {
        return workers.cpus.iter().map(|c| Some(usize::from(*c))).collect();
    }
    let count = usize::from(workers.count.unwrap_or(1)).max(1);
    match usable.len().checked_sub(count) {
        Some(first) => usable[first..].iter().copied().map(Some).collect(),
        None => vec![None; count],
    }
}

/// Sends a command, waiting for room: a worker takes all of them once a loop.
fn send(worker: &mut Handle, mut command: Command) {
    while let Err(back) = worker.command(command) {
        if !worker.alive() {
            return;
        }
        command = back;
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workers_are_on_processors_that_the_process_may_use() {
        let of = |count, cpus: &[u16]| {
            let cpus = cpus.to_vec();
            worker_cpus(&config::Workers { count, cpus }, &[1, 4, 6])
        };
        assert_eq!(of(None, &[]), [Some(6)]);
        assert_eq!(of(Some(2), &[]), [Some(4), Some(6)]);
        assert_eq!(of(Some(4), &[]), [None; 4]);
        assert_eq!(of(None, &[2, 0]), [Some(2), Some(0)]);
    }

    /// A port with a defect.
    struct Broken;

    impl graph::Port for Broken {
        fn name(&self) -> &str {
            "broken"
        }
        fn rx(&mut self, _: &mut graph::Buffers, _: &mut graph::Frame) {
            panic!("a broken port")
        }
        fn tx(&mut self, _: &mut graph::Buffers, _: &mut graph::Batch<'_>) {}
    }

    #[test]
    fn a_dead_worker_is_an_error_that_names_it() {
        let setup = Setup {
            pool: Pool::new(64, STRIDE).unwrap(),
            memory: tables::Memory::mapped(tables::Sizes::default()).unwrap(),
            workers: 2,
            grace: None,
        };
        let (mut router, idle) = Router::new(setup).unwrap();
        let start = |(worker, handle): router::Idle| worker.start("w".into(), || Ok(()), handle);
        let handles: Result<_, _> = idle.into_iter().map(start).collect();
        router.attach(handles.unwrap());
        assert_eq!(dead(&mut router.workers), Ok(()));
        let broken = WorkerPort::new(Box::new(Broken), 1, 0);
        send(&mut router.workers[1], Command::AddPort(Box::new(broken)));
        let begun = Instant::now();
        while router.workers[1].alive() {
            assert!(begun.elapsed() < testbed::patience(Duration::from_secs(60)));
            std::thread::sleep(Duration::from_millis(1));
        }
        let error = dead(&mut router.workers).unwrap_err();
        assert_eq!(error, "run: worker 1 has died: a broken port");
    }
}
