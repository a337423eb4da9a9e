//! `show flows`, `clear flows`.

use std::fmt;
use std::net::Ipv4Addr;

use serde::Serialize;
use tables::flow::Sizes;
use wire::ip;

use super::asker::Answer;
use super::filter::ends;
use super::walk::{Row, What};
use crate::firewall::entry::Interfaces;
use crate::flow::State;
use crate::nat::place;
use crate::show::text;
use crate::{InterfaceId, Router, worker_name};

/// `show flows`, `show flows top`.
#[derive(Debug, Clone, Serialize)]
pub struct Flows {
    /// All flows that match.
    pub matching: u64,
    /// As many of them as were asked for. `show flows top`: the one with the most first; else in no
    /// order.
    pub flows: Vec<Flow>,
}

/// A flow.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Flow {
    /// IP protocol.
    pub protocol: u8,
    /// Source of the packet that opened it.
    pub source: String,
    /// Its port. An ICMP echo has its identifier as both ports, and what has no ports 0.
    pub source_port: u16,
    /// Destination of the packet that opened it.
    pub destination: String,
    /// Its port, likewise.
    pub destination_port: u16,
    /// What its source is seen as, where another one stands for it.
    pub outside_source: Option<String>,
    /// The port of that.
    pub outside_source_port: Option<u16>,
    /// What its destination is seen as: whom the packet was sent to.
    pub outside_destination: Option<String>,
    /// The port of that.
    pub outside_destination_port: Option<u16>,
    /// State of the connection.
    pub state: &'static str,
    /// Seconds since its last packet.
    pub idle_seconds: u32,
    /// Seconds after which it goes unless there is another one.
    pub seconds_left: u32,
    /// Packets in the direction of the first one.
    pub packets: u64,
    /// Their bytes from the IP header on.
    pub bytes: u64,
    /// Packets in the other direction.
    pub reply_packets: u64,
    /// Their bytes.
    pub reply_bytes: u64,
    /// Interface by which policies have let it come in, in the direction of the first packet; null:
    /// they have not been asked since it was answered.
    pub input: Option<String>,
    /// Interface by which it leaves.
    pub output: Option<String>,
    /// Interface by which its other direction comes in; null: nothing has.
    pub reply_input: Option<String>,
    /// Interface by which that leaves.
    pub reply_output: Option<String>,
    /// The worker that holds it.
    pub worker: String,
}

/// `show flows counters`, `show flows summary`.
#[derive(Debug, Clone, Serialize)]
pub struct Summary {
    /// By number.
    pub workers: Vec<Counted>,
}

/// The flows of a worker, and what has become of those it has had.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Counted {
    /// The worker.
    pub worker: String,
    /// Flows that it holds.
    pub flows: u64,
    /// Flows that it has room for.
    pub room: u32,
    /// Those that it holds which were not answered.
    pub embryonic: u64,
    /// Bytes of memory that the table takes when it is full.
    pub memory_bytes: u64,
    /// Flows that have begun since the start.
    pub begun: u64,
    /// Flows that found the table full.
    pub refused: u64,
    /// Flows that went because there were too many that were not answered.
    pub displaced: u64,
    /// Flows that were idle for too long.
    pub expired: u64,
    /// How many flows are in each state, of those that there are; null in `show flows counters`.
    pub states: Option<Vec<InState>>,
}

/// The flows in a state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct InState {
    /// The state.
    pub state: &'static str,
    /// How many there are.
    pub flows: u64,
}

/// `clear flows`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Cleared {
    /// Flows that were removed.
    pub removed: u64,
}

/// What each worker has counted, without asking it.
pub fn counters(router: &Router) -> Summary {
    let sizes = router.flow_sizes;
    let workers = router.flows.workers.iter().enumerate();
    let counted = workers.map(|(number, worker)| {
        let counters = &worker.counters;
        Counted {
            worker: worker_name(number),
            flows: counters.flows.get(),
            room: sizes.flows,
            embryonic: counters.embryonic.get(),
            memory_bytes: Sizes::bytes(sizes),
            begun: counters.begun.get(),
            refused: counters.refused.get(),
            displaced: counters.displaced.get(),
            expired: counters.expired.get(),
            states: None,
        }
    });
    Summary {
        workers: counted.collect(),
    }
}

/// The same, with the states of the flows that match: those of the workers that have answered.
pub fn summary(router: &Router, answer: &Answer) -> Summary {
    let mut all = counters(router).workers;
    for (worker, walk) in &answer.walks {
        let states = State::ALL.into_iter().zip(walk.states);
        let there = states.filter(|(_, flows)| *flows > 0);
        let there = there.map(|(state, flows)| InState {
            state: state.name(),
            flows,
        });
        all[*worker].states = Some(there.collect());
    }
    all.retain(|worker| worker.states.is_some());
    Summary { workers: all }
}

/// The flows that were found.
pub fn flows(router: &Router, answer: &Answer) -> Flows {
    let what = answer.question.what;
    let walks = answer.walks.iter();
    let mut rows: Vec<(usize, &Row)> = walks
        .flat_map(|(worker, walk)| walk.rows.iter().map(|row| (*worker, row)))
        .collect();
    if matches!(what, What::Top(..)) {
        rows.sort_by_key(|(_, row)| std::cmp::Reverse(row.rank(what)));
    }
    if let What::Some(most) | What::Top(most, _) = what {
        rows.truncate(most);
    }
    let flows = rows.into_iter();
    Flows {
        matching: answer.matching(),
        flows: flows
            .map(|(worker, row)| flow(router, worker, row))
            .collect(),
    }
}

