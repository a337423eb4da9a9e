//! Bridge domains: what is learned, what is forwarded and flooded, and the domain's own interface.

use std::collections::HashMap;

use router::l2::show;
use router::{ArpRequests, BridgeDomain, Change, Interface, Kind, L2, Tags};
use tables::random::Random;
use wire::craft::Packet;

use crate::harness::*;

const DOMAIN: u16 = 7;
/// The domain's own interface, with network 10.0.9.0/24.
const BVI: u16 = 9;
/// No interface sent anything.
const NOBODY: [u16; 0] = [];
const BROADCAST: [u8; 6] = [0xff; 6];

pub fn domain() -> BridgeDomain {
    BridgeDomain {
        id: DOMAIN,
        name: "bd7".into(),
        learn: true,
        flood: true,
        unknown_flood: true,
        forward: true,
        bvi: None,
        age_minutes: None,
        limit: None,
        arp: ArpRequests::Flood,
    }
}

pub fn member(id: u16) -> Change {
    Change::InterfaceSet(Interface {
        l2: Some(L2::Bridge(DOMAIN)),
        ..interface(id)
    })
}

/// Interfaces 1 to 3 in the domain, and 5, which is not.
pub fn lab() -> Lab {
    let mut lab = Lab::new();
    lab.plug(5, 0);
    lab.apply(vec![Change::BridgeSet(domain())]);
    lab.apply((1..=3).map(member).collect());
    lab.apply(connected(5));
    lab
}

/// The address of station `n`.
pub fn station(n: u8) -> [u8; 6] {
    [2, 0xaa, 0, 0, 0, n]
}

pub fn frame(from: [u8; 6], to: [u8; 6]) -> Vec<u8> {
    [&to[..], &from, &[0x88, 0xb5], &[7; 46]].concat()
}

impl Lab {
    /// Receives a frame at an interface, and learns from it. The interfaces of 1 to 3 that sent it
    /// on as it came.
    fn bridged(&mut self, at: u16, frame: &[u8]) -> Vec<u16> {
        self.receive(at, [frame.to_vec()]);
        assert!(self.router.unresolved().is_empty());
        let sent = (1..=3).map(|id| (id, self.sent(id)));
        let sent = sent.filter(|(_, frames)| !frames.is_empty());
        let sent = sent.map(|(id, frames)| {
            assert_eq!(frames, [frame], "{id}");
            id
        });
        sent.collect()
    }
}

#[test]
fn frames_go_where_their_destination_was_seen() {
    let mut lab = lab();
    let (a, b) = (station(1), station(2));
    assert_eq!(lab.bridged(1, &frame(a, b)), [2, 3], "nobody knows b");
    assert_eq!(lab.bridged(2, &frame(b, a)), [1]);
    assert_eq!(lab.bridged(1, &frame(a, b)), [2]);
    assert_eq!(lab.bridged(3, &frame(station(3), BROADCAST)), [1, 2]);
    assert_eq!(lab.bridged(2, &frame(b, [1, 0, 0x5e, 0, 0, 1])), [1, 3]);
    // It has moved.
    assert_eq!(lab.bridged(3, &frame(b, a)), [1]);
    assert_eq!(lab.bridged(1, &frame(a, b)), [3]);
    assert_eq!(lab.bridged(3, &frame(station(3), b)), NOBODY);
    assert_eq!(lab.edge("l2-forward", "SameInterface"), 1);
    assert_eq!(lab.bridged(1, &frame([3, 0, 0, 0, 0, 1], b)), NOBODY);
    assert_eq!(lab.bridged(1, &frame([0; 6], b)), NOBODY);
    assert_eq!(lab.edge("l2-forward", "BadSource"), 2);
    // Who is in no domain sees nothing of it.
    assert_eq!(lab.sent(5), Vec::<Vec<u8>>::new());
    lab.check_buffers(0);
}

