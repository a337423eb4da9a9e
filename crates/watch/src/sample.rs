//! Samples: rates between two looks at the router.

use std::collections::HashMap;

use serde::Serialize;
use utoipa::ToSchema;

use crate::model::{Graph, Interface, Loss, NodeRate, NodeWork, Snapshot, Thread, Worker};

/// Rates over about a second.
#[derive(Debug, Clone, Default, PartialEq, Serialize, ToSchema)]
pub struct Sample {
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
pub struct InterfaceRates {
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
pub struct WorkerLoad {
    /// Its name.
    pub name: String,
    /// Share of its rounds that moved packets, from 0 to 1.
    pub busy: f64,
    /// Share of its time in which packets were received, processed and sent, from 0 to 1.
    pub work: f64,
    /// Packets received a second.
    pub rx_pps: f64,
    /// Packets a call, over all nodes; null if none was called.
    pub vectors_per_call: Option<f64>,
    /// TSC cycles of all its nodes and ports for each packet received; null if none was.
    pub cycles_per_packet: Option<f64>,
}

/// Packets that ended for a reason.
#[derive(Debug, Clone, Default, PartialEq, Serialize, ToSchema)]
pub struct LossRate {
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
        let rounds = by(&before.threads, |thread| &thread.name);
        let work = by(&before.workers, |worker| &worker.name);
        let now_work = by(&now.workers, |worker| &worker.name);
        let workers = now.threads.iter().filter_map(|thread| {
            let name = &thread.name;
            let mut load = rounds_of(rounds.get(name)?, thread);
            if let (Some(before), Some(now)) = (work.get(name), now_work.get(name)) {
                load.add_work(before, now, seconds);
            }
            Some(load)
        });
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

/// Sets the rates of edges and of workers' nodes, from the look `seconds` before.
pub fn set_rates(before: &Snapshot, now: &mut Snapshot, seconds: f64) {
    set_edge_rates(&before.graph, &mut now.graph, seconds);
    let known = by(&before.workers, |worker| &worker.name);
    for worker in &mut now.workers {
        let Some(before) = known.get(&worker.name) else {
            continue;
        };
        let work = Work::since(before, worker);
        let rates: Vec<NodeRate> = work.iter().map(|work| work.rate(seconds)).collect();
        for (node, rate) in worker.nodes.iter_mut().zip(rates) {
            node.rate = Some(rate);
        }
    }
}

fn set_edge_rates(before: &Graph, now: &mut Graph, seconds: f64) {
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

fn rounds_of(before: &Thread, now: &Thread) -> WorkerLoad {
    let rounds = increase(before.loops, now.loops);
    let busy = increase(before.busy_loops, now.busy_loops);
    WorkerLoad {
        name: now.name.clone(),
        busy: (busy / rounds.max(1.0)).min(1.0),
        ..WorkerLoad::default()
    }
}

impl WorkerLoad {
    fn add_work(&mut self, before: &Worker, now: &Worker, seconds: f64) {
        let work = Work::since(before, now);
        let is_cleared = now.seconds < before.seconds;
        let (busy, all) = match is_cleared {
            true => (now.busy_seconds, now.seconds),
            false => (
                now.busy_seconds - before.busy_seconds,
                now.seconds - before.seconds,
            ),
        };
        self.work = ratio(busy, all).unwrap_or(0.0).clamp(0.0, 1.0);
        let received = |name: &str| name.ends_with("-rx");
        let of = |of: fn(&Work) -> f64, which: &dyn Fn(&str) -> bool| {
            let nodes = work.iter().filter(|work| which(work.name));
            nodes.map(of).sum::<f64>()
        };
        let packets = of(|w| w.packets, &received);
        let is_node = |name: &str| !received(name) && !name.ends_with("-tx");
        // Of fused nodes only the first one has cycles: they are called together.
        let called = || work.iter().filter(|w| w.cycles > 0.0 && is_node(w.name));
        let (in_calls, calls) = called().fold((0.0, 0.0), |(packets, calls), work| {
            (packets + work.packets, calls + work.calls)
        });
        self.rx_pps = packets / seconds;
        self.vectors_per_call = ratio(in_calls, calls);
        self.cycles_per_packet = ratio(of(|w| w.cycles, &|_| true), packets);
    }
}

/// What a node did between two looks.
struct Work<'n> {
    name: &'n str,
    calls: f64,
    packets: f64,
    cycles: f64,
}

impl Work<'_> {
    /// A node that was not there before had done nothing.
    fn since<'n>(before: &Worker, now: &'n Worker) -> Vec<Work<'n>> {
        let known = by(&before.nodes, |node| &node.name);
        let cycles = |node: &NodeWork| (node.clocks.unwrap_or(0.0) * node.vectors as f64) as u64;
        let of = |node: &'n NodeWork| {
            let none = NodeWork::default();
            let before = known.get(&node.name).copied().unwrap_or(&none);
            Work {
                name: &node.name,
                calls: increase(before.calls, node.calls),
                packets: increase(before.vectors, node.vectors),
                cycles: increase(cycles(before), cycles(node)),
            }
        };
        now.nodes.iter().map(of).collect()
    }

    fn rate(&self, seconds: f64) -> NodeRate {
        let cycles = ratio(self.cycles, self.packets);
        NodeRate {
            pps: self.packets / seconds,
            vectors_per_call: ratio(self.packets, self.calls),
            cycles_per_packet: cycles.filter(|cycles| *cycles > 0.0),
        }
    }
}

