//! The control side: one thread that accepts, connects and reconnects for all memif interfaces.
//!
//! Nothing here blocks: the thread waits in poll(2) and then looks after everything once
//! ([`State::turn`]). It calls nobody: whoever wants to know of a link asks
//! ([`Interface::status`]), so its lock is never held for long.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use std::{io, thread};

use kernel::event::{EventFd, poll, pollfd};

use super::doorbell::Doorbell;
use super::endpoint::{Endpoint, Phase};
use super::handshake::{self, Session};
use super::link::{Link, LinkSlot};
use super::message::Message;
#[cfg(test)]
use super::retry::Retry;
use super::retry::{Arrivals, is_among};
use super::socket::Listener;
use super::{Config, Error, Queue, Role, Status};

/// The beat of everything that is timed, but for a client's attempts to connect: fine enough for
/// limits of seconds.
const BEAT: Duration = Duration::from_millis(200);
/// Clients of one socket that have not said yet which interface they want. The oldest gives way: a
/// client that knows what it wants says so at once.
const MAX_STRANGERS: usize = 32;
/// Clients accepted from one socket in one turn: so few that each has two turns to say what it
/// wants.
const MAX_ACCEPTED: usize = MAX_STRANGERS / 2;

/// The control thread. Dropping it ends all sessions.
#[derive(Debug)]
pub struct Control {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

/// A configured interface. Dropping it disconnects and removes it; its queues then stay down.
#[derive(Debug)]
pub struct Interface {
    shared: Arc<Shared>,
    key: u64,
}

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    wake: Arc<EventFd>,
    doorbell: Arc<Doorbell>,
    arrivals: Arrivals,
    stop: AtomicBool,
}

#[derive(Debug, Default)]
struct State {
    listeners: Vec<Listener>,
    strangers: Vec<(String, Session)>,
    endpoints: Vec<Endpoint>,
    /// Links that a worker may still use. They are unmapped here, not on the worker.
    retired: Vec<Arc<Link>>,
    next_key: u64,
    /// Accepting failed: the listeners rest for a beat.
    resting: bool,
}

impl Control {
    /// Starts the thread.
    pub fn start() -> io::Result<Self> {
        let shared = Arc::new(Shared {
            state: Mutex::default(),
            wake: Arc::new(EventFd::new()?),
            doorbell: Arc::new(Doorbell::new()?),
            arrivals: Arrivals::new()?,
            stop: AtomicBool::new(false),
        });
        let own = shared.clone();
        let thread = thread::Builder::new()
            .name("memif".to_owned())
            .spawn(move || own.run())?;
        Ok(Self {
            shared,
            thread: Some(thread),
        })
    }

    /// Adds an interface: the handle that keeps it, and one port for each of its queues. It
    /// connects, and connects again, by itself.
    ///
    /// # Errors
    /// Values out of range, a socket that another process listens on, an id that is taken.
    pub fn add(&self, config: Config) -> Result<(Interface, Vec<Queue>), Error> {
        config.check()?;
        let mut slots = Vec::new();
        let mut queues = Vec::new();
        for index in 0..config.queues {
            let slot = Arc::new(LinkSlot::new(
                self.shared.wake.clone(),
                self.shared.doorbell.clone(),
            )?);
            slots.push(slot.clone());
            queues.push(Queue::new(format!("{}/{index}", config.name), slot)?);
        }
        let mut state = self.shared.lock();
        let same = |e: &Endpoint| {
            (&e.config.socket, e.config.id, e.config.role)
                == (&config.socket, config.id, config.role)
        };
        if state.endpoints.iter().any(same) {
            let Config { socket, id, .. } = config;
            return Err(Error::DuplicateId { socket, id });
        }
        if config.role == Role::Server && !state.listeners.iter().any(|l| l.path() == config.socket)
        {
            state.listeners.push(Listener::bind(&config.socket)?);
        }
        if config.role == Role::Client {
            self.shared.arrivals.watch(&config.socket);
        }
        let key = state.next_key;
        state.next_key += 1;
        state.endpoints.push(Endpoint::new(key, config, slots));
        drop(state);
        self.shared.wake.signal();
        let shared = self.shared.clone();
        Ok((Interface { shared, key }, queues))
    }
}

impl Drop for Control {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Release);
        self.shared.wake.signal();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Interface {
    /// Its state now.
    pub fn status(&self) -> Status {
        let state = self.shared.lock();
        let endpoint = state.endpoints.iter().find(|e| e.key == self.key);
        endpoint.map(|e| e.status.clone()).unwrap_or_default()
    }

    /// A client's next attempt is `pause` away, if its server's socket does not appear before.
    #[cfg(test)]
    pub(super) fn rest(&self, pause: Duration) {
        let mut state = self.shared.lock();
        for endpoint in state.endpoints.iter_mut().filter(|e| e.key == self.key) {
            endpoint.retry = Retry::new(Instant::now() + pause);
        }
    }
}

impl Drop for Interface {
    fn drop(&mut self) {
        let mut guard = self.shared.lock();
        let state = &mut *guard;
        if let Some(index) = state.endpoints.iter().position(|e| e.key == self.key) {
            let mut endpoint = state.endpoints.swap_remove(index);
            endpoint.end("interface removed", &mut state.retired);
        }
        let endpoints = &state.endpoints;
        let listeners = &mut state.listeners;
        listeners.retain(|l| endpoints.iter().any(|e| e.serves(l.path())));
        drop(guard);
        self.shared.wake.signal();
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(|e| e.into_inner())
    }

