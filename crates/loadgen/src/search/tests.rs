//! The methods against simulated devices whose rate is known.

use std::time::Duration;

use super::classify::Goal;
use super::*;
use crate::clock::Clock;
use crate::measure::point::Point;
use crate::measure::search::runs::Runs;
use crate::measure::simulated::{self, Random, Simulation};

/// A device that loses a share of the load by a formula, with some chance.
struct Formula<F> {
    /// Share lost at a load.
    loss: F,
    /// The most that the generator sends.
    most: f64,
    random: Random,
    /// Loads offered, with the length of the trial in seconds.
    offered: Vec<(f64, f64)>,
}

impl<F: Fn(f64, &mut Random) -> f64> Formula<F> {
    fn new(seed: u64, loss: F) -> Self {
        Self {
            loss,
            most: 15e6,
            random: Random(seed),
            offered: Vec::new(),
        }
    }
}

impl<F: Fn(f64, &mut Random) -> f64> Device for Formula<F> {
    fn warm_up(&mut self, _: Pps) -> Result<(), Failure> {
        Ok(())
    }

    fn measure(&mut self, load: Pps, length: Duration) -> Result<Sample, Failure> {
        let seconds = length.as_secs_f64();
        let flat_out = !load.is_limited();
        let pps = load.0.min(self.most);
        let sent = (pps * seconds).round();
        // A fraction of a packet is lost as often as it is large.
        let lost = ((self.loss)(pps, &mut self.random) * sent + self.random.even()).floor();
        self.offered.push((pps, seconds));
        Ok(Sample {
            sent: sent as u64,
            lost: lost as u64,
            held: 0,
            loss: lost / sent,
            sent_pps: pps,
            forwarded_pps: (sent - lost) / seconds,
            seconds,
            valid: flat_out || load.0 <= self.most,
            late: false,
            interrupted: false,
        })
    }
}

const NDR_PDR: [Goal; 2] = [Goal::csit(0.0), Goal::csit(0.005)];

fn limits(seconds: u64) -> Limits {
    Limits {
        budget: Duration::from_secs(seconds),
        ..Limits::default()
    }
}

/// What lies above the capacity is lost.
fn sharp(capacity: f64) -> impl Fn(f64, &mut Random) -> f64 {
    move |load, _| (1.0 - capacity / load).max(0.0)
}

/// On a device that always does the same, both goals hold the truth between their bounds, which are
/// no wider than asked for; and a search has the trials that are needed, not more.
#[test]
fn mlrsearch_encloses_a_sharp_capacity() {
    for capacity in [9e3, 640e3, 1.488_095e6, 12e6] {
        let mut device = Formula::new(1, sharp(capacity));
        let found = mlrsearch::search(&mut device, &NDR_PDR, &limits(1200)).unwrap();
        for (bounds, allowed) in found.goals.iter().zip([0.0, 0.005]) {
            let truth = capacity / (1.0 - allowed);
            let (low, high) = (bounds.lower_pps.unwrap(), bounds.upper_pps.unwrap());
            assert!(bounds.finished && bounds.why.is_empty(), "{found:?}");
            // Less than a packet in 1 s is not seen.
            assert!(low <= truth + 1.0 && truth <= high, "{found:?}");
            assert!(high - low <= 0.005_001 * high, "{found:?}");
            let throughput = bounds.throughput_pps.unwrap();
            assert!(throughput <= low && throughput >= low * (1.0 - allowed));
        }
        let effort = &found.effort;
        assert_eq!(effort.trials as usize, device.offered.len());
        let seconds: f64 = device.offered.iter().map(|(_, seconds)| seconds).sum();
        assert!((effort.seconds - seconds).abs() < 1e-6, "{effort:?}");
        assert!(effort.trials <= 90, "{effort:?}");
        assert_eq!(
            (effort.top_pps, effort.top_is),
            (15e6, Some(Bound::Generator))
        );
    }
}

