//! Checks the printers' text, whatever the counters hold.

use router::ip::show::{Query, adjacencies, fib, fib_list};
use router::neighbor::show::neighbors;
use router::show::{self, Clear, TraceError};
use router::{Change, Interface, Route, Router};
use tables::random::Random;

use crate::harness::*;

/// Everything that can be shown, as text and as JSON.
fn everything(router: &Router) -> Vec<(String, String)> {
    fn both<T: serde::Serialize + std::fmt::Display>(shown: T) -> (String, String) {
        let json = serde_json::to_string(&shown).unwrap();
        let parsed: serde_json::Value = serde_json::from_str(&json).unwrap();
        assert!(parsed.is_object());
        (shown.to_string(), json)
    }
    let ports = graph::PortCounters::new(&["ring full", "a reason of some length, and more of it"]);
    ports.set(0, u64::MAX);
    ports.set(1, 1);
    vec![
        both(show::runtime(router)),
        both(show::errors(router, &[("port".into(), ports)])),
        both(show::interfaces(router, None, &[]).unwrap()),
        both(show::buffers(router)),
        both(show::memory(router)),
        both(fib(router, Query::Longest(FAR))),
        both(fib(router, Query::Exact(tables::ip4::Prefix::DEFAULT))),
        both(fib_list::<u32>(router, None, 0)),
        both(fib_list::<u128>(router, None, usize::MAX)),
        both(fib_list::<u32>(router, None, usize::MAX)),
        both(neighbors(router, None)),
        both(adjacencies(router)),
        both(show::threads(router)),
        both(show::trace(router)),
        both(show::graph(router)),
    ]
}

#[test]
fn an_empty_router_and_one_without_workers_can_be_shown() {
    let mut lab = Lab::sized(3, 64);
    everything(&lab.router);
    lab.router.workers.clear();
    everything(&lab.router);
}

#[test]
fn printers_bear_any_counters_and_names() {
    let mut random = Random::new(7);
    for round in 0..40 {
        let mut lab = Lab::new();
        lab.router.trace_add("ip4-input", 10).unwrap();
        lab.run();
        lab.receive(1, (0..20).map(|_| udp(random.word()).frame()));
        if round % 2 == 0 {
            [Clear::Runtime, Clear::Errors, Clear::Interface]
                .into_iter()
                .for_each(|c| lab.router.clear(c));
        }
        let mut any = || match random.below(4) {
            0 => 0,
            1 => u64::MAX,
            2 => random.bits(),
            _ => u64::from(random.below(3)),
        };
        for w in &lab.router.workers {
            [
                &w.counters.worker.loops,
                &w.counters.worker.cached,
                &w.counters.worker.queue_full,
                &w.counters.worker.sleeps,
            ]
            .iter()
            .for_each(|c| c.add(any()));
            for (_, n) in &w.counters.nodes {
                [&n.calls, &n.packets, &n.clocks]
                    .iter()
                    .for_each(|c| c.add(any()));
                n.edges.iter().for_each(|e| e.add(any()));
            }
            for i in w.counters.interfaces.iter() {
                [&i.rx_packets, &i.rx_bytes, &i.tx_packets, &i.tx_bytes]
                    .iter()
                    .for_each(|c| c.add(any()));
                [&i.rx_calls, &i.rx_clocks, &i.tx_calls, &i.tx_clocks]
                    .iter()
                    .for_each(|c| c.add(any()));
                [&i.drops, &i.tx_errors, &i.no_port]
                    .iter()
                    .for_each(|c| c.add(any()));
            }
        }
        let length = random.below(100) as usize;
        let name: String = (0..length)
            .map(|_| {
                ['a', '/', '%', '{', '"', '\\', 'ß', '\u{202e}', '\0', '\n']
                    [random.below(10) as usize]
            })
            .collect();
        lab.apply(vec![Change::InterfaceSet(Interface {
            name,
            ..interface(2)
        })]);
        everything(&lab.router);
    }
}

