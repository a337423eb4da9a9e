//! A load tester that serves T-Rex's clients.

use std::io;
use std::sync::mpsc::{self, Receiver, SyncSender};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use trex::{Client, Failure};

use crate::groups::{self, numbered};

use super::table::{Cell, Look, Row, Table, column, wide};

/// Bytes of a frame that are on the wire and not counted: preamble and gap.
const NOT_COUNTED: f64 = 20.0;
/// Time between two looks.
const PERIOD: Duration = Duration::from_secs(1);
/// Looks from one at the streams themselves to the next: their packets are in the answer.
const SELDOM: u32 = 5;

pub const TABLES: &[Table] = &[
    Table {
        name: "Ports",
        caption: "packets/s; bits/s on layer 2 (with check sequence) and layer 1 (+20 B a frame)",
        columns: &[
            column("port", 5),
            column("state", 8),
            column("owner", 10),
            column("tx pps", 7),
            column("rx pps", 7),
            column("tx L2", 6),
            column("rx L2", 6),
            column("tx L1", 6),
            column("rx L1", 6),
            wide(90, "sent", 13),
            wide(105, "received", 13),
            wide(160, "device", 40),
        ],
        graphs: &[3, 4],
    },
    Table {
        name: "Streams",
        caption: "streams of a packet group (pgid) are counted together; others only by their port",
        columns: &[
            column("port", 5),
            column("stream", 6),
            column("name", 14),
            column("pgid", 5),
            column("tx pps", 7),
            column("rx pps", 7),
            column("sent", 13),
            column("received", 13),
            wide(100, "tx L2", 6),
            wide(100, "rx L2", 6),
        ],
        graphs: &[4, 5],
    },
    Table {
        name: "Latency",
        caption: "microseconds since the streams were set; of each packet group (pgid)",
        columns: &[
            column("pgid", 5),
            column("average", 9),
            column("least", 9),
            column("most", 9),
            column("jitter", 9),
            column("lost", 10),
            column("reordered", 10),
            column("duplicates", 10),
        ],
        graphs: &[1, 4],
    },
];

/// The tester, asked by a thread.
pub struct Tester {
    pub name: String,
    looks: Receiver<Result<Look, String>>,
}

impl Tester {
    pub fn start(address: &str) -> io::Result<Self> {
        let (looks, looked) = mpsc::sync_channel(1);
        let name = address.to_owned();
        let ask = move || ask(&name, &looks);
        thread::Builder::new().name("watch".into()).spawn(ask)?;
        Ok(Self {
            name: address.to_owned(),
            looks: looked,
        })
    }

    pub fn fresh(&mut self) -> Option<Result<Look, String>> {
        self.looks.try_recv().ok()
    }
}

/// Asks until nobody wants to know any more.
fn ask(address: &str, looks: &SyncSender<Result<Look, String>>) {
    let mut connected = None;
    loop {
        let started = Instant::now();
        let look = look_at(address, &mut connected);
        if look.is_err() {
            connected = None;
        }
        if looks.send(look.map_err(|why| why.to_string())).is_err() {
            return;
        }
        thread::sleep(PERIOD.saturating_sub(started.elapsed()));
    }
}

fn look_at(address: &str, connected: &mut Option<Asked>) -> Result<Look, Failure> {
    let asked = match connected {
        Some(asked) => asked,
        none => none.insert(Asked::connect(address)?),
    };
    asked.look()
}

/// The answers of a server of T-Rex's RPC.
struct Asked {
    client: Client,
    about: String,
    /// What `get_system_info` says of each port.
    ports: Vec<Value>,
    age: u32,
    /// What `get_all_streams` says of each port.
    streams: Vec<Value>,
}

impl Asked {
    fn connect(address: &str) -> Result<Self, Failure> {
        let mut client = Client::connect(address)?;
        let version = client.ask("get_version", json!({}))?;
        let info = client.ask("get_system_info", json!({}))?;
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        Ok(Self {
            client,
            about: format!(
                "{} {}",
                text(&version["built_by"]),
                text(&version["version"])
            ),
            ports: info["ports"].as_array().cloned().unwrap_or_default(),
            age: 0,
            streams: Vec::new(),
        })
    }

