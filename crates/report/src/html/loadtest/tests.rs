use super::*;
use crate::html::tests::assert_drawn;
use crate::loadtest::{Latency, Spread, read};
use crate::model::{Machine, Run};
use crate::setup::Word;

const KNOWN: &str = include_str!("../../../../loadgen/tests/loadtest-sample.json");

const DRAWING: Drawing<'_> = Drawing {
    title: "Load <test>",
    threshold: 0.001,
    measured: None,
};

fn tests() -> Vec<LoadTest> {
    let mut tests = read("monday", KNOWN).unwrap();
    tests.extend(read("tuesday", &KNOWN.replace("1443452.38086", "1400000.0")).unwrap());
    tests
}

#[test]
fn says_what_was_measured() {
    let mut tests = tests();
    tests[0].latencies.push(Latency {
        stream: "probe".into(),
        nanos: [Some(1500.0), None, None, None, None],
    });
    tests[1].curves[0].samples[2].is_valid = false;
    let page = load_tests(&tests, &DRAWING);
    for right in [
        "<title>Load &lt;test&gt;</title>",
        "at less than 0.1 % loss, Mpps",
        "<tr class=\"group\"><th scope=\"rowgroup\" colspan=\"7\">64 B</th></tr>",
        "<th scope=\"row\" class=\"name\">monday</th><td>0→1</td><td class=\"n\">1.203</td><td class=\"n\">1.443</td>",
        "1 of 8 samples were not sent in full",
        "id=\"time0\"",
        "id=\"rate0\"",
        "circle-open",
        "<th scope=\"col\">rampup_target</th>",
        "<td>probe</td><td class=\"n\">1.500</td>",
    ] {
        assert!(page.contains(right), "{right}");
    }
    assert_eq!(page.matches("class=\"chart tall\"").count(), 2);
    for wrong in ["omparison", "<h2>Machine</h2>", "http-equiv"] {
        assert!(
            !page.split("<script").next().unwrap().contains(wrong),
            "{wrong}"
        );
    }
}

/// The page of a test that has just been made: its device is not of this machine, and a test that
/// has nothing to draw says why.
#[test]
fn says_where_it_was_measured() {
    let run = Run {
        dut: Word::Other("device".into()),
        ..Run::default()
    };
    let machine = Machine {
        cpu: "AMD EPYC <Zen 4>".into(),
        started: "2026-01-01T12:00:00Z".into(),
        ..Machine::default()
    };
    let result = LabResult {
        runs: vec![run],
        machine,
        ..LabResult::default()
    };
    let drawing = Drawing {
        measured: Some(&result),
        ..DRAWING
    };
    let ended = LoadTest {
        name: "device".into(),
        remarks: vec!["it ended <early>".into()],
        ..LoadTest::default()
    };
    let page = load_tests(&[ended], &drawing);
    for right in [
        "<h2>The load tester's machine</h2>",
        "nothing is known of the device's machine",
        "AMD EPYC &lt;Zen 4&gt;",
        "2026-01-01T12:00:00Z",
        "it ended &lt;early&gt;",
        "<td class=\"n\">&ndash;</td>",
    ] {
        assert!(page.contains(right), "{right}");
    }
    assert!(!page.contains("hypervisor") && !page.contains("class=\"chart"));
}

#[test]
fn hostile_names_stay_text() {
    let hostile = "</script><script>alert(1)</script>\"'&<!--";
    let file = KNOWN.replace("udp_1pkt_simple_bdir.py", "</td><b onload='x'>");
    let mut tests = read(hostile, &file).unwrap();
    tests[0].settings.push((hostile.into(), hostile.into()));
    tests[0].remarks.push(hostile.into());
    let drawing = Drawing {
        title: hostile,
        ..DRAWING
    };
    let page = load_tests(&tests, &drawing);
    let text = page.split("<footer>").next().unwrap();
    for wrong in ["<script", "alert(1)</", "<b onload", "\"'&"] {
        assert!(!text.contains(wrong), "{wrong}");
    }
    let data = page.split("id=\"charts\">").nth(1).unwrap();
    let data = data.split("</script>").next().unwrap();
    let data: serde_json::Value = serde_json::from_str(data).unwrap();
    assert_eq!(data[0]["data"][1]["name"], format!("{hostile} 0→1"));
}

#[test]
fn a_browser_draws_the_curves() {
    // Two tests of two ways: each sent, came back and lost something, or not.
    assert_drawn(&load_tests(&tests(), &DRAWING), "time0", 2 * 2 * 3);
    // One that measured latency one way: half, most, and nearly all.
    let mut tests = tests();
    for sample in &mut tests[0].curves[1].samples[1..] {
        sample.latency = Some(Spread {
            p50: 2e3,
            p99: 9e3,
            max: 1e4,
        });
    }
    assert_drawn(&load_tests(&tests, &DRAWING), "latency0", 3);
}

