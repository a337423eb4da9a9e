//! The load test's result file.
//!
//! Two top-level keys, `vars` and `stats`, are what T-Rex's load-test scripts write and the
//! `graph.rb` renderer reads; a third, `parshall`, holds what those have no room for, and
//! `graph.rb` ignores it:
//!
//! | key | value |
//! | --- | --- |
//! | `vars` | `profile_file`, `warmup_mult`, `warmup_duration`, `rampup_target` (%), `rampup_duration`, `hold_duration` (s), `unidirectional` |
//! | `stats` | an object in time order, `"<seconds>"` to `{"0": port, "1": port, "global": ..}`, a sample a second |
//! | port | `opackets`, `ipackets`, `obytes`, `ibytes` (since the ramp began, with frame check sequence), `oerrors`, `ierrors`, `tx_bps`, `rx_bps` (layer 2), `tx_pps`, `rx_pps`, `tx_bps_L1`, `rx_bps_L1`, `tx_util`, `rx_util` (% of the line) |
//! | `parshall.schema` | 1; grows when a key changes its meaning |
//! | `parshall.valid`, `.why` | whether the generator sent what was offered over the whole ramp, and if not, why |
//! | `parshall.interrupted` | whether it was ended early; then all is that of the time until then |
//! | `parshall.line_bps` | the line rate to which `*_util` is relative; for a port without a speed, the target on layer 1 |
//! | `parshall.frame_size` | mean frame size with frame check sequence in bytes |
//! | `parshall.whole` | totals of ramp and hold, for each direction, late packets included (see [`Trial`](crate::measure::trial::Trial)) |
//! | `parshall.samples` | for each moment and direction: offered, sent, received, loss, valid (see [`Sample`]) |
//!
//! Rates always have a decimal point, and no sample has a `tx_pps` of 0, because `graph.rb` divides
//! by it. In a test of one direction, from port 0 to port 1, port 0 has no `rx` keys and port 1 no
//! `tx` keys.
#![cfg_attr(not(test), warn(clippy::cast_possible_truncation))]

use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::measure::ramp::{Plan, Ramp, Sample, WaySample};
use crate::model::rate::Rate;
use crate::model::units::Bits;

/// The part of the result file that is not measured.
#[derive(Debug, Clone, PartialEq)]
pub struct About<'a> {
    /// Profile as the user named it; built-in ones are written as their T-Rex file names
    /// (`bench.py`).
    pub profile: &'a str,
    /// Warm-up rate as the user wrote it.
    pub warmup: String,
    /// Target of the ramp as the user wrote it.
    pub target: Rate,
    /// Mean frame size in bytes with frame check sequence.
    pub size: f64,
    /// Line rate of the ports on layer 1, if they have one.
    pub line: Option<Bits>,
}

/// The whole result file as a JSON value.
pub fn result(about: &About<'_>, plan: &Plan, ramp: &Ramp) -> Value {
    let line = about
        .line
        .filter(|l| l.0 > 0.0)
        .unwrap_or_else(|| plan.target.l1(about.size));
    let one_way = ramp.whole.ways.len() < 2;
    let mut stats = Map::new();
    for sample in &ramp.samples {
        if !sample.ways.is_empty() && sample.ways.iter().all(|w| w.tx_pps > 0.0) {
            stats.insert(format!("{:.3}", sample.at), ports(sample, line));
        }
    }
    json!({
        "vars": {
            "profile_file": file(about.profile),
            "warmup_mult": about.warmup,
            "warmup_duration": plan.warmup.as_secs_f64(),
            "rampup_target": if let Rate::Percent(v) = about.target { v } else { 100.0 },
            "rampup_duration": plan.ramp.as_secs_f64(),
            "hold_duration": plan.hold.as_secs_f64(),
            "unidirectional": one_way,
        },
        "stats": stats,
        "parshall": Block {
            schema: 1,
            version: env!("CARGO_PKG_VERSION"),
            valid: ramp.whole.valid,
            why: &ramp.whole.why,
            interrupted: ramp.whole.interrupted,
            target: about.target.to_string(),
            target_pps: plan.target.0,
            steps: plan.steps,
            line_bps: line.0,
            frame_size: about.size,
            whole: Whole {
                seconds: ramp.whole.seconds,
                loss: ramp.whole.loss(),
                tx_pps: ramp.whole.sent_pps().0,
                rx_pps: ramp.whole.forwarded.0,
                held: &ramp.whole.held,
                ways: &ramp.whole.ways,
            },
            samples: &ramp.samples,
        },
    })
}

#[derive(Serialize)]
struct Block<'a> {
    schema: u32,
    version: &'a str,
    valid: bool,
    why: &'a str,
    interrupted: bool,
    target: String,
    target_pps: f64,
    steps: u32,
    line_bps: f64,
    frame_size: f64,
    whole: Whole<'a>,
    samples: &'a [Sample],
}

#[derive(Serialize)]
struct Whole<'a> {
    seconds: f64,
    loss: f64,
    tx_pps: f64,
    rx_pps: f64,
    held: &'a [u64],
    ways: &'a [crate::measure::way::WayResult],
}

/// The profile's file name in T-Rex, by which `graph.rb` labels its charts.
fn file(profile: &str) -> String {
    if profile.contains('.') {
        profile.to_owned()
    } else {
        format!("{profile}.py")
    }
}

