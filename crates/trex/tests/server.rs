//! T-Rex's commands over real sockets: a client's whole life, what is refused, and what is counted.

mod client;
#[path = "client/rpc.rs"]
mod rpc;
#[path = "client/streams.rs"]
mod streams;

use serde_json::{Value, json};
use session::{Link, LinkState};
use testbed::{patience, until};

use client::{Client, LIMIT};
use rpc::{Rpc, pack, server, server_of, server_with, unpack};
use streams::{burst, continuous, marked, stream};

const START: u64 = 0;
const FINISHED: u64 = 14;

fn add(rpc: &mut Rpc, port: usize, number: u32, stream: &Value) {
    let added = rpc.call(
        "add_stream",
        json!({"port_id": port, "profile_id": "_", "stream_id": number, "stream": stream}),
    );
    assert_eq!(added, json!({}));
}

fn mul(kind: &str, op: &str, value: f64) -> Value {
    json!({"type": kind, "op": op, "value": value})
}

fn start(rpc: &mut Rpc, port: usize, mul: Value) -> Value {
    rpc.call(
        "start_traffic",
        json!({"port_id": port, "profile_id": "_", "mul": mul, "duration": -1.0,
            "force": false, "core_mask": u64::MAX, "start_at_ts": 0}),
    )
}

/// Awaits that port 0 has sent more.
fn goes_on(rpc: &mut Rpc) {
    let before = rpc.port_counter(0, "opackets");
    let more = until(patience(LIMIT), || rpc.port_counter(0, "opackets") > before);
    assert!(more, "{before}");
}

#[test]
fn a_port_whose_device_is_lost_stops() {
    let link = Link::new("eth2", 7);
    let (server, _pool) = server_with(1 << 12, Some(link.clone()));
    let mut rpc = Rpc::with_ports(&server);
    let is_up = |rpc: &mut Rpc| {
        let status = rpc.call("get_port_status", json!({"port_id": 0}));
        status["attr"]["link"]["up"].clone()
    };
    let session = json!({"session_id": 77});
    rpc.call("get_async_events", session.clone());
    add(&mut rpc, 0, 1, &continuous());
    start(&mut rpc, 0, mul("raw", "abs", 1.0));
    goes_on(&mut rpc);
    assert_eq!(is_up(&mut rpc), true);
    link.set(LinkState::Down);
    assert!(until(patience(LIMIT), || rpc.state(0) == "STREAMS"));
    assert_eq!(is_up(&mut rpc), false);
    let events = rpc.call("get_async_events", session);
    let kinds: Vec<u64> = events["data"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|event| event["type"].as_u64().expect("a number"))
        .collect();
    // Started; stopped, with an error; attributes.
    assert_eq!(kinds, [0, 10, 1, 11, 7, 17, 8]);
    assert_eq!(events["data"][6]["data"]["attr"]["link"]["up"], false);
    let begin = |force: bool| json!({"port_id": 0, "mul": mul("raw", "abs", 1.0), "duration": -1.0, "force": force});
    let why = rpc.refused("start_traffic", begin(false));
    assert!(why.contains("eth2 went down; set it up first"), "{why}");
    rpc.call("start_traffic", begin(true));
    rpc.call("stop_traffic", json!({"port_id": 0}));
    link.set(LinkState::Gone);
    let why = rpc.refused("start_traffic", begin(true));
    assert!(why.contains("eth2 is gone"), "{why}");
}

/// Requests written from the protocol, as they are sent, in the order of a client that connects,
/// resets, sends and disconnects.
const SCRIPT: &str = include_str!("script.txt");

