//! What was counted. Nothing is cleared here: a client subtracts what there was before.

use std::collections::{BTreeMap, BTreeSet};

use loadgen::device::Count;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use session::StreamStatistics;

use super::Call;
use crate::rates::Speed;
use crate::rpc::Refusal;
use crate::state::State;

/// Share of what is sent below which a difference is not called a drop rate.
const DROPS: f64 = 0.1;

pub fn global(state: &mut State, _: &Call<'_>) -> Result<Value, Refusal> {
    state.watch();
    let rates = &state.rates.ports;
    let tx: Speed = rates.iter().map(|rate| rate.tx).sum();
    let rx: Speed = rates.iter().map(|rate| rate.rx).sum();
    let ports = state.session.port_statistics();
    let sent: Count = ports.iter().map(|port| port.sent).sum();
    let received: Count = ports.iter().map(|port| port.received).sum();
    let lost = tx.bps - rx.bps;
    let (expected_pps, expected_bps) = expected(state);
    let mut all = Map::from_iter(
        [
            ("m_tx_bps", json!(tx.bps)),
            ("m_tx_pps", json!(tx.pps)),
            ("m_rx_bps", json!(rx.bps)),
            ("m_rx_pps", json!(rx.pps)),
            (
                "m_rx_drop_bps",
                json!(if lost < tx.bps * DROPS { 0.0 } else { lost }),
            ),
            ("m_tx_expected_pps", json!(expected_pps)),
            ("m_tx_expected_bps", json!(expected_bps)),
            ("m_total_tx_pkts", json!(sent.packets)),
            ("m_total_tx_bytes", json!(sent.bytes)),
            ("m_total_rx_pkts", json!(received.packets)),
            ("m_total_rx_bytes", json!(received.bytes)),
            (
                "m_total_queue_full",
                json!(ports.iter().map(|p| p.queue_full).sum::<u64>()),
            ),
            ("m_platform_factor", json!(1.0)),
        ]
        .map(|(name, value)| (name.to_owned(), value)),
    );
    // What is not measured here, or what stateless traffic has none of.
    all.extend(NOTHING.map(|name| (name.to_owned(), json!(0))));
    Ok(Value::Object(all))
}

const NOTHING: [&str; 15] = [
    "m_cpu_util",
    "m_cpu_util_raw",
    "m_bw_per_core",
    "m_rx_cpu_util",
    "m_rx_core_pps",
    "m_tx_cps",
    "m_tx_expected_cps",
    "m_active_flows",
    "m_open_flows",
    "m_total_alloc_error",
    "m_total_queue_drop",
    "m_total_clients",
    "m_total_servers",
    "m_active_sockets",
    "m_socket_util",
];

/// Packets and layer 2 bits a second of the ports that run.
fn expected(state: &State) -> (f64, f64) {
    let ports = state.ports.iter().zip(&state.rates.ports);
    let running = ports.filter(|(port, _)| port.runs);
    let sets = running.filter_map(|(port, now)| Some((port.set.as_ref()?, now.tx.pps)));
    let rates = sets.map(|(set, now)| {
        // Of a port that sends as fast as it can, what it does.
        let pps = if set.rate.is_limited() {
            set.rate.0
        } else {
            now
        };
        (pps, pps * set.load.size * 8.0)
    });
    rates.fold((0.0, 0.0), |a, b| (a.0 + b.0, a.1 + b.1))
}

pub fn port(state: &mut State, call: &Call<'_>) -> Result<Value, Refusal> {
    state.watch();
    let rate = state.rates.ports[call.port];
    let ports = state.session.port_statistics();
    let port = &ports[call.port];
    Ok(json!({
        "opackets": port.sent.packets,
        "obytes": port.sent.bytes,
        "ipackets": port.received.packets,
        "ibytes": port.received.bytes,
        "ierrors": 0,
        "oerrors": 0,
        "m_total_tx_bps": rate.tx.bps,
        "m_total_tx_pps": rate.tx.pps,
        "m_total_rx_bps": rate.rx.bps,
        "m_total_rx_pps": rate.rx.pps,
        "m_cpu_util": 0,
    }))
}

/// How busy processors are and how much packet memory is used is not measured here: a client that
/// is given nothing says that there is no data.
pub fn utilization(_: &mut State, _: &Call<'_>) -> Result<Value, Refusal> {
    Ok(json!({}))
}

