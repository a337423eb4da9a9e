//! The main job from end to end: `parshall lab` compares kernel and router, writes JSON and a page
//! with graphs, and leaves nothing behind. The page opens in a real browser without any network.

use std::path::Path;
use std::time::Duration;

use serde_json::Value;

use crate::harness::{
    Directory, Netns, PARSHALL, Process, Spawn, alone, command, patience, skipped, until,
};

/// Opens a page in a namespace without any network, and returns the document after its scripts have
/// run, with what the page's scripts said.
fn open(page: &Path, profile: &Path) -> (String, String) {
    let netns = Netns::create("browser").expect("root may make namespaces");
    let browser = Spawn::new("chromium")
        .args([
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--no-first-run",
        ])
        .args([
            "--enable-logging=stderr",
            "--log-level=0",
            "--virtual-time-budget=10000",
        ])
        .args([
            format!("--user-data-dir={}", profile.display()),
            "--dump-dom".into(),
        ])
        .args([format!("file://{}", page.display())])
        .inside(&netns)
        .output(Duration::from_secs(60))
        .expect("chromium ends");
    assert!(browser.status.success(), "{}", browser.status);
    let [dom, said] =
        [browser.stdout, browser.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
    // The browser's own pages complain about the missing network.
    let of_page = said
        .lines()
        .filter(|line| line.contains("CONSOLE") && line.contains("source: file:"));
    (dom, of_page.collect())
}

/// Fails unless the result has what is documented for the device. A busy machine may disturb every
/// trial of a short search; then no rate is found, and the result says why.
fn assert_run(result: &Value, dut: &str) {
    let runs = result["runs"].as_array().expect("runs");
    let run = runs
        .iter()
        .find(|run| run["dut"] == dut)
        .unwrap_or_else(|| panic!("no run of {dut}: {result}"));
    assert_eq!(
        (&run["size"], &run["flows"], &run["direction"]),
        (&"64".into(), &"many".into(), &"one-way".into())
    );
    assert!(
        run["saturation_pps"].as_f64() > Some(0.0),
        "{dut} forwarded nothing: {run}"
    );
    assert!(
        run["ramp"].as_array().is_some_and(|ramp| !ramp.is_empty()),
        "{run}"
    );
    assert!(
        !run["cpu_method"].as_str().unwrap_or_default().is_empty(),
        "{run}"
    );
    if run["valid"] == false {
        println!("{dut}: no rate was found here: {}", run["why"]);
        return;
    }
    assert!(
        run["max_pps"].as_f64() > Some(0.0) && run["l1_bps"].as_f64() > run["max_pps"].as_f64(),
        "{run}"
    );
    assert!(
        run["loss"]
            .as_f64()
            .is_some_and(|loss| (0.0..=0.001).contains(&loss)),
        "{run}"
    );
}

/// Starts a lab, which must be alone on the machine, and waits until it is.
fn start_lab(words: &[&str]) -> Process {
    // It leaves the dispatcher full.
    drop(alone());
    let lab = Spawn::new(PARSHALL).args(["lab", "--quick"]).args(words);
    let lab = lab.start().expect("the binary starts");
    let us = format!("process {},", lab.pid());
    let begun = until(20 * patience(), || {
        sandbox::alone::holder().starts_with(&us)
    });
    assert!(begun, "{}", lab.log());
    lab
}

/// Runs a lab; its result.
fn result_of(lab: &mut Process, json: &Path) -> Value {
    lab.wait(4 * patience()).expect("it ends");
    let text = std::fs::read_to_string(json);
    let text = text.unwrap_or_else(|_| panic!("no result: {}", lab.log()));
    serde_json::from_str(&text).expect("JSON")
}

/// No kernel refuses what a lab needs: each row has a result, and live frames make it where they
/// should.
#[test]
#[ignore = "for other kernels: make test-kernels"]
fn lab_has_a_result_in_each_row() {
    if skipped("lab_has_a_result_in_each_row", &["ip", "ethtool"]) {
        return;
    }
    let directory = Directory::new();
    let json = directory.path().join("result.json");
    let mut lab = start_lab(&["--json", &json.display().to_string()]);
    let result = result_of(&mut lab, &json);
    let runs = result["runs"].as_array().expect("runs");
    assert_eq!(runs.len(), 3, "{result}");
    for run in runs {
        let word = |key: &str| run[key].as_str().unwrap_or_default();
        let rate = run["saturation_pps"].as_f64().unwrap_or_default() / 1e6;
        let (dut, io, sender) = (word("dut"), word("io"), word("sender"));
        println!("\nLAB {dut} {io}: {rate:.2} Mpps by {sender}");
        assert!(rate > 0.0, "{run}\n{}", lab.log());
        assert!(io != "veth" || sender == "live", "{run}\n{}", lab.log());
    }
}

#[test]
fn lab_compares_and_reports() {
    if skipped("lab_compares_and_reports", &["ip", "ethtool", "chromium"]) {
        return;
    }
    let directory = Directory::new();
    let (json, page) = (
        directory.path().join("result.json"),
        directory.path().join("report.html"),
    );
    let [to_json, to_page] = [&json, &page].map(|file| file.display().to_string());
    let mut lab = start_lab(&["--io", "veth", "--json", &to_json, "-o", &to_page]);
    let result = result_of(&mut lab, &json);
    assert!(
        lab.log().contains("one way, 64 B many flows"),
        "{}",
        lab.log()
    );
    assert!(
        result["generator"]["ceiling_pps"].as_f64() > Some(0.0),
        "{result}"
    );
    assert_run(&result, "kernel");
    assert_run(&result, "parshall");
    let left = command::run(&["ip", "netns"]).expect("ip");
    assert!(
        !left.contains(&format!("parshall-lab-{}-", lab.pid())),
        "namespaces are left: {left}"
    );

    let (dom, said) = open(&page, &directory.path().join("profile"));
    assert!(said.is_empty(), "script errors: {said}");
    assert!(
        dom.contains("kernel") && dom.contains("parshall"),
        "both devices are named"
    );
    assert!(
        dom.contains("js-line"),
        "no line was drawn in {} bytes",
        dom.len()
    );
}

#[test]
fn killed_lab_is_cleared_away() {
    if skipped("killed_lab_is_cleared_away", &["ip", "ethtool"]) {
        return;
    }
    let mut lab = start_lab(&["--dut", "kernel"]);
    let name = format!("parshall-lab-{}-", lab.pid());
    let ours = || command::run(&["ip", "netns"]).expect("ip").contains(&name);
    assert!(
        until(patience(), ours),
        "it made no namespace: {}",
        lab.log()
    );
    lab.kill();
    // Whatever starts beside it may have been first.
    command::run(&[PARSHALL, "cleanup"]).expect("cleanup");
    assert!(!ours(), "cleanup left a namespace");
}

/// Each trial at a share of the highest rate has its latency, or says why not: a busy machine may keep
/// the generator from sending.
#[test]
fn lab_measures_latency_under_load() {
    if skipped("lab_measures_latency_under_load", &["ip", "ethtool"]) {
        return;
    }
    let directory = Directory::new();
    let json = directory.path().join("result.json");
    let words = ["--latency", "--dut", "parshall", "--json"];
    let mut lab = start_lab(&[&words[..], &[&json.display().to_string()]].concat());
    let result = result_of(&mut lab, &json);
    let runs = result["runs"].as_array().expect("runs");
    assert_eq!(runs.len(), 2, "{result}");
    for run in runs.iter().filter(|run| run["valid"] == true) {
        let trials = run["latency"].as_array().expect("latency");
        let shares: Vec<_> = trials.iter().map(|trial| trial["share"].as_f64()).collect();
        assert_eq!(shares, [Some(0.1), Some(0.5), Some(0.9)], "{run}");
        for trial in trials {
            let number = |key: &str| trial[key].as_f64();
            if trial["valid"] == false {
                assert!(trial["why"].as_str().is_some_and(|why| !why.is_empty()));
                println!("not valid: {trial}");
                continue;
            }
            assert!(number("measured") >= Some(1.0), "{trial}");
            let times = ["p50_ns", "p99_ns", "p99_9_ns"].map(number);
            assert!(times[0] > Some(0.0) && times.is_sorted(), "{trial}");
        }
    }
    let log = lab.log();
    let measured = runs.iter().any(|run| run["valid"] == true);
    assert!(!measured || log.contains("latency under load, us"), "{log}");
}
