//! The rules of prefix lists and access control lists.

use super::*;

fn term(fields: &str) -> String {
    format!(
        "prefixlists: {{ v4: {{ members: [ 10.0.0.0/8 ] }}, none: {{ members: [] }} }}\nacls: {{ a1: {{ terms: [ {{ action: permit, {fields} }} ] }} }}"
    )
}

#[test]
fn terms() {
    for (fields, wanted) in [
        ("source: nobody", &["family any has no source"][..]),
        (
            "source: none, destination: nobody",
            &["family any has no source", "family any has no destination"],
        ),
        ("family: ipv6, source: v4", &["family ipv6 has no source"]),
        (
            "family: ipv4, destination: \"::/0\"",
            &["family ipv4 has no destination"],
        ),
        (
            "source: 0.0.0.0/0, destination: \"::/0\"",
            &["source and destination family do not overlap"],
        ),
        ("protocol: frobnicate", &["could not understand protocol"]),
        (
            "source-port: 80",
            &["source-port can only be specified for protocol tcp or udp"],
        ),
        (
            "protocol: icmp, source-port: any, destination-port: any",
            &[
                "source-port can only be specified for protocol tcp or udp",
                "destination-port can only be specified for protocol tcp or udp",
            ],
        ),
        (
            "protocol: tcp, source-port: frobnicate",
            &["could not understand source-port"],
        ),
        (
            "protocol: udp, destination-port: \"80-70\"",
            &["destination-port low value is greater than high value"],
        ),
        (
            "protocol: tcp, source-port: \"70000-80000\"",
            &[
                "source-port low value is not between [0,65535]",
                "source-port high value is not between [0,65535]",
            ],
        ),
        (
            "protocol: tcp, destination-port: \"80-99999999999999999999\"",
            &["destination-port high value is not between [0,65535]"],
        ),
        (
            "icmp-type: any",
            &["icmp-type can only be specified for protocol icmp or ipv6-icmp"],
        ),
        (
            "protocol: tcp, icmp-code: 1",
            &["icmp-code can only be specified for protocol icmp or ipv6-icmp"],
        ),
        (
            "protocol: icmp, icmp-code: \"5-4\", icmp-type: \"20-10\"",
            &[
                "icmp-code low value is greater than high value",
                "icmp-type low value is greater than high value",
            ],
        ),
        (
            "protocol: icmp, icmp-type: \"10-300\"",
            &["icmp-type high value is not between [0,255]"],
        ),
    ] {
        let text = term(fields);
        let mut found = errors(&text);
        let mut wanted: Vec<String> = wanted
            .iter()
            .map(|what| format!("acl a1 term 1 {what}"))
            .collect();
        found.sort();
        wanted.sort();
        assert_eq!(found, wanted, "{text}");
    }
    for fields in [
        "family: any",
        "source: any, destination: any, protocol: any",
        "source: v4, destination: 192.168.0.1",
        "source: 2001:db8::/64, destination: 2001:db8::1, protocol: tcp, destination-port: www, source-port: \"1024-65535\"",
        "protocol: 6, source-port: 65535, destination-port: \"-1024\"",
        "protocol: udp, source-port: \"1024-\", destination-port: any",
        "protocol: 58, icmp-type: 0, icmp-code: 255",
        "protocol: icmp, source: \"::/0\", icmp-type: \"-3\", icmp-code: \"8-\"",
        "family: ipv4, source: any",
        "source: 10.0.0.1/8",
    ] {
        assert_valid(&[&term(fields)]);
    }
}

#[test]
fn forms_of_terms() {
    for (fields, wanted) in [
        (
            "family: ipv5",
            "family: 'ipv5' not in ('ipv4', 'ipv6', 'any')",
        ),
        ("protocol: 0", "protocol: 0 is less than 1"),
        ("protocol: 256", "protocol: 256 is greater than 255"),
        ("protocol: \"6\"", "protocol: 6 is not a regex match."),
        (
            "protocol: tcp, source-port: 0",
            "source-port: 0 is less than 1",
        ),
        (
            "protocol: tcp, source-port: 65536",
            "source-port: 65536 is greater than 65535",
        ),
        (
            "protocol: tcp, source-port: -1024",
            "source-port: -1024 is less than 1",
        ),
        (
            "protocol: tcp, source-port: \"80\"",
            "source-port: 80 is not a regex match.",
        ),
        (
            "protocol: tcp, source-port: \"080-90\"",
            "source-port: 080-90 is not a regex match.",
        ),
        (
            "protocol: tcp, source-port: \"0-90\"",
            "source-port: 0-90 is not a regex match.",
        ),
        (
            "protocol: icmp, icmp-type: 256",
            "icmp-type: 256 is greater than 255",
        ),
        (
            "protocol: icmp, icmp-type: \"-0\"",
            "icmp-type: -0 is not a regex match.",
        ),
        (
            "protocol: icmp, icmp-type: \"3-0\"",
            "icmp-type: 3-0 is not a regex match.",
        ),
        ("source: \"\"", "source: Length of  is less than 1"),
        ("source: 5", "source: '5' is not a str."),
        ("log: yes", "log: Unexpected element"),
    ] {
        assert_eq!(
            errors(&term(fields)),
            [format!("acls.a1.terms.0.{wanted}")],
            "{fields}"
        );
    }
    assert_errors(&[
        (
            "acls: { a1: { terms: [] } }",
            &["acls.a1.terms: Length of [] is less than 1"],
        ),
        (
            "acls: { a1: {} }",
            &["acls.a1.terms: Required field missing"],
        ),
        (
            "acls: { a1: { terms: [ {} ] } }",
            &["acls.a1.terms.0.action: Required field missing"],
        ),
        (
            "acls: { a1: { terms: [ { action: drop } ] } }",
            &["acls.a1.terms.0.action: 'drop' not in ('permit', 'deny', 'permit+reflect')"],
        ),
        (
            "acls: { A: { terms: [ { action: deny } ] } }",
            &["acls: Key error - A is not a regex match."],
        ),
        // Nor is it said not to exist.
        (
            "interfaces: { e0: { acls: { input: a } } }\nacls: { a: { terms: [ { action: deny } ] } }",
            &["acls: Key error - a is not a regex match."],
        ),
        (
            "prefixlists: { any: { members: [] } }",
            &["prefixlist any is a reserved name"],
        ),
    ]);
    let terms = "{ action: deny }, ".repeat(101);
    assert!(
        errors(&format!("acls: {{ a1: {{ terms: [ {terms} ] }} }}"))[0]
            .ends_with("is greater than 100")
    );
}

