//! A matrix of commands from beginning to end; nothing of it needs root.

use super::*;

const FILE: &str = "title: A count
axes: { base: [10, 20], n: [1, 2, 3] }
device: command
rounds: 3
warm-up: 0
prepare: cd DIR; echo $base $n >> prepared; [ ! -e device ]; touch device
measure: cd DIR; wc -l < prepared > runs; [ $n != 3 ] || [ ! -e broken ]; echo $((base + n))
teardown: cd DIR; rm device
unit: things
";

/// The plan in a directory of its own, with its text.
fn plan(directory: &Path) -> (Plan, String) {
    let text = FILE.replace("DIR", &directory.display().to_string());
    (Plan::read("m.yaml", &text, "parshall").unwrap(), text)
}

fn run_all(plan: &Plan, journal: &mut Journal) -> MatrixResult {
    let tools = Tools {
        exe: Path::new("parshall"),
        meter: None,
        merge: |ports, beyond| Ok(format!("{ports}{beyond}")),
        pending: &Pending::default(),
    };
    run(plan, journal, &tools, &mut ()).unwrap()
}

/// Those runs of a result whose machine kept still.
fn calm(runs: &[MatrixRun]) -> impl Iterator<Item = &MatrixRun> {
    runs.iter()
        .filter(|run| run.conditions.disturbed().is_none())
}

#[test]
fn each_round_has_all_configurations_in_an_order_of_its_own() {
    let directory = tempfile::tempdir().unwrap();
    let (plan, _) = plan(directory.path());
    let of = |seed| -> Vec<(u32, String)> {
        let order = order(&plan, seed).into_iter();
        order.map(|(round, c)| (round, c.at.join(" "))).collect()
    };
    assert_eq!(of(7), of(7));
    assert_ne!(of(7), of(8));
    let rounds: Vec<Vec<String>> = (1..=3)
        .map(|round| {
            of(7)
                .into_iter()
                .filter(|(r, _)| *r == round)
                .map(|(_, at)| at)
                .collect()
        })
        .collect();
    assert!(
        rounds[0] != rounds[1] || rounds[1] != rounds[2],
        "{rounds:?}"
    );
    for mut round in rounds {
        round.sort();
        assert_eq!(round, ["10 1", "10 2", "10 3", "20 1", "20 2", "20 3"]);
    }
}

#[test]
fn a_matrix_is_measured_and_goes_on_where_it_ended() {
    let directory = tempfile::tempdir().unwrap();
    let (plan, text) = plan(directory.path());
    let path = directory.path().join("journal");
    // The process ended while a device was prepared.
    std::fs::write(directory.path().join("device"), "").unwrap();
    let mut journal = Journal::open(&path, &text, Some(3)).unwrap();
    journal.begin(&plan.configurations[0].at).unwrap();
    let known = MatrixRun {
        at: plan.configurations[0].at.clone(),
        round: 1,
        attempt: 1,
        figure: Some(999.0),
        ..MatrixRun::default()
    };
    drop(journal);
    let mut journal = Journal::open(&path, &text, None).unwrap();
    put_away(&plan, &journal);
    assert!(!directory.path().join("device").exists());
    journal.done(known.clone()).unwrap();
    let result = run_all(&plan, &mut journal);
    assert_eq!((result.seed, &result.runs[0]), (3, &known));
    assert!(result.runs.len() >= 18);
    for run in &result.runs[1..] {
        let sum: f64 = run
            .at
            .iter()
            .map(|value| value.parse::<f64>().unwrap())
            .sum();
        assert_eq!(run.figure, Some(sum), "{run:?}");
    }
    drop(journal);
    let mut journal = Journal::open(&path, &text, None).unwrap();
    let again = run_all(&plan, &mut journal);
    let of = |result: &MatrixResult| -> Vec<_> {
        let runs = result.runs.iter();
        runs.map(|run| (run.at.clone(), run.round, run.attempt, run.figure))
            .collect()
    };
    assert_eq!(of(&again), of(&result));
}

#[test]
fn what_fails_is_repeated_and_does_not_count() {
    let directory = tempfile::tempdir().unwrap();
    let (plan, text) = plan(directory.path());
    std::fs::write(directory.path().join("broken"), "").unwrap();
    let mut journal = Journal::open(&directory.path().join("journal"), &text, None).unwrap();
    let result = run_all(&plan, &mut journal);
    let (bad, good): (Vec<_>, Vec<_>) = result.runs.iter().partition(|run| run.at[1] == "3");
    assert_eq!(bad.len(), 2 * 3 * 3);
    for run in bad {
        assert!(
            run.unfit.contains("`measure` failed") && run.counted().is_none(),
            "{run:?}"
        );
    }
    let good: Vec<MatrixRun> = good.into_iter().cloned().collect();
    assert!(calm(&good).all(|run| run.counted().is_some()));
    assert!(!directory.path().join("device").exists());
}

#[test]
fn the_examples_can_be_measured() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let files = std::fs::read_dir(directory).unwrap();
    let files: Vec<_> = files.map(|file| file.unwrap().path()).collect();
    assert!(files.len() >= 3, "{files:?}");
    for file in files {
        let text = std::fs::read_to_string(&file).unwrap();
        let plan = Plan::read(&file.display().to_string(), &text, "parshall").unwrap();
        assert!(plan.needs_lab() && !plan.title.is_empty(), "{plan:?}");
    }
}
