//! The search against simulated devices.

use super::*;
use crate::clock::Nanos;
use crate::measure::simulated::{Device, Simulation};

fn search(device: Device, goal: Goal) -> (Found, Vec<Event>, Duration) {
    let simulation = Simulation::new(device);
    let mut events = Vec::new();
    let begin = simulation.now();
    let found = max_rate(
        &mut simulation.paths(1),
        &goal,
        &simulation,
        &mut |e: Event| events.push(e),
    )
    .unwrap();
    (found, events, simulation.now().since(begin))
}

fn goal(seconds: u64) -> Goal {
    Goal {
        budget: Duration::from_secs(seconds),
        ..Goal::default()
    }
}

#[test]
fn finds_the_capacity_of_a_device_that_drops_the_excess() {
    for capacity in [9_000.0, 640_000.0, 1_488_095.0, 12e6] {
        let (found, events, took) = search(
            Device {
                capacity,
                ..Device::default()
            },
            goal(15),
        );
        assert!(found.valid, "{capacity}: {found:?}");
        let off = found.max_pps / capacity;
        assert!((0.975..=1.002).contains(&off), "{capacity}: {found:?}");
        assert!(found.loss <= 0.001);
        assert!(!found.limited_by_generator, "{capacity}: {found:?}");
        assert!((found.saturation_pps.unwrap() / capacity - 1.0).abs() < 0.01);
        assert!((found.l1_bps / found.max_pps - 672.0).abs() < 1.0);
        assert_eq!(events.len(), 1 + 2 * found.trials.len());
        assert!(took <= Duration::from_secs(16), "{took:?}");
    }
}

/// A receive livelock: offered far more than it can handle, the device forwards a third of its
/// capacity.
#[test]
fn finds_the_capacity_of_a_device_that_collapses() {
    let device = Device {
        capacity: 2e6,
        collapse: 0.33,
        ..Device::default()
    };
    let (found, ..) = search(device, goal(20));
    assert!(
        found.valid && (0.97..=1.03).contains(&(found.max_pps / 2e6)),
        "{found:?}"
    );
    assert!(found.saturation_pps.unwrap() < 1e6);
}

#[test]
fn a_generator_slower_than_the_device_is_said_to_be_the_limit() {
    let device = Device {
        capacity: 20e6,
        ceiling: 5e6,
        ..Device::default()
    };
    let (found, ..) = search(device, goal(15));
    assert!(found.valid && found.limited_by_generator, "{found:?}");
    assert!((0.95..=1.0).contains(&(found.max_pps / 5e6)), "{found:?}");
    assert!(found.why.contains("generator"), "{found:?}");
    assert!(
        found.trials.iter().all(|t| t.valid || t.loss < 0.001),
        "short sending is not loss"
    );
}

/// The generator was slow while its ceiling was measured, so the ceiling is measured again.
#[test]
fn the_generators_ceiling_rises_when_a_trial_passes_there() {
    let device = Device {
        capacity: 20e6,
        ceiling: 5e6,
        slow: Duration::from_secs(3),
        ..Device::default()
    };
    let (found, ..) = search(device, goal(20));
    assert!(found.trials[0].sent_pps < 2.6e6, "{found:?}");
    assert!((0.98..=1.0).contains(&(found.max_pps / 5e6)), "{found:?}");
    assert!(
        found.valid && found.confirmed && found.limited_by_generator,
        "{found:?}"
    );
    assert!((found.flat_out_pps.unwrap() / 5e6 - 1.0).abs() < 0.01);
}

/// Also in little time, on a device that forwards more flat out than it does without loss.
#[test]
fn goes_down_until_something_passes() {
    let device = Device {
        collapse: 0.6,
        ceiling: 1.1e6,
        ..Device::default()
    };
    for capacity in [0.9e6, 1e6] {
        let (found, ..) = search(Device { capacity, ..device }, goal(8));
        assert!(found.valid, "{found:?}");
        let off = found.max_pps / capacity;
        assert!((0.9..=1.05).contains(&off), "{found:?}");
    }
}