#[test]
fn runtime_has_the_known_columns() {
    let mut lab = Lab::new();
    lab.router.clear(Clear::Runtime);
    lab.receive(1, vec![udp(FAR).frame(); 256]);
    let shown = show::runtime(&lab.router);
    let text = shown.to_string();
    let lines: Vec<&str> = text.lines().collect();
    assert!(lines[0].starts_with("Thread 1 worker-0"));
    assert!(
        lines[1].starts_with("Time ")
            && lines[1].contains("internal node vector rate 256.00 loops/sec")
    );
    assert!(lines[2].starts_with("  vector rates in "));
    assert_eq!(
        lines[3],
        "             Name                 State         Calls          Vectors      Packet-Clocks   Vectors/Call"
    );
    let names: Vec<&str> = shown.threads[0].nodes.iter().map(|r| &r.name[..]).collect();
    assert_eq!(
        names,
        [
            "eth1-rx",
            "eth2-tx",
            "ethernet-input",
            "ip4-input",
            "ip4-lookup",
            "ip4-rewrite"
        ]
    );
    for row in &shown.threads[0].nodes {
        assert_eq!(
            (row.calls, row.vectors, row.vectors_per_call),
            (1, 256, 256.0)
        );
        let fused = ["ip4-lookup", "ip4-rewrite"].contains(&&row.name[..]);
        assert_eq!(row.clocks.is_none(), fused, "{row:?}");
    }
    assert!(
        lines[6].starts_with(
            "ethernet-input                   active                  1             256"
        )
    );
    assert!(shown.threads[0].in_per_second > 0.0);
}

#[test]
fn clearing_counts_from_zero() {
    let mut lab = Lab::new();
    assert!((1..=3).all(|id| lab.router.allocate() == Some(id)));
    lab.receive(1, vec![udp(FAR).frame(), udp(0x7f00_0001).frame()]);
    let shown = |lab: &Lab| {
        let interfaces = show::interfaces(&lab.router, Some("eth1"), &[]).unwrap();
        let counts = interfaces.interfaces[0].counts.unwrap();
        (counts.rx_packets, counts.rx_bytes, counts.drops)
    };
    assert_eq!(shown(&lab), (2, 120, 1));
    assert_eq!(show::errors(&lab.router, &[]).errors[0].count, 1);
    lab.router.clear(Clear::Interface);
    assert_eq!(shown(&lab), (0, 0, 0));
    assert_eq!(show::errors(&lab.router, &[]).errors.len(), 1);
    lab.router.clear(Clear::Errors);
    assert!(show::errors(&lab.router, &[]).errors.is_empty());
    lab.receive(1, [udp(FAR).frame()]);
    assert_eq!(shown(&lab), (1, 60, 0));
    assert!(show::interfaces(&lab.router, Some("eth9"), &[]).is_err());
    // One whose device goes and comes counts on; a new one of an old number begins at 0.
    let again = |lab: &mut Lab| {
        lab.apply(connected(2));
        let two = show::interfaces(&lab.router, Some("eth2"), &[]).unwrap();
        two.interfaces[0].counts.unwrap().tx_packets
    };
    lab.apply(vec![Change::InterfaceDelete(2)]);
    assert_eq!(again(&mut lab), 1);
    lab.router.release(2).unwrap();
    while lab.router.allocate().unwrap() != 2 {
        lab.run();
    }
    assert_eq!(again(&mut lab), 0);
    assert_eq!(shown(&lab), (1, 60, 0));
}

/// Shows that ports' own counts begin at 0 again when they are cleared, and not for others.
#[test]
fn counters_of_ports_count_from_zero() {
    let lab = Lab::new();
    let counters = graph::PortCounters::new(&["connects", "ring full"]);
    let ports = [("m0/0".to_owned(), counters.clone())];
    let shown = || -> Vec<(String, u64)> {
        let errors = show::errors(&lab.router, &ports).errors.into_iter();
        errors.map(|e| (e.reason, e.count)).collect()
    };
    counters.add(0, 3);
    counters.set(1, 7);
    assert_eq!(shown(), [("connects".into(), 3), ("ring full".into(), 7)]);
    counters.clear();
    assert!(shown().is_empty());
    counters.add(0, 1);
    assert_eq!(shown(), [("connects".into(), 1)]);
    let all: Vec<_> = counters.iter().collect();
    assert_eq!(all, [("connects", 4), ("ring full", 7)]);
}

/// An interface whose device is absent is listed with the others, and asked for by its name; once
/// the router knows it again, it is there once.
#[test]
fn an_absent_interface_is_shown() {
    let mut lab = Lab::new();
    lab.receive(1, vec![udp(FAR).frame(); 2]);
    let absent = [show::Other {
        name: "eth2".into(),
        index: Some(2),
        state: show::OtherState::Absent("its device is gone".into()),
    }];
    let shown = |lab: &Lab, name| show::interfaces(&lab.router, name, &absent).unwrap();
    let there = shown(&lab, Some("eth2")).interfaces;
    assert_eq!((there.len(), &there[0].absent), (1, &None));
    lab.apply(vec![Change::InterfaceDelete(2)]);
    let all = shown(&lab, None);
    let names: Vec<_> = all.interfaces.iter().map(|i| i.name.as_str()).collect();
    assert_eq!(names, ["eth1", "eth2", "eth3"]);
    let one = &shown(&lab, Some("eth2")).interfaces[0];
    assert_eq!((one.up, one.mtu, one.mac.as_ref()), (false, None, None));
    assert_eq!(one.counts.unwrap().tx_packets, 2, "it goes on counting");
    let text = all.to_string();
    assert!(
        text.contains("down") && text.contains("absent: its device is gone"),
        "{text}"
    );
    assert!(
        show::interfaces(&lab.router, Some("eth1"), &absent)
            .unwrap()
            .interfaces[0]
            .up
    );
}