    fn run(&self) {
        while !self.stop.load(Ordering::Acquire) {
            let (mut fds, timeout) = self.lock().watch();
            fds.push(pollfd(&*self.wake, libc::POLLIN));
            fds.push(pollfd(&self.arrivals, libc::POLLIN));
            if poll(&mut fds, timeout) {
                self.wake.clear();
            }
            self.lock().turn(Instant::now(), &self.arrivals);
        }
        let mut state = self.lock();
        let State {
            endpoints, retired, ..
        } = &mut *state;
        for endpoint in endpoints {
            endpoint.end("shutting down", retired);
        }
        state.listeners.clear();
    }
}

impl State {
    /// Descriptors to wait for, and the longest time to wait.
    fn watch(&self) -> (Vec<libc::pollfd>, Option<Duration>) {
        let mut fds = Vec::new();
        let mut timed = self.resting || !self.retired.is_empty() || !self.strangers.is_empty();
        let (now, mut retry) = (Instant::now(), None);
        // A listener that cannot be accepted from for now would wake us without end.
        if !self.resting {
            fds.extend(self.listeners.iter().map(|l| pollfd(l, libc::POLLIN)));
        }
        fds.extend(self.strangers.iter().map(|(_, s)| pollfd(s, libc::POLLIN)));
        for endpoint in &self.endpoints {
            match &endpoint.phase {
                Phase::Waiting if endpoint.config.role == Role::Client => {
                    let left = endpoint.retry.left(now);
                    retry = Some(retry.map_or(left, |least: Duration| least.min(left)));
                }
                Phase::Waiting => {}
                Phase::Handshake(session) => {
                    timed = true;
                    fds.push(pollfd(session, libc::POLLIN));
                }
                Phase::Up(session) => fds.push(pollfd(session, libc::POLLIN)),
            }
        }
        (fds, retry.into_iter().chain(timed.then_some(BEAT)).min())
    }

    /// Looks after everything once.
    fn turn(&mut self, now: Instant, arrivals: &Arrivals) {
        self.accept();
        self.meet(now);
        let names = arrivals.names();
        for endpoint in &mut self.endpoints {
            if is_among(&endpoint.config.socket, &names) {
                endpoint.retry.arrived(now);
            }
            endpoint.turn(now, arrivals, &mut self.retired);
        }
        // The last one to hold a link unmaps memory, which takes long: that is never a worker.
        self.retired.retain(|link| Arc::strong_count(link) > 1);
    }

    fn accept(&mut self) {
        self.resting = false;
        for listener in &self.listeners {
            let path = listener.path();
            let queues = offered(&self.endpoints, path);
            for _ in 0..MAX_ACCEPTED {
                let channel = match listener.accept() {
                    Ok(Some(channel)) => channel,
                    Ok(None) => break,
                    // Too many open files: passes, or comes again at the next turn.
                    Err(_) => {
                        self.resting = true;
                        break;
                    }
                };
                let Ok(session) = Session::with_client(channel, queues) else {
                    continue;
                };
                let all = self.strangers.iter().enumerate();
                let here: Vec<usize> = all
                    .filter(|(_, (p, _))| p == path)
                    .map(|(i, _)| i)
                    .collect();
                // They are in order of arrival, so that the first is the oldest.
                if here.len() == MAX_STRANGERS {
                    let (_, oldest) = self.strangers.remove(here[0]);
                    refuse(&mut self.endpoints, path, None, &oldest, "too many clients");
                }
                self.strangers.push((path.to_owned(), session));
            }
        }
    }

    /// Hears what the strangers want and hands each to its interface.
    fn meet(&mut self, now: Instant) {
        for (path, session) in std::mem::take(&mut self.strangers) {
            match session.receive() {
                Ok(None) if now < session.deadline => self.strangers.push((path, session)),
                Ok(None) => refuse(
                    &mut self.endpoints,
                    &path,
                    None,
                    &session,
                    handshake::TOO_SLOW,
                ),
                Ok(Some((message, _))) => self.introduce(&path, session, &message),
                // It only looked whether somebody listens.
                Err(reason) if reason == handshake::CLOSED => {}
                Err(reason) => refuse(&mut self.endpoints, &path, None, &session, &reason),
            }
        }
    }

    fn introduce(&mut self, path: &str, mut session: Session, message: &Message) {
        let Message::Init(init) = message else {
            return refuse(
                &mut self.endpoints,
                path,
                None,
                &session,
                handshake::UNEXPECTED,
            );
        };
        session.peer.clone_from(&init.name);
        let wanted = |e: &&mut Endpoint| e.serves(path) && e.config.id == init.id;
        let refusal = match self.endpoints.iter_mut().find(wanted) {
            None => {
                let reason = format!("no interface has id {}", init.id);
                return refuse(&mut self.endpoints, path, None, &session, &reason);
            }
            Some(e) if !matches!(e.phase, Phase::Waiting) => "already connected".to_owned(),
            Some(endpoint) => match session.admit(&endpoint.config, init) {
                Ok(()) => {
                    endpoint.phase = Phase::Handshake(session);
                    return;
                }
                Err(reason) => reason,
            },
        };
        refuse(&mut self.endpoints, path, Some(init.id), &session, &refusal);
    }
}

/// Sends a client away, and notes why at the interface that it wanted, or at all interfaces of the
/// socket.
fn refuse(
    endpoints: &mut [Endpoint],
    path: &str,
    id: Option<u32>,
    session: &Session,
    reason: &str,
) {
    session.part(reason);
    for endpoint in endpoints.iter_mut().filter(|e| e.serves(path)) {
        if id.is_none_or(|id| id == endpoint.config.id) {
            endpoint.status.reason = session.blame(reason);
        }
    }
}

/// Queues that clients of a socket are offered, before it is known which interface they want: as
/// many as every interface there has.
fn offered(endpoints: &[Endpoint], path: &str) -> u16 {
    let served = endpoints.iter().filter(|e| e.serves(path));
    served.map(|e| e.config.queues).min().unwrap_or(1)
}
