use std::time::Instant;

use super::block::{Block, LANES};
use super::{Acl, IP4, IP6, Key, Line, NONE, Rule};
use crate::prefix::{Address, Prefix};
use crate::random::Random;

/// A family, for tests of both.
trait Family<const W: usize>: Address {
    fn random(random: &mut Random) -> Self;
    fn key(source: Self, destination: Self, protocol: u8, ports: Option<(u16, u16)>) -> Key<W>;
}

impl Family<IP4> for u32 {
    fn random(random: &mut Random) -> Self {
        random.word()
    }
    fn key(source: u32, destination: u32, protocol: u8, ports: Option<(u16, u16)>) -> Key<IP4> {
        Key::ip4(source, destination, protocol, ports)
    }
}

impl Family<IP6> for u128 {
    fn random(random: &mut Random) -> Self {
        u128::from(random.bits()) << 64 | u128::from(random.bits())
    }
    fn key(source: u128, destination: u128, protocol: u8, ports: Option<(u16, u16)>) -> Key<IP6> {
        Key::ip6(source, destination, protocol, ports)
    }
}

/// What a packet says.
#[derive(Debug, Clone, Copy)]
struct Packet<A> {
    source: A,
    destination: A,
    protocol: u8,
    ports: Option<(u16, u16)>,
}

/// The first rule that matches, by the words of the rules alone.
fn oracle<A: Address>(rules: &[(u32, Rule<A>)], p: &Packet<A>) -> u32 {
    let any = 0..=u16::MAX;
    let matches = |rule: &Rule<A>| {
        let ports = match p.ports {
            Some((source, destination)) => {
                rule.source_ports.contains(&source) && rule.destination_ports.contains(&destination)
            }
            None => rule.source_ports == any && rule.destination_ports == any,
        };
        rule.source.contains(p.source)
            && rule.destination.contains(p.destination)
            && rule.protocol.is_none_or(|protocol| protocol == p.protocol)
            && ports
    };
    let found = rules.iter().find(|(_, rule)| matches(rule));
    found.map_or(NONE, |(number, _)| *number)
}

/// Kinds of lists: those of a site's border, those of a firewall with many wildcards, and without any
/// order at all.
#[derive(Debug, Clone, Copy)]
enum Style {
    Access,
    Firewall,
    Wild,
}

fn prefix<A: Family<W>, const W: usize>(random: &mut Random, sites: &[A], any: u32) -> Prefix<A> {
    if random.below(100) < any {
        return Prefix::DEFAULT;
    }
    let site = sites[random.below(sites.len() as u32) as usize];
    let bits = u32::from(A::BITS);
    let len = bits / 4 + random.below(bits * 3 / 4 + 1);
    // A place in the site, sometimes a far one.
    let within = A::random(random) & !A::mask((bits / 2) as u8);
    Prefix::cut(site & A::mask((bits / 2) as u8) | within, len as u8)
}

fn ports(random: &mut Random, any: u32) -> std::ops::RangeInclusive<u16> {
    match random.below(100) {
        n if n < any => 0..=u16::MAX,
        n if n < any + 10 => 1024..=u16::MAX,
        n if n % 2 == 0 => {
            let port = random.below(1 << 10) as u16;
            port..=port
        }
        _ => {
            let low = random.word() as u16;
            low..=low.saturating_add(random.below(2000) as u16)
        }
    }
}

/// A list of this many rules, whose numbers have gaps.
fn list<A: Family<W>, const W: usize>(
    random: &mut Random,
    style: Style,
    count: u32,
) -> Vec<(u32, Rule<A>)> {
    let sites: Vec<A> = (0..8).map(|_| A::random(random)).collect();
    let (from, to, open) = match style {
        Style::Access => (5, 5, 50),
        Style::Firewall => (50, 20, 60),
        Style::Wild => (80, 80, 80),
    };
    let rule = |number| {
        let protocol = [None, Some(6), Some(17), Some(1)][random.below(4) as usize];
        let rule = Rule {
            source: prefix(random, &sites, from),
            destination: prefix(random, &sites, to),
            protocol,
            source_ports: ports(random, open),
            destination_ports: ports(random, open),
        };
        (number * 3, rule)
    };
    (0..count).map(rule).collect()
}

