//! The worker: one pinned thread that takes packets from ports, runs the graph and sends what comes out.

use crate::counters::ExecutorCounters;
use crate::node::TxPlacement;
use crate::ring::{Consumer, Producer};
use crate::trace;
use crate::waker::Waker;
use crate::worker_port::{Handoff, WorkerPort};
use crate::{FRAME, Flag, Frame, Graph};
use std::sync::Arc;
use std::time::Duration;

/// What the stages of a graph share, as the worker sees it.
pub trait Context: Send {
    /// Takes over what was published. True if anything did change.
    fn refresh(&mut self) -> bool;
    /// Whether [`Context::refresh`] would take anything over.
    fn is_stale(&self) -> bool;
    /// Runs `sleep` while this worker holds no snapshot.
    fn offline(&mut self, sleep: &mut dyn FnMut());
}

/// Nodes that share nothing.
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

/// What the control thread asks of a worker.
pub enum Command {
    /// Serve this port from now on.
    AddPort(Box<WorkerPort>),
    /// Give back the ports of this interface.
    RemovePort(u16),
    /// Who sends the packets of this interface.
    Route(u16, TxPlacement),
    /// Trace packets; `None` ends tracing.
    Trace(Option<trace::Writer>),
    /// End the thread.
    Stop,
}

/// What a worker gives back, to be dropped on the control thread.
pub enum Returned {
    /// A port it no longer serves.
    Port(Box<WorkerPort>),
    /// A trace it no longer writes.
    Trace(trace::Writer),
}

/// The control thread's hold on a worker.
pub struct Handle {
    /// Its thread's processor, if pinned.
    pub cpu: Option<usize>,
    /// Its counters.
    pub counters: ExecutorCounters,
    commands: Producer<Command>,
    returned: Consumer<Returned>,
    waker: Arc<Waker>,
    thread: Option<std::thread::JoinHandle<()>>,
}

/// A worker before its thread is started.
pub struct Worker<C> {
    graph: Graph<C>,
    cx: C,
    frame: Frame,
    commands: Consumer<Command>,
    returned: Producer<Returned>,
    waker: Arc<Waker>,
    idle_since: Option<u64>,
    next_poll: u64,
    millisecond: u64,
}

/// How long a worker polls without packets before it sleeps.
const SPIN: Duration = Duration::from_micros(50);
/// Longest sleep: for ports that cannot wake it, and for the nodes' polls.
const NAP: Duration = Duration::from_millis(100);
/// Between two looks at ports whose wake-ups may get lost ([`crate::Port::forgets`]).
const LOOK: Duration = Duration::from_millis(5);
/// Sleep between two looks at ports that have no descriptor to wait on.
const GLANCE: Duration = Duration::from_micros(50);

