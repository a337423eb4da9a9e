//! Both roles against each other, against a hostile peer, and against DPDK.

mod door;
mod dpdk;
mod hostile;
mod memory;
mod pair;
mod peer;
mod rate;

use std::ops::Deref;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

use ::testbed::{Directory, patience};
use graph::{Buffers, FRAME, Frame, Pool, Port};

use super::{Config, Control, Interface, Queue, Role};
use crate::testbed::{bytes_of, frame_of};

/// A socket path of this test alone; what is left there goes when it is dropped.
struct Socket {
    path: String,
    _directory: Directory,
}

impl Deref for Socket {
    type Target = str;
    fn deref(&self) -> &str {
        &self.path
    }
}

impl AsRef<Path> for Socket {
    fn as_ref(&self) -> &Path {
        self.path.as_ref()
    }
}

fn path() -> Socket {
    let directory = Directory::new();
    Socket {
        path: directory.path().join("memif.sock").display().to_string(),
        _directory: directory,
    }
}

fn buffers(count: u32) -> Buffers {
    Buffers::new(Pool::new(count, graph::pool::STRIDE).expect("pool"))
}

/// Waits until `done`; a test that hangs fails after a while.
fn until(what: &str, mut done: impl FnMut() -> bool) {
    let start = Instant::now();
    while !done() {
        assert!(
            start.elapsed() < patience(Duration::from_secs(30)),
            "waited in vain for: {what}"
        );
        thread::sleep(Duration::from_millis(2));
    }
}

/// One end with its control thread, queues and memory.
struct End {
    interface: Interface,
    queues: Vec<Queue>,
    bufs: Buffers,
    _control: Control,
    /// Socket that listens or connects again, if nobody else keeps it.
    _socket: Option<Socket>,
}

impl End {
    fn new(config: Config) -> Self {
        let control = Control::start().expect("thread");
        let (interface, queues) = control.add(config).expect("interface");
        Self {
            interface,
            queues,
            bufs: buffers(8192),
            _control: control,
            _socket: None,
        }
    }

    fn up(&self) -> bool {
        self.interface.status().up
    }

    /// Sends all packets on a queue, as far as they fit.
    fn send(&mut self, queue: usize, packets: &[Vec<u8>]) -> usize {
        let (port, bufs) = (&mut self.queues[queue], &mut self.bufs);
        let sent = packets.chunks(FRAME).map(|packets| {
            let mut frame = frame_of(bufs, packets);
            let n = frame.send(port, bufs);
            frame.drain().for_each(|d| bufs.free(d));
            n
        });
        let n = sent.sum();
        port.flush(bufs);
        n
    }

    /// Sends all packets; false (and nothing is sent) while the ring takes none. The ring has room
    /// for all or none.
    fn send_some(&mut self, queue: usize, packets: &[Vec<u8>]) -> bool {
        match self.send(queue, packets) {
            0 => false,
            n => {
                assert_eq!(
                    n,
                    packets.len(),
                    "{:?} {:?}",
                    self.queues[queue].counters().iter().collect::<Vec<_>>(),
                    self.interface.status()
                );
                true
            }
        }
    }

    /// Receives what waits on a queue.
    fn receive(&mut self, queue: usize) -> Vec<Vec<u8>> {
        let mut frame = Frame::default();
        self.queues[queue].rx(&mut self.bufs, &mut frame);
        bytes_of(&mut self.bufs, &mut frame)
    }

    fn counter(&self, queue: usize, name: &str) -> u64 {
        let counters = self.queues[queue].counters();
        counters
            .iter()
            .find(|(n, _)| *n == name)
            .expect("a counter of that name")
            .1
    }
}

/// A connected server and client.
fn connected(tune: impl Fn(&mut Config)) -> (End, End) {
    let path = path();
    let [mut server, client] = [Role::Server, Role::Client].map(|role| {
        let mut config = Config::new(&role.to_string(), &path, role);
        tune(&mut config);
        End::new(config)
    });
    server._socket = Some(path);
    until("the link", || server.up() && client.up());
    (server, client)
}

/// A packet of `len` bytes that tells its number.
fn packet(number: u32, len: usize) -> Vec<u8> {
    let mut bytes: Vec<u8> = (0..len).map(|i| (i as u32 * 7 + number) as u8).collect();
    bytes[..4].copy_from_slice(&number.to_be_bytes());
    bytes
}

/// Buffers that are neither in the pool nor in the cache: all have to come back.
fn missing(bufs: &Buffers) -> u32 {
    bufs.pool().count() - bufs.pool().available() - bufs.cached() as u32
}
