//! T-Rex's RPC server on real interfaces: driven as a client drives it, and beside the load tester.

#[path = "../crates/trex/tests/client/mod.rs"]
mod client;

use std::net::SocketAddr;

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::harness::{Directory, Netns, PARSHALL, Process, Spawn, alone, patience, skipped, until};
use client::Client;

/// Two pairs of interfaces, whose far ends a bridge of the kernel joins: what g0 sends comes by g1.
fn bridged() -> Netns {
    let netns = Netns::create("trex").expect("root may make namespaces");
    netns
        .ip_batch(
            "link add br0 type bridge\n\
             link add g0 type veth peer name h0\nlink add g1 type veth peer name h1\n\
             link set h0 master br0\nlink set h1 master br0\n\
             link set br0 up\nlink set h0 up\nlink set h1 up\nlink set g0 up\nlink set g1 up\n",
        )
        .expect("root may make links");
    netns
}

/// Streams of port 0: one of a packet group at 1000 packets a second, one that measures latency at
/// 500.
fn streams() -> Value {
    let stream = |group: u32, rule: &str, pps: u32, packet: &str| {
        json!({
            "name": format!("{group}"),
            "mode": {"type": "continuous", "rate": {"type": "pps", "value": pps}},
            "packet": {"binary": packet},
            "flow_stats": {"enabled": true, "stream_id": group, "rule_type": rule},
        })
    };
    // IPv4 and UDP, 60 bytes and 80.
    json!([
        stream(
            7,
            "stats",
            1000,
            "AgAAAAAiAgAAAAARCABFAAAuAAEAAEARjojAAAIBxjNkAQu4AAkAGgAAcHBwcHBwcHBwcHBwcHBwcHBw"
        ),
        stream(
            9,
            "latency",
            500,
            "AgAAAAAiAgAAAAARCABFAABCAAEAAEARjnTAAAIBxjNkAQu5AAkALgAAcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBw\
             cHBwcHBwcHBwcHBwcHA="
        ),
    ])
}

/// A client that has asked for an API handler, and acquires ports.
struct Rpc {
    client: Client,
    api: Value,
    handlers: [Value; 2],
}

impl Rpc {
    fn connect(netns: &Netns, address: SocketAddr) -> Self {
        let client = netns.inside(|| Client::greeted(address, "REQ"));
        let mut this = Self {
            client,
            api: Value::Null,
            handlers: [Value::Null, Value::Null],
        };
        let sync = this.call(
            "api_sync_v2",
            json!({"name": "STL", "major": 5, "minor": 1}),
        );
        this.api = sync["api_h"].clone();
        this
    }

    fn call(&mut self, method: &str, mut params: Value) -> Value {
        params["api_h"] = self.api.clone();
        if let Some(port) = params["port_id"].as_u64() {
            params["handler"] = self.handlers[usize::try_from(port).expect("small")].clone();
        }
        let request = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        let answer = self.client.ask(request.to_string().as_bytes());
        let answer: Value = serde_json::from_slice(&answer).expect("JSON");
        let result = answer.get("result");
        result
            .unwrap_or_else(|| panic!("{request}: {answer}"))
            .clone()
    }

    /// Does this with each port.
    fn both(&mut self, method: &str, params: &Value) {
        for port in 0..2 {
            let mut params = params.clone();
            params["port_id"] = json!(port);
            self.call(method, params);
        }
    }

    fn count(&mut self, port: usize, name: &str) -> u64 {
        let counts = self.call("get_port_stats", json!({"port_id": port}));
        counts[name].as_u64().expect("a number")
    }

    fn state(&mut self, port: usize) -> Value {
        self.call("get_port_status", json!({"port_id": port}))["state"].clone()
    }

    /// Awaits that both ports have sent more.
    fn goes_on(&mut self) {
        for port in 0..2 {
            let before = self.count(port, "opackets");
            let more = until(patience(), || self.count(port, "opackets") > before + 50);
            assert!(more, "port {port} stays at {before}");
        }
    }
}

