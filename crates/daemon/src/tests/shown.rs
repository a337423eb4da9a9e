//! What `show` says of interfaces without a network device.

use std::sync::mpsc::{Receiver, TryRecvError, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use control::api::Output;
use control::cli;
use control::config::Config;
use control::history::Who;
use router::show;

use super::Lab;
use crate::answer::{self, Running};
use crate::facts;
use crate::reply::Reply;
use crate::request::ControlRequest;

/// The answer to an operator, as text; that of workers is waited for.
pub(super) fn ask(lab: &mut Lab, line: &str) -> String {
    let answer = asked(lab, line);
    let until = Instant::now() + Duration::from_secs(60);
    loop {
        match answer.try_recv() {
            Ok(Ok(Output::Text(text))) => return text,
            Ok(Ok(Output::Json(json))) => return json.to_string(),
            Ok(Err(why)) => return why,
            Err(TryRecvError::Disconnected) => panic!("`{line}` has no answer"),
            Err(TryRecvError::Empty) => assert!(Instant::now() < until, "`{line}` has no answer"),
        }
        thread::sleep(Duration::from_millis(1));
        lab.daemon.tick(Instant::now()).expect("workers live");
    }
}

/// Where the answer to an operator comes.
fn asked(lab: &mut Lab, line: &str) -> Receiver<Reply> {
    let words: Vec<&str> = line.split(' ').collect();
    let (reply, answer) = sync_channel(1);
    let request = serde_json::json!({ "command": words });
    let request = ControlRequest {
        command: cli::parse(&words).expect("a command"),
        request: serde_json::from_value(request).expect("a request"),
        who: Who {
            uid: 0,
            pid: 1,
            name: None,
        },
        reply,
    };
    answer::reply(&request, &mut lab.daemon, Running::Changing(&lab.running));
    answer
}

/// A loopback and a memif, to which nobody is connected.
fn lab() -> Lab {
    let config = "interfaces: { m0: {} }\n\
         loopbacks: { loop0: { mtu: 1400, addresses: [ 192.0.2.1/32, 2001:db8::1/128 ] } }\n\
         ports: { m0: { memif: { socket: /run/m0.sock, role: server } } }";
    Lab::start(&[], Config::parse("test.yaml", config).expect("valid"))
}

#[test]
fn a_loopback_is_shown_and_counts_nothing() {
    let lab = lab();
    let (router, interfaces) = (&lab.daemon.routing.router, &lab.daemon.interfaces);
    let others = interfaces.others(&lab.daemon.routing.translator);
    let shown = show::interfaces(router, Some("loop0"), &others).expect("it is known");
    let one = &shown.interfaces[0];
    assert_eq!((one.up, one.mtu, one.index), (true, Some(1400), None));
    assert!(one.mac.is_some() && one.absent.is_none() && one.counts.is_none());
    let text = shown.to_string();
    assert!(text.contains("its packets are the kernel's"), "{text}");
    let json = serde_json::to_value(one).expect("JSON");
    assert_eq!(json.get("rx_packets"), Some(&serde_json::Value::Null));
    let addresses = show::addresses(router, &others).to_string();
    let own = "loop0 (up):\n  L3 192.0.2.1/32\n  L3 2001:db8::1/128\n";
    assert!(addresses.contains(own), "{addresses}");
    let hardware = facts::hardware(&lab.daemon, Some("loop0")).map(|rows| rows.to_string());
    let hardware = hardware.expect("it is known");
    assert!(hardware.contains("Port: loopback, tap loop0"), "{hardware}");
}

#[test]
fn a_memif_without_a_peer_is_down_and_its_host_interface_leads_to_it() {
    let lab = lab();
    let hardware = |name| facts::hardware(&lab.daemon, Some(name)).map(|rows| rows.to_string());
    let text = hardware("m0").expect("it is known");
    let line = text.lines().nth(1).map(str::split_whitespace);
    let line: Vec<_> = line.expect("a line").collect();
    assert_eq!(line, ["m0", "1", "down", "m0"], "{text}");
    let why = hardware("m0-host").expect_err("it has none of its own");
    assert!(why.contains("`show hardware m0`"), "{why}");
    let why = hardware("loop0-host").expect_err("there is none");
    assert!(why.starts_with("unknown interface `loop0-host`"), "{why}");
}

#[test]
fn an_exact_name_is_no_short_word() {
    let config = "interfaces: { a: {}, add: {} }\nports: { a: { null: {} }, add: { null: {} } }";
    let config = Config::parse("test.yaml", config).expect("valid");
    let mut lab = Lab::start(&[], config);
    let addresses = ask(&mut lab, "show interface address");
    for name in ["a", "add"] {
        let shown = ask(&mut lab, &format!("show interface {name}"));
        let line = shown.lines().nth(1).unwrap_or_default();
        assert_eq!(line.split_whitespace().next(), Some(name), "{shown}");
    }
    assert_eq!(ask(&mut lab, "show interface addr"), addresses);
}

#[test]
fn the_mode_of_one_interface() {
    let config = "interfaces: { a: {}, b: {} }\nports: { a: { null: {} }, b: { null: {} } }";
    let config = Config::parse("test.yaml", config).expect("valid");
    let mut lab = Lab::start(&[], config);
    assert_eq!(ask(&mut lab, "show mode").lines().count(), 2);
    let shown = ask(&mut lab, "show mode b");
    assert_eq!(shown.split_whitespace().collect::<Vec<_>>(), ["l3", "b"]);
    let why = ask(&mut lab, "show mode c");
    assert!(why.starts_with("unknown interface `c`"), "{why}");
}

#[test]
fn what_is_cleared_is_said() {
    let mut lab = lab();
    for (what, said) in [
        ("runtime", "nodes"),
        ("errors", "errors"),
        ("interface", "interfaces"),
        ("trace", "traced packets"),
    ] {
        let line = ask(&mut lab, &format!("clear {what}"));
        assert!(line.contains(said) && line.lines().count() == 1, "{line}");
    }
}

#[test]
fn a_packet_that_cannot_come_in_is_not_explained() {
    let mut lab = lab();
    let said = ask(
        &mut lab,
        "explain interface eth9 source 10.0.0.1 destination 10.0.0.2",
    );
    assert_eq!(
        said,
        "explain: no interface eth9; `show interface` lists those that there are"
    );
}

#[test]
fn workers_answer_about_flows_one_question_after_the_other() {
    let mut lab = lab();
    for (line, said) in [
        ("show flows", "no flow matches\n"),
        ("show flows top 5 by packets", "no flow matches\n"),
        (
            "show flows protocol udp interface m0 worker 0",
            "no flow matches\n",
        ),
        ("clear flows all", "0 flows are removed\n"),
        (
            "show flows interface m1",
            "unknown interface `m1`; `show interface` lists those that there are",
        ),
        (
            "clear flows worker 1",
            "there is no worker 1; workers have numbers from 0 to 0",
        ),
    ] {
        assert_eq!(ask(&mut lab, line), said, "{line}");
    }
    let counted = ask(&mut lab, "show flows counters");
    assert!(
        counted.starts_with("worker-0: 0 flows of 1000000, "),
        "{counted}"
    );
    assert_eq!(ask(&mut lab, "show flows summary state udp"), counted);
    // Several ask at once: one is asked, sixteen wait, and for more there is no room.
    let all: Vec<_> = (0..40).map(|_| asked(&mut lab, "show flows")).collect();
    let mut answered = 0;
    let until = Instant::now() + Duration::from_secs(60);
    let mut waiting = all;
    while !waiting.is_empty() {
        assert!(Instant::now() < until);
        waiting.retain(|answer| match answer.try_recv() {
            Ok(Ok(Output::Text(text))) => {
                assert_eq!(text, "no flow matches\n");
                answered += 1;
                false
            }
            Ok(said) => {
                let why = said.err().unwrap_or_default();
                assert!(why.contains("too many questions"), "{why}");
                false
            }
            Err(TryRecvError::Disconnected) => panic!("no answer"),
            Err(TryRecvError::Empty) => true,
        });
        lab.daemon.tick(Instant::now()).expect("workers live");
    }
    assert!((17..=40).contains(&answered), "{answered}");
}
