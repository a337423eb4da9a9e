//! The rules of interfaces, sub-interfaces, loopbacks and addresses.

use tables::random::Random;

use super::*;

/// RFC 8200 section 5: every link with IPv6 carries packets of 1280 bytes.
#[test]
fn ip6_needs_links_of_1280_bytes() {
    assert_errors(&[
        (
            "interfaces: { e0: { mtu: 1279, addresses: [ 10.0.0.1/8, '2001:db8::1/64', 'fe80::1/64' ] } }",
            &["interface e0 has MTU 1279, too small for IPv6 address 2001:db8::1/64"],
        ),
        (
            "interfaces: { e0: { lcp: x, mtu: 1000, sub-interfaces: { 5: { lcp: y, addresses: [ '2001:db8::1/64' ] } } } }",
            &["sub-interface e0.5 has MTU 1000, too small for IPv6 address 2001:db8::1/64"],
        ),
        (
            "interfaces: { e0: { sub-interfaces: { 5: { mtu: 128, addresses: [ '2001:db8::1/64' ] } } } }",
            &["sub-interface e0.5 has MTU 128, too small for IPv6 address 2001:db8::1/64"],
        ),
        (
            "bridgedomains: { bd1: { bvi: loop0, mtu: 1000 } }\nloopbacks: { loop0: { mtu: 1000, addresses: [ '2001:db8::1/64' ] } }",
            &["loopback loop0 has MTU 1000, too small for IPv6 address 2001:db8::1/64"],
        ),
    ]);
    assert_valid(&[
        "interfaces: { e0: { mtu: 1280, addresses: [ '2001:db8::1/64' ] } }",
        "interfaces: { e0: { mtu: 128, addresses: [ 10.0.0.1/8 ] } }",
        "interfaces: { e0: { mtu: 1280, sub-interfaces: { 5: { mtu: 1279 }, 6: { addresses: [ '2001:db8::1/64' ] } } } }",
    ]);
}

