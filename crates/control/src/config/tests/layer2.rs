//! The rules of cross-connects, bonds, bridges, tunnels and TAPs.

use super::*;

#[test]
fn cross_connects() {
    assert_errors(&[
        (
            "interfaces: { e0: { l2xc: e1, sub-interfaces: { 5: { mtu: 1500 } } }, e1: {} }",
            &["interface e0 has l2xc so it cannot have sub-interfaces"],
        ),
        (
            "interfaces: { e0: { l2xc: e1, lcp: x, addresses: [ 10.0.0.1/8 ] }, e1: {} }",
            &[
                "interface e0 has l2xc so it cannot have an LCP",
                "interface e0 has l2xc so it cannot have an address",
                "interface e0 is in L2 mode but has LCP name x",
                "interface e0 is in L2 mode but has an address",
            ],
        ),
        (
            "interfaces: { e0: { l2xc: e7 } }",
            &["interface e0 l2xc target e7 does not exist"],
        ),
        (
            "interfaces: { e0: { l2xc: loop0 } }\nloopbacks: { loop0: {} }",
            &["interface e0 l2xc target loop0 does not exist"],
        ),
        (
            "interfaces: { e0: { l2xc: e0 } }",
            &["interface e0 l2xc target cannot be itself"],
        ),
        (
            "interfaces: { e0: { l2xc: e1 }, e1: { mtu: 9000 } }",
            &["interface e0 l2xc target MTU 9000 does not match source MTU 1500"],
        ),
        (
            "interfaces: { e0: { l2xc: e2 }, e1: { l2xc: e2 }, e2: {} }",
            &[
                "interface e0 l2xc target e2 is not unique",
                "interface e1 l2xc target e2 is not unique",
            ],
        ),
        (
            "interfaces: { e0: { l2xc: e1 }, e1: {} }\nbridgedomains: { bd1: { interfaces: [ e1 ] } }",
            &["interface e0 l2xc target e1 is in a bridgedomain"],
        ),
        (
            "interfaces: { e0: { sub-interfaces: { 5: { l2xc: e0.7 }, 6: { l2xc: e0.5 }, 8: { l2xc: e0.05 } } } }",
            &[
                "sub-interface e0.5 l2xc target e0.7 does not exist",
                "sub-interface e0.6 l2xc target e0.5 is not unique",
                "sub-interface e0.8 l2xc target e0.05 is not unique",
            ],
        ),
        (
            "interfaces: { e0: { sub-interfaces: { 5: { l2xc: e0.5 } } } }",
            &["sub-interface e0.5 l2xc target cannot be itself"],
        ),
    ]);
    assert_valid(&[
        // One way; a ring; a target with sub-interfaces; to the own parent.
        "interfaces: { e0: { l2xc: e1 }, e1: {} }",
        "interfaces: { e0: { l2xc: e1 }, e1: { l2xc: e2 }, e2: { l2xc: e0 } }",
        "interfaces: { e0: { l2xc: e1 }, e1: { sub-interfaces: { 5: { mtu: 1500 } } } }",
        "interfaces: { e0: { sub-interfaces: { 10: { l2xc: e0 } } } }",
    ]);
}

