//! Every `show` command answers, as text and as JSON, and to those who may ask; a trace tells a
//! packet's way.

use std::time::Duration;

use control::cli::{Form, Verb};
use serde_json::Value;

use crate::harness::{
    Hosts, Netns, Raw, Router, command,
    craft::Ip4,
    for_everyone, patience,
    router::forwards,
    skipped,
    topology::{CONFIGURATION, H0, R0},
    until,
};

const COMMANDS: &[&[&str]] = &[
    &["version"],
    &["interface"],
    &["interface", "r0"],
    &["interface", "address"],
    &["hardware"],
    &["hardware", "r0"],
    &["runtime"],
    &["errors"],
    &["cpu"],
    &["pci"],
    &["buffers"],
    &["memory"],
    &["threads"],
    &["config"],
    &["ip", "fib"],
    &["ip", "fib", "48.0.0.0/8"],
    &["ip", "fib", "48.1.2.3"],
    &["ip", "fib", "after", "48.0.0.0/8"],
    &["ip", "neighbors"],
    &["ip4", "neighbors"],
    &["ip6", "fib"],
    &["ip6", "fib", "::/0"],
    &["ip6", "fib", "fe80::1"],
    &["ip6", "fib", "after", "fe80::/10"],
    &["ip6", "neighbors"],
    &["neighbors"],
    &["adjacency"],
    &["trace"],
    &["graph"],
    &["flows"],
    &[
        "flows",
        "source",
        "198.18.0.0/24",
        "state",
        "udp",
        "limit",
        "5",
    ],
    &["flows", "top", "5", "by", "packets"],
    &["flows", "summary"],
    &["flows", "counters"],
];

/// Commands that change something.
const CHANGES: &[&[&str]] = &[
    &["trace", "add", "ip4-input", "5"],
    &["clear", "runtime"],
    &["clear", "errors"],
    &["clear", "interface"],
    &["clear", "trace"],
];

/// Fails unless the laboratory's sample of this answer is current: the keys of an interface, and
/// the kinds of those that the laboratory reads.
fn assert_hardware_is_known(answer: &Value) {
    let sample = include_str!("../crates/lab/src/compare/hardware.json");
    let sample: Value = serde_json::from_str(sample).expect("JSON");
    let keys = |answer: &Value| -> Vec<String> {
        let first = answer["interfaces"][0].as_object().expect("an interface");
        first.keys().cloned().collect()
    };
    assert_eq!(keys(answer), keys(&sample), "{answer}");
    for key in ["mode", "lane"] {
        let read = &answer["interfaces"][0][key];
        assert!(read.is_string(), "{key}: {answer}");
    }
}

#[test]
fn every_show_command_answers() {
    if skipped("every_show_command_answers", &["ip", "ethtool"]) {
        return;
    }
    let hosts = Hosts::new(1500, false);
    let (left, right) = hosts.raw();
    let router = Router::start(&hosts.router, CONFIGURATION);
    assert!(forwards(&left, &right));
    for words in COMMANDS {
        assert!(router.show_text(words).ends_with('\n') || *words == ["errors"]);
        let json = router.show(words);
        assert!(json.is_object(), "show {}: {json}", words.join(" "));
    }
    assert_hardware_is_known(&router.show(&["hardware"]));
    for words in CHANGES {
        let said = router.ask(words).unwrap();
        let lines = usize::from(words[0] == "clear");
        assert_eq!(said.lines().count(), lines, "{}: {said}", words.join(" "));
        let json = router.ask(&[words, &["--json"][..]].concat()).unwrap();
        assert!(json.contains("\"done\": true"), "{json}");
    }
    let said = router.ask(&["clear", "flows", "all"]).unwrap();
    assert_eq!(said, "0 flows are removed\n");
    let asked = router.ask(&["show", "flows", "interface", "r7"]);
    let why = asked.unwrap_err().to_string();
    assert!(
        why.contains("unknown interface `r7`; `show interface`"),
        "{why}"
    );
    assert_eq!(router.show_text(&["ver"]), router.show_text(&["version"]));
    let short = router.ask(&["sh", "ip", "f", "48.0.0.0/8"]).unwrap();
    assert_eq!(short, router.show_text(&["ip", "fib", "48.0.0.0/8"]));
    assert!(short.contains("48.0.0.0/8"));
    let refused = |words: &[&str]| router.ask(words).unwrap_err().to_string();
    assert!(refused(&["show", "i"]).contains("could be interface, ip"));
    assert!(refused(&["show", "interface", "r9"]).contains("r9"));
    assert!(refused(&["show", "ip", "fib", "48.0.0.1/8"]).contains("48.0.0.1/8"));
    assert!(refused(&["trace", "add", "ip5-input", "5"]).contains("ip5-input"));
}

