//! Counts of a session.

use loadgen::device::{Count, Receiver, Transmitter};
use loadgen::model::stream::Stream;
use loadgen::model::units::Pps;
use loadgen::receive::flow::Flow;
use loadgen::receive::{Knows, together};
use serde::Serialize;

/// State of a port.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// It has no streams.
    Idle,
    /// It can be started: it is stopped, or has sent everything.
    Ready,
    /// It sends.
    Sending,
    /// It has stopped for a while.
    Paused,
}

impl State {
    /// True if a start would come too early.
    pub fn runs(self) -> bool {
        matches!(self, State::Sending | State::Paused)
    }
}

/// The counters of a session at one moment.
#[derive(Debug, Clone, Serialize)]
pub struct Statistics {
    /// A row for each port, by its number.
    pub ports: Vec<PortStatistics>,
    /// A row for each stream, or for several that are counted together; those of one port in a row.
    pub streams: Vec<StreamStatistics>,
}

/// The counters of a port, since it was opened. Bytes include the frame check sequence.
#[derive(Debug, Clone, Serialize)]
pub struct PortStatistics {
    /// Its name.
    pub name: String,
    /// Owner that has acquired it.
    pub owner: Option<String>,
    /// State.
    pub state: State,
    /// Packets that it took to send.
    pub sent: Count,
    /// Everything that came by it.
    pub received: Count,
    /// Number of attempts that found it full, since its streams were set.
    pub queue_full: u64,
}

/// The counters of streams that are counted together, since they were set.
#[derive(Debug, Clone, Serialize)]
pub struct StreamStatistics {
    /// Number of the port that sends them.
    pub port: usize,
    /// Their names.
    pub names: Vec<String>,
    /// Their group of flow statistics, if they are of one.
    pub group: Option<u32>,
    /// Packets that the port took.
    pub sent: Count,
    /// Packets that came back by the port's receiver.
    pub received: Count,
    /// Measurements of those that measure latency; None before the first packet came.
    pub flow: Option<Flow>,
}

/// A row for each stream of a port, or for those that its receiver cannot tell apart.
pub(crate) fn of_streams(
    port: usize,
    streams: &[(Stream, Pps)],
    tx: &dyn Transmitter,
    rx: &dyn Receiver,
) -> Vec<StreamStatistics> {
    let streams: Vec<&Stream> = streams.iter().map(|(stream, _)| stream).collect();
    // What has come was sent before: read in this order, no more came than were sent.
    let (flows, received) = (rx.flows(), rx.counts());
    let sent = tx.sent();
    let row = |part: Vec<usize>| {
        let sum = |counts: &[Count]| part.iter().filter_map(|i| counts.get(*i).copied()).sum();
        let mut groups = part.iter().map(|i| streams[*i].mark.map(|mark| mark.group));
        let first = groups.next().flatten();
        StreamStatistics {
            port,
            names: part.iter().map(|i| streams[*i].name.clone()).collect(),
            group: first.filter(|_| groups.all(|group| group == first)),
            sent: sum(&sent),
            received: sum(&received),
            flow: part.iter().find_map(|i| flows.get(*i)?.clone()),
        }
    };
    together(&streams, Knows::Marks)
        .into_iter()
        .map(row)
        .collect()
}