#[test]
fn bonds() {
    const BOND: &str = "bondethernets: { BondEthernet0: { interfaces: [ e0 ] } }\ninterfaces: { BondEthernet0: {}, ";
    let member = |rest: &str| format!("{BOND}{rest}");
    assert_errors(&[
        (
            "bondethernets: { BondEthernet0: {} }",
            &["bondethernet BondEthernet0 does not exist in interfaces"],
        ),
        (
            "bondethernets: { BondEthernet4294967295: {} }\ninterfaces: { BondEthernet4294967295: {} }",
            &["bondethernet BondEthernet4294967295 has instance 4294967295 which is too large"],
        ),
        (
            "bondethernets: { BondEthernet0: { mode: broadcast, load-balance: l2 } }\ninterfaces: { BondEthernet0: {} }",
            &["bondethernet BondEthernet0 can only have load-balance if in mode XOR or LACP"],
        ),
        (
            "bondethernets: { BondEthernet0: { mac: 01:00:00:00:00:00 } }\ninterfaces: { BondEthernet0: {} }",
            &["bondethernet BondEthernet0 MAC address 01:00:00:00:00:00 cannot be multicast"],
        ),
        (
            &member("}"),
            &["bondethernet BondEthernet0 member e0 does not exist"],
        ),
        (
            &member(
                "e0: { sub-interfaces: { 5: { mtu: 1500 } }, lcp: x, addresses: [ 10.0.0.1/8 ], mtu: 9000 } }",
            ),
            &[
                "bondethernet BondEthernet0 member e0 has sub-interface(s)",
                "bondethernet BondEthernet0 member e0 has an LCP",
                "bondethernet BondEthernet0 member e0 has an address",
                "bondethernet BondEthernet0 member e0 MTU 9000 does not match BondEthernet MTU 1500",
            ],
        ),
        (
            &member("e0: { unnumbered: e1 }, e1: {} }"),
            &["bondethernet BondEthernet0 member e0 has unnumbered"],
        ),
        (
            &member("e0: { l2xc: e1 }, e1: {} }"),
            &["bondethernet BondEthernet0 member e0 has l2xc"],
        ),
        (
            &(member("e0: {} }\nbridgedomains: { bd1: { interfaces: [ e0 ] } }")),
            &["bondethernet BondEthernet0 member e0 is in a bridgedomain"],
        ),
        (
            &(member("e0: {} , BondEthernet1: {} }").replace(
                "[ e0 ] } }",
                "[ e0, e0 ] }, BondEthernet1: { interfaces: [ e0 ] } }",
            )),
            &[
                "bondethernet BondEthernet0 member e0 is listed twice",
                "bondethernet BondEthernet1 member e0 is also in BondEthernet0",
            ],
        ),
        (
            "bondethernets: { BondEthernet0: { interfaces: [ e0.5 ] } }\ninterfaces: { BondEthernet0: {}, e0: { sub-interfaces: { 5: { mtu: 1500 } } } }",
            &["bondethernet BondEthernet0 member e0.5 is not a PHY"],
        ),
        (
            &(member("e0: {} }") + "\nports: { BondEthernet0: { null: {} } }"),
            &["bondethernet BondEthernet0 cannot have a port"],
        ),
    ]);
    assert_valid(&[
        &member("e0: {} }"),
        "bondethernets: { BondEthernet4294967294: {} }\ninterfaces: { BondEthernet4294967294: {} }",
    ]);
    let text = member("e0: { mac: 02:00:00:00:00:01 } }");
    assert_eq!(
        said(&text, Severity::Warning),
        ["interface e0 has a mac but is a member of BondEthernet0"]
    );
}

#[test]
fn bridges() {
    assert_errors(&[
        (
            "bridgedomains: { bd0: {} }",
            &["bridgedomain bd0 is reserved"],
        ),
        (
            "bridgedomains: { bd16777216: {} }",
            &["bridgedomain bd16777216 has instance 16777216 which is too large"],
        ),
        (
            "bridgedomains: { bd1: { bvi: loop0 }, bd2: { bvi: loop0 } }\nloopbacks: { loop0: {} }",
            &[
                "bridgedomain bd1 BVI loop0 is not unique",
                "bridgedomain bd2 BVI loop0 is not unique",
            ],
        ),
        (
            "bridgedomains: { bd1: { bvi: loop7 } }",
            &["bridgedomain bd1 BVI loop7 does not exist"],
        ),
        (
            "bridgedomains: { bd1: { bvi: loop0, mtu: 9000 } }\nloopbacks: { loop0: {} }",
            &["bridgedomain bd1 BVI loop0 has MTU 1500, while bridge has 9000"],
        ),
        (
            "bridgedomains: { bd1: { interfaces: [ e7, loop0 ] } }\nloopbacks: { loop0: {} }",
            &[
                "bridgedomain bd1 member e7 does not exist",
                "bridgedomain bd1 member loop0 does not exist",
            ],
        ),
        (
            "bridgedomains: { bd1: { interfaces: [ e0, e0 ] }, bd2: { interfaces: [ e0 ] } }\ninterfaces: { e0: {} }",
            &[
                "bridgedomain bd1 member e0 is not unique",
                "bridgedomain bd1 member e0 is not unique",
                "bridgedomain bd2 member e0 is not unique",
            ],
        ),
        (
            "bridgedomains: { bd1: { interfaces: [ e0 ] } }\ninterfaces: { e0: { lcp: x, addresses: [ 10.0.0.1/8 ], mtu: 9000 } }",
            &[
                "bridgedomain bd1 member e0 has an LCP",
                "bridgedomain bd1 member e0 has an address",
                "bridgedomain bd1 member e0 has MTU 9000, while bridge has 1500",
                "interface e0 is in L2 mode but has LCP name x",
                "interface e0 is in L2 mode but has an address",
            ],
        ),
    ]);
    assert_valid(&[
        "bridgedomains: { bd16777215: { bvi: loop0, interfaces: [ e0.5 ] } }\nloopbacks: { loop0: {} }\ninterfaces: { e0: { sub-interfaces: { 5: { mtu: 1500 } } } }",
    ]);
}

