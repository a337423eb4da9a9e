//! The firewall: what policies make of flows.

use std::ops::RangeInclusive;
use std::time::Duration;

use router::acl::{Direction, Packets};
use router::firewall::{Action, Policy, Rule, State, States, show};
use router::{Change, nodes};
use tables::prefix::Prefix;
use wire::craft::Packet;
use wire::tcp::{ACK, FIN, Header, RST, SYN};
use wire::{icmp4, icmp6, ip};

use crate::harness::*;
use crate::ip6_nodes;

pub const ANY: RangeInclusive<u16> = 0..=u16::MAX;

/// All packets of a protocol to a port, of both families.
pub fn to(protocol: Option<u8>, port: RangeInclusive<u16>) -> Vec<Packets> {
    vec![
        Packets::V4(tables::acl::Rule {
            source: Prefix::DEFAULT,
            destination: Prefix::DEFAULT,
            protocol,
            source_ports: ANY,
            destination_ports: port.clone(),
        }),
        Packets::V6(tables::acl::Rule {
            source: Prefix::DEFAULT,
            destination: Prefix::DEFAULT,
            protocol,
            source_ports: ANY,
            destination_ports: port,
        }),
    ]
}

pub fn rule(action: Action, states: &[State], packets: Vec<Packets>) -> Rule {
    Rule {
        action,
        states: states.iter().fold(States::NONE, |all, one| all.with(*one)),
        packets,
        limit: None,
    }
}

pub fn set(name: &str, rules: Vec<Rule>, default: Action) -> Change {
    Change::PolicySet {
        name: name.to_owned(),
        policy: Policy { rules, default },
    }
}

pub fn attach(interface: u16, direction: Direction, policy: Option<&str>) -> Change {
    Change::PolicyAttach {
        interface,
        direction,
        policy: policy.map(str::to_owned),
    }
}

pub fn inbound(interface: u16, policy: &str) -> Change {
    attach(interface, Direction::Input, Some(policy))
}

/// Interface 1 may begin flows of UDP and TCP to port 12, interface 2 none.
pub fn guarded(mut lab: Lab) -> Lab {
    let known = [State::Established, State::Related];
    let known = || rule(Action::Accept, &known, to(None, ANY));
    lab.apply(vec![
        set(
            "inside",
            vec![
                known(),
                rule(Action::Accept, &[State::New], to(None, 12..=12)),
            ],
            Action::Drop,
        ),
        set("outside", vec![known()], Action::Drop),
        inbound(1, "inside"),
        inbound(2, "outside"),
    ]);
    lab
}

/// What the far end answers to [`udp`].
pub fn answer() -> Packet {
    Packet::udp((FAR, 12), (addr(1, 2), 1025)).macs(host_mac(2, 2), own_mac(2))
}

/// A segment from host 10.0.1.2, or to it.
pub fn segment(forth: bool, flags: u8, seq: u32, ack: u32) -> Packet {
    let (near, far) = ((addr(1, 2), 1025), (FAR, 12));
    match forth {
        true => Packet::tcp(near, far, flags, seq, ack).macs(host_mac(1, 2), own_mac(1)),
        false => Packet::tcp(far, near, flags, seq, ack).macs(host_mac(2, 2), own_mac(2)),
    }
}

/// True if a packet of interface 1 leaves by 2, or the other way round.
fn passes(lab: &mut Lab, from: u16, packet: &Packet) -> bool {
    lab.receive(from, [packet.frame()]);
    lab.check_buffers(0);
    let sent = lab.sent(3 - from).len();
    lab.sent(from);
    sent == 1
}

fn hits(lab: &Lab, name: &str) -> Vec<u64> {
    let shown = show::policies(&lab.router, Some(name)).unwrap();
    let policy = &shown.policies[0];
    let rules = policy.rules.iter().map(|rule| rule.hits);
    rules.chain([policy.hits]).collect()
}

#[test]
fn only_who_may_begin_a_flow_does_and_both_ends_use_it() {
    let mut lab = guarded(Lab::new());
    assert!(!passes(&mut lab, 2, &answer()));
    assert!(passes(&mut lab, 1, &udp(FAR)));
    assert!(passes(&mut lab, 2, &answer()));
    assert!(passes(&mut lab, 1, &udp(FAR)));
    assert!(passes(&mut lab, 2, &answer()));
    let other = Packet::udp((FAR, 13), (addr(1, 2), 1025)).macs(host_mac(2, 2), own_mac(2));
    assert!(!passes(&mut lab, 2, &other));
    // Asked about once in each state and direction.
    assert_eq!(hits(&lab, "inside"), [1, 1, 0]);
    assert_eq!(hits(&lab, "outside"), [1, 2]);
    assert_eq!(lab.edge("ip4-firewall", "Dropped"), 2);
}