/// How many were removed.
pub fn cleared(answer: &Answer) -> Cleared {
    Cleared {
        removed: answer.matching(),
    }
}

impl Answer {
    /// Flows that match.
    fn matching(&self) -> u64 {
        self.walks.iter().flat_map(|(_, walk)| walk.states).sum()
    }
}

fn flow(router: &Router, worker: usize, row: &Row) -> Flow {
    let ([source, destination], protocol) = ends(&row.entry);
    let name = |interface: InterfaceId| (interface != 0).then(|| text::name(router, interface));
    let places = row.outside.map(place::place);
    let [outside_source, outside_destination] =
        places.map(|of| of.map(|of| Ipv4Addr::from_bits(of.address).to_string()));
    let [outside_source_port, outside_destination_port] = places.map(|of| of.map(|of| of.port));
    let uses = row.entry.interfaces;
    let [[input, output], [reply_input, reply_output]] =
        uses.map(|of| Interfaces(of).both().map(name));
    let ([packets, reply_packets], [bytes, reply_bytes]) = (row.session.packets, row.session.bytes);
    Flow {
        protocol,
        source: source.ip().to_string(),
        source_port: source.port(),
        destination: destination.ip().to_string(),
        destination_port: destination.port(),
        outside_source,
        outside_source_port,
        outside_destination,
        outside_destination_port,
        state: State::from_number(row.entry.state).name(),
        idle_seconds: row.idle,
        seconds_left: row.left,
        packets,
        bytes,
        reply_packets,
        reply_bytes,
        input,
        output,
        reply_input,
        reply_output,
        worker: worker_name(worker),
    }
}

impl fmt::Display for Flows {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.flows.iter().try_for_each(|flow| flow.fmt(f))?;
        let (shown, all) = (self.flows.len(), self.matching);
        match all {
            0 => writeln!(f, "no flow matches"),
            1 if shown == 1 => writeln!(f, "1 flow matches"),
            _ if shown as u64 == all => writeln!(f, "{all} flows match"),
            _ => writeln!(f, "{all} flows match, {shown} of them are shown"),
        }
    }
}

/// An end as it is written: with the port where there is one.
fn end(address: &str, port: u16) -> String {
    match (port, address.contains(':')) {
        (0, _) => address.to_owned(),
        (_, true) => format!("[{address}]:{port}"),
        (_, false) => format!("{address}:{port}"),
    }
}

impl fmt::Display for Flow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.protocol {
            ip::TCP => f.write_str("tcp"),
            ip::UDP => f.write_str("udp"),
            ip::ICMP => f.write_str("icmp"),
            ip::ICMP6 => f.write_str("ipv6-icmp"),
            number => write!(f, "protocol {number}"),
        }?;
        writeln!(
            f,
            " {} > {} {} idle {} s, {} s left, {}",
            end(&self.source, self.source_port),
            end(&self.destination, self.destination_port),
            self.state,
            self.idle_seconds,
            self.seconds_left,
            self.worker
        )?;
        let seen = |address: &Option<String>, port: Option<u16>| {
            let address = address.as_deref()?;
            Some(end(address, port.unwrap_or(0)))
        };
        let source = seen(&self.outside_source, self.outside_source_port);
        let destination = seen(&self.outside_destination, self.outside_destination_port);
        if source.is_some() || destination.is_some() {
            let source = source.unwrap_or_else(|| end(&self.source, self.source_port));
            let own = || end(&self.destination, self.destination_port);
            writeln!(
                f,
                "    outside {source} > {}",
                destination.unwrap_or_else(own)
            )?;
        }
        let name = |interface: &Option<String>| interface.clone().unwrap_or_else(|| "?".to_owned());
        writeln!(
            f,
            "    {} > {} packets {} bytes {}; replies {} > {} packets {} bytes {}",
            name(&self.input),
            name(&self.output),
            self.packets,
            self.bytes,
            name(&self.reply_input),
            name(&self.reply_output),
            self.reply_packets,
            self.reply_bytes
        )
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.workers.iter().try_for_each(|worker| worker.fmt(f))
    }
}

impl fmt::Display for Counted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{}: {} flows of {}, {} not answered, {} bytes of memory when full",
            self.worker,
            self.flows,
            self.room,
            self.embryonic,
            text::bytes(self.memory_bytes)
        )?;
        writeln!(
            f,
            "    begun {} expired {} displaced {} refused {}",
            self.begun, self.expired, self.displaced, self.refused
        )?;
        let Some(states) = &self.states else {
            return Ok(());
        };
        states
            .iter()
            .try_for_each(|of| writeln!(f, "    {:<13} {:>9}", of.state, of.flows))
    }
}

impl fmt::Display for Cleared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.removed {
            1 => writeln!(f, "1 flow is removed"),
            removed => writeln!(f, "{removed} flows are removed"),
        }
    }
}