fn ratio(part: f64, whole: f64) -> Option<f64> {
    (whole > 0.0).then(|| part / whole)
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
        assert_eq!(rounds_of(&thread(100, 10), &thread(300, 60)).busy, 0.25);
        assert_eq!(rounds_of(&thread(100, 10), &thread(100, 10)).busy, 0.0);
    }

    #[test]
    fn cycles_are_of_all_nodes_for_each_packet_received() {
        let node = |name: &str, calls, vectors, clocks| NodeWork {
            name: name.into(),
            calls,
            vectors,
            clocks,
            rate: None,
        };
        let look = |seconds, n: u64, clocks| Snapshot {
            threads: vec![Thread {
                name: "w".into(),
                ..Thread::default()
            }],
            workers: vec![Worker {
                name: "w".into(),
                seconds,
                busy_seconds: seconds / 4.0,
                nodes: vec![
                    node("a-rx", n, n * 10, Some(10.0)),
                    node("ip4-lookup", n, n * 10, Some(clocks)),
                    node("b-tx", n, n * 10, None),
                ],
                ..Worker::default()
            }],
            ..Snapshot::default()
        };
        let (before, now) = (look(1.0, 5, 20.0), look(3.0, 15, 40.0));
        let load = &Sample::between(&before, &now, 2.0, 5.0).workers[0];
        assert_eq!((load.work, load.rx_pps), (0.25, 50.0));
        assert_eq!(load.vectors_per_call, Some(10.0));
        // 100 packets: 10 cycles each to receive, and (150 * 40 - 50 * 20) / 100 in the node.
        assert_eq!(load.cycles_per_packet, Some(60.0));
        let mut rated = now.clone();
        set_rates(&before, &mut rated, 2.0);
        let nodes = rated.workers[0].nodes.iter();
        let rates: Vec<&NodeRate> = nodes.filter_map(|node| node.rate.as_ref()).collect();
        let cycles: Vec<_> = rates.iter().map(|rate| rate.cycles_per_packet).collect();
        assert_eq!(cycles, [Some(10.0), Some(50.0), None]);
        assert_eq!(
            (rates[1].pps, rates[1].vectors_per_call),
            (50.0, Some(10.0))
        );
        // `clear runtime` came between: all is since then.
        let load = &Sample::between(&now, &before, 2.0, 5.0).workers[0];
        assert_eq!((load.work, load.cycles_per_packet), (0.25, Some(30.0)));
        let idle = &Sample::between(&now, &now, 2.0, 5.0).workers[0];
        assert_eq!(
            (idle.vectors_per_call, idle.cycles_per_packet),
            (None, None)
        );
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
        set_edge_rates(&Graph::default(), &mut now, 1.0);
        assert_eq!(now.nodes[0].edges[0].pps, None);
        set_edge_rates(&graph(40), &mut now, 0.5);
        assert_eq!(now.nodes[0].edges[0].pps, Some(20.0));
    }
}
