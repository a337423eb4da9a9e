//! Access lists: what an interface lets in and out, by rule.

use std::net::IpAddr;
use std::ops::RangeInclusive;

use router::acl::{Direction, Packets, Rule, show};
use router::{Change, Family, Ip};
use tables::prefix::Prefix;
use tables::random::Random;
use wire::craft::Packet;
use wire::ip;

use crate::harness::*;
use crate::ip6_nodes;

const ANY: RangeInclusive<u16> = 0..=u16::MAX;

fn matches<A: Ip>(
    source: &str,
    destination: &str,
    protocol: impl Into<Option<u8>>,
    ports: [RangeInclusive<u16>; 2],
) -> tables::acl::Rule<A> {
    let prefix = |text: &str| -> Prefix<A> {
        match text {
            "any" => Prefix::DEFAULT,
            text => text.parse().unwrap(),
        }
    };
    let [source_ports, destination_ports] = ports;
    tables::acl::Rule {
        source: prefix(source),
        destination: prefix(destination),
        protocol: protocol.into(),
        source_ports,
        destination_ports,
    }
}

pub fn rule4(permit: bool, protocol: Option<u8>, ports: [RangeInclusive<u16>; 2]) -> Rule {
    Rule {
        permit,
        packets: Packets::V4(matches("any", "any", protocol, ports)),
    }
}

pub fn rule6(permit: bool, protocol: Option<u8>, ports: [RangeInclusive<u16>; 2]) -> Rule {
    Rule {
        permit,
        packets: Packets::V6(matches("any", "any", protocol, ports)),
    }
}

pub fn set(name: &str, rules: Vec<Rule>) -> Change {
    let name = name.to_owned();
    Change::AclSet { name, rules }
}

pub fn attach(interface: u16, direction: Direction, acls: &[&str]) -> Change {
    Change::AclsAttach {
        interface,
        direction,
        acls: acls.iter().map(|name| (*name).to_owned()).collect(),
    }
}

fn to_port(port: u16) -> Packet {
    Packet::udp((addr(1, 2), 1025), (FAR, port)).macs(host_mac(1, 2), own_mac(1))
}

fn hits(lab: &Lab, name: &str) -> Vec<u64> {
    let shown = show::acls(&lab.router, Some(name)).unwrap();
    shown.acls[0].rules.iter().map(|rule| rule.hits).collect()
}

#[test]
fn the_first_rule_that_matches_decides() {
    let mut lab = Lab::new();
    let rules = vec![
        rule4(false, Some(ip::UDP), [ANY, 53..=53]),
        rule4(true, Some(ip::UDP), [ANY, 50..=60]),
        rule4(false, Some(ip::UDP), [ANY, 54..=54]),
    ];
    lab.apply(vec![set("a", rules), attach(1, Direction::Input, &["a"])]);
    lab.takes(to_port(53).frame(), "ip4-acl-in", "Denied");
    lab.takes(to_port(54).frame(), "ip4-acl-in", "Permitted");
    lab.takes(to_port(61).frame(), "ip4-acl-in", "Unmatched");
    assert_eq!(lab.sent(2), [forwarded(&to_port(54).frame(), 2, 2)]);
    assert_eq!(hits(&lab, "a"), [1, 1, 0]);
    // The trace says which rule it was.
    lab.router.trace_add("eth1-rx", 3).unwrap();
    lab.receive(1, [53, 54, 61].map(|port| to_port(port).frame()));
    let shown = router::show::trace(&lab.router);
    let judged = shown.threads[0].packets.iter().map(|packet| {
        let mut steps = packet.steps.iter();
        &*steps.find(|step| step.node == "ip4-acl-in").unwrap().text[0]
    });
    assert_eq!(
        judged.collect::<Vec<_>>(),
        [
            "acl a, rule 0: deny",
            "acl a, rule 1: permit",
            "no rule of the access lists matches"
        ]
    );
    assert_eq!(lab.sent(2).len(), 1);
    // What comes in elsewhere is not asked.
    let elsewhere = to_port(53).macs(host_mac(3, 2), own_mac(3));
    lab.receive(3, [elsewhere.frame()]);
    assert_eq!(lab.sent(2).len(), 1);
}

#[test]
fn what_leaves_is_asked_by_the_interface_that_it_leaves_by() {
    let mut lab = ip6_nodes::lab();
    let rules = vec![
        rule4(false, Some(ip::UDP), [ANY, 12..=12]),
        rule6(false, Some(ip::UDP), [ANY, 13..=13]),
        rule6(true, None, [ANY, ANY]),
    ];
    lab.apply(vec![set("a", rules), attach(2, Direction::Output, &["a"])]);
    lab.takes(udp(FAR).frame(), "ip4-acl-out", "Denied");
    lab.takes(to_port(13).frame(), "ip4-acl-out", "Unmatched");
    lab.takes(ip6_nodes::good().frame(), "ip6-acl-out", "Permitted");
    assert_eq!(lab.sent(2).len(), 1);
    // By another interface.
    lab.receive(1, [udp(addr(3, 2)).frame()]);
    assert_eq!(lab.sent(3).len(), 1);
    assert_eq!(hits(&lab, "a"), [1, 0, 1]);
}