#[test]
fn a_recorded_client_is_answered() {
    let (server, pool) = server();
    let mut client = Client::greeted(server.addresses().requests, "REQ");
    let mut known = [
        ("{API}", String::new()),
        ("{0}", String::new()),
        ("{1}", String::new()),
    ];
    let lines: Vec<&str> = SCRIPT
        .lines()
        .filter(|line| !line.starts_with('#'))
        .collect();
    assert!(
        lines.len() > 50 && lines.len().is_multiple_of(2),
        "{}",
        lines.len()
    );
    for (number, pair) in lines.chunks(2).enumerate() {
        let mut request = pair[0].to_owned();
        for (name, value) in &known {
            request = request.replace(name, value);
        }
        // Clients pack all of them; plain ones are as good.
        let answer = match number % 2 {
            0 => unpack(&client.ask(&pack(request.as_bytes()))),
            _ => client.ask(request.as_bytes()),
        };
        let answer: Value = serde_json::from_slice(&answer).expect("JSON");
        for pointer in pair[1].split(' ') {
            let found = answer.pointer(pointer);
            let found = found.unwrap_or_else(|| panic!("{request}: no {pointer} in {answer}"));
            let text = found.as_str().unwrap_or_default().to_owned();
            match request.contains("\"acquire\"") {
                _ if pointer.ends_with("api_h") => known[0].1 = text,
                true if known[1].1.is_empty() => known[1].1 = text,
                true => known[2].1 = text,
                false => {}
            }
        }
        assert!(
            !answer.to_string().contains("\"error\""),
            "{request}: {answer}"
        );
    }
    drop(server);
    assert_eq!(pool.available(), pool.count(), "all packets are back");
}

#[test]
fn traffic_starts_changes_and_ends() {
    let (server, _pool) = server();
    let mut rpc = Rpc::with_ports(&server);
    assert_eq!(rpc.state(0), "IDLE");
    add(&mut rpc, 0, 1, &continuous());
    assert_eq!(rpc.state(0), "STREAMS");
    let started = start(&mut rpc, 0, mul("raw", "abs", 2.0));
    assert_eq!(started["multiplier"], 2.0);
    assert_eq!(rpc.state(0), "TX");
    goes_on(&mut rpc);
    for (change, factor) in [
        (mul("pps", "abs", 4000.0), 4.0),
        (mul("percentage", "add", 50.0), 6.0),
        (mul("pps", "sub", 1000.0), 5.0),
        (mul("raw", "add", 2.0), 7.0),
        (mul("bps", "abs", 1000.0 * 64.0 * 8.0), 1.0),
        (mul("bpsl1", "abs", 3000.0 * 84.0 * 8.0), 3.0),
        (mul("percentage", "abs", 0.672), 10.0),
    ] {
        let changed = rpc.call("update_traffic", json!({"port_id": 0, "mul": change}));
        let multiplier = changed["multiplier"].as_f64().expect("a number");
        assert!((multiplier - factor).abs() < 1e-6, "{change}: {multiplier}");
    }
    rpc.call("pause_traffic", json!({"port_id": 0}));
    assert_eq!(rpc.state(0), "PAUSE");
    let paused = rpc.port_counter(0, "opackets");
    assert_eq!(rpc.port_counter(0, "opackets"), paused);
    rpc.call("resume_traffic", json!({"port_id": 0}));
    goes_on(&mut rpc);
    rpc.call("stop_traffic", json!({"port_id": 0}));
    assert_eq!(rpc.state(0), "STREAMS");
    let sent = rpc.port_counter(0, "opackets");
    let all = until(patience(LIMIT), || rpc.port_counter(1, "ipackets") == sent);
    assert!(all, "{sent}");
    assert_eq!(rpc.port_counter(0, "obytes"), 64 * sent);
    let kinds: Vec<u64> = rpc.events().into_iter().map(|(_, kind)| kind).collect();
    assert_eq!(kinds, [5, 5, 0, 10, 2, 12, 3, 13, 1, 11]);
    rpc.call("remove_all_streams", json!({"port_id": 0}));
    assert_eq!(rpc.state(0), "IDLE");
}

#[test]
fn a_burst_ends_by_itself_and_says_so() {
    let (server, _pool) = server();
    let mut rpc = Rpc::with_ports(&server);
    let mut other = Rpc::connect(&server, 2);
    let mut woken = Client::greeted(server.addresses().events, "SUB");
    woken.write(b"\0\x01\x01\x04\x07\x04PING\0\0");
    assert_eq!(woken.frame().1, b"\x04PONG");
    add(&mut rpc, 0, 1, &burst(20));
    start(&mut rpc, 0, mul("raw", "abs", 1.0));
    assert_eq!(woken.frame(), (0, b"{}".to_vec()));
    let kinds = rpc.await_event(FINISHED);
    assert!(kinds.contains(&4) && kinds.contains(&START), "{kinds:?}");
    assert_eq!(
        (rpc.state(0), rpc.port_counter(0, "opackets")),
        ("STREAMS".into(), 20)
    );
    // A stop has nothing to say then.
    rpc.call("stop_traffic", json!({"port_id": 0}));
    assert!(rpc.events().is_empty());
    let seen = other.await_event(FINISHED);
    assert_eq!(seen, [0, 10, 4, 14], "others hear the same");
    // Time ends it too.
    rpc.call("remove_stream", json!({"port_id": 0, "stream_id": 1}));
    add(&mut rpc, 0, 2, &continuous());
    let mul = mul("raw", "abs", 1.0);
    rpc.call(
        "start_traffic",
        json!({"port_id": 0, "mul": mul, "duration": 0.05}),
    );
    rpc.await_event(FINISHED);
    assert_eq!(rpc.state(0), "STREAMS");
}

