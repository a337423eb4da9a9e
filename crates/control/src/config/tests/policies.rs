//! The rules of policies, and of the interfaces that have them.

use router::acl::Packets;
use router::firewall::Action::{Accept, Drop, Reject};
use router::firewall::{State, States};

use super::*;
use crate::config::rules as made;

fn rule(fields: &str) -> String {
    format!(
        "prefixlists: {{ v4: {{ members: [ 10.0.0.0/8 ] }}, none: {{ members: [] }} }}\npolicies: {{ p1: {{ rules: [ {{ action: accept }}, {{ action: accept, {fields} }} ] }} }}"
    )
}

/// What a rule matches is checked as what a term does: a case of each check.
#[test]
fn rules() {
    for (fields, wanted) in [
        ("source: nobody", "family any has no source"),
        ("destination: none", "family any has no destination"),
        (
            "family: ipv4, destination: \"::/0\"",
            "family ipv4 has no destination",
        ),
        (
            "source: v4, destination: \"::/0\"",
            "source and destination family do not overlap",
        ),
        ("protocol: frobnicate", "could not understand protocol"),
        (
            "destination-port: 80",
            "destination-port can only be specified for protocol tcp or udp",
        ),
        (
            "protocol: tcp, icmp-type: 8",
            "icmp-type can only be specified for protocol icmp or ipv6-icmp",
        ),
        (
            "protocol: udp, destination-port: \"80-70\"",
            "destination-port low value is greater than high value",
        ),
    ] {
        let text = rule(fields);
        assert_eq!(errors(&text), [format!("policy p1 rule 2 {wanted}")]);
        let problems = Checked::parse("x", &text).expect_err("an error");
        assert_eq!(problems.iter().next().map(|p| p.line()), Some(2), "{text}");
    }
    for fields in [
        "state: new, limit: 1",
        "state: [ new, established, related, invalid ], limit: 4294967295",
        "source: v4, destination: 192.168.0.1, protocol: tcp, destination-port: www",
    ] {
        assert_valid(&[&rule(fields)]);
    }
    assert_valid(&[
        "policies: { p1: {} }",
        "policies: { p1: { default: reject, rules: [] } }",
    ]);
}

#[test]
fn forms_of_rules() {
    for (fields, wanted) in [
        (
            "state: old",
            "state: 'old' not in ('new', 'established', 'related', 'invalid')",
        ),
        (
            "state: [ old ]",
            "state.0: 'old' not in ('new', 'established', 'related', 'invalid')",
        ),
        ("state: []", "state: Length of [] is less than 1"),
        ("limit: 0", "limit: 0 is less than 1"),
        (
            "limit: 4294967296",
            "limit: 4294967296 is greater than 4294967295",
        ),
        ("protocol: 0", "protocol: 0 is less than 1"),
        ("log: yes", "log: Unexpected element"),
    ] {
        assert_eq!(
            errors(&rule(fields)),
            [format!("policies.p1.rules.1.{wanted}")],
            "{fields}"
        );
    }
    assert_errors(&[
        (
            "policies: { p1: { default: permit } }",
            &["policies.p1.default: 'permit' not in ('accept', 'drop', 'reject')"],
        ),
        (
            "policies: { p1: { rules: [ { state: new } ] } }",
            &["policies.p1.rules.0.action: Required field missing"],
        ),
        (
            "policies: { P: {} }",
            &["policies: Key error - P is not a regex match."],
        ),
        (
            "tables: { flows: 999 }",
            &["tables.flows: 999 is less than 1000"],
        ),
        (
            "tables: { flows: 16000001 }",
            &["tables.flows: 16000001 is greater than 16000000"],
        ),
    ]);
}

#[test]
fn policies_of_interfaces() {
    let text = "policies: { p1: {}, p2: {}, p3: {} }\n\
                loopbacks: { loop0: { firewall: { in: p3 } } }\n\
                interfaces: { e0: { firewall: { in: p1, out: p2 }, sub-interfaces: { 5: { firewall: { out: p1 } } } } }";
    let wanted = Desired::of(&Config::parse("x", text).expect("valid")).expect("can be done");
    let of = |name| {
        let firewall = &wanted.interface(name).expect("it is there").firewall;
        [firewall.input.as_deref(), firewall.output.as_deref()]
    };
    assert_eq!(of("e0"), [Some("p1"), Some("p2")]);
    assert_eq!(of("e0.5"), [None, Some("p1")]);
    assert_eq!(of("loop0"), [Some("p3"), None]);
    assert_eq!(wanted.tables.flows, None);
    assert_errors(&[
        (
            "interfaces: { e0: { firewall: { in: p9 } } }",
            &["interface e0 in policy p9 does not exist"],
        ),
        (
            "interfaces: { e0: { sub-interfaces: { 5: { firewall: { out: p9 } } } } }",
            &["sub-interface e0.5 out policy p9 does not exist"],
        ),
        (
            "loopbacks: { loop0: { firewall: { out: p9 } } }",
            &["loopback loop0 out policy p9 does not exist"],
        ),
        (
            "interfaces: { e0: { firewall: { in: [ p1 ] } } }",
            &["interfaces.e0.firewall.in: '['p1']' is not a str."],
        ),
        (
            "interfaces: { e0: { firewall: { input: p1 } } }",
            &["interfaces.e0.firewall.input: Unexpected element"],
        ),
    ]);
}

