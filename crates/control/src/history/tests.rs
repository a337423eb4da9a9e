use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use proptest::prelude::*;

use super::store::KEPT;
use super::*;
use crate::apply::Target;
use crate::config::{Config, Problems};
use crate::plan::tests::Machine;
use crate::plan::{Action, Items, Plan, items};

/// A router in memory that fails when it is told to.
struct Model {
    machine: Machine,
    /// Actions that succeed before one fails; the next ones succeed again.
    good: usize,
    /// Nothing succeeds after the one that fails.
    dead: bool,
}

impl Model {
    fn new(config: &Config) -> Model {
        Model {
            machine: Machine(items(config)),
            good: usize::MAX,
            dead: false,
        }
    }

    fn items(&self) -> &Items {
        &self.machine.0
    }
}

impl Target for Model {
    fn accepts(&mut self, to: &Config, _: &Plan) -> Result<(), Vec<String>> {
        match to.sflow {
            Some(_) => Err(vec!["sflow: refused by the model".to_owned()]),
            None => Ok(()),
        }
    }

    fn apply(&mut self, action: &Action) -> Result<(), String> {
        match self.good.checked_sub(1) {
            Some(good) => self.good = good,
            None => {
                self.good = if self.dead { 0 } else { usize::MAX };
                return Err("no memory".to_owned());
            }
        }
        self.machine.take(action);
        Ok(())
    }

    fn between(&mut self, _: &Config) {}

    fn finish(&mut self) {}
}

/// A machine with a disk, on which a router is started, ended and started again.
struct Place {
    directory: tempfile::TempDir,
    file: PathBuf,
}

impl Place {
    fn new(text: &str) -> Place {
        let directory = tempfile::tempdir().expect("a directory");
        let file = directory.path().join("router.yaml");
        fs::write(&file, text).expect("written");
        Place { directory, file }
    }

    fn state(&self) -> PathBuf {
        self.directory.path().join("state")
    }

    fn try_to_start(&self) -> Result<Started, Problems> {
        start(&self.file, &self.state())
    }

    /// A router that is up.
    fn start(&self) -> (Transactions, Model, Vec<String>) {
        let started = self.try_to_start();
        self.up(started.expect("there is something to start with"))
    }

    fn up(&self, mut started: Started) -> (Transactions, Model, Vec<String>) {
        let model = Model::new(started.transactions.running());
        started.transactions.started().expect("there is room");
        (started.transactions, model, started.notes)
    }

    fn edit(&self, text: &str) {
        fs::write(&self.file, text).expect("written");
    }
}

fn proposal(text: &str, seconds: Option<u64>) -> Proposal<'_> {
    Proposal {
        name: "new.yaml",
        text,
        confirm: seconds.map(Duration::from_secs),
        comment: Some("a test".to_owned()),
        who: Some(Who {
            uid: 7,
            pid: 1234,
            name: Some("eve".to_owned()),
        }),
        restores: None,
    }
}

const A: &str = "interfaces: { e0: { mtu: 1500, addresses: [ 10.0.0.1/24 ] } }\n";
const B: &str = "interfaces: { e0: { mtu: 9000 }, e1: { addresses: [ 10.0.0.1/24 ] } }\n";
const C: &str = "interfaces: { e2: {} }\n";
const WRONG: &str = "interfaces: { e0: { mtu: 1 } }\n";

fn config(text: &str) -> Config {
    Config::parse("x", text).expect("valid")
}

fn numbers(transactions: &Transactions) -> Vec<(u32, State)> {
    let entries = transactions.store.entries();
    entries
        .iter()
        .map(|entry| (entry.number, entry.state))
        .collect()
}

#[test]
fn what_is_applied_is_brought_up_again() {
    let place = Place::new(A);
    let (mut router, mut model, notes) = place.start();
    assert!(notes.is_empty(), "{notes:?}");
    let outcome = router.apply(&mut model, proposal(B, None)).expect("done");
    assert_eq!(outcome.number, Some(2));
    assert_eq!(*model.items(), items(&config(B)));
    // There already.
    let outcome = router.apply(&mut model, proposal(B, None)).expect("done");
    assert!(outcome.number.is_none() && outcome.plan.is_empty());
    for _ in 0..2 {
        let (again, _, notes) = place.start();
        assert_eq!(*again.running(), config(B));
        assert!(
            notes[0].contains("starting with the configuration applied last, number 2"),
            "{notes:?}"
        );
    }
    // The operator edits the file and restarts.
    place.edit(C);
    let (again, _, notes) = place.start();
    assert_eq!((again.running(), notes.len()), (&config(C), 0));
    let text = again.history().to_string();
    let lines: Vec<&str> = text.lines().collect();
    assert!(
        lines[0].ends_with(&format!(
            "applied   the router  started with {}",
            place.file.display()
        )),
        "{text}"
    );
    assert!(
        lines[1].ends_with("applied   eve (uid 7, pid 1234)  a test"),
        "{text}"
    );
    assert_eq!(lines.len(), 3);
    let detail = again.history_of(2).expect("it is kept").to_string();
    assert!(
        detail.contains("~ interface e0\n    - address 10.0.0.1/24"),
        "{detail}"
    );
    assert!(
        again
            .history_of(9)
            .expect_err("there is none")
            .contains("no configuration 9")
    );
}