#[test]
fn groups_and_latency_are_counted() {
    let (server, _pool) = server();
    let mut rpc = Rpc::with_ports(&server);
    add(&mut rpc, 0, 1, &marked(7, "stats"));
    add(&mut rpc, 0, 2, &marked(9, "latency"));
    let asks = json!({"pgids": [7, 9, 11]});
    let none = rpc.call("get_pgid_stats", json!({"pgids": []}));
    assert_eq!(
        (&none["flow_stats"], &none["latency"]),
        (&Value::Null, &Value::Null)
    );
    start(&mut rpc, 0, mul("pps", "abs", 3000.0));
    goes_on(&mut rpc);
    let groups = rpc.call("get_active_pgids", json!({}));
    assert_eq!(groups, json!({"ids": {"flow_stats": [7], "latency": [9]}}));
    rpc.call("stop_traffic", json!({"port_id": 0}));
    let mut stats = Value::Null;
    let all = until(patience(LIMIT), || {
        stats = rpc.call("get_pgid_stats", asks.clone());
        ["7", "9"].iter().all(|group| {
            let row = &stats["flow_stats"][group];
            row["tp"]["0"] != 0 && row["tp"]["0"] == row["rp"]["1"]
        })
    });
    assert!(all, "{stats}");
    let row = &stats["flow_stats"]["7"];
    assert_eq!(
        row["tb"]["0"].as_u64(),
        row["tp"]["0"].as_u64().map(|packets| packets * 64)
    );
    assert!(stats["flow_stats"].get("11").is_none());
    let measured = &stats["latency"]["9"];
    assert_eq!(
        measured["er"],
        json!({"drp": 0, "ooo": 0, "dup": 0, "sth": 0, "stl": 0})
    );
    assert!(measured["lat"]["total_max"].as_f64() >= measured["lat"]["average"].as_f64());
    let counts = measured["lat"]["histogram"]
        .as_object()
        .expect("counts")
        .values();
    let counted: u64 = counts.filter_map(Value::as_u64).sum();
    assert_eq!(Some(counted), stats["flow_stats"]["9"]["rp"]["1"].as_u64());
    assert!(stats["latency"].get("7").is_none());
    let version = stats["ver_id"]["7"].as_u64();
    // With other streams counters begin anew, and clients see it by the version.
    rpc.call("remove_all_streams", json!({"port_id": 0}));
    let groups = rpc.call("get_active_pgids", json!({}));
    assert_eq!(groups, json!({"ids": {"flow_stats": [], "latency": []}}));
    add(&mut rpc, 0, 1, &marked(7, "stats"));
    rpc.call("validate", json!({"port_id": 0}));
    let stats = rpc.call("get_pgid_stats", asks);
    assert_eq!(stats["flow_stats"]["7"]["tp"]["0"], 0);
    assert!(stats["ver_id"]["7"].as_u64() > version);
}

/// All counters of ports and of the server, in a fixed order.
fn counters(rpc: &mut Rpc) -> Vec<u64> {
    let global = rpc.call("get_global_stats", json!({}));
    let total = ["tx_pkts", "tx_bytes", "rx_pkts", "rx_bytes", "queue_full"];
    let total = total.map(|name| global[format!("m_total_{name}")].as_u64());
    let mut counters: Vec<u64> = total.map(|count| count.expect("a number")).into();
    for port in 0..2 {
        let counts = rpc.call("get_port_stats", json!({"port_id": port}));
        let names = ["opackets", "obytes", "ipackets", "ibytes"];
        counters.extend(names.map(|name| counts[name].as_u64().expect("a number")));
    }
    counters
}

