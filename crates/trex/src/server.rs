//! The server: a socket that answers, one that wakes, and a look at the ports now and then.

use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use kernel::event::{EventFd, poll, pollfd};
use session::Session;

use crate::commands;
use crate::events::Sessions;
use crate::rpc;
use crate::state::{PortFacts, State};
use crate::zmtp::{Limits, Listener, Publisher, publisher, replier};

/// How often to see whether a port has sent everything.
const LOOK: Duration = Duration::from_millis(50);

/// Where to listen. Nobody has to say who he is: only those who may do everything should be able
/// to connect.
#[derive(Debug, Clone, Copy)]
pub struct Addresses {
    /// For requests; T-Rex's port is 4501.
    pub requests: SocketAddr,
    /// For events; T-Rex's port is 4500.
    pub events: SocketAddr,
}

/// A running server. Dropping it ends its connections, stops all ports and closes them.
pub struct Server {
    requests: Listener,
    events: Listener,
    stop: Arc<EventFd>,
    watcher: Option<JoinHandle<()>>,
}

impl Server {
    /// Serves the ports of a session, described in their order.
    ///
    /// # Errors
    /// An address cannot be had, or a thread cannot be started.
    pub fn start(
        session: Session,
        facts: Vec<PortFacts>,
        addresses: Addresses,
        limits: Limits,
    ) -> io::Result<Self> {
        let voice = Publisher::new(b"{}");
        let sessions = Sessions::new(voice.clone());
        let state = Arc::new(Mutex::new(State::new(session, facts, sessions)));
        let asked = state.clone();
        let answer = move |message: &[u8]| {
            let until = Instant::now() + limits.patience;
            rpc::answer(message, until, &mut |method, params| {
                commands::run(&mut lock(&asked), method, params)
            })
        };
        let requests = Listener::start(addresses.requests, limits, replier(Arc::new(answer)))?;
        let events = Listener::start(addresses.events, limits, publisher(voice))?;
        let stop = Arc::new(EventFd::new()?);
        let stopped = stop.clone();
        let watch = move || {
            while !poll(&mut [pollfd(&*stopped, libc::POLLIN)], Some(LOOK)) {
                lock(&state).watch();
            }
        };
        let watcher = thread::Builder::new()
            .name("trex-watch".into())
            .spawn(watch)?;
        Ok(Self {
            requests,
            events,
            stop,
            watcher: Some(watcher),
        })
    }

    /// Where it listens.
    pub fn addresses(&self) -> Addresses {
        Addresses {
            requests: self.requests.address(),
            events: self.events.address(),
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop.signal();
        if let Some(watcher) = self.watcher.take() {
            let _ = watcher.join();
        }
    }
}

/// What a command left behind that failed is whole: the session changes last.
fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}
