//! What `explain` says of a packet is what the router then does with it, and to ask changes nothing.

use std::collections::BTreeMap;
use std::net::IpAddr;

use router::acl::Direction;
use router::explain::{Asked, Explained, Fate, Fields, Question, Refused, explain};
use router::firewall::{self, Action, State};
use router::{Change, Interface, Kind, L2, Route, Tags, acl, l2, show};
use tables::random::Random;
use wire::craft::Packet;
use wire::{ip, tcp};

use crate::harness::*;
use crate::{acl as acls, bond, bridge, firewall as fw, fuzz, ip6, sound, vxlan};

/// All that is counted and known, but for what goes on by itself.
fn state(lab: &Lab) -> String {
    let router = &lab.router;
    let interfaces = show::interfaces(router, None, &[]).unwrap();
    format!(
        "{:?}\n{}{}{}{}{}",
        lab.edges(),
        serde_json::to_string(&interfaces).unwrap(),
        acl::show::acls(router, None).unwrap(),
        firewall::show::policies(router, None).unwrap(),
        l2::show::l2fib(router, true),
        lab.router.pool().available(),
    )
}

/// The packets that were dropped, by node and reason.
fn drops(lab: &Lab) -> BTreeMap<(String, String), u64> {
    let errors = show::errors(&lab.router, &[]).errors.into_iter();
    // What is answered, cut or the host's goes on.
    let goes_on = |e: &show::Error| e.reason.contains(": to ") || e.reason.contains("in fragments");
    let errors = errors.filter(|e| !goes_on(e));
    errors.map(|e| ((e.node, e.reason), e.count)).collect()
}

/// The beginning of a frame that was sent, without the identification of a packet of the router's
/// own, which it counts, and the checksum of that.
fn beginning(frame: &[u8]) -> String {
    let mut frame = frame[..frame.len().min(128)].to_vec();
    if frame.len() > 26 && frame[12..14] == [8, 0] {
        frame[18..20].fill(0);
        frame[24..26].fill(0);
    }
    hex(&frame)
}

