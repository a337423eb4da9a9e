//! The router: holds state, tables and workers together.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use graph::GraphError;
use graph::counters::ExecutorCounters;
use graph::epoch::Publisher;
use graph::ring::Consumer;
use graph::trace::Reader;
use graph::waker::Waker;
use graph::worker::Worker;
use graph::{Buffers, Graph, Handle, Handoff, Pool, Returned, Stage, WorkerPort};
use tables::{Memory, flow};

use crate::bond::lacp::Aggregator;
use crate::change::{Change, InterfaceId, Mac};
use crate::context::Cx;
use crate::counts::Cleared;
use crate::deferred::Deferred;
use crate::detour::Detour;
use crate::eth;
use crate::event::{Event, Unresolved, events};
use crate::firewall::flows::{Asker, Counters, walks};
use crate::firewall::{self, Tracker};
use crate::grace::{Grace, Waiter};
use crate::limits::Limits;
use crate::nodes::{self, Table};
use crate::sflow::{self, Collected};
use crate::snapshot::Snapshot;
use crate::state::{Garbage, Rejected, State};

/// Most workers that a router can have. Rings of 4,096 descriptors lead from each to each other
/// one: 64 workers have 4,032, which take 250 MiB or more, and twice as many workers would take
/// four times that.
pub const WORKERS: usize = 64;

/// The name of a worker's thread, by the worker's index from 0.
pub fn worker_name(index: usize) -> String {
    format!("worker-{index}")
}

/// The parts of a router.
pub struct Setup {
    /// Packet memory.
    pub pool: Arc<Pool>,
    /// Memory of the tables: heap, huge pages, or BPF maps that an XDP program reads too.
    pub memory: Memory,
    /// Number of workers, 1 to [`WORKERS`].
    pub workers: usize,
    /// Sizes of each worker's table of flows, which takes no memory before there are any.
    pub flows: flow::Sizes,
    /// Waits until nothing but workers can still read what was retired, in a thread of its own;
    /// `None` if only workers read the tables.
    pub grace: Option<Grace>,
}

/// The router, owned by the control thread.
pub struct Router {
    /// All that it knows.
    pub(crate) state: State,
    publisher: Publisher<Snapshot>,
    /// The workers' handles, in order; filled by [`Router::attach`].
    pub workers: Vec<Handle>,
    pool: Arc<Pool>,
    events: Vec<Consumer<Event>>,
    waiting: Option<(u64, Garbage)>,
    deferred: Deferred,
    /// What leaves passes interface-output where it is to.
    pub(crate) outputs: Detour,
    /// What comes in passes sflow where it is to.
    inputs: Detour,
    pub(crate) samples: Vec<Collected>,
    /// What is asked of workers about their flows.
    pub(crate) flows: Asker,
    /// Sizes of each worker's table of flows.
    pub(crate) flow_sizes: flow::Sizes,
    grace: Option<Waiter>,
    started: Instant,
    /// Executors beside the workers: name and counters.
    pub(crate) others: Vec<(&'static str, ExecutorCounters)>,
    /// The counters at the last `clear` commands.
    pub(crate) cleared: Cleared,
    /// The traces that `trace add` started, by worker.
    pub(crate) traces: Vec<Reader>,
}

/// A worker that has not been started.
pub type Idle = (Worker<Cx>, Handle);

impl Router {
    /// A router without interfaces, and its workers, to be started or driven by hand.
    ///
    /// # Errors
    /// The operating system's, when there are no more file descriptors or threads; never
    /// [`GraphError`] with the nodes of this crate.
    pub fn new(setup: Setup) -> Result<(Self, Vec<Idle>), Box<dyn std::error::Error>> {
        Self::with_table(setup, nodes::table)
    }

