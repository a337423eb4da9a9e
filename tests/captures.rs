//! The load tester on capture files, which need no rights: what it says of a device that is known.

use std::fs::File;
use std::io::BufReader;
use std::path::Path;
use std::time::Duration;

use rustix::process::Signal;
use serde_json::Value;
use wire::pcap::{ETHERNET, Packet, Reader, Writer};

use crate::harness::{Directory, PARSHALL, Spawn, patience, until};

const LIMIT: Duration = Duration::from_secs(60);
const ADDRESSED: &str = "--src-mac 02:00:00:00:00:11 --dst-mac 02:00:00:00:00:22";

/// Runs the binary; whether it ended well, and what it said.
fn run(words: &str) -> (bool, String) {
    let words: Vec<&str> = words.split_whitespace().collect();
    let output = Spawn::new(PARSHALL).args(words).output(LIMIT);
    let output = output.expect("it ends");
    let said = [output.stdout, output.stderr].concat();
    let said = String::from_utf8_lossy(&said).into_owned();
    (output.status.success(), said)
}

fn packets(file: &Path) -> Vec<Packet> {
    let file = File::open(file).expect("it has been written");
    let reader = Reader::new(BufReader::new(file)).expect("a capture");
    reader.collect::<Result<_, _>>().expect("whole")
}

/// A profile of streams `a`, `b` and so on, each with one packet and the given keys.
fn profile(file: &Path, streams: &[&str]) {
    let stream = |(name, keys): (char, &&str)| {
        format!(
            r#"{{"name": "{name}", {keys}, "packet": {{"binary": "AgAAAAAiAgAAAAARCABFAAAuAAEAAEARjojAAAIBxjNkAQQAAAkAGgAAcHBwcHBwcHBwcHBwcHBwcHBw"}}}}"#
        )
    };
    let all: Vec<String> = ('a'..).zip(streams).map(stream).collect();
    std::fs::write(file, format!("[{}]", all.join(","))).expect("there is room");
}

/// Every second packet comes back, from the first one on: there is no rate without loss, and text,
/// JSON and page say so alike.
#[test]
fn a_device_that_loses_half_has_no_highest_rate() {
    let directory = Directory::new();
    let at = |name: &str| directory.path().join(name);
    let all = at("all.pcap");
    let bench = format!("-f bench -t size=64 -m 1000pps {ADDRESSED}");
    let words = format!("send --dry-run -o {} --limit 1000 {bench}", all.display());
    assert!(run(&words).0);
    for kept in [2, 1] {
        let half = File::create(at("half.pcap")).expect("there is room");
        let mut half = Writer::new(half, ETHERNET).expect("there is room");
        for packet in packets(&all).iter().step_by(kept) {
            half.write(packet.nanos, packet.wire_len, &packet.bytes)
                .expect("there is room");
        }
        half.flush().expect("there is room");
        let [tx, rx, json, page] = ["tx.pcap", "half.pcap", "r.json", "r.html"].map(at);
        let (ended_well, said) = run(&format!(
            "loadtest --tx pcap:{} --rx pcap:{} {bench} --duration 1s --json {} -o {}",
            tx.display(),
            rx.display(),
            json.display(),
            page.display()
        ));
        assert!(ended_well, "{said}");
        let result = std::fs::read_to_string(json).expect("it has been written");
        let result: Value = serde_json::from_str(&result).expect("JSON");
        let highest = &result["parshall"]["highest"];
        let page = std::fs::read_to_string(page).expect("it has been written");
        let ours = &result["parshall"];
        let conditions = &ours["conditions"];
        assert!(conditions["governor"].is_string() && conditions["unsent"].is_u64());
        assert!(conditions["cycles_per_add"][1].as_f64() > Some(0.0));
        assert_eq!(conditions["ports"][0]["mode"], "pcap");
        assert!(ours["machine"]["kernel"].is_string() && ours["machine"]["command"].is_string());
        for fact in [
            "frequency governor",
            "an addition's TSC cycles",
            "packets not sent",
        ] {
            assert!(
                page.contains(&fact.replace('\'', "&#39;")),
                "not on the page: {fact}"
            );
        }
        let loss = result["parshall"]["whole"]["loss"].as_f64();
        let passes = result["parshall"]["valid"] == true && loss <= Some(0.001);
        assert_eq!(highest["valid"], passes, "{said}");
        assert!(!passes || kept == 1, "{said}");
        if highest["valid"] == false {
            let why = highest["why"].as_str().expect("a reason");
            assert!(said.contains(&format!("none found: {why}")), "{said}");
            assert!(page.contains(why), "not on the page: {why}");
            assert_eq!(highest["max_pps"], Value::Null);
        }
    }
}