#[test]
fn interfaces() {
    for name in ["lo", "all", "default"] {
        let text = format!("interfaces: {{ e0: {{ lcp: {name} }} }}");
        let wanted = format!("interface e0 cannot have LCP name {name}");
        assert_errors(&[(&text, &[&wanted])]);
    }
    assert_errors(&[
        (
            "interfaces: { BondEthernet7: { mtu: 1500 } }",
            &["interface BondEthernet7 does not exist in bondethernets"],
        ),
        (
            "interfaces: { BondEthernet0: { mac: 02:00:00:00:00:01 } }\nbondethernets: { BondEthernet0: {} }",
            &["interface BondEthernet0 is a member of bondethernet, cannot set MAC"],
        ),
        (
            "interfaces: { e0: { mac: 01:00:5e:00:00:01 } }",
            &["interface e0 MAC address 01:00:5e:00:00:01 cannot be multicast"],
        ),
        (
            "interfaces: { BondEthernet0: { device-type: dpdk } }\nbondethernets: { BondEthernet0: {} }",
            &["interface BondEthernet0 is not a PHY, cannot set device-type"],
        ),
        (
            "interfaces: { tap7: { mtu: 1500 } }",
            &["interface tap7 is a TAP but does not exist in taps"],
        ),
        (
            "interfaces: { tap1: { mtu: 1500 } }\ntaps: { tap1: { host: { name: t, mtu: 9000 } } }",
            &["interface tap1 is a TAP so its MTU 1500 must match host MTU 9000"],
        ),
        (
            "interfaces: { tap1: { addresses: [ 10.0.0.1/8 ] } }\ntaps: { tap1: { host: { name: t } } }",
            &["interface tap1 is a TAP so it cannot have an address"],
        ),
        (
            "interfaces: { tap1: { lcp: e0 } }\ntaps: { tap1: { host: { name: t } } }",
            &["interface tap1 is a TAP so it cannot have an LCP"],
        ),
        (
            "interfaces: { tap1: { sub-interfaces: { 5: { mtu: 1500 } } } }\ntaps: { tap1: { host: { name: t } } }",
            &["interface tap1 is a TAP so it cannot have sub-interfaces"],
        ),
        (
            "interfaces: { e0: { l2xc: e1 }, e1: { lcp: a, addresses: [ 10.0.0.1/8 ] } }",
            &[
                "interface e1 is in L2 mode but has LCP name a",
                "interface e1 is in L2 mode but has an address",
                "interface e0 l2xc target e1 cannot have an LCP",
                "interface e0 l2xc target e1 cannot have an address",
            ],
        ),
        (
            "interfaces: { e0: { lcp: x, sub-interfaces: { 5: { lcp: x } } } }\nloopbacks: { loop0: { lcp: x } }",
            &[
                "interface e0 does not have a unique LCP name x",
                "sub-interface e0.5 does not have a unique LCP name x",
                "loopback loop0 does not have a unique LCP name x",
            ],
        ),
        // A card keeps its own name beside the one that it is given.
        (
            "interfaces: { e0: { lcp: e1 }, e1: { lcp: x } }",
            &["interface e0 cannot have LCP name e1"],
        ),
        (
            "interfaces: { e0: { lcp: eth1 }, e1: {} }\nports: { e1: { netdev: eth1 } }\nloopbacks: { loop0: { lcp: loop1 }, loop1: {} }",
            &[
                "interface e0 cannot have LCP name eth1",
                "loopback loop0 cannot have LCP name loop1",
            ],
        ),
    ]);
    assert_valid(&[
        // An MTU that is not given matches any.
        "interfaces: { e0: {} , tap1: {} }\ntaps: { tap1: { host: { name: t } } }",
        "interfaces: { e0: { lcp: e0 }, e1: { lcp: loop0 } }\nloopbacks: { loop0: { lcp: x } }",
        // A name with a port of its own is no TAP and no bond.
        "interfaces: { tap-lan: { lcp: e0 } }\nports: { tap-lan: { tap: {} } }",
        // A VXLAN's name without a tunnel is any other name.
        "interfaces: { vxlan_tunnel7: { device-type: dpdk } }",
        "interfaces: { BondEthernet0: {} }\nbondethernets: { BondEthernet0: {} }",
    ]);
}

/// No two devices of the host have the same name, whatever gives it to them.
#[test]
fn names_of_devices() {
    let lcp = &["interface e0 cannot have LCP name tap7"][..];
    let tap = &["the tap of port b cannot have the name tap7"][..];
    assert_errors(&[
        (
            "interfaces: { e0: { lcp: tap7 } }\nports: { b: { tap: { name: tap7 } } }",
            lcp,
        ),
        (
            "interfaces: { e0: { lcp: tap7 } }\nports: { tap7: { memif: { socket: /s } } }",
            lcp,
        ),
        (
            "interfaces: { e0: { lcp: tap7 } }\nports: { tap7: { netdev: eth7 }, c: { netdev: tap7 } }",
            lcp,
        ),
        (
            "interfaces: { e0: { lcp: tap7 } }\ntaps: { tap1: { host: { name: tap7 } } }",
            lcp,
        ),
        (
            "interfaces: { tap7: {} }\nports: { b: { tap: { name: tap7 } }, tap7: { null: {} } }",
            tap,
        ),
        (
            "interfaces: { e1: {} }\nports: { e1: { netdev: tap7 }, b: { tap: { name: tap7 } } }",
            tap,
        ),
        (
            "interfaces: { b: { lcp: x } }\nports: { b: { tap: { name: x } } }",
            &["interface b cannot have LCP name x"],
        ),
        (
            "interfaces: { e0: { lcp: tap1-router } }\ntaps: { tap1: { host: { name: h } } }",
            &["interface e0 cannot have LCP name tap1-router"],
        ),
        (
            "taps: { tap1: { host: { name: tap1-router } } }",
            &["the host's end of tap tap1 cannot have the name tap1-router"],
        ),
        (
            "ports: { b: { tap: { name: b } } }",
            &["the tap of port b cannot have the name b"],
        ),
        (
            "ports: { b: { tap: {} }, b-port: { null: {} } }",
            &["the tap of port b cannot have the name b-port"],
        ),
        (
            "ports: { b: { tap: { name: x } }, c: { tap: { name: x } } }",
            &["the tap of port c cannot have the name x"],
        ),
        (
            "loopbacks: { loop3: {} }\nports: { b: { tap: { name: loop3 } } }",
            &["the tap of port b cannot have the name loop3"],
        ),
        (
            "taps: { tap1: { host: { name: b } } }\nports: { b: { null: {} } }",
            &["the host's end of tap tap1 cannot have the name b"],
        ),
        // Names that are made are cut.
        (
            "ports: { a-long-interface-1: { null: {} }, a-long-interface-2: { null: {} } }",
            &["port a-long-interface-2 cannot have the name a-long-interfac"],
        ),
        (
            "interfaces: { a-long-interface-1: { lcp: e0 }, a-long-interface-2: { lcp: e1 } }\n\
             ports: { a-long-interface-1: { tap: {} }, a-long-interface-2: { tap: {} } }",
            &["the tap of port a-long-interface-2 cannot have the name a-long-int-port"],
        ),
    ]);
    assert_valid(&[
        "interfaces: { e0: { lcp: e0 }, b: { lcp: b } }\nports: { b: { tap: {} } }\nloopbacks: { loop0: { lcp: loop0 } }",
        "interfaces: { b: { lcp: x }, e0: { lcp: b } }\nports: { b: { memif: { socket: /s } } }",
        // In another namespace.
        "interfaces: { e0: { lcp: t } , tap1: {} }\ntaps: { tap1: { host: { name: t, namespace: n } } }",
    ]);
}

