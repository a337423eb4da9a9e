//! Samples: rates between two looks at the router.

use std::collections::HashMap;

use serde::Serialize;
use utoipa::ToSchema;

use crate::model::{Graph, Interface, Loss, Snapshot, Thread};

/// Rates over about a second.
#[derive(Debug, Clone, Default, PartialEq, Serialize, ToSchema)]
pub(crate) struct Sample {
    /// End of it, in seconds since 1970-01-01 UTC.
    pub time: f64,
    /// Of each interface with packets of its own.
    pub interfaces: Vec<InterfaceRates>,
    /// Of each worker.
    pub workers: Vec<WorkerLoad>,
    /// Of each reason for which packets ended somewhere.
    pub errors: Vec<LossRate>,
}

/// The traffic of an interface.
#[derive(Debug, Clone, Default, PartialEq, Serialize, ToSchema)]
pub(crate) struct InterfaceRates {
    /// Its name.
    pub name: String,
    /// Packets received a second.
    pub rx_pps: f64,
    /// Packets sent a second.
    pub tx_pps: f64,
    /// Bits received a second (layer 2).
    pub rx_bps: f64,
    /// Bits sent a second (layer 2).
    pub tx_bps: f64,
    /// Packets a second dropped that came by it.
    pub drop_pps: f64,
    /// Packets a second that could not be sent by it.
    pub tx_error_pps: f64,
}

/// The load of a worker.
#[derive(Debug, Clone, Default, PartialEq, Serialize, ToSchema)]
pub(crate) struct WorkerLoad {
    /// Its name.
    pub name: String,
    /// Share of its rounds that moved packets, from 0 to 1.
    pub busy: f64,
}

/// Packets that ended for a reason.
#[derive(Debug, Clone, Default, PartialEq, Serialize, ToSchema)]
pub(crate) struct LossRate {
    /// Node, `<interface>-tx`, worker or port.
    pub node: String,
    /// Reason.
    pub reason: String,
    /// Packets a second.
    pub pps: f64,
}

impl Sample {
    /// The rates from one look to the next, `seconds` later, at `time`. What was not there at
    /// the first has none.
    pub fn between(before: &Snapshot, now: &Snapshot, seconds: f64, time: f64) -> Sample {
        let known = by(&before.interfaces, |interface| &interface.name);
        let interfaces = now.interfaces.iter().filter_map(|interface| {
            let before = known.get(&interface.name)?;
            rates(before, interface, seconds)
        });
        let known = by(&before.threads, |thread| &thread.name);
        let workers = now
            .threads
            .iter()
            .filter_map(|thread| Some(load(known.get(&thread.name)?, thread)));
        let known = by(&before.errors, |loss| (&loss.node, &loss.reason));
        // A reason is shown from its first packet on: what was not there was 0.
        let errors = now.errors.iter().map(|loss| LossRate {
            node: loss.node.clone(),
            reason: loss.reason.clone(),
            pps: increase(
                known
                    .get(&(&loss.node, &loss.reason))
                    .map_or(0, |l: &&Loss| l.count),
                loss.count,
            ) / seconds,
        });
        Sample {
            time,
            interfaces: interfaces.collect(),
            workers: workers.collect(),
            errors: errors.collect(),
        }
    }

    /// Its rows, which is what it takes of memory.
    pub fn rows(&self) -> usize {
        1 + self.interfaces.len() + self.workers.len() + self.errors.len()
    }
}

/// Sets the rates of a graph's edges, from the graph `seconds` before.
pub(crate) fn set_rates(before: &Graph, now: &mut Graph, seconds: f64) {
    let known = by(&before.nodes, |node| &node.name);
    for node in &mut now.nodes {
        let Some(before) = known.get(&node.name) else {
            continue;
        };
        let known = by(&before.edges, |edge| (&edge.stage, &edge.name));
        for edge in &mut node.edges {
            let before = known.get(&(&edge.stage, &edge.name));
            edge.pps = before.map(|before| increase(before.packets, edge.packets) / seconds);
        }
    }
}