/// What no rate changes is not said to be sent at another.
#[test]
fn a_rate_that_cannot_be_had_is_refused() {
    let directory = Directory::new();
    let at = |name: &str| directory.path().join(name).display().to_string();
    let [all, tx, json] = ["all.pcap", "tx.pcap", "r.json"].map(at);
    let capture = format!("send --dry-run -o {all} --limit 20 -m 1000pps {ADDRESSED}");
    assert!(run(&capture).0);
    let single = r#""isg": 1000, "next": "a", "mode": {"type": "single_burst", "total_pkts": 1, "rate": {"type": "pps", "value": 9000}}"#;
    let chain = directory.path().join("chain.json");
    profile(&chain, &[single]);
    let chain = chain.display();
    let send = format!("send pcap:{tx} {ADDRESSED} --json {json}");
    let test = format!("loadtest --tx pcap:{tx} --rx pcap:{all} {ADDRESSED} -t flow=fsl");
    for words in [
        format!("{send} -f {all} -m 5mpps"),
        format!("{send} -f {chain} -m 5mpps"),
        format!("{send} -t flow=fsl -m 1mpps"),
        format!("send --dry-run -o {tx} --limit 9 -f {all} -m 5mpps"),
        format!("{test} --duration 1s -m 1mpps"),
        format!("{test} --ramp 1s"),
        format!("{test} --search max-rate"),
    ] {
        let (ended_well, said) = run(&words);
        let why = said.contains("no rate changes what") || said.contains("no other rate to try");
        assert!(!ended_well && why, "{words}: {said}");
    }
    for rate in ["1", "max"] {
        let (ended_well, said) = run(&format!("{send} -f {all} -m {rate}"));
        let result = std::fs::read_to_string(&json).expect("it has been written");
        let result: Value = serde_json::from_str(&result).expect("JSON");
        let note = result["rate_note"].as_str().expect("a note");
        assert!(ended_well && said.contains(note), "{said}");
        // A generator that is held up gives up what was due long ago, and says so.
        let [packets, short] = ["packets", "short"].map(|name| result[name].as_u64());
        assert_eq!(
            packets.zip(short).map(|(sent, short)| sent + short),
            Some(20),
            "{result}"
        );
        assert!(rate != "max" || short == Some(0), "{result}");
    }
}

/// Streams that nobody can tell apart share a row, which lost nothing.
#[test]
fn streams_with_equal_headers_are_counted_together() {
    let directory = Directory::new();
    let at = |name: &str| directory.path().join(name).display().to_string();
    let [all, tx, json, file] = ["all.pcap", "tx.pcap", "r.json", "same.json"].map(at);
    let stream = r#""mode": {"type": "continuous", "rate": {"type": "pps", "value": 500}}"#;
    profile(file.as_ref(), &[stream, stream]);
    assert!(
        run(&format!(
            "send --dry-run -o {all} --limit 300 -f {file} {ADDRESSED}"
        ))
        .0
    );
    let (ended_well, said) = run(&format!(
        "loadtest --tx pcap:{tx} --rx pcap:{all} -f {file} -m 1 --duration 1s --json {json} {ADDRESSED}"
    ));
    assert!(
        ended_well && said.contains("cannot tell streams `a`, `b` apart"),
        "{said}"
    );
    let result = std::fs::read_to_string(&json).expect("it has been written");
    let result: Value = serde_json::from_str(&result).expect("JSON");
    let rows = result["parshall"]["streams"].as_array().expect("rows");
    assert_eq!(rows.len(), 1, "{rows:?}");
    assert_eq!(rows[0]["names"], serde_json::json!(["a", "b"]));
}

