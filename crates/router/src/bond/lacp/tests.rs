//! Two ends of links, and what passes between them, on a clock of their own.

use super::port::{Mux, Rx};
use super::*;
use wire::lacp::{Info, state};

/// The step of the clock: as often as the control thread looks.
const STEP: Millis = 10;

const fn mac(last: u8) -> Mac {
    Mac([2, 0, 0, 0, 0, last])
}

/// A system with one bond, and its members.
struct End {
    aggregator: Aggregator,
    system: Mac,
    members: Vec<(InterfaceId, bool)>,
    /// What each has sent, and when.
    sent: Vec<(Millis, InterfaceId, Header)>,
}

impl End {
    fn new(system: u8, members: &[InterfaceId]) -> Self {
        let mut end = End {
            aggregator: Aggregator::default(),
            system: mac(system),
            members: members.iter().map(|id| (*id, true)).collect(),
            sent: Vec::new(),
        };
        end.set();
        end
    }

    fn set(&mut self) {
        self.aggregator.has(90, self.system, &self.members);
    }

    fn up(&mut self, member: InterfaceId, up: bool) {
        let its = self.members.iter_mut().find(|(id, _)| *id == member);
        its.expect("a member").1 = up;
        self.set();
    }

    fn step(&mut self, now: Millis) -> Vec<(InterfaceId, Header)> {
        let sent = self.aggregator.step(now);
        self.sent
            .extend(sent.iter().map(|(id, pdu)| (now, *id, *pdu)));
        sent
    }

    fn port(&self, member: InterfaceId) -> &Port {
        &self.aggregator.ports[&member]
    }

    fn carrying(&self) -> Vec<InterfaceId> {
        let ids = self.members.iter().map(|(id, _)| *id);
        ids.filter(|id| self.aggregator.carries(*id)).collect()
    }
}

/// Links between members of ends; the first number is the end's index.
struct Net {
    ends: Vec<End>,
    links: Vec<[(usize, InterfaceId); 2]>,
    now: Millis,
}

impl Net {
    /// Two systems with two links: 1 to 11, 2 to 12.
    fn pair() -> Self {
        Net {
            ends: vec![End::new(1, &[1, 2]), End::new(2, &[11, 12])],
            links: vec![[(0, 1), (1, 11)], [(0, 2), (1, 12)]],
            now: 1000,
        }
    }

    /// One system, whose two links lead to different ones.
    fn split() -> Self {
        Net {
            ends: vec![End::new(1, &[1, 2]), End::new(2, &[11]), End::new(3, &[12])],
            links: vec![[(0, 1), (1, 11)], [(0, 2), (2, 12)]],
            now: 1000,
        }
    }

    fn run(&mut self, time: Millis) {
        let until = self.now + time;
        while self.now < until {
            self.now += STEP;
            for at in 0..self.ends.len() {
                for (from, pdu) in self.ends[at].step(self.now) {
                    let far = self.links.iter().find_map(|[a, b]| match (at, from) {
                        here if here == *a => Some(*b),
                        here if here == *b => Some(*a),
                        _ => None,
                    });
                    if let Some((end, member)) = far {
                        self.ends[end].aggregator.hear(member, &pdu, self.now);
                    }
                }
            }
        }
    }

    fn agreed() -> Self {
        let mut net = Net::pair();
        net.run(3000);
        assert_eq!(net.ends[0].carrying(), [1, 2]);
        assert_eq!(net.ends[1].carrying(), [11, 12]);
        net
    }
}

/// The first LACPDU: active, short timeout, aggregatable, defaulted, expired, of nobody known.
#[test]
fn the_first_lacpdu() {
    let mut end = End::new(1, &[7]);
    let [(7, first)] = end.step(0)[..] else {
        panic!("one LACPDU at once");
    };
    let bytes = first.bytes();
    assert_eq!(bytes[..4], [1, 1, 1, 20]);
    // System priority and address, key, port priority and number, state.
    assert_eq!(bytes[4..12], [0xff, 0xff, 2, 0, 0, 0, 0, 1]);
    assert_eq!(bytes[12..19], [0, 90, 0, 0xff, 0, 7, 0b1100_0111]);
    assert_eq!(bytes[22..26], [2, 20, 0xff, 0xff]);
    assert_eq!(
        bytes[26..41],
        [0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0, 0, 2, 0, 0]
    );
    assert_eq!(bytes[42..44], [3, 16]);
    assert!(bytes[44..].iter().all(|byte| *byte == 0));
}