#[test]
fn later_fragments_match_no_rule_with_ports() {
    let mut lab = ip6_nodes::lab();
    let rules = vec![
        rule4(false, Some(ip::UDP), [ANY, 12..=12]),
        rule4(true, Some(ip::UDP), [ANY, ANY]),
        rule6(false, Some(ip::UDP), [ANY, 12..=12]),
        rule6(true, Some(ip::UDP), [ANY, ANY]),
    ];
    lab.apply(vec![set("a", rules), attach(1, Direction::Input, &["a"])]);
    lab.takes(udp(FAR).fragment(0x2000).frame(), "ip4-acl-in", "Denied");
    lab.takes(udp(FAR).fragment(0x2001).frame(), "ip4-acl-in", "Permitted");
    let piece = |high, low| ip6_nodes::good().extension(ip::FRAGMENT, &[0, high, low, 0, 0, 0, 9]);
    lab.takes(piece(0, 1).frame(), "ip6-acl-in", "Denied");
    lab.takes(piece(5, 1).frame(), "ip6-acl-in", "Permitted");
}

#[test]
fn extension_headers_are_read_past_and_options_too() {
    let mut lab = ip6_nodes::lab();
    let rules = vec![
        rule4(false, Some(ip::UDP), [ANY, 12..=12]),
        rule6(false, Some(ip::UDP), [ANY, 12..=12]),
    ];
    lab.apply(vec![set("a", rules), attach(1, Direction::Input, &["a"])]);
    let options = udp(FAR).options(&[7, 3, 4, 0]);
    lab.takes(options.frame(), "ip4-acl-in", "Denied");
    let padding = [0, 1, 4, 0, 0, 0, 0];
    let behind = ip6_nodes::good().extension(ip::DESTINATION_OPTIONS, &padding);
    lab.takes(behind.frame(), "ip6-acl-in", "Denied");
    // Cut off before its ports.
    let short = Packet::raw(addr(1, 2), FAR, ip::UDP).payload(&[0, 9, 0]);
    let short = short.macs(host_mac(1, 2), own_mac(1)).packet();
    let header = [&own_mac(1).0[..], &host_mac(1, 2).0, &[8, 0]].concat();
    lab.takes([header, short].concat(), "ip4-acl-in", "Unmatched");
}

#[test]
fn icmp_is_matched_by_type_and_code() {
    let mut lab = ip6_nodes::lab();
    let rules = vec![
        rule4(true, Some(ip::ICMP), [8..=8, 0..=0]),
        rule6(true, Some(ip::ICMP6), [128..=128, ANY]),
    ];
    lab.apply(vec![set("a", rules), attach(1, Direction::Input, &["a"])]);
    let icmp = |kind, code| {
        let packet = Packet::icmp(addr(1, 2), FAR, kind, code, 0);
        packet.macs(host_mac(1, 2), own_mac(1)).frame()
    };
    lab.takes(icmp(8, 0), "ip4-acl-in", "Permitted");
    lab.takes(icmp(8, 1), "ip4-acl-in", "Unmatched");
    lab.takes(icmp(13, 0), "ip4-acl-in", "Unmatched");
    let [near, far] = [ip6_nodes::NEAR, ip6_nodes::FAR].map(ip6_nodes::address);
    let request = Packet::echo_request6(near, far, 1, 2).macs(host_mac(1, 2), own_mac(1));
    lab.takes(request.frame(), "ip6-acl-in", "Permitted");
}

