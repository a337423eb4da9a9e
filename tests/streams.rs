//! What the load tester sends by real interfaces: divided among cores, and by what its result says.

use serde_json::Value;

use crate::harness::{Directory, Netns, PARSHALL, Spawn, alone, patience, skipped};

/// A wire of so many queues in a namespace of its own, with ends g0 and g1.
fn wire(queues: u32) -> Netns {
    let netns = Netns::create("streams").expect("root may make namespaces");
    netns
        .ip_batch(&format!(
            "link add g0 numtxqueues {queues} numrxqueues {queues} type veth \
             peer name g1 numtxqueues {queues} numrxqueues {queues}\n\
             link set g0 up\nlink set g1 up\n",
        ))
        .expect("root may make links");
    for end in ["g0", "g1"] {
        sandbox::veth::host_end(&netns, end).expect("ethtool");
        sandbox::veth::device_end(&netns, end).expect("ethtool");
    }
    netns
}

/// Runs the binary with these words; what it writes as JSON.
fn result(netns: &Netns, words: &str) -> Value {
    let directory = Directory::new();
    let file = directory.path().join("result.json").display().to_string();
    let words = words.split_whitespace();
    let all = ["--dst-mac", "02:00:00:00:00:02", "--json", &file];
    let argv: Vec<&str> = [PARSHALL].into_iter().chain(words).chain(all).collect();
    netns.exec(&argv).expect("the load tester ends well");
    let text = std::fs::read_to_string(&file).expect("it has written the file");
    serde_json::from_str(&text).expect("JSON")
}

#[test]
fn two_cores_send_by_two_queues_what_comes_back_whole() {
    if skipped(
        "two_cores_send_by_two_queues_what_comes_back_whole",
        &["ip", "ethtool"],
    ) {
        return;
    }
    let _alone = alone();
    let netns = wire(2);
    let result = result(
        &netns,
        "loadtest --tx af_xdp:g0 --rx af_xdp:g1 -f imix -m 4800pps --duration 1s --cores 2",
    );
    let argv = "send af_xdp:g0 --dst-mac 02:00:00:00:00:02 --cores 3 -d 1";
    let argv: Vec<&str> = [PARSHALL].into_iter().chain(argv.split(' ')).collect();
    let refused = netns.exec(&argv).expect_err("there are two queues");
    let why = "3 cores are to send, but g0 has queues for 2";
    assert!(refused.to_string().contains(why), "{refused}");
    let block = &result["parshall"];
    assert_eq!(
        (&block["sender"], &block["fallback"]),
        (&"af_xdp".into(), &Value::Null)
    );
    let streams = block["streams"].as_array().expect("streams");
    let mut all = 0;
    for (stream, share) in streams.iter().zip([28.0, 16.0, 4.0]) {
        assert_eq!(stream["sent"], stream["received"], "{stream}");
        let sent = stream["sent"]["packets"].as_u64().expect("a number");
        assert!(sent > 0, "{stream}");
        all += sent;
        let total: u64 = streams
            .iter()
            .filter_map(|stream| stream["sent"]["packets"].as_u64())
            .sum();
        // However busy the machine is, what is given up is given up of all.
        let wanted = total as f64 * share / 48.0;
        assert!(
            (sent as f64 - wanted).abs() < 0.1 * total as f64,
            "{streams:?}"
        );
    }
    let pacing = &block["pacing"][0];
    assert_eq!(pacing["late"]["measured"], all);
    // One fewer than packets in each run, of which there is one or (with a warm-up) two.
    let gaps = pacing["gaps"]["measured"].as_u64().expect("a number");
    assert!((1..=2).contains(&all.saturating_sub(gaps)), "{pacing}");
    assert_eq!(pacing["timestamps"]["rx"], "software");
}