#[test]
fn both_ends_agree_after_they_have_waited_for_each_other() {
    let mut net = Net::pair();
    net.run(1900);
    assert!(net.ends.iter().all(|end| end.carrying().is_empty()));
    assert_eq!(net.ends[0].port(1).mux, Mux::Waiting);
    net.run(300);
    assert_eq!(net.ends[0].carrying(), [1, 2]);
    assert_eq!(net.ends[1].carrying(), [11, 12]);
    // No port has sent more than three in any second, and each carries on as both say.
    for (at, member) in [(0, 1), (0, 2), (1, 11), (1, 12)] {
        let sent = net.ends[at].sent.iter().filter(|(_, id, _)| *id == member);
        let times: Vec<_> = sent.map(|(at, ..)| *at).collect();
        assert!(times.windows(4).all(|four| four[3] - four[0] >= 1000));
    }
    let port = net.ends[0].port(1);
    assert_eq!(
        (port.actor.state, port.partner.state),
        (0b0011_1111, 0b0011_1111)
    );
    net.run(10_000);
    assert_eq!(net.ends[0].carrying(), [1, 2]);
}

/// A port carries only after the partner has said that it is in sync.
#[test]
fn nothing_is_carried_before_the_partner_is_in_sync() {
    let mut end = End::new(1, &[1]);
    let mut them = Info::new((0x8000, mac(2)), 5, (0x8000, 9));
    for (sync, carries) in [(false, false), (true, true), (false, false)] {
        them.state = state::ACTIVITY | state::TIMEOUT | state::AGGREGATION;
        them.set(state::SYNCHRONIZATION, sync);
        for now in (0..5000).step_by(STEP as usize) {
            end.step(now);
            let us = end.port(1).actor;
            end.aggregator.hear(1, &Header::new(them, us), now);
        }
        assert_eq!(end.aggregator.is_up(), carries, "{sync}");
    }
    // It is in sync with somebody else.
    them.set(state::SYNCHRONIZATION, true);
    let other = Info::new((0xffff, mac(9)), 90, (0xff, 1));
    end.aggregator.hear(1, &Header::new(them, other), 5000);
    end.step(5000);
    assert!(!end.aggregator.is_up());
    assert_eq!(end.port(1).mux, Mux::Attached);
}

#[test]
fn what_is_not_heard_expires_and_is_forgotten() {
    let mut net = Net::agreed();
    net.links.remove(0);
    net.run(1900);
    assert_eq!(net.ends[0].carrying(), [1, 2], "two may be lost");
    net.run(1200);
    assert_eq!(net.ends[0].carrying(), [2]);
    assert_eq!(net.ends[0].port(1).rx, Rx::Expired);
    assert!(net.ends[0].port(1).actor.is(state::EXPIRED));
    net.run(3100);
    assert_eq!(net.ends[0].port(1).rx, Rx::Defaulted);
    assert_eq!(net.ends[0].port(1).mux, Mux::Detached);
    assert!(net.ends[0].port(1).actor.is(state::DEFAULTED));
    net.links.push([(0, 1), (1, 11)]);
    net.run(32_000);
    assert_eq!(net.ends[0].carrying(), [1, 2]);
}

/// A port that asks for few LACPDUs gets them, and waits three times as long.
#[test]
fn long_timeouts() {
    let mut net = Net::agreed();
    for end in &mut net.ends {
        let ports = end.aggregator.ports.values_mut();
        ports.for_each(|port| port.actor.set(state::TIMEOUT, false));
    }
    net.run(40_000);
    let before = net.ends[0].sent.len();
    net.run(60_000);
    assert_eq!(net.ends[0].sent.len() - before, 4, "two ports, two each");
    assert_eq!(net.ends[0].carrying(), [1, 2]);
    net.links.clear();
    net.run(59_000);
    assert_eq!(net.ends[0].carrying(), [1, 2]);
    net.run(32_000);
    assert!(net.ends[0].carrying().is_empty());
}

