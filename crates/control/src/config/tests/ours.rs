//! The sections and fields that vppcfg does not have.

use super::*;

/// One number on one socket is two interfaces only where each is an end.
#[test]
fn memifs_on_one_socket() {
    assert_valid(&[
        "ports: { p: { memif: { socket: /s, id: 1 } }, q: { memif: { socket: /s, id: 2 } } }",
        "ports: { p: { memif: { socket: /s } }, q: { memif: { socket: /t } } }",
        "ports: { p: { memif: { socket: /s, role: server } }, q: { memif: { socket: /s, role: client } } }",
    ]);
}

#[test]
fn routes() {
    let lan = "interfaces: { lan: { addresses: [ 192.0.2.1/24 ] }, sw: { l2xc: lan2 }, lan2: {}, red0: { vrf: red, addresses: [ 192.0.2.1/24 ] } }\n\
               vrfs: { red: { table: 9 } }\nroutes: [ @ ]";
    for (route, wanted) in [
        (
            "{ prefix: 10.0.0.1/8, via: 192.0.2.2 }",
            "routes.0.prefix: '10.0.0.1/8' is not a ip_network.",
        ),
        (
            "{ via: 192.0.2.2 }",
            "routes.0.prefix: Required field missing",
        ),
        ("{ prefix: 10.0.0.0/8 }", "route 10.0.0.0/8 has no next hop"),
        (
            "{ prefix: 10.0.0.0/8, via: 192.0.2.2, blackhole: yes }",
            "route 10.0.0.0/8 cannot have via when it is a blackhole",
        ),
        (
            "{ prefix: 10.0.0.0/8, via: 192.0.2.2, vrf: blue }",
            "route 10.0.0.0/8 vrf blue does not exist",
        ),
        (
            "{ prefix: 10.0.0.0/8, via: 192.0.2.2, vrf: red, table: 9 }",
            "route 10.0.0.0/8 has both vrf and table",
        ),
        (
            "{ prefix: 10.0.0.0/8, via: [ {} ] }",
            "route 10.0.0.0/8 has a next hop without address and interface",
        ),
        (
            "{ prefix: 10.0.0.0/8, via: [ { interface: nowhere } ] }",
            "route 10.0.0.0/8 interface nowhere does not exist",
        ),
        (
            "{ prefix: 10.0.0.0/8, via: [ { interface: red0 } ] }",
            "route 10.0.0.0/8 interface red0 is in another vrf",
        ),
        (
            "{ prefix: 10.0.0.0/8, via: [ { interface: sw } ] }",
            "route 10.0.0.0/8 interface sw cannot be in L2 mode",
        ),
        (
            "{ prefix: \"2001:db8::/32\", via: 192.0.2.2 }",
            "route 2001:db8::/32 cannot have an IPv4 next hop",
        ),
        (
            "{ prefix: \"2001:db8::/32\", via: fe80::1 }",
            "route 2001:db8::/32 next hop fe80::1 needs an interface",
        ),
        (
            "{ prefix: 10.0.0.0/8, via: [ { address: 192.0.2.2, weight: 257 } ] }",
            "routes.0.via.0.weight: 257 is greater than 256",
        ),
        (
            "{ prefix: 10.0.0.0/8, via: nobody }",
            "routes.0.via: 'nobody' is not a ip.",
        ),
        (
            "{ prefix: 10.0.0.0/8, via: 192.0.2.2 }, { prefix: 10.0.0.0/8, via: 192.0.2.3 }",
            "route 10.0.0.0/8 is not unique",
        ),
        (
            "{ prefix: 10.0.0.0/8, via: 192.0.2.2, table: 9 }, { prefix: 10.0.0.0/8, via: 192.0.2.3, vrf: red }",
            "route 10.0.0.0/8 is not unique",
        ),
        // Metrics that are one to the kernel.
        (
            "{ prefix: \"3fff::/20\", blackhole: true }, { prefix: \"3fff::/20\", blackhole: true, metric: 1024 }",
            "route 3fff::/20 is not unique",
        ),
    ] {
        let text = lan.replace('@', route);
        assert!(
            errors(&text).contains(&wanted.to_owned()),
            "{text}\n{:?}",
            errors(&text)
        );
    }
    for route in [
        "{ prefix: 10.0.0.0/8, via: [ 192.0.2.2, { address: 192.0.2.3, weight: 2 } ] }",
        "{ prefix: 10.0.0.0/8, via: [ { address: fe80::1, interface: lan } ] }",
        "{ prefix: 10.0.0.0/8, via: [ { interface: lan } ], table: 100, metric: 5 }",
        "{ prefix: 10.0.0.0/8, via: 192.0.2.2 }, { prefix: 10.0.0.0/8, via: 192.0.2.2, metric: 7 }, { prefix: 10.0.0.0/8, via: 192.0.2.2, vrf: red }",
        "{ prefix: 10.0.0.0/8, blackhole: true }, { prefix: 10.0.0.0/8, blackhole: true, metric: 1024 }",
    ] {
        assert_valid(&[&lan.replace('@', route)]);
    }
    let text = lan.replace('@', "{ prefix: 10.0.0.0/8, via: 203.0.113.1 }");
    let nowhere = "route 10.0.0.0/8 next hop 203.0.113.1 is on no link of this file";
    assert!(said(&text, Severity::Warning).contains(&nowhere.to_owned()));
    let warnings = Checked::parse("test.yaml", &text).expect("valid").warnings;
    let waits = "it waits until an address or an on-link route reaches its next hop";
    assert!(warnings.to_string().contains(waits), "{warnings}");
}