#[test]
fn a_flow_that_is_idle_for_too_long_is_no_more() {
    let mut lab = guarded(Lab::new());
    assert!(passes(&mut lab, 1, &udp(FAR)));
    // A datagram that nobody has answered: 30 seconds, and the time to look at all flows.
    lab.advance(Duration::from_secs(29));
    lab.advance(Duration::from_secs(10));
    assert!(!passes(&mut lab, 2, &answer()));
    assert!(passes(&mut lab, 1, &udp(FAR)));
    lab.advance(Duration::from_secs(20));
    assert!(passes(&mut lab, 2, &answer()));
    lab.advance(Duration::from_secs(110));
    assert!(passes(&mut lab, 2, &answer()));
}

#[test]
fn policies_that_change_stop_what_they_no_longer_allow_and_nothing_else() {
    let mut lab = guarded(Lab::new());
    assert!(passes(&mut lab, 1, &udp(FAR)) && passes(&mut lab, 2, &answer()));
    // A flow that may no longer begin is over, for both ends.
    lab.apply(vec![set("inside", vec![], Action::Drop)]);
    assert!(!passes(&mut lab, 2, &answer()));
    assert!(!passes(&mut lab, 1, &udp(FAR)));
    lab.apply(vec![set("inside", vec![], Action::Accept)]);
    assert!(passes(&mut lab, 1, &udp(FAR)));
    // A policy that is not there drops everything.
    lab.apply(vec![Change::PolicyDelete("outside".into())]);
    assert!(!passes(&mut lab, 2, &answer()));
    assert!(passes(&mut lab, 1, &udp(FAR)));
    lab.apply(vec![attach(2, Direction::Input, None)]);
    assert!(passes(&mut lab, 2, &answer()));
    // So does one that never was; the way out is asked, too.
    lab.apply(vec![attach(2, Direction::Output, Some("none"))]);
    assert!(!passes(&mut lab, 1, &udp(FAR)));
    lab.apply(vec![Change::FeaturesDelete(2)]);
    assert!(passes(&mut lab, 1, &udp(FAR)));
}

/// A packet, and the interface that it comes in by.
type Coming = (u16, Packet);

/// The packets that establish a connection between the two interfaces, and one more of each end.
fn connection(protocol: u8, is4: bool) -> ([Coming; 3], [Coming; 2]) {
    let [near6, far6] = [ip6_nodes::NEAR, ip6_nodes::FAR].map(ip6_nodes::address);
    let packet = |forth: bool, flags: u8, seq: u32, ack: u32| {
        let ends4 = [(addr(1, 2), 1025), (FAR, 12)];
        let ends6 = [(near6, 1025), (far6, 12)];
        let (from, to) = if forth { (0, 1) } else { (1, 0) };
        let packet = match (protocol, is4) {
            (ip::TCP, true) => Packet::tcp(ends4[from], ends4[to], flags, seq, ack),
            (ip::TCP, false) => Packet::tcp6(ends6[from], ends6[to], flags, seq, ack),
            (_, true) => Packet::udp(ends4[from], ends4[to]),
            (_, false) => Packet::udp6(ends6[from], ends6[to]),
        };
        let id = if forth { 1 } else { 2 };
        (id, packet.macs(host_mac(id, 2), own_mac(id)))
    };
    let opening = [
        packet(true, SYN, 100, 0),
        packet(false, SYN | ACK, 900, 101),
        packet(true, ACK, 101, 901),
    ];
    let further = [packet(true, ACK, 101, 901), packet(false, ACK, 901, 101)];
    (opening, further)
}