#[test]
fn names() {
    assert_errors(&[
        (
            "interfaces: { loop0: {} }\nloopbacks: { loop0: {} }",
            &[
                "interface loop0 has the name of another interface",
                "loopback loop0 has the name of another interface",
            ],
        ),
        (
            "interfaces: { e0.5: {}, e0: { sub-interfaces: { 5: { mtu: 1500 } } } }",
            &[
                "interface e0.5 has the name of another interface",
                "sub-interface e0.5 has the name of another interface",
            ],
        ),
    ]);
    assert_valid(&["interfaces: { a.b: {}, e0.5: {}, e0: {} }"]);
}

#[test]
fn unnumbered() {
    assert_errors(&[
        (
            "interfaces: { e0: { unnumbered: loop7 } }",
            &["interface e0 unnumbered target loop7 does not exist"],
        ),
        (
            "interfaces: { e0: { unnumbered: e1 }, e1: { l2xc: e2 }, e2: {} }",
            &["interface e0 unnumbered target e1 cannot be in L2 mode"],
        ),
        (
            "interfaces: { e0: { unnumbered: e1 }, e1: { unnumbered: loop0 } }\nloopbacks: { loop0: {} }",
            &["interface e0 unnumbered target e1 cannot also be unnumbered"],
        ),
        (
            "interfaces: { e0: { unnumbered: e0 } }",
            &[
                "interface e0 unnumbered target e0 cannot also be unnumbered",
                "interface e0 unnumbered target cannot point to itself",
            ],
        ),
        (
            "interfaces: { e0: { unnumbered: loop0, addresses: [ 10.0.0.1/8 ] } }\nloopbacks: { loop0: {} }",
            &["interface e0 cannot also have addresses when it is unnumbered"],
        ),
        (
            "interfaces: { e0: { sub-interfaces: { 5: { unnumbered: loop7 } } } }",
            &["sub-interface e0.5 unnumbered target loop7 does not exist"],
        ),
        (
            "interfaces: { e0: { sub-interfaces: { 5: { unnumbered: e0.5, addresses: [ 10.0.0.1/8 ] } } } }",
            &[
                "sub-interface e0.5 unnumbered target e0.5 cannot also be unnumbered",
                "sub-interface e0.5 unnumbered target cannot point to itself",
                "sub-interface e0.5 cannot also have addresses when it is unnumbered",
            ],
        ),
        (
            "loopbacks: { loop0: { unnumbered: e7 }, loop1: { unnumbered: loop1, addresses: [ 10.0.0.1/8 ] } }",
            &[
                "loopback loop0 unnumbered target e7 does not exist",
                "loopback loop1 unnumbered target loop1 cannot also be unnumbered",
                "loopback loop1 unnumbered target cannot point to itself",
                "loopback loop1 cannot also have addresses when it is unnumbered",
            ],
        ),
    ]);
    assert_valid(&[
        "interfaces: { e0: { unnumbered: e1.010 }, e1: { sub-interfaces: { 10: { mtu: 1500 } } } }",
        // An empty target is one, wherever it stands.
        "interfaces: { e0: { unnumbered: loop0 }, e1: { unnumbered: e2 }, e2: {} }\nloopbacks: { loop0: {} }",
        // A loopback may borrow from what bridges.
        "interfaces: { e0: {} }\nloopbacks: { loop0: { unnumbered: e0 } }\nbridgedomains: { bd1: { interfaces: [ e0 ] } }",
    ]);
}