#[test]
fn what_nobody_confirms_is_taken_back() {
    let place = Place::new(A);
    let (mut router, mut model, _) = place.start();
    // The file is edited and applied; the restart must not take it all the same.
    place.edit(B);
    router
        .apply(&mut model, proposal(B, Some(60)))
        .expect("done");
    let refused = router
        .apply(&mut model, proposal(C, None))
        .expect_err("one waits");
    assert!(
        refused.starts_with("configuration 2 waits for confirmation"),
        "{refused}"
    );
    assert!(router.history().to_string().contains("rolled back in "));
    assert!(router.tick(&mut model, Instant::now()).is_none());
    assert_eq!(*model.items(), items(&config(B)));
    // It fails once.
    let over = Instant::now() + Duration::from_secs(61);
    model.good = 0;
    assert!(
        router
            .tick(&mut model, over)
            .expect("time is over")
            .is_err()
    );
    assert_eq!(*model.items(), items(&config(B)));
    router
        .tick(&mut model, over)
        .expect("time is over")
        .expect("taken back");
    assert_eq!(*model.items(), items(&config(A)));
    assert_eq!(*router.running(), config(A));
    assert_eq!(
        numbers(&router),
        [(1, State::Applied), (2, State::Reverted)]
    );
    assert_eq!(
        router.confirm(None),
        Err("nothing waits for confirmation".to_owned())
    );
    assert_eq!(*place.start().0.running(), config(A));
    // By hand.
    router
        .apply(&mut model, proposal(C, Some(60)))
        .expect("done");
    router
        .rollback(&mut model, None, None, None)
        .expect("taken back");
    assert_eq!(*model.items(), items(&config(A)));
    // Confirmed.
    router
        .apply(&mut model, proposal(C, Some(60)))
        .expect("done");
    assert_eq!(router.confirm(None), Ok(4));
    assert!(
        router
            .tick(&mut model, over + Duration::from_secs(60))
            .is_none()
    );
    assert_eq!(*place.start().0.running(), config(C));
}

#[test]
fn there_is_a_way_back() {
    let place = Place::new(A);
    let (mut router, mut model, _) = place.start();
    let refused = router.rollback(&mut model, None, None, None);
    assert!(
        refused
            .expect_err("nothing was before")
            .contains("no earlier configuration")
    );
    let refused = router.rollback(&mut model, Some(77), None, None);
    assert_eq!(refused.err(), router.history_of(77).err());
    router.apply(&mut model, proposal(B, None)).expect("done");
    router.apply(&mut model, proposal(C, None)).expect("done");
    router.rollback(&mut model, None, None, None).expect("done");
    assert_eq!(*model.items(), items(&config(B)));
    router
        .rollback(&mut model, Some(1), None, None)
        .expect("done");
    assert_eq!(*model.items(), items(&config(A)));
    assert!(router.history().to_string().contains("rollback to 1"));
}

/// Each way back without a number goes one further, also beyond a way back to a number.
#[test]
fn each_way_back_goes_further() {
    let place = Place::new(A);
    let (mut router, mut model, _) = place.start();
    for text in [B, C, A] {
        router
            .apply(&mut model, proposal(text, None))
            .expect("done");
    }
    for text in [C, B, A] {
        router.rollback(&mut model, None, None, None).expect("done");
        assert_eq!(*model.items(), items(&config(text)));
    }
    let first = router.rollback(&mut model, None, None, None);
    assert!(first.is_err(), "there is nothing before the first");
    // Number 5 is the first way back, to C; also for a router that was started again.
    let (mut router, mut model, _) = place.start();
    router
        .rollback(&mut model, Some(5), None, None)
        .expect("done");
    router.rollback(&mut model, None, None, None).expect("done");
    assert_eq!(*model.items(), items(&config(B)));
    router.apply(&mut model, proposal(C, None)).expect("done");
    router.rollback(&mut model, None, None, None).expect("done");
    assert_eq!(*model.items(), items(&config(B)));
}

