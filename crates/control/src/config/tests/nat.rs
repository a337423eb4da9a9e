//! The rules of address translation.

use std::net::Ipv4Addr;

use router::nat::{Blocks, To};

use super::*;
use crate::config::rules as made;

fn nat(section: &str) -> String {
    format!(
        "prefixlists: {{ v6: {{ members: [ \"2001:db8::/32\" ] }} }}\n\
         interfaces: {{ e0: {{}} }}\nnat: {{ {section} }}"
    )
}

/// Each with the beginning of what is said of it.
const WRONG: &[(&str, &str)] = &[
    ("source: [ { to: nobody } ]", "nat.source.0.to: "),
    (
        "source: [ { interface: e0 } ]",
        "nat.source.0.to: Required field missing",
    ),
    (
        "source: [ { to: interface, interface: e9 } ]",
        "nat source rule 1 interface e9 does not exist",
    ),
    (
        "source: [ { to: none }, { to: interface, source: v6 } ]",
        "nat source rule 2 family ipv4 has no source",
    ),
    (
        "source: [ { to: interface, source-port: 80 } ]",
        "nat source rule 1 source-port can only be specified for protocol tcp or udp",
    ),
    (
        "source: [ { to: 192.0.2.9-192.0.2.1 } ]",
        "nat source rule 1 could not understand to",
    ),
    (
        "source: [ { to: 192.0.2.1/24 } ]",
        "nat source rule 1 could not understand to",
    ),
    (
        "source: [ { to: 10.0.0.0/8 } ]",
        "nat source rule 1 to has more than 65536 addresses",
    ),
    (
        "source: [ { to: 126.255.0.0-127.0.0.1 } ]",
        "nat source rule 1 to has addresses that no host can have",
    ),
    (
        "source: [ { to: 224.0.0.1 } ]",
        "nat source rule 1 to has addresses that no host can have",
    ),
    (
        "source: [ { to: interface, ports: \"9-8\" } ]",
        "nat source rule 1 ports low value is greater than high value",
    ),
    (
        "source: [ { to: interface, ports: \"1-65536\" } ]",
        "nat source rule 1 ports high value is not between [1,65535]",
    ),
    (
        "source: [ { to: interface, ports: \"0-9\" } ]",
        "nat.source.0.ports: ",
    ),
    (
        "source: [ { to: none, ports: \"1-9\" } ]",
        "nat source rule 1 has ports, and the source stays",
    ),
    (
        "source: [ { to: interface, source: 10.0.0.0/24, ports-per-host: 100 } ]",
        "nat source rule 1 has ports-per-host without addresses",
    ),
    (
        "source: [ { to: 192.0.2.1, ports-per-host: 100 } ]",
        "nat source rule 1 has ports-per-host, and its source is not one network",
    ),
    (
        "source: [ { to: 192.0.2.1, source: 10.0.0.0/24, ports-per-host: 1000 } ]",
        "nat source rule 1 has room for 64 hosts with 1000 ports each, and its source has 256",
    ),
    (
        "destination: [ { to: 10.0.0.1 } ]",
        "nat destination rule 1 has neither destination nor interface",
    ),
    (
        "destination: [ { to: 10.0.0.1, destination: any } ]",
        "nat destination rule 1 has any destination",
    ),
    (
        "destination: [ { to: 10.0.0.1, destination: 10.0.0.0/8 } ]",
        "nat destination rule 1 has more than 65536 destinations",
    ),
    (
        "destination: [ { to: \"2001:db8::1\", interface: e0 } ]",
        "nat destination rule 1 to is no IPv4 address",
    ),
    (
        "destination: [ { to: 10.0.0.1, interface: e0, to-port: 80 } ]",
        "nat destination rule 1 has to-port without destination-port",
    ),
    (
        "destination: [ { to: 10.0.0.1, interface: e0, protocol: tcp, destination-port: \"1-9\", to-port: 65530 } ]",
        "nat destination rule 1 has more ports from to-port on than there are",
    ),
    (
        "static: [ { outside: 192.0.2.0/24, inside: 10.0.0.1 } ]",
        "nat static rule 1 outside and inside are not alike",
    ),
    (
        "static: [ { outside: 20.0.0.0/8, inside: 10.0.0.0/8 } ]",
        "nat static rule 1 has more than 65536 addresses",
    ),
    (
        "static: [ { outside: 192.0.2.0/24, inside: 10.0.0.0/24 }, { outside: 192.0.2.1, inside: 10.0.1.1 } ]",
        "nat static rule 2 outside overlaps with that of nat static rule 1",
    ),
    (
        "static: [ { outside: 192.0.2.1, inside: 10.0.0.1 }, { outside: 192.0.2.2, inside: 10.0.0.1 } ]",
        "nat static rule 2 inside overlaps with that of nat static rule 1",
    ),
    (
        "static: [ { outside: 192.0.2.1, inside: 10.0.0.1 } ], source: [ { to: 192.0.2.0/24 } ]",
        "nat static rule 1 outside overlaps with to of nat source rule 1",
    ),
    (
        "static: [ { outside: 192.0.2.1, inside: 10.0.0.1, interface: e9 } ]",
        "nat static rule 1 interface e9 does not exist",
    ),
];