/// One entry of `stats`. Direction 0 goes from port 0 to port 1, direction 1 back.
fn ports(sample: &Sample, line: Bits) -> Value {
    let mut ends = [Map::new(), Map::new()];
    let (mut lost, mut all) = (0.0, 0.0);
    for (from, way) in sample.ways.iter().take(2).enumerate() {
        transmitted(&mut ends[from], way, line);
        received(&mut ends[1 - from], way, line);
        lost += way.tx_bps - way.rx_bps;
        all += way.tx_bps;
    }
    // As in T-Rex: no drops below a tenth of what is sent.
    let drop = if lost > all / 10.0 { lost } else { 0.0 };
    let [zero, one] = ends;
    json!({ "0": zero, "1": one, "global": { "rx_drop_bps": drop } })
}

fn transmitted(port: &mut Map<String, Value>, way: &WaySample, line: Bits) {
    let total = &way.total.sent;
    port.extend([
        ("opackets".to_owned(), total.packets.into()),
        ("obytes".to_owned(), total.bytes.into()),
        ("oerrors".to_owned(), 0.into()),
        ("tx_bps".to_owned(), way.tx_bps.into()),
        ("tx_pps".to_owned(), way.tx_pps.into()),
        ("tx_bps_L1".to_owned(), way.tx_l1_bps.into()),
        ("tx_util".to_owned(), way.tx_util(line).into()),
    ]);
}

fn received(port: &mut Map<String, Value>, way: &WaySample, line: Bits) {
    let total = &way.total.received;
    port.extend([
        ("ipackets".to_owned(), total.packets.into()),
        ("ibytes".to_owned(), total.bytes.into()),
        ("ierrors".to_owned(), 0.into()),
        ("rx_bps".to_owned(), way.rx_bps.into()),
        ("rx_pps".to_owned(), way.rx_pps.into()),
        ("rx_bps_L1".to_owned(), way.rx_l1_bps.into()),
        ("rx_util".to_owned(), way.rx_util(line).into()),
    ]);
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::clock::Clock;
    use crate::measure::ramp;
    use crate::measure::simulated::{Device, Simulation};
    use crate::model::units::Pps;

    fn file(ways: usize, line: Option<Bits>) -> Value {
        let simulation = Simulation::new(Device {
            capacity: 7e5,
            ..Device::default()
        });
        let plan = Plan {
            target: Pps(1e6),
            ramp: Duration::from_secs(10),
            steps: 10,
            hold: Duration::from_secs(2),
            ..Plan::default()
        };
        let mut paths = simulation.paths(ways);
        ramp::warm_up(&plan, &mut paths, &simulation).unwrap();
        let ramp = ramp::run(&plan, &mut paths, &simulation, &mut |_| {}).unwrap();
        assert_eq!(simulation.now().0 / 1_000_000_000, 42);
        let about = About {
            profile: "bench",
            warmup: Rate::Packets(plan.warmup_rate).to_string(),
            target: Rate::Percent(50.0),
            size: 64.0,
            line,
        };
        result(&about, &plan, &ramp)
    }

    fn keys(value: &Value) -> Vec<&str> {
        let mut keys: Vec<_> = value
            .as_object()
            .unwrap()
            .keys()
            .map(String::as_str)
            .collect();
        keys.sort_unstable();
        keys
    }

    /// The same keys and kinds of number as in a file that `graph.rb` is known to render.
    #[test]
    fn same_shape_as_the_known_file() {
        let known: Value =
            serde_json::from_str(include_str!("../tests/loadtest-sample.json")).unwrap();
        let ours = file(2, Some(Bits(1e9)));
        assert_eq!(keys(&ours["vars"]), keys(&known["vars"]));
        let known = known["stats"].as_object().unwrap().values().next().unwrap();
        for sample in ours["stats"].as_object().unwrap().values() {
            for port in ["0", "1"] {
                assert_eq!(keys(&sample[port]), keys(&known[port]));
                for (key, value) in sample[port].as_object().unwrap() {
                    assert_eq!(value.is_f64(), known[port][key].is_f64(), "{key}");
                }
                assert!(sample[port]["tx_pps"].as_f64().unwrap() > 0.0);
            }
        }
        assert_eq!(ours["vars"]["profile_file"], "bench.py");
        assert_eq!(ours["vars"]["warmup_mult"], "1kpps");
        assert!(ours["vars"]["rampup_target"].is_f64());
    }

    #[test]
    fn samples_are_in_order_of_time_and_tell_the_truth() {
        let ours = file(2, Some(Bits(672e6)));
        let times: Vec<f64> = ours["stats"]
            .as_object()
            .unwrap()
            .keys()
            .map(|k| k.parse().unwrap())
            .collect();
        assert_eq!(times.len(), 12);
        assert!(times.is_sorted());
        let last = &ours["stats"]["12.000"];
        assert!((last["0"]["tx_util"].as_f64().unwrap() - 100.0).abs() < 1.0);
        assert!((last["1"]["rx_pps"].as_f64().unwrap() - 7e5).abs() < 1e4);
        assert!(last["global"]["rx_drop_bps"].as_f64().unwrap() > 0.0);
        let ours = &ours["parshall"];
        assert_eq!(
            (ours["schema"].as_u64(), ours["valid"].as_bool()),
            (Some(1), Some(true))
        );
        assert_eq!(ours["samples"].as_array().unwrap().len(), 12);
        assert!(ours["whole"]["ways"][1]["offered"].as_u64().unwrap() > 1_000_000);
    }

    #[test]
    fn one_way_has_no_zero_to_divide_by() {
        let ours = file(1, None);
        assert_eq!(ours["vars"]["unidirectional"], true);
        for sample in ours["stats"].as_object().unwrap().values() {
            assert!(sample["0"].get("rx_pps").is_none() && sample["1"].get("tx_pps").is_none());
            assert!(sample["1"]["rx_pps"].is_f64() && sample["0"]["tx_util"].is_f64());
        }
        assert!((ours["stats"]["12.000"]["0"]["tx_util"].as_f64().unwrap() - 100.0).abs() < 1e-3);
    }
}