#[test]
fn a_change_of_policies_closes_flows_that_may_no_longer_begin_and_keeps_the_others() {
    let known = || rule(Action::Accept, &[State::Established], to(None, ANY));
    let new = |port| rule(Action::Accept, &[State::New], to(None, port..=port));
    let limited = Rule {
        limit: Some(1),
        ..new(12)
    };
    let refused = rule(Action::Reject, &[State::New], to(None, 12..=12));
    let changes = [
        // What keeps them: another order, a limit that is used up, other rules, all.
        (true, vec![new(12), known()]),
        (true, vec![known(), limited]),
        (true, vec![new(13), known(), new(12)]),
        (true, vec![rule(Action::Accept, &State::ALL, to(None, ANY))]),
        // What closes them, though it accepts what is established.
        (false, vec![known(), new(13)]),
        (false, vec![known(), refused, new(12)]),
        (false, vec![known()]),
    ];
    for (protocol, is4) in [
        (ip::TCP, true),
        (ip::TCP, false),
        (ip::UDP, true),
        (ip::UDP, false),
    ] {
        for (number, (stays, rules)) in changes.iter().enumerate() {
            // The first packet after the change is of either end.
            for first in 0..2 {
                let what = format!("{protocol} {is4} {number} {first}");
                let mut lab = guarded(ip6_nodes::lab());
                let (opening, further) = connection(protocol, is4);
                for (from, packet) in &opening {
                    assert!(passes(&mut lab, *from, packet), "{what}");
                }
                // The other interface's policy says nothing about flows that others begin.
                lab.apply(vec![set("inside", rules.clone(), Action::Drop)]);
                for at in [first, 1 - first, first] {
                    let (from, packet) = &further[at];
                    assert_eq!(passes(&mut lab, *from, packet), *stays, "{what}");
                }
                // What is over does not come back with the policy.
                lab = guarded(lab);
                let (from, packet) = &further[1];
                assert_eq!(passes(&mut lab, *from, packet), *stays, "{what}");
                let opened = passes(&mut lab, 1, &opening[0].1);
                assert!(opened || *stays, "{what}");
            }
        }
    }
}

#[test]
fn flows_of_before_a_policy_and_errors_about_them_are_judged_by_what_opened_them() {
    let mut lab = guarded(ip6_nodes::lab());
    assert!(passes(&mut lab, 1, &udp(FAR)) && passes(&mut lab, 2, &answer()));
    // No policy at all, and others than before.
    let none = |interface| attach(interface, Direction::Input, None);
    lab.apply(vec![none(1), none(2)]);
    assert!(passes(&mut lab, 1, &udp(FAR)) && passes(&mut lab, 2, &answer()));
    let known = || {
        rule(
            Action::Accept,
            &[State::Established, State::Related],
            to(None, ANY),
        )
    };
    lab.apply(vec![
        set("inside", vec![known()], Action::Drop),
        inbound(1, "inside"),
    ]);
    lab.apply(vec![inbound(2, "outside")]);
    let error = Packet::icmp(FAR + 9, addr(1, 2), icmp4::UNREACHABLE, 1, 0);
    let error = error.payload(&udp(FAR).packet());
    assert!(!passes(
        &mut lab,
        2,
        &error.macs(host_mac(2, 2), own_mac(2))
    ));
    assert!(!passes(&mut lab, 2, &answer()));
    assert!(!passes(&mut lab, 1, &udp(FAR)));
}

#[test]
fn segments_outside_of_their_connection_are_invalid() {
    let mut lab = guarded(Lab::new());
    // Nothing begins with these.
    assert!(!passes(&mut lab, 1, &segment(true, ACK, 1, 1)));
    assert!(!passes(&mut lab, 1, &segment(true, SYN | FIN, 1, 1)));
    assert!(passes(&mut lab, 1, &segment(true, SYN, 100, 0)));
    assert!(passes(&mut lab, 2, &segment(false, SYN | ACK, 900, 101)));
    assert!(passes(&mut lab, 1, &segment(true, ACK, 101, 901)));
    assert!(passes(&mut lab, 2, &segment(false, ACK, 901, 101)));
    assert!(!passes(&mut lab, 2, &segment(false, RST, 1 << 30, 0)));
    assert!(!passes(&mut lab, 1, &segment(true, ACK, 101, 1 << 30)));
    // The far end is to say what it has.
    assert!(passes(&mut lab, 1, &segment(true, SYN, 1 << 30, 0)));
    assert!(passes(&mut lab, 2, &segment(false, ACK, 901, 101)));
    assert!(passes(&mut lab, 2, &segment(false, RST, 901, 0)));
    // A new connection between the same ends.
    assert!(passes(&mut lab, 1, &segment(true, SYN, 1 << 29, 0)));
    let reply = segment(false, SYN | ACK, 7, (1 << 29) + 1);
    assert!(passes(&mut lab, 2, &reply));
    // A policy may accept what is invalid.
    let invalid = rule(Action::Accept, &[State::Invalid], to(None, ANY));
    lab.apply(vec![set("outside", vec![invalid], Action::Drop)]);
    assert!(passes(&mut lab, 2, &segment(false, ACK, 1 << 28, 0)));
    assert!(!passes(&mut lab, 2, &segment(false, ACK, 8, (1 << 29) + 1)));
}