/// The rules of the ACL `a1` of a text, a line each.
fn rules_of(text: &str) -> Vec<String> {
    use crate::config::rules as made;
    use router::acl::{Match, Packets};
    fn line<A: tables::prefix::Address>(permit: bool, of: &Match<A>) -> String {
        let Match {
            source,
            destination,
            protocol,
            source_ports,
            destination_ports,
        } = of;
        format!(
            "{permit} {source} {destination} {protocol:?} {source_ports:?} {destination_ports:?}"
        )
    }
    let config = Config::parse("x", text).expect("valid");
    let rules = made::rules(&config.acls["a1"].terms, &config.prefixlists);
    let rules: Vec<router::acl::Rule> = rules.expect("the router has them");
    let fields = config.acls["a1"].terms.iter().map(|term| &term.fields);
    assert_eq!(rules.len(), made::count(fields, &config.prefixlists));
    let lines = rules.iter().map(|rule| match &rule.packets {
        Packets::V4(of) => line(rule.permit, of),
        Packets::V6(of) => line(rule.permit, of),
    });
    lines.collect()
}

#[test]
fn a_term_comes_to_a_rule_for_each_source_and_destination_of_one_family() {
    let lists = "prefixlists: { pp: { members: [ 10.0.0.0/8, 2001:db8::/32, 192.0.2.9 ] } }\n";
    let acl = |terms: &str| format!("{lists}acls: {{ a1: {{ terms: [ {terms} ] }} }}");
    let all = "0..=65535";
    for (terms, wanted) in [
        (
            "{ action: permit }",
            vec![
                format!("true 0.0.0.0/0 0.0.0.0/0 None {all} {all}"),
                format!("true ::/0 ::/0 None {all} {all}"),
            ],
        ),
        (
            "{ action: deny, source: pp, destination: 198.51.100.0/24 }",
            vec![
                format!("false 10.0.0.0/8 198.51.100.0/24 None {all} {all}"),
                format!("false 192.0.2.9/32 198.51.100.0/24 None {all} {all}"),
            ],
        ),
        (
            "{ action: permit, family: ipv6, source: pp, protocol: tcp, source-port: \"1024-\", destination-port: www }",
            vec!["true 2001:db8::/32 ::/0 Some(6) 1024..=65535 80..=80".to_owned()],
        ),
        (
            "{ action: deny, family: ipv4, protocol: icmp, icmp-type: \"-3\" }, { action: permit, family: ipv4, protocol: 17, destination-port: 53 }",
            vec![
                format!("false 0.0.0.0/0 0.0.0.0/0 Some(1) 0..=3 {all}"),
                format!("true 0.0.0.0/0 0.0.0.0/0 Some(17) {all} 53..=53"),
            ],
        ),
    ] {
        assert_eq!(rules_of(&acl(terms)), wanted, "{terms}");
    }
}

#[test]
fn what_acls_cannot_do_yet_is_refused_by_name() {
    let refused = |text: &str| {
        let checked = Checked::parse("x", text).expect("valid");
        let problems = checked.wanted().expect_err("cannot be done yet");
        let lines = problems.iter().map(|p| (p.message.clone(), p.line()));
        lines.collect::<Vec<_>>()
    };
    let reflecting =
        "acls:\n  a1:\n    terms:\n      - action: deny\n      - action: permit+reflect\n";
    let wanted = "permit+reflect of acl a1 term 2: not supported yet";
    assert_eq!(refused(reflecting), [(wanted.to_owned(), 5)]);
    let crossed = "acls: { a1: { terms: [ { action: deny } ] } }\n\
                   ports: { m: { null: {} }, n: { null: {} } }\n\
                   interfaces:\n  m: { l2xc: n, acls: { input: a1 } }\n  n: { l2xc: m }\n";
    let wanted = "acls of interface m at layer 2: not supported yet";
    assert_eq!(refused(crossed), [(wanted.to_owned(), 4)]);
    let members: Vec<_> = (0..400)
        .map(|n| format!("10.{}.{}.0/24", n / 200, n % 200))
        .collect();
    let members = members.join(", ");
    let large = format!(
        "prefixlists: {{ pp: {{ members: [ {members} ] }} }}\n\
         acls: {{ a1: {{ terms: [ {{ action: deny, source: pp, destination: pp }} ] }} }}\n"
    );
    let wanted =
        "acl a1 comes to 160000 rules, one for each source and destination; there can be 100000";
    assert_eq!(refused(&large), [(wanted.to_owned(), 2)]);
}