#[test]
fn a_link_that_fails_is_out_at_once_and_comes_back() {
    let mut net = Net::agreed();
    net.ends[0].up(1, false);
    assert_eq!(net.ends[0].carrying(), [2]);
    net.run(3100);
    assert_eq!(net.ends[1].carrying(), [12]);
    net.ends[0].up(1, true);
    net.run(6000);
    assert_eq!(net.ends[0].carrying(), [1, 2]);
    assert_eq!(net.ends[1].carrying(), [11, 12]);
}

#[test]
fn another_partner_is_another_aggregate() {
    let mut net = Net::split();
    net.run(4000);
    assert_eq!(net.ends[0].carrying(), [1], "the first that was heard");
    assert!(net.ends[2].carrying().is_empty());
    // Its last link fails: the other takes over, and keeps.
    net.ends[0].up(1, false);
    net.run(4000);
    assert_eq!(net.ends[0].carrying(), [2]);
    net.ends[0].up(1, true);
    net.run(10_000);
    assert_eq!(net.ends[0].carrying(), [2]);
}

#[test]
fn the_aggregate_with_the_most_links_is_chosen() {
    let mut end = End::new(1, &[1, 2, 3]);
    let speaks = |end: &mut End, now| {
        for (member, system) in [(1, 5), (2, 6), (3, 6)] {
            let mut them = Info::new((1, mac(system)), 4, (1, member));
            them.state = 0b1111;
            let us = end.port(member).actor;
            end.aggregator.hear(member, &Header::new(them, us), now);
        }
    };
    end.step(0);
    for now in (0..3000).step_by(500) {
        speaks(&mut end, now);
        end.step(now);
    }
    assert_eq!(end.carrying(), [2, 3]);
}

#[test]
fn a_partner_that_becomes_another_one_joins_anew() {
    let mut net = Net::agreed();
    // The other end's links get another key, then another system.
    for (key, system) in [(91, 2), (91, 3)] {
        let end = &mut net.ends[1];
        end.system = mac(system);
        end.aggregator = Aggregator::default();
        end.aggregator.has(key, end.system, &end.members);
        net.run(100);
        assert!(net.ends[0].carrying().is_empty());
        net.run(4000);
        assert_eq!(net.ends[0].carrying(), [1, 2], "{key} {system}");
        assert_eq!(net.ends[0].port(1).partner.key(), key);
        assert_eq!(net.ends[0].port(1).partner.system, mac(system));
    }
    // So does our own system.
    net.ends[0].system = mac(8);
    net.ends[0].set();
    assert!(net.ends[0].carrying().is_empty());
    net.run(5000);
    assert_eq!(net.ends[1].carrying(), [11, 12]);
}

/// A cable from a member to another one of the same system.
#[test]
fn a_loop_is_no_aggregate() {
    let mut net = Net {
        ends: vec![End::new(1, &[1, 2, 3])],
        links: vec![[(0, 1), (0, 2)], [(0, 3), (0, 3)]],
        now: 0,
    };
    net.run(10_000);
    assert!(net.ends[0].carrying().is_empty());
    assert_eq!(net.ends[0].port(1).rx, Rx::Current);
}

/// A partner that cannot aggregate has one link.
#[test]
fn an_individual_link_carries_alone() {
    let mut net = Net::agreed();
    for port in net.ends[1].aggregator.ports.values_mut() {
        port.actor.set(state::AGGREGATION, false);
    }
    net.run(6000);
    assert_eq!(net.ends[0].carrying(), [1]);
}

#[test]
fn passive_ends_do_not_speak_to_each_other() {
    let mut net = Net::pair();
    for end in &mut net.ends {
        let ports = end.aggregator.ports.values_mut();
        ports.for_each(|port| port.actor.set(state::ACTIVITY, false));
    }
    net.run(30_000);
    assert!(net.ends.iter().all(|end| end.carrying().is_empty()));
    let said = net.ends[0].sent.iter().filter(|(at, ..)| *at > 10_000);
    assert_eq!(said.count(), 0);
}

#[test]
fn a_member_that_is_none_any_more_is_not_heard() {
    let mut net = Net::agreed();
    net.ends[0].members.remove(0);
    net.ends[0].set();
    let them = *Header::new(Info::default(), Info::default()).bytes();
    let (pdu, _) = Header::parse(&them).expect("long enough");
    net.ends[0].aggregator.hear(1, pdu, net.now);
    assert!(!net.ends[0].aggregator.has_port(1));
    net.run(4000);
    assert_eq!(net.ends[1].carrying(), [12]);
}