#[test]
fn what_live_frames_cannot_do_af_xdp_does() {
    if skipped("what_live_frames_cannot_do_af_xdp_does", &["ip", "ethtool"]) {
        return;
    }
    let _alone = alone();
    let netns = wire(2);
    let profile = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../loadgen/tests/profiles/burst_3st_loop_x_times.json"
    );
    let result = result(&netns, &format!("send live:g0 -f {profile}"));
    let fallback = &result["fallback"];
    assert_eq!(result["sender"], "af_xdp");
    assert_eq!(fallback["asked"][0], "live:g0");
    assert_eq!(fallback["used"][0], "af_xdp:g0");
    let why = fallback["why"].as_str().expect("text");
    assert!(why.contains("bursts"), "{why}");
    // Two rounds of 1, 2 and 3 packets.
    assert_eq!(
        (&result["packets"], &result["short"]),
        (&12.into(), &0.into())
    );
}

/// A process without CAP_PERFMON may load simple programs, but is refused the generator's: to the
/// kernel its arithmetic would be safe only for those who may see addresses. As in a container that
/// was given CAP_BPF, CAP_NET_ADMIN and CAP_NET_RAW.
#[test]
fn a_program_that_the_kernel_refuses_is_replaced_and_named() {
    const NAME: &str = "a_program_that_the_kernel_refuses_is_replaced_and_named";
    if skipped(NAME, &["ip", "ethtool", "setpriv"]) {
        return;
    }
    let _alone = alone();
    let netns = wire(1);
    let directory = Directory::new();
    let file = directory.path().join("result.json").display().to_string();
    for words in [
        "send live:g0 -m 500pps -d 1",
        "loadtest --tx live:g0 --rx sink:g1 -m 500pps --duration 1s",
    ] {
        let load = Spawn::new("setpriv")
            .args(["--bounding-set=-perfmon,-sys_admin", "--inh-caps=-all"])
            .args([PARSHALL])
            .args(words.split(' '))
            .args(["--dst-mac", "02:00:00:00:00:02", "--json", &file])
            .inside(&netns);
        let output = load.output(patience()).expect("it ends");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{words}: {said}");
        let text = std::fs::read_to_string(&file).expect("it has written the file");
        let result: Value = serde_json::from_str(&text).expect("JSON");
        let block = result.get("parshall").unwrap_or(&result);
        assert_eq!(block["sender"], "af_xdp", "{words}: {said}");
        let fallback = &block["fallback"];
        let names = |key: &str| fallback[key].as_array().expect("ports").clone();
        assert!(names("asked").contains(&"live:g0".into()), "{fallback}");
        assert!(names("used").contains(&"af_xdp:g0".into()), "{fallback}");
        let why = fallback["why"].as_str().expect("text");
        let refused = "the kernel refused the program parshall_live: ";
        assert!(why.contains(refused), "{why}");
        let line = format!("af_xdp:g0 in place of live:g0, which is slower: {refused}");
        assert!(said.contains(&line), "{said}");
        let sent = match block["packets"].as_u64() {
            Some(sent) => sent,
            None => {
                let stream = &block["streams"][0];
                assert_eq!(stream["lost"], 0, "{stream}");
                stream["sent"]["packets"].as_u64().expect("a number")
            }
        };
        assert!(sent > 0, "{block}");
    }
}

/// A burst of live frames comes to its end by itself, with all of its packets.
#[test]
fn live_frames_carry_a_burst() {
    if skipped("live_frames_carry_a_burst", &["ip", "ethtool"]) {
        return;
    }
    let _alone = alone();
    let netns = wire(2);
    let directory = Directory::new();
    let file = directory.path().join("burst.json");
    // An Ethernet frame of an experimental type, which nobody answers.
    let profile = r#"[{"name": "burst",
        "mode": {"type": "single_burst", "total_pkts": 2500, "rate": {"type": "pps", "value": 5000}},
        "packet": {"binary": "AgAAAAACAgAAAAABiLU="}}]"#;
    std::fs::write(&file, profile).expect("there is room");
    let result = result(&netns, &format!("send live:g0 -f {}", file.display()));
    assert_eq!(result["sender"], "live", "{result}");
    assert_eq!(result["fallback"], Value::Null);
    let sent = result["packets"].as_u64().expect("a number");
    assert_eq!(result["due"], 2500);
    assert_eq!(result["short"], 2500 - sent);
    assert!(sent > 0, "{result}");
}