#[test]
fn lists_stand_in_order_and_change_while_packets_pass() {
    let mut lab = Lab::new();
    let udp_at = |permit, port| rule4(permit, Some(ip::UDP), [ANY, port..=port]);
    lab.apply(vec![
        set("first", vec![udp_at(false, 1), udp_at(true, 2)]),
        set("second", vec![udp_at(true, 1), udp_at(true, 3)]),
        attach(1, Direction::Input, &["first", "second"]),
        attach(3, Direction::Input, &["first", "second"]),
    ]);
    let passes = |lab: &mut Lab| -> Vec<u16> {
        let passed = (1..=3).filter(|port| {
            lab.receive(1, [to_port(*port).frame()]);
            !lab.sent(2).is_empty()
        });
        passed.collect()
    };
    assert_eq!(passes(&mut lab), [2, 3]);
    lab.apply(vec![attach(1, Direction::Input, &["second", "first"])]);
    assert_eq!(passes(&mut lab), [1, 2, 3]);
    // Rules that stay the same count on, others from 0.
    lab.apply(vec![
        set("first", vec![udp_at(false, 1), udp_at(true, 2)]),
        set("second", vec![udp_at(true, 3)]),
    ]);
    assert_eq!(hits(&lab, "first"), [1, 2]);
    assert_eq!(hits(&lab, "second"), [0]);
    assert_eq!(passes(&mut lab), [2, 3]);
    // A list that is gone permits nothing.
    lab.apply(vec![Change::AclDelete("first".into())]);
    assert_eq!(passes(&mut lab), [3]);
    // They outlast the interface.
    lab.apply(vec![Change::InterfaceDelete(1)]);
    lab.apply(connected(1));
    assert_eq!(passes(&mut lab), [3]);
    lab.apply(vec![attach(1, Direction::Input, &[])]);
    assert_eq!(passes(&mut lab), [1, 2, 3]);
    lab.apply(vec![attach(1, Direction::Input, &["second"])]);
    assert_eq!(passes(&mut lab), [3]);
    lab.apply(vec![Change::FeaturesDelete(1)]);
    assert_eq!(passes(&mut lab), [1, 2, 3]);
    let shown = show::acls(&lab.router, None).unwrap();
    assert_eq!(shown.acls[0].bound.input, ["eth3"]);
    lab.check_buffers(0);
}

#[test]
fn operators_see_rules_hits_and_interfaces() {
    let mut lab = Lab::new();
    let rules = vec![
        Rule {
            permit: false,
            packets: Packets::V4(matches(
                "10.0.1.0/24",
                "48.0.0.0/8",
                ip::UDP,
                [ANY, 12..=13],
            )),
        },
        Rule {
            permit: true,
            packets: Packets::V6(matches("any", "2001:db8::/32", None, [ANY, ANY])),
        },
    ];
    lab.apply(vec![
        set("edge", rules),
        set("empty", vec![]),
        attach(1, Direction::Input, &["edge"]),
        attach(2, Direction::Input, &["edge"]),
        attach(3, Direction::Output, &["edge", "empty"]),
    ]);
    lab.receive(1, [udp(FAR).frame(), udp(FAR).frame()]);
    let shown = show::acls(&lab.router, None).unwrap().to_string();
    assert_eq!(
        shown,
        "acl edge count 2
          0: ipv4 deny src 10.0.1.0/24 dst 48.0.0.0/8 proto 17 sport 0-65535 dport 12-13 hits 2
          1: ipv6 permit src ::/0 dst 2001:db8::/32 proto any sport 0-65535 dport 0-65535 hits 0
  applied inbound on: eth1, eth2
  applied outbound on: eth3
acl empty count 0
  applied outbound on: eth3
"
    );
    let none = show::acls(&lab.router, Some("other")).unwrap_err();
    assert_eq!(
        none.to_string(),
        "no access list other; `show acl` lists those that there are"
    );
}

/// A packet as the oracle sees it.
struct Seen {
    source: IpAddr,
    destination: IpAddr,
    protocol: u8,
    ports: (u16, u16),
}

/// Whether the first rule that matches permits a packet.
fn permits(rules: &[Rule], seen: &Seen) -> bool {
    fn is<A: Ip>(rule: &tables::acl::Rule<A>, seen: &Seen) -> bool {
        let within =
            |prefix: Prefix<A>, ip: IpAddr| A::of(ip).is_some_and(|ip| prefix.contains(ip));
        within(rule.source, seen.source)
            && within(rule.destination, seen.destination)
            && rule
                .protocol
                .is_none_or(|protocol| protocol == seen.protocol)
            && rule.source_ports.contains(&seen.ports.0)
            && rule.destination_ports.contains(&seen.ports.1)
    }
    let found = rules.iter().find(|rule| match &rule.packets {
        Packets::V4(rule) => is(rule, seen),
        Packets::V6(rule) => is(rule, seen),
    });
    found.is_some_and(|rule| rule.permit)
}

