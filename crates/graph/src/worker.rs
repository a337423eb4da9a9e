//! The worker: one pinned thread that takes packets from ports, runs the graph and sends what comes
//! out.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use crate::handle::{Command, Handle, Returned};
use crate::nap::Watched;
use crate::ring::{Consumer, Producer};
use crate::waker::Waker;
use crate::{Frame, Graph, Handoff, WorkerPort};

/// The context that the nodes of a graph share, as the worker sees it.
pub trait Context: Send {
    /// Takes over the latest snapshot. True if it is a new one.
    fn refresh(&mut self) -> bool;
    /// True if [`Context::refresh`] would find a new one.
    fn is_stale(&self) -> bool;
    /// Runs `sleep` while this worker holds no snapshot.
    fn offline(&mut self, sleep: &mut dyn FnMut());
    /// True if an interface takes packets in. What its ports have waits until it first does; when
    /// that changes, a new snapshot says so.
    fn is_up(&self, _interface: u16) -> bool {
        true
    }
}

/// For nodes that share nothing.
impl Context for () {
    fn refresh(&mut self) -> bool {
        false
    }
    fn is_stale(&self) -> bool {
        false
    }
    fn offline(&mut self, sleep: &mut dyn FnMut()) {
        sleep();
    }
}

/// A worker. [`Worker::start`] gives it a thread; tests and tools call [`Worker::round`]
/// themselves.
pub struct Worker<C> {
    graph: Graph<C>,
    cx: C,
    /// Between a port and the graph.
    frame: Frame,
    commands: Consumer<Command>,
    returned: Producer<Returned>,
    waker: Arc<Waker>,
    /// TSC of the first round without packets, if the last one had none.
    idle_since: Option<u64>,
    /// TSC at which the nodes are to be polled again.
    next_poll: u64,
}

/// Time that a worker polls without packets before it sleeps, so that short gaps in the traffic
/// cost no system calls.
const SPIN: Duration = Duration::from_micros(50);

/// Rounds before the end in which packets may still come: a ring holds no more than so many frames.
const LAST_ROUNDS: usize = 16;

/// Commands that may wait for a worker, and ports and traces that may wait to be collected: far
/// more than are sent at once.
const COMMANDS: usize = 1024;