#[test]
fn sub_interfaces() {
    assert_errors(&[
        (
            "interfaces: { e0: { sub-interfaces: { 5: {} } } }",
            &["sub-interface e0.5 has no config"],
        ),
        (
            "interfaces: { e0: { sub-interfaces: { 5: { bogus: 1 } } } }",
            &["interfaces.e0.sub-interfaces.5.bogus: Unexpected element"],
        ),
        (
            "interfaces: { e0: { state: down, sub-interfaces: { 5: { mtu: 1500 } } } }",
            &["sub-interface e0.5 cannot be up if parent e0 is down"],
        ),
        (
            "interfaces: { e0: { sub-interfaces: { 5: { mtu: 1501 } } } }",
            &["sub-interface e0.5 has MTU 1501 higher than parent e0 MTU 1500"],
        ),
        (
            "interfaces: { e0: { mtu: 9000, sub-interfaces: { 6: { mtu: 3000, encapsulation: { dot1q: 5, inner-dot1q: 1 } }, 5: { mtu: 2000 } } } }",
            &["sub-interface e0.6 has MTU 3000 higher than parent e0.5 MTU 2000"],
        ),
        // Without an MTU of its own it has that of the interface.
        (
            "interfaces: { e0: { mtu: 9000, sub-interfaces: { 6: { encapsulation: { dot1q: 5, inner-dot1q: 1 } }, 5: { mtu: 2000 } } } }",
            &["sub-interface e0.6 has MTU 9000 higher than parent e0.5 MTU 2000"],
        ),
        (
            "interfaces: { e0: { sub-interfaces: { 5: { lcp: x } } } }",
            &["sub-interface e0.5 has LCP name x but e0 does not have an LCP"],
        ),
        (
            "interfaces: { e0: { lcp: a, sub-interfaces: { 6: { lcp: x, encapsulation: { dot1q: 5, inner-dot1q: 1, exact-match: yes } } } } }",
            &["sub-interface e0.6 is QinX and has LCP name x which requires a parent"],
        ),
        (
            "interfaces: { e0: { lcp: a, sub-interfaces: { 6: { lcp: x, encapsulation: { dot1q: 5, inner-dot1q: 1, exact-match: yes } }, 5: { state: up } } } }",
            &["sub-interface e0.6 is QinX and has LCP name x but e0.5 does not have an LCP"],
        ),
        // A tag of the other kind is another tag.
        (
            "interfaces: { e0: { lcp: a, sub-interfaces: { 6: { lcp: x, encapsulation: { dot1ad: 5, inner-dot1q: 1, exact-match: yes } }, 5: { lcp: y } } } }",
            &["sub-interface e0.6 is QinX and has LCP name x which requires a parent"],
        ),
        (
            "interfaces: { e0: { lcp: a, sub-interfaces: { 5: { lcp: x, encapsulation: { dot1q: 5 } } } } }",
            &["sub-interface e0.5 has LCP name x but its encapsulation is not exact-match"],
        ),
        (
            "interfaces: { e0: { sub-interfaces: { 5: { addresses: [ 10.0.0.1/8 ], encapsulation: { dot1q: 5 } } } } }",
            &["sub-interface e0.5 has an address but its encapsulation is not exact-match"],
        ),
        (
            "interfaces: { e0: { lcp: a, sub-interfaces: { 5: { l2xc: e1, lcp: x, addresses: [ 10.0.0.1/8 ] } } }, e1: {} }",
            &[
                "sub-interface e0.5 is in L2 mode but has LCP name x",
                "sub-interface e0.5 is in L2 mode but has an address",
                "sub-interface e0.5 has l2xc so it cannot have an LCP",
                "sub-interface e0.5 has l2xc so it cannot have an address",
            ],
        ),
        (
            "interfaces: { e0: { sub-interfaces: { 5: { encapsulation: { dot1q: 5, dot1ad: 5 } }, 6: { encapsulation: { inner-dot1q: 5 } } } } }",
            &[
                "sub-interface e0.5 has invalid encapsulation",
                "sub-interface e0.6 has invalid encapsulation",
            ],
        ),
        (
            "interfaces: { e0: { lcp: a, sub-interfaces: { 5: { lcp: x, encapsulation: { dot1q: 5, exact-match: no } } } } }",
            &[
                "sub-interface e0.5 has invalid encapsulation",
                "sub-interface e0.5 has LCP name x but its encapsulation is not exact-match",
            ],
        ),
        (
            "interfaces: { e0: { sub-interfaces: { 5000: { mtu: 1500 } } } }",
            &["sub-interface e0.5000 has invalid encapsulation"],
        ),
        (
            "interfaces: { e0: { sub-interfaces: { 5: { mtu: 1500 }, 6: { encapsulation: { dot1q: 5, exact-match: yes } } } } }",
            &[
                "sub-interface e0.5 does not have unique encapsulation",
                "sub-interface e0.6 does not have unique encapsulation",
            ],
        ),
    ]);
    assert_valid(&[
        "interfaces: { e0: { state: down, sub-interfaces: { 5: { state: down } } } }",
        // Exact and not exact are two.
        "interfaces: { e0: { sub-interfaces: { 5: { mtu: 1500 }, 6: { encapsulation: { dot1q: 5 } } } } }",
        "interfaces: { e0: { sub-interfaces: { 5: { encapsulation: {} } } } }",
        "interfaces: { e0: { sub-interfaces: { 5: { description: } } } }",
        // The outer tag stands behind.
        "interfaces: { e0: { lcp: a, sub-interfaces: { 6: { lcp: x, encapsulation: { dot1q: 5, inner-dot1q: 1, exact-match: yes } }, 5: { lcp: y } } } }",
    ]);
}

