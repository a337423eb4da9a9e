//! The ramp against simulated devices.

use super::*;
use crate::measure::simulated::{Device, Simulation};
use crate::model::units::Bits;

fn plan() -> Plan {
    Plan {
        target: Pps(1e6),
        warmup: Duration::from_secs(2),
        ramp: Duration::from_secs(20),
        steps: 40,
        hold: Duration::from_secs(5),
        ..Plan::default()
    }
}

fn ramp(device: Device, ways: usize) -> Ramp {
    let simulation = Simulation::new(device);
    let (mut paths, mut seen) = (simulation.paths(ways), 0);
    warm_up(&plan(), &mut paths, &simulation).unwrap();
    let ramp = run(&plan(), &mut paths, &simulation, &mut |_| seen += 1).unwrap();
    assert_eq!(seen, ramp.samples.len());
    ramp
}

#[test]
fn the_staircase_rises_to_the_target_and_holds() {
    let ramp = ramp(
        Device {
            capacity: 5e6,
            ..Device::default()
        },
        1,
    );
    assert_eq!(ramp.samples.len(), 25);
    for (i, sample) in ramp.samples.iter().enumerate() {
        assert!((sample.at - (i + 1) as f64).abs() < 1e-6);
        let wanted = if i < 20 {
            1e6 * (2.0 * i as f64 + 1.5) / 40.0
        } else {
            1e6
        };
        assert!(
            (sample.ways[0].tx_pps / wanted - 1.0).abs() < 1e-3,
            "{i}: {sample:?}"
        );
        assert!(sample.valid);
    }
    assert!(
        ramp.whole.valid && ramp.whole.loss() == 0.0,
        "{:?}",
        ramp.whole
    );
    let last = ramp.samples[24].ways[0];
    assert!((last.tx_util(Bits(672e6)) - 100.0).abs() < 0.1, "{last:?}");
    assert!((last.tx_l1_bps / last.tx_bps - 84.0 / 64.0).abs() < 1e-9);
}

#[test]
fn loss_is_seen_where_it_begins() {
    let ramp = ramp(
        Device {
            capacity: 5e5,
            ..Device::default()
        },
        2,
    );
    assert!(ramp.samples[8].ways[1].loss < 0.2);
    assert!((ramp.samples[24].ways[1].loss - 0.5).abs() < 1e-3);
    assert!(ramp.samples.iter().all(|s| s.valid) && ramp.whole.valid);
    assert_eq!(ramp.whole.ways.len(), 2);
}

/// A single second far above the threshold that a queue helped to pass is not the result.
#[test]
fn the_highest_rate_is_what_all_samples_say() {
    let device = Device {
        capacity: 5e5,
        ..Device::default()
    };
    let mut ramp = ramp(device, 1);
    let highest = ramp.max_rate(0.001).unwrap();
    assert!(
        (0.96..1.01).contains(&(highest.max_pps / 5e5)),
        "{highest:?}"
    );
    let (low, high) = highest.interval_pps.unwrap();
    assert!(low < 5e5 && 5e5 < high, "{highest:?}");
    ramp.samples[17].ways[0].rx_pps = ramp.samples[17].ways[0].tx_pps;
    let lucky = ramp.max_rate(0.001).unwrap();
    assert!(
        (lucky.max_pps / highest.max_pps - 1.0).abs() < 0.06,
        "{lucky:?}"
    );
    assert!(lucky.loss <= 0.001);
}

#[test]
fn a_device_that_keeps_up_is_as_fast_as_the_ramp_goes() {
    let device = Device {
        capacity: 5e6,
        ..Device::default()
    };
    let ramp = ramp(device, 2);
    let highest = ramp.max_rate(0.001).unwrap();
    assert!((highest.max_pps / 2e6 - 1.0).abs() < 0.001, "{highest:?}");
    let nothing = Ramp {
        samples: Vec::new(),
        ..ramp
    };
    assert!(nothing.max_rate(0.001).unwrap_err().contains("sample"));
}

/// A direction without loss does not make up for one with.
#[test]
fn each_way_counts() {
    let device = Device {
        capacity: 5e6,
        ..Device::default()
    };
    let mut ramp = ramp(device, 2);
    for sample in &mut ramp.samples {
        sample.ways[1].rx_pps *= 0.9985;
    }
    let received = &mut ramp.whole.ways[1].received.packets;
    *received = (*received as f64 * 0.9985) as u64;
    let why = ramp.max_rate(0.001).unwrap_err();
    assert!(why.contains("so little was lost"), "{why}");
}