#[test]
fn the_result_is_confirmed_by_longer_trials() {
    let device = Device {
        capacity: 1e6,
        ..Device::default()
    };
    let (found, ..) = search(device, goal(20));
    assert!(found.confirmed, "{found:?}");
    let (low, high) = found.interval_pps.unwrap();
    assert!(low < found.max_pps && found.max_pps < high && high - low < 0.05 * high);
    let last = found.trials.last().unwrap();
    assert!(last.seconds > 2.9 && (last.offered_pps / 1e6 - 1.0).abs() < 0.02);
}

/// A generator that is held up in every third trial does not bound the result.
#[test]
fn a_moment_without_the_processor_is_no_bound() {
    let device = Device {
        capacity: 1e6,
        held_up_each: 3,
        ..Device::default()
    };
    let (found, ..) = search(device, goal(25));
    assert!(found.trials.iter().any(|t| !t.valid));
    assert!(
        found.valid && (0.97..=1.002).contains(&(found.max_pps / 1e6)),
        "{found:?}"
    );
}

#[test]
fn a_device_with_constant_loss_has_no_rate() {
    let device = Device {
        background: 0.01,
        ..Device::default()
    };
    let (found, ..) = search(device, goal(10));
    assert!(!found.valid && found.max_pps == 0.0, "{found:?}");
    assert!(found.why.contains("0.1 %"), "{found:?}");
    let (found, events, _) = search(
        Device {
            background: 1.0,
            ..Device::default()
        },
        goal(10),
    );
    assert_eq!(
        (found.valid, found.why.as_str(), events.len()),
        (false, "nothing came back", 3)
    );
}

#[test]
fn loss_below_the_limit_is_allowed() {
    let (found, ..) = search(
        Device {
            background: 0.0005,
            capacity: 1e6,
            ..Device::default()
        },
        goal(15),
    );
    assert!(
        found.valid && found.loss > 0.0004 && found.max_pps > 0.97e6,
        "{found:?}"
    );
}

#[test]
fn both_ways_are_summed() {
    let simulation = Simulation::new(Device {
        capacity: 1e6,
        ..Device::default()
    });
    let found = max_rate(
        &mut simulation.paths(2),
        &goal(15),
        &simulation,
        &mut |_: Event| {},
    )
    .unwrap();
    assert!(
        found.valid && (0.97..=1.002).contains(&(found.max_pps / 2e6)),
        "{found:?}"
    );
}

#[test]
fn the_limit_is_not_exceeded() {
    let simulation = Simulation::new(Device {
        capacity: 10e6,
        ..Device::default()
    });
    let goal = Goal {
        limit: Pps(1e6),
        ..goal(15)
    };
    let found = max_rate(
        &mut simulation.paths(1),
        &goal,
        &simulation,
        &mut |_: Event| {},
    )
    .unwrap();
    assert!(
        found.valid && found.max_pps <= 1e6 && found.max_pps > 0.98e6,
        "{found:?}"
    );
    assert!(found.trials[1..].iter().all(|t| t.offered_pps <= 1e6));
}

#[test]
fn one_trial_is_made_even_without_time() {
    let (found, ..) = search(Device::default(), goal(0));
    assert_eq!(found.trials.len(), 2);
    let all_passes = Device {
        capacity: 20e6,
        ..Device::default()
    };
    let (found, ..) = search(all_passes, goal(0));
    assert_eq!(found.trials.len(), 2);
    assert!((found.trials[1].seconds - 1.0).abs() < 0.01, "{found:?}");
}

#[test]
fn a_generator_that_fails_is_an_error() {
    let simulation = Simulation::new(Device {
        broken: true,
        ..Device::default()
    });
    assert!(
        max_rate(
            &mut simulation.paths(1),
            &goal(5),
            &simulation,
            &mut |_: Event| {}
        )
        .is_err()
    );
}

