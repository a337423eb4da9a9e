//! The firewall against an oracle: random policies, random traffic, packet by packet.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::ops::RangeInclusive;

use router::acl::{Direction, Packets};
use router::firewall::{Action, Policy, Rule, State, States};
use router::{Change, Ip, Route};
use tables::prefix::Prefix;
use tables::random::Random;
use wire::craft::Packet;
use wire::tcp::{ACK, SYN};
use wire::{icmp4, icmp6, ip};

use crate::firewall::{ANY, attach};
use crate::harness::*;

/// Two ends, each behind an interface, and the protocol that they speak. One calls, the other
/// answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Pair {
    family: u8,
    protocol: u8,
    caller: (u16, u8),
    answerer: (u16, u8),
    port: u16,
}

/// What of a pair's is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sent {
    /// A datagram or an echo; or a SYN, or a SYN that acknowledges it.
    Begin,
    /// An acknowledgment.
    Ack,
    /// An acknowledgment far from the window.
    FarAck,
    /// A SYN far from the window.
    FarSyn,
    /// An ICMP error about a datagram or SYN of the other end.
    Error,
    /// A later fragment.
    Fragment,
}

/// How far a TCP connection is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Called,
    Answered,
    Open,
}

/// A flow that the oracle knows.
#[derive(Debug, Clone, Copy)]
struct Flow {
    /// The caller has begun it.
    by_caller: bool,
    answered: bool,
    stage: Stage,
    /// Its first packet, and where those of the original direction come in and leave.
    first: Seen,
    way: [u16; 2],
    /// When policies were last asked about it.
    generation: u32,
}

/// A packet as rules see it.
#[derive(Debug, Clone, Copy)]
struct Seen {
    source: IpAddr,
    destination: IpAddr,
    protocol: u8,
    ports: Option<(u16, u16)>,
}

#[derive(Default)]
struct Oracle {
    flows: HashMap<Pair, Flow>,
    policies: HashMap<(u16, Direction), Option<Policy>>,
    /// Grows with each change of them.
    generation: u32,
    /// Flows that were judged anew after a change: those that stayed, and those that did not.
    kept: u32,
    closed: u32,
}

const CALLER_SEQ: u32 = 1000;
const ANSWERER_SEQ: u32 = 7000;
const FAR_AWAY: u32 = 1 << 30;

impl Oracle {
    /// True if the packet passes.
    fn passes(
        &mut self,
        pair: Pair,
        by_caller: bool,
        sent: Sent,
        seen: &Seen,
        way: [u16; 2],
    ) -> bool {
        // Without any policy there is no firewall, which could see flows.
        if self.policies.is_empty() {
            return true;
        }
        if sent != Sent::Fragment {
            self.judge_anew(pair);
        }
        let flow = self.flows.get(&pair).copied();
        let begun = Flow {
            by_caller,
            answered: false,
            stage: Stage::Called,
            first: *seen,
            way,
            generation: self.generation,
        };
        let (state, next) = match (sent, flow) {
            (Sent::Fragment, _) => (State::New, None),
            (Sent::Error, Some(_)) => (State::Related, None),
            (Sent::Error, None) => (State::Invalid, None),
            (_, Some(flow)) => follow(pair, by_caller, sent, flow),
            (_, None) if begins(pair, by_caller, sent) => (State::New, Some(begun)),
            (_, None) => (State::Invalid, None),
        };
        // What the tables remember of a flow that is known does not depend on policies.
        if flow.is_some()
            && let Some(next) = next
        {
            self.flows.insert(pair, next);
        }
        let accepted = self.accept(state, seen, way);
        if accepted && let Some(mut next) = next {
            if by_caller == next.by_caller {
                next.way = way;
            }
            self.flows.insert(pair, next);
        }
        accepted
    }

    /// After a change of policies, a flow that may no longer begin is over.
    fn judge_anew(&mut self, pair: Pair) {
        let Some(mut flow) = self.flows.get(&pair).copied() else {
            return;
        };
        if flow.generation == self.generation {
            return;
        }
        if self.accept(State::New, &flow.first, flow.way) {
            flow.generation = self.generation;
            self.flows.insert(pair, flow);
            self.kept += 1;
        } else {
            self.flows.remove(&pair);
            self.closed += 1;
        }
    }