/// A device that loses a little from far below its capacity has two rates that are far apart.
#[test]
fn mlrsearch_tells_goals_apart() {
    // From 1 Mpps on, 1 % more for each Mpps: 0.5 % at 1.5 Mpps.
    let soft = |load: f64, _: &mut Random| ((load - 1e6) * 1e-8).clamp(0.0, 1.0);
    let mut device = Formula::new(3, soft);
    let found = mlrsearch::search(&mut device, &NDR_PDR, &limits(1200)).unwrap();
    // Loss begins to show where a trial loses a packet.
    for (bounds, truth) in found.goals.iter().zip([1e6, 1.5e6]) {
        let off = bounds.lower_pps.unwrap() / truth - 1.0;
        assert!(bounds.finished && off.abs() < 0.006, "{found:?}");
    }
    let throughput = found.goals[1].throughput_pps.unwrap();
    assert!(
        (throughput / (0.995 * 1.5e6) - 1.0).abs() < 0.006,
        "{throughput}"
    );
}

/// What was sought for one goal alone is found for it among others.
#[test]
fn a_goal_is_served_in_any_company() {
    let alone = |goal: Goal| {
        let found = mlrsearch::search(&mut Formula::new(1, sharp(2e6)), &[goal], &limits(1200));
        found.unwrap().goals[0].lower_pps.unwrap()
    };
    let mut device = Formula::new(1, sharp(2e6));
    let both = mlrsearch::search(&mut device, &NDR_PDR, &limits(1200)).unwrap();
    for (goal, bounds) in NDR_PDR.into_iter().zip(&both.goals) {
        assert_eq!(bounds.allowed, goal.loss);
        let off = bounds.lower_pps.unwrap() / alone(goal) - 1.0;
        assert!(off.abs() < 0.005, "{off}");
    }
}

#[test]
fn what_bounds_a_search_is_said() {
    let csit = [Goal::csit(0.005)];
    let slow = Formula {
        most: 5e6,
        ..Formula::new(1, sharp(20e6))
    };
    let line = Limits {
        line: Pps(1e6),
        ..limits(600)
    };
    let ceiling = Limits {
        ceiling: Pps(2e6),
        ..limits(600)
    };
    for (most, limits, rate, why) in [
        (
            slow.most,
            limits(600),
            5e6,
            "the generator can send no more",
        ),
        (slow.most, line, 1e6, "the line carries no more"),
        (slow.most, ceiling, 2e6, "no more may be sent"),
        (1.5e6, ceiling, 1.5e6, "the generator can send no more"),
    ] {
        let mut device = Formula {
            most,
            ..Formula::new(1, sharp(20e6))
        };
        let found = mlrsearch::search(&mut device, &csit, &limits).unwrap();
        let bounds = &found.goals[0];
        assert_eq!(bounds.lower_pps, Some(rate), "{found:?}");
        assert_eq!((bounds.why.as_str(), bounds.finished), (why, false));
        let found = binary::search(&mut device, &binary::Plan::default(), &limits).unwrap();
        assert_eq!(
            (found.bounds.lower_pps, found.bounds.why.as_str()),
            (Some(rate), why)
        );
        let found = soak::run(&mut device, &soak::Plan::default(), &limits).unwrap();
        assert_eq!((found.critical_pps, found.why.as_str()), (Some(rate), why));
        let most = device.offered.iter().map(|(pps, _)| *pps);
        let most = most.fold(0.0, f64::max);
        assert!(most <= limits.ceiling.0, "{most}");
    }
    let mut lossy = Formula::new(1, |_: f64, _: &mut Random| 0.01);
    let found = mlrsearch::search(&mut lossy, &csit, &limits(600)).unwrap();
    assert_eq!(found.goals[0].lower_pps, None);
    assert_eq!(found.goals[0].why, "no load lost 0.5 % or less");
    let mut dead = Formula::new(1, |_: f64, _: &mut Random| 1.0);
    let found = mlrsearch::search(&mut dead, &csit, &limits(600)).unwrap();
    assert_eq!(found.goals[0].why, "nothing came back");
    assert_eq!(dead.offered.len(), 1);
}

/// A generator that another program slows down to a rate during these trials.
struct Disturbed<F>(Formula<F>, std::ops::Range<usize>, f64);

impl<F: Fn(f64, &mut Random) -> f64> Device for Disturbed<F> {
    fn warm_up(&mut self, ceiling: Pps) -> Result<(), Failure> {
        self.0.warm_up(ceiling)
    }

    fn measure(&mut self, load: Pps, length: Duration) -> Result<Sample, Failure> {
        let made = self.0.offered.len();
        self.0.most = if self.1.contains(&made) { self.2 } else { 5e6 };
        self.0.measure(load, length)
    }
}

