//! What is asked about flows: against a list of the packets that opened them.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use router::acl::Direction;
use router::firewall::flows::{Answer, By, Filter, NotAsked, Question, What, show};
use router::firewall::{Action, State};
use router::{Change, Prefix, Route, flow};
use tables::random::Random;
use wire::craft::Packet;
use wire::ip;
use wire::tcp::{ACK, SYN};

use crate::firewall::{ANY, attach, rule, set, to};
use crate::harness::*;
use crate::ip6_nodes;

/// Interface 1 may begin flows, nobody else.
fn guarded(workers: usize) -> Lab {
    let mut lab = ip6_nodes::prepared(wired6(Lab::sized(workers, 64).wired()));
    let back = Route::Forward(vec![via6(1, "2001:db8:1::2")]);
    lab.apply(vec![near(), route("2001:db8:9::/48", back)]);
    let known = || rule(Action::Accept, &[State::Established], to(None, ANY));
    let new = rule(Action::Accept, &[State::New], to(None, ANY));
    lab.apply(vec![
        set("inside", vec![known(), new], Action::Drop),
        set("outside", vec![known()], Action::Drop),
        attach(1, Direction::Input, Some("inside")),
        attach(2, Direction::Input, Some("outside")),
    ]);
    lab
}

/// Where the sources of IPv4 are.
fn near() -> Change {
    route("10.9.0.0/16", Route::Forward(vec![via(1, 2)]))
}

/// A packet that opens a flow: TCP or UDP, source, destination.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Opener {
    tcp: bool,
    source: SocketAddr,
    destination: SocketAddr,
}

impl Opener {
    fn random(random: &mut Random) -> Self {
        let is_4 = random.below(2) == 0;
        let mut end = |v4: [u8; 2], v6: u16| {
            let (a, b) = (random.below(8) as u8, 2 + random.below(40) as u8);
            let ip = match is_4 {
                true => IpAddr::from(Ipv4Addr::new(v4[0], v4[1], a, b)),
                false => Ipv6Addr::new(0x2001, 0xdb8, v6, 0, 0, 0, a.into(), b.into()).into(),
            };
            // Few ports, some of them the same at both ends.
            SocketAddr::new(ip, 1 + random.below(30) as u16)
        };
        let (source, destination) = (end([10, 9], 9), end([48, 1], 0x4800));
        Opener {
            tcp: random.below(2) == 0,
            source,
            destination,
        }
    }

    /// In the original direction, or the other one.
    fn packet(&self, forth: bool, flags: u8, seq: u32, ack: u32) -> Packet {
        let (from, to) = match forth {
            true => (self.source, self.destination),
            false => (self.destination, self.source),
        };
        let ports = [from.port(), to.port()];
        let packet = match (from.ip(), to.ip()) {
            (IpAddr::V4(from), IpAddr::V4(to)) => {
                let [from, to] = [(from.to_bits(), ports[0]), (to.to_bits(), ports[1])];
                match self.tcp {
                    true => Packet::tcp(from, to, flags, seq, ack),
                    false => Packet::udp(from, to),
                }
            }
            (IpAddr::V6(from), IpAddr::V6(to)) => {
                let [from, to] = [(from, ports[0]), (to, ports[1])];
                match self.tcp {
                    true => Packet::tcp6(from, to, flags, seq, ack),
                    false => Packet::udp6(from, to),
                }
            }
            _ => unreachable!("both are of one family"),
        };
        match forth {
            true => packet.macs(host_mac(1, 2), own_mac(1)),
            false => packet.macs(host_mac(2, 2), own_mac(2)),
        }
    }

    /// The first packet of the flow.
    fn first(&self) -> Vec<u8> {
        self.packet(true, SYN, 100, 0).frame()
    }

    fn protocol(&self) -> u8 {
        if self.tcp { ip::TCP } else { ip::UDP }
    }

    fn state(&self) -> flow::State {
        if self.tcp {
            flow::State::SynSent
        } else {
            flow::State::Udp
        }
    }
}

/// So many different ones.
fn openers(count: usize, seed: u64) -> Vec<Opener> {
    let mut random = Random::new(seed);
    let mut all = BTreeSet::new();
    while all.len() < count {
        let opener = Opener::random(&mut random);
        // The other way round it is the same flow.
        let Opener {
            source,
            destination,
            tcp,
        } = opener;
        let reverse = Opener {
            source: destination,
            destination: source,
            tcp,
        };
        if !all.contains(&reverse) {
            all.insert(opener);
        }
    }
    all.into_iter().collect()
}