/// The server on both interfaces, and where it answers.
fn serve(netns: &Netns) -> (Process, SocketAddr) {
    let words = "trex-server --port af_xdp:g0 --port af_xdp:g1 --speed 1gbps --rpc-port 0 \
                 --events-port 0";
    let mut server = Spawn::new(PARSHALL)
        .args(words.split_whitespace())
        .inside(netns)
        .start()
        .expect("it starts");
    let log = server.log_path().to_owned();
    let said = || std::fs::read_to_string(&log).unwrap_or_default();
    let listens = server.ready(patience(), || said().contains("events at"));
    listens.expect("it says where it listens");
    let said = said();
    let address = said.split_once("requests at ").expect("an address").1;
    let address = address.split_once(',').expect("two").0;
    (server, address.parse().expect("an address"))
}

/// What the load tester says of the same streams in a second: packets sent of each, all of which
/// have come.
fn by_the_load_tester(netns: &Netns) -> [u64; 2] {
    let directory = Directory::new();
    let at = |name: &str| directory.path().join(name).display().to_string();
    std::fs::write(at("streams.json"), streams().to_string()).expect("there is room");
    let words = format!(
        "loadtest --tx af_xdp:g0 --rx af_xdp:g1 -f {} -m 1 --duration 1s \
         --dst-mac 02:00:00:00:00:22 --json {}",
        at("streams.json"),
        at("result.json")
    );
    let argv: Vec<&str> = [PARSHALL]
        .into_iter()
        .chain(words.split_whitespace())
        .collect();
    netns.exec(&argv).expect("the load tester ends well");
    let text = std::fs::read_to_string(at("result.json")).expect("it has written the file");
    let result: Value = serde_json::from_str(&text).expect("JSON");
    [0, 1].map(|stream| {
        let stream = &result["parshall"]["streams"][stream];
        assert_eq!(stream["sent"], stream["received"], "{stream}");
        stream["sent"]["packets"].as_u64().expect("a number")
    })
}

/// Packets of groups 7 and 9 that port 0 has sent, when all of them have come.
fn by_rpc(rpc: &mut Rpc) -> [u64; 2] {
    let mut stats = Value::Null;
    let groups = ["7", "9"];
    let all = until(patience(), || {
        stats = rpc.call("get_pgid_stats", json!({"pgids": [7, 9]}));
        let mut rows = groups.iter().map(|group| &stats["flow_stats"][group]);
        rows.all(|row| row["tp"]["0"] == row["rp"]["1"] && row["tb"]["0"] == row["rb"]["1"])
    });
    assert!(all, "{stats}");
    let sent = groups.map(|group| {
        let packets = stats["flow_stats"][group]["tp"]["0"].as_u64();
        packets.expect("a number")
    });
    let latency = &stats["latency"]["9"];
    let none = json!({"drp": 0, "ooo": 0, "dup": 0, "sth": 0, "stl": 0});
    assert_eq!(latency["er"], none);
    let counts = latency["lat"]["histogram"].as_object().expect("counts");
    let counted: u64 = counts.values().filter_map(Value::as_u64).sum();
    assert_eq!(counted, sent[1], "{latency}");
    assert!(
        latency["lat"]["total_min"].as_f64() > Some(0.0),
        "{latency}"
    );
    sent
}

/// A second of both streams has the shares of their rates, and no more than is due.
fn check_second([plain, latency]: [u64; 2]) {
    // The first packet is due at once.
    assert!(
        plain <= 1001 && latency <= 501 && latency > 0,
        "{plain} {latency}"
    );
    // However busy the machine is, what is given up is given up of both.
    assert!(plain.abs_diff(2 * latency) < 200, "{plain} {latency}");
}