#[test]
fn vrfs() {
    assert_errors(&[
        (
            "vrfs: { a: { table: 254 } }",
            &["vrf a table 254 is reserved"],
        ),
        (
            "vrfs: { a: { table: 5 }, b: { table: 5 } }",
            &["vrf a table 5 is not unique", "vrf b table 5 is not unique"],
        ),
        (
            "vrfs: { a: { table: 5 } }\ninterfaces: { e0: { lcp: a } }",
            &["vrf a has the name of an LCP"],
        ),
        ("vrfs: { a: {} }", &["vrfs.a.table: Required field missing"]),
        (
            "interfaces: { e0: { vrf: a } }",
            &["interface e0 vrf a does not exist"],
        ),
        (
            "interfaces: { e0: { unnumbered: loop0, vrf: a } }\nloopbacks: { loop0: {} }\nvrfs: { a: { table: 5 } }",
            &["interface e0 unnumbered target loop0 is in another vrf"],
        ),
    ]);
}

#[test]
fn acls_of_interfaces() {
    let acls =
        "acls: { a1: { terms: [ { action: deny } ] }, a2: { terms: [ { action: deny } ] } }\n";
    let text =
        format!("{acls}interfaces: {{ e0: {{ acls: {{ input: a1, output: [ a1, a2 ] }} }} }}");
    let config = Config::parse("x", &text).expect("valid");
    assert_eq!(config.interfaces["e0"].acls.input, ["a1"]);
    assert_eq!(config.interfaces["e0"].acls.output, ["a1", "a2"]);
    assert_errors(&[
        (
            "interfaces: { e0: { acls: { input: a9 } } }",
            &["interface e0 input acl a9 does not exist"],
        ),
        (
            "interfaces: { e0: { sub-interfaces: { 5: { acls: { output: [ a9 ] } } } } }",
            &["sub-interface e0.5 output acl a9 does not exist"],
        ),
        (
            "interfaces: { e0: { acls: { input: 5 } } }",
            &["interfaces.e0.acls.input: '5' is not a str."],
        ),
    ]);
}

#[test]
fn ports_and_workers() {
    assert_errors(&[
        (
            "ports: { p: { netdev: e0, tap: {} } }",
            &["port p names 2 devices"],
        ),
        ("ports: { p: { queues: 2 } }", &["port p names 0 devices"]),
        (
            "ports: { p: { queues: 0, null: {} } }",
            &["ports.p.queues: 0 is less than 1"],
        ),
        (
            "ports: { p: { pci: 03:00.0 } }",
            &["ports.p.pci: 03:00.0 is not a regex match."],
        ),
        (
            "ports: { p: { netdev: a/b } }",
            &["ports.p.netdev: a/b is not a regex match."],
        ),
        (
            "ports: { p: { memif: { id: 1 } } }",
            &["ports.p.memif.socket: Required field missing"],
        ),
        (
            "ports: { p: { memif: { socket: /s, id: 1 } }, q: { memif: { socket: /s, id: 1, ring-size: 64 } } }",
            &["port q is memif 1 of /s, as p is"],
        ),
        (
            "ports: { p: { memif: { socket: /s, ring-size: 100 } } }",
            &["port p ring-size must be a power of two"],
        ),
        (
            "ports: { p: { memif: { socket: /s, rings: 257 } } }",
            &["ports.p.memif.rings: 257 is greater than 256"],
        ),
        (
            "ports: { p: { netdev: e0, mode: fast } }",
            &["ports.p.mode: 'fast' not in ('auto', 'zero-copy', 'copy', 'generic')"],
        ),
        (
            "interfaces: { e0: {} }\nports: { p: { netdev: e0 } }",
            &["port p is e0, as e0 is"],
        ),
        (
            "ports: { p: { pci: \"0000:03:00.A\" }, q: { pci: \"0000:03:00.a\" } }",
            &["port q is 0000:03:00.a, as p is"],
        ),
        (
            "ports: { a: { tap: {} }, a-host: { tap: {} } }",
            &["interface a-host has the name of the host's end of a"],
        ),
        (
            "workers: { count: 3, cpus: [ 1, 2 ] }",
            &["3 workers on 2 processors"],
        ),
        (
            "workers: { count: 65 }",
            &["workers.count: 65 is greater than 64"],
        ),
        (
            "workers: { cpus: [ 1, 1 ] }",
            &["processor 1 is named twice"],
        ),
        (
            "workers: { cpus: [ -1 ] }",
            &["workers.cpus.0: -1 is less than 0"],
        ),
        (
            "tables: { ip4-routes: 999, ip6-routes: 50000001 }",
            &[
                "tables.ip4-routes: 999 is less than 1000",
                "tables.ip6-routes: 50000001 is greater than 50000000",
            ],
        ),
        (
            "tables: { routes: 1000 }",
            &["tables.routes: Unexpected element"],
        ),
        ("netns: \"\"", &["netns: Length of  is less than 1"]),
        (
            "control: { socket: \"\" }",
            &["control.socket: Length of  is less than 1"],
        ),
    ]);
    assert_valid(&[
        "ports: { p: { null: {} }, q: { pcap: { rx: /a, tx: /b } }, r: { tap: { name: t } } }",
        "workers: { count: 2, cpus: [ 1, 2 ] }",
    ]);
}