impl<C: Context + 'static> Worker<C> {
    /// A worker over `graph`, and the handle on it.
    pub fn new(graph: Graph<C>, cx: C, waker: Arc<Waker>, handoff: Handoff) -> (Self, Handle) {
        let (to_worker, commands) = crate::ring::ring(1024);
        let (returned, from_worker) = crate::ring::ring(1024);
        let handle = Handle {
            cpu: None,
            counters: graph.counters(),
            commands: to_worker,
            returned: from_worker,
            waker: waker.clone(),
            thread: None,
        };
        let mut graph = graph;
        graph.out.handoff = handoff;
        let millisecond = crate::cycles::of(Duration::from_millis(1));
        let worker = Worker {
            graph,
            cx,
            frame: Frame::default(),
            commands,
            returned,
            waker,
            idle_since: None,
            next_poll: 0,
            millisecond,
        };
        (worker, handle)
    }

    /// The shared context (for who drives the worker without a thread).
    pub fn context(&mut self) -> &mut C {
        &mut self.cx
    }

    /// The graph (for who drives the worker without a thread).
    pub fn graph(&mut self) -> &mut Graph<C> {
        &mut self.graph
    }

    /// One round: commands, snapshot, every port once. Returns packets moved, `None` to end.
    #[inline]
    pub fn round(&mut self) -> Option<usize> {
        if !self.commands.is_empty() && !self.obey() {
            return None;
        }
        let out = &mut self.graph.out;
        out.now = crate::cycles::now();
        if self.cx.refresh() || out.now >= self.next_poll {
            self.next_poll = out.now + self.millisecond;
            out.worker.cached.set(out.bufs.cached() as u64);
            self.graph.poll(&self.cx);
            self.graph.run(&self.cx);
            self.graph.send();
        }
        let mut moved = self.take_handoffs();
        for port in 0..self.graph.out.ports.len() {
            moved += self.serve(port);
        }
        for port in &mut self.graph.out.ports {
            if port.outstanding {
                port.outstanding = false;
                port.port.flush(&mut self.graph.out.bufs);
            }
        }
        let c = &self.graph.out.worker;
        c.loops.add(1);
        if moved > 0 {
            c.busy_loops.add(1);
        }
        Some(moved)
    }

    #[inline]
    fn serve(&mut self, port: usize) -> usize {
        let out = &mut self.graph.out;
        let start = crate::cycles::now();
        let WorkerPort {
            port,
            interface,
            entry,
            ..
        } = &mut out.ports[port];
        port.rx(&mut out.bufs, &mut self.frame);
        let n = self.frame.len();
        if n == 0 {
            return 0;
        }
        let (interface, entry) = (*interface, *entry);
        let packets = self.frame.packets_mut();
        out.admit(interface, packets);
        let counters = out.transmit_counters(interface);
        counters.rx_calls.add(1);
        counters.rx_packets.add(n as u64);
        counters
            .rx_bytes
            .add(crate::worker_port::size(out.bufs.pool(), packets));
        counters
            .rx_clocks
            .add(crate::cycles::now().wrapping_sub(start));
        out.trace_receive(interface, packets);
        out.enqueue(entry, &mut self.frame);
        self.graph.run(&self.cx);
        self.graph.send();
        n
    }

    fn take_handoffs(&mut self) -> usize {
        let out = &mut self.graph.out;
        let mut moved = 0;
        for ring in 0..out.handoff.inbound.len() {
            for _ in 0..FRAME {
                let Some(mut d) = out.handoff.inbound[ring].pop() else {
                    break;
                };
                moved += 1;
                // Its trace is the other worker's, and ended there.
                d.unmark(Flag::TRACED);
                out.transmit_one(d);
            }
        }
        if moved > 0 {
            self.graph.send();
        }
        moved
    }

    /// Carries out what the control thread asked for. False: end.
    #[cold]
    fn obey(&mut self) -> bool {
        while let Some(command) = self.commands.pop() {
            let out = &mut self.graph.out;
            match command {
                Command::AddPort(served) => {
                    let interface = served.interface as usize;
                    if interface >= out.transmit.len() {
                        self.give_back(*served);
                        continue;
                    }
                    out.transmit[interface].placement = TxPlacement::Port(out.ports.len());
                    out.ports.push(*served);
                }
                Command::RemovePort(interface) => self.remove(interface),
                Command::Route(interface, way) => {
                    if let Some(t) = out.transmit.get_mut(interface as usize) {
                        t.placement = way;
                    }
                }
                Command::Trace(trace) => {
                    if let Some(old) = out.tracer.start(trace) {
                        let _ = self.returned.push(Returned::Trace(old));
                    }
                }
                Command::Stop => {
                    while let Some(served) = self.graph.out.ports.pop() {
                        self.give_back(served);
                    }
                    return false;
                }
            }
        }
        true
    }

    fn remove(&mut self, interface: u16) {
        while let Some(i) = self
            .graph
            .out
            .ports
            .iter()
            .position(|p| p.interface == interface)
        {
            let served = self.graph.out.ports.swap_remove(i);
            self.give_back(served);
        }
        let out = &mut self.graph.out;
        for (i, t) in out.transmit.iter_mut().enumerate() {
            if let TxPlacement::Port(_) = t.placement {
                t.placement = out
                    .ports
                    .iter()
                    .position(|p| p.interface as usize == i)
                    .map_or(TxPlacement::None, TxPlacement::Port);
            }
        }
    }

    fn give_back(&mut self, mut served: WorkerPort) {
        served.port.drain(&mut self.graph.out.bufs);
        let _ = self.returned.push(Returned::Port(Box::new(served)));
    }

    /// Starts the thread, on processor `cpu` if given.
    ///
    /// # Errors
    /// The operating system's, when it gives no thread; when the processor is not there, or not for this process.
    pub fn start(
        mut self,
        name: String,
        cpu: Option<usize>,
        mut handle: Handle,
    ) -> std::io::Result<Handle> {
        let (pinned, is_pinned) = std::sync::mpsc::sync_channel(1);
        let thread = std::thread::Builder::new().name(name).spawn(move || {
            let there = cpu.is_none_or(pin);
            let _ = pinned.send(there);
            if !there {
                return;
            }
            let spin = crate::cycles::of(SPIN);
            while let Some(moved) = self.round() {
                self.rest(moved, spin);
            }
        })?;
        if let (Some(cpu), Ok(false)) = (cpu, is_pinned.recv()) {
            return Err(std::io::Error::new(
                std::io::ErrorKind::InvalidInput,
                format!("there is no processor {cpu} that this process may use"),
            ));
        }
        handle.cpu = cpu;
        handle.thread = Some(thread);
        Ok(handle)
    }

    /// Polls on while there is traffic, sleeps when there has been none for a while.
    #[inline]
    fn rest(&mut self, moved: usize, spin: u64) {
        if moved > 0 {
            self.idle_since = None;
            return;
        }
        let now = self.graph.out.now;
        let since = *self.idle_since.get_or_insert(now);
        if now.wrapping_sub(since) < spin {
            std::hint::spin_loop();
            return;
        }
        self.sleep();
    }

    /// Sleeps until there is something to do (for whoever drives the worker without a thread).
    #[cold]
    pub fn sleep(&mut self) {
        let waker = self.waker.clone();
        waker.sleep(self, Self::look, |worker, mut watched| {
            let out = &mut worker.graph.out;
            out.worker.sleeps.add(1);
            worker
                .cx
                .offline(&mut || watched.wait(out.ports.as_mut_slice()));
        });
        for served in &mut self.graph.out.ports {
            served.port.disarm();
        }
        // Coming back took over what was published meanwhile, so the next refresh may find nothing: the nodes that hold
        // packets must look all the same.
        self.next_poll = 0;
    }

    /// Asks the ports to wake us, and looks for work once more; without any, what to wait for.
    fn look(&mut self) -> Option<Watched> {
        let out = &mut self.graph.out;
        let mut watched = Watched::new(self.waker.fd());
        watched.blind = out.ports.len() > MOST_PORTS;
        let mut ready = false;
        for served in out.ports.iter_mut().take(MOST_PORTS) {
            match served.port.fd() {
                Some(fd) => {
                    watched.add(fd);
                    ready |= !served.port.arm();
                }
                None => watched.blind = true,
            }
        }
        let pending = out.handoff.inbound.iter_mut().any(|r| !r.is_empty())
            || !self.commands.is_empty()
            || self.cx.is_stale();
        (!ready && !pending).then_some(watched)
    }
}

