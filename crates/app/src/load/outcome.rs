//! A load test in the terms of the report.

use loadgen::point::Point;
use loadgen::ramp::{Ramp, Sample, WaySample};
use loadgen::search::Found;
use loadgen::units::{Bits, Pps};
use report::model::{Direction, Flows, LabResult, Run, Spread};

use super::spec::Spec;
use super::traffic::{Sending, Traffic};

/// The page for one run.
pub fn html(run: Run) -> String {
    report::html::page(&LabResult {
        machine: lab::machine::describe(),
        runs: vec![run],
        ..LabResult::default()
    })
}

/// What a search found.
pub fn of_search(traffic: &Traffic, sender: &str, ways: &[(Sending, Spec)], found: &Found) -> Run {
    Run {
        valid: found.valid,
        why: found.why.clone(),
        max_pps: found.max_pps,
        interval_pps: found.interval_pps,
        l1_bps: found.l1_bps,
        loss: found.loss,
        saturation_pps: found.saturation_pps,
        limited_by_generator: found.limited_by_generator,
        ramp: found.trials.clone(),
        ..blank(traffic, sender, ways)
    }
}

/// A ramp; its result is the rate that as many samples pass as fail, losing no more than `loss` in any direction.
pub fn of_ramp(
    traffic: &Traffic,
    sender: &str,
    ways: &[(Sending, Spec)],
    ramp: &Ramp,
    loss: f64,
) -> Run {
    let mut before = 0.0;
    let points: Vec<Point> = ramp
        .samples
        .iter()
        .map(|sample| point(sample, std::mem::replace(&mut before, sample.at)))
        .collect();
    let run = Run {
        why: ramp.whole.why.clone(),
        ..blank(traffic, sender, ways)
    };
    let Some(found) = ramp.max_rate(loss) else {
        return Run {
            ramp: points,
            ..run
        };
    };
    let Bits(l1_bps) = ways.first().map_or(Bits::default(), |(sending, _)| {
        Pps(found.max_pps).l1(sending.load.size)
    });
    Run {
        valid: true,
        max_pps: found.max_pps,
        interval_pps: Some(found.interval_pps),
        l1_bps,
        loss: found.loss,
        ramp: points,
        ..run
    }
}

fn point(sample: &Sample, before: f64) -> Point {
    let sum = |of: fn(&WaySample) -> f64| sample.ways.iter().map(of).sum::<f64>();
    let (sent, received) = (sum(|w| w.tx_pps), sum(|w| w.rx_pps));
    Point {
        offered_pps: sum(|w| w.offered_pps),
        sent_pps: sent,
        forwarded_pps: received,
        loss: if sent > 0.0 {
            (1.0 - received / sent).max(0.0)
        } else {
            0.0
        },
        valid: sample.valid,
        seconds: sample.at - before,
    }
}

fn blank(traffic: &Traffic, sender: &str, ways: &[(Sending, Spec)]) -> Run {
    let streams = || ways.iter().flat_map(|(sending, _)| &sending.streams);
    let mut sizes: Vec<usize> = streams().map(|(stream, _)| stream.size()).collect();
    sizes.sort_unstable();
    sizes.dedup();
    Run {
        dut: "device".into(),
        io: ways.first().map_or(String::new(), |(_, rx)| rx.to_string()),
        profile: traffic.profile.clone(),
        size: match sizes[..] {
            [size] => size.to_string(),
            _ => "imix".into(),
        },
        flows: if streams().any(|(stream, _)| !stream.variables.is_empty()) {
            Flows::Many
        } else {
            Flows::One
        },
        direction: if ways.len() > 1 {
            Direction::BothWays
        } else {
            Direction::OneWay
        },
        // What a device is like that is tested from outside is not known; usually it has processors of its own.
        spread: Spread::Apart,
        round: 1,
        sender: sender.into(),
        ..Run::default()
    }
}
