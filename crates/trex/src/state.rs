//! What the server knows: the session, and beside it what T-Rex's clients ask about.

use std::collections::BTreeMap;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::time::Instant;

use loadgen::model::load::Load;
use loadgen::model::profile;
use loadgen::model::stream::{Stream, base_rates};
use loadgen::model::units::{Bits, Pps};
use serde_json::{Value, json};
use session::{Link, LinkState, Session, State as Activity};
use wire::eth::Mac;

use crate::events::{Event, Sessions};
use crate::rates::Rates;
use crate::rpc::Refusal;

/// Streams of a port at most, and bytes of their text.
pub const MAX_STREAMS: usize = 4096;
pub const MAX_TEXT: usize = 16 << 20;

/// What clients are told of a port of the session.
#[derive(Debug, Clone)]
pub struct PortFacts {
    /// Its kind, in place of a driver.
    pub driver: String,
    /// What it is, for people.
    pub description: String,
    /// Number of the port that receives what this one sends.
    pub receiver: usize,
    /// Line rate on layer 1.
    pub line: Option<Bits>,
    /// Its Ethernet address.
    pub mac: Mac,
    /// Destination of its packets, until a client sets another one, where a profile keeps none.
    pub destination: Mac,
    /// Whether it takes every packet, whatever its destination, without being told to.
    pub takes_all: bool,
    /// Its network device, if it has one.
    pub link: Option<Link>,
}

/// All that there is, behind one lock.
pub struct State {
    pub session: Session,
    pub ports: Vec<Port>,
    pub sessions: Sessions,
    pub rates: Rates,
    /// What `api_sync_v2` gives, and every other request has to have.
    pub api_handler: String,
    pub begun: Instant,
}

/// A port as clients see it.
pub struct Port {
    pub facts: PortFacts,
    pub owner: Option<Owner>,
    /// The streams' objects as JSON, by number.
    pub streams: BTreeMap<u32, String>,
    /// Streams of a profile, in place of those.
    pub loaded: Vec<Stream>,
    /// What the session has of them; None if they have changed since.
    pub set: Option<Profile>,
    /// Whether it runs, as far as clients have been told.
    pub runs: bool,
    /// What its device is like, as far as clients have been told.
    pub link: LinkState,
    /// Destination of packets whose profile names none.
    pub destination: Mac,
    /// Counts the sets of streams: with each, counters of groups begin at 0.
    pub version: u64,
}

/// Streams as the session has them.
pub struct Profile {
    pub streams: Vec<(Stream, Pps)>,
    pub load: Load,
    /// The rate of the latest start or update.
    pub rate: Pps,
}

/// Who has acquired a port.
#[derive(Debug, Clone)]
pub struct Owner {
    pub user: String,
    pub session_id: u64,
    /// What proves it.
    pub handler: String,
}

impl State {
    pub fn new(session: Session, facts: Vec<PortFacts>, sessions: Sessions) -> Self {
        let port = |facts: PortFacts| Port {
            destination: facts.destination,
            facts,
            owner: None,
            streams: BTreeMap::new(),
            loaded: Vec::new(),
            set: None,
            runs: false,
            link: LinkState::Up,
            version: 0,
        };
        Self {
            rates: Rates::new(facts.len()),
            ports: facts.into_iter().map(port).collect(),
            session,
            sessions,
            api_handler: handler(),
            begun: Instant::now(),
        }
    }

    /// What a port of the session is doing.
    pub fn activity(&self, port: usize) -> Activity {
        self.session.state(port).unwrap_or(Activity::Idle)
    }

    /// The key of a port's owner with the session.
    pub fn key(&self, port: usize) -> String {
        let owner = self.ports[port].owner.as_ref();
        owner.map(|owner| owner.handler.clone()).unwrap_or_default()
    }

    /// Gives the session a port's streams, if it does not have them.
    pub fn set(&mut self, port: usize) -> Result<&mut Profile, Refusal> {
        if self.ports[port].set.is_none() {
            let streams = self.ports[port].compile(port)?;
            let line = self.ports[port].facts.line;
            let rates = base_rates(&streams, line);
            let rates = rates.ok_or(session::Error::NoLine(port))?;
            let plain = streams.clone();
            let streams: Vec<_> = streams.into_iter().zip(rates).collect();
            let load = Load::of(&streams).ok_or(session::Error::NoStreams(port))?;
            let key = self.key(port);
            self.session.set_streams(port, &key, plain)?;
            let this = &mut self.ports[port];
            this.version += 1;
            this.set = Some(Profile {
                streams,
                load,
                rate: Pps(0.0),
            });
        }
        let set = self.ports[port].set.as_mut();
        set.ok_or(session::Error::NoStreams(port).into())
    }

    /// Gives a port that is stopped and has none the streams of a profile, not yet addressed.
    pub fn load(&mut self, port: usize, streams: Vec<Stream>) -> Result<(), Refusal> {
        let ports = self.ports.len();
        let this = self.ports.get_mut(port);
        let this = this.ok_or(session::Error::NoPort { port, ports })?;
        this.loaded = streams;
        this.set = None;
        Ok(())
    }