#[test]
fn icmp_errors_are_related_to_the_flow_that_they_quote() {
    let mut lab = guarded(ip6_nodes::lab());
    let error = |quoted: &Packet, to: u32| {
        let error = Packet::icmp(FAR + 9, to, icmp4::UNREACHABLE, 1, 0).payload(&quoted.packet());
        error.macs(host_mac(2, 2), own_mac(2))
    };
    assert!(!passes(&mut lab, 2, &error(&udp(FAR), addr(1, 2))));
    assert!(passes(&mut lab, 1, &udp(FAR)));
    assert!(passes(&mut lab, 2, &error(&udp(FAR), addr(1, 2))));
    // To somebody else than the source of that packet, or about another one.
    assert!(!passes(&mut lab, 2, &error(&udp(FAR), addr(3, 2))));
    assert_eq!(lab.edge("ip4-firewall", "Dropped"), 2);
    assert!(!passes(&mut lab, 2, &error(&udp(FAR + 1), addr(1, 2))));
    let [near, far] = [ip6_nodes::NEAR, ip6_nodes::FAR].map(ip6_nodes::address);
    let error = Packet::icmp6(far, near, icmp6::UNREACHABLE, 0, 0);
    let error = error.payload(&ip6_nodes::good().packet());
    let error = error.macs(host_mac(2, 2), own_mac(2));
    assert!(!passes(&mut lab, 2, &error));
    assert!(passes(&mut lab, 1, &ip6_nodes::good()));
    assert!(passes(&mut lab, 2, &error));
}

#[test]
fn a_table_that_is_full_refuses_new_flows_and_keeps_established_ones() {
    let flows = tables::flow::Sizes {
        embryonic: 8,
        ..tables::flow::Sizes::of(64)
    };
    let lab = Lab::with_flows(1, 64, 8192, None, nodes::table, flows).wired();
    let mut lab = guarded(lab);
    let forth =
        |port: u16| Packet::udp((addr(1, 2), port), (FAR, 12)).macs(host_mac(1, 2), own_mac(1));
    let back =
        |port: u16| Packet::udp((FAR, 12), (addr(1, 2), port)).macs(host_mac(2, 2), own_mac(2));
    for port in 0..56 {
        assert!(passes(&mut lab, 1, &forth(port)) && passes(&mut lab, 2, &back(port)));
    }
    // Ten times as many as there is room for: they displace each other.
    for port in 1000..1640 {
        assert!(passes(&mut lab, 1, &forth(port)));
    }
    assert!(!passes(&mut lab, 2, &back(1000)));
    for port in 0..56 {
        assert!(passes(&mut lab, 1, &forth(port)) && passes(&mut lab, 2, &back(port)));
    }
    for port in 1632..1640 {
        assert!(passes(&mut lab, 2, &back(port)));
    }
    assert!(!passes(&mut lab, 1, &forth(2000)));
    assert_eq!(lab.edge("ip4-firewall", "Full"), 1);
    assert!(passes(&mut lab, 1, &forth(3)));
}

#[test]
fn all_interfaces_have_the_firewall_once_one_has_a_policy() {
    let mut lab = Lab::new();
    let lines = |lab: &mut Lab| {
        let cx = lab.workers[0].context();
        let lines = (1..=4).map(|id| cx.interfaces.load(id));
        let features = lines.map(|line| (line.features().output != 0, line.is_featured()));
        features.collect::<Vec<_>>()
    };
    // Nobody may send past it, XDP programs among them: they look at the adjacency.
    let fast = |lab: &mut Lab| {
        let cx = lab.workers[0].context();
        let adjacency = cx.groups.bucket(cx.fib.lookup(FAR).group(), 0);
        cx.adjacencies.load(adjacency).fast_mtu() > 0
    };
    assert_eq!(lines(&mut lab), [(false, false); 4]);
    assert!(fast(&mut lab));
    lab.apply(vec![
        set("a", vec![], Action::Accept),
        attach(3, Direction::Output, Some("a")),
    ]);
    assert_eq!(lines(&mut lab)[..3], [(true, false); 3]);
    assert!(!fast(&mut lab));
    lab.apply(connected(4));
    assert_eq!(lines(&mut lab), [(true, false); 4]);
    lab.apply(vec![attach(3, Direction::Output, None)]);
    assert_eq!(lines(&mut lab), [(false, false); 4]);
    assert!(fast(&mut lab));
}

