//! The program's own pacing, in real time. A machine that is busy makes packets late and short, but
//! never changes what they are compared with.

use std::time::Duration;

use serde_json::Value;

use crate::harness::{Directory, PARSHALL, Spawn};

const LIMIT: Duration = Duration::from_secs(60);

/// What `send` says of a second at `pps` into a capture file.
fn second_at(pps: u32) -> Value {
    let directory = Directory::new();
    let at = |name: &str| directory.path().join(name).display().to_string();
    let (capture, json) = (format!("pcap:{}", at("o.pcap")), at("r.json"));
    let words = format!(
        "send {capture} -f bench -t size=64 -m {pps} --duration 1s --json {json} \
         --src-mac 02:00:00:00:00:11 --dst-mac 02:00:00:00:00:22"
    );
    let output = Spawn::new(PARSHALL)
        .args(words.split_whitespace())
        .output(LIMIT)
        .expect("it ends");
    assert!(output.status.success(), "{output:?}");
    let text = std::fs::read_to_string(json).expect("it has written the file");
    serde_json::from_str(&text).expect("JSON")
}

#[test]
fn a_second_has_as_many_packets_as_its_rate() {
    for pps in [200, 10_000] {
        let result = second_at(pps);
        let number = |value: &Value| value.as_f64().unwrap_or_else(|| panic!("{result:#}"));
        let (due, packets) = (number(&result["due"]), number(&result["packets"]));
        assert_eq!(due, packets + number(&result["short"]), "{result:#}");
        let rate = f64::from(pps);
        assert!(due >= rate, "{result:#}");
        let (late, gaps) = (&result["late"], &result["gaps"]);
        assert_eq!(number(&late["measured"]), packets, "{result:#}");
        assert_eq!(number(&gaps["measured"]), packets - 1.0, "{result:#}");
        if due > packets {
            continue;
        }
        // Nothing was given up, so the last packet was due after as many gaps of the rate, and left
        // no later than the latest of all.
        let (scheduled, late) = ((packets - 1.0) / rate, number(&late["max"]) / 1e9);
        let span = (packets - 1.0) / number(&result["pps"]);
        assert!(
            (scheduled - 1e-6..=scheduled + late + 1e-6).contains(&span),
            "{result:#}"
        );
        let left = number(&gaps["avg"]) * (packets - 1.0) / 1e9;
        assert!(
            (span - late - 1e-6..=span + 1e-6).contains(&left),
            "{result:#}"
        );
    }
}