/// Live frames carry sequence numbers and times; who receives them in software measures latency,
/// also after a warm-up, which is a run of its own.
#[test]
fn live_frames_measure_latency() {
    if skipped("live_frames_measure_latency", &["ip", "ethtool"]) {
        return;
    }
    let _alone = alone();
    // A veth's queue is that of the processor that sends, and a flow is measured on one.
    let netns = wire(1);
    let profile = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../loadgen/tests/profiles/flow_stats_latency.json"
    );
    let words =
        format!("loadtest --tx live:g0 --rx af_xdp:g1 -f {profile} -m 1 --warmup 1s --duration 1s");
    let result = result(&netns, &words);
    let block = &result["parshall"];
    assert_eq!(block["sender"], "live", "{block}");
    assert_eq!(block["pacing"][0]["timestamps"]["tx"], "kernel");
    assert!(
        block["pacing"][0]["gaps"]["avg"]
            .as_f64()
            .expect("a number")
            > 0.0,
        "{block}"
    );
    let stream = &block["streams"][0];
    let flow = &stream["flow"];
    assert_eq!(stream["sent"], stream["received"], "{stream}");
    assert_eq!(flow["measured"], stream["sent"]["packets"], "{stream}");
    for fault in ["missing", "out_of_order", "duplicates", "old"] {
        assert_eq!(flow[fault], 0, "{stream}");
    }
    let times = |key: &str| flow[key].as_u64().expect("a number");
    // Both ends read one clock.
    assert!(times("min") > 0 && times("p50") < 1_000_000_000, "{stream}");
}

/// Beside a stream that follows the rate, one that measures latency keeps its own.
#[test]
fn a_latency_stream_keeps_its_rate_beside_one_that_is_scaled() {
    if skipped(
        "a_latency_stream_keeps_its_rate_beside_one_that_is_scaled",
        &["ip", "ethtool"],
    ) {
        return;
    }
    let _alone = alone();
    let netns = wire(1);
    let directory = Directory::new();
    let file = directory.path().join("mixed.json");
    let profile = r#"[{"name": "plain",
        "mode": {"type": "continuous", "rate": {"type": "pps", "value": 50}},
        "packet": {"binary": "AgAAAAAiAgAAAAARCABFAAAuAAEAAEARjojAAAIBxjNkAQu4AAkAGgAAcHBwcHBwcHBwcHBwcHBwcHBw"}},
       {"name": "latency", "flow_stats": {"enabled": true, "rule_type": "latency", "stream_id": 7},
        "mode": {"type": "continuous", "rate": {"type": "pps", "value": 100}},
        "packet": {"binary": "AgAAAAAiAgAAAAARCABFAABCAAEAAEARjnTAAAIBxjNkAQu5AAkALgAAcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHA="}}]"#;
    std::fs::write(&file, profile).expect("there is room");
    let words = "loadtest --tx af_xdp:g0 --rx af_xdp:g1 -m 2100pps --duration 1s -f";
    let result = result(&netns, &format!("{words} {}", file.display()));
    let block = &result["parshall"];
    let note = block["rate_note"].as_str().expect("text");
    assert!(note.contains("the others make up the rest"), "{note}");
    let sent = [0, 1].map(|stream| {
        let stream = &block["streams"][stream];
        assert_eq!(stream["sent"], stream["received"], "{stream}");
        stream["sent"]["packets"].as_f64().expect("a number")
    });
    // However busy the machine is, what is given up is given up of both.
    let [plain, latency] = sent;
    assert!(latency > 0.0, "{block}");
    assert!((plain - 20.0 * latency).abs() < 0.1 * plain, "{sent:?}");
    let flow = &block["streams"][1]["flow"];
    assert_eq!(flow["measured"], latency as u64);
    // The second has its latencies, too: those of the packets that were back by then.
    let second = &block["samples"][0]["ways"][0]["latency"];
    let measured = second["measured"].as_u64().expect("latencies");
    assert!(0 < measured && measured <= latency as u64, "{second}");
    assert!(
        second["max"].as_u64() <= flow["max"].as_u64().map(|max| max + max / 100),
        "{second}"
    );
}
