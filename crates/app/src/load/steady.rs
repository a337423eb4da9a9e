//! What load tests and searches, which measure at a steady rate, ask of traffic and options.

use std::time::Duration;

use loadgen::measure::search;
use loadgen::model::units::Pps;
use session::Spec;

use super::traffic::{Sending, duration};

/// Refuses streams that come in bursts.
pub fn refuse_bursts(sendings: &[Sending]) -> crate::Outcome {
    let mut streams = sendings.iter().flat_map(|s| &s.streams);
    match streams.find(|(stream, _)| !stream.is_steady()) {
        None => Ok(()),
        Some((stream, _)) => Err(format!(
            "stream `{}` sends in bursts, but a load test measures at a steady rate; send it by \
             `parshall send`",
            stream.name
        )
        .into()),
    }
}

/// Refuses a profile that has no other rate than its own.
pub fn refuse_fixed(sendings: &[Sending], profile: &str) -> crate::Outcome {
    if sendings.iter().all(|s| s.load.is_scalable) {
        return Ok(());
    }
    Err(format!(
        "profile {profile}: no rate changes what it sends, so there is no other rate to try: its \
         streams measure latency and keep their own rate, or its bursts are single packets with \
         gaps of their own; hold it with `parshall loadtest --duration` and -m 1, or add a stream \
         whose pace follows the rate"
    )
    .into())
}

/// Notes the streams that are not sent with the given addresses, if there are any.
pub fn address_note(ways: &[(Sending, Spec)]) -> Option<String> {
    let notes = ways.iter().filter_map(|(sending, _)| {
        let note = sending.address_note.as_ref()?;
        Some(format!("{}: {note}", sending.tx))
    });
    let notes: Vec<String> = notes.collect();
    (!notes.is_empty()).then(|| notes.join("; "))
}

/// The length of a trial of a search.
pub fn trial(text: &str) -> Result<Duration, String> {
    let long_enough = |length: &Duration| *length >= search::SHORTEST;
    let length = Some(duration(text)?).filter(long_enough);
    length.ok_or_else(|| "a trial of a search takes one second or more".to_owned())
}

/// A share from 0 to below 1.
pub fn share(text: &str) -> Result<f64, String> {
    let value = text.parse::<f64>().ok().filter(|v| (0.0..1.0).contains(v));
    value.ok_or_else(|| "expected a share from 0 to below 1, for example 0.001".to_owned())
}

/// The least rate that every direction can have: streams that measure latency keep their own.
pub fn floor<'a>(sendings: impl IntoIterator<Item = &'a Sending>) -> Pps {
    let fixed = sendings.into_iter().map(|sending| sending.load.fixed.0);
    Pps(fixed.fold(0.0, f64::max))
}