    /// As [`Router::new`], with other nodes than this crate's: `table` is called for each worker
    /// and must return the same each time.
    ///
    /// # Errors
    /// As [`Router::new`]; [`GraphError`] if the nodes are no graph.
    pub fn with_table(
        setup: Setup,
        table: impl Fn() -> Table,
    ) -> Result<(Self, Vec<Idle>), Box<dyn std::error::Error>> {
        let count = setup.workers.clamp(1, WORKERS);
        let state = State::new(setup.memory, count);
        let mut publisher = Publisher::new(Snapshot::default(), count);
        let wakers = (0..count)
            .map(|_| Waker::new())
            .collect::<Result<Vec<_>, _>>()?;
        let limits = Arc::new(Limits::new(state.interfaces.capacity()));
        let mut all_events = Vec::new();
        let mut idle = Vec::new();
        let hasher = firewall::hasher();
        let (mut outputs, mut inputs) = (Detour::output(), Detour::input());
        let mut all_samples = Vec::new();
        let mut flows = Asker::default();
        // Sixteen frames: a worker that is held up for a few rounds loses nothing that is handed to
        // it.
        let workers = wakers.iter().zip(Handoff::mesh(&wakers, 4096));
        for (number, (waker, handoff)) in workers.enumerate() {
            let (events, consumer) = events();
            all_events.push(consumer);
            let (samples, collected) = sflow::samples(state.interfaces.capacity());
            all_samples.push(collected);
            let mut graph = graph(table(), &state, &setup.pool)?;
            outputs.pass(graph.index_of(eth::Output::NAME));
            inputs.pass(graph.index_of(sflow::Input::NAME));
            let counters = graph.counters().interfaces;
            let snapshot = publisher.reader();
            let to_control = (events, samples);
            let (walker, ends) = walks();
            let counted = Arc::new(Counters::default());
            flows.add(ends, counted.clone());
            let place = (number, count);
            let tracker = Tracker::new(setup.flows, hasher, place, (walker, counted))?;
            let cx = Cx::new(
                number,
                &state,
                snapshot,
                limits.clone(),
                to_control,
                counters,
                tracker,
            );
            idle.push(Worker::new(graph, cx, waker.clone(), handoff));
        }
        let router = Router {
            state,
            publisher,
            workers: Vec::new(),
            pool: setup.pool,
            events: all_events,
            waiting: None,
            deferred: Deferred::default(),
            outputs,
            inputs,
            samples: all_samples,
            flows,
            flow_sizes: setup.flows,
            grace: setup.grace.map(Waiter::start).transpose()?,
            started: Instant::now(),
            others: Vec::new(),
            cleared: Cleared::default(),
            traces: Vec::new(),
        };
        Ok((router, idle))
    }

    /// Takes over the handles of the workers, in order.
    pub fn attach(&mut self, handles: Vec<Handle>) {
        self.workers = handles;
    }

    /// Counters for an executor that is no worker, shown beside the workers under `name`; whoever
    /// runs it counts. `None` before the workers are attached, whose nodes it has.
    pub fn add_executor(&mut self, name: &'static str) -> Option<ExecutorCounters> {
        let counters = self.workers.first()?.counters.anew();
        self.others.push((name, counters.clone()));
        Some(counters)
    }

    /// The packet memory.
    pub fn pool(&self) -> &Arc<Pool> {
        &self.pool
    }

    /// Time when the router was made.
    pub fn started(&self) -> Instant {
        self.started
    }

    /// Applies a batch: all of it is checked first, then applied, then published. It waits for
    /// nobody, unless a table is full of what nobody may be able to reach any more.
    ///
    /// Returns how many changes found a table full. What they were to replace stays until there is
    /// room, and then they are applied ([`Router::tick`]). [`crate::state::Alarms`] counts them.
    ///
    /// # Errors
    /// [`Rejected`] if a change is not valid: nothing was applied.
    pub fn apply(&mut self, changes: Vec<Change>) -> Result<usize, Rejected> {
        self.state.validate(&changes)?;
        let (mut publish, mut full) = (false, 0);
        let mut in_time = true;
        for change in &changes {
            // There may be numbers that wait for a grace period: only after that is the table
            // really full.
            let alarms = self.state.alarms;
            let applied = self.state.apply(change).or_else(|f| {
                // The first try may have done a part, which the second one finds done.
                publish = true;
                // Whoever keeps one change waiting in vain would keep each.
                in_time = in_time && self.reclaim_now();
                if in_time {
                    // The first try has counted a full table that is not full.
                    self.state.alarms = alarms;
                    self.state.apply(change)
                } else {
                    Err(f)
                }
            });
            self.deferred.settle(change, applied.is_ok());
            self.outputs.follow(change, &self.state.links);
            self.inputs.follow(change, &self.state.links);
            match applied {
                Ok(p) => publish |= p,
                Err(_) => {
                    full += 1;
                    // It may have changed something before it found a table full.
                    publish = true;
                }
            }
        }
        if publish || self.state.nat.is_stale() {
            self.publish();
        } else {
            self.publisher.mark();
            self.workers.iter().for_each(Handle::wake);
        }
        self.tick();
        Ok(full)
    }