/// Shows that what the generator has sent once is not given up.
#[test]
fn a_disturbance_does_not_lower_what_was_sent() {
    let mut device = Disturbed(Formula::new(1, sharp(20e6)), 6..10, 1e6);
    let found = mlrsearch::search(&mut device, &[Goal::csit(0.0)], &limits(600)).unwrap();
    assert!(found.effort.invalid_trials > 0, "{found:?}");
    let (lower, top) = (found.goals[0].lower_pps, found.effort.top_pps);
    assert!(lower >= Some(0.99 * 5e6) && top >= 0.99 * 5e6, "{found:?}");
}

/// A first trial that fell short is made again, like any other; one that fell short by much twice
/// shows what the generator can.
#[test]
fn a_late_first_trial_does_not_bound_a_search() {
    let limits = Limits {
        ceiling: Pps(10e3),
        ..limits(600)
    };
    for (rate, times, bound, top) in [
        (9.8e3, 1, Bound::Ceiling, 10e3),
        (5e3, 1, Bound::Ceiling, 10e3),
        (5e3, 2, Bound::Generator, 5e3),
    ] {
        let mut device = Disturbed(Formula::new(1, sharp(20e6)), 0..times, rate);
        let found = mlrsearch::search(&mut device, &[Goal::csit(0.0)], &limits).unwrap();
        let effort = &found.effort;
        assert_eq!((effort.top_is, effort.top_pps), (Some(bound), top));
        // Nor is more offered than may be sent.
        let plan = rfc2544::Plan {
            bursts: 1,
            ..rfc2544::Plan::default()
        };
        let mut device = Disturbed(Formula::new(1, sharp(20e6)), 0..times, rate);
        rfc2544::run(&mut device, &plan, &limits).unwrap();
        let most = device.0.offered.iter().map(|(pps, _)| *pps);
        assert!(most.fold(0.0, f64::max) <= 10e3);
    }
}

/// No search takes longer than it may, and each says what it knows by then.
#[test]
fn the_budget_is_kept() {
    for seconds in [1, 5, 20, 30] {
        let mut device = Formula::new(1, sharp(1e6));
        let found = mlrsearch::search(&mut device, &NDR_PDR, &limits(seconds)).unwrap();
        assert!(found.effort.seconds <= seconds as f64 + 1e-6, "{found:?}");
        assert!(found.effort.out_of_time);
        let unfinished = found.goals.iter().filter(|goal| !goal.finished);
        assert!(unfinished.clone().count() > 0, "{found:?}");
        for goal in unfinished {
            assert_eq!(goal.why, "the time was used up");
        }
    }
}

#[test]
fn a_binary_search_halves() {
    let mut device = Formula::new(1, sharp(4e6));
    let plan = binary::Plan::default();
    let found = binary::search(&mut device, &plan, &limits(1200)).unwrap();
    let (low, high) = (
        found.bounds.lower_pps.unwrap(),
        found.bounds.upper_pps.unwrap(),
    );
    // Loss of 0.1 % is allowed.
    let truth = 4e6 / (1.0 - 0.001);
    assert!(
        low <= truth && truth < high && high - low <= 0.01 * 15e6,
        "{found:?}"
    );
    // Flat out for twice as long, and 7 halves to get below a hundredth.
    assert_eq!((found.effort.trials, found.effort.seconds), (8, 180.0));
    let few = binary::Plan { most: 3, ..plan };
    let found = binary::search(&mut device, &few, &limits(1200)).unwrap();
    assert_eq!(found.bounds.why, "3 trials were not enough");
}

/// Loads found by searches with this device, of one direction, on ports: packets that are late,
/// wait in queues or are sent late are as on real ones.
fn on_ports<T>(
    device: simulated::Device,
    search: impl FnOnce(&mut dyn Device) -> Result<T, Failure>,
) -> (T, f64) {
    let simulation = Simulation::new(device);
    let mut paths = simulation.paths(1);
    let begin = simulation.now();
    let mut watch = |_: Event| {};
    let mut runs = Runs::new(&mut paths, &simulation, &mut watch);
    let found = search(&mut runs).unwrap();
    (found, simulation.now().since(begin).as_secs_f64())
}

