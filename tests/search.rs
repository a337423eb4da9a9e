//! What the load tester says of a device whose limit is known, and of the queues that packets come by.

use std::time::Duration;

use serde_json::Value;

use crate::harness::{Directory, Netns, PARSHALL, Spawn, alone, patience, skipped, until};

/// Packets a second that the device forwards, and those that it lets through at once.
const LIMIT: u32 = 20_000;
const BURST: u32 = 500;

/// A generator's namespace with ends g0 and g1, and a device's: the kernel, which forwards from one
/// to the other as many packets a second as its rules let it.
fn bounded() -> [Netns; 2] {
    let tester = Netns::create("tester").expect("root may make namespaces");
    let device = Netns::create("device").expect("root may make namespaces");
    let name = device.name();
    tester
        .ip_batch(&format!(
            "link add dev g0 type veth peer name d0 netns {name}\n\
             link add dev g1 type veth peer name d1 netns {name}\n\
             link set dev g0 up\nlink set dev g1 up\n"
        ))
        .expect("root may make links");
    device
        .ip_batch(
            "link set dev d0 address 02:00:00:00:00:02\nlink set dev d0 up\nlink set dev d1 up\n\
             address add 16.0.255.254/16 dev d0\naddress add 10.9.0.1/24 dev d1\n\
             neighbor add 10.9.0.2 lladdr 02:00:00:00:00:01 dev d1\n\
             route add 48.0.0.0/16 via 10.9.0.2\n",
        )
        .expect("root may set them up");
    device.set_forwarding(true).expect("root may");
    let rule = format!(
        "nft 'add table ip t; add chain ip t c {{ type filter hook forward priority 0; }}; \
         add rule ip t c limit rate over {LIMIT}/second burst {BURST} packets drop'"
    );
    device.sh(&rule).expect("the kernel has limits");
    for (netns, end) in [
        (&tester, "g0"),
        (&tester, "g1"),
        (&device, "d0"),
        (&device, "d1"),
    ] {
        sandbox::veth::host_end(netns, end).expect("ethtool");
        sandbox::veth::device_end(netns, end).expect("ethtool");
    }
    [tester, device]
}

/// What `parshall search` with these words finds of it, its exit code, and what it says.
fn searched(tester: &Netns, words: &str) -> (Value, Option<i32>, String) {
    let directory = Directory::new();
    let file = directory.path().join("result.json");
    let words = format!(
        "search --tx af_xdp:g0 --rx af_xdp:g1 --dst-mac 02:00:00:00:00:02 -m 60kpps {words} --json {}",
        file.display()
    );
    let output = Spawn::new(PARSHALL)
        .args(words.split_whitespace())
        .inside(tester)
        .output(4 * patience())
        .expect("it ends");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let text = std::fs::read_to_string(&file).expect(&said);
    let found = serde_json::from_str(&text).expect("JSON");
    (found, output.status.code(), said)
}

/// What a search finds that has a result.
fn search(tester: &Netns, words: &str) -> Value {
    let (found, code, said) = searched(tester, words);
    assert_eq!(code, Some(0), "{said}");
    found
}

/// The rate, within what the limit lets through in a trial of a second, and as much again below.
fn assert_near_the_limit(rate: &Value, result: &Value) {
    let rate = rate.as_f64().expect("a rate");
    let (limit, burst) = (f64::from(LIMIT), f64::from(BURST));
    let near = limit - 4.0 * burst..limit + 4.0 * burst;
    assert!(near.contains(&rate), "{result}");
}

#[test]
fn searches_find_the_limit_of_a_device() {
    if skipped(
        "searches_find_the_limit_of_a_device",
        &["ip", "ethtool", "nft"],
    ) {
        return;
    }
    let _alone = alone();
    let [tester, _device] = bounded();
    let found = search(&tester, "--method max-rate --budget 8s");
    let result = &found["result"];
    assert_near_the_limit(&result["max_pps"], result);
    assert_eq!(
        (&found["method"], &result["limited_by_generator"]),
        (&"max-rate".into(), &false.into())
    );
    let found = search(
        &tester,
        "--method mlrsearch --loss 0.005 --sum 3s --width 0.02 --budget 40s",
    );
    let result = &found["result"];
    assert_near_the_limit(&result["goals"][0]["lower_pps"], result);
    assert_near_the_limit(&result["goals"][0]["upper_pps"], result);
}