#[test]
fn a_client_drives_two_ports_as_the_load_tester_does() {
    const NAME: &str = "a_client_drives_two_ports_as_the_load_tester_does";
    if skipped(NAME, &["ip"]) {
        return;
    }
    let _alone = alone();
    let netns = bridged();
    let (mut server, address) = serve(&netns);
    let mut rpc = Rpc::connect(&netns, address);
    for port in 0..2 {
        let asks = json!({"port_id": port, "user": "ann", "session_id": 1});
        rpc.handlers[port] = rpc.call("acquire", asks);
    }
    let all = streams();
    let mut add = |port: usize, number: usize, stream: &Value| {
        let params = json!({"port_id": port, "stream_id": number, "stream": stream});
        rpc.call("add_stream", params);
    };
    add(0, 1, &all[0]);
    add(0, 2, &all[1]);
    let mut back = all[0].clone();
    back["flow_stats"]["stream_id"] = json!(8);
    add(1, 1, &back);

    // A second, by itself: what the load tester makes of the same streams.
    let once = json!({"type": "raw", "op": "abs", "value": 1.0});
    let second = json!({"port_id": 0, "mul": once, "duration": 1.0});
    rpc.call("start_traffic", second);
    assert!(until(patience(), || rpc.state(0) == "STREAMS"));
    let first = by_rpc(&mut rpc);
    check_second(first);

    // Both directions, by hand. Counters go on.
    let percent = json!({"type": "percentage", "op": "abs", "value": 0.5});
    rpc.both("start_traffic", &json!({"mul": percent, "duration": -1.0}));
    rpc.goes_on();
    rpc.both(
        "update_traffic",
        &json!({"mul": {"type": "pps", "op": "abs", "value": 3000.0}}),
    );
    rpc.goes_on();
    rpc.both("pause_traffic", &json!({}));
    let paused = [rpc.count(0, "opackets"), rpc.count(1, "opackets")];
    assert_eq!([rpc.state(0), rpc.state(1)], ["PAUSE", "PAUSE"]);
    assert_eq!([rpc.count(0, "opackets"), rpc.count(1, "opackets")], paused);
    rpc.both("resume_traffic", &json!({}));
    rpc.goes_on();
    rpc.both("stop_traffic", &json!({}));
    let [plain, latency] = by_rpc(&mut rpc);
    assert!(plain > first[0] && latency > first[1], "{first:?}");
    let mut back = Value::Null;
    let came = until(patience(), || {
        let stats = rpc.call("get_pgid_stats", json!({"pgids": [8]}));
        back = stats["flow_stats"]["8"].clone();
        back["tp"]["1"] == back["rp"]["0"]
    });
    assert!(came, "{back}");
    assert_eq!(back["tp"]["1"], rpc.count(1, "opackets"));
    // A port counts all that comes, also what the bridge says by itself.
    assert!(rpc.count(1, "ipackets") >= plain + latency);
    assert_eq!(rpc.count(0, "opackets"), plain + latency);

    // A device that goes down, and comes back.
    for (word, is_up) in [("down", false), ("up", true)] {
        netns.ip(&format!("link set g1 {word}")).expect("root may");
        let told = until(patience(), || {
            rpc.call("get_port_status", json!({"port_id": 1}))["attr"]["link"]["up"] == is_up
        });
        assert!(told, "g1 is {word}");
    }

    rpc.both("release", &json!({}));
    for port in 0..2 {
        let owner = rpc.call("get_owner", json!({"port_id": port}));
        assert_eq!(owner, json!({"owner": ""}));
    }
    let attached = || {
        netns
            .ip("-d link show type veth")
            .expect("links")
            .contains("xdp")
    };
    assert!(attached());
    server.signal(Signal::INT);
    let ended = server.wait(patience()).expect("it ends");
    assert!(ended.success(), "{}", server.log());
    assert!(!attached(), "nothing is left on the interfaces");

    check_second(by_the_load_tester(&netns));
}
