//! What became of each stream, for the JSON of a result.

use serde_json::{Value, json};

use loadgen::device::Path;

use super::spec::Spec;
use super::traffic::Sending;

/// A row for each stream of each direction, over the whole test but its warm-up. Nothing may be on
/// its way anymore.
pub fn rows(paths: &[Path], ways: &[(Sending, Spec)]) -> Value {
    let rows = paths.iter().zip(ways).flat_map(|(path, (sending, rx))| {
        let counts = path.tx.sent().into_iter().zip(path.rx.counts());
        let mut flows = path.rx.flows().into_iter();
        sending
            .streams
            .iter()
            .zip(counts)
            .map(move |((stream, _), (sent, received))| {
                json!({
                    "tx": sending.tx.to_string(),
                    "rx": rx.to_string(),
                    "name": stream.name,
                    "group": stream.mark.map(|mark| mark.group),
                    "sent": sent,
                    "received": received,
                    "lost": sent.packets.saturating_sub(received.packets),
                    "flow": flows.next().flatten().map(|flow| flow.completed(sent.packets)),
                })
            })
    });
    rows.collect()
}

/// How well each direction kept its schedule, over the whole test with its warm-up, and whose clock
/// says when packets were sent and came.
pub fn pacing(paths: &[Path], ways: &[(Sending, Spec)]) -> Value {
    let rows = paths.iter().zip(ways).map(|(path, (sending, rx))| {
        let late = path.tx.pacing().map(|pacing| pacing.late);
        let measures = sending.streams.iter().any(|(stream, _)| stream.is_fixed());
        // Live frames are sent by the kernel, which keeps no account of how late they are.
        let clock = match late {
            Some(_) => Some("software"),
            None => measures.then_some("kernel"),
        };
        json!({
            "tx": sending.tx.to_string(),
            "late": late.filter(|late| late.measured > 0),
            "timestamps": { "tx": clock, "rx": rx.timestamps() },
        })
    });
    rows.collect()
}