/// What interface `name` has counted.
fn counted(router: &Router, name: &str, what: &str) -> u64 {
    let shown = router.show(&["interface", name]);
    shown["interfaces"][0][what].as_u64().expect("a number")
}

/// A packet whose header checksum is wrong.
fn damaged() -> Vec<u8> {
    let mut packet = Ip4::udp([16, 0, 0, 1].into(), [48, 0, 0, 1].into(), 1, 26);
    packet.checksum = Some(0x1234);
    packet.frame(H0, R0)
}

/// The steps of a traced packet as (node, why it was dropped).
fn steps(packet: &Value) -> Vec<(&str, Option<&str>)> {
    let steps = packet["steps"].as_array().unwrap().iter();
    steps
        .map(|step| (step["node"].as_str().unwrap(), step["dropped"].as_str()))
        .collect()
}

#[test]
fn a_trace_tells_the_way_and_why_it_ended() {
    if skipped("a_trace_tells_the_way_and_why_it_ended", &["ip", "ethtool"]) {
        return;
    }
    let hosts = Hosts::new(1500, false);
    let (left, right) = hosts.raw();
    let router = Router::start(&hosts.router, CONFIGURATION);
    assert!(forwards(&left, &right));
    router.ask(&["trace", "add", "r0-rx", "100"]).unwrap();
    let way = ["r0-rx", "ethernet-input", "ip4-input", "r1-tx"];
    let traced = |shown: &Value| {
        let packets = shown["threads"][0]["packets"].as_array().unwrap();
        let went = packets
            .iter()
            .any(|packet| steps(packet) == way.map(|node| (node, None)));
        let ended = packets.iter().any(|packet| {
            let wrong = ("ip4-input", Some("ip4 header checksum is wrong"));
            steps(packet).last() == Some(&wrong)
        });
        went && ended
    };
    let both = until(patience(), || {
        forwards(&left, &right);
        left.send(&damaged());
        traced(&router.show(&["trace"]))
    });
    let text = router.show_text(&["trace"]);
    assert!(both, "{text}");
    for said in [
        "48.0.0.1",
        "dropped: ip4 header checksum is wrong",
        "fused stages",
    ] {
        assert!(text.contains(said), "{said}: {text}");
    }
    router.ask(&["clear", "trace"]).unwrap();
    let empty = router.show_text(&["trace"]);
    assert!(empty.contains("No packets in trace buffer"), "{empty}");
}

/// A packet is explained as the router then treats it, and nothing counts it.
#[test]
fn a_packet_is_explained() {
    if skipped("a_packet_is_explained", &["ip", "ethtool"]) {
        return;
    }
    let hosts = Hosts::new(1500, false);
    let (left, right) = hosts.raw();
    let router = Router::start(&hosts.router, CONFIGURATION);
    assert!(forwards(&left, &right));
    let ask = |line: &str| {
        let words = ["explain"].into_iter().chain(line.split_whitespace());
        router.ask(&words.collect::<Vec<_>>())
    };
    let text = ask("interface r0 source 10.0.0.2 destination 48.0.0.1").unwrap();
    for said in [
        "ICMP 10.0.0.2 -> 48.0.0.1",
        "\nr0-rx\n",
        "route 48.0.0.0/8: via ",
        "It leaves by r1, to ",
    ] {
        assert!(text.contains(said), "{said}: {text}");
    }
    let text = ask("interface r0 source 10.0.0.2 destination 99.0.0.1 ttl 9").unwrap();
    assert!(
        text.contains("It is dropped in ip4-lookup: no route"),
        "{text}"
    );
    for (line, why) in [
        (
            "interface r9 source 10.0.0.2 destination 48.0.0.1",
            "no interface r9",
        ),
        ("interface r0 source 10.0.0.2", "destination is missing"),
    ] {
        let refused = ask(line).expect_err("it is refused").to_string();
        assert!(refused.contains(why), "{refused}");
    }
}