/// The history has what failed and why, and who confirmed, also after a start; a start does not
/// bring up what failed.
#[test]
fn the_history_tells_all() {
    let place = Place::new(A);
    let (mut router, mut model, _) = place.start();
    model.good = 1;
    let why = router
        .apply(&mut model, proposal(B, None))
        .expect_err("no memory");
    let eve = proposal(C, Some(60)).who;
    router
        .apply(&mut model, proposal(C, Some(60)))
        .expect("done");
    router.confirm(eve).expect("confirmed");
    for router in [router, place.start().0] {
        assert_eq!(
            numbers(&router),
            [(1, State::Applied), (2, State::Failed), (3, State::Applied)]
        );
        let failed = router.history_of(2).expect("there").to_string();
        assert!(
            failed.contains("failed") && failed.contains(&why),
            "{failed}"
        );
        let listing = router.history().to_string();
        let last = listing.lines().last().expect("three lines");
        assert!(
            last.ends_with("confirmed by eve (uid 7, pid 1234)"),
            "{last}"
        );
        assert_eq!(*router.running(), config(C));
    }
}

/// After a change that is neither done nor undone nothing is built upon it.
#[test]
fn nothing_is_built_on_what_is_half_done() {
    for waits in [false, true] {
        let place = Place::new(A);
        let (mut router, mut model, _) = place.start();
        if waits {
            router
                .apply(&mut model, proposal(C, Some(60)))
                .expect("done");
        }
        (model.good, model.dead) = (1, true);
        let why = if waits {
            router.rollback(&mut model, None, None, None)
        } else {
            router.apply(&mut model, proposal(B, None))
        };
        let why = why.expect_err("no memory");
        assert!(why.contains("could not be undone"), "{why}");
        (model.good, model.dead) = (usize::MAX, false);
        let there = model.items().clone();
        let later = Instant::now() + Duration::from_secs(3600);
        assert!(router.tick(&mut model, later).is_none());
        let refused = [
            router.apply(&mut model, proposal(C, None)),
            router.rollback(&mut model, Some(1), None, None),
            router.reload(&mut model),
        ];
        for refused in refused {
            let why = refused.expect_err("the model does not hold");
            assert!(why.contains("restart the router"), "{why}");
        }
        assert_eq!(*model.items(), there);
        assert_eq!(*place.start().0.running(), config(A));
    }
}

#[test]
fn what_cannot_be_done_changes_nothing() {
    let place = Place::new(A);
    let (mut router, mut model, _) = place.start();
    let mut refused = |router: &mut Transactions, text: &str, good| {
        model.good = good;
        let why = router
            .apply(&mut model, proposal(text, None))
            .expect_err("refused");
        assert_eq!(*model.items(), items(&config(A)));
        assert_eq!(*router.running(), config(A));
        let mut others = numbers(router);
        others.retain(|(_, state)| *state != State::Failed);
        assert_eq!(others, [(1, State::Applied)]);
        why
    };
    let why = refused(&mut router, WRONG, usize::MAX);
    assert!(
        why.starts_with("new.yaml:1:26: interfaces.e0.mtu: 1 is less than 128"),
        "{why}"
    );
    assert_eq!(
        refused(&mut router, "sflow: {}\n", usize::MAX),
        "sflow: refused by the model"
    );
    // A plan says so before anybody tries.
    for (text, refusals) in [("sflow: {}\n", 1), (B, 0), (A, 0)] {
        let planned = router.plan(&mut Model::new(&config(A)), "new.yaml", text);
        assert_eq!(planned.expect("valid").1.len(), refusals, "{text}");
    }
    let why = refused(&mut router, B, 2);
    assert!(
        why.ends_with("no memory; the configuration is unchanged"),
        "{why}"
    );
    // A disk that is full before the first step, or after the last.
    for moments in 0..5 {
        router.store.disk.moments.set(moments);
        let why = refused(&mut router, B, usize::MAX);
        assert!(
            why.contains("cannot write") && why.contains("stopped"),
            "{why}"
        );
    }
}

