//! Devices with deep buffers, which give back late what they cannot forward.

use proptest::prelude::*;

use super::*;
use crate::measure::ramp::{self, Plan};
use crate::measure::search::{self, Goal};
use crate::measure::simulated::{Device, Simulation};
use crate::measure::trial::{self, Trial};
use crate::model::units::Pps;

const ALLOWED: f64 = 0.001;

/// A device that forwards this many packets a second, and whose full buffer takes this long to
/// drain.
fn buffered(capacity: f64, drain: f64) -> Device {
    Device {
        capacity,
        queue: capacity * drain,
        delay: Duration::from_millis(1),
        ..Device::default()
    }
}

fn trial(device: Device, ways: usize, pps: f64, seconds: f64) -> Trial {
    let simulation = Simulation::new(device);
    let paths = &mut simulation.paths(ways);
    let length = Duration::from_secs_f64(seconds);
    trial::run(paths, Pps(pps), length, &simulation).unwrap()
}

/// Nothing is lost, but it is said what came back while packets were sent, and what was held.
#[test]
fn what_a_buffer_holds_is_not_forwarded() {
    let trial = trial(buffered(10_417.0, 2.0), 1, 14_000.0, 3.0);
    assert!(trial.valid && trial.loss() < 1e-4, "{trial:?}");
    assert!((8_000..8_100).contains(&trial.held[0]), "{trial:?}");
    assert!((trial.forwarded.0 / 10_417.0 - 1.0).abs() < 0.002);
    assert!(!trial.passes(ALLOWED));
    let why = trial.failure();
    assert!(why.contains("held 80") && why.contains("10.4"), "{why}");
}

/// A ramp and a search find what such a device does, whether its buffer drains in less time than a
/// trial takes, in as much or in more.
#[test]
fn a_buffer_makes_no_device_faster() {
    let capacity = 10_417.0;
    for drain in [0.05, 0.3, 1.0, 1.6, 3.0, 8.0] {
        let device = buffered(capacity, drain);
        let simulation = Simulation::new(device);
        let goal = Goal {
            ceiling: Pps(50_000.0),
            ..Goal::default()
        };
        let paths = &mut simulation.paths(1);
        let found =
            search::max_rate(paths, &goal, &simulation, &mut |_: search::Event| {}).unwrap();
        let off = found.max_pps / capacity;
        assert!((0.98..1.008).contains(&off), "{drain} s: {found:?}");
        let simulation = Simulation::new(device);
        let plan = Plan {
            warmup: Duration::ZERO,
            target: Pps(14_000.0),
            ramp: Duration::from_secs(7),
            steps: 7,
            hold: Duration::from_secs(1),
            ..Plan::default()
        };
        let paths = &mut simulation.paths(1);
        let ramp = ramp::run(&plan, paths, &simulation, &mut |_| {}).unwrap();
        let highest = ramp.max_rate(ALLOWED).unwrap();
        // The ramp only has samples at 10 and 12 kpps.
        let rates = 9_900.0..1.01 * capacity;
        assert!(rates.contains(&highest.max_pps), "{drain} s: {highest:?}");
        assert!(ramp.whole.forwarded.0 < capacity, "{:?}", ramp.whole);
    }
}

/// A rate asked for is not exceeded by what is said of it, however few packets there are.
#[test]
fn no_rate_is_above_the_one_offered() {
    for millis in [0, 1, 7, 100, 1000] {
        let simulation = Simulation::new(Device::default());
        let plan = Plan {
            warmup: Duration::ZERO,
            target: Pps(1000.0),
            ramp: Duration::ZERO,
            hold: Duration::from_millis(millis),
            ..Plan::default()
        };
        let paths = &mut simulation.paths(1);
        let mut ramp = ramp::run(&plan, paths, &simulation, &mut |_| {}).unwrap();
        // The first packet of a schedule is due at its beginning.
        let way = &mut ramp.whole.ways[0];
        way.offered += 1;
        way.sent.packets += 1;
        way.received.packets += 1;
        ramp.whole = trial::judge(Pps(1000.0), ramp.whole.seconds, ramp.whole.ways);
        let highest = ramp.max_rate(ALLOWED).unwrap();
        assert!(highest.max_pps <= 1000.0, "{millis} ms: {highest:?}");
        assert!(ramp.whole.forwarded.0 < 1000.001 && ramp.whole.seconds >= 0.001);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]
    /// Never more than the device does, but for what cannot be told in so little time, whatever its
    /// buffer. A device that keeps up passes, however long packets take.
    #[test]
    fn a_device_passes_if_it_keeps_up(
        load in -3.0..3.0f64,
        capacity in 6.0..15.0f64,
        drain in 0.0..6.0f64,
        seconds in 0.2..8.0f64,
        away in 0.0..0.9f64,
        ways in 1usize..3,
    ) {
        let capacity = capacity.exp();
        let device = Device {
            // Nobody waits longer than two seconds for late packets.
            delay: Duration::from_secs_f64((away * seconds).min(1.9)),
            ..buffered(capacity, drain)
        };
        let pps = capacity * load.exp();
        let trial = trial(device, ways, pps, seconds);
        let told = seconds * (1.0 - away.max(0.25)) - 0.02;
        let unknown = (2.0 * BATCH + RESOLUTION * pps) / told.max(0.01);
        if capacity >= pps {
            // The simulation has no parts of packets.
            let allowed = ALLOWED + 2.0 * ways as f64 / trial.sent() as f64;
            prop_assert!(trial.passes(allowed), "{}: {trial:?}", trial.failure());
        } else if trial.passes(ALLOWED) {
            prop_assert!(pps <= 1.01 * capacity + unknown, "{pps} of {capacity}: {trial:?}");
        }
        let back = trial.forwarded.0 / ways as f64;
        prop_assert!(back <= 1.01 * capacity + unknown, "{back} of {capacity}: {trial:?}");
    }
}