/// An address that is asked for and not sent is named, with the streams that keep their own; one
/// that nobody sends by is refused.
#[test]
fn addresses_that_are_not_sent_are_named() {
    let directory = Directory::new();
    let at = |name: &str| directory.path().join(name).display().to_string();
    let [all, tx, json, file] = ["all.pcap", "tx.pcap", "r.json", "own.json"].map(at);
    let stream = |flags: u8| {
        format!(
            r#""flags": {flags}, "mode": {{"type": "continuous", "rate": {{"type": "pps", "value": 500}}}}"#
        )
    };
    let streams = [0, 2, 3].map(stream);
    profile(file.as_ref(), &streams.each_ref().map(String::as_str));
    let given = "--src-mac 02:00:00:00:00:33 --dst-mac 02:00:00:00:00:44";
    let notes = [
        "--dst-mac 02:00:00:00:00:44 is not in the packets of `b`, `c`",
        "--src-mac 02:00:00:00:00:33 is not in the packets of `c`",
    ];
    let traffic = format!("-f {file} -m 1");
    let dry = format!("send --dry-run -o {all} --limit 300 {traffic}");
    let test = format!("loadtest --tx pcap:{tx} --rx pcap:{all} --duration 100ms");
    for (words, note) in [
        (dry, None),
        (
            format!("{test} --json {json} {traffic}"),
            Some("/parshall/address_note"),
        ),
        (
            format!("send pcap:{tx} --duration 100ms --json {json} {traffic}"),
            Some("/address_note"),
        ),
    ] {
        let (ended_well, said) = run(&format!("{words} {given}"));
        assert!(ended_well, "{words}: {said}");
        assert!(
            notes.iter().all(|note| said.contains(note)),
            "{words}: {said}"
        );
        if let Some(note) = note {
            let result = std::fs::read_to_string(&json).expect("it has been written");
            let result: Value = serde_json::from_str(&result).expect("JSON");
            let note = result
                .pointer(note)
                .and_then(Value::as_str)
                .expect("a note");
            assert!(notes.iter().all(|known| note.contains(known)), "{note}");
        }
        // What they are sent with anyway is no news.
        let (ended_well, said) = run(&format!("{words} {ADDRESSED}"));
        assert!(
            ended_well && !said.contains("is not in the packets"),
            "{said}"
        );
        let (ended_well, said) = run(&format!("{words} {given} {given}"));
        assert!(!ended_well && said.contains("one for each port"), "{said}");
    }
}

/// Whoever reads the packets elsewhere needs to know which identifications are marks.
#[test]
fn a_result_says_where_identifications_begin() {
    let directory = Directory::new();
    let at = |name: &str| directory.path().join(name).display().to_string();
    let [all, tx, json] = ["all.pcap", "tx.pcap", "r.json"].map(at);
    for (traffic, base) in [
        ("-m 1kpps -t flow=fs", Value::from(0xfc00)),
        (
            "-m 1kpps -t flow=fs --flow-id-base 0xff00",
            Value::from(0xff00),
        ),
        ("-m 1 -t flow=fsl --flow-id-base 0xff00", Value::Null),
        ("-m 1kpps --flow-id-base 0xff00", Value::Null),
    ] {
        let traffic = format!("{traffic} {ADDRESSED}");
        let (ended_well, said) = run(&format!("send --dry-run -o {all} --limit 300 {traffic}"));
        assert!(ended_well, "{said}");
        let (ended_well, said) = run(&format!(
            "loadtest --tx pcap:{tx} --rx pcap:{all} --duration 100ms --json {json} {traffic}"
        ));
        assert!(ended_well, "{said}");
        let result = std::fs::read_to_string(&json).expect("it has been written");
        let result: Value = serde_json::from_str(&result).expect("JSON");
        let row = &result["parshall"]["streams"][0];
        assert_eq!(row.get("flow_id_base"), Some(&base), "{traffic}: {row}");
    }
}