/// Whatever a client does between, no counter of a port goes back, and in the end they say what was
/// sent: as much as all packet groups together.
#[test]
fn counters_only_rise_and_add_up() {
    // So few packets fit that the port is full now and then.
    let (server, _pool) = server_of(8);
    let mut rpc = Rpc::with_ports(&server);
    let mut before = counters(&mut rpc);
    let mut look = |rpc: &mut Rpc| {
        let now = counters(rpc);
        assert!(
            now.iter().zip(&before).all(|(now, before)| now >= before),
            "{before:?} {now:?}"
        );
        before.clone_from(&now);
        now
    };
    let (mut grouped, fast) = (0, mul("pps", "abs", 1_000_000.0));
    for round in 0..3 {
        add(&mut rpc, 0, 1, &marked(7, "stats"));
        for _ in 0..2 {
            start(&mut rpc, 0, mul("raw", "abs", 1.0));
            goes_on(&mut rpc);
            look(&mut rpc);
            let full = look(&mut rpc)[4];
            rpc.call("update_traffic", json!({"port_id": 0, "mul": fast}));
            assert!(
                until(patience(LIMIT), || look(&mut rpc)[4] > full),
                "round {round}"
            );
            rpc.call("pause_traffic", json!({"port_id": 0}));
            let paused = look(&mut rpc);
            assert_eq!(look(&mut rpc)[..2], paused[..2], "nothing is sent");
            rpc.call("resume_traffic", json!({"port_id": 0}));
            goes_on(&mut rpc);
            look(&mut rpc);
            rpc.call("stop_traffic", json!({"port_id": 0}));
            look(&mut rpc);
        }
        let mut row = Value::Null;
        let all = until(patience(LIMIT), || {
            let stats = rpc.call("get_pgid_stats", json!({"pgids": [7]}));
            row = stats["flow_stats"]["7"].clone();
            row["tp"]["0"] == row["rp"]["1"]
        });
        assert!(all, "{row}");
        grouped += row["tp"]["0"].as_u64().expect("a number");
        let [packets, bytes, came, bytes_came, ..] = look(&mut rpc)[..] else {
            panic!("four counters")
        };
        assert_eq!(
            [packets, bytes, came, bytes_came],
            [grouped, 64 * grouped].repeat(2)[..]
        );
        // With the streams, what groups count begins anew; ports count on.
        rpc.call("remove_all_streams", json!({"port_id": 0}));
        look(&mut rpc);
    }
}

#[test]
fn rates_are_measured() {
    let (server, _pool) = server();
    let mut rpc = Rpc::with_ports(&server);
    add(&mut rpc, 0, 1, &marked(7, "stats"));
    start(&mut rpc, 0, mul("pps", "abs", 2000.0));
    let mut global = Value::Null;
    let measured = until(patience(LIMIT), || {
        global = rpc.call("get_global_stats", json!({}));
        let tx = global["m_tx_pps"].as_f64().expect("a number");
        tx > 1000.0 && tx < 3000.0
    });
    assert!(measured, "{global}");
    assert_eq!(global["m_tx_expected_pps"], 2000.0);
    let group = rpc.call("get_pgid_stats", json!({"pgids": [7]}));
    assert!(
        group["flow_stats"]["7"]["tps"]["0"].as_f64() > Some(500.0),
        "{group}"
    );
}

#[test]
fn a_profile_is_validated() {
    let (server, _pool) = server();
    let mut rpc = Rpc::with_ports(&server);
    add(&mut rpc, 0, 1, &burst(500));
    let valid = rpc.call("validate", json!({"port_id": 0, "profile_id": "_"}));
    let rate = &valid["rate"];
    assert_eq!(
        (&rate["max_pps"], &rate["max_bps_l2"]),
        (&json!(1000.0), &json!(512_000.0))
    );
    assert_eq!(
        (&rate["max_bps_l1"], &rate["min_pps"]),
        (&json!(672_000.0), &json!(0.0))
    );
    assert_eq!(valid["graph"]["expected_duration"], 500_000.0);
    add(&mut rpc, 0, 2, &continuous());
    let valid = rpc.call("validate", json!({"port_id": 0}));
    assert_eq!(valid["graph"]["expected_duration"], -1.0);
    let all = rpc.call("get_all_streams", json!({"port_id": 0, "profile_id": "*"}));
    assert_eq!(all["profiles"]["_"]["2"]["mode"]["type"], "continuous");
    assert_eq!(
        rpc.call("get_stream_list", json!({"port_id": 0})),
        json!([1, 2])
    );
}

