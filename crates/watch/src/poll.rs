//! The thread that asks the router once a second.

use std::io;
use std::iter;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use control::api::{Client, Failure, Output};
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::live::Live;
use crate::model::{
    Bridges, Errors, FlowTables, Graph, Interfaces, Runtime, Snapshot, Threads, Version, Warnings,
};
use crate::sample::{self, Sample};

/// Time between two looks.
pub const PERIOD: Duration = Duration::from_secs(1);
/// Looks from one at hardware and settings to the next: for these the router asks the kernel about
/// every device.
const SELDOM: u32 = 10;

/// Looks at a router until this is dropped. The router need not run.
#[derive(Debug)]
pub struct Watch {
    live: Arc<Live>,
    /// Its thread ends when this is dropped.
    _stop: Sender<()>,
}

impl Watch {
    /// Begins to ask the router whose control socket is at `socket`, once a second, and keeps so
    /// many samples.
    ///
    /// # Errors
    /// The system has no thread.
    pub fn start(socket: PathBuf, samples: usize) -> io::Result<Watch> {
        let live = Arc::new(Live::keeping(samples));
        let (stop, stopped) = mpsc::channel();
        let asked = live.clone();
        let thread = thread::Builder::new().name("watch".into());
        thread.spawn(move || run(socket, &asked, &stopped))?;
        Ok(Watch { live, _stop: stop })
    }

    /// What is known so far.
    pub fn live(&self) -> Arc<Live> {
        self.live.clone()
    }
}

/// Asks until the other end of `stop` is dropped.
fn run(socket: PathBuf, live: &Live, stop: &Receiver<()>) {
    let mut poll = Poll {
        socket,
        client: None,
        seldom: Seldom::default(),
        last: None,
    };
    loop {
        let started = Instant::now();
        poll.look(live);
        let rest = PERIOD.saturating_sub(started.elapsed());
        if stop.recv_timeout(rest) != Err(RecvTimeoutError::Timeout) {
            return;
        }
    }
}

struct Poll {
    socket: PathBuf,
    client: Option<Client>,
    seldom: Seldom,
    /// The last look, and when it was.
    last: Option<(Instant, Snapshot)>,
}

/// What changes seldom.
#[derive(Default)]
struct Seldom {
    age: u32,
    version: Version,
    hardware: Value,
    warnings: Vec<String>,
}

impl Poll {
    fn look(&mut self, live: &Live) {
        let mut now = match self.ask() {
            Ok(now) => now,
            Err(failure) => {
                (self.client, self.last) = (None, None);
                return live.set(Err(failure.to_string()), None);
            }
        };
        let at = Instant::now();
        let mut sample = None;
        if let Some((before_at, before)) = &self.last {
            let seconds = at.duration_since(*before_at).as_secs_f64();
            let time = SystemTime::now().duration_since(UNIX_EPOCH);
            let time = time.map_or(0.0, |time| time.as_secs_f64());
            sample::set_rates(before, &mut now, seconds);
            sample = Some(Sample::between(before, &now, seconds, time));
        }
        self.last = Some((at, now.clone()));
        live.set(Ok(now), sample);
    }

    fn ask(&mut self) -> Result<Snapshot, Failure> {
        let is_new = self.client.is_none();
        let client = match &mut self.client {
            Some(client) => client,
            none => none.insert(Client::connect(&self.socket)?),
        };
        let mut ask = Ask {
            client,
            socket: &self.socket,
        };
        let seldom = &mut self.seldom;
        if is_new || seldom.age >= SELDOM {
            *seldom = Seldom {
                age: 0,
                version: ask.show("version")?,
                hardware: ask.show("hardware")?,
                warnings: ask.show::<Warnings>("warnings")?.warnings,
            };
        }
        seldom.age += 1;
        Ok(Snapshot {
            interfaces: ask.show::<Interfaces>("interface")?.interfaces,
            workers: ask.show::<Runtime>("runtime")?.threads,
            threads: ask.show::<Threads>("threads")?.threads,
            flows: ask.show::<FlowTables>("flows counters")?.workers,
            bridges: ask.show::<Bridges>("bridge-domain")?.bridge_domains,
            errors: ask.show::<Errors>("errors")?.errors,
            graph: ask.show::<Graph>("graph")?,
            version: seldom.version.clone(),
            hardware: seldom.hardware.clone(),
            warnings: seldom.warnings.clone(),
        })
    }
}

struct Ask<'a> {
    client: &'a mut Client,
    socket: &'a Path,
}

impl Ask<'_> {
    /// The answer to `show WORDS`.
    fn show<T: DeserializeOwned>(&mut self, words: &str) -> Result<T, Failure> {
        let strange = |why: String| {
            let socket = self.socket.display();
            let why = format!(
                "what answers at {socket} is no router of this version (`show {words}`: {why}); \
                 start both from one program"
            );
            Failure::Refused(why)
        };
        let command: Vec<&str> = iter::once("show").chain(words.split(' ')).collect();
        match self.client.call(&command, true)? {
            Output::Json(json) => serde_json::from_value(json).map_err(|e| strange(e.to_string())),
            Output::Text(_) => Err(strange("it is not JSON".into())),
        }
    }
}
