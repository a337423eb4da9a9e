//! Load tests from the page: REST, metrics, and what a user clicks.

use std::time::Duration;

use serde_json::{Value, json};
use testbed::{patience, until};

use crate::browser::Browser;
use crate::http::{Answer, ask, get};
use crate::page::{skipped, text_of, wait_for_text};
use crate::router::Site;

fn post(site: &Site, path: &str, token: &str, body: &Value) -> Answer {
    let authorization = format!("Authorization: Bearer {token}");
    let headers = [&*authorization, "Content-Type: application/json"];
    let request = format!("POST /api/v1/loadtest{path}");
    ask(site.server.address(), &request, &headers, &body.to_string())
}

fn now(site: &Site) -> Value {
    get(site.server.address(), "/api/v1/loadtest").json()
}

fn wait(site: &Site, what: impl Fn(&Value) -> bool) {
    let seen = until(patience(Duration::from_secs(30)), || what(&now(site)));
    assert!(seen, "{}", now(site));
}

fn request(rate: &str) -> Value {
    json!({"tx": ["live:a"], "rx": ["sink:b"], "profile_text": "- stream: {}\n", "options": {"rate": rate}})
}

/// Starts one, and waits until it has told of a sample.
pub fn start(site: &Site) {
    assert_eq!(post(site, "", &site.token(), &request("1kpps")).status, 200);
    wait(site, |now| now["progress"].as_u64() >= Some(1));
}

#[test]
fn a_load_test_runs_until_it_is_stopped() {
    let site = Site::without_router();
    let (at, token) = (site.server.address(), site.token());
    assert_eq!(now(&site)["state"], "none");
    for (path, token, body, status) in [
        ("", "wrong", request("1kpps"), 401),
        ("", &*token, json!({"tx": ["pcap:/x"], "rx": []}), 400),
        ("", &*token, json!({"tx": "live:a"}), 400),
        ("/stop", "wrong", Value::Null, 401),
        ("/stop", &*token, Value::Null, 409),
    ] {
        let answer = post(&site, path, token, &body);
        assert_eq!(answer.status, status, "{answer:?}");
    }
    assert_eq!(now(&site)["state"], "none");
    assert_eq!(get(at, "/api/v1/loadtest/report").status, 404);

    assert_eq!(post(&site, "", &token, &request("1kpps")).status, 200);
    assert_eq!(post(&site, "", &token, &request("1kpps")).status, 409);
    wait(&site, |now| now["progress"].as_u64() >= Some(3));
    let running = now(&site);
    assert_eq!(running["state"], "running");
    let command: Vec<&str> = running["command"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(Value::as_str)
        .collect();
    let profile = command
        .iter()
        .find_map(|word| word.strip_prefix("--profile="))
        .unwrap();
    assert_eq!(std::fs::read_to_string(profile).unwrap(), "- stream: {}\n");
    let progress = get(at, "/api/v1/loadtest/progress?from=1").json();
    assert_eq!(
        (&progress["from"], &progress["lines"][0]["at"]),
        (&json!(1), &json!(2.0))
    );
    let metrics = get(at, "/metrics").body;
    for line in [
        "parshall_loadtest_running 1",
        "parshall_loadtest_sent_packets_total{direction=\"0\"} ",
        "parshall_loadtest_received_packets_total{direction=\"0\"} ",
        "parshall_loadtest_latency_nanoseconds{direction=\"0\",quantile=\"0.99\"} 34000",
    ] {
        assert!(
            metrics.lines().any(|known| known.starts_with(line)),
            "{line}:\n{metrics}"
        );
    }

    assert_eq!(post(&site, "/stop", &token, &Value::Null).status, 200);
    wait(&site, |now| now["state"] == "ended");
    assert_eq!(
        (&now(&site)["exit_code"], &now(&site)["result"]),
        (&json!(0), &json!(true))
    );
    assert_eq!(
        get(at, "/api/v1/loadtest/result").json(),
        json!({"sender": "live"})
    );
    let report = get(at, "/api/v1/loadtest/report");
    assert!(
        report
            .head
            .contains("content-security-policy: sandbox allow-scripts")
    );

    assert_eq!(post(&site, "", &token, &request("bad")).status, 200);
    wait(&site, |now| now["state"] == "ended");
    assert_eq!(
        (&now(&site)["exit_code"], &now(&site)["result"]),
        (&json!(2), &json!(false))
    );
    assert!(
        !std::fs::exists(profile).unwrap(),
        "the files of the test before are gone"
    );
}

/// The page's end is the test's: nothing runs on, and no file is left.
#[test]
fn a_load_test_ends_with_the_page() {
    let site = Site::without_router();
    start(&site);
    let command = now(&site)["command"].to_string();
    let profile = command
        .split("--profile=")
        .nth(1)
        .unwrap()
        .split('"')
        .next()
        .unwrap()
        .to_owned();
    let runs = || {
        let processes = std::fs::read_dir("/proc").unwrap().filter_map(Result::ok);
        let mut lines = processes.filter_map(|one| std::fs::read(one.path().join("cmdline")).ok());
        lines.any(|line| String::from_utf8_lossy(&line).contains(&profile))
    };
    assert!(runs());
    drop(site);
    assert!(!runs());
    assert!(!std::fs::exists(profile).unwrap());
}

#[test]
fn a_user_runs_a_load_test() {
    if skipped("a_user_runs_a_load_test") {
        return;
    }
    for width in [1280, 380] {
        let site = Site::without_router();
        let directory = tempfile::tempdir().unwrap();
        let mut browser = Browser::start(directory.path(), |spawn| spawn);
        browser.open(&format!("http://{}/", site.server.address()), width);
        browser.click("#tab-loadtest");
        wait_for_text(&mut browser, "#test-state", "No load test so far");
        browser.assert_fits();
        browser.enter("#tx", "live:a live:c");
        browser.enter("#rx", "sink:b sink:d");
        browser.enter("#rate", "bad");
        browser.click("#start");
        wait_for_text(&mut browser, "#test-outcome", "this needs the token in");
        browser.enter("#token", &site.token());
        browser.click("#start");
        wait_for_text(&mut browser, "#test-state", "Ended with exit code 2");
        wait_for_text(&mut browser, "#test-messages", "<b>not</b> a rate");
        browser.enter("#rate", "1mpps");
        browser.enter("#tunable", "size=64 vm=var2");
        browser.click("#start");
        wait_for_text(
            &mut browser,
            "#test-state",
            "--tx=live:a --tx=live:c --rx=sink:b --rx=sink:d --tunable=size=64 --tunable=vm=var2 --profile=bench",
        );
        browser.wait_for("document.querySelectorAll('#chart-test .js-line').length >= 2 && document.querySelectorAll('#chart-latency .js-line').length >= 3");
        wait_for_text(&mut browser, "#test-ways", "10 %");
        browser.assert_fits();
        browser.click("#stop");
        wait_for_text(&mut browser, "#test-state", "Ended well");
        assert!(text_of(&mut browser, "#test-result").contains("Report"));
        browser.assert_no_errors();
        // A report's scripts run, and reach nothing of the page's.
        browser.open(
            &format!("http://{}/api/v1/loadtest/report", site.server.address()),
            width,
        );
        browser.wait_for("document.title === 'drawn, alone'");
    }
}