#[test]
fn an_interface_has_the_known_keys() {
    let mut lab = Lab::new();
    lab.receive(1, vec![udp(FAR).frame(); 2]);
    // One more that finds no port.
    lab.router.workers[0].counters.interfaces[2].no_port.add(1);
    lab.router.workers[0].counters.interfaces[2]
        .tx_errors
        .add(4);
    let shown = show::interfaces(&lab.router, Some("eth2"), &[]).unwrap();
    let json = serde_json::to_value(&shown).unwrap();
    let expected = serde_json::json!({"interfaces": [{
        "name": "eth2", "index": 2, "up": true, "mtu": 1500, "mac": "02:fe:00:00:00:02",
        "host_of": null, "absent": null, "rx_packets": 0, "rx_bytes": 0, "tx_packets": 2, "tx_bytes": 120,
        "drops": 0, "tx_errors": 5,
    }]});
    assert_eq!(json, expected);
    assert!(
        shown
            .to_string()
            .ends_with("tx-error                       5\n")
    );
}

/// Shows that what else moves packets counts in the same rows, and may come late.
#[test]
fn another_executor_counts_with_the_workers() {
    let mut lab = Lab::new();
    let broken = || {
        let mut frame = udp(FAR).frame();
        frame[14 + 10] ^= 1;
        frame
    };
    lab.receive(1, vec![udp(FAR).frame(), broken()]);
    lab.router.clear(Clear::Interface);
    lab.router.clear(Clear::Errors);
    let xdp = lab.router.add_executor("xdp").unwrap();
    xdp.interfaces[1].rx_packets.set(40);
    xdp.interfaces[1].rx_calls.set(40);
    xdp.interfaces[2].tx_packets.set(30);
    xdp.edge("ip4-input", "BadChecksum").unwrap().set(10);
    xdp.edge("ip4-rewrite", "Output").unwrap().set(30);
    assert!(xdp.edge("ip4-input", "GoodChecksum").is_none());
    let (_, node) = xdp.nodes.iter().find(|n| n.0 == "ip4-input").unwrap();
    node.calls.set(40);
    node.packets.set(40);
    lab.receive(1, vec![udp(FAR).frame(), broken()]);

    let interfaces = show::interfaces(&lab.router, None, &[]).unwrap().interfaces;
    let (one, two) = (&interfaces[0], &interfaces[1]);
    let (one, two) = (one.counts.unwrap(), two.counts.unwrap());
    assert_eq!((one.rx_packets, two.tx_packets), (42, 31));
    let errors = show::errors(&lab.router, &[]).errors;
    assert_eq!(errors.len(), 1, "{errors:?}");
    assert_eq!((errors[0].count, &errors[0].node[..]), (11, "ip4-input"));
    let threads = show::runtime(&lab.router).threads;
    assert_eq!((threads.len(), threads[1].id), (2, 2));
    let rows = threads[1].nodes.iter().map(|r| (&r.name[..], r.vectors));
    let expected = [
        ("eth1-rx", 40),
        ("ip4-input", 40),
        ("ip4-lookup", 30),
        ("ip4-rewrite", 30),
    ];
    assert_eq!(rows.collect::<Vec<_>>(), expected);
    assert_eq!((&threads[1].name[..], threads[1].cpu), ("xdp", None));
    assert!(threads[1].in_per_second > 0.0 && threads[1].drop_per_second > 0.0);
    let took = |lab: &Lab| {
        let nodes = show::graph(&lab.router).nodes;
        let mut edges = nodes.into_iter().flat_map(|node| node.edges);
        ["Lookup", "BadChecksum", "Rewrite", "Output"].map(|name| {
            let edge = edges.find(|edge| edge.name == name).unwrap();
            edge.packets
        })
    };
    assert_eq!(took(&lab), [32, 12, 32, 32]);
    lab.router.clear(Clear::Runtime);
    assert_eq!(took(&lab), [0; 4]);
    assert_eq!(show::threads(&lab.router).threads.len(), 1);

    lab.router.clear(Clear::Interface);
    lab.router.clear(Clear::Errors);
    let one = &show::interfaces(&lab.router, Some("eth1"), &[])
        .unwrap()
        .interfaces[0];
    assert_eq!(one.counts.unwrap().rx_packets, 0);
    assert!(show::errors(&lab.router, &[]).errors.is_empty());
}

