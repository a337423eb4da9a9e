//! A dry run: a worker of its own, over the tables and the snapshot that the others have, takes one
//! packet in. Its port keeps what leaves; its counters, flows, limits, events and stations are
//! nobody else's.

use std::error::Error;
use std::sync::Arc;

use graph::counters::ExecutorCounters;
use graph::epoch::Publisher;
use graph::memory_port::MemoryPort;
use graph::trace::{self, Reader, Record};
use graph::waker::Waker;
use graph::worker::Worker;
use graph::{Command, Handoff, Pool, Stage, WorkerPort, cycles, pool};
use tables::flow;

use crate::context::Cx;
use crate::event::events;
use crate::firewall::flows::walks;
use crate::firewall::{self, Tracker};
use crate::limits::Limits;
use crate::router::{Router, graph};
use crate::{InterfaceId, eth, nodes, sflow};

/// Buffers: a copy for each member of a large bridge domain.
const BUFFERS: u32 = 4096;
/// Packets that a trace has room for: a frame that is flooded takes the room of several.
const PACKETS: u32 = 512;

/// What became of the packet.
pub(super) struct Ran {
    /// Each node that it passed.
    pub records: Reader,
    /// The nodes.
    pub nodes: ExecutorCounters,
}

/// Lets a worker of its own take a frame in by the port of an interface.
///
/// # Errors
/// The operating system's, when there is no memory or file descriptor.
pub(super) fn run(
    router: &Router,
    interface: InterfaceId,
    frame: Vec<u8>,
) -> Result<Ran, Box<dyn Error>> {
    let state = &router.state;
    let capacity = state.interfaces.capacity();
    let mut publisher = Publisher::new(state.snapshot(), 1);
    let pool = Pool::new(BUFFERS, pool::STRIDE)?;
    let mut graph = graph(nodes::apart(), state, &pool)?;
    let entry = graph.index_of(nodes::ENTRY).unwrap_or_default();
    let output = graph.index_of(<eth::Output as Stage<Cx>>::NAME);
    // Whoever would hear of events and samples is gone at the end.
    let (events, _events) = events();
    let (samples, _samples) = sflow::samples(capacity);
    // Nobody asks about its flows.
    let (walker, _ends) = walks();
    let asked = (walker, Arc::default());
    let tracker = Tracker::new(flow::Sizes::of(16), firewall::hasher(), (0, 1), asked)?;
    let mut cx = Cx::new(
        state.policies.rewind(),
        state,
        publisher.reader(),
        Arc::new(Limits::new(capacity)),
        (events, samples),
        graph.counters().interfaces,
        tracker,
    );
    cx.stations = state.bridges.stations.apart();
    let waker = Waker::new()?;
    let mut mesh = Handoff::mesh(std::slice::from_ref(&waker), 16);
    let handoff = mesh.pop().unwrap_or_default();
    let (mut worker, mut handle) = Worker::new(graph, cx, waker, handoff);
    let (writer, records) = trace::trace(Record::ANYWHERE, 0, PACKETS);
    let port = MemoryPort::new("explain");
    let queue = WorkerPort::new(Box::new(port.clone()), interface, interface, entry).served();
    let now = cycles::now();
    let commands = router.outputs.commands(output);
    let commands = commands.chain([
        Command::Trace(Some(writer)),
        Command::AddPort(Box::new(queue)),
    ]);
    for mut command in commands {
        while let Err(full) = handle.command(command) {
            command = full;
            worker.round(now);
        }
    }
    port.put(frame);
    worker.round(now);
    Ok(Ran {
        records,
        nodes: handle.counters.clone(),
    })
}