fn bytes(digits: &str) -> Vec<u8> {
    let two = digits.as_bytes().chunks(2);
    two.map(|two| u8::from_str_radix(str::from_utf8(two).unwrap(), 16).unwrap())
        .collect()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Asks, and asserts that nothing has changed.
fn ask(lab: &mut Lab, question: &Question) -> Explained {
    lab.router.unresolved();
    lab.cables.values().for_each(|cable| drop(cable.take()));
    let before = state(lab);
    let explained = explain(&lab.router, question).unwrap();
    lab.run();
    assert_eq!(state(lab), before, "{explained}");
    assert!(lab.router.unresolved().is_empty(), "{explained}");
    assert!(lab.cables.values().all(|cable| cable.take().is_empty()));
    explained
}

/// Lets the port `from` take the same frame, and asserts that the router does what was said.
fn really(lab: &mut Lab, from: u16, explained: &Explained, frame: &[u8]) {
    let before = drops(lab);
    lab.receive(from, [frame.to_vec()]);
    let sent = lab.cables.values().flat_map(|cable| cable.take());
    let mut sent: Vec<_> = sent.map(|frame| (frame.len(), beginning(&frame))).collect();
    let said = explained
        .steps
        .iter()
        .filter(|step| step.node.ends_with("-tx"));
    let mut said: Vec<_> = said
        .map(|step| (step.length as usize, beginning(&bytes(&step.bytes))))
        .collect();
    sent.sort();
    said.sort();
    assert_eq!(said, sent, "{explained}");
    let mut dropped = drops(lab);
    dropped.retain(|at, count| {
        *count -= before.get(at).copied().unwrap_or(0);
        *count > 0
    });
    let mut said = BTreeMap::new();
    for step in &explained.steps {
        if let Some(reason) = &step.dropped {
            *said.entry((step.node.clone(), reason.clone())).or_default() += 1;
        }
    }
    assert_eq!(said, dropped, "{explained}");
}

/// Asks about a frame, and lets it come.
fn of_frame(lab: &mut Lab, from: u16, frame: &[u8]) -> Explained {
    let question = Question {
        interface: format!("eth{from}"),
        packet: Asked::Frame(frame.to_vec()),
    };
    let explained = ask(lab, &question);
    assert_eq!(explained.frame, hex(frame));
    really(lab, from, &explained, frame);
    explained
}

/// Asks about a packet in words that comes in by an interface, and lets it come by `port`. What is
/// said in the end.
fn told(lab: &mut Lab, (interface, port): (u16, u16), fields: Fields) -> (Explained, String) {
    let question = Question {
        interface: format!("eth{interface}"),
        packet: Asked::Fields(fields),
    };
    let explained = ask(lab, &question);
    really(lab, port, &explained, &bytes(&explained.frame));
    let texts: Vec<_> = explained
        .outcomes
        .iter()
        .map(|end| end.text.clone())
        .collect();
    let text = texts.join(" ");
    (explained, text)
}

/// UDP from host 2 of interface 1, to port 12.
fn to(destination: &str) -> Fields {
    let destination: IpAddr = destination.parse().unwrap();
    Fields {
        source: match destination {
            IpAddr::V4(_) => ip(1, 2),
            IpAddr::V6(_) => ip6("2001:db8:1::2"),
        },
        destination,
        protocol: ip::UDP,
        ports: (1025, 12),
        tcp_flags: tcp::SYN,
        icmp: (8, 0),
        length: None,
        ttl: 64,
        vlans: Vec::new(),
        source_mac: None,
        destination_mac: None,
    }
}

const ONE: (u16, u16) = (1, 1);

/// What becomes of packets that anything may happen to: in a router of its own each, where flows,
/// limits and neighbors are those of the first.
#[test]
fn what_is_said_is_what_happens() {
    let mut random = Random::new(7);
    let corpus = fuzz::corpus();
    let mut fates = BTreeMap::new();
    for n in 0..2 * corpus.len() {
        let mut lab = sound::lab();
        let mut frame = corpus[n % corpus.len()].clone();
        if n >= corpus.len() {
            fuzz::mutate(&mut random, &mut frame);
        }
        frame.truncate(graph::pool::MAX_PACKET);
        let from = match random.below(8) {
            0 => 4,
            1 => sound::XOR_MEMBERS[0],
            2 => sound::LACP_MEMBER,
            _ => 1,
        };
        for end in of_frame(&mut lab, from, &frame).outcomes {
            *fates.entry(format!("{:?}", end.kind)).or_insert(0) += 1;
        }
    }
    let fates: Vec<_> = fates.keys().map(String::as_str).collect();
    assert_eq!(fates, ["Dropped", "Host", "Refused", "Sent", "Waits"]);
}

#[test]
fn routes_and_neighbors_are_named() {
    let mut lab = ip6::lab();
    lab.apply(vec![
        route("60.0.0.0/8", Route::Blackhole),
        route("61.0.0.0/8", Route::Prohibit),
        neighbor6(2, "2001:db8:2::2"),
        route(
            "2001:db8:4800::/40",
            Route::Forward(vec![via6(2, "2001:db8:2::2")]),
        ),
    ]);
    let (explained, text) = told(&mut lab, ONE, to("48.0.0.1"));
    assert_eq!(
        text,
        format!("It leaves by eth2, to 10.0.2.2 at {}.", host_mac(2, 2))
    );
    assert!(
        explained
            .packet
            .starts_with("UDP 10.0.1.2:1025 -> 48.0.0.1:12")
    );
    assert_eq!(
        explained.link,
        format!("from {} to {}", host_mac(1, 2), own_mac(1))
    );
    let nodes: Vec<_> = explained.steps.iter().map(|step| &*step.node).collect();
    let way = [
        "eth1-rx",
        "ethernet-input",
        "ip4-input",
        "ip4-lookup",
        "ip4-rewrite",
        "eth2-tx",
    ];
    assert_eq!(nodes, way);
    assert_eq!(
        explained.steps[3].why,
        ["route 48.0.0.0/8: via 10.0.2.2 eth2"]
    );
    assert!(explained.steps[4].why[0].contains("ipv4 via 10.0.2.2 eth2: mtu:1500"));
    let (_, text) = told(&mut lab, ONE, to("2001:db8:4800::7"));
    let mac = host_mac(2, 66);
    assert_eq!(
        text,
        format!("It leaves by eth2, to 2001:db8:2::2 at {mac}.")
    );
    for (destination, said) in [
        (
            "60.1.1.1",
            "It is dropped in ip4-lookup: ip4 route is a blackhole; route 60.0.0.0/8: blackhole.",
        ),
        (
            "61.1.1.1",
            "It is dropped in ip4-lookup: administratively prohibited: icmp error type 3 code 13.",
        ),
        (
            "61.1.1.1",
            "The ICMP error leaves by eth1, to 10.0.1.2 at 02:00:00:00:01:02.",
        ),
        (
            "70.1.1.1",
            "It is dropped in ip4-lookup: no route: icmp error type 3 code 0.",
        ),
        (
            "2001:db8:99::1",
            "It is dropped in ip6-lookup: no route: icmp6 error type 1 code 0.",
        ),
        (
            "10.0.2.9",
            "It waits in ip4-arp for its neighbor, for whom the kernel is asked: adjacency",
        ),
        (
            "2001:db8:2::9",
            "It waits in ip6-discover-neighbor for its neighbor",
        ),
        (
            "10.0.1.1",
            "It is for the host, which takes such packets from eth1 before the router",
        ),
    ] {
        let (_, text) = told(&mut lab, ONE, to(destination));
        assert!(text.contains(said), "{destination}: {text}");
    }
    let mut lab = Lab::with_host();
    let (explained, text) = told(&mut lab, ONE, to("10.0.1.1"));
    assert_eq!(
        (&*text, explained.outcomes[0].kind),
        ("It goes to the host, by eth4.", Fate::Host)
    );
}

#[test]
fn headers_and_links_are_judged() {
    let mut lab = Lab::new();
    let far = || to("48.0.0.1");
    lab.apply(vec![Change::InterfaceSet(Interface {
        mtu: 576,
        ..interface(2)
    })]);
    let (_, text) = told(&mut lab, ONE, Fields { ttl: 1, ..far() });
    assert!(
        text.contains("dropped in ip4-rewrite: its time to live has run out"),
        "{text}"
    );
    let long = || Fields {
        length: Some(1300),
        ..far()
    };
    let (explained, text) = told(&mut lab, ONE, long());
    assert_eq!(explained.packet.split(", ").nth(1), Some("length 1300"));
    assert!(
        text.contains("A fragment leaves by eth2, to 10.0.2.2 at"),
        "{text}"
    );
    assert_eq!(
        explained
            .steps
            .iter()
            .filter(|step| step.node == "eth2-tx")
            .count(),
        3
    );
    let other = Fields {
        destination_mac: Some(host_mac(1, 9)),
        ..far()
    };
    let (_, text) = told(&mut lab, ONE, other);
    assert_eq!(
        text,
        "It is dropped in ethernet-input: destination MAC is not ours."
    );
    lab.apply(vec![Change::InterfaceSet(Interface {
        up: false,
        ..interface(1)
    })]);
    let (_, text) = told(&mut lab, ONE, far());
    assert_eq!(text, "It is dropped in ethernet-input: interface is down.");
}

#[test]
fn rules_are_named() {
    let mut lab = Lab::new();
    let all = || [0..=u16::MAX, 0..=u16::MAX];
    let port = |port: u16| [0..=u16::MAX, port..=port];
    lab.apply(vec![
        acls::set(
            "in",
            vec![
                acls::rule4(false, None, port(9)),
                acls::rule4(true, None, all()),
            ],
        ),
        acls::set(
            "out",
            vec![
                acls::rule4(true, None, port(12)),
                acls::rule4(true, None, port(9)),
            ],
        ),
        acls::attach(1, Direction::Input, &["in"]),
        acls::attach(2, Direction::Output, &["out"]),
    ]);
    let udp = |port| Fields {
        ports: (1025, port),
        ..to("48.0.0.1")
    };
    let (explained, text) = told(&mut lab, ONE, udp(12));
    assert!(text.starts_with("It leaves by eth2"), "{text}");
    let why: Vec<_> = explained
        .steps
        .iter()
        .filter(|step| step.node.contains("acl"))
        .collect();
    assert_eq!(why[0].why, ["acl in, rule 1: permit"]);
    assert_eq!(why[1].why, ["acl out, rule 0: permit"]);
    let (_, text) = told(&mut lab, ONE, udp(9));
    let denied = "It is dropped in ip4-acl-in: denied by access list; acl in, rule 0: deny.";
    assert_eq!(text, denied);
    let (_, text) = told(&mut lab, ONE, udp(80));
    let unmatched = "It is dropped in ip4-acl-out: no rule of the access lists matches.";
    assert_eq!(text, unmatched);
}

#[test]
fn policies_are_asked_as_of_the_first_packet_of_a_flow() {
    let mut lab = fw::guarded(Lab::new());
    let dropped = |text: &str| format!("It is dropped in ip4-firewall: dropped by policy; {text}.");
    let (explained, text) = told(&mut lab, ONE, to("48.0.0.1"));
    assert!(text.starts_with("It leaves by eth2"), "{text}");
    let at = explained
        .steps
        .iter()
        .find(|step| step.node == "ip4-firewall")
        .unwrap();
    assert_eq!(at.why, ["policy inside, rule 1: accept"]);
    assert!(explained.notes[0].contains("first packet of its flow"));
    let other = Fields {
        ports: (1025, 13),
        ..to("48.0.0.1")
    };
    let (_, text) = told(&mut lab, ONE, other);
    assert_eq!(text, dropped("policy inside, no rule matches: drop"));
    // An answer is known to the router, which has seen its flow; it is not asked about here.
    let answer = Question {
        interface: "eth2".to_owned(),
        packet: Asked::Frame(fw::answer().frame()),
    };
    let explained = ask(&mut lab, &answer);
    let said = &explained.outcomes[0].text;
    assert_eq!(*said, dropped("policy outside, no rule matches: drop"));
    // In the middle of a connection.
    let mut lab = fw::guarded(Lab::new());
    of_frame(&mut lab, 1, &fw::segment(true, tcp::RST, 7, 0).frame());
    // By both policies, and limits of rules are not used up.
    let limited = |action, limit| firewall::Rule {
        limit,
        ..fw::rule(action, &State::ALL, fw::to(None, fw::ANY))
    };
    lab.apply(vec![
        fw::set(
            "limited",
            vec![limited(Action::Accept, Some(1))],
            Action::Drop,
        ),
        fw::set("no", vec![limited(Action::Reject, None)], Action::Drop),
        fw::inbound(1, "limited"),
        fw::inbound(2, "no"),
        fw::attach(3, Direction::Output, Some("no")),
    ]);
    let question = Question {
        interface: "eth1".to_owned(),
        packet: Asked::Fields(to("48.0.0.1")),
    };
    for _ in 0..5 {
        let explained = ask(&mut lab, &question);
        assert_eq!(explained.outcomes[0].kind, Fate::Sent, "{explained}");
        let at = explained
            .steps
            .iter()
            .find(|step| step.node == "ip4-firewall")
            .unwrap();
        assert_eq!(
            at.why,
            ["policy limited, rule 0: accept, at most 1 a second"]
        );
    }
    let (explained, text) = told(&mut lab, ONE, to("10.0.3.2"));
    let at = explained
        .steps
        .iter()
        .find(|step| step.node == "ip4-firewall")
        .unwrap();
    assert_eq!(at.why.len(), 2, "{explained}");
    assert!(
        text.contains(
            "administratively prohibited: icmp error type 3 code 13; policy no, rule 0: reject."
        ),
        "{text}"
    );
    let mut lab = fw::guarded(Lab::new());
    lab.apply(vec![
        fw::set("no", vec![limited(Action::Reject, None)], Action::Drop),
        fw::inbound(1, "no"),
    ]);
    let opens = Fields {
        protocol: ip::TCP,
        ..to("48.0.0.1")
    };
    let (_, text) = told(&mut lab, ONE, opens);
    assert!(
        text.contains("answered by a TCP reset; policy no, rule 0: reject."),
        "{text}"
    );
    assert!(text.contains("The TCP reset leaves by eth1"), "{text}");
}

#[test]
fn tags_bonds_and_tunnels_are_passed() {
    let mut lab = bond::lab(1, router::change::Spread::Xor(router::bond::Headers::L34));
    let (explained, text) = told(&mut lab, ONE, to("51.0.0.1"));
    assert!(text.contains("VLAN 100."), "{text}");
    assert_eq!(explained.outcomes[0].vlans, [100]);
    assert!(
        explained
            .steps
            .iter()
            .any(|step| step.node == "bond-output")
    );
    let mut lab = vxlan::lab4();
    let frame = vxlan::frame(1, 100);
    let explained = of_frame(&mut lab, 3, &frame);
    assert!(
        explained
            .steps
            .iter()
            .any(|step| step.node == "vxlan-encap"),
        "{explained}"
    );
    let text = &explained.outcomes[0].text;
    assert_eq!(
        *text,
        format!("It leaves by eth2, to 10.0.2.2 at {}.", host_mac(2, 2))
    );
    let explained = of_frame(&mut lab, 2, &vxlan::packed(&frame));
    let text = &explained.outcomes[0].text;
    assert_eq!(*text, format!("It leaves by eth3, to {}.", host_mac(20, 9)));
    assert!(
        explained
            .steps
            .iter()
            .any(|step| step.node == "vxlan-input")
    );
}

/// Sub-interface 11 of interface 1, with VLAN 100.
fn with_tags() -> Lab {
    let mut lab = Lab::new();
    let mut changes = connected(11);
    changes[0] = Change::InterfaceSet(Interface {
        kind: Kind::Sub {
            parent: 1,
            tags: Tags::one(100),
            host: None,
        },
        ..interface(11)
    });
    for worker in &mut lab.router.workers {
        assert!(worker.command(graph::Command::Egress(11, 1)).is_ok());
    }
    lab.apply(changes);
    lab.apply(vec![neighbor(11, 2)]);
    lab
}

#[test]
fn a_sub_interface_has_its_tags() {
    let mut lab = with_tags();
    let from = || Fields {
        source: ip(11, 2),
        ..to("48.0.0.1")
    };
    let (explained, text) = told(&mut lab, (11, 1), from());
    assert!(text.starts_with("It leaves by eth2"), "{text}");
    assert_eq!(explained.interface, "eth1");
    assert!(explained.link.ends_with(", VLAN 100"), "{}", explained.link);
    let at = explained
        .steps
        .iter()
        .find(|step| step.node == "vlan-input")
        .unwrap();
    assert_eq!(at.why, ["comes in by eth11"]);
    let tagged = |vlans: &[u16]| Fields {
        vlans: vlans.to_vec(),
        destination_mac: Some(own_mac(11)),
        ..from()
    };
    let (_, text) = told(&mut lab, ONE, tagged(&[100]));
    assert!(text.starts_with("It leaves by eth2"), "{text}");
    let (explained, text) = told(
        &mut lab,
        ONE,
        Fields {
            destination_mac: None,
            ..tagged(&[7, 8])
        },
    );
    assert!(
        explained.link.ends_with(", VLANs 7, 8"),
        "{}",
        explained.link
    );
    assert!(text.contains("It is for the host"), "{text}");
    assert!(
        text.starts_with("No sub-interface of eth1 has these tags"),
        "{text}"
    );
    let (_, text) = told(&mut lab, (2, 2), to("10.0.11.2"));
    let mac = host_mac(11, 2);
    assert_eq!(
        text,
        format!("It leaves by eth11, to 10.0.11.2 at {mac}, VLAN 100.")
    );
    for (fields, interface) in [(tagged(&[7]), "eth11"), (to("::1"), "eth9")] {
        let question = Question {
            interface: interface.to_owned(),
            packet: Asked::Fields(fields),
        };
        let refused = explain(&lab.router, &question).unwrap_err().to_string();
        assert!(refused.contains(interface), "{refused}");
    }
    let mixed = Fields {
        source: ip6("::1"),
        ..from()
    };
    let question = |packet| Question {
        interface: "eth1".to_owned(),
        packet,
    };
    let refused = explain(&lab.router, &question(Asked::Fields(mixed)));
    assert_eq!(refused, Err(Refused::Families));
    let long = vec![0; graph::pool::MAX_PACKET + 1];
    let refused = explain(&lab.router, &question(Asked::Frame(long)));
    assert!(matches!(refused, Err(Refused::TooLong(_))));
}

#[test]
fn stations_are_looked_up_and_not_seen() {
    let mut lab = bridge::lab();
    let (one, two) = (bridge::station(1), bridge::station(2));
    let flooded = of_frame(&mut lab, 1, &bridge::frame(one, two));
    lab.router.unresolved();
    let ends = flooded.outcomes.iter().map(|end| end.interface.as_deref());
    let mut ends: Vec<_> = ends.collect();
    ends.sort();
    assert_eq!(ends, [Some("eth2"), Some("eth3")], "{flooded}");
    of_frame(&mut lab, 2, &bridge::frame(two, one));
    lab.router.unresolved();
    // A minute and more later, whoever is seen counts as young again.
    lab.router.age(100);
    lab.router.age(200);
    let known = of_frame(&mut lab, 1, &bridge::frame(one, two));
    let at = known
        .steps
        .iter()
        .find(|step| step.node == "l2-forward")
        .unwrap();
    assert_eq!(
        at.why,
        ["bridge domain bd7: station 02:aa:00:00:00:02 is behind eth2"]
    );
    assert_eq!(
        known.outcomes[0].text,
        "It leaves by eth2, to 02:aa:00:00:00:02."
    );
    let mut lab = bridge::with_bvi();
    // A host behind the bridge sends to the router, unless it is to one of its neighbors.
    lab.apply(vec![neighbor(5, 2)]);
    let from_host = |net: u8| Fields {
        source: ip(9, 2),
        ..to(&ip(net, 2).to_string())
    };
    let (_, text) = told(&mut lab, (1, 1), from_host(5));
    assert!(text.starts_with("It leaves by eth5, to "), "{text}");
    let (explained, _) = told(&mut lab, (1, 1), from_host(9));
    assert_eq!(bytes(&explained.frame)[..6], host_mac(9, 2).0);
    let mut lab = bridge::with_bvi();
    let packet = Packet::udp((addr(5, 2), 1), (addr(9, 2), 2)).macs(host_mac(5, 2), own_mac(5));
    of_frame(&mut lab, 5, &packet.frame());
    let mut lab = Lab::new();
    let cross = |id, to| {
        Change::InterfaceSet(Interface {
            l2: Some(L2::CrossConnect(to)),
            ..interface(id)
        })
    };
    lab.apply(vec![cross(1, 2), cross(2, 1)]);
    let crossed = of_frame(&mut lab, 1, &bridge::frame(one, two));
    assert_eq!(
        crossed.outcomes[0].text,
        "It leaves by eth2, to 02:aa:00:00:00:02."
    );
}

#[test]
fn the_text_is_the_way_and_ends_with_a_sentence() {
    let mut lab = Lab::new();
    let (explained, _) = told(&mut lab, ONE, to("60.0.0.1"));
    let text = explained.to_string();
    let expected = "\
UDP 10.0.1.2:1025 -> 60.0.0.1:12, length 28, ttl 64
  comes in by eth1, from 02:00:00:00:01:02 to 02:fe:00:00:00:01

eth1-rx
ethernet-input
ip4-input
ip4-lookup
  no route
icmp4-error
  no route: icmp error type 3 code 0
";
    assert!(text.starts_with(expected), "{text}");
    assert!(
        text.ends_with("\nThe ICMP error leaves by eth1, to 10.0.1.2 at 02:00:00:00:01:02.\n"),
        "{text}"
    );
}