/// Any frames between any stations, which move, by a table that learns from each.
#[test]
fn as_a_table_that_learns() {
    for workers in [1, 2, 3] {
        let mut lab = Lab::sized(workers, 64).wired();
        lab.apply(vec![Change::BridgeSet(domain())]);
        lab.apply((1..=3).map(member).collect());
        let mut random = Random::new(0x6c66);
        let mut oracle: HashMap<[u8; 6], u16> = HashMap::new();
        for second in 0..2000 {
            // A worker tells of a station where it was before after a second.
            lab.router.age(second);
            let at = 1 + random.below(3) as u16;
            let from = station(random.below(20) as u8);
            let to = match random.below(8) {
                0 => BROADCAST,
                _ => station(random.below(20) as u8),
            };
            // The table learns with the frame, the router behind it: what is sent to itself is
            // looked up where it was before.
            let known = oracle.get(&to).filter(|_| to != from).copied();
            oracle.insert(from, at);
            let is_wanted = |id: &u16| *id != at && known.is_none_or(|known| known == *id);
            let want: Vec<u16> = (1..=3).filter(is_wanted).collect();
            let sent = lab.bridged(at, &frame(from, to));
            assert!(
                sent == want || from == to,
                "{from:?} to {to:?} at {at}: {sent:?}"
            );
        }
        lab.check_buffers(0);
    }
}

#[test]
fn tags_are_taken_out_and_put_in() {
    let mut lab = lab();
    let tagged = |tags: &[u8], frame: &[u8]| [&frame[..12], tags, &frame[12..]].concat();
    for sub in [
        (11, 1, Tags::one(100)),
        (12, 2, Tags::two(200, 300).with_service()),
    ] {
        lab.sub(sub, Some(L2::Bridge(DOMAIN)));
    }
    let broadcast = frame(station(1), BROADCAST);
    lab.receive(1, [tagged(&[0x81, 0, 0, 100], &broadcast)]);
    assert!(lab.router.unresolved().is_empty());
    // To its own parent, too: that is another interface.
    assert_eq!(lab.sent(1), [&*broadcast]);
    let two = [0x88, 0xa8, 0, 200, 0x81, 0, 1, 44];
    let mut sent = lab.sent(2);
    sent.sort_by_key(Vec::len);
    assert_eq!(sent, [broadcast.clone(), tagged(&two, &broadcast)]);
    assert_eq!(lab.sent(3), [&*broadcast]);
    let back = frame(station(2), station(1));
    lab.receive(2, [tagged(&two, &back)]);
    assert_eq!(lab.sent(1), [tagged(&[0x81, 0, 0, 100], &back)]);
    let bytes = broadcast.len() as u64;
    let [one, two] = [bytes + 4, bytes + 8];
    assert_eq!(lab.counted(11)[..4], [1, one, 1, one]);
    assert_eq!(lab.counted(12)[..4], [1, two, 1, two]);
    lab.check_buffers(0);
}

#[test]
fn a_domain_does_what_it_is_told() {
    let mut lab = lab();
    let (a, b) = (station(1), station(2));
    let set = |lab: &mut Lab, domain| lab.apply(vec![Change::BridgeSet(domain)]);
    let no_learn = BridgeDomain {
        learn: false,
        ..domain()
    };
    set(&mut lab, no_learn);
    assert_eq!(lab.bridged(1, &frame(a, b)), [2, 3]);
    assert_eq!(lab.bridged(2, &frame(b, a)), [1, 3]);
    let no_unknown = BridgeDomain {
        unknown_flood: false,
        ..domain()
    };
    set(&mut lab, no_unknown);
    assert_eq!(lab.bridged(1, &frame(a, b)), NOBODY);
    assert_eq!(lab.edge("l2-forward", "Unknown"), 1);
    assert_eq!(lab.bridged(1, &frame(a, BROADCAST)), [2, 3]);
    let no_flood = BridgeDomain {
        flood: false,
        ..domain()
    };
    set(&mut lab, no_flood);
    assert_eq!(lab.bridged(2, &frame(b, BROADCAST)), NOBODY);
    assert_eq!(lab.edge("l2-forward", "NoFlood"), 1);
    assert_eq!(lab.bridged(2, &frame(b, a)), [1]);
    let no_forward = BridgeDomain {
        forward: false,
        ..domain()
    };
    set(&mut lab, no_forward);
    assert_eq!(lab.bridged(2, &frame(b, a)), NOBODY);
    assert_eq!(lab.edge("l2-forward", "NoForward"), 1);
    let limited = BridgeDomain {
        limit: Some(2),
        ..domain()
    };
    set(&mut lab, limited);
    assert_eq!(lab.bridged(3, &frame(station(3), a)), [1]);
    assert_eq!(lab.bridged(1, &frame(a, station(3))), [2, 3], "not learned");
    // One that is known may move.
    assert_eq!(lab.bridged(3, &frame(b, a)), [1]);
    assert_eq!(lab.bridged(1, &frame(a, b)), [3]);
}