#[test]
fn events_are_lines_of_json() {
    let event = Event::TrialStart {
        flat_out: true,
        offered_pps: 0.0,
    };
    let text = serde_json::to_string(&event).unwrap();
    assert_eq!(
        text,
        r#"{"event":"trial-start","flat_out":true,"offered_pps":0.0}"#
    );
    assert_eq!(serde_json::from_str::<Event>(&text).unwrap(), event);
}

#[test]
fn a_ramp_comes_first_if_there_is_time() {
    let device = || Device {
        capacity: 1e6,
        ..Device::default()
    };
    let (found, ..) = search(device(), goal(26));
    let shares: Vec<f64> = found.trials[1..6]
        .iter()
        .map(|t| t.offered_pps / 1e6)
        .collect();
    for (share, wanted) in shares.iter().zip(verdicts::RAMP) {
        assert!((share / wanted - 1.0).abs() < 0.02, "{shares:?}");
    }
    assert!(found.trials[5].loss > 0.3 && found.trials[4].loss <= 0.001);
    assert!(found.valid && (0.975..=1.002).contains(&(found.max_pps / 1e6)));
    let (short, ..) = search(device(), goal(8));
    assert!(short.trials[1].offered_pps > 0.9e6, "no ramp: {short:?}");
}

/// Errors of searches of `seconds` on such devices: the relative errors in ascending order, and the
/// share of searches whose interval holds the true rate.
fn errors(device: Device, seconds: u64, searches: u64) -> (Vec<f64>, f64) {
    let truth = device.capacity / (1.0 - goal(0).loss);
    let found = (0..searches).map(|seed| {
        search(
            Device {
                seed: 7919 * seed,
                ..device
            },
            goal(seconds),
        )
        .0
    });
    let (mut errors, mut held) = (Vec::new(), 0);
    for found in found {
        assert!(found.valid, "{found:?}");
        errors.push(found.max_pps / truth - 1.0);
        let (low, high) = found.interval_pps.unwrap();
        held += u64::from(low <= truth && truth <= high);
    }
    errors.sort_by(f64::total_cmp);
    (errors, held as f64 / searches as f64)
}

/// The table of errors: `cargo test -p loadgen unbiased -- --nocapture`.
#[test]
fn is_unbiased() {
    let fast = Device {
        capacity: 640e3,
        delay: Duration::from_micros(200),
        ..Device::default()
    };
    let noisy = |noise, device| Device { noise, ..device };
    let deep = Device {
        queue: 8192.0,
        ..fast
    };
    let slow = |device| Device {
        slow: Duration::from_secs(1),
        ..device
    };
    let away = Device {
        delay: Duration::from_millis(30),
        ..deep
    };
    let late = |device| Device {
        late: Duration::from_millis(20),
        ..device
    };
    let collapsing = Device {
        collapse: 0.33,
        ..fast
    };
    let cases = [
        ("steady", fast),
        ("1 % noise", noisy(0.01, fast)),
        ("3 % noise", noisy(0.03, fast)),
        ("10 % noise", noisy(0.1, fast)),
        ("8192 packets of queue", deep),
        ("the same, 1 % noise", noisy(0.01, deep)),
        ("the same, 3 % noise", noisy(0.03, deep)),
        ("slow first second", slow(fast)),
        ("the same, 3 % noise, queue", slow(noisy(0.03, deep))),
        ("30 ms away", away),
        ("a generator that is 20 ms late", late(fast)),
        ("the same, 1 % noise, queue", late(noisy(0.01, deep))),
        ("collapses, 3 % noise", noisy(0.03, collapsing)),
        ("collapses, 10 % noise", noisy(0.1, collapsing)),
    ];
    for seconds in [20, 60] {
        println!(
            "| simulated device, search of {seconds} s | median error | half of the errors within | interval holds the truth |"
        );
        for (name, device) in cases {
            let searches = if device.noise > 0.0 { 100 } else { 1 };
            let (errors, held) = errors(device, seconds, searches);
            let median = errors[errors.len() / 2];
            let mut sizes: Vec<f64> = errors.iter().map(|e| e.abs()).collect();
            sizes.sort_by(f64::total_cmp);
            println!(
                "| {name} | {:+.2} % | {:.2} % | {:.0} % |",
                100.0 * median,
                100.0 * sizes[sizes.len() / 2],
                100.0 * held
            );
            // Flat out, a collapsing device forwards far less than it can, and it takes trials to
            // get there.
            let far = device.collapse < 1.0 && seconds < 60;
            assert!(far || median.abs() <= 0.005, "{name}: {median}");
            assert!(held >= 0.85, "{name}: {held}");
        }
    }
}