/// What is wanted and not there is shown, with what is missing: an interface by its device, a route
/// by its way.
#[test]
fn what_is_absent_is_shown() {
    if skipped("what_is_absent_is_shown", &["ip"]) {
        return;
    }
    let netns = Netns::create("router").unwrap();
    let yaml = "interfaces:\n  x9: { addresses: [ 10.9.0.1/24 ] }\n\
                routes: [ { prefix: 16.1.0.0/16, via: 10.9.0.9 } ]\n";
    let router = Router::start(&netns, yaml);
    let one = &router.show(&["interface", "x9"])["interfaces"][0];
    assert_eq!((&one["name"], &one["up"]), (&"x9".into(), &false.into()));
    let why = one["absent"].as_str().expect("what is missing");
    assert!(why.contains("there is no network device x9"), "{why}");
    let text = router.show_text(&["interface"]);
    assert!(
        text.contains("x9") && text.contains("absent: there is no"),
        "{text}"
    );
    let warnings = router.show_text(&["warnings"]);
    for said in [
        "interface x9: absent: there is no",
        "route 16.1.0.0/16: waiting: ",
    ] {
        assert!(warnings.contains(said), "{said}: {warnings}");
    }
}

#[test]
fn counters_count_and_are_cleared() {
    if skipped("counters_count_and_are_cleared", &["ip", "ethtool"]) {
        return;
    }
    let hosts = Hosts::new(1500, false);
    let (left, right) = hosts.raw();
    let router = Router::start(&hosts.router, CONFIGURATION);
    assert!(forwards(&left, &right));
    for what in ["runtime", "errors", "interface"] {
        router.ask(&["clear", what]).unwrap();
    }
    assert_eq!(counted(&router, "r0", "rx_packets"), 0);
    send(&left, 100);
    let wrong = |router: &Router| {
        let shown = router.show(&["errors"]);
        let errors = shown["errors"].as_array().unwrap().iter();
        let mut counts = errors
            .filter(|e| e["reason"] == "ip4 header checksum is wrong")
            .map(|e| e["count"].as_u64().unwrap());
        counts.next().unwrap_or(0)
    };
    // Counters are read while workers write them: they are right when it is quiet.
    let all = until(patience(), || {
        counted(&router, "r0", "rx_packets") == 200
            && counted(&router, "r1", "tx_packets") == 100
            && counted(&router, "r0", "drops") == 100
            && wrong(&router) == 100
    });
    let texts = [["interface"], ["errors"]].map(|words| router.show_text(&words));
    assert!(all, "{}\n{}", texts[0], texts[1]);
    let runtime = router.show(&["runtime"]);
    let nodes = runtime["threads"][0]["nodes"].as_array().unwrap();
    let input = nodes.iter().find(|n| n["name"] == "ip4-input").unwrap();
    assert_eq!(input["vectors"], 200, "{input}");
    router.ask(&["clear", "interface"]).unwrap();
    assert_eq!(counted(&router, "r0", "rx_packets"), 0);
    assert_eq!(wrong(&router), 100, "each clear clears its own");
    router.ask(&["clear", "errors"]).unwrap();
    assert_eq!(wrong(&router), 0);
    right.drain(Duration::from_millis(1));
}

/// Sends `count` good packets and as many damaged ones.
fn send(left: &Raw, count: u16) {
    for number in 0..count {
        let packet = Ip4::udp([16, 0, 0, 1].into(), [48, 0, 0, 1].into(), number, 26);
        left.send(&packet.frame(H0, R0));
        left.send(&damaged());
    }
}