impl<C: Context + 'static> Worker<C> {
    /// A worker that runs `graph`, and its handle. `handoff` holds its rings to the other workers.
    pub fn new(graph: Graph<C>, cx: C, waker: Arc<Waker>, handoff: Handoff) -> (Self, Handle) {
        let (to_worker, commands) = crate::ring::ring(COMMANDS);
        let (returned, from_worker) = crate::ring::ring(COMMANDS);
        let mut graph = graph;
        graph.out().transmit().join(handoff);
        let handle = Handle::new(graph.counters(), to_worker, from_worker, waker.clone());
        let worker = Worker {
            graph,
            cx,
            frame: Frame::default(),
            commands,
            returned,
            waker,
            idle_since: None,
            next_poll: 0,
        };
        (worker, handle)
    }

    /// The context that its nodes share.
    pub fn context(&mut self) -> &mut C {
        &mut self.cx
    }

    /// Its graph.
    pub fn graph(&self) -> &Graph<C> {
        &self.graph
    }

    /// One round at TSC `now`: commands, the snapshot, packets from other workers, every port once.
    /// Returns how many packets came in, `None` after [`Command::Stop`].
    ///
    /// Nodes take `now` for the time; only the cycles that are counted are those that really pass.
    #[inline]
    pub fn round(&mut self, now: u64) -> Option<usize> {
        if !self.commands.is_empty() && !self.obey() {
            self.finish();
            return None;
        }
        self.graph.out().begin(now);
        // At once after a new snapshot, which may be what a node waits for; else once a tick.
        if self.cx.refresh() || now >= self.next_poll {
            self.next_poll = now + self.graph.out().millisecond();
            self.poll();
        }
        let moved = self.move_packets();
        let c = self.graph.out().worker();
        c.loops.add(1);
        if moved > 0 {
            c.busy_loops.add(1);
        }
        Some(moved)
    }

    /// Packets from other workers, every port once, and what is to leave. Returns how many came in.
    #[inline]
    fn move_packets(&mut self) -> usize {
        let mut moved = self.take_over();
        for port in 0..self.graph.out().transmit().queues().len() {
            // Through the graph before the next port is asked: the headers are still in cache, and
            // one frame is enough for all ports.
            let n = self.receive(port);
            if n > 0 {
                self.graph.run(&self.cx);
                moved += n;
            }
        }
        self.graph.out().flush_ports();
        moved
    }

    /// Sends on what has come in before the end, as far as rings hold it, and gives back all ports.
    #[cold]
    fn finish(&mut self) {
        for _ in 0..LAST_ROUNDS {
            if self.move_packets() == 0 {
                break;
            }
        }
        self.close();
    }

    /// Receives from port `port`, unless its interface has never been up: packets that were there
    /// before it would be lost. Returns how many.
    #[inline]
    fn receive(&mut self, port: usize) -> usize {
        let out = self.graph.out();
        let served = &mut out.transmit().queues()[port];
        served.serving = served.serving || self.cx.is_up(served.interface);
        if served.serving {
            out.receive(port, &mut self.frame)
        } else {
            0
        }
    }

    /// Polls the nodes.
    fn poll(&mut self) {
        let out = self.graph.out();
        out.worker().cached.set(out.bufs().cached() as u64);
        self.graph.poll(&self.cx);
        self.graph.run(&self.cx);
    }

    /// Takes packets that other workers have handed over, ring by ring. Returns how many.
    #[inline]
    fn take_over(&mut self) -> usize {
        let mut moved = 0;
        for ring in 0..self.graph.out().transmit().handoff().inbound() {
            let n = self.graph.out().take_over(ring);
            if n > 0 {
                self.graph.run(&self.cx);
                moved += n;
            }
        }
        moved
    }

    /// Carries out the control thread's commands. False after [`Command::Stop`].
    #[cold]
    fn obey(&mut self) -> bool {
        while let Some(command) = self.commands.pop() {
            let out = self.graph.out();
            match command {
                Command::AddPort(port) => {
                    if let Err(port) = out.add_port(*port) {
                        self.give_back(Returned::Port(Box::new(port)));
                    }
                }
                Command::RemovePort(port) => {
                    while let Some(port) = self.graph.out().remove_port(port) {
                        self.give_back(Returned::Port(Box::new(port)));
                    }
                }
                Command::PlaceTx(port, to) => out.transmit().place(port, to),
                Command::Egress(interface, port) => out.transmit().set_egress(interface, port),
                Command::Output(interface, node) => out.set_output(interface, node),
                Command::Input(interface, node) => out.set_input(interface, node),
                Command::Trace(trace) => {
                    if let Some(old) = out.tracer().start(trace) {
                        self.give_back(Returned::Trace(old));
                    }
                }
                Command::Stop => return false,
            }
        }
        true
    }

    /// Gives back all ports.
    fn close(&mut self) {
        let id = |queue: &WorkerPort| queue.id;
        while let Some(port) = self.graph.out().transmit().queues().first().map(id) {
            if let Some(port) = self.graph.out().remove_port(port) {
                self.give_back(Returned::Port(Box::new(port)));
            }
        }
    }

    /// If the ring is full, it is dropped here: the control thread no longer collects anything.
    fn give_back(&mut self, returned: Returned) {
        let _ = self.returned.push(returned);
    }

    /// Starts the thread. It calls `begin` first, which may pin it to a processor, for example.
    ///
    /// # Errors
    /// The operating system's, when it starts no thread; that of `begin`, after which the
    /// thread has ended.
    pub fn start(
        mut self,
        name: String,
        begin: impl FnOnce() -> io::Result<()> + Send + 'static,
        mut handle: Handle,
    ) -> io::Result<Handle> {
        let (begun, has_begun) = std::sync::mpsc::sync_channel(1);
        let thread = std::thread::Builder::new().name(name).spawn(move || {
            let done = begin();
            let goes_on = done.is_ok();
            let _ = begun.send(done);
            if !goes_on {
                return;
            }
            let spin = crate::cycles::of(SPIN);
            while let Some(moved) = self.round(crate::cycles::now()) {
                self.rest(moved, spin);
            }
        })?;
        // Without an answer it has panicked, which `Handle::death` says.
        has_begun.recv().unwrap_or(Ok(()))?;
        handle.started(thread);
        Ok(handle)
    }

    /// After a round: goes on while there is traffic, and sleeps when there has been none for
    /// [`SPIN`].
    #[inline]
    fn rest(&mut self, moved: usize, spin: u64) {
        if moved > 0 {
            self.idle_since = None;
            return;
        }
        let now = self.graph.out().now();
        let since = *self.idle_since.get_or_insert(now);
        if now.wrapping_sub(since) < spin {
            std::hint::spin_loop();
            return;
        }
        self.sleep();
    }

    /// Sleeps until there is something to do.
    #[cold]
    pub fn sleep(&mut self) {
        let waker = self.waker.clone();
        waker.sleep(self, Self::look, |worker, mut watched| {
            let out = worker.graph.out();
            out.worker().sleeps.add(1);
            let ports = out.transmit().queues();
            worker.cx.offline(&mut || watched.wait(ports));
        });
        for port in self.graph.out().transmit().queues() {
            port.port.disarm();
        }
        // Going online has taken over what was published meanwhile, so the next refresh may find
        // nothing new; the nodes have to be polled all the same.
        self.next_poll = 0;
    }

    /// Asks the ports to wake the worker, and looks for work once more. Returns what to wait for,
    /// `None` if there is work.
    fn look(&mut self) -> Option<Watched> {
        let transmit = self.graph.out().transmit();
        let watched = Watched::arm(self.waker.fd(), transmit.queues());
        let pending =
            !transmit.handoff().is_empty() || !self.commands.is_empty() || self.cx.is_stale();
        watched.filter(|_| !pending)
    }
}