/// Packets from one count to the next. One that is lower began anew, by `clear` or a restart.
fn increase(before: u64, now: u64) -> f64 {
    now.checked_sub(before).unwrap_or(now) as f64
}

fn rates(before: &Interface, now: &Interface, seconds: f64) -> Option<InterfaceRates> {
    let rate = |of: fn(&Interface) -> Option<u64>| Some(increase(of(before)?, of(now)?) / seconds);
    Some(InterfaceRates {
        name: now.name.clone(),
        rx_pps: rate(|i| i.rx_packets)?,
        tx_pps: rate(|i| i.tx_packets)?,
        rx_bps: rate(|i| i.rx_bytes)? * 8.0,
        tx_bps: rate(|i| i.tx_bytes)? * 8.0,
        drop_pps: rate(|i| i.drops)?,
        tx_error_pps: rate(|i| i.tx_errors)?,
    })
}

fn load(before: &Thread, now: &Thread) -> WorkerLoad {
    let rounds = increase(before.loops, now.loops);
    let busy = increase(before.busy_loops, now.busy_loops);
    WorkerLoad {
        name: now.name.clone(),
        busy: (busy / rounds.max(1.0)).min(1.0),
    }
}

fn by<'t, T, K: std::hash::Hash + Eq>(
    rows: &'t [T],
    key: impl Fn(&'t T) -> K,
) -> HashMap<K, &'t T> {
    rows.iter().map(|row| (key(row), row)).collect()
}

#[cfg(test)]
mod tests {
    use crate::model::{Edge, Node};

    use super::*;

    fn interface(name: &str, count: Option<u64>) -> Interface {
        Interface {
            name: name.into(),
            rx_packets: count,
            rx_bytes: count.map(|n| n * 100),
            tx_packets: count,
            tx_bytes: count,
            drops: count,
            tx_errors: count,
            ..Interface::default()
        }
    }

    #[test]
    fn rates_are_of_what_was_there_before() {
        let before = Snapshot {
            interfaces: vec![interface("a", Some(10)), interface("loop0", None)],
            ..Snapshot::default()
        };
        let now = Snapshot {
            interfaces: vec![
                interface("a", Some(30)),
                interface("loop0", None),
                interface("new", Some(7)),
            ],
            errors: vec![Loss {
                count: 4,
                node: "ip4-input".into(),
                ..Loss::default()
            }],
            ..Snapshot::default()
        };
        let sample = Sample::between(&before, &now, 2.0, 5.0);
        assert_eq!(sample.interfaces.len(), 1, "{sample:?}");
        assert_eq!(
            (sample.interfaces[0].rx_pps, sample.interfaces[0].rx_bps),
            (10.0, 8000.0)
        );
        assert_eq!((sample.errors[0].pps, sample.rows()), (2.0, 3));
        // `clear interface` came between.
        let sample = Sample::between(&now, &before, 2.0, 5.0);
        assert_eq!(sample.interfaces[0].rx_pps, 5.0);
    }

    #[test]
    fn a_worker_is_as_busy_as_its_rounds() {
        let thread = |loops, busy_loops| Thread {
            loops,
            busy_loops,
            ..Thread::default()
        };
        assert_eq!(load(&thread(100, 10), &thread(300, 60)).busy, 0.25);
        assert_eq!(load(&thread(100, 10), &thread(100, 10)).busy, 0.0);
    }

    #[test]
    fn edges_have_rates_from_the_second_look_on() {
        let graph = |packets| Graph {
            nodes: vec![Node {
                name: "n".into(),
                edges: vec![Edge {
                    packets,
                    ..Edge::default()
                }],
            }],
        };
        let mut now = graph(50);
        set_rates(&Graph::default(), &mut now, 1.0);
        assert_eq!(now.nodes[0].edges[0].pps, None);
        set_rates(&graph(40), &mut now, 0.5);
        assert_eq!(now.nodes[0].edges[0].pps, Some(20.0));
    }
}