#[test]
fn loopbacks() {
    assert_errors(&[
        (
            "loopbacks: { loop4096: {} }",
            &["loopback loop4096 has instance 4096 which is too large"],
        ),
        (
            "loopbacks: { loop99999999999999999999: {} }",
            &[
                "loopback loop99999999999999999999 has instance 99999999999999999999 which is too large",
            ],
        ),
        (
            "loopbacks: { loop0: { mac: 01:00:00:00:00:00 } }",
            &["loopback loop0 MAC address 01:00:00:00:00:00 cannot be multicast"],
        ),
    ]);
    assert_valid(&["loopbacks: { loop4095: {}, loop007: {} }"]);
}

#[test]
fn addresses() {
    assert_errors(&[
        (
            "interfaces: { a: { addresses: [ 10.0.0.1/8 ] }, b: { addresses: [ 10.1.0.1/16 ] } }\nloopbacks: { loop0: { addresses: [ 10.0.0.9/8 ] } }",
            &[
                "interface a IP address 10.0.0.1/8 conflicts with another",
                "interface b IP address 10.1.0.1/16 conflicts with another",
                "loopback loop0 IP address 10.0.0.9/8 conflicts with another",
            ],
        ),
        // A sub-interface is to blame, not its parent; two of them both are.
        (
            "interfaces: { a: { addresses: [ 10.0.0.1/8 ], sub-interfaces: { 5: { addresses: [ 10.0.0.2/24 ] } } } }",
            &["sub-interface a.5 IP address 10.0.0.2/24 conflicts with another"],
        ),
        (
            "interfaces: { a: { sub-interfaces: { 5: { addresses: [ 10.0.0.2/24 ] }, 6: { addresses: [ 10.0.0.2/24 ] } } } }",
            &[
                "sub-interface a.5 IP address 10.0.0.2/24 conflicts with another",
                "sub-interface a.6 IP address 10.0.0.2/24 conflicts with another",
            ],
        ),
        // Within an interface the later one is to blame.
        (
            "interfaces: { a: { addresses: [ 172.16.12.1/29, 172.16.12.2/30, 172.16.12.3/28 ] } }",
            &[
                "interface a IP address 172.16.12.2/30 conflicts with another",
                "interface a IP address 172.16.12.3/28 conflicts with another",
            ],
        ),
        (
            "interfaces: { a: { addresses: [ 3fff::1/0 ] }, b: { addresses: [ 2001:db8::1/64 ] } }",
            &[
                "interface a IP address 3fff::1/0 conflicts with another",
                "interface b IP address 2001:db8::1/64 conflicts with another",
            ],
        ),
        (
            "interfaces: { a: { addresses: [ fe80::1/64, fe80::1/10 ] }, b: { addresses: [ fe80::1/64 ] } }",
            &["interface a IP address fe80::1/10 conflicts with another"],
        ),
    ]);
    assert_valid(&[
        "interfaces: { a: { addresses: [ 10.0.0.1/24, 10.0.0.2/24, 10.0.0.1/24 ] } }",
        "interfaces: { a: { addresses: [ 10.0.0.1/0 ] }, b: { addresses: [ 2001:db8::1/64 ] } }",
        "interfaces: { a: { addresses: [ fe80::1/64 ] }, b: { addresses: [ fe80::1/64 ] } }",
        "interfaces: { a: { addresses: [ 10.0.0.1/24 ] }, b: { addresses: [ 10.0.1.1/24 ] } }",
        // Each VRF has networks of its own.
        "interfaces: { a: { addresses: [ 10.0.0.1/24 ] }, b: { addresses: [ 10.0.0.1/24 ], vrf: red } }\nvrfs: { red: { table: 9 } }",
    ]);
}