#[test]
fn what_the_router_and_the_host_send_is_not_asked_about() {
    let mut lab = Lab::with_host();
    lab.apply(vec![
        set("nothing", vec![], Action::Drop),
        attach(1, Direction::Input, Some("nothing")),
        attach(1, Direction::Output, Some("nothing")),
    ]);
    // To the host, and from it.
    lab.receive(1, [udp(addr(1, 1)).frame()]);
    assert_eq!(lab.sent(4).len(), 1);
    lab.receive(4, [udp(FAR).macs(own_mac(1), host_mac(1, 2)).frame()]);
    assert_eq!(lab.sent(1).len(), 1);
    // An error.
    lab.receive(1, [udp(FAR).ttl(1).frame()]);
    assert_eq!(lab.sent(1).len(), 1);
    assert_eq!(lab.edge("ip4-firewall", "Passed"), 1);
    assert_eq!(lab.edge("ip4-firewall", "Dropped"), 0);
    // Fragments of what is forwarded are asked about.
    let small = router::Interface {
        mtu: 600,
        ..interface(2)
    };
    lab.apply(vec![Change::InterfaceSet(small)]);
    lab.receive(1, [udp(FAR).payload(&[7; 1000]).frame()]);
    assert!(lab.sent(2).is_empty());
    assert_eq!(lab.edge("ip4-firewall", "Dropped"), 2);
}

#[test]
fn who_is_rejected_is_told() {
    let mut lab = ip6_nodes::lab();
    lab.apply(vec![set("no", vec![], Action::Reject), inbound(1, "no")]);
    let told = |lab: &mut Lab, packet: &Packet| {
        lab.receive(1, [packet.frame()]);
        assert!(lab.sent(2).is_empty());
        lab.check_buffers(0);
        lab.sent(1).pop()
    };
    let error = told(&mut lab, &udp(FAR)).unwrap();
    assert_eq!((error[23], error[34], error[35]), (ip::ICMP, 3, 13));
    assert_eq!(error[30..34], addr(1, 2).to_be_bytes());
    let error = told(&mut lab, &ip6_nodes::good()).unwrap();
    assert_eq!((error[20], error[54], error[55]), (ip::ICMP6, 1, 1));
    // TCP: the number that it is to have, or one that acknowledges all of the segment.
    let reset = |frame: &[u8]| {
        let (header, rest) = Header::parse(&frame[34..]).unwrap();
        assert!(rest.is_empty());
        let ends = (
            u32::from_be_bytes(frame[26..30].try_into().unwrap()),
            &frame[30..34],
        );
        assert_eq!(ends, (FAR, &addr(1, 2).to_be_bytes()[..]));
        assert_eq!((header.src_port(), header.dst_port()), (12, 1025));
        assert_eq!(
            wire::checksum::transport(FAR, addr(1, 2), ip::TCP, &frame[34..]),
            0
        );
        assert_eq!(frame[22], 64);
        (header.flags, header.seq(), header.ack())
    };
    let frame = told(&mut lab, &segment(true, SYN, 77, 0).payload(&[1, 2])).unwrap();
    assert_eq!(reset(&frame), (RST | ACK, 0, 80));
    let frame = told(&mut lab, &segment(true, ACK, 77, 1234)).unwrap();
    assert_eq!(reset(&frame), (RST, 1234, 0));
    let [near, far] = [ip6_nodes::NEAR, ip6_nodes::FAR].map(ip6_nodes::address);
    let syn = Packet::tcp6((near, 7), (far, 8), SYN, 5, 0).macs(host_mac(1, 2), own_mac(1));
    let frame = told(&mut lab, &syn).unwrap();
    let (header, _) = Header::parse(&frame[54..]).unwrap();
    assert_eq!((header.flags, header.ack()), (RST | ACK, 6));
    let sum = wire::checksum::transport(far.octets(), near.octets(), ip::TCP, &frame[54..]);
    assert_eq!((sum, frame[21]), (0, 64));
    // About these nobody is told.
    assert_eq!(told(&mut lab, &segment(true, RST, 1, 1)), None);
    assert_eq!(told(&mut lab, &udp(FAR).fragment(9)), None);
    assert_eq!(lab.edge("ip4-tcp-reset", "NotAllowed"), 1);
    assert_eq!(lab.edge("ip4-firewall", "Rejected"), 1);
    // As many as ICMP errors.
    lab.receive(1, (0..200).map(|n| segment(true, SYN, n, 0).frame()));
    let limited = lab.edge("ip4-tcp-reset", "RateLimited");
    assert!((100..200).contains(&limited), "{limited}");
}

