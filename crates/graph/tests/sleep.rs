//! A worker that lies down while the control thread publishes; one whose interface is not up yet; a
//! worker that dies.

use std::os::fd::{AsRawFd, RawFd};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use graph::epoch::{Publisher, Reader};
use graph::memory_port::MemoryPort;
use graph::node::each;
use graph::pool::STRIDE;
use graph::waker::Waker;
use graph::worker::{Context, Worker};
use graph::{
    Batch, Buffers, Command, Desc, Each, Emit, Frame, Graph, Handle, Handoff, Node, Pool, Port,
    PortCounters, WorkerPort, cycles, edges,
};

/// Published value: a number. Going to sleep is replaced by what the control thread does meanwhile.
struct Numbers {
    reader: Reader<u32>,
    publisher: Arc<Mutex<Publisher<u32>>>,
    sleeps: Arc<AtomicU32>,
    /// True if all interfaces are up.
    up: Arc<AtomicBool>,
}

impl Context for Numbers {
    fn refresh(&mut self) -> bool {
        self.reader.refresh()
    }
    fn is_stale(&self) -> bool {
        self.reader.is_stale()
    }
    fn offline(&mut self, _: &mut dyn FnMut()) {
        let n = self.sleeps.fetch_add(1, Ordering::Relaxed);
        let publisher = self.publisher.clone();
        self.reader
            .offline(|| publisher.lock().unwrap().publish(100 + n));
    }
    fn is_up(&self, _: u16) -> bool {
        self.up.load(Ordering::Relaxed)
    }
}

edges! {
    enum Held {
        Unwanted => Drop("unwanted"),
    }
}

/// A node that remembers what was published when it was last polled, as one that holds packets for
/// a change would.
struct Holder(Arc<AtomicU32>);

impl Each<Numbers> for Holder {
    const NAME: &'static str = "holder";
    type Next = Held;
    fn packet(&mut self, _: &Numbers, out: &mut Emit<'_, Held>, d: Desc) {
        out.push(Held::Unwanted, d);
    }
    fn polls(&self) -> bool {
        true
    }
    fn poll(&mut self, cx: &Numbers, _: &mut Emit<'_, Held>) {
        self.0.store(*cx.reader.get(), Ordering::Relaxed);
    }
}

struct Lab {
    worker: Worker<Numbers>,
    handle: Handle,
    publisher: Arc<Mutex<Publisher<u32>>>,
    polled: Arc<AtomicU32>,
    sleeps: Arc<AtomicU32>,
    up: Arc<AtomicBool>,
}

fn lab() -> Lab {
    let mut publisher = Publisher::new(1, 1);
    let reader = publisher.reader();
    let publisher = Arc::new(Mutex::new(publisher));
    let (polled, sleeps) = (Arc::<AtomicU32>::default(), Arc::<AtomicU32>::default());
    let up = Arc::new(AtomicBool::new(true));
    let cx = Numbers {
        reader,
        publisher: publisher.clone(),
        sleeps: sleeps.clone(),
        up: up.clone(),
    };
    let pool = Pool::new(64, STRIDE).unwrap();
    let nodes: Vec<Box<dyn Node<Numbers>>> = vec![each(Holder(polled.clone()))];
    let graph = Graph::new(nodes, Buffers::new(pool), 4, Arc::default()).unwrap();
    let (worker, handle) = Worker::new(graph, cx, Waker::new().unwrap(), Handoff::default());
    Lab {
        worker,
        handle,
        publisher,
        polled,
        sleeps,
        up,
    }
}

#[test]
fn nodes_see_what_was_published_in_their_sleep() {
    let mut lab = lab();
    for n in 0..100 {
        // This round polls at the latest, so that the next poll would be a millisecond away.
        lab.worker.round(cycles::now());
        lab.worker.sleep();
        lab.worker.round(cycles::now());
        assert_eq!(lab.polled.load(Ordering::Relaxed), 100 + n);
    }
}

#[test]
fn nobody_sleeps_over_what_was_just_published() {
    let mut lab = lab();
    lab.worker.round(cycles::now());
    lab.publisher.lock().unwrap().publish(7);
    lab.worker.sleep();
    assert_eq!(lab.sleeps.load(Ordering::Relaxed), 0);
    lab.worker.round(cycles::now());
    assert_eq!(lab.polled.load(Ordering::Relaxed), 7);
    lab.worker.sleep();
    assert_eq!(lab.sleeps.load(Ordering::Relaxed), 1);
}

/// A port that always wants to be looked at, and wakes at once; and whether it was filled.
struct Eager(MemoryPort, std::fs::File, Arc<AtomicBool>);

impl Port for Eager {
    fn name(&self) -> &str {
        self.0.name()
    }
    fn rx(&mut self, bufs: &mut Buffers, frame: &mut Frame) {
        self.0.rx(bufs, frame);
    }
    fn tx(&mut self, bufs: &mut Buffers, batch: &mut Batch<'_>) {
        self.0.tx(bufs, batch);
    }
    fn fd(&self) -> Option<RawFd> {
        Some(self.1.as_raw_fd())
    }
    fn arm(&mut self) -> bool {
        false
    }
    fn fill(&mut self, _: &mut Buffers) {
        self.2.store(true, Ordering::Relaxed);
    }
}