/// The table of errors: `cargo test -p loadgen mlrsearch_is_unbiased -- --nocapture`.
#[test]
fn mlrsearch_is_unbiased() {
    let fast = simulated::Device {
        capacity: 640e3,
        ceiling: 3e6,
        delay: Duration::from_micros(200),
        ..simulated::Device::default()
    };
    let noisy = simulated::Device {
        noise: 0.03,
        ..fast
    };
    let queue = 8192.0;
    let slow = Duration::from_secs(1);
    let late = Duration::from_millis(20);
    let cases = [
        ("steady", fast),
        ("3 % noise", noisy),
        ("8192 packets of queue", simulated::Device { queue, ..fast }),
        ("the same, 3 % noise", simulated::Device { queue, ..noisy }),
        (
            "slow first second, 3 % noise",
            simulated::Device { slow, ..noisy },
        ),
        (
            "a generator that is 20 ms late",
            simulated::Device { late, ..fast },
        ),
        (
            "a generator held up in every third trial",
            simulated::Device {
                held_up_each: 3,
                ..noisy
            },
        ),
        (
            "collapses, 3 % noise",
            simulated::Device {
                collapse: 0.33,
                ..noisy
            },
        ),
    ];
    println!("| simulated device | goal | median error of the lower bound | trials | seconds |");
    for (name, device) in cases {
        let searches = if device.noise > 0.0 { 40 } else { 1 };
        let mut errors = [Vec::new(), Vec::new()];
        let (mut trials, mut took) = (0, 0.0);
        for seed in 0..searches {
            let seed = 7919 * seed;
            let device = simulated::Device { seed, ..device };
            let search =
                |device: &mut dyn Device| mlrsearch::search(device, &NDR_PDR, &limits(600));
            let (found, seconds) = on_ports(device, search);
            for (errors, bounds) in errors.iter_mut().zip(&found.goals) {
                let truth = device.capacity / (1.0 - bounds.allowed);
                assert!(bounds.finished, "{name}: {found:?}");
                errors.push(bounds.lower_pps.unwrap() / truth - 1.0);
            }
            trials = found.effort.trials.max(trials);
            took = f64::max(seconds, took);
        }
        for (errors, goal) in errors.iter_mut().zip(["NDR", "PDR"]) {
            errors.sort_by(f64::total_cmp);
            let median = errors[errors.len() / 2];
            println!(
                "| {name} | {goal} | {:+.2} % | {trials} | {took:.0} |",
                100.0 * median
            );
            // The lower bound is half a width below the middle of both.
            assert!(
                (-0.0075..=0.005).contains(&median),
                "{name}, {goal}: {median}"
            );
        }
        assert!(trials < 300, "{name}: {trials}");
    }
}

#[test]
fn rfc2544_measures_what_it_names() {
    let device = simulated::Device {
        capacity: 1e6,
        ceiling: 3e6,
        queue: 20_000.0,
        delay: Duration::from_micros(200),
        ..simulated::Device::default()
    };
    let plan = rfc2544::Plan {
        trial: Duration::from_secs(10),
        bursts: 3,
        burst: Duration::from_secs(2),
        latency: Duration::from_secs(5),
        ..rfc2544::Plan::default()
    };
    let (found, _) = on_ports(device, |device| rfc2544::run(device, &plan, &limits(1200)));
    let rate = found.throughput.lower_pps.unwrap();
    assert!(
        found.throughput.finished && (rate / 1e6 - 1.0).abs() < 0.006,
        "{found:?}"
    );
    let shares: Vec<f64> = found.loss_rates.iter().map(|rate| rate.share).collect();
    // A third of the load passes: 40 % loses, 30 % and 20 % do not.
    assert_eq!(shares, [1.0, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2]);
    for rate in &found.loss_rates {
        let truth = (1.0 - 1e6 / rate.offered_pps).max(0.0);
        assert!((rate.loss.unwrap() - truth).abs() < 0.003, "{rate:?}");
    }
    // At 3 Mpps the queue fills with 2 Mpps.
    let bursts = found.back_to_back.unwrap();
    assert!((bursts.packets / 30_000.0 - 1.0).abs() < 0.1, "{bursts:?}");
    assert_eq!((bursts.bursts, bursts.is_longest), (3, false));
    assert!((found.latency_seconds - 5.0).abs() < 0.1, "{found:?}");
}