#[test]
fn short_sending_is_marked_and_is_no_loss() {
    let ramp = ramp(
        Device {
            capacity: 5e6,
            ceiling: 6e5,
            ..Device::default()
        },
        1,
    );
    assert!(ramp.samples[5].valid && !ramp.samples[24].valid);
    assert!(
        !ramp.whole.valid && ramp.whole.why.contains("short"),
        "{}",
        ramp.whole.why
    );
    assert_eq!(ramp.whole.loss(), 0.0);
}

#[test]
fn a_plan_of_nothing_ends() {
    let simulation = Simulation::new(Device::default());
    let zero = Duration::ZERO;
    let plan = Plan {
        warmup: zero,
        ramp: zero,
        hold: zero,
        steps: 0,
        sample: zero,
        ..Plan::default()
    };
    let ramp = run(&plan, &mut simulation.paths(1), &simulation, &mut |_| {}).unwrap();
    assert!(ramp.samples.is_empty() && !ramp.whole.valid);
}

/// Streams that keep their own rate are sent at it from the first step on, so that is what is said.
#[test]
fn no_step_is_below_what_keeps_its_own_rate() {
    let plan = Plan {
        floor: Pps(3e5),
        ..plan()
    };
    let at = |tenths: u64| plan.rate(Duration::from_millis(100 * tenths)).0;
    assert_eq!([at(0), at(60), at(61), at(200)], [3e5, 3.25e5, 3.25e5, 1e6]);
    let simulation = Simulation::new(Device::default());
    let mut paths = simulation.paths(1);
    let ramp = run(&plan, &mut paths, &simulation, &mut |_| ()).unwrap();
    let offered = ramp.samples.iter().map(|sample| sample.ways[0].offered_pps);
    assert!(offered.fold(f64::INFINITY, f64::min) > 2.99e5);
    let rates: Vec<f64> = plan.rates().map(|rate| rate.0).collect();
    assert_eq!(
        (rates.len(), rates[0], rates[1], rates[13], rates[41]),
        (42, plan.warmup_rate.0, 3e5, 3.25e5, 1e6)
    );
    let warmup = Duration::ZERO;
    assert_eq!(Plan { warmup, ..plan }.rates().count(), 41);
    let at_the_floor = |target: f64| Plan {
        target: Pps(target),
        ..plan
    };
    assert!(at_the_floor(3e5).is_constant() && !at_the_floor(3.1e5).is_constant());
}

/// Interrupted in the ramp, it has the samples and totals of the time until then; in the warm-up,
/// none.
#[test]
fn an_interrupted_ramp_keeps_what_it_measured() {
    for (seconds, samples) in [(1, 0), (10, 7)] {
        let simulation = Simulation::new(Device {
            interrupted: Duration::from_secs(seconds),
            ..Device::default()
        });
        let mut paths = simulation.paths(1);
        warm_up(&plan(), &mut paths, &simulation).unwrap();
        let ramp = run(&plan(), &mut paths, &simulation, &mut |_| {}).unwrap();
        assert!(simulation.now().since(Nanos(0)) <= Duration::from_millis(1000 * seconds + 300));
        assert!(ramp.whole.interrupted);
        assert_eq!(ramp.samples.len(), samples, "{ramp:?}");
        assert_eq!(ramp.whole.valid, samples > 0, "{:?}", ramp.whole);
        assert_eq!(
            ramp.whole.sent() > 1_000_000,
            samples > 0,
            "{:?}",
            ramp.whole
        );
        assert_eq!(ramp.whole.loss(), 0.0);
    }
    assert!(!ramp(Device::default(), 1).whole.interrupted);
}

/// Where the whole load tester stood still, all that its schedule has was sent, but not at its rate.
#[test]
fn samples_of_a_load_tester_that_stood_still_are_marked() {
    let stopped = Device {
        stopped: (Duration::from_millis(10_800), Duration::from_millis(2400)),
        capacity: 5e6,
        ..Device::default()
    };
    let ramp = ramp(stopped, 1);
    let marked: Vec<f64> = ramp
        .samples
        .iter()
        .filter(|s| !s.valid)
        .map(|s| s.at.round())
        .collect();
    let lengths: Vec<f64> = ramp.points().iter().map(|p| p.seconds).collect();
    assert_eq!(marked.len(), 1, "{:?}", ramp.samples);
    assert!(lengths.iter().all(|length| *length > 0.1), "{lengths:?}");
    for sample in &ramp.samples {
        let way = sample.ways[0];
        assert!((way.rx_pps / way.tx_pps - 1.0).abs() < 0.1, "{sample:?}");
    }
}