/// Streams that keep their own rate are not offered at less, whatever the device does.
#[test]
fn no_trial_is_below_what_keeps_its_own_rate() {
    for (capacity, finds) in [(1e6, true), (1e5, false)] {
        let device = Device {
            capacity,
            ..Device::default()
        };
        let floor = Pps(4e5);
        let (found, ..) = search(device, Goal { floor, ..goal(30) });
        assert_eq!(found.valid, finds, "{found:?}");
        let offered = found.trials.iter().map(|trial| trial.offered_pps);
        assert!(offered.fold(f64::INFINITY, f64::min) >= 4e5, "{found:?}");
    }
}

/// Shows that a trial is said to offer what its generator sends, however coarse its rates are.
#[test]
fn a_trial_offers_what_its_generator_sends() {
    let grain = 700.0;
    let device = Device {
        capacity: 9.3e3,
        ceiling: 21e3,
        grain,
        ..Device::default()
    };
    let (found, events, _) = search(device, goal(30));
    let offered = found.trials.iter().map(|trial| trial.offered_pps);
    let told = events.iter().filter_map(|event| match event {
        Event::TrialStart {
            flat_out: false,
            offered_pps,
        } => Some(*offered_pps),
        _ => None,
    });
    let told: Vec<f64> = told.collect();
    assert!(told.len() > 3, "{events:?}");
    let is_whole = |rate: &f64| (rate / grain).fract() == 0.0;
    assert!(told.iter().all(is_whole), "{told:?}");
    // The first one was flat out.
    assert!(offered.skip(1).all(|rate| is_whole(&rate)), "{found:?}");
    assert!(found.trials.iter().all(|trial| trial.valid), "{found:?}");
}

/// Shows that what may be sent is never exceeded, in warm-up and trials that would be flat out
/// neither.
#[test]
fn a_ceiling_is_kept() {
    let ceiling = Pps(5e5);
    let goal = Goal {
        ceiling,
        ..goal(30)
    };
    for (capacity, why) in [(1e6, "no more may be sent"), (2e5, "")] {
        let simulation = Simulation::new(Device {
            capacity,
            ..Device::default()
        });
        let mut paths = simulation.paths(1);
        let found = max_rate(&mut paths, &goal, &simulation, &mut |_: Event| {}).unwrap();
        let off = found.max_pps / capacity.min(ceiling.0);
        assert!((0.97..1.01).contains(&off), "{found:?}");
        assert_eq!((found.valid, found.why.as_str()), (true, why), "{found:?}");
        assert_eq!((found.flat_out_pps, found.saturation_pps), (None, None));
        let most = found.trials.iter().map(|t| t.sent_pps).fold(0.0, f64::max);
        assert!(most <= 1.001 * ceiling.0, "{most}");
        let sent: u64 = paths[0].tx.sent().iter().map(|count| count.packets).sum();
        let seconds = simulation.now().since(Nanos(0)).as_secs_f64();
        assert!(sent as f64 <= ceiling.0 * seconds, "{sent} in {seconds} s");
    }
}

/// Shows that a search, whenever it is interrupted, ends at once, and has the result of the trials
/// before.
#[test]
fn an_interrupted_search_keeps_what_it_knows() {
    for millis in [0, 500, 1300, 1600, 4000, 9000] {
        let interrupted = Duration::from_millis(millis);
        let device = Device {
            interrupted,
            ..Device::default()
        };
        let (found, events, took) = search(device, goal(30));
        assert!(took <= interrupted + Duration::from_millis(300), "{took:?}");
        assert!(found.interrupted && found.why.starts_with("interrupted"));
        assert_eq!(found.valid, millis >= 4000, "{found:?}");
        let ended = |event: &&Event| matches!(event, Event::TrialEnd { .. });
        assert_eq!(events.iter().filter(ended).count(), found.trials.len());
        assert_eq!(found.trials.len() > 1, millis >= 4000, "{found:?}");
        if found.valid {
            let passed = found.trials.iter().filter(|trial| trial.loss == 0.0);
            let most = passed.map(|trial| trial.offered_pps).fold(0.0, f64::max);
            assert!(found.max_pps <= most, "{found:?}");
        }
    }
}