#[test]
fn tunnels_and_taps() {
    assert_errors(&[
        (
            "vxlan_tunnels: { vxlan_tunnel2147483648: { local: 10.0.0.1, remote: 10.0.0.2, vni: 1 } }",
            &["vxlan_tunnel vxlan_tunnel2147483648 has instance 2147483648 which is too large"],
        ),
        (
            "vxlan_tunnels: { vxlan_tunnel1: { local: 10.0.0.1, remote: 10.0.0.2, vni: 1 }, vxlan_tunnel2: { local: 10.0.0.1, remote: 10.0.0.3, vni: 1 } }",
            &[
                "vxlan_tunnel vxlan_tunnel1 VNI 1 is not unique",
                "vxlan_tunnel vxlan_tunnel2 VNI 1 is not unique",
            ],
        ),
        (
            "vxlan_tunnels: { vxlan_tunnel1: { local: 10.0.0.1, remote: 2001:db8::1, vni: 1 } }",
            &["vxlan_tunnel vxlan_tunnel1 local and remote are not the same address family"],
        ),
        (
            "taps: { tap1025: { host: { name: t } } }",
            &["tap tap1025 has instance 1025 which is too large"],
        ),
        (
            "taps: { tap1: { host: { name: t } }, tap2: { host: { name: t } } }",
            &[
                "tap tap1 does not have a unique host name t",
                "tap tap2 does not have a unique host name t",
            ],
        ),
        (
            "taps: { tap1: { host: { name: t }, rx-ring-size: 100, tx-ring-size: 300 } }",
            &[
                "tap tap1 rx-ring-size must be a power of two",
                "tap tap1 tx-ring-size must be a power of two",
            ],
        ),
        (
            "taps: { tap1: { host: { name: t, namespace-create: yes, bridge-create: yes } } }",
            &[
                "tap tap1 namespace-create can only be set if namespace is set",
                "tap tap1 bridge-create can only be set if bridge is set",
            ],
        ),
        (
            "taps: { tap1: { host: { name: t, mac: 03:00:00:00:00:00 } } }",
            &["tap tap1 host MAC address 03:00:00:00:00:00 cannot be multicast"],
        ),
    ]);
    assert_valid(&[
        "vxlan_tunnels: { vxlan_tunnel1: { local: 10.0.0.1, remote: 10.0.0.1, vni: 1 } }",
        "taps: { tap1024: { host: { name: t, namespace: n, namespace-create: yes, bridge: b, bridge-create: yes } } }",
    ]);
}

/// vppcfg takes them all.
#[test]
fn ends_between_which_no_packet_goes_are_warned_of() {
    let of = |local: &str, remote: &str, more: &str| {
        let text = format!(
            "loopbacks: {{ loop0: {{ addresses: [ 10.0.0.1/32, '2001:db8::1/128' ] }}, loop1: {{ {more} }} }}\n\
             interfaces: {{ vxlan_tunnel1: {{ addresses: [ 10.1.0.1/24 ] }}, vxlan_tunnel2: {{}} }}\n\
             bridgedomains: {{ bd1: {{ bvi: loop1, interfaces: [ vxlan_tunnel2 ] }} }}\n\
             vxlan_tunnels:\n  vxlan_tunnel1: {{ local: '{local}', remote: '{remote}', vni: 1 }}\n  \
             vxlan_tunnel2: {{ local: 10.0.0.1, remote: 192.0.2.9, vni: 2 }}"
        );
        assert_valid(&[&text]);
        said(&text, Severity::Warning)
    };
    for (local, remote, warning) in [
        ("10.0.0.1", "192.0.2.1", ""),
        ("2001:db8::1", "2001:db8::2", ""),
        (
            "10.0.0.1",
            "10.0.0.1",
            "local and remote are the same address",
        ),
        (
            "10.0.0.1",
            "239.0.0.1",
            "remote 239.0.0.1 is the address of no host",
        ),
        (
            "2001:db8::1",
            "ff05::1",
            "remote ff05::1 is the address of no host",
        ),
        (
            "10.0.0.1",
            "255.255.255.255",
            "remote 255.255.255.255 is the address of no host",
        ),
        (
            "0.0.0.0",
            "192.0.2.1",
            "local 0.0.0.0 is the address of no host",
        ),
        (
            "10.0.0.1",
            "10.1.0.2",
            "remote 10.1.0.2 is in a network of vxlan_tunnel1",
        ),
        (
            "10.0.0.1",
            "10.2.0.2",
            "remote 10.2.0.2 is in a network of loop1",
        ),
        (
            "10.0.0.2",
            "192.0.2.1",
            "local 10.0.0.2 is on no interface of this file",
        ),
    ] {
        let found = of(local, remote, "addresses: [ 10.2.0.1/16 ]");
        let wanted = (!warning.is_empty()).then(|| format!("vxlan_tunnel vxlan_tunnel1 {warning}"));
        assert_eq!(
            found,
            wanted.into_iter().collect::<Vec<_>>(),
            "{local} {remote}"
        );
    }
    assert_eq!(of("10.0.0.1", "10.2.0.2", ""), [""; 0]);
}