#[test]
fn routes_are_shown_down_to_the_header() {
    let mut lab = Lab::new();
    let weighted = |interface, weight| router::Path {
        weight,
        ..via(interface, 2)
    };
    let paths = Route::Forward(vec![weighted(2, 1), weighted(3, 3)]);
    lab.apply(vec![route("48.2.0.0/16", paths)]);
    let text = fib::<u32>(&lab.router, "48.2.0.0/16".parse().unwrap()).to_string();
    for part in [
        "48.2.0.0/16\n  route forward\n",
        "] routes:1\n",
        "ip4 weight=1 attached-nexthop:\n        10.0.2.2 eth2\n",
        "ip4 weight=3 attached-nexthop:\n        10.0.3.2 eth3\n",
        " forwarding:\n  next-hop-group:[",
        "ipv4 via 10.0.3.2 eth3: mtu:1500 02000000030202fe000000030800\n",
    ] {
        assert!(text.contains(part), "{part:?} in\n{text}");
    }
    assert_eq!(
        fib::<u32>(&lab.router, "48.2.3.4".parse().unwrap()).to_string(),
        text
    );
    assert!("48.2.3.4/16".parse::<Query<u32>>().is_err());
    let list = fib_list::<u32>(&lab.router, None, 3);
    assert_eq!((list.routes, list.list.len(), list.left_out), (14, 3, 11));
    assert_eq!(list.list[0].prefix, "10.0.1.0/24");
    let last = list.list[2].prefix.clone();
    let next = format!("... and 11 more routes: show ip fib after {last}\n");
    assert!(list.to_string().ends_with(&next));
    let rest = fib_list::<u32>(&lab.router, Some(last.parse().unwrap()), usize::MAX);
    assert_eq!((rest.list.len(), rest.left_out), (11, 0));
    let all = fib_list::<u32>(&lab.router, None, usize::MAX).list;
    assert_eq!(all, [list.list, rest.list].concat());
}

#[test]
fn a_trace_follows_packets_from_port_to_port() {
    let mut lab = Lab::new();
    let unknown = lab.router.trace_add("ip5-input", 1).unwrap_err();
    assert!(matches!(&unknown, TraceError::Unknown { name, .. } if name == "ip5-input"));
    assert_eq!(
        lab.router.trace_add("eth1-rx", 0),
        Err(TraceError::Packets(0))
    );
    lab.router.trace_add("eth1-rx", 2).unwrap();
    lab.receive(2, [udp(FAR).frame()]);
    lab.receive(
        1,
        [udp(FAR).frame(), udp(FAR).ttl(1).frame(), udp(FAR).frame()],
    );
    let shown = show::trace(&lab.router);
    let ways: Vec<Vec<&str>> = shown.threads[0]
        .packets
        .iter()
        .map(|p| p.steps.iter().map(|s| &s.node[..]).collect())
        .collect();
    let start = ["eth1-rx", "ethernet-input", "ip4-input"];
    assert_eq!(ways[0], [&start[..], &["eth2-tx"]].concat());
    let back = ["icmp4-error", "ip4-lookup", "ip4-rewrite", "eth1-tx"];
    assert_eq!(ways[1], [&start[..], &back].concat());
    assert_eq!(ways.len(), 2);
    // From a node on, and why a packet ended.
    lab.router.trace_add("ip4-input", 5).unwrap();
    lab.receive(1, [udp(0x7f00_0001).frame()]);
    let text = show::trace(&lab.router).to_string();
    assert!(
        text.contains("dropped: ip4 destination is loopback or zero"),
        "{text}"
    );
    lab.router.trace_clear();
    lab.run();
    assert!(
        show::trace(&lab.router)
            .to_string()
            .contains("No packets in trace buffer")
    );
    assert!(lab.router.collect().is_empty());
}

/// Its number may be another's tomorrow.
#[test]
fn runtime_has_no_rows_of_an_interface_that_is_gone() {
    let mut lab = Lab::new();
    lab.receive(1, [udp(FAR).frame()]);
    let rows = |lab: &Lab| {
        let shown = show::runtime(&lab.router);
        let rows = shown.threads.into_iter().flat_map(|thread| thread.nodes);
        rows.map(|row| row.name).collect::<Vec<_>>()
    };
    let before = rows(&lab);
    assert!(before.contains(&"eth1-rx".to_owned()), "{before:?}");
    lab.apply(vec![Change::InterfaceDelete(1)]);
    let after = rows(&lab);
    let gone = ["eth1-", "interface1-"];
    assert!(
        !after
            .iter()
            .any(|row| gone.iter().any(|name| row.starts_with(name))),
        "{after:?}"
    );
    assert!(after.contains(&"eth2-tx".to_owned()), "{after:?}");
}