    fn accept(&self, state: State, seen: &Seen, way: [u16; 2]) -> bool {
        [(way[0], Direction::Input), (way[1], Direction::Output)]
            .into_iter()
            .all(|place| match self.policies.get(&place) {
                None => true,
                Some(None) => false,
                Some(Some(policy)) => accepts(policy, state, seen),
            })
    }
}

fn begins(pair: Pair, by_caller: bool, sent: Sent) -> bool {
    match pair.protocol {
        ip::TCP => by_caller && matches!(sent, Sent::Begin),
        ip::UDP => true,
        _ => by_caller,
    }
}

fn follow(pair: Pair, by_caller: bool, sent: Sent, mut flow: Flow) -> (State, Option<Flow>) {
    if pair.protocol == ip::TCP {
        flow.stage = match (by_caller, sent, flow.stage) {
            (true, Sent::Begin, stage) => stage,
            (true, Sent::Ack, Stage::Called) => return (State::Invalid, None),
            (true, Sent::Ack, _) => Stage::Open,
            (false, Sent::Begin, Stage::Called) => Stage::Answered,
            (false, Sent::Begin, stage) => stage,
            // The caller is to reset what the answerer has left over.
            (false, Sent::Ack | Sent::FarAck, Stage::Called) => Stage::Called,
            (false, Sent::Ack, stage) => stage,
            (true, Sent::FarSyn, stage) => stage,
            _ => return (State::Invalid, None),
        };
    }
    flow.answered |= by_caller != flow.by_caller;
    let state = match flow.answered {
        true => State::Established,
        false => State::New,
    };
    (state, Some(flow))
}

fn accepts(policy: &Policy, state: State, seen: &Seen) -> bool {
    let found = policy
        .rules
        .iter()
        .find(|rule| rule.states.has(state) && rule.packets.iter().any(|of| matches(of, seen)));
    found.map_or(policy.default, |rule| rule.action) == Action::Accept
}

fn matches(packets: &Packets, seen: &Seen) -> bool {
    fn is<A: Ip>(rule: &tables::acl::Rule<A>, seen: &Seen) -> bool {
        let within =
            |prefix: Prefix<A>, ip: IpAddr| A::of(ip).is_some_and(|ip| prefix.contains(ip));
        let ports = match seen.ports {
            Some((source, destination)) => {
                rule.source_ports.contains(&source) && rule.destination_ports.contains(&destination)
            }
            None => rule.source_ports == ANY && rule.destination_ports == ANY,
        };
        within(rule.source, seen.source)
            && within(rule.destination, seen.destination)
            && rule.protocol.is_none_or(|of| of == seen.protocol)
            && ports
    }
    match packets {
        Packets::V4(rule) => is(rule, seen),
        Packets::V6(rule) => is(rule, seen),
    }
}

/// Host `host` behind interface `id`.
fn far4((id, host): (u16, u8)) -> u32 {
    u32::from_be_bytes([48, id as u8, 0, host])
}

fn far6((id, host): (u16, u8)) -> Ipv6Addr {
    Ipv6Addr::new(0xfd00, id, 0, 0, 0, 0, 0, host.into())
}

/// Networks behind each interface, by its neighbor.
fn lab(workers: usize) -> Lab {
    let mut lab = wired6(Lab::sized(workers, 64).wired());
    for id in 1..=3 {
        let by = format!("2001:db8:{id}::2");
        lab.apply(vec![
            neighbor6(id, &by),
            route(&format!("48.{id}.0.0/16"), Route::Forward(vec![via(id, 2)])),
            route(
                &format!("fd00:{id}::/32"),
                Route::Forward(vec![via6(id, &by)]),
            ),
        ]);
    }
    lab
}

fn random_pair(random: &mut Random) -> Pair {
    let mut end = || (1 + random.below(3) as u16, random.below(3) as u8);
    let (caller, mut answerer) = (end(), end());
    if answerer.0 == caller.0 {
        answerer.0 = caller.0 % 3 + 1;
    }
    Pair {
        family: [4, 6][random.below(2) as usize],
        protocol: [ip::UDP, ip::TCP, ip::ICMP][random.below(3) as usize],
        caller,
        answerer,
        port: random.below(3) as u16,
    }
}