#[test]
fn a_second_owner_takes_by_force_only() {
    let (server, _pool) = server();
    let mut ann = Rpc::with_ports(&server);
    add(&mut ann, 0, 1, &continuous());
    start(&mut ann, 0, mul("raw", "abs", 1.0));
    let mut bob = Rpc::connect(&server, 2);
    let why = bob.acquire(0, "bob", false).expect_err("it is Ann's");
    assert!(why.starts_with("-32000") && why.contains("ann"), "{why}");
    // Of another session she is somebody else.
    assert!(bob.acquire(0, "ann", false).is_err());
    for method in [
        "stop_traffic",
        "remove_all_streams",
        "release",
        "validate",
        "pause_traffic",
    ] {
        for handler in [
            json!(""),
            json!("abcdefgh"),
            json!(7),
            Value::Null,
            ann.api.clone().into(),
        ] {
            let params = json!({"port_id": 0, "handler": handler});
            assert!(
                bob.refused(method, params).contains("port 0 is ann's"),
                "{method}"
            );
        }
    }
    let mine = ann.handlers[0].clone();
    ann.acquire(0, "ann", false).expect("it is hers");
    assert_eq!(ann.handlers[0], mine);
    ann.events();
    bob.acquire(0, "bob", true).expect("by force");
    assert_eq!(ann.await_event(5), [5]);
    goes_on(&mut bob);
    assert!(
        ann.refused("stop_traffic", json!({"port_id": 0}))
            .contains("port 0 is bob's")
    );
    bob.call("stop_traffic", json!({"port_id": 0}));
    bob.call("release", json!({"port_id": 0}));
    let why = bob.refused("stop_traffic", json!({"port_id": 0}));
    assert!(why.contains("port 0 is nobody's"), "{why}");
    assert_eq!(ann.call("get_owner", json!({"port_id": 0}))["owner"], "");
    ann.acquire(0, "ann", false).expect("nobody has it");
}