fn open(lab: &mut Lab, openers: &[Opener]) {
    for some in openers.chunks(200) {
        lab.receive(1, some.iter().map(Opener::first));
        assert_eq!(lab.sent(2).len(), some.len());
    }
    lab.check_buffers(0);
}

/// Asks, and lets workers go on until they have answered; how many milliseconds that took.
fn asked(lab: &mut Lab, filter: Filter, what: What) -> (Answer, usize) {
    lab.router
        .ask_flows(Question { filter, what })
        .expect("nobody else asks");
    let mut answers = (1..1000).map(|time| {
        lab.advance(Duration::from_millis(1));
        (lab.router.flows_answer(), time)
    });
    let answer = answers.find_map(|(answer, time)| Some((answer?, time)));
    answer.expect("workers answer")
}

fn shown(lab: &mut Lab, filter: Filter, what: What) -> show::Flows {
    let (answer, _) = asked(lab, filter, what);
    show::flows(&lab.router, &answer)
}

fn removed(lab: &mut Lab, filter: Filter) -> u64 {
    let (answer, _) = asked(lab, filter, What::Remove);
    show::cleared(&answer).removed
}

/// The openers of the flows that are shown, each once.
fn openers_of(shown: &show::Flows) -> BTreeSet<Opener> {
    let end = |address: &str, port| SocketAddr::new(address.parse().expect("an address"), port);
    let flows = shown.flows.iter().map(|flow| Opener {
        tcp: flow.protocol == ip::TCP,
        source: end(&flow.source, flow.source_port),
        destination: end(&flow.destination, flow.destination_port),
    });
    let openers: BTreeSet<Opener> = flows.collect();
    assert_eq!(openers.len(), shown.flows.len(), "a flow is shown twice");
    openers
}

/// The same filter, in other words.
fn is_meant(filter: &Filter, of: &Opener) -> bool {
    let within = |prefix: &Option<Prefix>, end: &SocketAddr| {
        prefix.is_none_or(|prefix| {
            let same = prefix.address().is_ipv4() == end.is_ipv4();
            same && Prefix::new(end.ip(), prefix.length()) == Some(prefix)
        })
    };
    let has = |ports: &Option<std::ops::RangeInclusive<u16>>, end: &SocketAddr| {
        let port = end.port();
        ports
            .as_ref()
            .is_none_or(|p| *p.start() <= port && port <= *p.end())
    };
    let Opener {
        source,
        destination,
        ..
    } = of;
    let mut fits = filter.protocol.is_none_or(|number| number == of.protocol());
    fits &= filter.state.is_none_or(|state| state == of.state());
    fits &= within(&filter.source, source) && has(&filter.source_port, source);
    fits &= within(&filter.destination, destination) && has(&filter.destination_port, destination);
    fits &= within(&filter.address, source) || within(&filter.address, destination);
    fits &= has(&filter.port, source) || has(&filter.port, destination);
    fits && filter.interface.is_none_or(|id| id == 1 || id == 2)
}

/// Any filter, which some of these may match.
fn any_filter(random: &mut Random, openers: &[Opener]) -> Filter {
    let some = |random: &mut Random, of: u32| random.below(of) == 0;
    let model = openers[random.below(openers.len() as u32) as usize];
    let prefix = |random: &mut Random, ip: IpAddr| {
        let bits = if ip.is_ipv4() { 32 } else { 128 };
        Prefix::new(ip, bits - random.below(20) as u8)
    };
    let ports = |random: &mut Random, port: u16| Some(port..=port + random.below(4) as u16);
    let mut filter = Filter::default();
    if some(random, 4) {
        filter.protocol = Some(if some(random, 5) {
            47
        } else {
            model.protocol()
        });
    }
    if some(random, 4) {
        filter.state = Some(model.state());
    }
    if some(random, 3) {
        filter.source = prefix(random, model.source.ip());
    }
    if some(random, 4) {
        filter.destination = prefix(random, model.destination.ip());
    }
    if some(random, 4) {
        let end = if some(random, 2) {
            model.source
        } else {
            model.destination
        };
        filter.address = prefix(random, end.ip());
    }
    if some(random, 4) {
        filter.source_port = ports(random, model.source.port());
    }
    if some(random, 4) {
        filter.destination_port = ports(random, model.destination.port());
    }
    if some(random, 4) {
        filter.port = ports(random, model.source.port());
    }
    if some(random, 5) {
        filter.interface = Some(1 + random.below(3) as u16);
    }
    filter
}