/// The packet groups of all ports: those without latency, and those with.
pub fn groups(state: &mut State, _: &Call<'_>) -> Result<Value, Refusal> {
    let mut groups = [BTreeSet::new(), BTreeSet::new()];
    let sets = state.ports.iter().filter_map(|port| port.set.as_ref());
    let streams = sets.flat_map(|set| &set.streams);
    for mark in streams.filter_map(|(stream, _)| stream.mark) {
        groups[usize::from(mark.latency)].insert(mark.group);
    }
    let [flow_stats, latency] = groups;
    Ok(json!({"ids": {"flow_stats": flow_stats, "latency": latency}}))
}

#[derive(Deserialize)]
struct Groups {
    pgids: BTreeSet<u32>,
}

pub fn of_groups(state: &mut State, call: &Call<'_>) -> Result<Value, Refusal> {
    let Groups { pgids } = call.read()?;
    state.watch();
    if pgids.is_empty() {
        return Ok(json!({"flow_stats": null, "latency": null, "ver_id": {}}));
    }
    let rows = state.session.statistics().streams;
    let (mut flows, mut latencies) = (BTreeMap::new(), BTreeMap::new());
    let (mut versions, mut old) = (BTreeMap::new(), 0);
    for row in &rows {
        let Some(group) = row.group.filter(|group| pgids.contains(group)) else {
            continue;
        };
        let counts = flows.entry(group).or_insert_with(Map::new);
        add(counts, state, row, group);
        let version = versions.entry(group.to_string()).or_insert(0);
        *version += state.ports[row.port].version;
        if let Some(flow) = &row.flow {
            old += flow.old;
            latencies.insert(group, latency(row));
        }
    }
    let [mut flows, mut latencies] = [
        object(
            flows
                .into_iter()
                .map(|(group, counts)| (group, Value::Object(counts))),
        ),
        object(latencies),
    ];
    let by_port = zeros(state);
    flows.insert(
        "g".to_owned(),
        json!({"rx_err": by_port, "tx_err": by_port}),
    );
    latencies.insert("g".to_owned(), json!({"old_flow": old, "bad_hdr": 0}));
    Ok(json!({"flow_stats": flows, "latency": latencies, "ver_id": versions}))
}

fn object(rows: impl IntoIterator<Item = (u32, Value)>) -> Map<String, Value> {
    let rows = rows.into_iter();
    rows.map(|(group, value)| (group.to_string(), value))
        .collect()
}

fn zeros(state: &State) -> Map<String, Value> {
    let ports = 0..state.ports.len();
    ports.map(|port| (port.to_string(), json!(0))).collect()
}

/// Adds what a port has sent of a group, and what its receiver has received.
fn add(counts: &mut Map<String, Value>, state: &State, row: &StreamStatistics, group: u32) {
    let rate = state.rates.groups.get(&(row.port, group));
    let rate = rate.copied().unwrap_or_default();
    let (here, there) = (row.port, state.ports[row.port].facts.receiver);
    for (name, port, value) in [
        ("tp", here, json!(row.sent.packets)),
        ("tb", here, json!(row.sent.bytes)),
        ("tps", here, json!(rate.tx.pps)),
        ("tbs", here, json!(rate.tx.bps / 8.0)),
        ("rp", there, json!(row.received.packets)),
        ("rb", there, json!(row.received.bytes)),
        ("rps", there, json!(rate.rx.pps)),
        ("rbs", there, json!(rate.rx.bps / 8.0)),
    ] {
        counts.entry(name).or_insert_with(|| json!({}))[port.to_string()] = value;
    }
}

/// Latencies in microseconds.
fn latency(row: &StreamStatistics) -> Value {
    let flow = row.flow.clone().unwrap_or_default();
    let micros = |nanos: u64| nanos as f64 / 1e3;
    let times = flow.latency;
    json!({
        "lat": {
            "average": times.avg / 1e3,
            "total_min": micros(times.min),
            "total_max": micros(times.max),
            "last_max": micros(times.max),
            "jit": micros(flow.jitter),
            "histogram": flow.by_micros,
        },
        "er": {
            "drp": flow.missing,
            "ooo": flow.out_of_order,
            "dup": flow.duplicates,
            "sth": 0,
            "stl": 0,
        },
    })
}