    /// A number for a new interface, which no packet on its way carries any more, and whose counters
    /// are at 0; `None`: all are taken. The caller gives it back by [`Router::release`]: until then
    /// the interface counts on, though it goes and comes.
    ///
    /// Only a caller that asks for all its numbers may rely on them: [`Router::apply`] takes any.
    pub fn allocate(&mut self) -> Option<InterfaceId> {
        let first = self.state.interfaces.alloc().ok();
        let id = first.or_else(|| {
            self.reclaim_now();
            self.state.interfaces.alloc().ok()
        })?;
        self.clear_interface(id);
        Some(id)
    }

    /// The interface of this number is no more: it loses its features, and another one may have
    /// the number after a grace period. Returns as [`Router::apply`].
    ///
    /// # Errors
    /// [`Rejected`]: there is no such number.
    pub fn release(&mut self, interface: InterfaceId) -> Result<usize, Rejected> {
        let none = [Change::InterfaceDelete, Change::FeaturesDelete].map(|of| of(interface));
        let full = self.apply(none.into())?;
        self.state.interfaces.retire(interface);
        Ok(full)
    }

    /// Takes in what workers have found out since the last call, worker by worker: learns stations of
    /// bridge domains, keeps LACPDUs for [`Router::negotiate`], and returns the neighbors that are
    /// to be resolved.
    pub fn unresolved(&mut self) -> Vec<Unresolved> {
        let workers = self.events.iter_mut();
        let events = workers.flat_map(|ring| std::iter::from_fn(|| ring.pop()));
        let (bridges, bonds) = (&mut self.state.bridges, &mut self.state.bonds);
        let mut owners = false;
        let unresolved = events
            .filter_map(|event| match event {
                Event::Resolve(unresolved) => Some(unresolved),
                Event::Station {
                    domain,
                    mac,
                    interface,
                } => {
                    bridges.learn(domain, Mac(mac), interface);
                    None
                }
                Event::Owner {
                    domain,
                    address,
                    mac,
                } => {
                    owners |= bridges.own_address(domain, address, Mac(mac));
                    None
                }
                Event::Lacpdu { member, lacpdu } => {
                    bonds.hear(member, lacpdu);
                    None
                }
            })
            .collect();
        if owners {
            bridges.show_owners();
            self.publish();
        }
        unresolved
    }

    /// So long has passed since any moment: LACP takes in what members of bonds have got, and they
    /// send, join and leave. To be called after [`Router::unresolved`], tens of times a second.
    pub fn negotiate(&mut self, now: Duration) {
        let now = now.as_millis() as u64;
        if self.state.bonds.step(&self.state.links, now) {
            self.publish();
        }
    }

    /// True if an interface is up and has carrier.
    pub fn is_up(&self, interface: InterfaceId) -> bool {
        let found = self.state.links.interfaces.get(&interface);
        found.is_some_and(|interface| interface.up)
    }

    /// True if an interface is a bond with LACP, and the other end has agreed that a member carries.
    pub fn has_partner(&self, bond: InterfaceId) -> bool {
        let aggregator = self.state.bonds.aggregator(bond);
        aggregator.is_some_and(Aggregator::is_up)
    }