#[test]
fn filters_find_what_a_plain_filter_finds() {
    for workers in [1, 3] {
        let mut lab = guarded(workers);
        let openers = openers(3000, 7);
        open(&mut lab, &openers);
        let mut random = Random::new(8);
        let (mut none, mut many) = (0, 0);
        for _ in 0..300 {
            let filter = any_filter(&mut random, &openers);
            let meant = openers.iter().filter(|of| is_meant(&filter, of));
            let meant: BTreeSet<Opener> = meant.copied().collect();
            let all = shown(&mut lab, filter.clone(), What::Some(5000));
            assert_eq!(openers_of(&all), meant, "{filter:?}");
            assert_eq!(all.matching, meant.len() as u64);
            let few = shown(&mut lab, filter, What::Some(5));
            assert_eq!(few.matching, meant.len() as u64);
            assert_eq!(few.flows.len(), meant.len().min(5));
            assert!(openers_of(&few).is_subset(&meant));
            none += usize::from(meant.is_empty());
            many += usize::from(meant.len() > 5);
        }
        assert!(none > 10 && many > 50, "{none} {many}");
    }
}

#[test]
fn each_worker_shows_its_own_flows_and_all_count_them() {
    let mut lab = guarded(2);
    let openers = openers(500, 1);
    open(&mut lab, &openers);
    let of = |lab: &mut Lab, worker| {
        let filter = Filter {
            worker: Some(worker),
            ..Filter::default()
        };
        let shown = shown(lab, filter.clone(), What::Some(1000));
        let name = format!("worker-{worker}");
        assert!(shown.flows.iter().all(|flow| flow.worker == name));
        let (answer, _) = asked(lab, filter, What::Count);
        let summary = show::summary(&lab.router, &answer);
        assert_eq!(summary.workers.len(), 1);
        assert_eq!(summary.workers[0].flows, shown.matching);
        (openers_of(&shown), summary)
    };
    let (first, second) = (of(&mut lab, 0), of(&mut lab, 1));
    assert!(first.0.len() > 100 && second.0.len() > 100);
    assert!(first.0.is_disjoint(&second.0));
    assert_eq!(first.0.len() + second.0.len(), 500);
    let states = first.1.workers[0].states.as_ref().expect("they were asked");
    let tcp = first.0.iter().filter(|opener| opener.tcp).count() as u64;
    let states: Vec<_> = states.iter().map(|of| (of.state, of.flows)).collect();
    assert_eq!(
        states,
        [("syn-sent", tcp), ("udp", first.0.len() as u64 - tcp)]
    );
    let question = Question {
        filter: Filter {
            worker: Some(2),
            ..Filter::default()
        },
        what: What::Count,
    };
    let why = lab.router.ask_flows(question).expect_err("there is none");
    assert_eq!(
        why.to_string(),
        "there is no worker 2; workers have numbers from 0 to 1"
    );
}

#[test]
fn the_largest_flows_are_shown_first() {
    let mut lab = guarded(2);
    let openers: Vec<Opener> = openers(400, 3).into_iter().filter(|of| !of.tcp).collect();
    open(&mut lab, &openers);
    // Flow n has n % 50 more packets; those of IPv6 are longer.
    for (n, opener) in openers.iter().enumerate() {
        let forth = (0..n % 50 / 2).map(|_| opener.first());
        lab.receive(1, forth);
        let back = (0..(n % 50).div_ceil(2)).map(|_| opener.packet(false, 0, 0, 0).frame());
        lab.receive(2, back);
        lab.sent(1);
        lab.sent(2);
    }
    let rank = |by: By, n: usize| {
        let packets = 1 + n as u64 % 50;
        let length = if openers[n].source.is_ipv4() { 28 } else { 48 };
        match by {
            By::Packets => packets,
            By::Bytes => packets * length,
        }
    };
    for by in [By::Packets, By::Bytes] {
        let mut ranks: Vec<u64> = (0..openers.len()).map(|n| rank(by, n)).collect();
        ranks.sort_by_key(|rank| std::cmp::Reverse(*rank));
        for most in [1, 10, 70] {
            let shown = shown(&mut lab, Filter::default(), What::Top(most, by));
            assert_eq!(shown.matching, openers.len() as u64);
            let found = shown.flows.iter().map(|flow| match by {
                By::Packets => flow.packets + flow.reply_packets,
                By::Bytes => flow.bytes + flow.reply_bytes,
            });
            assert!(found.eq(ranks[..most].iter().copied()), "{by:?} {most}");
            for (flow, opener) in shown.flows.iter().zip(openers_in_order(&shown)) {
                let n = openers
                    .iter()
                    .position(|of| *of == opener)
                    .expect("it was opened");
                assert_eq!(flow.packets, 1 + n as u64 % 50 / 2);
            }
        }
    }
}