fn random_rule(random: &mut Random) -> Rule {
    let mut ports = || {
        let low = random.below(30) as u16;
        [ANY, low..=low, low..=low + random.below(20) as u16][random.below(3) as usize].clone()
    };
    let ports = [ports(), ports()];
    let protocol = [None, Some(ip::UDP), Some(ip::TCP)][random.below(3) as usize];
    let permit = random.below(2) == 0;
    // Prefixes around the addresses that packets have.
    let packets = if random.below(2) == 0 {
        let near = Prefix::cut(addr(1, random.below(16) as u8), 32 - random.below(9) as u8);
        let far = Prefix::cut(FAR + random.below(16), 32 - random.below(9) as u8);
        Packets::V4(tables::acl::Rule {
            source: near,
            destination: far,
            protocol,
            source_ports: ports[0].clone(),
            destination_ports: ports[1].clone(),
        })
    } else {
        let [near, far] = [ip6_nodes::NEAR, ip6_nodes::FAR].map(|text| {
            let address = ip6_nodes::address(text).to_bits();
            let address = address & !15 | u128::from(random.below(16));
            Prefix::cut(address, 128 - random.below(9) as u8)
        });
        Packets::V6(tables::acl::Rule {
            source: near,
            destination: far,
            protocol,
            source_ports: ports[0].clone(),
            destination_ports: ports[1].clone(),
        })
    };
    Rule { permit, packets }
}

/// A packet from interface 1 to a host behind 2, and what the oracle is to know of it.
fn random_packet(random: &mut Random, family: Family) -> (Vec<u8>, Seen) {
    let ports = (random.below(40) as u16, random.below(40) as u16);
    let is_udp = random.below(2) == 0;
    let (packet, source, destination): (_, IpAddr, IpAddr) = match family {
        Family::V4 => {
            let (source, destination) = (addr(1, random.below(16) as u8), FAR + random.below(16));
            let (from, to) = ((source, ports.0), (destination, ports.1));
            let packet = match is_udp {
                true => Packet::udp(from, to),
                false => Packet::tcp(from, to, 2, 7, 0),
            };
            (packet, u32::ip(source), u32::ip(destination))
        }
        Family::V6 => {
            let [source, destination] = [ip6_nodes::NEAR, ip6_nodes::FAR].map(|text| {
                let address = ip6_nodes::address(text).to_bits() & !15;
                std::net::Ipv6Addr::from(address | u128::from(random.below(16)))
            });
            let (from, to) = ((source, ports.0), (destination, ports.1));
            let packet = match is_udp {
                true => Packet::udp6(from, to),
                false => Packet::tcp6(from, to, 2, 7, 0),
            };
            (packet, source.into(), destination.into())
        }
    };
    let protocol = if is_udp { ip::UDP } else { ip::TCP };
    let seen = Seen {
        source,
        destination,
        protocol,
        ports,
    };
    (packet.macs(host_mac(1, 2), own_mac(1)).frame(), seen)
}

/// Random rules in lists of both directions; every packet passes exactly if both say so.
#[test]
fn packets_pass_as_an_oracle_says() {
    for seed in 0..12 {
        let random = &mut Random::new(seed);
        let mut lab = ip6_nodes::lab();
        let mut lists: [Vec<Vec<Rule>>; 2] = Default::default();
        for (direction, lists) in [Direction::Input, Direction::Output]
            .into_iter()
            .zip(&mut lists)
        {
            *lists = (0..=random.below(2))
                .map(|_| {
                    (0..1 + random.below(60))
                        .map(|_| random_rule(random))
                        .collect()
                })
                .collect();
            let name = |n: usize| format!("{direction:?}{n}").to_lowercase();
            let names: Vec<_> = (0..lists.len()).map(name).collect();
            let changes = lists.iter().zip(&names);
            lab.apply(
                changes
                    .map(|(rules, name)| set(name, rules.clone()))
                    .collect(),
            );
            let interface = match direction {
                Direction::Input => 1,
                Direction::Output => 2,
            };
            let names: Vec<_> = names.iter().map(String::as_str).collect();
            lab.apply(vec![attach(interface, direction, &names)]);
        }
        let [input, output] = lists.map(|lists| lists.concat());
        let packets: Vec<_> = (0..600)
            .map(|n| random_packet(random, Family::ALL[n % 2]))
            .collect();
        let wanted = packets
            .iter()
            .filter(|(_, seen)| permits(&input, seen) && permits(&output, seen));
        // What stays of a packet on its way.
        let kept = |frame: &[u8]| match frame[12] {
            8 => frame[26..].to_vec(),
            _ => frame[22..].to_vec(),
        };
        // Each family is in order.
        let of = |frames: Vec<Vec<u8>>, first: u8| -> Vec<Vec<u8>> {
            let frames = frames.into_iter().filter(|frame| frame[12] == first);
            frames.map(|frame| kept(&frame)).collect()
        };
        let wanted: Vec<_> = wanted.map(|(frame, _)| frame.clone()).collect();
        lab.receive(1, packets.iter().map(|(frame, _)| frame.clone()));
        let sent = lab.sent(2);
        assert!(
            !sent.is_empty() && sent.len() < packets.len(),
            "seed {seed}"
        );
        for first in [8, 0x86] {
            assert_eq!(
                of(sent.clone(), first),
                of(wanted.clone(), first),
                "seed {seed}"
            );
        }
        lab.check_buffers(0);
    }
}
