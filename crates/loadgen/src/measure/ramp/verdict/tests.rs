//! The verdict against simulated devices of which the right one is known.

use std::time::Duration;

use proptest::prelude::*;

use super::*;
use crate::measure::ramp::{Plan, run};
use crate::measure::simulated::{Device, Simulation};
use crate::model::units::Pps;

const TARGET: f64 = 1e6;
const ALLOWED: f64 = 0.001;

fn ramp(device: Device, ways: usize, plan: Plan) -> Ramp {
    let simulation = Simulation::new(device);
    let paths = &mut simulation.paths(ways);
    run(&plan, paths, &simulation, &mut |_| {}).unwrap()
}

fn plan(ramp: u64, steps: u32, hold: u64) -> Plan {
    Plan {
        target: Pps(TARGET),
        warmup: Duration::ZERO,
        ramp: Duration::from_millis(ramp),
        steps,
        hold: Duration::from_millis(hold),
        ..Plan::default()
    }
}

/// Shows that packets lost from the first on are not in flight, however few samples there are.
#[test]
fn loss_from_the_first_packet_on_is_loss() {
    for background in [0.0, 0.002, 0.07, 0.53, 0.99] {
        for capacity in [0.0005, 0.01, 0.47, 0.99, 2.0] {
            for queue in [0.0, 1e5, 1e6] {
                for hold in [300, 1000, 1500, 4000, 20_000] {
                    let device = Device {
                        capacity: TARGET * capacity,
                        background,
                        queue,
                        ..Device::default()
                    };
                    let ramp = ramp(device, 1, plan(0, 1, hold));
                    let keeps_up = capacity > 1.0 && background == 0.0;
                    // A share of it cannot be told in 0.3 s.
                    let seems_to = keeps_up || capacity > 0.98 && background == 0.0 && hold == 300;
                    let rate = ramp.max_rate(ALLOWED).map(|highest| highest.max_pps);
                    assert!(rate.is_ok() || !keeps_up, "{device:?} {hold}: {rate:?}");
                    assert!(rate.is_err() || seems_to, "{device:?} {hold}: {rate:?}");
                    if let Ok(rate) = rate {
                        assert!((rate / TARGET - 1.0).abs() < 1e-6, "{rate}");
                    }
                }
            }
        }
    }
}

/// A run that says nothing about the device has no rate, and says why.
#[test]
fn a_run_that_is_not_valid_has_no_rate() {
    let fast = Device {
        capacity: 9e6,
        ..Device::default()
    };
    let slow = Device {
        ceiling: 0.9 * TARGET,
        ..fast
    };
    for plan in [plan(0, 1, 4000), plan(20_000, 20, 4000)] {
        let why = ramp(slow, 1, plan).max_rate(ALLOWED).unwrap_err();
        assert!(why.contains("short"), "{why}");
        let mut more = ramp(fast, 2, plan);
        assert!(more.max_rate(ALLOWED).is_ok());
        more.whole.ways[1].received.packets += 1;
        more.whole = crate::measure::trial::judge(more.whole.rate, 1.0, more.whole.ways);
        let why = more.max_rate(ALLOWED).unwrap_err();
        assert!(why.contains("came back of"), "{why}");
    }
}

/// The way from a device's input to its output takes time, but loses nothing.
#[test]
fn a_long_way_is_no_loss() {
    for (capacity, right, delays) in [
        // Where the device stops keeping up can only be told from what is in flight if that is
        // little.
        (0.55, 0.55, &[0, 1, 10, 30][..]),
        (5.0, 1.0, &[0, 1, 30, 170, 400, 1300]),
    ] {
        for &millis in delays {
            let device = Device {
                capacity: TARGET * capacity,
                delay: Duration::from_millis(millis),
                ..Device::default()
            };
            let ramp = ramp(device, 2, plan(30_000, 60, 5000));
            let highest = ramp.max_rate(ALLOWED).unwrap();
            let off = highest.max_pps / (2.0 * TARGET * right);
            assert!((0.95..1.01).contains(&off), "{millis} ms: {highest:?}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]
    /// Never more than the device does, but for 1 % and by how much the rate rises in a sample; no
    /// rate where every one loses two and a half times what is allowed (less may look like time in
    /// the device). A device that does everything gets its rate.
    #[test]
    fn the_rate_is_never_too_high(
        capacity in -5.0..1.0f64,
        background in prop_oneof![Just(0.0), Just(0.0005), Just(0.0025), 0.0025..0.99f64],
        delay in 0u64..400,
        // Seconds that a full queue takes to drain.
        queue in prop_oneof![Just(0.0), 0.0..1.0f64, 1.0..8.0f64],
        collapse in 0.5..1.0f64,
        steps in 1u32..100,
        climb in 0u64..40_000,
        hold in 0u64..8000,
        ways in 1usize..3,
    ) {
        prop_assume!(climb + hold >= 1000);
        let capacity = TARGET * capacity.exp();
        let device = Device {
            capacity,
            background,
            collapse,
            delay: Duration::from_millis(delay),
            queue: queue * capacity,
            ..Device::default()
        };
        let plan = plan(climb, steps, hold);
        let ramp = ramp(device, ways, plan);
        let found = ramp.max_rate(ALLOWED).map(|highest| highest.max_pps / ways as f64);
        if background >= 2.5 * ALLOWED {
            prop_assert!(found.is_err(), "{found:?}, but every rate loses {background}");
        } else if capacity > 1.01 * TARGET && background == 0.0 {
            let last = ramp.samples.last().unwrap().ways[0].tx_pps;
            let rate = found.expect("nothing was lost");
            prop_assert!(rate >= 0.999 * last, "{rate} of {last}");
        } else if let Ok(rate) = found {
            let rise = TARGET * (1000.0 / (climb as f64).max(1000.0)).max(1.0 / f64::from(steps));
            prop_assert!(rate <= 1.01 * capacity + rise, "{rate} of {capacity}, a sample rises by {rise}");
        }
    }
}