fn openers_in_order(shown: &show::Flows) -> Vec<Opener> {
    let one = |flow: &show::Flow| {
        let alone = show::Flows {
            matching: 1,
            flows: vec![flow.clone()],
        };
        openers_of(&alone).pop_first().expect("a flow")
    };
    shown.flows.iter().map(one).collect()
}

#[test]
fn what_is_cleared_is_gone_and_judged_anew() {
    let mut lab = guarded(2);
    let openers = openers(1000, 5);
    open(&mut lab, &openers);
    let filter = Filter {
        protocol: Some(ip::UDP),
        port: Some(1..=3),
        ..Filter::default()
    };
    let (gone, stay): (Vec<Opener>, Vec<Opener>) =
        openers.iter().partition(|of| is_meant(&filter, of));
    assert!(gone.len() > 20);
    assert_eq!(removed(&mut lab, filter.clone()), gone.len() as u64);
    assert_eq!(removed(&mut lab, filter), 0);
    let left = shown(&mut lab, Filter::default(), What::Some(2000));
    assert_eq!(openers_of(&left), stay.iter().copied().collect());
    let answers = |of: &Opener| of.packet(false, SYN | ACK, 900, 101).frame();
    for (openers, passed) in [(&gone, false), (&stay, true)] {
        let passing = lab.sent(1).len();
        assert_eq!(passing, 0);
        for some in openers.chunks(200) {
            lab.receive(2, some.iter().map(answers));
        }
        assert_eq!(lab.sent(1).len(), if passed { openers.len() } else { 0 });
    }
    // Who may begin opens it again.
    open(&mut lab, &gone);
    let all = shown(&mut lab, Filter::default(), What::Some(1));
    assert_eq!((all.matching, all.flows.len()), (1000, 1));
    assert_eq!(removed(&mut lab, Filter::default()), 1000);
    let summary = show::counters(&lab.router);
    let sum = |of: fn(&show::Counted) -> u64| summary.workers.iter().map(of).sum::<u64>();
    assert_eq!((sum(|w| w.flows), sum(|w| w.embryonic)), (0, 0));
    assert_eq!(sum(|w| w.begun), 1000 + gone.len() as u64);
    lab.check_buffers(0);
}

#[test]
fn a_worker_goes_on_in_steps_and_packets_pass_between_them() {
    let mut lab = guarded(1);
    // Enough for three steps, opened without a look at what leaves.
    let openers = openers(9000, 9);
    open(&mut lab, &openers);
    let question = |what| Question {
        filter: Filter::default(),
        what,
    };
    lab.router
        .ask_flows(question(What::Count))
        .expect("nobody asks");
    let busy = lab.router.ask_flows(question(What::Count));
    assert_eq!(busy, Err(NotAsked::Busy));
    for _ in 0..2 {
        lab.advance(Duration::from_millis(1));
        assert!(lab.router.flows_answer().is_none());
        open(&mut lab, &openers[..10]);
    }
    lab.advance(Duration::from_millis(1));
    let answer = lab.router.flows_answer().expect("three steps are enough");
    let summary = show::summary(&lab.router, &answer);
    assert_eq!(summary.workers[0].flows, 9000);
    // To remove takes longer.
    let (answer, time) = asked(&mut lab, Filter::default(), What::Remove);
    assert_eq!(show::cleared(&answer).removed, 9000);
    assert!((20..60).contains(&time), "{time} ms");
    // What nobody waits for any more answers no other question.
    for n in 0..4 {
        let asked = lab.router.ask_flows(question(What::Remove));
        assert_eq!(asked, Ok(()), "{n}");
        assert_eq!(lab.router.give_up_flows(), [0]);
    }
    let silent = lab.router.ask_flows(question(What::Count));
    assert_eq!(silent, Err(NotAsked::Silent(0)));
    lab.advance(Duration::from_millis(1));
    open(&mut lab, &openers[..10]);
    (0..10).for_each(|_| lab.advance(Duration::from_millis(1)));
    assert!(lab.router.flows_answer().is_none());
    let (answer, _) = asked(&mut lab, Filter::default(), What::Count);
    assert_eq!(show::flows(&lab.router, &answer).matching, 0);
}