#[test]
fn a_chain_without_time_is_refused() {
    let directory = Directory::new();
    let file = directory.path().join("chain.json");
    let output = directory.path().join("o.pcap");
    let burst = r#""next": "a", "mode": {"type": "multi_burst", "pkts_per_burst": 1, "count": 1, "ibg": 0, "rate": {"type": "pps", "value": 1000}}"#;
    let other =
        r#""isg": 5, "mode": {"type": "continuous", "rate": {"type": "pps", "value": 200000}}"#;
    profile(&file, &[burst, other]);
    let (file, output) = (file.display(), output.display());
    for words in [
        format!("send --dry-run -o {output} --duration 1ms"),
        format!("send pcap:{output}"),
    ] {
        let (ended_well, said) = run(&format!("{words} -f {file} {ADDRESSED}"));
        assert!(
            !ended_well && said.contains("the chain of stream `a` takes no time"),
            "{said}"
        );
    }
}

/// However far behind a generator is, a signal ends it.
#[test]
fn a_signal_ends_what_cannot_keep_up() {
    let directory = Directory::new();
    let file = directory.path().join("fast.json");
    let output = directory.path().join("o.pcap");
    // A thousand million packets a second.
    let burst = r#""isg": 0.001, "next": "a", "mode": {"type": "single_burst", "total_pkts": 1, "rate": {"type": "pps", "value": 1000}}"#;
    profile(&file, &[burst]);
    for signal in [Signal::TERM, Signal::INT] {
        let words = format!(
            "send pcap:{} -f {} {ADDRESSED}",
            output.display(),
            file.display()
        );
        let send = Spawn::new(PARSHALL).args(words.split_whitespace());
        let mut send = send.start().expect("the binary starts");
        let grows = || std::fs::metadata(&output).is_ok_and(|file| file.len() > 1 << 20);
        assert!(until(patience(), grows), "it sends nothing: {}", send.log());
        send.signal(signal);
        let status = send.wait(patience()).expect("it ends");
        assert!(status.success(), "{status}: {}", send.log());
        std::fs::remove_file(&output).expect("it is there");
    }
}

/// A load test that a signal ends early has a result: that of the time until then, as text, JSON and
/// page say.
#[test]
fn a_signal_ends_a_load_test_with_its_result() {
    let directory = Directory::new();
    let at = |name: &str| directory.path().join(name).display().to_string();
    let [tx, rx, json, page] = ["tx.pcap", "rx.pcap", "r.json", "r.html"].map(at);
    let bench = format!("-f bench -m 20kpps {ADDRESSED}");
    assert!(run(&format!("send --dry-run -o {rx} --limit 100 {bench}")).0);
    for (signal, warmup) in [(Signal::INT, "0s"), (Signal::TERM, "1h")] {
        let words = format!(
            "loadtest --tx pcap:{tx} --rx pcap:{rx} {bench} --warmup {warmup} --warmup-rate 20kpps \
             --duration 1h --json {json} -o {page} --loss 0.05"
        );
        let test = Spawn::new(PARSHALL).args(words.split_whitespace());
        let mut test = test.start().expect("the binary starts");
        let grows = || std::fs::metadata(&tx).is_ok_and(|file| file.len() > 1 << 16);
        assert!(until(patience(), grows), "it sends nothing: {}", test.log());
        test.signal(signal);
        let status = test.wait(patience()).expect("it ends");
        let said = test.log();
        let counts = warmup == "0s";
        assert_eq!(status.code(), Some(i32::from(!counts)), "{said}");
        assert_eq!(said.contains("before anything was sent"), !counts, "{said}");
        assert!(said.contains("in total, interrupted after "), "{said}");
        let result = std::fs::read_to_string(&json).expect("it has been written");
        let result: Value = serde_json::from_str(&result).expect("JSON");
        let block = &result["parshall"];
        assert_eq!(block["interrupted"], true, "{block}");
        let sent = block["whole"]["ways"][0]["sent"]["packets"].as_u64();
        assert_eq!(sent > Some(0), counts, "{block}");
        let page = std::fs::read_to_string(&page).expect("it has been written");
        assert!(page.contains("interrupted") && page.contains("less than 5 % loss"));
        assert!(!page.contains("less than 0.1 % loss"));
        std::fs::remove_file(&tx).expect("it is there");
    }
}
