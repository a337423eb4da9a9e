//! The commands in this process, without a server.

use std::fmt::Write;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use kernel::event::{EventFd, poll, pollfd};
use loadgen::model::stream::Stream;
use serde_json::{Value, json};
use session::Session;

use crate::commands;
use crate::events::Sessions;
use crate::rpc::{Params, Refusal};
use crate::state::{PortFacts, State};
use crate::zmtp::Publisher;

/// How often to see whether a port has sent everything.
const LOOK: Duration = Duration::from_millis(50);

/// A session whose ports are driven by the commands of T-Rex's RPC. Dropping it stops all ports and
/// closes them.
pub struct Local {
    state: Arc<Mutex<State>>,
    stop: Arc<EventFd>,
    watcher: Option<JoinHandle<()>>,
}

impl Local {
    /// Takes the ports of a session, described in their order.
    ///
    /// # Errors
    /// A thread cannot be started.
    pub fn start(session: Session, facts: Vec<PortFacts>) -> io::Result<Self> {
        Self::with(session, facts, Publisher::new(b"{}"))
    }

    /// As [`start`](Self::start), with the voice that wakes clients.
    pub(crate) fn with(
        session: Session,
        facts: Vec<PortFacts>,
        voice: Publisher,
    ) -> io::Result<Self> {
        let state = State::new(session, facts, Sessions::new(voice));
        let state = Arc::new(Mutex::new(state));
        let stop = Arc::new(EventFd::new()?);
        let (watched, stopped) = (state.clone(), stop.clone());
        let watch = move || {
            while !poll(&mut [pollfd(&*stopped, libc::POLLIN)], Some(LOOK)) {
                lock(&watched).watch();
            }
        };
        let watcher = thread::Builder::new()
            .name("trex-watch".into())
            .spawn(watch)?;
        Ok(Self {
            state,
            stop,
            watcher: Some(watcher),
        })
    }

    /// What a method with these parameters answers. It needs no `api_h`.
    ///
    /// # Errors
    /// As the RPC refuses it.
    pub fn ask(&self, method: &str, params: Value) -> Result<Value, Refusal> {
        let mut state = lock(&self.state);
        let mut params: Params = match params {
            Value::Object(params) => params,
            _ => Params::new(),
        };
        params.insert("api_h".to_owned(), json!(state.api_handler));
        commands::run(&mut state, method, &params)
    }

    /// Replaces the streams of a port by those of a profile, which are not yet addressed.
    ///
    /// # Errors
    /// As `add_stream` is refused: the port is not the handler's, or runs.
    pub fn load(&self, port: usize, handler: &str, streams: Vec<Stream>) -> Result<(), Refusal> {
        self.ask(
            "remove_all_streams",
            json!({"port_id": port, "handler": handler}),
        )?;
        lock(&self.state).load(port, streams)
    }

    /// The streams of ports that a profile gave them, as text.
    pub fn streams(&self, ports: &[usize]) -> String {
        let state = lock(&self.state);
        let mut text = format!("{:<6}{:<24}{:>8}  mode\n", "port", "stream", "bytes");
        for port in ports {
            let streams = state.ports.get(*port).map(|port| &port.loaded);
            for stream in streams.into_iter().flatten() {
                let (name, bytes) = (&stream.name, stream.packet.len());
                let _ = writeln!(text, "{port:<6}{name:<24}{bytes:>8}  {:?}", stream.mode);
            }
        }
        text
    }

    /// What became of a port's device; None while all are up.
    pub fn fault(&self) -> Option<String> {
        let state = lock(&self.state);
        let mut links = state.ports.iter().filter_map(|p| p.facts.link.as_ref());
        links.find_map(session::Link::fault)
    }

    /// What answers requests.
    pub(crate) fn answerer(&self) -> impl Fn(&str, &Params) -> Result<Value, Refusal> + use<> {
        let state = self.state.clone();
        move |method, params| commands::run(&mut lock(&state), method, params)
    }
}

impl Drop for Local {
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
