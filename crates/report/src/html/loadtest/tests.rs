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
