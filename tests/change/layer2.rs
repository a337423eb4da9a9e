//! Changes of everything at layer 2 while packets are routed beside it.

use std::fmt::Write;
use std::time::{Duration, Instant};

use super::{CONFIGURATION, Hosts, Router, becomes, skipped, without_loss};
use crate::harness::random::Random;

/// Changes under traffic.
const TRANSITIONS: usize = 100;
/// What a configuration has at most.
const TRUNKS: usize = 4;
const SUBS: usize = 50;
const BRIDGES: usize = 20;
const BONDS: usize = 10;
const TUNNELS: usize = 50;

/// A configuration of nearly 200 sub-interfaces, 20 bridges, 10 bonds and 50 tunnels, beside what
/// routes.
fn layered(random: &mut Random) -> String {
    let mut bridges = vec![Vec::new(); BRIDGES];
    // What is in a bridge, or in none.
    let mut join = |random: &mut Random, name: &str| {
        if random.below(4) > 0 {
            bridges[random.below(BRIDGES)].push(name.to_owned());
        }
    };
    let mut interfaces = String::from("  r0: {}\n  r1: {}\n");
    let mut ports = String::new();
    for trunk in 0..TRUNKS {
        let _ = writeln!(ports, "  t{trunk}: {{ tap: {{}} }}");
        let _ = writeln!(
            interfaces,
            "  t{trunk}:\n    mtu: 1500\n    sub-interfaces:"
        );
        for id in 100..100 + SUBS {
            if random.below(10) == 0 {
                continue;
            }
            let tags = match random.below(3) {
                0 => format!(", encapsulation: {{ dot1ad: {id}, exact-match: true }}"),
                1 => {
                    format!(
                        ", encapsulation: {{ dot1q: 99, inner-dot1q: {id}, exact-match: true }}"
                    )
                }
                _ => String::new(),
            };
            let _ = writeln!(interfaces, "      {id}: {{ state: up{tags} }}");
            join(random, &format!("t{trunk}.{id}"));
        }
        // The outer tag of those with two.
        let _ = writeln!(interfaces, "      99: {{ state: down }}");
    }
    let mut bonds = String::new();
    for bond in 0..BONDS {
        let members = [2 * bond, 2 * bond + 1].map(|member| format!("b{member}"));
        for member in &members {
            let _ = writeln!(ports, "  {member}: {{ tap: {{}} }}");
            let _ = writeln!(interfaces, "  {member}: {{}}");
        }
        if random.below(5) == 0 {
            continue;
        }
        let mode = random.one_of(&["xor", "lacp", "active-backup", "round-robin"]);
        let members = &members[..1 + random.below(2)];
        let name = format!("BondEthernet{bond}");
        let _ = writeln!(
            bonds,
            "  {name}: {{ mode: {mode}, interfaces: [ {} ] }}",
            members.join(", ")
        );
        let _ = writeln!(interfaces, "  {name}: {{}}");
        join(random, &name);
    }
    let mut tunnels = String::new();
    for tunnel in 0..TUNNELS {
        if random.below(5) == 0 {
            continue;
        }
        let (name, vni) = (
            format!("vxlan_tunnel{tunnel}"),
            random.one_of(&[100, 200]) + tunnel,
        );
        let _ = writeln!(
            tunnels,
            "  {name}: {{ local: 10.12.0.1, remote: 48.0.0.9, vni: {vni} }}"
        );
        let _ = writeln!(interfaces, "  {name}: {{ mtu: 1500 }}");
        join(random, &name);
    }
    let mut domains = String::new();
    let mut loopbacks = String::from("  loop0: { addresses: [ 10.12.0.1/32 ] }\n");
    for (number, members) in bridges.iter().enumerate() {
        let number = number + 1;
        let mut fields = vec![format!("interfaces: [ {} ]", members.join(", "))];
        if random.below(3) == 0 {
            fields.push(format!("bvi: loop{number}"));
            let _ = writeln!(
                loopbacks,
                "  loop{number}: {{ addresses: [ 10.13.{number}.1/24 ] }}"
            );
        }
        if random.below(4) == 0 {
            fields.push("settings: { learn: false, unicast-flood: true }".to_owned());
        }
        let _ = writeln!(domains, "  bd{number}: {{ {} }}", fields.join(", "));
    }
    let sections = [
        ("interfaces", interfaces),
        ("ports", ports),
        ("bondethernets", bonds),
        ("vxlan_tunnels", tunnels),
        ("bridgedomains", domains),
        ("loopbacks", loopbacks),
    ];
    let sections = sections.iter().filter(|(_, lines)| !lines.is_empty());
    sections
        .map(|(name, lines)| format!("{name}:\n{lines}"))
        .collect()
}

#[test]
fn changes_of_layer_2_lose_no_packet_of_what_stays() {
    const NAME: &str = "changes_of_layer_2_lose_no_packet_of_what_stays";
    if skipped(NAME, &["ip"]) {
        return;
    }
    let hosts = Hosts::new(1500, false);
    let mut random = Random::new(NAME);
    let router = Router::start(&hosts.router, CONFIGURATION);
    let mut longest = Duration::ZERO;
    without_loss(&hosts, || {
        for _ in 0..TRANSITIONS {
            let yaml = layered(&mut random);
            let begin = Instant::now();
            becomes(&router, &yaml);
            longest = longest.max(begin.elapsed());
        }
        becomes(&router, CONFIGURATION);
    });
    println!("{TRANSITIONS} changes, the longest took {longest:?}");
}
