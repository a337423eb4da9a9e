//! A running router.

use std::collections::HashMap;
use std::io;
use std::path::Path;
use std::sync::Arc;

use watch::model::{Interface, Snapshot};
use watch::sample::{InterfaceRates, Sample};
use watch::{Live, Watch};

use super::table::{Cell, Look, Row, Table, column, wide};

/// Bytes of a frame that are on the wire and that the router does not count: frame check sequence,
/// preamble and gap.
const NOT_COUNTED: f64 = 24.0;

pub const TABLES: &[Table] = &[
    Table {
        name: "Interfaces",
        caption: "packets/s; bits/s on layer 2 (without check sequence) and layer 1 (+24 B a frame)",
        columns: &[
            column("interface", 16),
            column("state", 6),
            column("rx pps", 7),
            column("tx pps", 7),
            column("rx L2", 6),
            column("tx L2", 6),
            column("rx L1", 6),
            column("tx L1", 6),
            column("drop/s", 7),
            wide(100, "tx err/s", 8),
            wide(110, "rx packets", 13),
            wide(120, "tx packets", 13),
            wide(130, "drops", 13),
            wide(140, "tx errors", 13),
            wide(160, "device", 20),
        ],
        graphs: &[2, 3],
    },
    Table {
        name: "Drops",
        caption: "packets that ended at a node; info: they were dealt with in another way",
        columns: &[
            column("/s", 7),
            column("packets", 10),
            column("kind", 5),
            column("node", 17),
            column("reason", 0),
        ],
        graphs: &[0],
    },
    Table {
        name: "Workers",
        caption: "work: share of time with packets; cycles: of all nodes for each packet received",
        columns: &[
            column("worker", 14),
            column("cpu", 4),
            column("work", 7),
            column("busy rounds", 11),
            column("rx pps", 7),
            column("packets/call", 12),
            column("cycles/packet", 13),
            wide(90, "state", 8),
        ],
        graphs: &[2, 4],
    },
    Table {
        name: "Nodes",
        caption: "of the last second; fused nodes have their cycles in the first one's row",
        columns: &[
            column("worker", 12),
            column("node", 24),
            column("pps", 7),
            column("packets/call", 12),
            column("cycles/packet", 13),
            wide(100, "packets", 13),
            wide(120, "calls", 13),
        ],
        graphs: &[2, 4],
    },
];

/// The router, watched.
pub struct Router {
    pub name: String,
    _watch: Watch,
    live: Arc<Live>,
    shown: Option<Result<Arc<Snapshot>, String>>,
}

impl Router {
    pub fn start(socket: &Path) -> io::Result<Self> {
        let watch = Watch::start(socket.to_owned(), 1)?;
        Ok(Self {
            name: socket.display().to_string(),
            live: watch.live(),
            _watch: watch,
            shown: None,
        })
    }

    pub fn fresh(&mut self) -> Option<Result<Look, String>> {
        let now = self.live.latest()?;
        let is_shown = match (&now, &self.shown) {
            (Ok((now, _)), Some(Ok(shown))) => Arc::ptr_eq(now, shown),
            (Err(now), Some(Err(shown))) => now == shown,
            _ => false,
        };
        if is_shown {
            return None;
        }
        self.shown = Some(now.clone().map(|(snapshot, _)| snapshot));
        Some(now.map(|(snapshot, sample)| look(&snapshot, sample.as_deref())))
    }
}

/// The tables of a router; at the first look there are no rates yet.
pub fn look(now: &Snapshot, sample: Option<&Sample>) -> Look {
    let none = Sample::default();
    let sample = sample.unwrap_or(&none);
    let warnings = now.warnings.len();
    Look {
        about: now.version.version.clone(),
        note: now.warnings.first().map(|first| {
            let first = first.lines().next().unwrap_or_default();
            let plural = if warnings == 1 { "" } else { "s" };
            format!("{warnings} warning{plural} (`parshall show warnings`): {first}")
        }),
        rows: vec![
            interfaces(now, sample),
            drops(now, sample),
            workers(now, sample),
            nodes(now),
        ],
    }
}