#[test]
fn stations_are_forgotten_that_are_not_seen() {
    let mut lab = lab();
    let (a, b) = (station(1), station(2));
    let aging = BridgeDomain {
        age_minutes: Some(5),
        ..domain()
    };
    lab.apply(vec![Change::BridgeSet(aging)]);
    let at = |lab: &mut Lab, now| lab.router.age(now);
    at(&mut lab, 1000);
    assert_eq!(lab.bridged(1, &frame(a, BROADCAST)), [2, 3]);
    assert_eq!(lab.bridged(2, &frame(b, BROADCAST)), [1, 3]);
    at(&mut lab, 1200);
    assert_eq!(lab.bridged(1, &frame(a, b)), [2]);
    at(&mut lab, 1299);
    assert_eq!(lab.bridged(1, &frame(a, b)), [2]);
    at(&mut lab, 1300);
    assert_eq!(lab.bridged(1, &frame(a, b)), [2, 3], "b was seen at 1000");
    assert_eq!(lab.bridged(3, &frame(station(3), a)), [1], "a at 1300");
}

#[test]
fn who_leaves_is_forgotten() {
    let mut lab = lab();
    let (a, b) = (station(1), station(2));
    lab.bridged(1, &frame(a, BROADCAST));
    lab.bridged(2, &frame(b, BROADCAST));
    let down = Interface {
        up: false,
        l2: Some(L2::Bridge(DOMAIN)),
        ..interface(2)
    };
    lab.apply(vec![Change::InterfaceSet(down)]);
    assert_eq!(lab.bridged(1, &frame(a, b)), NOBODY);
    assert_eq!(lab.edge("l2-forward", "OtherDown"), 1);
    assert_eq!(lab.bridged(1, &frame(a, BROADCAST)), [3]);
    lab.apply(vec![Change::InterfaceSet(interface(2))]);
    assert_eq!(lab.bridged(1, &frame(a, b)), [3], "it is unknown now");
    lab.apply(vec![Change::InterfaceDelete(3)]);
    assert_eq!(lab.bridged(1, &frame(a, b)), NOBODY);
    assert_eq!(lab.edge("l2-flood", "Nobody"), 1);
    lab.apply(vec![member(2), Change::BridgeDelete(DOMAIN)]);
    assert_eq!(lab.bridged(1, &frame(a, b)), NOBODY);
    assert_eq!(lab.edge("l2-forward", "NotMember"), 1);
    // It is made again, with nothing learned.
    lab.apply(vec![Change::BridgeSet(domain())]);
    assert_eq!(lab.bridged(2, &frame(b, a)), [1]);
    let reader = lab.workers[0].context().interfaces.clone();
    lab.apply(vec![Change::InterfaceSet(interface(1))]);
    assert_eq!(reader.load(1).l2(), None);
}

#[test]
fn frames_that_do_not_fit_are_dropped() {
    let mut lab = lab();
    let long = |to| [frame(station(1), to), vec![0; 1455]].concat();
    assert_eq!(lab.bridged(1, &long(BROADCAST)), NOBODY);
    assert_eq!(lab.edge("l2-flood", "TooLong"), 2);
    lab.bridged(2, &frame(station(2), BROADCAST));
    assert_eq!(lab.bridged(1, &long(station(2))), NOBODY);
    assert_eq!(lab.edge("l2-forward", "TooLong"), 1);
    lab.check_buffers(0);
}