/// The packet, and what rules see of it; `number` is its own.
fn packet(pair: Pair, by_caller: bool, sent: Sent, number: u16) -> (Packet, Seen) {
    let (from, to) = match by_caller {
        true => (pair.caller, pair.answerer),
        false => (pair.answerer, pair.caller),
    };
    let (caller_port, answerer_port) = (20 + pair.port, 40 + pair.port);
    let ports = match by_caller {
        true => (caller_port, answerer_port),
        false => (answerer_port, caller_port),
    };
    let is4 = pair.family == 4;
    let (own_seq, other_seq) = match by_caller {
        true => (CALLER_SEQ, ANSWERER_SEQ),
        false => (ANSWERER_SEQ, CALLER_SEQ),
    };
    let tcp = match sent {
        Sent::Ack => (ACK, own_seq + 1, other_seq + 1),
        Sent::FarAck => (ACK, own_seq + FAR_AWAY, other_seq + 1),
        Sent::FarSyn => (SYN, own_seq + FAR_AWAY, 0),
        _ if by_caller => (SYN, own_seq, 0),
        _ => (SYN | ACK, own_seq, other_seq + 1),
    };
    let (ends4, ends6) = ([far4(from), far4(to)], [far6(from), far6(to)]);
    let echo = match (is4, by_caller) {
        (true, true) => icmp4::ECHO_REQUEST,
        (true, false) => icmp4::ECHO_REPLY,
        (false, true) => icmp6::ECHO_REQUEST,
        (false, false) => icmp6::ECHO_REPLY,
    };
    // Who calls has a number of its own.
    let caller = u32::from(pair.caller.0) << 8 | u32::from(pair.caller.1) << 4;
    let identifier = (caller | u32::from(pair.port)) << 16;
    let (made, protocol, seen_ports) = match (sent, pair.protocol) {
        (Sent::Error, _) => {
            let (quoted, _) = packet(pair, !by_caller, Sent::Begin, 0);
            let quoted = quoted.packet();
            match is4 {
                true => {
                    let error = Packet::icmp(ends4[0], ends4[1], icmp4::UNREACHABLE, 1, 0);
                    (error.payload(&quoted), ip::ICMP, Some((3, 1)))
                }
                false => {
                    let error = Packet::icmp6(ends6[0], ends6[1], icmp6::UNREACHABLE, 1, 0);
                    (error.payload(&quoted), ip::ICMP6, Some((1, 1)))
                }
            }
        }
        (_, ip::UDP) => match is4 {
            true => (
                Packet::udp((ends4[0], ports.0), (ends4[1], ports.1)),
                ip::UDP,
                Some(ports),
            ),
            false => (
                Packet::udp6((ends6[0], ports.0), (ends6[1], ports.1)),
                ip::UDP,
                Some(ports),
            ),
        },
        (_, ip::TCP) => {
            let (flags, seq, ack) = tcp;
            let made = match is4 {
                true => Packet::tcp((ends4[0], ports.0), (ends4[1], ports.1), flags, seq, ack),
                false => Packet::tcp6((ends6[0], ports.0), (ends6[1], ports.1), flags, seq, ack),
            };
            (made, ip::TCP, Some(ports))
        }
        _ => match is4 {
            true => {
                let made = Packet::icmp(ends4[0], ends4[1], echo, 0, identifier);
                (made, ip::ICMP, Some((echo.into(), 0)))
            }
            false => {
                let made = Packet::icmp6(ends6[0], ends6[1], echo, 0, identifier);
                (made, ip::ICMP6, Some((echo.into(), 0)))
            }
        },
    };
    let (made, seen_ports) = match (sent, is4) {
        (Sent::Fragment, true) => (made.fragment(9), None),
        (Sent::Fragment, false) => (made.extension(ip::FRAGMENT, &[0, 0, 72, 0, 0, 0, 9]), None),
        _ => (made, seen_ports),
    };
    let made = match is4 {
        true => made.id(number),
        false => made.flow_label(number.into()),
    };
    let [source, destination]: [IpAddr; 2] = match is4 {
        true => ends4.map(u32::ip),
        false => ends6.map(IpAddr::from),
    };
    let seen = Seen {
        source,
        destination,
        protocol,
        ports: seen_ports,
    };
    (made, seen)
}