#[test]
fn what_a_port_has_waits_until_its_interface_is_first_up() {
    let mut lab = lab();
    let cable = MemoryPort::new("port");
    let file = std::fs::File::open("/dev/null").unwrap();
    let filled = Arc::new(AtomicBool::new(false));
    let eager = Eager(cable.clone(), file, filled.clone());
    let port = Box::new(WorkerPort::new(Box::new(eager), 1, 1, 0));
    lab.up.store(false, Ordering::Relaxed);
    assert!(lab.handle.command(Command::AddPort(port)).is_ok());
    assert!(!lab.handle.has_obeyed());
    cable.put(vec![0; 60]);
    for _ in 0..3 {
        assert_eq!(lab.worker.round(cycles::now()), Some(0));
    }
    assert_eq!(cable.waiting(), 1);
    assert!(lab.handle.has_obeyed() && filled.load(Ordering::Relaxed));
    let mut sleeps = || {
        let before = lab.sleeps.load(Ordering::Relaxed);
        lab.worker.sleep();
        let slept = lab.sleeps.load(Ordering::Relaxed) > before;
        (slept, lab.worker.round(cycles::now()))
    };
    assert_eq!(sleeps(), (true, Some(0)), "nothing to do");
    lab.up.store(true, Ordering::Relaxed);
    assert_eq!(sleeps(), (true, Some(1)));
    assert_eq!(sleeps(), (false, Some(0)), "the port is looked at");
    // What comes to an interface that goes down is lost, as on any other.
    lab.up.store(false, Ordering::Relaxed);
    cable.put(vec![0; 60]);
    assert_eq!(sleeps(), (false, Some(1)));
}

/// A port with a defect.
struct Broken(PortCounters);

impl Port for Broken {
    fn name(&self) -> &str {
        "broken"
    }
    fn rx(&mut self, _: &mut Buffers, _: &mut Frame) {
        panic!("an invariant of {} is gone", self.name())
    }
    fn tx(&mut self, _: &mut Buffers, _: &mut Batch<'_>) {}
    fn counters(&self) -> PortCounters {
        self.0.clone()
    }
}

#[test]
fn a_worker_that_dies_says_what_of() {
    let Lab {
        worker, mut handle, ..
    } = lab();
    assert_eq!(handle.death(), None, "it was not started");
    let broken = WorkerPort::new(Box::new(Broken(PortCounters::new(&[]))), 1, 1, 0);
    assert!(handle.command(Command::AddPort(Box::new(broken))).is_ok());
    let mut handle = worker.start("worker".into(), || Ok(()), handle).unwrap();
    let start = Instant::now();
    let death = loop {
        if let Some(death) = handle.death() {
            break death;
        }
        assert!(start.elapsed() < Duration::from_secs(60), "it lives");
        std::thread::sleep(Duration::from_millis(1));
    };
    assert_eq!(death, "an invariant of broken is gone");
    assert!(!handle.alive());
    handle.stop();
}

/// A port that gets a packet when it has been looked at often enough, and wakes nobody.
struct Silent {
    fd: std::fs::File,
    forgets: bool,
    looks: Arc<AtomicU32>,
}

impl Port for Silent {
    fn name(&self) -> &str {
        "silent"
    }
    fn rx(&mut self, _: &mut Buffers, _: &mut Frame) {}
    fn tx(&mut self, _: &mut Buffers, _: &mut Batch<'_>) {}
    fn fd(&self) -> Option<RawFd> {
        Some(self.fd.as_raw_fd())
    }
    fn arm(&mut self) -> bool {
        self.looks.fetch_add(1, Ordering::Relaxed) < 4
    }
    fn forgets(&self) -> bool {
        self.forgets
    }
}

/// Drops every packet.
struct Sink;

impl Each<()> for Sink {
    const NAME: &'static str = "sink";
    type Next = Held;
    fn packet(&mut self, (): &(), out: &mut Emit<'_, Held>, d: Desc) {
        out.push(Held::Unwanted, d);
    }
}

#[test]
fn a_sleeping_worker_looks_after_those_that_may_forget_it() {
    for (forgets, looks_of_a_sleep) in [(true, 5), (false, 1)] {
        let nodes: Vec<Box<dyn Node<()>>> = vec![each(Sink)];
        let bufs = Buffers::new(Pool::new(64, STRIDE).unwrap());
        let graph = Graph::new(nodes, bufs, 4, Arc::default()).unwrap();
        let (mut worker, mut handle) =
            Worker::new(graph, (), Waker::new().unwrap(), Handoff::default());
        // Ready for nothing but writing: an end of a pipe.
        let (_quiet, fd) = std::io::pipe().unwrap();
        let looks = Arc::<AtomicU32>::default();
        let port = Silent {
            fd: std::os::fd::OwnedFd::from(fd).into(),
            forgets,
            looks: looks.clone(),
        };
        let served = WorkerPort::new(Box::new(port), 1, 1, 0);
        assert!(handle.command(Command::AddPort(Box::new(served))).is_ok());
        worker.round(cycles::now());
        looks.store(0, Ordering::Relaxed);
        worker.sleep();
        assert_eq!(looks.load(Ordering::Relaxed), looks_of_a_sleep);
    }
}