/// What is asked, and the code that it is refused with.
type Wrong = (&'static str, Value, i32);

fn check_refused(rpc: &mut Rpc, wrong: Vec<Wrong>) {
    for (method, params, code) in wrong {
        let asked = params.to_string();
        let why = rpc.refused(method, params);
        assert!(
            why.starts_with(&code.to_string()),
            "{method} {asked}: {why}"
        );
    }
}

#[test]
fn what_is_not_there_is_refused() {
    let (server, _pool) = server();
    let mut rpc = Rpc::with_ports(&server);
    let newer = json!({"name": "STL", "major": 5, "minor": 2});
    assert!(rpc.refused("api_sync_v2", newer).contains("5.2"));
    let wrong = vec![
        (
            "api_sync_v2",
            json!({"name": "ASTF", "major": 2, "minor": 0}),
            -32_000,
        ),
        (
            "api_sync_v2",
            json!({"name": "STL", "major": "5", "minor": 0}),
            -32_602,
        ),
        ("fly", json!({}), -32_601),
        ("push_remote", json!({"port_id": 0}), -32_601),
        ("get_port_stats", json!({}), -32_602),
        ("get_port_stats", json!({"port_id": 2}), -32_602),
        ("get_port_stats", json!({"port_id": -1}), -32_602),
        ("get_port_stats", json!({"port_id": "0"}), -32_602),
        (
            "get_port_status",
            json!({"port_id": 0, "profile_id": "x"}),
            -32_602,
        ),
        ("acquire", json!({"port_id": 0}), -32_602),
        ("acquire", json!({"port_id": 0, "user": ""}), -32_602),
        (
            "acquire",
            json!({"port_id": 0, "user": "x".repeat(65)}),
            -32_602,
        ),
        ("get_async_events", json!({}), -32_602),
        ("get_async_events", json!({"session_id": -1}), -32_602),
        ("get_pgid_stats", json!({"pgids": "all"}), -32_602),
        ("get_pgid_stats", json!({"pgids": [-1]}), -32_602),
        ("service", json!({"port_id": 0, "enabled": true}), -32_000),
        (
            "set_rx_feature",
            json!({"port_id": 0, "type": "queue", "enabled": true}),
            -32_000,
        ),
        (
            "set_port_attr",
            json!({"port_id": 0, "attr": {"link_status": {"up": true}}}),
            -32_000,
        ),
        ("set_port_attr", json!({"port_id": 0, "attr": 7}), -32_602),
        ("set_l2", json!({"port_id": 0, "dst_mac": "x"}), -32_602),
        ("capture", json!({"command": "start"}), -32_000),
    ];
    check_refused(&mut rpc, wrong);
    for api in ["", "abcdefgh"] {
        rpc.api = api.to_owned();
        assert!(
            rpc.refused("get_system_info", json!({}))
                .starts_with("-32602")
        );
    }
    rpc.call("ping", json!({}));
}

/// Commands of T-Rex that there are not are refused with what there is instead; those that clients
/// hide by are not listed.
#[test]
fn commands_that_are_not_there_name_what_is() {
    let (server, _pool) = server();
    let mut rpc = Rpc::with_ports(&server);
    let listed = rpc.call("get_supported_cmds", json!({})).to_string();
    for (method, instead) in [
        ("api_sync", "api_sync_v2"),
        ("get_profile_list", "get_all_streams"),
        ("pause_streams", "pause_traffic"),
        ("resume_streams", "resume_traffic"),
        ("update_streams", "update_traffic"),
        ("push_remote", "parshall send"),
        ("push_pkts", "add_stream"),
        ("get_global_cfg", "command line"),
        ("set_global_cfg", "command line"),
        ("set_l3", "`ip`"),
        ("set_vlan", "`ip`"),
        ("conf_ipv6", "`ip`"),
        ("conf_ns_batch", "`ip`"),
        ("get_rx_queue_pkts", "tcpdump"),
        ("start_capture_port", "tcpdump"),
        ("stop_capture_port", "tcpdump"),
        ("get_async_results", "at once"),
        ("cancel_async_task", "at once"),
        ("enable_tpg", "get_pgid_stats"),
        ("get_tpg_stats", "get_pgid_stats"),
        ("shutdown", "SIGTERM"),
        ("fly", "get_supported_cmds"),
    ] {
        let why = rpc.refused(method, json!({"port_id": 0}));
        assert!(why.starts_with("-32601"), "{method}: {why}");
        assert!(why.contains(method) && why.contains(instead), "{why}");
        assert!(!listed.contains(&format!("\"{method}\"")), "{method}");
    }
    assert_eq!(rpc.call("get_utilization", json!({})), json!({}));
}

#[test]
fn wrong_streams_are_refused() {
    let (server, _pool) = server();
    let mut rpc = Rpc::with_ports(&server);
    add(&mut rpc, 0, 5, &continuous());
    let with = |name: &str, value: Value| {
        let mut changed = continuous();
        changed[name] = value;
        changed
    };
    let late = stream(json!({"type": "later"}), Value::Null);
    let mut wrong: Vec<Wrong> = [
        (json!(5), continuous(), -32_000),
        (json!(-1), continuous(), -32_602),
        (json!(6), json!([]), -32_602),
        (json!(6), json!({}), -32_000),
        (json!(6), with("start_paused", json!(true)), -32_000),
        (json!(6), with("packet", json!({"binary": "@"})), -32_000),
        (json!(6), with("isg", json!(-1.0)), -32_000),
        (json!(6), marked(1, "tpg"), -32_000),
        (json!(6), late, -32_000),
    ]
    .map(|(number, stream, code)| {
        let params = json!({"port_id": 0, "stream_id": number, "stream": stream});
        ("add_stream", params, code)
    })
    .into();
    for method in ["remove_stream", "get_stream"] {
        wrong.push((method, json!({"port_id": 0, "stream_id": 6}), -32_000));
    }
    check_refused(&mut rpc, wrong);
    assert_eq!(
        rpc.call("get_stream_list", json!({"port_id": 0})),
        json!([5])
    );
    // What is wrong only with several shows when they start.
    add(&mut rpc, 0, 6, &with("next_stream_id", json!(7)));
    let start = json!({"port_id": 0, "mul": mul("raw", "abs", 1.0)});
    check_refused(&mut rpc, vec![("start_traffic", start, -32_000)]);
    assert_eq!(rpc.state(0), "STREAMS");
}

#[test]
fn wrong_rates_are_refused() {
    let (server, _pool) = server();
    let mut rpc = Rpc::with_ports(&server);
    let start = json!({"port_id": 1, "mul": mul("raw", "abs", 1.0)});
    check_refused(&mut rpc, vec![("start_traffic", start.clone(), -32_000)]);
    add(&mut rpc, 1, 5, &continuous());
    let mut wrong: Vec<Wrong> = [
        ("mul", Value::Null, -32_602),
        ("mul", mul("most", "abs", 1.0), -32_602),
        ("mul", mul("raw", "add", 1.0), -32_602),
        ("mul", mul("raw", "abs", 0.0), -32_602),
        ("mul", mul("raw", "abs", -1.0), -32_602),
        ("mul", mul("percentage", "abs", 101.0), -32_000),
        ("duration", json!(0), -32_602),
        ("duration", json!(-2), -32_602),
        ("duration", json!(1e300), -32_602),
        ("core_mask", json!("all"), -32_602),
        ("start_at_ts", json!(17.5), -32_000),
    ]
    .map(|(name, value, code)| {
        let mut params = start.clone();
        params[name] = value;
        ("start_traffic", params, code)
    })
    .into();
    let update = json!({"port_id": 1, "mul": mul("raw", "abs", 1.0)});
    wrong.extend([
        ("pause_traffic", json!({"port_id": 1}), -32_000),
        ("resume_traffic", json!({"port_id": 1}), -32_000),
        ("update_traffic", update, -32_000),
    ]);
    check_refused(&mut rpc, wrong);
    assert_eq!(rpc.state(1), "STREAMS");
}

#[test]
fn what_runs_is_not_changed() {
    let (server, _pool) = server();
    let mut rpc = Rpc::with_ports(&server);
    add(&mut rpc, 0, 1, &continuous());
    start(&mut rpc, 0, mul("raw", "abs", 1.0));
    let again = json!({"port_id": 0, "mul": mul("raw", "abs", 2.0)});
    for (method, params) in [
        (
            "add_stream",
            json!({"port_id": 0, "stream_id": 2, "stream": continuous()}),
        ),
        ("remove_stream", json!({"port_id": 0, "stream_id": 1})),
        ("remove_all_streams", json!({"port_id": 0})),
        (
            "set_l2",
            json!({"port_id": 0, "dst_mac": "02:00:00:00:00:09"}),
        ),
        ("start_traffic", again.clone()),
    ] {
        let why = rpc.refused(method, params);
        assert!(why.contains("stop it first"), "{method}: {why}");
    }
    let less = json!({"port_id": 0, "mul": mul("percentage", "sub", 100.0)});
    assert!(
        rpc.refused("update_traffic", less)
            .contains("nothing would be left")
    );
    goes_on(&mut rpc);
    let mut forced = again;
    forced["force"] = json!(true);
    rpc.events();
    assert_eq!(rpc.call("start_traffic", forced)["multiplier"], 2.0);
    let kinds: Vec<u64> = rpc.events().into_iter().map(|(_, kind)| kind).collect();
    assert_eq!(kinds, [1, 11, 0, 10]);
    goes_on(&mut rpc);
}

/// As many streams as a port may have, in batches as clients make them.
#[test]
fn a_port_has_so_many_streams() {
    let (server, _pool) = server();
    let mut rpc = Rpc::with_ports(&server);
    let request = |rpc: &Rpc, number: u32| {
        json!({"jsonrpc": "2.0", "id": number, "method": "add_stream", "params": {
            "api_h": rpc.api, "handler": rpc.handlers[0], "port_id": 0, "stream_id": number,
            "stream": continuous(),
        }})
    };
    let numbers: Vec<u32> = (0..4097).collect();
    let mut refused = Vec::new();
    for part in numbers.chunks(700) {
        let batch = Value::Array(part.iter().map(|number| request(&rpc, *number)).collect());
        let answer = rpc.client.ask(&pack(batch.to_string().as_bytes()));
        let answers: Vec<Value> = serde_json::from_slice(&unpack(&answer)).expect("JSON");
        assert_eq!(answers.len(), part.len());
        refused.extend(
            answers
                .into_iter()
                .filter(|answer| answer.get("error").is_some()),
        );
    }
    assert_eq!(refused.len(), 1, "{:?}", refused.first());
    let why = refused[0]["error"]["specific_err"]
        .as_str()
        .expect("a text");
    assert!(why.contains("4096 streams at most"), "{why}");
    rpc.call("stop_traffic", json!({"port_id": 0}));
    start(&mut rpc, 0, mul("pps", "abs", 5000.0));
    goes_on(&mut rpc);
    let all = rpc.call("get_all_streams", json!({"port_id": 0}));
    assert_eq!(
        all["profiles"]["_"].as_object().map(|all| all.len()),
        Some(4096)
    );
    rpc.call("get_pgid_stats", json!({"pgids": [1]}));
}