#[test]
fn a_broken_file_is_not_used() {
    let place = Place::new(WRONG);
    let problems = place.try_to_start().expect_err("there is nothing else");
    assert!(problems.to_string().contains("less than 128"));
    place.edit(A);
    drop(place.start());
    for wrong in [WRONG, "interfaces: [", "sflow: {}\n"] {
        place.edit(wrong);
        let started = place.try_to_start().expect("there is the last good one");
        let refused = started
            .transactions
            .refused()
            .unwrap_or_default()
            .to_owned();
        assert!(refused.contains("router.yaml:1:"), "{refused}");
        assert!(
            refused.contains("last good configuration, number 1 of 2"),
            "{refused}"
        );
        assert_eq!(*place.up(started).0.running(), config(A));
    }
    fs::remove_file(&place.file).expect("it was there");
    assert_eq!(*place.start().0.running(), config(A));
    place.edit(C);
    // One that the machine refuses is tried at each start, as the file is not known to be good.
    for _ in 0..2 {
        let started = place.try_to_start().expect("the file is good");
        assert_eq!(*started.transactions.running(), config(C));
        let last = started.others.next("no MTU").expect("there is another");
        let refused = last.transactions.refused().unwrap_or_default().to_owned();
        let (why, what) = refused.split_once('\n').expect("two lines");
        assert_eq!(why, "no MTU");
        assert!(what.contains("configuration, number 1 of 2"), "{refused}");
        assert_eq!(*place.up(last).0.running(), config(A));
    }
    assert_eq!(*place.start().0.running(), config(C));
    let again = place.try_to_start().expect("the file is good");
    assert_eq!(again.transactions.refused(), None);
}

/// The router goes back through the history if the machine refuses the configuration applied last,
/// as far as need be; and the next start tries again.
#[test]
fn what_the_machine_refuses_by_now_is_passed_over() {
    let place = Place::new(A);
    let (mut router, mut model, _) = place.start();
    for text in [B, C, B, C] {
        router
            .apply(&mut model, proposal(text, None))
            .expect("done");
    }
    // Not even readable by now.
    let damaged = place.state().join("4.yaml");
    fs::write(damaged, WRONG).expect("written");
    for _ in 0..2 {
        let last = place.try_to_start().expect("there is the last one");
        assert_eq!(*last.transactions.running(), config(C));
        assert_eq!(last.transactions.refused(), None);
        // Number 3 says what number 5 does.
        let second = last.others.next("no such name").expect("there is another");
        assert_eq!(*second.transactions.running(), config(B));
        assert!(second.others.any());
        let first = second.others.next("no memory").expect("there is another");
        assert!(!first.others.any());
        let refused = first.transactions.refused().unwrap_or_default().to_owned();
        let lines: Vec<_> = refused.lines().collect();
        assert_eq!(
            lines[..2],
            ["no such name", "configuration 5 cannot be used"]
        );
        assert!(
            refused.contains("\nconfiguration 4 cannot be used\n"),
            "{refused}"
        );
        let same = "\nit is the same as configuration 5\nconfiguration 3 cannot be used\n";
        assert!(refused.contains(same), "{refused}");
        let last = lines[lines.len() - 1];
        let used = "configuration 2 cannot be used: starting with the last good configuration, number 1 of ";
        assert!(last.starts_with(used), "{refused}");
        let (router, ..) = place.up(first);
        assert_eq!(*router.running(), config(A));
        let text = router.history().to_string();
        let states: Vec<_> = text
            .lines()
            .filter_map(|line| line.split_whitespace().nth(2))
            .collect();
        let unusable = "unusable";
        assert_eq!(
            states,
            ["applied", unusable, unusable, unusable, unusable],
            "{text}"
        );
        let detail = router.history_of(2).expect("it is there").to_string();
        assert!(detail.contains("\n      no memory\n"), "{detail}");
    }
    let (mut router, mut model, _) = place.up(place.try_to_start().expect("the last one"));
    router.apply(&mut model, proposal(A, None)).expect("done");
    assert!(!router.history().to_string().contains("unusable"));
}

/// Back is from what is in force, not from what the start could not use.
#[test]
fn the_way_back_begins_at_what_is_in_force() {
    let place = Place::new(A);
    let (mut router, mut model, _) = place.start();
    for text in [B, C] {
        router
            .apply(&mut model, proposal(text, None))
            .expect("done");
    }
    let last = place.try_to_start().expect("there is the last one");
    let second = last.others.next("no memory").expect("there is another");
    let (mut router, mut model, _) = place.up(second);
    assert_eq!(*router.running(), config(B));
    // What is taken back leaves the same in force.
    router
        .apply(&mut model, proposal(C, Some(60)))
        .expect("done");
    let back = router.rollback(&mut model, None, None, None).expect("done");
    assert_eq!(back.number, Some(2));
    router.rollback(&mut model, None, None, None).expect("done");
    assert_eq!(*router.running(), config(A));
    router
        .rollback(&mut model, None, None, None)
        .expect_err("there is nothing before the first");
}

