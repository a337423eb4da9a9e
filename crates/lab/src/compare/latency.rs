//! Latency under load: how long packets take through a device at shares of its highest rate.

use std::time::Duration;

use loadgen::histogram::Times;
use loadgen::measure::repeat;
use report::model::{Latency, Run};
use report::setup::Spread;
use sandbox::{Error, cleanup};

use super::load::{self, Held, HeldStream};
use super::topology::Topology;
use super::{Comparison, packets};
use crate::conditions::Watch;
use crate::invocation::{Loadtest, Pair, Search};

/// Shares of the highest rate.
pub(super) const SHARES: [f64; 3] = [0.1, 0.5, 0.9];
/// Of so many packets one measures latency. A divisor of the order in which live frames are sent, and
/// of a rate in whole packets.
const ONE_IN: u64 = 128;

/// The trial at a share of the highest rate `max_pps` of `ways` directions together.
fn trial(max_pps: f64, ways: usize, share: f64, length: Duration) -> Search {
    let each = max_pps * share / ways.max(1) as f64;
    let latency = ((each / ONE_IN as f64).floor() as u64).max(1);
    Search::Hold {
        rate: latency * ONE_IN,
        latency,
        length,
    }
}

/// The result of a trial at `offered_pps`, all directions together. Of two directions the slower one
/// counts.
fn of(share: f64, offered_pps: f64, held: &Held) -> Latency {
    let times = || held.streams.iter().filter_map(|stream| stream.flow);
    let most = |of: fn(&Times) -> u64| times().map(|times| of(&times)).max();
    let sum = |of: fn(&HeldStream) -> u64| -> u64 { held.streams.iter().map(of).sum() };
    let (sent, received) = (sum(|s| s.sent.packets), sum(|s| s.received.packets));
    let measured = times().map(|times| times.measured).sum();
    let why = match (held.valid, measured) {
        (false, _) => held.why.clone(),
        (true, 0) => "no packet that measures latency came back".to_owned(),
        (true, _) => String::new(),
    };
    Latency {
        share,
        offered_pps,
        valid: why.is_empty(),
        why,
        loss: sent.saturating_sub(received) as f64 / sent.max(1) as f64,
        disturbed: false,
        measured,
        p50_ns: most(|times| times.p50),
        p99_ns: most(|times| times.p99),
        p99_9_ns: most(|times| times.p99_9),
    }
}

/// A trial of which nothing came.
fn nothing(share: f64, why: String) -> Latency {
    Latency {
        share,
        why,
        ..Latency::default()
    }
}

impl Comparison<'_> {
    /// Measures the latency at shares of the highest rate of `run`, if that is asked for and known.
    pub(super) fn latencies(
        &mut self,
        run: &Run,
        spread: Spread,
        at: &Topology,
        pairs: &[Pair],
        label: &str,
    ) -> Result<Vec<Latency>, Error> {
        let Some(length) = self.latency.filter(|_| run.valid) else {
            return Ok(Vec::new());
        };
        let others = self.cpus.off_device(spread, &kernel::cpu::usable());
        let file = cleanup::directory().join("profile.json");
        let packets = packets::of(&run.load, &file)?;
        let mut all = Vec::new();
        for share in SHARES {
            self.say(&format!("{label}: latency at {:.0} %", share * 100.0));
            let search = trial(run.max_pps, pairs.len(), share, length);
            let test = Loadtest {
                pairs,
                packets,
                cpus: &[self.cpus.generator],
                others: &others,
                search,
            };
            let measured = repeat::until_it_counts(|| {
                let watch = Watch::start()?;
                let found = match load::hold(self.exe, &at.generator, &test) {
                    Ok(held) => of(share, search.offered_pps(pairs.len()), &held),
                    Err(error) => nothing(share, error.to_string()),
                };
                let disturbed = watch.end()?.disturbed().is_some();
                let counts = !self.repeats || !disturbed;
                Ok::<_, Error>((Latency { disturbed, ..found }, counts))
            })?;
            all.push(measured);
        }
        Ok(all)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_have_a_whole_share_that_measures() {
        for (max, ways, share, rate) in [
            (1e6, 1, 0.1, 99_968),
            (1e6, 2, 0.5, 249_984),
            (10.0, 1, 0.1, 128),
        ] {
            let Search::Hold {
                rate: found,
                latency,
                ..
            } = trial(max, ways, share, Duration::from_secs(2))
            else {
                panic!("another search");
            };
            assert_eq!((found, latency), (rate, rate / ONE_IN));
        }
    }

    #[test]
    fn the_slower_direction_counts_and_an_invalid_trial_says_why() {
        let stream = |p50: u64| {
            format!(
                r#"{{"sent": {{"packets": 10, "bytes": 640}}, "received": {{"packets": 9, "bytes": 576}},
                    "flow": {{"measured": 9, "min": 1, "avg": 2.0, "p50": {p50}, "p90": 7, "p99": 8,
                    "p99_9": 9, "max": 9, "jitter": 0}}}}"#
            )
        };
        let held = |valid: bool, streams: &str| -> Held {
            let why = if valid { "" } else { "it fell short" };
            let text = format!(r#"{{"valid": {valid}, "why": "{why}", "streams": [{streams}]}}"#);
            serde_json::from_str(&text).unwrap()
        };
        let both = [stream(5), stream(6)].join(",");
        let found = of(0.5, 100.0, &held(true, &both));
        assert_eq!(
            (found.p50_ns, found.measured, found.valid),
            (Some(6), 18, true)
        );
        assert!((found.loss - 0.1).abs() < 1e-9);
        let found = of(0.5, 100.0, &held(false, &both));
        assert_eq!((found.valid, found.why.as_str()), (false, "it fell short"));
        assert!(!of(0.5, 100.0, &held(true, "")).valid);
    }
}
