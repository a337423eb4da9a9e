//! Files of T-Rex's scripts and ours, right and wrong ones.

use serde_json::{Value, json};

use super::*;

/// A file of T-Rex's script.
const KNOWN: &str = include_str!("../../../loadgen/tests/loadtest-sample.json");

fn known() -> Value {
    serde_json::from_str(KNOWN).unwrap()
}

#[test]
fn a_known_file_has_the_known_rates() {
    let tests = read("sample", KNOWN).unwrap();
    let [test] = &tests[..] else {
        panic!("{tests:?}")
    };
    assert_eq!(
        (test.name.as_str(), test.profile.as_str()),
        ("sample", "64 B")
    );
    let channels: Vec<Channel> = test.curves.iter().map(|c| c.channel).collect();
    assert_eq!(channels, [Channel::Out, Channel::Back]);
    let rates =
        |threshold| [0, 1].map(|i: usize| test.curves[i].rate_below(threshold).unwrap().round());
    assert_eq!(rates(0.001), [1_202_877.0, 1_488_095.0]);
    assert_eq!(rates(0.5), [1_443_452.0, 1_488_095.0]);
    let loss = test.curves[0].samples[4].loss;
    assert!((loss - 0.03).abs() < 1e-6, "{loss}");
    assert!(
        test.settings
            .contains(&("rampup_duration".into(), "600".into()))
    );
}

#[test]
fn the_rate_is_where_loss_comes_to_stay() {
    let curve = |losses: &[f64]| Curve {
        channel: Channel::Out,
        is_over_time: true,
        samples: (1..)
            .zip(losses)
            .map(|(i, &loss)| Sample {
                sent_pps: f64::from(i),
                received_pps: f64::from(i) * (1.0 - loss),
                received_percent: None,
                loss,
                is_valid: true,
                latency: None,
            })
            .collect(),
    };
    let rate = |losses: &[f64]| curve(losses).rate_below(0.1);
    assert_eq!(rate(&[0.0, 0.5, 0.0, 0.0, 0.5, 0.5]), Some(2.5));
    assert_eq!(rate(&[0.0, 0.0]), Some(2.0));
    assert_eq!(rate(&[0.5, 0.5]), None);
    let trials = Curve {
        is_over_time: false,
        ..curve(&[0.0, 0.5, 0.0, 0.5])
    };
    assert_eq!(trials.rate_below(0.1), Some(3.0));
}

#[test]
fn the_shapes_that_there_are_are_read() {
    // The least of one way, with whole numbers and a second without packets.
    let least = r#"{"vars":{"profile_file":"a/imix.py","unidirectional":1},
        "stats":{"x":{"0":{"tx_pps":0},"1":{"rx_pps":0}},"y":{"0":{"tx_pps":100},"1":{"rx_pps":99,"rx_util":7}}}}"#;
    let tests = read("least", least).unwrap();
    assert_eq!(
        (tests[0].profile.as_str(), tests[0].curves.len()),
        ("imix", 1)
    );
    let samples = &tests[0].curves[0].samples;
    assert_eq!(
        (samples[0].loss, samples[1].received_percent),
        (0.0, Some(7.0))
    );
    // Ours: a sample that was not sent in full, latency, and the highest rate.
    let mut ours = known();
    ours["parshall"] = json!({
        "samples": [
            {"at": 1001.0, "valid": true, "ways": [{"latency": {"p50": 2e3, "p99": 9e3, "max": 1e4}}, {"latency": null}]},
            {"at": 1002.0, "valid": false},
        ],
        "why": "it fell short",
        "highest": {"max_pps": 1.25e6, "allowed": 0.001},
        "streams": [{"name": "s", "flow": {"measured": 9, "min": 1000, "p50": 2000}}, {"name": "t", "flow": null}],
    });
    let text = ours.to_string().replace(".0\":", ".000\":");
    let test = &read("ours", &text).unwrap()[0];
    let valid: Vec<bool> = test.curves[0].samples.iter().map(|s| s.is_valid).collect();
    assert_eq!(valid[..3], [true, false, true]);
    let latency: Vec<_> = test.curves[0].samples.iter().map(|s| s.latency).collect();
    let measured = Spread {
        p50: 2e3,
        p99: 9e3,
        max: 1e4,
    };
    assert_eq!(latency[..3], [Some(measured), None, None]);
    assert!(test.curves[1].samples.iter().all(|s| s.latency.is_none()));
    assert!(test.remarks[0].contains("1.250 Mpps") && test.remarks[0].contains("0.1 %"));
    assert_eq!(test.latencies.len(), 1);
    assert_eq!(
        test.latencies[0].nanos,
        [Some(1000.0), None, Some(2000.0), None, None]
    );
    let search = r#"{"search":{"valid":true,"max_pps":2e6,"why":"","trials":[
        {"offered_pps":3e6,"sent_pps":3e6,"forwarded_pps":2e6,"loss":0.33,"valid":true},
        {"offered_pps":2e6,"sent_pps":2e6,"forwarded_pps":2e6,"loss":0,"valid":true}]}}"#;
    let test = &read("search", search).unwrap()[0];
    assert_eq!(test.curves[0].rate_below(0.001), Some(2e6));
    assert!(
        test.curves[0]
            .samples
            .is_sorted_by_key(|s| s.sent_pps as u64)
    );
    let method = r#"{"method":"mlrsearch","profile":"stl/bench.py","result":{"goals":[]},"trials":[
        {"offered_pps":3e6,"sent_pps":3e6,"forwarded_pps":2e6,"loss":0.33,"valid":true},
        {"offered_pps":2e6,"sent_pps":2e6,"forwarded_pps":2e6,"loss":0,"valid":true}]}"#;
    let test = &read("method", method).unwrap()[0];
    assert_eq!(test.curves[0].rate_below(0.001), Some(2e6));
    assert_eq!(
        (&*test.profile, &*test.remarks[0]),
        ("bench", "method: mlrsearch")
    );
    let lab = read("lab", include_str!("../sample.json")).unwrap();
    assert!(
        lab.iter().any(|test| test.name.contains("kernel")),
        "{lab:?}"
    );
}