/// A burst that the device's queue takes whole is no trial that passes.
#[test]
fn bursts_are_kept_apart_from_trials() {
    let simulation = Simulation::new(simulated::Device {
        capacity: 1e6,
        ceiling: 3e6,
        queue: 20_000.0,
        ..simulated::Device::default()
    });
    let (mut paths, mut watch) = (simulation.paths(1), |_: Event| {});
    let mut runs = Runs::new(&mut paths, &simulation, &mut watch);
    let plan = rfc2544::Plan {
        trial: Duration::from_secs(1),
        bursts: 2,
        latency: Duration::from_secs(1),
        ..rfc2544::Plan::default()
    };
    let found = rfc2544::run(&mut runs, &plan, &limits(1200)).unwrap();
    let rate = found.throughput.upper_pps.unwrap();
    let passing = runs.points.iter().filter(|point| point.loss == 0.0);
    let most = passing.map(|point| point.sent_pps).fold(0.0, f64::max);
    assert!(most <= rate, "{most} of {rate}");
    let all = runs.points.len() + runs.bursts.len();
    assert_eq!(found.effort.trials as usize, all);
    let whole = |burst: &&Point| burst.loss == 0.0 && burst.seconds < 0.5;
    assert!(runs.bursts.iter().filter(whole).count() > 2, "{found:?}");
}

/// Shows the critical load of devices that lose as the model has it, and of a sharp one.
#[test]
fn a_soak_encloses_the_critical_load() {
    let capacity = 1e6;
    let plan = soak::Plan::default();
    for bend in [0.0, 1e-3, 5e-3] {
        // Packets are lost in clusters: sometimes none, sometimes three times as many.
        let lose = move |load: f64, random: &mut Random| {
            let x = (load / capacity - 1.0) / f64::max(bend, 1e-9);
            let excess = if x > 40.0 { x } else { x.exp().ln_1p() };
            let mean = f64::max(bend, 1e-9) * excess * capacity / load;
            if bend > 0.0 && mean < 0.01 {
                -random.even().max(1e-12).ln() * mean
            } else {
                mean
            }
        };
        // Far below the capacity, the loss is the bend times an exponential.
        let truth = match bend {
            0.0 => capacity,
            _ => capacity * (1.0 + bend * (plan.loss / bend).ln()),
        };
        let (mut errors, mut held) = (Vec::new(), 0);
        for seed in 0..8 {
            let mut device = Formula {
                most: 3e6,
                ..Formula::new(7919 * seed, lose)
            };
            let found = soak::run(&mut device, &plan, &limits(900)).unwrap();
            assert!(found.effort.seconds <= 900.0 && found.effort.trials > 60);
            let (low, high) = found.interval_pps.unwrap();
            held += u32::from(low <= truth && truth <= high);
            errors.push(found.critical_pps.unwrap() / truth - 1.0);
            assert!(high - low < 0.06 * high, "{found:?}");
        }
        errors.sort_by(f64::total_cmp);
        println!(
            "bend {bend}: median error {:+.2} %, held {held} of 8",
            100.0 * errors[4]
        );
        assert!(errors[4].abs() < 0.01, "{bend}: {errors:?}");
        assert!(held >= 7, "{bend}: {held}");
    }
}

/// A search that ends early has the bounds of a round that it had finished, and says so.
#[test]
fn an_early_end_leaves_provisional_bounds() {
    let mut seen = 0;
    for seconds in 4..30 {
        let mut device = Formula::new(1, sharp(2e6));
        let found = mlrsearch::search(&mut device, &NDR_PDR, &limits(seconds)).unwrap();
        for bounds in found.goals.iter().filter(|bounds| bounds.provisional) {
            seen += 1;
            assert!(!bounds.finished && !bounds.why.is_empty(), "{bounds:?}");
            let (lower, upper) = (bounds.lower_pps, bounds.upper_pps);
            assert!(lower.or(upper).is_some(), "{bounds:?}");
            // With half a percent of loss it forwards a little more than its limit.
            assert!(lower <= Some(2.011e6), "{bounds:?}");
            assert!(upper.is_none_or(|upper| upper > 1.99e6), "{bounds:?}");
        }
    }
    assert!(seen > 5, "only {seen}");
}

/// The time of sending is a limit of the first trial, too.
#[test]
fn a_binary_search_keeps_its_budget() {
    let mut device = Formula::new(1, sharp(2e6));
    let found = binary::search(&mut device, &binary::Plan::default(), &limits(10)).unwrap();
    let effort = &found.effort;
    assert!(effort.seconds <= 10.0 && effort.out_of_time, "{effort:?}");
}