/// The JSON of a search by a method, with trials at 1 and 3 Mpps and a burst at 3 Mpps.
fn search(method: &str, result: &str) -> LoadTest {
    let point = |pps: f64, loss: f64, unfit: &str| {
        serde_json::json!({"offered_pps": pps, "sent_pps": pps, "forwarded_pps": pps * (1.0 - loss),
            "loss": loss, "valid": true, "seconds": 1.0, "unfit": unfit})
    };
    let result: serde_json::Value = serde_json::from_str(result).unwrap();
    let file = serde_json::json!({"method": method, "profile": "stl/bench.py", "result": result,
        "trials": [point(3e6, 0.5, ""), point(1e6, 0.0, ""), point(2e6, 0.0, "it was <restless>")],
        "bursts": [point(3e6, 0.0, "")]});
    read(method, &file.to_string()).unwrap().remove(0)
}

const EFFORT: &str = r#""effort": {"trials": 36, "invalid_trials": 2, "seconds": 36.2,
    "top_pps": 3e6, "top_is": "ceiling", "saturation_pps": 1.5e6}"#;

#[test]
fn says_what_each_method_found() {
    let bounds =
        r#"{"allowed": 0, "lower_pps": 1.0e6, "upper_pps": 1.25e6, "throughput_pps": 9e5}"#;
    let none = r#"{"allowed": 0.005, "provisional": true, "why": "nothing <came> back"}"#;
    let mlrsearch = format!(r#"{{"goals": [{bounds}, {none}], {EFFORT}}}"#);
    let binary = format!(r#"{{"bounds": {bounds}, {EFFORT}}}"#);
    let rfc2544 = format!(
        r#"{{"throughput": {bounds}, {EFFORT}, "latency_seconds": 120,
        "loss_rates": [{{"share": 0.9, "offered_pps": 2.7e6, "loss": 0.25}},
                       {{"share": 0.8, "offered_pps": 2.4e6, "loss": null}}],
        "back_to_back": {{"packets": 30123.4, "deviation": 7, "bursts": 50, "is_longest": true}}}}"#
    );
    let soak = format!(
        r#"{{"allowed": 1e-7, "critical_pps": 1.1e6, "interval_pps": [1.05e6, 1.15e6],
        "lossless_trials": 17, "why": "", {EFFORT}}}"#
    );
    let max =
        r#"{"valid": true, "max_pps": 1.2e6, "interval_pps": [1.19e6, 1.21e6], "loss": 0.0005}"#;
    let searches = [
        search("mlrsearch", &mlrsearch),
        search("max-rate", max),
        search("binary", &binary),
        search("rfc2544", &rfc2544),
        search("soak", &soak),
    ];
    let n = |number: &str| format!("<td class=\"n\">{number}</td>");
    let row = |name: &str, cells: &[&str], why: &str| {
        let cells: String = cells.iter().map(|cell| n(cell)).collect();
        format!("<th scope=\"row\" class=\"name\">{name}</th>{cells}<td class=\"why\">{why}</td>")
    };
    let page = load_tests(&searches, &DRAWING);
    let page = page.split("<script").next().unwrap();
    let found = ["0 %", "1.000", "1.250", "20.000", "0.900"];
    let dash = "&ndash;";
    let took = ["36", "2", "36", "3.000", "1.500"];
    for right in [
        row("mlrsearch", &found, ""),
        row("binary", &found, ""),
        row("rfc2544", &found, ""),
        row(
            "mlrsearch",
            &["0.5 %", dash, dash, dash, dash],
            "provisional; nothing &lt;came&gt; back",
        ),
        row("max-rate", &["1.200", "1.190", "1.210", "0.0500"], ""),
        row("rfc2544", &["90", "2.700", "25.000"], ""),
        row(
            "rfc2544",
            &["80", "2.400", dash],
            "the generator could not send it",
        ),
        row(
            "rfc2544",
            &["30123", "7", "50"],
            "or more: the longest burst that is tried came back whole",
        ),
        row("soak", &["0.00001 %", "1.100", "1.050", "1.150", "17"], ""),
        row("binary", &took, "no more may be sent"),
        // Neither the burst nor the trial that did not count is a rate that passed.
        format!(
            "<th scope=\"row\" class=\"name\">rfc2544</th><td>all</td>{}",
            n("1.000")
        ),
        "1 of 3 trials did not count".to_owned(),
    ] {
        assert!(page.contains(&right), "{right}\n{page}");
    }
    assert!(!page.contains("<came>"));
    // A page without a search has no such section.
    let page = load_tests(&tests(), &DRAWING);
    assert!(!page.contains("What the searches found"));
}