    fn look(&mut self) -> Result<Look, Failure> {
        let ports = 0..self.ports.len();
        let each = |client: &mut Client, method: &str| -> Result<Vec<Value>, Failure> {
            let ask = |port| client.ask(method, json!({"port_id": port, "profile_id": "*"}));
            ports.clone().map(ask).collect()
        };
        let states = each(&mut self.client, "get_port_status")?;
        let counts = each(&mut self.client, "get_port_stats")?;
        if self.age.is_multiple_of(SELDOM) {
            self.streams = each(&mut self.client, "get_all_streams")?;
        }
        self.age += 1;
        let groups = groups::all(|method, params| self.client.ask(method, params))?;
        Ok(Look {
            about: self.about.clone(),
            note: None,
            rows: vec![
                ports_of(&self.ports, &states, &counts),
                streams(&self.streams, &groups["flow_stats"]),
                latencies(&groups["latency"]),
            ],
        })
    }
}

pub fn ports_of(infos: &[Value], states: &[Value], counts: &[Value]) -> Vec<Row> {
    let rows = infos.iter().zip(states).zip(counts).enumerate();
    rows.map(|(port, ((info, state), counts))| {
        let rate = |name: &str| counts[name].as_f64().unwrap_or(0.0);
        let l1 = |way: &str| {
            let [bps, pps] = ["bps", "pps"].map(|unit| rate(&format!("m_total_{way}_{unit}")));
            Cell::Number(bps + pps * NOT_COUNTED * 8.0)
        };
        let text = |value: &Value| Cell::text(value.as_str().unwrap_or_default());
        Row {
            key: format!("port {port}"),
            cells: vec![
                Cell::text(port),
                text(&state["state"]),
                text(&state["owner"]),
                Cell::Number(rate("m_total_tx_pps")),
                Cell::Number(rate("m_total_rx_pps")),
                Cell::Number(rate("m_total_tx_bps")),
                Cell::Number(rate("m_total_rx_bps")),
                l1("tx"),
                l1("rx"),
                Cell::count(counts["opackets"].as_u64()),
                Cell::count(counts["ipackets"].as_u64()),
                text(&info["description"]),
            ],
        }
    })
    .collect()
}

/// The streams of all ports; those of a group have the group's counts.
pub fn streams(ports: &[Value], groups: &Value) -> Vec<Row> {
    let mut rows = Vec::new();
    for (port, answer) in ports.iter().enumerate() {
        let profiles = answer["profiles"].as_object().into_iter().flatten();
        let all = profiles.flat_map(|(_, streams)| streams.as_object().into_iter().flatten());
        let mut all: Vec<(u64, &Value)> = all
            .map(|(number, stream)| (number.parse().unwrap_or(u64::MAX), stream))
            .collect();
        all.sort_by_key(|(number, _)| *number);
        rows.extend(all.into_iter().map(|(number, stream)| {
            let marks = &stream["flow_stats"];
            let is_counted = marks["enabled"].as_bool() == Some(true);
            let group = marks["stream_id"].as_u64().filter(|_| is_counted);
            let counts = group.map_or(&Value::Null, |group| &groups[group.to_string()]);
            let sum = |name: &str| {
                let by_port = counts[name].as_object()?;
                Some(by_port.values().filter_map(Value::as_f64).sum::<f64>())
            };
            let count = |name: &str| Cell::count(sum(name).map(|sum| sum as u64));
            let bits = |name: &str| Cell::number(sum(name).map(|bytes| bytes * 8.0));
            Row {
                key: format!("port {port}, stream {number}"),
                cells: vec![
                    Cell::text(port),
                    Cell::text(number),
                    Cell::text(stream["name"].as_str().unwrap_or_default()),
                    group.map_or(Cell::Absent, Cell::text),
                    Cell::number(sum("tps")),
                    Cell::number(sum("rps")),
                    count("tp"),
                    count("rp"),
                    bits("tbs"),
                    bits("rbs"),
                ],
            }
        }));
    }
    rows
}

pub fn latencies(groups: &Value) -> Vec<Row> {
    numbered(groups)
        .into_iter()
        .map(|(number, group)| {
            let micros = |name: &str| Cell::number(group["lat"][name].as_f64());
            let errors = |name: &str| Cell::count(group["er"][name].as_u64());
            Row {
                key: format!("pgid {number}"),
                cells: vec![
                    Cell::text(number),
                    micros("average"),
                    micros("total_min"),
                    micros("total_max"),
                    micros("jit"),
                    errors("drp"),
                    errors("ooo"),
                    errors("dup"),
                ],
            }
        })
        .collect()
}