/// A file that is not used is one, until something else is in force for good, whoever asked for it.
#[test]
fn why_the_file_is_not_used_is_said_until_something_is_applied() {
    let refused = |router: &Transactions| router.refused().is_some();
    type Way = fn(&Place, &mut Transactions, &mut Model);
    let ways: [Way; 4] = [
        |_, router, model| drop(router.apply(model, proposal(C, None)).expect("done")),
        |_, router, model| drop(router.rollback(model, Some(1), None, None).expect("done")),
        |_, router, model| drop(router.rollback(model, Some(2), None, None).expect("done")),
        |place, router, model| {
            place.edit(C);
            router.reload(model).expect("done");
        },
    ];
    for way in ways {
        let place = Place::new(A);
        let (mut router, mut model, _) = place.start();
        router.apply(&mut model, proposal(B, None)).expect("done");
        place.edit(WRONG);
        let (mut router, mut model, _) = place.start();
        assert!(refused(&router));
        // What is not applied, or taken back, leaves it as it was.
        router.reload(&mut model).expect_err("still wrong");
        model.good = 0;
        router
            .apply(&mut model, proposal(C, None))
            .expect_err("it fails");
        let until_later = |router: &mut Transactions, model: &mut Model| {
            let applied = router.apply(model, proposal(C, Some(60)));
            applied.expect("done");
            assert!(refused(router));
        };
        until_later(&mut router, &mut model);
        router
            .rollback(&mut model, None, None, None)
            .expect("taken back");
        assert!(refused(&router));
        until_later(&mut router, &mut model);
        let late = router.tick(&mut model, Instant::now() + Duration::from_secs(61));
        late.expect("it is time").expect("taken back");
        assert!(refused(&router));
        way(&place, &mut router, &mut model);
        assert!(!refused(&router));
    }
    let place = Place::new(A);
    drop(place.start());
    place.edit(WRONG);
    let (mut router, mut model, _) = place.start();
    router
        .apply(&mut model, proposal(C, Some(60)))
        .expect("done");
    router.confirm(None).expect("kept");
    assert!(!refused(&router));
}

#[test]
fn the_file_is_read_again() {
    let place = Place::new(A);
    let (mut router, mut model, _) = place.start();
    place.edit(WRONG);
    assert!(
        router
            .reload(&mut model)
            .expect_err("wrong")
            .contains("less than 128")
    );
    assert_eq!(*router.running(), config(A));
    place.edit(B);
    router.reload(&mut model).expect("done");
    assert_eq!(*model.items(), items(&config(B)));
    assert_eq!(*place.start().0.running(), config(B));
}

#[test]
fn an_index_that_cannot_be_read_is_left_alone() {
    let place = Place::new(A);
    fs::create_dir(place.state()).expect("made");
    let index = place.state().join("index.json");
    fs::write(&index, "{").expect("written");
    let mut started = place.try_to_start().expect("the file is good");
    assert!(
        started.notes[0].contains("index.json"),
        "{:?}",
        started.notes
    );
    assert!(started.transactions.started().is_err());
    let mut model = Model::new(started.transactions.running());
    let why = started.transactions.apply(&mut model, proposal(B, None));
    assert!(why.expect_err("refused").contains("correct or remove it"));
    assert_eq!(fs::read_to_string(&index).expect("there"), "{");
}

#[test]
fn the_history_is_bounded_and_keeps_what_is_in_force() {
    let place = Place::new(A);
    let (mut router, mut model, _) = place.start();
    for _ in 0..KEPT + 10 {
        router
            .apply(&mut model, proposal(B, Some(60)))
            .expect("done");
        router
            .rollback(&mut model, None, None, None)
            .expect("taken back");
    }
    let kept = numbers(&router);
    assert_eq!((kept.len(), kept[0]), (KEPT, (1, State::Applied)));
    let files = fs::read_dir(place.state()).expect("there").count();
    assert_eq!(files, KEPT + 1);
    assert_eq!(*place.start().0.running(), config(A));
}