/// The domain with its own interface, which has a host interface: 8.
pub fn with_bvi() -> Lab {
    let mut lab = lab();
    lab.plug(8, 0);
    let host = Interface {
        kind: Kind::Host { of: BVI },
        ..interface(8)
    };
    lab.apply(connected(BVI));
    lab.apply(vec![
        Change::InterfaceSet(host),
        Change::InterfaceSet(Interface {
            kind: Kind::Routed { host: Some(8) },
            ..interface(BVI)
        }),
        neighbor(BVI, 2),
        Change::BridgeSet(BridgeDomain {
            bvi: Some(BVI),
            ..domain()
        }),
    ]);
    lab
}

#[test]
fn a_domain_is_routed_by_its_own_interface() {
    let mut lab = with_bvi();
    let out = |lab: &mut Lab| {
        let packet = Packet::udp((addr(5, 2), 1), (addr(9, 2), 2)).macs(host_mac(5, 2), own_mac(5));
        lab.receive(5, [packet.frame()]);
        let want = forwarded(&packet.frame(), BVI, 2);
        let sent = (1..=3).map(|id| (id, lab.sent(id)));
        let sent: Vec<_> = sent.filter(|(_, frames)| !frames.is_empty()).collect();
        assert!(sent.iter().all(|(_, frames)| *frames == [&*want]));
        sent.into_iter().map(|(id, _)| id).collect::<Vec<_>>()
    };
    assert_eq!(out(&mut lab), [1, 2, 3], "nobody knows the host");
    let back = Packet::udp((addr(9, 2), 1), (addr(5, 2), 2)).macs(host_mac(9, 2), own_mac(9));
    lab.apply(vec![neighbor(5, 2)]);
    assert_eq!(lab.bridged(2, &back.frame()), NOBODY);
    assert_eq!(lab.sent(5), [forwarded(&back.frame(), 5, 2)]);
    assert_eq!(out(&mut lab), [2]);
    // What the host sends and is sent passes the domain, too.
    let ask = frame(host_mac(9, 2).0, BROADCAST);
    assert_eq!(lab.bridged(2, &ask), [1, 3]);
    assert_eq!(lab.sent(8), [&*ask]);
    let answer = frame(own_mac(9).0, host_mac(9, 2).0);
    lab.receive(8, [answer.clone()]);
    assert_eq!(lab.sent(2), [&*answer]);
    // Two to the host behind it and one of its own; one from there and one of the host's.
    let bytes = lab.counted(BVI);
    assert_eq!((bytes[0], bytes[2]), (2, 3), "{bytes:?}");
    assert_eq!(bytes[1], (back.frame().len() + ask.len()) as u64);
    // Nobody else is the router.
    assert_eq!(lab.bridged(3, &frame(own_mac(9).0, BROADCAST)), NOBODY);
    assert_eq!(lab.edge("l2-forward", "Moved"), 1);
    lab.check_buffers(0);
}

#[test]
fn the_own_interface_of_a_domain_changes() {
    let mut lab = with_bvi();
    let to_router = |mac: [u8; 6]| frame(station(1), mac);
    assert_eq!(lab.bridged(1, &to_router(own_mac(9).0)), NOBODY);
    assert_eq!(lab.edge("l2-forward", "Bvi"), 1);
    let other = [2, 0xfe, 0, 0, 1, 9];
    lab.apply(vec![Change::InterfaceSet(Interface {
        mac: router::Mac(other),
        ..interface(BVI)
    })]);
    assert_eq!(lab.bridged(1, &to_router(other)), NOBODY);
    assert_eq!(lab.edge("l2-forward", "Bvi"), 2);
    assert_eq!(lab.bridged(1, &to_router(own_mac(9).0)), [2, 3]);
    lab.apply(vec![Change::BridgeSet(domain())]);
    assert_eq!(lab.bridged(1, &to_router(other)), [2, 3]);
    let reader = lab.workers[0].context().interfaces.clone();
    let features = reader.load(BVI).features();
    assert_eq!(
        (reader.load(BVI).l2(), features.interface_output),
        (None, 0)
    );
}

#[test]
fn an_own_interface_out_of_range_is_refused() {
    let refused = lab().router.apply(vec![Change::BridgeSet(BridgeDomain {
        bvi: Some(999),
        ..domain()
    })]);
    assert!(refused.unwrap_err().to_string().contains("interface 999"));
}