fn random_policy(random: &mut Random) -> Policy {
    let action = |random: &mut Random| match random.below(8) {
        0..5 => Action::Accept,
        5..7 => Action::Drop,
        _ => Action::Reject,
    };
    let rules = (0..random.below(9)).map(|_| {
        let states = State::ALL.into_iter().filter(|_| random.below(2) > 0);
        let states = states.fold(States::NONE, States::with);
        Rule {
            action: action(random),
            states,
            packets: (0..1 + random.below(3))
                .map(|_| random_packets(random))
                .collect(),
            limit: None,
        }
    });
    let rules = rules.collect();
    Policy {
        rules,
        default: action(random),
    }
}

fn random_packets(random: &mut Random) -> Packets {
    let ports = |random: &mut Random| -> RangeInclusive<u16> {
        let low = [20, 40][random.below(2) as usize] + random.below(3) as u16;
        [ANY, ANY, low..=low, low..=low + 19][random.below(4) as usize].clone()
    };
    let end = |random: &mut Random| (1 + random.below(3) as u16, random.below(3) as u8);
    let protocols = [
        None,
        Some(ip::UDP),
        Some(ip::TCP),
        Some(ip::ICMP),
        Some(ip::ICMP6),
    ];
    let protocol = protocols[random.below(5) as usize];
    let (source_ports, destination_ports) = (ports(random), ports(random));
    let (source, destination) = (end(random), end(random));
    if random.below(2) == 0 {
        let mut prefix = |end| Prefix::cut(far4(end), [0, 0, 16, 32][random.below(4) as usize]);
        Packets::V4(tables::acl::Rule {
            source: prefix(source),
            destination: prefix(destination),
            protocol,
            source_ports,
            destination_ports,
        })
    } else {
        let lengths = [0, 0, 32, 128];
        let mut prefix = |end| Prefix::cut(far6(end).to_bits(), lengths[random.below(4) as usize]);
        Packets::V6(tables::acl::Rule {
            source: prefix(source),
            destination: prefix(destination),
            protocol,
            source_ports,
            destination_ports,
        })
    }
}

/// The bytes of a frame that stay on its way, and its number.
fn kept(frame: &[u8]) -> Vec<u8> {
    match frame[12] {
        8 => [&frame[18..20], &frame[26..]].concat(),
        _ => [&frame[14..18], &frame[22..]].concat(),
    }
}

struct Run {
    random: Random,
    lab: Lab,
    oracle: Oracle,
    policies: HashMap<String, Policy>,
    attached: HashMap<(u16, Direction), String>,
    number: u16,
    passed: usize,
    asked: usize,
    /// To rejected packets.
    answers: u64,
}

impl Run {
    fn change(&mut self) {
        let random = &mut self.random;
        if random.below(3) == 0 {
            let place = (
                1 + random.below(3) as u16,
                Direction::ALL[random.below(2) as usize],
            );
            let name = format!("p{}", random.below(4));
            let name = (random.below(4) > 0).then_some(name);
            self.lab
                .apply(vec![attach(place.0, place.1, name.as_deref())]);
            let before = match name.clone() {
                Some(name) => self.attached.insert(place, name),
                None => self.attached.remove(&place),
            };
            self.oracle.generation += u32::from(before != name);
        } else {
            let name = format!("p{}", random.below(4));
            let changed = match random.below(8) {
                0 => {
                    let before = self.policies.remove(&name);
                    self.oracle.generation += u32::from(before.is_some());
                    Change::PolicyDelete(name)
                }
                _ => {
                    let policy = random_policy(random);
                    let before = self.policies.insert(name.clone(), policy.clone());
                    self.oracle.generation += u32::from(before.as_ref() != Some(&policy));
                    Change::PolicySet { name, policy }
                }
            };
            self.lab.apply(vec![changed]);
        }
        self.oracle.policies = self
            .attached
            .iter()
            .map(|(place, name)| (*place, self.policies.get(name).cloned()))
            .collect();
    }