/// Ports that a worker waits for by their descriptors; with more it looks at all of them again and again.
const MOST_PORTS: usize = 64;

/// What a sleeping worker waits for.
struct Watched {
    fds: [libc::pollfd; 1 + MOST_PORTS],
    count: usize,
    /// A port has no descriptor to wait on.
    blind: bool,
}

impl Watched {
    fn new(waker: i32) -> Self {
        let none = libc::pollfd {
            fd: -1,
            events: libc::POLLIN,
            revents: 0,
        };
        let mut watched = Watched {
            fds: [none; 1 + MOST_PORTS],
            count: 0,
            blind: false,
        };
        watched.add(waker);
        watched
    }

    fn add(&mut self, fd: i32) {
        self.fds[self.count].fd = fd;
        self.count += 1;
    }

    fn wait(&mut self, ports: &mut [WorkerPort]) {
        let fds = &mut self.fds[..self.count];
        match self.blind {
            true => _ = poll(fds, GLANCE),
            false => nap(fds, ports),
        }
    }
}

/// Sleeps until one of `fds` is ready, or packets are at a port whose other side forgot to say so.
fn nap(fds: &mut [libc::pollfd], ports: &mut [WorkerPort]) {
    if !ports.iter().any(|s| s.port.forgets()) {
        poll(fds, NAP);
        return;
    }
    for _ in 0..NAP.as_millis() / LOOK.as_millis() {
        let missed = |s: &mut WorkerPort| s.port.forgets() && !s.port.arm();
        if poll(fds, LOOK) || ports.iter_mut().any(missed) {
            return;
        }
    }
}

/// Waits until one of `fds` is ready: true, or the time is up.
#[allow(unsafe_code)]
fn poll(fds: &mut [libc::pollfd], timeout: Duration) -> bool {
    let time = libc::timespec {
        tv_sec: 0,
        tv_nsec: timeout.as_nanos() as _,
    };
    // SAFETY: the array and the time live for the call.
    unsafe { libc::ppoll(fds.as_mut_ptr(), fds.len() as _, &time, std::ptr::null()) > 0 }
}

/// Pins the calling thread to a processor. False where that is not allowed.
#[allow(unsafe_code)]
pub fn pin(cpu: usize) -> bool {
    // SAFETY: a zeroed set is an empty one; CPU_SET checks nothing, so the bound is checked first.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        if cpu >= libc::CPU_SETSIZE as usize {
            return false;
        }
        libc::CPU_SET(cpu, &mut set);
        libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &set) == 0
    }
}

impl Handle {
    /// Sends a command; gives it back when the worker has too many waiting.
    pub fn command(&mut self, command: Command) -> Result<(), Command> {
        self.commands.push(command)?;
        self.waker.wake();
        Ok(())
    }

    /// What the worker gave back.
    pub fn returned(&mut self) -> Option<Returned> {
        self.returned.pop()
    }

    /// Wakes the worker, so that it sees a new snapshot.
    pub fn wake(&self) {
        self.waker.wake();
    }

    /// Whether its thread still runs.
    pub fn alive(&self) -> bool {
        self.thread.as_ref().is_some_and(|t| !t.is_finished())
    }

    /// Why the thread has ended, if it was started and has ended without being asked: what it panicked with.
    pub fn death(&mut self) -> Option<String> {
        let thread = self.thread.take_if(|t| t.is_finished())?;
        let why = thread.join().err().map(|panic| {
            let text = panic.downcast_ref::<&str>().map(|s| s.to_string());
            text.or_else(|| panic.downcast_ref::<String>().cloned())
                .unwrap_or_else(|| "a panic without words".into())
        });
        Some(why.unwrap_or_else(|| "its thread returned".into()))
    }

    /// Ends the thread and waits for it.
    pub fn stop(&mut self) {
        while self.alive() && self.command(Command::Stop).is_err() {
            std::thread::sleep(Duration::from_millis(1));
        }
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.stop();
    }
}