fn interfaces(now: &Snapshot, sample: &Sample) -> Vec<Row> {
    let rates: HashMap<&str, &InterfaceRates> = sample
        .interfaces
        .iter()
        .map(|rates| (rates.name.as_str(), rates))
        .collect();
    let row = |interface: &Interface| {
        let rates = rates.get(interface.name.as_str()).copied();
        let rate = |of: fn(&InterfaceRates) -> f64| Cell::number(rates.map(of));
        let l1 = |bps: f64, pps: f64| bps + pps * NOT_COUNTED * 8.0;
        let state = match (&interface.absent, interface.up) {
            (Some(_), _) => "absent",
            (None, true) => "up",
            (None, false) => "down",
        };
        Row {
            key: interface.name.clone(),
            cells: vec![
                Cell::text(&interface.name),
                Cell::text(state),
                rate(|r| r.rx_pps),
                rate(|r| r.tx_pps),
                rate(|r| r.rx_bps),
                rate(|r| r.tx_bps),
                Cell::number(rates.map(|r| l1(r.rx_bps, r.rx_pps))),
                Cell::number(rates.map(|r| l1(r.tx_bps, r.tx_pps))),
                rate(|r| r.drop_pps),
                rate(|r| r.tx_error_pps),
                Cell::count(interface.rx_packets),
                Cell::count(interface.tx_packets),
                Cell::count(interface.drops),
                Cell::count(interface.tx_errors),
                Cell::text(interface.absent.as_deref().unwrap_or_default()),
            ],
        }
    };
    now.interfaces.iter().map(row).collect()
}

/// What is lost now before what was lost.
fn drops(now: &Snapshot, sample: &Sample) -> Vec<Row> {
    let known = sample
        .errors
        .iter()
        .map(|loss| ((&loss.node, &loss.reason), loss.pps));
    let rates: HashMap<_, f64> = known.collect();
    let mut rows: Vec<Row> = now
        .errors
        .iter()
        .map(|loss| Row {
            key: format!("{}: {}", loss.node, loss.reason),
            cells: vec![
                Cell::number(rates.get(&(&loss.node, &loss.reason)).copied()),
                Cell::Count(loss.count),
                Cell::text(if loss.severity == "error" {
                    "lost"
                } else {
                    "info"
                }),
                Cell::text(&loss.node),
                Cell::text(&loss.reason),
            ],
        })
        .collect();
    rows.sort_by(|one, other| one.cells[0].compare(&other.cells[0]));
    rows
}

fn workers(now: &Snapshot, sample: &Sample) -> Vec<Row> {
    let row = |thread: &watch::model::Thread| {
        let worker = now.workers.iter().find(|worker| worker.name == thread.name);
        let cpu = worker.and_then(|worker| worker.cpu);
        let load = sample.workers.iter().find(|load| load.name == thread.name);
        Row {
            key: thread.name.clone(),
            cells: vec![
                Cell::text(&thread.name),
                cpu.map_or(Cell::Absent, Cell::text),
                load.map_or(Cell::Absent, |load| Cell::Share(load.work)),
                load.map_or(Cell::Absent, |load| Cell::Share(load.busy)),
                Cell::number(load.map(|load| load.rx_pps)),
                Cell::number(load.and_then(|load| load.vectors_per_call)),
                Cell::number(load.and_then(|load| load.cycles_per_packet)),
                Cell::text(if thread.alive { "running" } else { "stopped" }),
            ],
        }
    };
    now.threads.iter().map(row).collect()
}

/// What has most packets first.
fn nodes(now: &Snapshot) -> Vec<Row> {
    let workers = now.workers.iter();
    let all = workers.flat_map(|worker| worker.nodes.iter().map(move |node| (worker, node)));
    let mut rows: Vec<Row> = all
        .map(|(worker, node)| {
            let rate = node.rate.as_ref();
            Row {
                key: format!("{} {}", worker.name, node.name),
                cells: vec![
                    Cell::text(&worker.name),
                    Cell::text(&node.name),
                    Cell::number(rate.map(|rate| rate.pps)),
                    Cell::number(rate.and_then(|rate| rate.vectors_per_call)),
                    Cell::number(rate.and_then(|rate| rate.cycles_per_packet)),
                    Cell::Count(node.vectors),
                    Cell::Count(node.calls),
                ],
            }
        })
        .collect();
    rows.sort_by(|one, other| one.cells[2].compare(&other.cells[2]));
    rows
}