#[test]
fn an_interrupted_trial_flat_out_has_what_was_sent_until_then() {
    for (millis, sent) in [(500, 0.0), (1700, 15e6 * 0.6)] {
        let simulation = Simulation::new(Device {
            capacity: 20e6,
            interrupted: Duration::from_millis(millis),
            ..Device::default()
        });
        let mut paths = simulation.paths(1);
        let trial = flat_out(&mut paths, &goal(1), &simulation, &mut |_: Event| {}).unwrap();
        assert!(trial.interrupted, "{trial:?}");
        assert!(
            (trial.sent() as f64 - sent).abs() <= 0.2 * sent,
            "{trial:?}"
        );
        assert_eq!(trial.valid, sent > 0.0, "{trial:?}");
    }
}

/// A machine that does not keep still during some trials, by their number from 0.
struct Restless {
    trials: usize,
    disturbed: fn(usize) -> bool,
}

impl Observer for Restless {
    fn event(&mut self, event: Event) {
        self.trials += usize::from(matches!(event, Event::TrialEnd { .. }));
    }

    fn disturbance(&mut self) -> Option<String> {
        (self.disturbed)(self.trials - 1).then(|| "it was restless".to_owned())
    }
}

/// Each is marked, and repeated twice at most; the search ends all the same.
#[test]
fn disturbed_trials_are_marked_and_repeated() {
    let made = |disturbed: fn(usize) -> bool| {
        let simulation = Simulation::new(Device {
            capacity: 1e6,
            ..Device::default()
        });
        let mut machine = Restless {
            trials: 0,
            disturbed,
        };
        let mut paths = simulation.paths(1);
        let mut runs = Runs::new(&mut paths, &simulation, &mut machine);
        for rate in [5e5, 9e5] {
            runs.trial(Pps(rate), SHORTEST).unwrap();
        }
        let points = runs.points.iter();
        points
            .map(|p| (p.offered_pps, p.disturbed, p.unfit.is_empty()))
            .collect::<Vec<_>>()
    };
    let (right, unfit) = ((false, true), (true, false));
    let at = |rate: f64, (disturbed, counted)| (rate, disturbed, counted);
    assert_eq!(made(|_| false), [at(5e5, right), at(9e5, right)]);
    assert_eq!(
        made(|n| n == 0),
        [at(5e5, unfit), at(5e5, right), at(9e5, right)]
    );
    // Of three that were disturbed the last one counts.
    let last = (true, true);
    assert_eq!(
        made(|_| true),
        [
            at(5e5, unfit),
            at(5e5, unfit),
            at(5e5, last),
            at(9e5, unfit),
            at(9e5, unfit),
            at(9e5, last)
        ]
    );
}

/// A trial whose sending was held up says so, and the next attempt counts.
#[test]
fn late_trials_say_why_they_do_not_count() {
    let simulation = Simulation::new(Device {
        capacity: 1e6,
        stopped: (Duration::from_millis(800), Duration::from_millis(400)),
        ..Device::default()
    });
    let (mut paths, mut watch) = (simulation.paths(1), |_: Event| {});
    let mut runs = Runs::new(&mut paths, &simulation, &mut watch);
    let counted = runs.trial(Pps(5e5), SHORTEST).unwrap();
    let [late, again] = &runs.points[..] else {
        panic!("{:?}", runs.points)
    };
    assert!(counted.valid && again.unfit.is_empty(), "{again:?}");
    assert!(late.unfit.contains("held up") && !late.valid, "{late:?}");
}