    /// Packets that come in by one interface, at once.
    fn burst(&mut self) {
        let from = 1 + self.random.below(3) as u16;
        let (mut frames, mut wanted) = (Vec::new(), Vec::new());
        for _ in 0..1 + self.random.below(100) {
            let random = &mut self.random;
            let pair = random_pair(random);
            let by_caller = random.below(2) == 0;
            let (source, target) = match by_caller {
                true => (pair.caller, pair.answerer),
                false => (pair.answerer, pair.caller),
            };
            // Now and then by an interface that its source is not behind.
            if source.0 != from && random.below(10) > 0 {
                continue;
            }
            let sent = self.sent(pair, by_caller);
            self.number = self.number.wrapping_add(1);
            let (made, seen) = packet(pair, by_caller, sent, self.number);
            let frame = made.macs(host_mac(from, 2), own_mac(from)).frame();
            let way = [from, target.0];
            self.asked += 1;
            let known = self.oracle.flows.get(&pair).copied();
            let passes = self.oracle.passes(pair, by_caller, sent, &seen, way);
            let what = format!("{sent:?} by caller: {by_caller}, {pair:?}, {known:?}, {way:?}");
            wanted.push((what, passes, (target.0, kept(&frame))));
            frames.push(frame);
        }
        self.lab.receive(from, frames);
        let mut found = Vec::new();
        for id in 1..=3 {
            found.extend(
                self.lab
                    .sent(id)
                    .into_iter()
                    .map(|frame| (id, kept(&frame))),
            );
        }
        let mut passed = 0;
        for (what, passes, packet) in &wanted {
            assert_eq!(found.contains(packet), *passes, "{what}");
            passed += usize::from(*passes);
        }
        self.passed += passed;
        // What answers rejected packets is not from those that sent them.
        let others = found.len() - passed;
        let answers = [
            "icmp4-error",
            "ip4-tcp-reset",
            "icmp6-error",
            "ip6-tcp-reset",
        ];
        let answers: u64 = answers
            .map(|node| self.lab.edge(node, "Lookup"))
            .iter()
            .sum();
        self.answers += others as u64;
        assert_eq!(self.answers, answers, "packets that are not to pass");
        self.lab.check_buffers(0);
    }

    fn sent(&mut self, pair: Pair, by_caller: bool) -> Sent {
        let kinds = [
            Sent::Begin,
            Sent::Begin,
            Sent::Ack,
            Sent::Ack,
            Sent::FarAck,
            Sent::FarSyn,
            Sent::Error,
            Sent::Fragment,
        ];
        // A flow that may be over when its next packet comes is not.
        let generation = self.oracle.generation;
        let is_open = |flow: &Flow| flow.stage != Stage::Called && flow.generation == generation;
        let is_open = self.oracle.flows.get(&pair).is_some_and(is_open);
        match kinds[self.random.below(8) as usize] {
            Sent::FarSyn if !(by_caller && is_open) => Sent::Begin,
            Sent::Ack | Sent::FarAck | Sent::FarSyn if pair.protocol != ip::TCP => Sent::Begin,
            sent => sent,
        }
    }
}

fn run(seed: u64, workers: usize) {
    let mut run = Run {
        random: Random::new(seed),
        lab: lab(workers),
        oracle: Oracle::default(),
        policies: HashMap::new(),
        attached: HashMap::new(),
        number: 0,
        passed: 0,
        asked: 0,
        answers: 0,
    };
    while run.asked < 12_000 {
        for _ in 0..run.random.below(3) {
            run.change();
        }
        for _ in 0..1 + run.random.below(12) {
            run.burst();
        }
    }
    let share = run.passed * 100 / run.asked;
    assert!((15..95).contains(&share), "{share} % passed");
    let handed_over = run.lab.edge("ip4-firewall", "Elsewhere");
    assert_eq!(handed_over > 0, workers > 1);
    let (live, kept, closed) = (run.oracle.flows.len(), run.oracle.kept, run.oracle.closed);
    assert!(
        live > 100 && kept > 500 && closed > 500,
        "{live} live, {kept} kept, {closed} closed"
    );
}

#[test]
fn packets_pass_as_the_oracle_says() {
    for seed in 0..3 {
        run(seed, 1);
    }
}

#[test]
fn packets_pass_as_the_oracle_says_with_two_workers() {
    for seed in 3..5 {
        run(seed, 2);
    }
}