/// Neither of a device that forwards nothing nor of a port that goes is anything made up.
#[test]
fn tests_without_a_result_say_so() {
    if skipped("tests_without_a_result_say_so", &["ip", "ethtool", "nft"]) {
        return;
    }
    let _alone = alone();
    let [tester, device] = bounded();
    let directory = Directory::new();
    let file = directory.path().join("result.json");
    let words = format!(
        "loadtest --tx af_xdp:g0 --rx af_xdp:g1 --dst-mac 02:00:00:00:00:02 -m 1kpps --duration 600s \
         --progress plain --json {}",
        file.display()
    );
    let running = Spawn::new(PARSHALL).args(words.split_whitespace());
    let mut running = running.inside(&tester).start().expect("it starts");
    let sends = until(patience(), || running.log().contains("pps, loss 0 %"));
    assert!(sends, "{}", running.log());
    tester.ip("link set g0 down").expect("it is ours");
    let status = running.wait(patience()).expect("it ends");
    let log = running.log();
    assert_eq!(status.code(), Some(1), "{log}");
    assert!(
        log.contains("g0") && log.contains("the test ended there"),
        "{log}"
    );
    let text = std::fs::read_to_string(&file).expect("what was measured until then");
    let result: Value = serde_json::from_str(&text).expect("JSON");
    assert!(result["parshall"]["ended_by"].is_string(), "{result}");

    tester.ip("link set g0 up").expect("it is ours");
    device.set_forwarding(false).expect("root may");
    let (found, code, said) = searched(&tester, "--method max-rate --budget 4s");
    assert_eq!(code, Some(1), "{said}");
    assert_eq!(found["result"]["valid"], false, "{found}");
    assert_ne!(found["result"]["why"], "", "{found}");
}

/// One flow takes one queue, whatever the others are for.
#[test]
fn the_queues_that_packets_come_by_are_counted() {
    if skipped(
        "the_queues_that_packets_come_by_are_counted",
        &["ip", "ethtool", "ping"],
    ) {
        return;
    }
    let [near, far] = ["near", "far"].map(|name| Netns::create(name).expect("root may"));
    near.ip_batch(&format!(
        "link add dev a numtxqueues 4 numrxqueues 4 type veth \
         peer name b netns {} numtxqueues 4 numrxqueues 4\n\
         address add 10.9.0.1/24 dev a\nlink set dev a up\n",
        far.name()
    ))
    .expect("root may make links");
    far.ip_batch("address add 10.9.0.2/24 dev b\nlink set dev b up\n")
        .expect("root may");
    // A veth counts by queue what it takes in as cards do, by NAPI: that is what GRO is for.
    far.exec(&["ethtool", "-K", "b", "gro", "on"])
        .expect("it can");
    near.exec(&["ethtool", "-K", "a", "tso", "off"])
        .expect("it can");
    near.exec(&["ping", "-q", "-c", "1", "-W", "5", "10.9.0.2"])
        .expect("they are neighbors");
    let directory = Directory::new();
    let file = directory.path().join("queues.json");
    let words = ["rss", "--interface", "b", "--seconds", "3", "--json"];
    let mut counting = Spawn::new(PARSHALL)
        .args(words)
        .args([file.display().to_string()])
        .inside(&far)
        .start()
        .expect("it starts");
    assert!(
        until(patience(), || counting.log().contains("1 s")),
        "{}",
        counting.log()
    );
    near.exec(&["ping", "-q", "-f", "-c", "500", "10.9.0.2"])
        .expect("they are neighbors");
    let ended = counting
        .wait(patience() + Duration::from_secs(3))
        .expect("it ends");
    let said = counting.log();
    assert!(ended.success(), "{said}");
    let text = std::fs::read_to_string(&file).expect("it has written the file");
    let document: Value = serde_json::from_str(&text).expect("JSON");
    let queues = document["queues"].as_array().expect("queues");
    let came: Vec<u64> = queues
        .iter()
        .filter_map(|queue| queue["arrived"].as_u64())
        .collect();
    assert_eq!((came.len(), queues.len()), (4, 4), "{document}");
    // Neighbor discovery may come by any of them.
    let most = came.iter().max().expect("four");
    assert!(
        (500..520).contains(most) && came.iter().sum::<u64>() < 540,
        "{document}\n{said}"
    );
}