/// What operators see of a domain with a sub-interface, its own interface, and a station.
#[test]
fn domains_stations_and_modes_are_shown() {
    let mut lab = lab();
    let sub = Interface {
        l2: Some(L2::Bridge(DOMAIN)),
        name: "x1.5".into(),
        kind: Kind::Sub {
            parent: 5,
            tags: Tags::one(5),
            host: None,
        },
        ..interface(6)
    };
    let own = Interface {
        name: "loop0".into(),
        ..interface(BVI)
    };
    let crossed = Interface {
        l2: Some(L2::CrossConnect(5)),
        ..interface(3)
    };
    lab.apply(vec![
        Change::BridgeSet(BridgeDomain {
            bvi: Some(BVI),
            age_minutes: Some(2),
            unknown_flood: false,
            limit: Some(100),
            ..domain()
        }),
        Change::InterfaceSet(own),
        Change::InterfaceSet(sub),
        Change::InterfaceSet(crossed),
    ]);
    lab.router.age(1000);
    lab.bridged(1, &frame(station(1), BROADCAST));
    lab.router.age(1119);
    let all = show::bridge_domains(&lab.router, None, false).unwrap();
    assert_eq!(
        all.to_string(),
        "  BD-ID   Index  Age(min)  Learning  U-Forwrd  UU-Flood  Flooding  Learn-co  Learn-li   BVI-Intf\n    7       7        2        on        on       drop       on         1        100       loop0\n"
    );
    let json = serde_json::to_value(&all).unwrap();
    let members = json["bridge_domains"][0]["members"].as_array().unwrap();
    let members = members
        .iter()
        .map(|m| (&m["interface"], &m["bvi"], &m["tags"]));
    let members: Vec<String> = members.map(|(i, b, t)| format!("{i} {b} {t}")).collect();
    assert_eq!(members[0], "\"loop0\" true 0");
    assert_eq!(members[3], "\"x1.5\" false 1");
    for which in ["7", "bd7"] {
        let one = show::bridge_domains(&lab.router, Some(which), true).unwrap();
        let text = one.to_string();
        let line = text.lines().find(|line| line.contains("x1.5")).unwrap();
        let words: Vec<_> = line.split_whitespace().collect();
        assert_eq!(words, ["x1.5", "6", "-", "*", "pop-1"]);
    }
    let none = show::bridge_domains(&lab.router, Some("8"), false).unwrap_err();
    assert!(
        none.to_string().starts_with("no bridge domain 8; "),
        "{none}"
    );
    let text = show::l2fib(&lab.router, true).to_string();
    let line = text
        .lines()
        .find(|line| line.contains("02:aa:00:00:00:01"))
        .unwrap();
    let words: Vec<_> = line.split_whitespace().collect();
    let name = interface(1).name;
    assert_eq!(words, ["02:aa:00:00:00:01", "7", "1", "1", "-", "-", &name]);
    assert!(
        text.contains("total/learned entries: 2/1  Learn limit: 65536"),
        "{text}"
    );
    let brief = show::l2fib(&lab.router, false).to_string();
    assert_eq!(brief.lines().count(), 1, "{brief}");
    let modes = show::modes(&lab.router).to_string();
    let mode = |of: &str| {
        let mut lines = modes.lines().map(str::split_whitespace);
        let line = lines
            .find(|line| line.clone().any(|word| word == of))
            .unwrap();
        line.collect::<Vec<_>>().join(" ")
    };
    assert_eq!(mode("loop0"), "l2 bridge loop0 bd_id 7 bvi");
    assert_eq!(mode("x1.5"), "l2 bridge x1.5 bd_id 7");
    let (third, fifth) = (interface(3).name, interface(5).name);
    assert_eq!(mode(&third), format!("l2 xconnect {third} {fifth}"));
    assert_eq!(
        mode(&interface(4).name.replace('4', "2")),
        format!("l2 bridge {} bd_id 7", interface(2).name)
    );
}