/// An address that Linux accepts on no device is an error. One that it accepts, though it is of no
/// use, is not.
#[test]
fn addresses_are_those_of_a_device() {
    let one = |address: &str| format!("interfaces: {{ a: {{ addresses: [ '{address}' ] }} }}");
    for (address, what) in [
        ("0.0.0.0/0", "the unspecified address"),
        ("0.0.0.0/8", "the unspecified address"),
        ("::/0", "the unspecified address"),
        ("::/64", "the unspecified address"),
        ("::1/128", "a loopback address"),
        ("ff02::5/64", "a multicast address"),
        ("ff00::/8", "a multicast address"),
    ] {
        let wanted = format!("interface a IP address {address} is {what}");
        assert_errors(&[(&one(address), &[&wanted])]);
    }
    for (address, what) in [
        ("127.0.0.1/8", "a loopback address"),
        ("224.0.0.1/4", "a multicast address"),
        ("255.255.255.255/32", "the broadcast address"),
    ] {
        assert_valid(&[&one(address)]);
        let wanted = format!("interface a IP address {address} is {what}");
        assert_eq!(said(&one(address), Severity::Warning), [wanted]);
    }
    for address in ["0.1.2.3/8", "240.0.0.1/4", "2001:db8::/64", "10.0.0.0/8"] {
        assert_valid(&[&one(address)]);
        assert_eq!(said(&one(address), Severity::Warning), [""; 0], "{address}");
    }
    let twice = "interfaces: { a: { addresses: [ 10.0.0.1/24, 10.0.0.2/24, 10.0.0.1/24 ] } }";
    assert_eq!(
        said(twice, Severity::Warning),
        ["interface a IP address 10.0.0.1/24 is named twice"]
    );
}

