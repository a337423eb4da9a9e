//! The results of each stream, for the JSON of a result.

use serde::Deserialize;
use serde_json::{Value, json};

use loadgen::device::{Count, Path};
use loadgen::histogram::Times;
use loadgen::model::stream::Stream;
use loadgen::receive::flow::Flow;
use loadgen::receive::{self, Knows};
use session::{Spec, TestPorts};

use super::text;
use super::traffic::Sending;

/// A row for each stream of each direction, or for several that were counted together, over the
/// whole test but its warm-up. Nothing may be on its way anymore.
pub fn rows(ports: &TestPorts, ways: &[(Sending, Spec)]) -> Value {
    let rows = ports.paths.iter().zip(ways).flat_map(|(path, way)| {
        let (sent, received, flows) = (path.tx.sent(), path.rx.counts(), path.rx.flows());
        let latencies = path.rx.latencies();
        let parts = parts(ports, &way.0, &way.1).into_iter();
        parts.map(move |part| row(way, &part, (&sent, &received), (&flows, &latencies)))
    });
    rows.collect()
}

/// The row of some streams of a direction.
fn row(
    (sending, rx): &(Sending, Spec),
    part: &[usize],
    (sent, received): (&[Count], &[Count]),
    (flows, latencies): (&[Option<Flow>], &[Option<Times>]),
) -> Value {
    let sum =
        |counts: &[Count]| -> Count { part.iter().filter_map(|i| counts.get(*i)).copied().sum() };
    let (sent, received) = (sum(sent), sum(received));
    let flow = part.iter().find_map(|i| flows.get(*i)?.clone());
    // Where nobody follows the packets' numbers, how long they took may be known all the same.
    let alone = part.iter().find_map(|i| *latencies.get(*i)?);
    let flow = match (flow, alone.and_then(measured)) {
        (Some(flow), _) => json!(flow.completed(sent.packets)),
        (None, latency) => json!(latency),
    };
    let streams = part.iter().map(|i| &sending.streams[*i].0);
    let names: Vec<&str> = streams.clone().map(|stream| stream.name.as_str()).collect();
    let mut groups: Vec<_> = streams.clone().map(|s| s.mark.map(|m| m.group)).collect();
    groups.dedup();
    // Those that measure latency have one identification, whatever the base.
    let mut counted = streams.filter(|stream| stream.mark.is_some_and(|mark| !mark.latency));
    json!({
        "tx": sending.tx.to_string(),
        "rx": rx.to_string(),
        "name": names[0],
        "names": names,
        "group": if let [group] = groups[..] { group } else { None },
        "flow_id_base": counted.next().map(|stream| stream.id_base),
        "sent": sent,
        "received": received,
        "lost": sent.packets.saturating_sub(received.packets),
        "flow": flow,
    })
}

/// The streams of a direction, those together that the receiver counts together.
fn parts(ports: &TestPorts, sending: &Sending, rx: &Spec) -> Vec<Vec<usize>> {
    let knows = match rx {
        Spec::Sink(_) if !ports.is_replaced(rx) => Knows::Headers,
        _ => Knows::Marks,
    };
    let streams: Vec<&Stream> = sending.streams.iter().map(|(stream, _)| stream).collect();
    receive::together(&streams, knows)
}

/// Says which streams of other groups, or of none, are counted together; a line each.
pub fn not_told_apart(ports: &TestPorts, ways: &[(Sending, Spec)]) -> String {
    let parts = ways.iter().flat_map(|(sending, rx)| {
        let parts = parts(ports, sending, rx).into_iter();
        parts.map(move |part| (sending, rx, part))
    });
    let lines = parts.filter_map(|(sending, rx, part)| {
        let streams = part.iter().map(|i| &sending.streams[*i].0);
        let first = streams.clone().next()?.mark;
        let is_group = first.is_some() && streams.clone().all(|stream| stream.mark == first);
        let names: Vec<String> = streams.map(|s| format!("`{}`", s.name)).collect();
        (names.len() > 1 && !is_group).then(|| {
            format!(
                "{rx} cannot tell streams {} apart: their packets are counted together\n",
                names.join(", ")
            )
        })
    });
    lines.collect()
}

/// What `rows` say of how long packets took, and of those that came more than once: each of these
/// hides one that was lost. Nothing is known of streams that do not measure latency.
pub fn remarks(rows: &Value) -> String {
    let rows = rows.as_array().into_iter().flatten();
    rows.flat_map(|row| [latency(row), doubled(row)])
        .flatten()
        .collect()
}

fn latency(row: &Value) -> Option<String> {
    let times = Times::deserialize(&row["flow"]).ok()?;
    text::of_latency(row["name"].as_str()?, &times).map(|line| line + "\n")
}

fn doubled(row: &Value) -> Option<String> {
    let number = |key| row["flow"][key].as_u64().filter(|number| *number > 0);
    let (name, twice) = (&row["name"], number("duplicates")?);
    let missing = number("missing").unwrap_or(0);
    Some(format!(
        "stream {name}: {twice} packets came more than once, and {missing} never came: the \
         loss counts every arrival, duplicates too\n"
    ))
}

/// Times, if any were measured.
pub fn measured(times: Times) -> Option<Times> {
    Some(times).filter(|times| times.measured > 0)
}

/// The pacing of each direction over the whole test with its warm-up, and the clock that times
/// packets sent and received.
pub fn pacing(paths: &[Path], ways: &[(Sending, Spec)]) -> Value {
    let rows = paths.iter().zip(ways).map(|(path, (sending, rx))| {
        let pacing = path.tx.pacing();
        let late = pacing.delay.map(|delay| delay.late);
        let measures = sending.streams.iter().any(|(stream, _)| stream.is_fixed());
        // Live frames are sent by the kernel, which keeps no account of how late they are.
        let clock = match late {
            Some(_) => Some("software"),
            None => measures.then_some("kernel"),
        };
        json!({
            "tx": sending.tx.to_string(),
            "late": late.and_then(measured),
            "gaps": measured(pacing.gaps),
            "timestamps": { "tx": clock, "rx": rx.timestamps() },
        })
    });
    rows.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn latencies_and_packets_that_came_twice_are_told() {
        let row = |flow: Value| json!({ "name": "s", "flow": flow });
        let flow = |twice: u64, missing: u64| json!({ "duplicates": twice, "missing": missing });
        let times = Times {
            measured: 9,
            p50: 1_500,
            p99: 20_000,
            ..Times::default()
        };
        let told = remarks(&json!([
            row(flow(0, 9)),
            row(flow(500, 499)),
            row(json!(times)),
            row(json!(Times::default())),
            row(Value::Null)
        ]));
        let lines: Vec<&str> = told.lines().collect();
        assert!(
            lines[0].starts_with("stream \"s\": 500 packets came more than once, and 499 never")
        );
        assert!(
            lines[1].starts_with("latency of stream `s`: half up to 1.5 us, 99 % up to 20.0 us")
        );
        assert_eq!(lines.len(), 2, "{told}");
    }
}