    /// Tells clients of ports that have sent everything, and of those whose device has changed. One
    /// that sends is stopped when its device is lost.
    pub fn watch(&mut self) {
        for port in 0..self.ports.len() {
            self.watch_link(port);
            if self.ports[port].runs && !self.activity(port).runs() {
                self.ports[port].runs = false;
                self.tell_of_port(Event::JobDone, port);
                self.tell_of_port(Event::ProfileFinished, port);
            }
        }
        let sets = self.ports.iter().filter_map(|port| port.set.as_ref());
        let mut streams = sets.flat_map(|set| &set.streams);
        let has_groups = streams.any(|(stream, _)| stream.mark.is_some());
        self.rates.sample(Instant::now(), &self.session, has_groups);
    }

    fn watch_link(&mut self, port: usize) {
        let this = &mut self.ports[port];
        let now = this.link_state();
        if std::mem::replace(&mut this.link, now) == now {
            return;
        }
        if now != LinkState::Up && std::mem::take(&mut this.runs) {
            let key = self.key(port);
            // Without its device, it sends nothing whether its thread can say so or not.
            let _ = self.session.stop(port, &key);
            self.tell_of_port(Event::Stopped, port);
            self.tell_of_port(Event::ProfileStopped, port);
            self.tell_of_port(Event::Failed, port);
            self.tell_of_port(Event::ProfileFailed, port);
        }
        self.tell_attributes(port);
    }

    /// Tells all clients that attributes of a port have changed.
    pub fn tell_attributes(&mut self, port: usize) {
        let data = json!({"port_id": port, "attr": self.ports[port].attributes()});
        self.sessions.tell(Event::AttributesChanged, &data);
    }

    pub fn tell_of_port(&mut self, event: Event, port: usize) {
        let data = match event.is_of_profile() {
            true => json!({"port_id": port, "profile_id": PROFILE}),
            false => json!({"port_id": port}),
        };
        self.sessions.tell(event, &data);
    }
}

/// The one profile of a port.
pub const PROFILE: &str = "_";

impl Port {
    /// Its streams in the load tester's terms, addressed.
    fn compile(&self, number: usize) -> Result<Vec<Stream>, Refusal> {
        if self.has_none() {
            return Err(session::Error::NoStreams(number).into());
        }
        let all: Vec<&str> = self.streams.values().map(String::as_str).collect();
        let mut streams = match all.is_empty() {
            true => self.loaded.clone(),
            false => compile(&format!("of port {number}"), &all)?,
        };
        let source = self.facts.mac.0;
        let destination = self.destination.0;
        streams
            .iter_mut()
            .for_each(|stream| stream.address(source, destination));
        Ok(streams)
    }

    /// What its device is like; a port without one has nothing to lose.
    pub fn link_state(&self) -> LinkState {
        let link = self.facts.link.as_ref();
        link.map_or(LinkState::Up, Link::state)
    }

    /// Its attributes as clients read them.
    pub fn attributes(&self) -> Value {
        let (mac, destination) = (self.facts.mac, self.destination);
        json!({
            "promiscuous": {"enabled": self.facts.takes_all},
            "multicast": {"enabled": self.facts.takes_all},
            "link": {"up": self.link_state() == LinkState::Up},
            "speed": self.facts.line.map_or(0.0, |line| line.0 / 1e9),
            "rx_filter_mode": "hw",
            "vxlan_fs": [],
            "fc": {"mode": 0},
            "layer_cfg": {
                "ether": {
                    "src": mac.to_string(),
                    "dst": destination.to_string(),
                    "state": "configured",
                },
                "ipv4": {"state": "none"},
                "ipv6": {"enabled": false},
            },
            "vlan": {"tags": []},
        })
    }

    /// Whether it has no streams.
    pub fn has_none(&self) -> bool {
        self.streams.is_empty() && self.loaded.is_empty()
    }

    /// Bytes of its streams' text.
    pub fn text(&self) -> usize {
        self.streams.values().map(String::len).sum()
    }
}

/// Reads the texts of streams.
pub fn compile(name: &str, streams: &[&str]) -> Result<Vec<Stream>, Refusal> {
    let text = format!("[{}]", streams.join(","));
    profile::parse(name, &text).map_err(|why| Refusal::Failed(why.to_string()))
}

/// A stream by itself: whatever starts it and whatever it starts.
pub fn alone(stream: &Value) -> Value {
    let mut stream = stream.clone();
    stream["next_stream_id"] = json!(-1);
    stream["next"] = Value::Null;
    stream["self_start"] = json!(true);
    stream["enabled"] = json!(true);
    stream
}

/// Eight letters that nobody guesses.
pub fn handler() -> String {
    let mut random = RandomState::new().build_hasher().finish();
    let mut letter = || {
        let letters = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
        let place = random % letters.len() as u64;
        random /= letters.len() as u64;
        char::from(letters[usize::try_from(place).unwrap_or(0)])
    };
    (0..8).map(|_| letter()).collect()
}
