//! The ports that a worker serves, and the rings to the ports that other workers serve.

use crate::counters::{InterfaceCounters, WorkerCounters};
use crate::ring::{Consumer, Producer};
use crate::{Buffers, Desc, Pool, Port};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A port with the interface that it is a queue of.
pub struct Served {
    /// The port.
    pub port: Box<dyn Port>,
    /// Its interface.
    pub interface: u16,
    /// Index of the node that its packets enter.
    pub entry: u16,
    /// Whether `flush` is due.
    pub(crate) outstanding: bool,
}

impl Served {
    /// A port of `interface`, whose packets enter node `entry`.
    pub fn new(port: Box<dyn Port>, interface: u16, entry: u16) -> Self {
        Served {
            port,
            interface,
            entry,
            outstanding: true,
        }
    }

    /// Gives packets to the port, counts, and returns how many it took.
    #[inline]
    pub(crate) fn send(
        &mut self,
        bufs: &mut Buffers,
        packets: &[Desc],
        c: &InterfaceCounters,
    ) -> usize {
        let mut bytes = size(bufs.pool(), packets);
        let start = crate::cycles::now();
        let taken = self.port.tx(bufs, packets);
        c.tx_clocks.add(crate::cycles::now().wrapping_sub(start));
        c.tx_calls.add(1);
        if taken < packets.len() {
            bytes -= size(bufs.pool(), &packets[taken..]);
            c.tx_errors.add((packets.len() - taken) as u64);
        }
        c.tx_packets.add(taken as u64);
        c.tx_bytes.add(bytes);
        self.outstanding = true;
        taken
    }
}

/// Bytes of these packets.
#[inline]
pub(crate) fn size(pool: &Pool, packets: &[Desc]) -> u64 {
    let (mut bytes, mut flags) = (0u64, 0);
    for d in packets {
        bytes += u64::from(d.len);
        flags |= d.flags;
    }
    if flags & crate::flags::CHAINED == 0 {
        bytes
    } else {
        packets.iter().map(|d| pool.total(d) as u64).sum()
    }
}

/// Wakes a sleeping worker.
#[derive(Debug)]
pub struct Waker {
    fd: std::os::fd::OwnedFd,
    asleep: AtomicBool,
}

impl Waker {
    /// A waker over a new eventfd.
    ///
    /// # Errors
    /// The operating system's, when there are no more file descriptors.
    pub fn new() -> std::io::Result<Arc<Self>> {
        use std::os::fd::FromRawFd;
        // SAFETY: a plain system call.
        let fd = unsafe { libc::eventfd(0, libc::EFD_NONBLOCK | libc::EFD_CLOEXEC) };
        if fd < 0 {
            return Err(std::io::Error::last_os_error());
        }
        // SAFETY: a new descriptor that nobody else owns.
        let fd = unsafe { std::os::fd::OwnedFd::from_raw_fd(fd) };
        Ok(Arc::new(Waker {
            fd,
            asleep: AtomicBool::new(false),
        }))
    }

    /// Wakes the worker if it sleeps or is about to.
    pub fn wake(&self) {
        std::sync::atomic::fence(Ordering::SeqCst);
        if self.asleep.load(Ordering::SeqCst) {
            use std::os::fd::AsRawFd;
            let one = 1u64;
            // SAFETY: writes 8 bytes to our eventfd; a full counter is as good as a written one.
            unsafe { libc::write(self.fd.as_raw_fd(), (&raw const one).cast(), 8) };
        }
    }

    pub(crate) fn fd(&self) -> i32 {
        use std::os::fd::AsRawFd;
        self.fd.as_raw_fd()
    }

    /// Announces sleep; whoever has work after this will write.
    pub(crate) fn doze(&self) {
        self.asleep.store(true, Ordering::SeqCst);
        std::sync::atomic::fence(Ordering::SeqCst);
    }

    pub(crate) fn awake(&self) {
        self.asleep.store(false, Ordering::SeqCst);
        let mut n = 0u64;
        // SAFETY: reads 8 bytes from our non-blocking eventfd.
        unsafe { libc::read(self.fd(), (&raw mut n).cast(), 8) };
    }
}

/// Packets that leave by a port of another worker.
#[derive(Default)]
pub struct Handoff {
    /// By worker.
    pub(crate) out: Vec<Option<(Producer<Desc>, Arc<Waker>)>>,
    pub(crate) inbound: Vec<Consumer<Desc>>,
}

impl Handoff {
    /// Rings between `workers.len()` workers, each to each; element n is worker n's side.
    pub fn mesh(wakers: &[Arc<Waker>], size: usize) -> Vec<Handoff> {
        let mut all: Vec<Handoff> = wakers.iter().map(|_| Handoff::default()).collect();
        for from in 0..wakers.len() {
            for (to, waker) in wakers.iter().enumerate() {
                if from == to {
                    all[from].out.push(None);
                    continue;
                }
                let (producer, consumer) = crate::ring::ring(size);
                all[from].out.push(Some((producer, waker.clone())));
                all[to].inbound.push(consumer);
            }
        }
        all
    }

    /// Gives packets to `worker` and returns how many it took.
    pub(crate) fn give(
        &mut self,
        worker: usize,
        packets: &[Desc],
        counters: &WorkerCounters,
    ) -> usize {
        let Some(Some((ring, waker))) = self.out.get_mut(worker) else {
            counters.handoff_full.add(packets.len() as u64);
            return 0;
        };
        let mut taken = 0;
        for d in packets {
            // SAFETY: what the ring took counts as taken: the caller does not use it again.
            match ring.push(unsafe { d.duplicate() }) {
                Ok(()) => taken += 1,
                Err(_) => break,
            }
        }
        counters.handoffs.add(taken as u64);
        counters.handoff_full.add((packets.len() - taken) as u64);
        waker.wake();
        taken
    }
}