    /// It is this time, in seconds since any moment: bridge domains forget stations that were not
    /// seen for long. To be called once a second, or more often.
    pub fn age(&mut self, now: u32) {
        if self.state.bridges.age(now) {
            self.publish();
        }
    }

    /// Neighbors that packets may be sent to, which the kernel must not forget.
    pub fn next_hops_in_use(&self) -> Vec<(InterfaceId, IpAddr)> {
        let resolved = self.state.links.neighbors.keys();
        resolved
            .map(|(address, interface)| (*interface, *address))
            .collect()
    }

    /// Ports that workers have given back since the last call, for the caller to drop. Traces that
    /// they have given back are dropped.
    pub fn collect(&mut self) -> Vec<Box<WorkerPort>> {
        let workers = self.workers.iter_mut();
        let returned = workers.flat_map(|w| std::iter::from_fn(|| w.returned()));
        returned
            .filter_map(|r| match r {
                Returned::Port(port) => Some(port),
                Returned::Trace(_) => None,
            })
            .collect()
    }

    /// Changes that found a table full and wait for room.
    pub fn deferred(&self) -> usize {
        self.deferred.len()
    }

    /// True if addresses are translated.
    pub fn translates(&self) -> bool {
        self.state.nat.is_on()
    }

    /// Reclaims what nobody can reach any more, and applies changes that have waited for the room.
    /// It waits for nobody. To be called now and then.
    pub fn tick(&mut self) {
        self.reclaim(Waiter::is_over);
        self.outputs.tell(&mut self.workers);
        self.inputs.tell(&mut self.workers);
        let alarms = self.state.alarms;
        let state = &mut self.state;
        if self.deferred.retry(|change| state.apply(change).is_ok()) {
            self.state.alarms = alarms;
            self.publish();
        }
    }

    fn publish(&mut self) {
        self.state.nat.follow(&self.state.links);
        self.publisher.publish(self.state.snapshot());
        self.workers.iter().for_each(Handle::wake);
    }

    /// Reclaims what has waited if nobody can reach it any more, of which `over` says whether it is
    /// so for programs. Then what was retired since begins to wait.
    fn reclaim(&mut self, over: impl Fn(&Waiter) -> bool) {
        self.publisher.reclaim();
        if let Some((generation, garbage)) = self.waiting.take() {
            let over = || self.grace.as_ref().is_none_or(over);
            if !self.publisher.passed(generation) || !over() {
                self.waiting = Some((generation, garbage));
                return;
            }
            self.state.reclaim(garbage);
            self.deferred.room();
        }
        if let Some(garbage) = self.state.retired() {
            self.waiting = Some((self.publisher.mark(), garbage));
            self.grace.iter().for_each(Waiter::begin);
        }
    }

    /// Waits for the grace period of all that is retired now. False if a worker does not begin
    /// another round in time; for XDP programs it waits as long as they take.
    fn reclaim_now(&mut self) -> bool {
        // First for what waits already, then for what was retired since.
        for _ in 0..2 {
            if !self.workers_pass() {
                return false;
            }
            self.reclaim(Waiter::wait);
        }
        self.waiting.is_none()
    }

    /// Waits until every worker has begun a round since the numbers that wait were retired. False
    /// if that takes too long.
    fn workers_pass(&self) -> bool {
        let Some((generation, ..)) = &self.waiting else {
            return true;
        };
        // A round takes microseconds. A worker that needs longer has lost its processor, and must
        // not hold up the changes of all others: the numbers stay retired until the next try.
        let give_up = Instant::now() + Duration::from_millis(100);
        while !self.publisher.passed(*generation) {
            if Instant::now() >= give_up {
                return false;
            }
            std::thread::sleep(Duration::from_micros(100));
        }
        true
    }
}

/// A worker's graph of these nodes.
pub(crate) fn graph(
    table: Table,
    state: &State,
    pool: &Arc<Pool>,
) -> Result<Graph<Cx>, GraphError> {
    Graph::with_arcs(
        table.nodes,
        table.arcs.build(&state.interfaces.reader()),
        Buffers::new(pool.clone()),
        state.interfaces.capacity(),
        Arc::default(),
    )
}