/// Groups that Debian has and that nobody needs here: who may change, and who may look.
const CHANGERS: &str = "games";
const LOOKERS: &str = "users";

/// Asks as user nobody in a group.
struct Stranger {
    program: String,
    directory: tempfile::TempDir,
}

impl Stranger {
    fn new() -> Self {
        let (directory, program) = for_everyone();
        Self { program, directory }
    }

    /// A file that it may read.
    fn file(&self, text: &str) -> String {
        let file = self.directory.path().join("router.yaml");
        std::fs::write(&file, text).expect("there is room");
        file.display().to_string()
    }

    /// What the words bring about, or the complaint.
    fn asks(&self, group: &str, router: &Router, words: &[&str]) -> Result<String, String> {
        let who = ["setpriv", "--reuid", "nobody", "--regid", group];
        let socket = router.socket();
        let rest = ["--clear-groups", "--", &self.program];
        let argv = [&who[..], &rest, words, &["--socket", &socket]].concat();
        command::run(&argv).map_err(|e| e.to_string())
    }
}

#[test]
fn root_and_the_groups_may_ask_others_may_not() {
    let name = "root_and_the_groups_may_ask_others_may_not";
    if skipped(name, &["ip", "ethtool", "setpriv"]) {
        return;
    }
    let hosts = Hosts::new(1500, false);
    let (look, change) = (["show", "version"], ["clear", "runtime"]);
    let stranger = Stranger::new();
    let control =
        format!("{CONFIGURATION}control: {{ group: {CHANGERS}, show-group: {LOOKERS} }}\n");
    let router = Router::start(&hosts.router, &control);
    let ask = |group, words| stranger.asks(group, &router, words);
    assert!(router.ask(&look).is_ok() && router.ask(&change).is_ok());
    assert_eq!(
        ask(CHANGERS, &look),
        router.ask(&look).map_err(|e| e.to_string())
    );
    let cleared = || Ok("the counters of nodes count from 0\n".to_owned());
    assert_eq!(ask(CHANGERS, &change), cleared());
    assert!(ask(LOOKERS, &look).is_ok());
    assert!(
        ask(LOOKERS, &change)
            .unwrap_err()
            .contains("you may not change this")
    );
    assert!(
        ask("nogroup", &look)
            .unwrap_err()
            .contains("you may not see this")
    );
    // Every command that changes anything, or tells secrets.
    let file = stranger.file("interfaces: {}\n");
    let before = router.ask(&["history"]).expect("it says");
    for spec in control::cli::COMMANDS.iter().filter(|spec| spec.write) {
        let arguments = spec.arguments.iter().filter(|argument| !argument.optional);
        let arguments = arguments.map(|argument| match argument.form {
            Form::Number(least, _) => least.to_string(),
            _ => "x".to_owned(),
        });
        let arguments: Vec<String> = arguments.collect();
        let mut words = spec.words.to_vec();
        words.extend(arguments.iter().map(String::as_str));
        if spec.needs_option {
            words.extend(["protocol", "tcp"]);
        }
        if spec.verb == Verb::Apply {
            words.extend(["-c", &file]);
        }
        for (group, verb) in [(LOOKERS, "change"), ("nogroup", "")] {
            let refused = stranger.asks(group, &router, &words);
            let refused = refused.expect_err("it may not");
            let why = format!("you may not {verb}");
            assert!(refused.contains(&why), "{words:?}: {refused}");
        }
    }
    assert_eq!(router.ask(&["history"]).expect("it says"), before);
    drop(router);
    // Without a group that may only look, the others do not even reach the socket.
    let control = format!("{CONFIGURATION}control: {{ group: {CHANGERS} }}\n");
    let router = Router::start(&hosts.router, &control);
    let ask = |group, words| stranger.asks(group, &router, words);
    assert_eq!(ask(CHANGERS, &change), cleared());
    assert!(ask(LOOKERS, &look).unwrap_err().contains("you may not use"));
    assert!(
        ask("nogroup", &look)
            .unwrap_err()
            .contains("you may not use")
    );
}
