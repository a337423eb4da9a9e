//! The result of a load test as that of a comparison, and its page.

use serde_json::{Value, json};

use loadgen::device::Sender;
use loadgen::measure::ramp::Ramp;
use loadgen::measure::search::Found;
use loadgen::model::units::Pps;
use loadgen::receive::{Match, Version};
use report::html::{self, Drawing};
use report::loadtest::{self, LoadTest};
use report::model::{LabResult, Machine, Run};
use report::setup::{Direction, Family, Flows, Load, Size, Word};
use session::Spec;

use super::measured::Measured;
use super::traffic::{Sending, Traffic};

/// The page of a test whose JSON is `document`, with too much loss from the share `loss` on.
pub fn html(
    document: &Value,
    profile: &str,
    (run, measured): (Run, Measured),
    loss: f64,
) -> String {
    let name = "device";
    let tests = loadtest::of_json(name, document).unwrap_or_else(|why| {
        vec![LoadTest {
            name: name.to_owned(),
            remarks: vec![why],
            ..LoadTest::default()
        }]
    });
    let of_profile = |test| LoadTest {
        profile: profile.to_owned(),
        ..test
    };
    let tests: Vec<LoadTest> = tests.into_iter().map(of_profile).collect();
    let result = LabResult {
        machine: Machine {
            ports: measured.conditions.ports.clone(),
            ..measured.machine
        },
        runs: vec![Run {
            conditions: Some(measured.conditions),
            watts: measured.energy.watts,
            microjoules_per_packet: measured.energy.microjoules_per_packet,
            ..run
        }],
        ..LabResult::default()
    };
    let drawing = Drawing {
        title: &format!("Load test: {profile}"),
        threshold: loss,
        measured: Some(&result),
    };
    html::load_tests(&tests, &drawing)
}

/// The result of a search. Nothing is known of the processors of a device tested from outside.
pub fn of_search(traffic: &Traffic, sender: Sender, ways: &[(Sending, Spec)], found: Found) -> Run {
    let port = ways.first().map(|(_, rx)| format!("tester's {rx}"));
    Run {
        dut: Word::Other("device".into()),
        io: Word::Other(port.unwrap_or_default()),
        profile: traffic.profile.clone(),
        load: load(ways),
        round: 1,
        sender: sender.into(),
        ..Run::from(found)
    }
}

/// The result of a ramp: the rate at which as many samples pass as fail. To pass, no direction may
/// lose more than `loss`.
pub fn of_ramp(
    traffic: &Traffic,
    sender: Sender,
    ways: &[(Sending, Spec)],
    ramp: &Ramp,
    loss: f64,
) -> Run {
    let found = Found {
        trials: ramp.points(),
        ..Found::default()
    };
    let found = match ramp.max_rate(loss) {
        Err(why) => Found { why, ..found },
        Ok(highest) => Found {
            valid: true,
            why: match highest.is_bounded {
                true => "no more was offered".to_owned(),
                false => String::new(),
            },
            max_pps: highest.max_pps,
            interval_pps: highest.interval_pps,
            l1_bps: ways.first().map_or(0.0, |(sending, _)| {
                Pps(highest.max_pps).l1(sending.load.size).0
            }),
            loss: highest.loss,
            ..found
        },
    };
    let found = found.ended_early(ramp.whole.interrupted);
    of_search(traffic, sender, ways, found)
}

/// The highest rate of a run for the JSON of a ramp, as the text and the page have it.
pub fn highest(run: &Run, allowed: f64) -> Value {
    json!({
        "valid": run.valid,
        "why": run.why,
        "allowed": allowed,
        "max_pps": run.valid.then_some(run.max_pps),
        "interval_pps": run.interval_pps,
        "l1_bps": run.valid.then_some(run.l1_bps),
        "loss": run.valid.then_some(run.loss),
    })
}

fn load(ways: &[(Sending, Spec)]) -> Load {
    let streams = || ways.iter().flat_map(|(sending, _)| &sending.streams);
    let mut sizes: Vec<usize> = streams().map(|(s, _)| s.size().round() as usize).collect();
    sizes.sort_unstable();
    sizes.dedup();
    Load {
        size: match sizes[..] {
            [size] => Size::Bytes(size as u32),
            _ => Size::Imix,
        },
        flows: if streams().any(|(stream, _)| !stream.variables.is_empty()) {
            Flows::Many
        } else {
            Flows::One
        },
        direction: match ways.len() {
            0 | 1 => Direction::OneWay,
            _ => Direction::BothWays,
        },
        family: match streams().find_map(|(stream, _)| Match::of(stream)) {
            Some(found) if found.version == Version::Ip6 => Family::Ip6,
            _ => Family::Ip4,
        },
        ..Load::default()
    }
}