/// A rule of the file is a rule of the router, whatever it matches.
#[test]
fn a_rule_is_one_with_a_match_for_each_source_and_destination_of_one_family() {
    let text = "prefixlists: { pp: { members: [ 10.0.0.0/8, 2001:db8::/32, 192.0.2.9 ] } }\n\
                policies: { p1: { default: reject, rules: [ \
                { action: accept, state: [ established, related ] }, \
                { action: drop, state: invalid, source: pp, destination: 198.51.100.0/24 }, \
                { action: reject, source: pp, protocol: tcp, destination-port: www, limit: 10 } ] } }";
    let config = Config::parse("x", text).expect("valid");
    let made = made::policy(&config.policies["p1"], &config.prefixlists);
    assert_eq!(made.default, Reject);
    let rules = made.rules.iter().map(|rule| {
        let v4 = |packets: &&Packets| matches!(packets, Packets::V4(_));
        let v4 = rule.packets.iter().filter(v4).count();
        (rule.action, rule.limit, v4, rule.packets.len() - v4)
    });
    assert_eq!(
        rules.collect::<Vec<_>>(),
        [
            (Accept, None, 1, 1),
            (Drop, None, 2, 0),
            (Reject, Some(10), 2, 1)
        ]
    );
    let states = made.rules.iter().map(|rule| rule.states);
    let some = States::NONE.with(State::Established).with(State::Related);
    let invalid = States::NONE.with(State::Invalid);
    assert_eq!(states.collect::<Vec<_>>(), [some, invalid, States::ALL]);
    let of = |packets: &Packets| match packets {
        Packets::V4(of) => (
            of.source.to_string(),
            of.protocol,
            of.destination_ports.clone(),
        ),
        Packets::V6(of) => (
            of.source.to_string(),
            of.protocol,
            of.destination_ports.clone(),
        ),
    };
    let matched = made.rules[2].packets.iter().map(of);
    let wanted = ["10.0.0.0/8", "2001:db8::/32", "192.0.2.9/32"];
    let wanted = wanted.map(|source| (source.to_owned(), Some(6), 80..=80));
    assert_eq!(matched.collect::<Vec<_>>(), wanted);
    // While its prefix list is not there a rule keeps its place.
    let without = made::policy(&config.policies["p1"], &made::Lists::default());
    let left = without.rules.iter().map(|rule| rule.packets.len());
    assert_eq!(left.collect::<Vec<_>>(), [2, 0, 0]);
}

#[test]
fn what_policies_cannot_do_is_refused_by_name() {
    let refused = |text: &str| {
        let checked = Checked::parse("x", text).expect("valid");
        let problems = checked.wanted().expect_err("it cannot be done");
        let lines = problems.iter().map(|p| (p.message.clone(), p.line()));
        lines.collect::<Vec<_>>()
    };
    for (members, line) in [
        (
            "interfaces:\n  m: { firewall: { in: p1 }, l2xc: n }\n  n: { l2xc: m }\n",
            4,
        ),
        (
            "bridgedomains: { bd1: { interfaces: [ m, n ] } }\ninterfaces:\n  m: { firewall: { in: p1 } }\n  n: {}\n",
            5,
        ),
        (
            "bondethernets: { BondEthernet0: { interfaces: [ m ] } }\ninterfaces:\n  BondEthernet0: { firewall: { in: p1 } }\n  m: { firewall: { out: p1 } }\n  n: {}\n",
            6,
        ),
    ] {
        let text = format!(
            "policies: {{ p1: {{}} }}\nports: {{ m: {{ null: {{}} }}, n: {{ null: {{}} }} }}\n{members}"
        );
        let wanted = "interface m has a firewall and is at layer 2, where nothing is routed";
        assert_eq!(refused(&text), [(wanted.to_owned(), line)], "{text}");
    }
    let members: Vec<_> = (0..400)
        .map(|n| format!("10.{}.{}.0/24", n / 200, n % 200))
        .collect();
    let members = members.join(", ");
    let large = format!(
        "prefixlists: {{ pp: {{ members: [ {members} ] }} }}\n\
         policies: {{ p1: {{ rules: [ {{ action: drop, source: pp, destination: pp }} ] }} }}\n"
    );
    let wanted = "policy p1 comes to 160000 matches, one for each source and destination of a \
                  rule; there can be 100000";
    assert_eq!(refused(&large), [(wanted.to_owned(), 2)]);
}
