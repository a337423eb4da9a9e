//! Metrics for Prometheus: OpenMetrics text, made from the latest look at the router.

use std::fmt;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{
    DescriptorEncoder, EncodeLabelSet, EncodeMetric, MetricEncoder, text::encode,
};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Registry;

use crate::tester::Tester;
use serde_json::Value;
use watch::model::{Bridge, FlowTable, Interface, NodeWork, Snapshot, Thread};

/// The type of the text.
pub(crate) const TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// All metrics; without a look, because the router does not answer, of the router only that it is
/// not up.
///
/// # Errors
/// None: text can always be written to a string.
pub(crate) fn text(now: Option<&Snapshot>, tester: &Tester) -> Result<String, fmt::Error> {
    let mut registry = Registry::with_prefix("parshall");
    registry.register_collector(Box::new(Look(now.cloned())));
    registry.register_collector(Box::new(Load {
        is_running: tester.is_running(),
        sample: tester.sample(),
    }));
    let mut text = String::new();
    encode(&mut text, &registry)?;
    Ok(text)
}

#[derive(Debug)]
struct Look(Option<Snapshot>);

/// A counter of interfaces: name, help, value.
type OfInterface = (&'static str, &'static str, fn(&Interface) -> Option<u64>);
const OF_INTERFACES: [OfInterface; 6] = [
    (
        "interface_receive_packets",
        "Packets received by the interface",
        |i| i.rx_packets,
    ),
    (
        "interface_receive_bytes",
        "Bytes received by the interface, without frame check sequence",
        |i| i.rx_bytes,
    ),
    (
        "interface_transmit_packets",
        "Packets sent by the interface",
        |i| i.tx_packets,
    ),
    (
        "interface_transmit_bytes",
        "Bytes sent by the interface, without frame check sequence",
        |i| i.tx_bytes,
    ),
    (
        "interface_dropped_packets",
        "Packets dropped that came by the interface",
        |i| i.drops,
    ),
    (
        "interface_transmit_errors",
        "Packets that could not be sent by the interface",
        |i| i.tx_errors,
    ),
];

/// A counter of nodes.
type OfNode = (&'static str, &'static str, fn(&NodeWork) -> Option<u64>);
const OF_NODES: [OfNode; 3] = [
    ("node_calls", "Times that the worker called the node", |n| {
        Some(n.calls)
    }),
    ("node_packets", "Packets that the node was given", |n| {
        Some(n.vectors)
    }),
    // Rounded: `clocks` is the quotient of two whole numbers.
    ("node_cycles", "TSC cycles that the node took", |n| {
        Some((n.clocks? * n.vectors as f64).round() as u64)
    }),
];

/// A counter of workers.
type OfWorker = (&'static str, &'static str, fn(&Thread) -> u64);
const OF_WORKERS: [OfWorker; 3] = [
    ("worker_rounds", "Rounds of the worker", |t| t.loops),
    (
        "worker_busy_rounds",
        "Rounds of the worker that moved packets",
        |t| t.busy_loops,
    ),
    ("worker_sleeps", "Times that the worker slept", |t| t.sleeps),
];

/// A level or a counter of flows.
type OfFlows = (&'static str, &'static str, fn(&FlowTable) -> u64);
const LEVELS_OF_FLOWS: [OfFlows; 3] = [
    (
        "flows",
        "Flows of the firewall that the worker holds",
        |t| t.flows,
    ),
    ("flows_room", "Flows that the worker has room for", |t| {
        t.room
    }),
    (
        "flows_embryonic",
        "Flows of the worker that were not answered",
        |t| t.embryonic,
    ),
];
const OF_FLOWS: [OfFlows; 4] = [
    ("flows_begun", "Flows that have begun", |t| t.begun),
    ("flows_refused", "Flows that found the table full", |t| {
        t.refused
    }),
    (
        "flows_displaced",
        "Flows that went because too many were not answered",
        |t| t.displaced,
    ),
    ("flows_expired", "Flows that were idle for too long", |t| {
        t.expired
    }),
];

/// A level or a counter of bridge domains.
type OfBridge = (&'static str, &'static str, fn(&Bridge) -> u64);
const LEVEL_OF_BRIDGES: OfBridge = (
    "bridge_stations",
    "Stations that the bridge domain has learned",
    |b| b.learned,
);
const OF_BRIDGES: [OfBridge; 6] = [
    (
        "bridge_flooded_broadcast_packets",
        "Broadcast frames that were flooded",
        |b| b.counters.flooded_broadcast,
    ),
    (
        "bridge_flooded_multicast_packets",
        "Multicast frames that were flooded",
        |b| b.counters.flooded_multicast,
    ),
    (
        "bridge_flooded_unknown_packets",
        "Frames to unknown stations that were flooded",
        |b| b.counters.flooded_unknown,
    ),
    (
        "bridge_moves",
        "Times that a station was seen behind another interface than before",
        |b| b.counters.moves,
    ),
    (
        "bridge_not_learned",
        "Times that a station was not learned since a limit was reached",
        |b| b.counters.not_learned,
    ),
    (
        "bridge_learns_lost",
        "Times that a station was not learned since too many came at once",
        |b| b.counters.learns_lost,
    ),
];