#[test]
fn what_becomes_of_flows_is_counted() {
    let sizes = tables::flow::Sizes {
        flows: 10,
        keys: 10,
        embryonic: 6,
    };
    let lab = Lab::with_flows(1, 64, 8192, None, router::nodes::table, sizes);
    let mut lab = lab.wired();
    let new = rule(
        Action::Accept,
        &[State::New, State::Established],
        to(None, ANY),
    );
    lab.apply(vec![
        near(),
        set("all", vec![new], Action::Drop),
        attach(1, Direction::Input, Some("all")),
    ]);
    let openers: Vec<Opener> = openers(60, 11)
        .into_iter()
        .filter(|of| !of.tcp && of.source.is_ipv4())
        .take(12)
        .collect();
    assert_eq!(openers.len(), 12);
    // Four are answered, and eight are not: two of these go, then there is no room.
    for opener in &openers[..4] {
        lab.receive(1, [opener.first()]);
        lab.receive(2, [opener.packet(false, 0, 0, 0).frame()]);
    }
    lab.receive(1, openers[4..].iter().map(Opener::first));
    lab.advance(Duration::from_millis(1));
    let counted = show::counters(&lab.router).workers.remove(0);
    assert_eq!(
        (counted.flows, counted.embryonic, counted.room),
        (10, 6, 10)
    );
    assert_eq!((counted.begun, counted.refused), (12, 0));
    assert_eq!((counted.displaced, counted.expired), (2, 0));
    assert_eq!(counted.memory_bytes, sizes.bytes());
    // An unanswered one is idle for too long after 30 s.
    lab.advance(Duration::from_secs(31));
    lab.advance(Duration::from_secs(10));
    let counted = show::counters(&lab.router).workers.remove(0);
    assert_eq!(
        (counted.flows, counted.embryonic, counted.expired),
        (4, 0, 6)
    );
    let text = show::counters(&lab.router).to_string();
    let lines: Vec<&str> = text.lines().collect();
    assert!(
        lines[0].starts_with("worker-0: 4 flows of 10, 0 not answered, "),
        "{text}"
    );
    assert_eq!(lines[1], "    begun 12 expired 6 displaced 2 refused 0");
}

#[test]
fn flows_are_printed() {
    let mut lab = guarded(1);
    let end = |text: &str| text.parse().expect("an address and a port");
    let one = |source, destination, tcp| Opener {
        source: end(source),
        destination: end(destination),
        tcp,
    };
    let udp = one("10.9.1.2:1025", "48.1.0.3:53", false);
    let tcp = one("[2001:db8:9::9]:5", "[2001:db8:4800::1]:443", true);
    // In the middle of a second, so that none begins unexpectedly.
    let second = graph::cycles::of(Duration::from_secs(1));
    lab.now = lab.now.next_multiple_of(second) + second / 2;
    lab.run();
    open(&mut lab, &[udp, tcp]);
    lab.receive(2, [udp.packet(false, 0, 0, 0).frame()]);
    lab.advance(Duration::from_secs(5));
    let shown = shown(&mut lab, Filter::default(), What::Some(9));
    assert_eq!(
        shown.to_string(),
        "udp 10.9.1.2:1025 > 48.1.0.3:53 udp-replied idle 5 s, 115 s left, worker-0
    eth1 > eth2 packets 1 bytes 28; replies eth2 > eth1 packets 1 bytes 28
tcp [2001:db8:9::9]:5 > [2001:db8:4800::1]:443 syn-sent idle 5 s, 115 s left, worker-0
    eth1 > eth2 packets 1 bytes 60; replies ? > ? packets 0 bytes 0
2 flows match
"
    );
    let few = self::shown(&mut lab, Filter::default(), What::Some(1)).to_string();
    assert!(
        few.ends_with("2 flows match, 1 of them are shown\n"),
        "{few}"
    );
    let none = Filter {
        protocol: Some(47),
        ..Filter::default()
    };
    assert_eq!(
        self::shown(&mut lab, none, What::Some(1)).to_string(),
        "no flow matches\n"
    );
}