#[test]
fn what_is_wrong_is_named() {
    let changed = |pointer: &str, value: Value| {
        let mut file = known();
        *file.pointer_mut(pointer).unwrap() = value;
        read("x", &file.to_string()).unwrap_err()
    };
    // What is written where Ctrl-C ends the warm-up.
    let interrupted = || {
        let mut file = known();
        file["stats"] = json!({});
        file["parshall"] = json!({"interrupted": true, "samples": []});
        read("x", &file.to_string()).unwrap_err()
    };
    let rate = "/stats/1003.0/1/tx_pps";
    for (error, expected) in [
        (changed("/vars", Value::Null), "vars is null"),
        (
            changed("/vars/profile_file", json!(1)),
            "vars.profile_file is 1; expected a text",
        ),
        (
            changed("/stats", json!([])),
            "stats is a list; expected an object",
        ),
        (changed("/stats", json!({})), "stats has no sample"),
        (
            interrupted(),
            "in which packets were sent: the test was interrupted before the ramp began",
        ),
        (
            changed("/stats/1002.0", json!(7)),
            "stats.\"1002.0\".\"0\" is missing",
        ),
        (
            changed(rate, json!("12")),
            "stats.\"1003.0\".\"1\".tx_pps is a text; expected a number",
        ),
        (
            changed(rate, json!(-1)),
            "stats.\"1003.0\".\"1\".tx_pps is -1",
        ),
        (
            changed("/stats/1003.0/1", json!({})),
            "stats.\"1003.0\".\"1\".rx_pps is missing",
        ),
        (
            read("x", "{\"a\":1}").unwrap_err(),
            "none of the keys vars and stats",
        ),
        (
            read("x", "{\"vars\":{\"profile_file\":\"a\"}}").unwrap_err(),
            "stats is missing",
        ),
        (read("x", "{\"search\":{}}").unwrap_err(), "search.trials"),
        (read("x", "{\"stats\":NaN}").unwrap_err(), "no JSON"),
        (read("x", "[]").unwrap_err(), "no result of a load test"),
    ] {
        assert!(error.contains(expected), "{error}: {expected}");
    }
}

#[test]
fn channels_are_kept_by_their_names() {
    let mut tests = read("sample", KNOWN).unwrap();
    keep(&mut tests, &["1-0".parse().unwrap()]);
    assert_eq!(tests[0].curves.len(), 1);
    assert_eq!(tests[0].curves[0].channel.to_string(), "1→0");
    keep(&mut tests, &["0->1".parse().unwrap()]);
    assert!(tests.is_empty());
    assert!("2-3".parse::<Channel>().is_err());
}
