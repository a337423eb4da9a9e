use proptest::prelude::*;

use super::*;
use crate::config::tests::OPERATOR;
use crate::plan::items;
use crate::plan::tests::{Machine, configs};

/// A machine in memory that fails when it is told to.
struct Faulty {
    machine: Machine,
    /// Actions that succeed before one fails.
    good: usize,
    /// True if all that come after it fail, too.
    for_good: bool,
    /// Actions that were tried, and how often it could look after other things.
    tried: usize,
    looked: usize,
    /// Times that it was told to finish.
    finished: usize,
}

impl Faulty {
    fn new(machine: Machine, good: usize, for_good: bool) -> Self {
        Faulty {
            machine,
            good,
            for_good,
            tried: 0,
            looked: 0,
            finished: 0,
        }
    }
}

impl Target for Faulty {
    fn accepts(&mut self, _: &Config, _: &Plan) -> Result<(), Vec<String>> {
        Ok(())
    }

    fn apply(&mut self, action: &Action) -> Result<(), String> {
        self.tried += 1;
        match self.good.checked_sub(1) {
            Some(good) => self.good = good,
            None => {
                self.good = if self.for_good { 0 } else { usize::MAX };
                return Err("no memory".to_owned());
            }
        }
        self.machine.take(action);
        Ok(())
    }

    fn between(&mut self, _: &Config) {
        self.looked += 1;
    }

    fn finish(&mut self) {
        self.finished += 1;
    }
}

#[test]
fn a_failure_at_any_step_leaves_what_was_before() {
    let configs = configs();
    assert!(configs.len() >= 20);
    let mut failures = 0;
    for from in &configs {
        for to in &configs {
            let plan = Plan::new(from, to);
            for good in 0..=plan.steps.len() {
                let mut target = Faulty::new(Machine(items(from)), good, false);
                let outcome = apply(&mut target, from, &plan.steps);
                assert_eq!(target.looked, target.tried);
                assert_eq!(target.finished, 1);
                let Some(step) = plan.steps.get(good) else {
                    assert_eq!(outcome, Ok(()));
                    assert_eq!(target.machine.0, items(to));
                    continue;
                };
                failures += 1;
                let failure = outcome.expect_err("it fails");
                let opening = format!("open {}", step.action.item().object());
                let said = |words: &String| {
                    step.to_string().starts_with(words)
                        || (*words == opening && step.to_string().contains(" state: "))
                };
                assert!(said(&failure.step), "{step}: {}", failure.step);
                assert_eq!((failure.why.as_str(), failure.stuck), ("no memory", vec![]));
                assert_eq!(target.machine.0, items(from));
            }
        }
    }
    println!("{failures} failures");
}

#[test]
fn what_cannot_be_taken_back_is_said() {
    let config = |text| Config::parse("x", text).expect("valid");
    let from = config("interfaces: { e0: {} }");
    let plan = Plan::new(
        &from,
        &config("interfaces: { e0: { mtu: 9000, addresses: [ 10.0.0.1/24 ] } }"),
    );
    let machine = Machine(items(&from));
    let mut target = Faulty::new(machine, 1, true);
    let failure = apply(&mut target, &from, &plan.steps).expect_err("it fails");
    let wanted = "cannot create interface e0 address 10.0.0.1/24: no memory; some steps before \
                  it could not be undone: set interface e0 mtu: 9000 stays in force (no memory); \
                  restart the router, which then starts with the configuration that was in force \
                  before";
    assert_eq!(failure.to_string(), wanted);
}

/// What is new is opened by its state, and so it is called; the state of what stays is a state.
#[test]
fn the_state_of_a_new_interface_is_its_opening() {
    let config = |text| Config::parse("x", text).expect("valid");
    let to = config("interfaces: { e0: { state: down } }");
    for (from, said) in [
        ("{}", "cannot open interface e0: no memory;"),
        (
            "interfaces: { e0: {} }",
            "cannot change interface e0 state: up -> down: no memory;",
        ),
    ] {
        let from = config(from);
        let plan = Plan::new(&from, &to);
        let good = plan.steps.len() - 1;
        let mut target = Faulty::new(Machine(items(&from)), good, false);
        let failure = apply(&mut target, &from, &plan.steps).expect_err("it fails");
        assert!(failure.to_string().starts_with(said), "{failure}");
    }
}

/// An operator's file from which lines are missing, and which is valid all the same.
fn damaged() -> impl Strategy<Value = Config> {
    let lines = OPERATOR.lines().count();
    prop::collection::vec(0..lines, 0..4).prop_filter_map("not valid", |gone| {
        let lines = OPERATOR.lines().enumerate();
        let kept = lines.filter(|(index, _)| !gone.contains(index));
        let text: String = kept.map(|(_, line)| format!("{line}\n")).collect();
        Config::parse("x", &text).ok()
    })
}

proptest! {
    #[test]
    fn what_is_accepted_can_be_applied(from in damaged(), to in damaged(), good in 0usize..40) {
        let plan = Plan::new(&from, &to);
        let machine = Machine(items(&from));
        let mut target = Faulty::new(machine, good, false);
        let done = apply(&mut target, &from, &plan.steps).is_ok();
        prop_assert_eq!(done, good >= plan.steps.len());
        prop_assert_eq!(target.machine.0, items(if done { &to } else { &from }));
    }
}