#[test]
fn what_is_over_the_limit_of_its_rule_is_dropped() {
    let mut lab = Lab::new();
    let mut limited = rule(Action::Accept, &State::ALL, to(None, ANY));
    limited.limit = Some(20);
    lab.apply(vec![set("a", vec![limited], Action::Drop), inbound(1, "a")]);
    let passed = |lab: &mut Lab| {
        lab.receive(1, (0..50).map(|_| udp(FAR).frame()));
        lab.sent(2).len()
    };
    // A flow that is known, too: its packets are what is limited.
    assert_eq!(passed(&mut lab), 20);
    assert_eq!(lab.edge("ip4-firewall", "OverLimit"), 30);
    assert_eq!(passed(&mut lab), 0);
    lab.advance(Duration::from_millis(500));
    assert!((9..=11).contains(&passed(&mut lab)));
    lab.advance(Duration::from_secs(9));
    assert_eq!(passed(&mut lab), 20);
}

#[test]
fn generations_of_policies_that_begin_anew_mean_nothing_old() {
    let mut lab = Lab::new();
    lab.apply(vec![set("a", vec![], Action::Accept), inbound(1, "a")]);
    assert!(passes(&mut lab, 1, &udp(FAR)));
    // As many changes as there are numbers in an entry, at the end of which the policy is another.
    let attach = |n: u32| {
        let name = if n.is_multiple_of(2) { "x" } else { "y" };
        attach(3, Direction::Input, Some(name))
    };
    let mut changes: Vec<_> = (0..65534).map(attach).collect();
    changes.push(set("a", vec![], Action::Drop));
    lab.apply(changes);
    assert!(!passes(&mut lab, 1, &udp(FAR)));
}

#[test]
fn operators_see_rules_states_and_hits() {
    let mut lab = guarded(Lab::new());
    let mut limited = rule(Action::Reject, &State::ALL, to(Some(ip::UDP), 53..=54));
    limited.limit = Some(9);
    limited.packets.truncate(1);
    lab.apply(vec![
        set("other", vec![limited], Action::Reject),
        attach(2, Direction::Output, Some("other")),
    ]);
    lab.receive(1, [udp(FAR).frame()]);
    let shown = show::policies(&lab.router, None).unwrap().to_string();
    assert_eq!(
        shown,
        "policy inside count 2
          0: accept state established,related hits 0
             ipv4 src 0.0.0.0/0 dst 0.0.0.0/0 proto any sport 0-65535 dport 0-65535
             ipv6 src ::/0 dst ::/0 proto any sport 0-65535 dport 0-65535
          1: accept state new hits 1
             ipv4 src 0.0.0.0/0 dst 0.0.0.0/0 proto any sport 0-65535 dport 12
             ipv6 src ::/0 dst ::/0 proto any sport 0-65535 dport 12
    default: drop hits 0
  applied inbound on: eth1
policy other count 1
          0: reject state new,established,related,invalid limit 9 hits 0
             ipv4 src 0.0.0.0/0 dst 0.0.0.0/0 proto 17 sport 0-65535 dport 53-54
    default: reject hits 1
  applied outbound on: eth2
policy outside count 1
          0: accept state established,related hits 0
             ipv4 src 0.0.0.0/0 dst 0.0.0.0/0 proto any sport 0-65535 dport 0-65535
             ipv6 src ::/0 dst ::/0 proto any sport 0-65535 dport 0-65535
    default: drop hits 0
  applied inbound on: eth2
"
    );
    let none = show::policies(&lab.router, Some("x")).unwrap_err();
    assert_eq!(
        none.to_string(),
        "no policy x; `show policy` lists those that there are"
    );
}
