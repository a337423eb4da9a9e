//! A worker's sleep: the file descriptors that it waits for, and for how long.

use std::time::Duration;

use crate::WorkerPort;

/// Longest sleep, so that nodes are polled now and then.
const NAP: Duration = Duration::from_millis(100);
/// Time between two looks at ports whose wake-ups may get lost ([`crate::Port::forgets`]): how long
/// a packet waits then.
const LOOK: Duration = Duration::from_millis(5);
/// Time between two looks at ports that have no descriptor to wait on: what it adds to a packet's
/// delay at most, besides the kernel's timer slack.
const GLANCE: Duration = Duration::from_micros(50);

/// Most ports whose descriptors a worker waits on, as their list lies on its stack. With more ports
/// it looks at all of them again and again.
const MOST_PORTS: usize = 64;

/// The file descriptors that a sleeping worker waits on.
pub(crate) struct Watched {
    fds: [libc::pollfd; 1 + MOST_PORTS],
    count: usize,
    /// True if some port has no descriptor to wait on.
    blind: bool,
}

impl Watched {
    /// Asks those of `ports` that are served to wake the worker, whose own waker has the descriptor
    /// `waker`. `None` if packets are waiting already.
    pub(crate) fn arm(waker: i32, ports: &mut [WorkerPort]) -> Option<Self> {
        let none = libc::pollfd {
            fd: -1,
            events: libc::POLLIN,
            revents: 0,
        };
        let mut watched = Watched {
            fds: [none; 1 + MOST_PORTS],
            count: 0,
            blind: ports.len() > MOST_PORTS,
        };
        watched.add(waker);
        let mut ready = false;
        for port in ports.iter_mut().take(MOST_PORTS).filter(|p| p.serving) {
            match port.port.fd() {
                Some(fd) => {
                    watched.add(fd);
                    ready |= !port.port.arm();
                }
                None => watched.blind = true,
            }
        }
        (!ready).then_some(watched)
    }

    fn add(&mut self, fd: i32) {
        self.fds[self.count].fd = fd;
        self.count += 1;
    }

    /// Sleeps until one of them is ready, at most for [`NAP`].
    pub(crate) fn wait(&mut self, ports: &mut [WorkerPort]) {
        let fds = &mut self.fds[..self.count];
        if self.blind {
            _ = poll(fds, GLANCE)
        } else {
            nap(fds, ports)
        }
    }
}

/// Sleeps until one of `fds` is ready, or packets have come to a port without a wake-up.
fn nap(fds: &mut [libc::pollfd], ports: &mut [WorkerPort]) {
    let forgets = |p: &WorkerPort| p.serving && p.port.forgets();
    if !ports.iter().any(forgets) {
        poll(fds, NAP);
        return;
    }
    for _ in 0..NAP.as_millis() / LOOK.as_millis() {
        let missed = |p: &mut WorkerPort| forgets(p) && !p.port.arm();
        if poll(fds, LOOK) || ports.iter_mut().any(missed) {
            return;
        }
    }
}

/// Waits until one of `fds` is ready; false if none is when the time is up.
#[allow(unsafe_code)]
fn poll(fds: &mut [libc::pollfd], timeout: Duration) -> bool {
    let time = libc::timespec {
        tv_sec: 0,
        tv_nsec: timeout.as_nanos() as _,
    };
    // SAFETY: the array and the time live for the call.
    unsafe { libc::ppoll(fds.as_mut_ptr(), fds.len() as _, &time, std::ptr::null()) > 0 }
}