/// What an operator looks at when there is a loop.
#[test]
fn floods_moves_and_what_is_not_learned_are_counted() {
    let mut lab = lab();
    lab.apply(vec![Change::BridgeSet(BridgeDomain {
        limit: Some(2),
        ..domain()
    })]);
    let counters = |lab: &Lab| {
        let shown = show::bridge_domains(&lab.router, None, true).unwrap();
        let json = serde_json::to_value(&shown).unwrap()["bridge_domains"][0].take();
        (shown.to_string(), json["counters"].clone())
    };
    lab.router.age(1);
    let (a, b) = (station(1), station(2));
    lab.bridged(1, &frame(a, BROADCAST));
    lab.bridged(2, &frame(b, [1, 0, 0x5e, 0, 0, 1]));
    lab.bridged(3, &frame(station(3), station(9)));
    // Known unicast counts nothing.
    lab.bridged(1, &frame(a, b));
    for _ in 0..15 {
        lab.bridged(3, &frame(a, b));
        lab.bridged(1, &frame(a, b));
    }
    let (text, json) = counters(&lab);
    let wanted = serde_json::json!({
        "flooded_broadcast": 1, "flooded_multicast": 1, "flooded_unknown": 1,
        "moves": 30, "not_learned": 1, "learns_lost": 0,
    });
    assert_eq!(json, wanted);
    assert!(
        text.contains("flooded: 1 broadcast, 1 multicast, 1 to unknown stations"),
        "{text}"
    );
    assert!(
        text.contains("stations: 30 moves, 1 times not learned"),
        "{text}"
    );
    assert!(show::loops(&mut lab.router, 2).is_empty(), "too soon");
    let told = show::loops(&mut lab.router, 11);
    let (first, third) = (interface(1).name, interface(3).name);
    let line = format!(
        "bridge domain bd7: 02:aa:00:00:00:01 moved 30 times in 10 s, last from {third} to {first}: \
         look for a loop between these, or two stations of this address"
    );
    assert_eq!(
        told.iter().map(ToString::to_string).collect::<Vec<_>>(),
        [line]
    );
    assert!(show::loops(&mut lab.router, 21).is_empty(), "it is over");
    lab.check_buffers(0);
}

/// As many as wait for the control thread are learned from a burst, the others from their next frame.
#[test]
fn what_a_burst_does_not_tell_is_counted_and_told_again() {
    const BURST: u16 = 1500;
    let mut lab = lab();
    let (broadcast, sender) = ([0xff; 6], |n: u16| {
        let [a, b] = n.to_be_bytes();
        [2, 0xbb, 0, 0, a, b]
    });
    lab.router.age(1);
    let mut burst = || {
        let frames = (0..BURST).map(|n| frame(sender(n), broadcast));
        // Frames are taken in without a look at what they tell.
        for frames in frames.collect::<Vec<_>>().chunks(100) {
            lab.receive(1, frames.to_vec());
            lab.sent(2);
            lab.sent(3);
        }
        lab.router.unresolved();
        let shown = show::bridge_domains(&lab.router, None, true).unwrap();
        let row = &shown.bridge_domains[0];
        (row.learned as u64, row.counters.learns_lost)
    };
    let (learned, lost) = burst();
    assert!(lost > 0, "{learned}");
    assert_eq!(learned + lost, u64::from(BURST));
    // Told again: nothing more is lost.
    let (all, still) = burst();
    assert_eq!((all, still), (u64::from(BURST), lost));
}

#[test]
fn a_trace_says_where_a_bridged_frame_goes_and_why() {
    let mut lab = with_bvi();
    let (a, b) = (station(1), station(2));
    lab.bridged(1, &frame(a, b));
    lab.bridged(2, &frame(b, a));
    lab.router.trace_add("l2-forward", 4).unwrap();
    lab.bridged(1, &frame(a, b));
    lab.bridged(1, &frame(a, station(9)));
    lab.bridged(1, &frame(a, [0xff; 6]));
    let text = show::modes(&lab.router).to_string();
    let trace = router::show::trace(&lab.router).to_string();
    for said in [
        "bridge domain bd7: station 02:aa:00:00:00:02 is behind eth2",
        "bridge domain bd7: station 02:aa:00:00:00:09 is not known: to all members",
        "bridge domain bd7: ff:ff:ff:ff:ff:ff: to all members",
    ] {
        assert!(trace.contains(said), "{trace}\n{text}");
    }
}