#[test]
fn what_cannot_be_meant_is_an_error() {
    for (section, wanted) in WRONG {
        let found = errors(&nat(section));
        let is_it = found.iter().any(|message| message.starts_with(wanted));
        assert!(is_it, "{section}: {found:?}");
    }
}

/// A rule of the file is one of the router.
#[test]
fn the_router_has_what_the_file_says() {
    let text = nat(
        "source: [ { source: 10.0.0.0/8, to: interface }, { to: 192.0.2.0/30 }, { to: none }, \
         { source: 10.64.0.0/30, to: 192.0.2.9, ports: \"1000-1399\", ports-per-host: 100 } ], \
         destination: [ { interface: e0, protocol: tcp, destination-port: \"80-89\", to: 10.0.0.1, to-port: 8080 } ], \
         static: [ { outside: 192.0.2.16/28, inside: 10.0.1.0/28 } ]",
    );
    let config = Config::parse("x", &text).expect("valid");
    let rules = made::nat(&config.nat, &config.prefixlists);
    let address = |text: &str| text.parse::<Ipv4Addr>().expect("an address");
    let to: Vec<To> = rules.source.into_iter().map(|rule| rule.to).collect();
    let wanted = [
        To::Interface {
            ports: 10000..=32767,
        },
        To::Pool {
            addresses: address("192.0.2.0")..=address("192.0.2.3"),
            ports: 1024..=65535,
            blocks: None,
        },
        To::Same,
        To::Pool {
            addresses: address("192.0.2.9")..=address("192.0.2.9"),
            ports: 1000..=1399,
            blocks: Some(Blocks {
                first: address("10.64.0.0"),
                ports: 100,
            }),
        },
    ];
    assert_eq!(to, wanted);
    let forward = &rules.destination[0];
    assert!(forward.own && forward.port == Some(8080) && forward.packets.len() == 1);
    assert_eq!(forward.packets[0].destination_ports, 80..=89);
    assert_eq!(rules.fixed[0].length, 28);
}

/// The program of a network device takes what is for these, too.
#[test]
fn rules_may_be_about_the_hosts_own_addresses() {
    let interfaces = "interfaces: { e0: { addresses: [ 192.0.2.1/24 ] } }\n";
    for section in [
        "source: [ { to: interface, interface: e0 } ]",
        "source: [ { to: 192.0.2.1 } ]",
        "destination: [ { interface: e0, to: 10.0.0.1 } ]",
        "destination: [ { destination: 192.0.2.0/28, to: 10.0.0.1 } ]",
        "static: [ { outside: 192.0.2.1, inside: 10.0.0.1 } ]",
    ] {
        let text = format!("{interfaces}nat: {{ {section} }}");
        let checked = Checked::parse("x", &text).expect("valid");
        assert!(checked.wanted().is_ok(), "{section}");
    }
}