impl Collector for Look {
    fn encode(&self, mut encoder: DescriptorEncoder) -> fmt::Result {
        let up = [(NONE, u64::from(self.0.is_some()))];
        gauge(&mut encoder, "up", "Whether the router answers", up)?;
        let Some(now) = &self.0 else {
            return Ok(());
        };
        let version = &now.version;
        let labels = [
            ("version", &*version.version),
            ("build", &version.build),
            ("kernel", &version.kernel),
        ];
        gauge(
            &mut encoder,
            "build",
            "Versions of program and kernel",
            [(labels, 1)],
        )?;
        let up = now
            .interfaces
            .iter()
            .map(|i| (interface(i), u64::from(i.up)));
        gauge(
            &mut encoder,
            "interface_up",
            "Whether the interface is up and has carrier",
            up,
        )?;
        for (name, help, value) in OF_INTERFACES {
            let rows = now
                .interfaces
                .iter()
                .filter_map(|i| Some((interface(i), value(i)?)));
            counter(&mut encoder, name, help, rows)?;
        }
        for (name, help, value) in OF_WORKERS {
            let rows = now
                .threads
                .iter()
                .map(|t| ([("worker", &*t.name)], value(t)));
            counter(&mut encoder, name, help, rows)?;
        }
        let of_flows = |value: fn(&FlowTable) -> u64| {
            let tables = now.flows.iter();
            tables.map(move |t| ([("worker", &*t.worker)], value(t)))
        };
        for (name, help, value) in LEVELS_OF_FLOWS {
            gauge(&mut encoder, name, help, of_flows(value))?;
        }
        for (name, help, value) in OF_FLOWS {
            counter(&mut encoder, name, help, of_flows(value))?;
        }
        let of_bridges = |value: fn(&Bridge) -> u64| {
            let bridges = now.bridges.iter();
            bridges.map(move |b| ([("bridge_domain", &*b.name)], value(b)))
        };
        let (name, help, value) = LEVEL_OF_BRIDGES;
        gauge(&mut encoder, name, help, of_bridges(value))?;
        for (name, help, value) in OF_BRIDGES {
            counter(&mut encoder, name, help, of_bridges(value))?;
        }
        for (name, help, value) in OF_NODES {
            let rows = now.workers.iter().flat_map(|worker| {
                worker.nodes.iter().filter_map(move |node| {
                    let labels = [("worker", &*worker.name), ("node", &*node.name)];
                    Some((labels, value(node)?))
                })
            });
            counter(&mut encoder, name, help, rows)?;
        }
        let errors = now.errors.iter().map(|e| {
            let labels = [
                ("node", &*e.node),
                ("reason", &e.reason),
                ("severity", &e.severity),
            ];
            (labels, e.count)
        });
        counter(
            &mut encoder,
            "errors",
            "Packets that ended at a node, by reason",
            errors,
        )
    }
}

/// The latest load test of the page.
#[derive(Debug)]
struct Load {
    is_running: bool,
    /// The latest sample of a ramp, as `parshall loadtest` tells its progress.
    sample: Option<Value>,
}

impl Collector for Load {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let running = [(NONE, u64::from(self.is_running))];
        gauge(
            &mut encoder,
            "loadtest_running",
            "1 while a load test of the page runs",
            running,
        )?;
        let ways = self
            .sample
            .as_ref()
            .and_then(|sample| sample["ways"].as_array());
        let ways = || ways.into_iter().flatten().enumerate();
        for (name, help, at) in [
            (
                "loadtest_sent_packets",
                "Packets sent since the ramp began",
                "/total/sent/packets",
            ),
            (
                "loadtest_received_packets",
                "Packets that came back since the ramp began",
                "/total/received/packets",
            ),
        ] {
            let rows = ways().filter_map(|(number, way)| {
                let label = [("direction", number.to_string())];
                Some((label, way.pointer(at)?.as_u64()?))
            });
            counter(&mut encoder, name, help, rows)?;
        }
        let name = "loadtest_latency_nanoseconds";
        let help = "Half, 99 % or 99.9 % of the packets of the last interval took no longer";
        let named = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
        let rows = ways().flat_map(|(number, way)| {
            let of = [("0.5", "p50"), ("0.99", "p99"), ("0.999", "p99_9")];
            of.into_iter().filter_map(move |(quantile, key)| {
                let labels = [
                    ("direction", number.to_string()),
                    ("quantile", quantile.into()),
                ];
                Some((labels, way["latency"][key].as_u64()?))
            })
        });
        family(named, rows, ConstGauge::new)
    }
}

const NONE: [(&str, &str); 0] = [];

fn interface(interface: &Interface) -> [(&str, &str); 1] {
    [("interface", &interface.name)]
}

fn counter<L: EncodeLabelSet>(
    encoder: &mut DescriptorEncoder<'_>,
    name: &str,
    help: &str,
    rows: impl IntoIterator<Item = (L, u64)>,
) -> fmt::Result {
    let named = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
    family(named, rows, ConstCounter::new)
}

fn gauge<L: EncodeLabelSet>(
    encoder: &mut DescriptorEncoder<'_>,
    name: &str,
    help: &str,
    rows: impl IntoIterator<Item = (L, u64)>,
) -> fmt::Result {
    let named = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
    family(named, rows, ConstGauge::new)
}

fn family<L: EncodeLabelSet, M: EncodeMetric>(
    mut encoder: MetricEncoder<'_>,
    rows: impl IntoIterator<Item = (L, u64)>,
    metric: fn(u64) -> M,
) -> fmt::Result {
    for (labels, value) in rows {
        metric(value).encode(encoder.encode_family(&labels)?)?;
    }
    Ok(())
}