/// The router is ended at each moment at which the disk changes.
#[test]
fn a_sudden_end_leaves_the_old_or_the_new() {
    let (a, b) = (config(A), config(B));
    for (confirm, confirmed) in [(None, false), (Some(60), false), (Some(60), true)] {
        let mut seen = [0, 0];
        for moments in 0.. {
            let place = Place::new(A);
            let (mut router, mut model, _) = place.start();
            router.store.disk.moments.set(moments);
            let applied = router.apply(&mut model, proposal(B, confirm)).is_ok();
            let kept = confirmed && router.confirm(None).is_ok();
            let finished = router.store.disk.moments.get() > 0;
            drop(router);
            let (mut again, mut model, _) = place.start();
            let new = *again.running() == b;
            assert!(new || *again.running() == a);
            seen[usize::from(new)] += 1;
            for entry in again.store.entries() {
                let taken_back = entry.state == State::Reverted;
                assert_eq!(taken_back, entry.why.is_some(), "moment {moments}");
            }
            assert!(
                new || !(kept || applied && confirm.is_none()),
                "moment {moments}"
            );
            assert!(!new || confirm.is_none() || confirmed, "moment {moments}");
            // It goes on from there.
            again.apply(&mut model, proposal(C, None)).expect("done");
            assert_eq!(*place.start().0.running(), config(C));
            if finished {
                break;
            }
        }
        let both = confirm.is_none() || confirmed;
        assert!(seen[0] > 0 && (seen[1] > 0) == both, "{confirm:?} {seen:?}");
    }
}

/// Something that happens to a router.
#[derive(Debug, Clone)]
enum Event {
    Apply(usize, bool, usize),
    Confirm,
    Rollback(Option<u32>),
    Late,
    Edit(usize),
    Reload,
    End,
}

fn event() -> impl Strategy<Value = Event> {
    let good = prop_oneof![Just(usize::MAX), 0usize..6];
    prop_oneof![
        4 => (0..TEXTS.len(), any::<bool>(), good).prop_map(|(text, confirm, good)| Event::Apply(text, confirm, good)),
        2 => Just(Event::Confirm),
        1 => prop::option::of(0u32..12).prop_map(Event::Rollback),
        1 => Just(Event::Late),
        1 => (0..TEXTS.len()).prop_map(Event::Edit),
        1 => Just(Event::Reload),
        2 => Just(Event::End),
    ]
}

const TEXTS: [&str; 4] = [A, B, C, WRONG];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// The router always is as the transactions say, whatever happens, and a start brings up the
    /// configuration from before one that waits for confirmation.
    #[test]
    fn the_router_is_what_is_written(events in prop::collection::vec(event(), 0..20)) {
        let place = Place::new(A);
        let (mut router, mut model, _) = place.start();
        let mut kept = config(A);
        let mut edited = None;
        for event in events {
            match event {
                Event::Apply(text, confirm, good) => {
                    model.good = good;
                    let proposal = proposal(TEXTS[text], confirm.then_some(60));
                    let applied = router.apply(&mut model, proposal).is_ok();
                    prop_assert!(!applied || TEXTS[text] != WRONG);
                }
                Event::Confirm => drop(router.confirm(None)),
                Event::Rollback(number) => drop(router.rollback(&mut model, number, None, None)),
                Event::Late => {
                    model.good = usize::MAX;
                    router.tick(&mut model, Instant::now() + Duration::from_secs(61));
                    prop_assert!(router.waiting().is_none());
                }
                Event::Edit(text) => {
                    place.edit(TEXTS[text]);
                    edited = Some(TEXTS[text]);
                }
                Event::Reload => drop(router.reload(&mut model)),
                Event::End => {
                    (router, model, _) = place.start();
                    let is_file = |text: &str| *router.running() == config(text);
                    let file = edited.filter(|text| *text != WRONG).is_some_and(is_file);
                    prop_assert!(file || *router.running() == kept);
                }
            }
            model.good = usize::MAX;
            prop_assert_eq!(model.items(), &items(router.running()));
            if router.waiting().is_none() {
                kept = router.running().clone();
            }
        }
    }
}

/// Only the owner may read what has secrets in it.
#[test]
fn others_may_not_read_it() {
    use std::os::unix::fs::PermissionsExt;
    let place = Place::new(A);
    drop(place.start());
    let mode = |path: &Path| fs::metadata(path).expect("there").permissions().mode() & 0o777;
    assert_eq!(mode(&place.state()), 0o700);
    assert_eq!(mode(&place.state().join("1.yaml")), 0o600);
}