#[test]
fn addresses_are_put_into_their_canonical_form() {
    let text = "interfaces: { a: { addresses: [ 2001:DB8:0::1/64, ::ffff:192.0.2.1/128 ] } }";
    let wanted = "interface a IP address 2001:DB8:0::1/64 is not canonical, use 2001:db8::1/64";
    assert_eq!(said(text, Severity::Warning), [wanted]);
    let config = Config::parse("x", text).expect("valid");
    assert_eq!(
        config.interfaces["a"].addresses[0].to_string(),
        "2001:db8::1/64"
    );
}

#[test]
fn warnings_do_not_refuse() {
    let long = "x".repeat(65);
    let everywhere = format!(
        "bridgedomains: {{ bd1: {{ description: {long} }} }}\n\
         acls: {{ ab: {{ terms: [ {{ description: {long}, action: deny }} ] }} }}"
    );
    assert_eq!(said(&everywhere, Severity::Warning).len(), 2);
    for (text, warning) in [
        ("interfaces: { e0: { mpls: yes } }".to_owned(), "interface e0 has mpls, which does nothing yet".to_owned()),
        (format!("interfaces: {{ e0: {{ description: {long} }} }}"), "a description of 65 characters".to_owned()),
        ("interfaces: { GigabitEthernet3/0/0: {} }".to_owned(), "interface GigabitEthernet3/0/0 cannot be the name of a network device".to_owned()),
        ("interfaces: { e0: { l2xc: e1 }, e1: {}, e2: { l2xc: e0 } }\nbridgedomains: { bd1: { interfaces: [ e2 ] } }".to_owned(),
            "interface e2 has l2xc and is in a bridgedomain".to_owned()),
        ("interfaces: { e0: { unnumbered: loop0 } }\nloopbacks: { loop0: {} }\nbridgedomains: { bd1: { interfaces: [ e0 ] } }".to_owned(),
            "interface e0 is in L2 mode but has unnumbered".to_owned()),
    ] {
        assert_eq!((errors(&text), said(&text, Severity::Warning)), (vec![], vec![warning]), "{text}");
    }
}

/// The networks that overlap, found pair by pair.
#[test]
fn overlaps_are_those_of_every_pair() {
    let mut random = Random::new(7);
    for _ in 0..200 {
        let addresses: Vec<(u32, Address)> = (0..12)
            .map(|_| {
                (
                    random.below(5),
                    format!(
                        "10.{}.{}.1/{}",
                        random.below(3),
                        random.below(3),
                        12 + random.below(14)
                    )
                    .parse()
                    .expect("one"),
                )
            })
            .collect();
        let mut text = "interfaces:\n".to_owned();
        for interface in 0..5 {
            let own: Vec<String> = addresses
                .iter()
                .filter(|(i, _)| *i == interface)
                .map(|(_, a)| a.to_string())
                .collect();
            if (1..=6).contains(&own.len()) {
                text += &format!("  e{interface}: {{ addresses: [ {} ] }}\n", own.join(", "));
            }
        }
        let Ok(json) = Config::parse("x", "") else {
            panic!()
        };
        assert_eq!(json, Config::default());
        let listed = |i: u32| text.contains(&format!("e{i}:"));
        let mut wanted: Vec<String> = addresses
            .iter()
            .enumerate()
            .filter(|(at, (i, one))| {
                listed(*i)
                    && addresses.iter().enumerate().any(|(other_at, (j, other))| {
                        let apart = i != j || other_at < *at && one.network() != other.network();
                        listed(*j) && other_at != *at && apart && one.overlaps(other)
                    })
            })
            .map(|(_, (i, one))| format!("interface e{i} IP address {one} conflicts with another"))
            .collect();
        let mut found = errors(&text);
        wanted.sort();
        found.sort();
        assert_eq!(found, wanted, "{text}");
    }
}