/// A packet at the edge of a rule, or anywhere.
fn packet<A: Family<W>, const W: usize>(
    random: &mut Random,
    rules: &[(u32, Rule<A>)],
) -> Packet<A> {
    let some = |random: &mut Random| &rules[random.below(rules.len() as u32) as usize].1;
    let near = |random: &mut Random, prefix: Prefix<A>| match random.below(8) {
        0 => A::random(random),
        1 => prefix.last(),
        2 => prefix.addr(),
        _ => prefix.addr() | A::random(random) & !A::mask(prefix.len()),
    };
    let port = |random: &mut Random, range: std::ops::RangeInclusive<u16>| match random.below(6) {
        0 => range.start().wrapping_sub(1),
        1 => range.end().wrapping_add(1),
        2 => *range.start(),
        3 => *range.end(),
        _ => random.word() as u16,
    };
    let rule = some(random).clone();
    Packet {
        source: near(random, rule.source),
        destination: near(random, rule.destination),
        protocol: rule.protocol.unwrap_or(random.below(256) as u8),
        ports: (random.below(8) > 0).then(|| {
            let source = port(random, rule.source_ports);
            (source, port(random, rule.destination_ports))
        }),
    }
}

fn agrees_with_oracle<A: Family<W>, const W: usize>(seed: u64)
where
    for<'a> &'a Rule<A>: Into<Line<W>>,
{
    let random = &mut Random::new(seed);
    for style in [Style::Access, Style::Firewall, Style::Wild] {
        for count in [1, 2, 15, 16, 17, 64, 65, 300, 1000] {
            let rules = list::<A, W>(random, style, count);
            let acl: Acl<W> = rules.iter().map(|(number, rule)| (*number, rule)).collect();
            let packets: Vec<_> = (0..500).map(|_| packet(random, &rules)).collect();
            let key = |p: &Packet<A>| A::key(p.source, p.destination, p.protocol, p.ports);
            let keys: Vec<_> = packets.iter().map(key).collect();
            let [mut found, mut portable] = [0, 1].map(|n| vec![n; keys.len()]);
            acl.find(&keys, &mut found);
            acl.find_by(&keys, &mut portable, Block::lanes);
            assert_eq!(found, portable, "seed {seed}, {style:?}, {count} rules");
            for (packet, found) in packets.iter().zip(found) {
                let wanted = oracle(&rules, packet);
                assert_eq!(
                    found, wanted,
                    "seed {seed}, {style:?}, {count} rules: {packet:x?}"
                );
            }
        }
    }
}

#[test]
fn finds_the_first_rule_ip4() {
    (0..2).for_each(agrees_with_oracle::<u32, IP4>);
}

#[test]
fn finds_the_first_rule_ip6() {
    (0..2).for_each(agrees_with_oracle::<u128, IP6>);
}

/// Each lane says what the rule says by itself, whatever the processor.
#[test]
fn blocks_compare_as_rules_do() {
    let random = &mut Random::new(7);
    for _ in 0..300 {
        let count = random.below(LANES as u32 + 1);
        let rules = list::<u32, IP4>(random, Style::Firewall, count.max(1));
        let lines: Vec<Line<IP4>> = rules.iter().map(|(_, rule)| rule.into()).collect();
        let block = Block::new(lines.iter().enumerate().map(|(n, line)| (n as u32, *line)));
        for _ in 0..50 {
            let p = packet(random, &rules);
            let key = Key::ip4(p.source, p.destination, p.protocol, p.ports);
            let wanted = lines.iter().enumerate();
            let wanted = wanted.fold(0, |all, (n, line)| all | u16::from(line.matches(&key)) << n);
            assert_eq!(block.lanes(&key), wanted, "{p:x?}");
            #[cfg(target_arch = "x86_64")]
            if is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512bw") {
                // SAFETY: the processor has it.
                #[allow(unsafe_code)]
                let lanes = unsafe { block.lanes_avx512(&key) };
                assert_eq!(lanes, wanted, "{p:x?}");
            }
            #[cfg(target_arch = "x86_64")]
            if is_x86_feature_detected!("avx2") {
                // SAFETY: the processor has it.
                #[allow(unsafe_code)]
                let lanes = unsafe { block.lanes_avx2(&key) };
                assert_eq!(lanes, wanted, "{p:x?}");
            }
        }
    }
}

#[test]
fn an_empty_list_matches_nothing() {
    let acl: Acl<IP4> = std::iter::empty::<(u32, &Rule<u32>)>().collect();
    let mut found = [0; 3];
    acl.find(&[Key::ip4(1, 2, 6, None); 3], &mut found);
    assert_eq!(found, [NONE; 3]);
}

/// Memory grows with the rules, whatever they are. Prints how long it takes to compile them.
#[test]
fn memory_is_bounded_by_the_number_of_rules() {
    for style in [Style::Access, Style::Firewall, Style::Wild] {
        let rules = list::<u32, IP4>(&mut Random::new(3), style, 10_000);
        let begin = Instant::now();
        let acl: Acl<IP4> = rules.iter().map(|(number, rule)| (*number, rule)).collect();
        println!("{style:?}: {} bytes, {:?}", acl.memory(), begin.elapsed());
        // In full blocks a rule takes 44 bytes.
        assert!(acl.memory() < rules.len() * 44 * 16, "{style:?}");
    }
}
