//! Section by section: fields, types, ranges, names, and how values are read.

use super::*;

/// A field of an interface with a value that is right, and values that are wrong with the message.
struct Values {
    /// The file, `@` for the value.
    file: &'static str,
    path: &'static str,
    right: &'static [&'static str],
    wrong: &'static [(&'static str, &'static str)],
}

fn check(values: &[Values]) {
    for Values {
        file,
        path,
        right,
        wrong,
    } in values
    {
        for value in *right {
            let text = file.replace('@', value);
            let at = format!("{path}: ");
            let found = errors(&text);
            assert!(
                !found.iter().any(|error| error.starts_with(&at)),
                "{text}\n{found:?}"
            );
        }
        for (value, message) in *wrong {
            let text = file.replace('@', value);
            let found = errors(&text);
            let wanted = format!("{path}{message}");
            assert!(found.contains(&wanted), "{text}\n{wanted}\n{found:?}");
        }
    }
}

const fn field(
    file: &'static str,
    path: &'static str,
    right: &'static [&'static str],
    wrong: &'static [(&'static str, &'static str)],
) -> Values {
    Values {
        file,
        path,
        right,
        wrong,
    }
}

const E0: &str = "interfaces: { e0: { @ } }";
const INTERFACES: &[Values] = &[
    field(
        "interfaces: { e0: { mtu: @ } }",
        "interfaces.e0.mtu",
        &["128", "9216", "0x5dc", "02734", "1_500", "25:0"],
        &[
            ("127", ": 127 is less than 128"),
            ("9217", ": 9217 is greater than 9216"),
            ("much", ": 'much' is not a int."),
            ("\"1500\"", ": '1500' is not a int."),
            ("1500.0", ": '1500.0' is not a int."),
            ("", ": 'None' is not a int."),
            ("yes", ": 'True' is not a int."),
            (
                "99999999999999999999",
                ": 99999999999999999999 is greater than 9216",
            ),
        ],
    ),
    field(
        "interfaces: { e0: { description: @ } }",
        "interfaces.e0.description",
        &["", "words", "\"Infra: x\""],
        &[
            ("1234", ": '1234' is not a str."),
            ("[ \"a\", list ]", ": '['a', 'list']' is not a str."),
            ("it's", ": 'it's' contains excluded character '''"),
            ("'a \"b\"'", ": 'a \"b\"' contains excluded character '\"'"),
        ],
    ),
    field(
        "interfaces: { e0: { lcp: @ } }",
        "interfaces.e0.lcp",
        &["e0", "e0.1234", "xe1-0-1", "a23456789012345"],
        &[
            (
                "a234567890123456",
                ": Length of a234567890123456 is greater than 15",
            ),
            ("E0", ": E0 is not a regex match."),
            ("0e", ": 0e is not a regex match."),
            ("a b", ": a b is not a regex match."),
            ("True", ": 'True' is not a str."),
            ("", ": 'None' is not a str."),
            ("\"\"", ":  is not a regex match."),
        ],
    ),
    field(
        "interfaces: { e0: { mac: @ } }",
        "interfaces.e0.mac",
        &[
            "02:00:5e:10:00:01",
            "02-00-5E-10-00-01",
            "02005e100001",
            "0200:5e10:0001",
            "0200-5e10-0001",
        ],
        &[
            ("0001.0203.0405", ": '0001.0203.0405' is not a mac match."),
            ("10:20:30:40:50:58", ": '8041827058' is not a mac match."),
            (
                "02:00-5e:10:00:01",
                ": '02:00-5e:10:00:01' is not a mac match.",
            ),
            ("02:00:5e:10:00", ": '02:00:5e:10:00' is not a mac match."),
        ],
    ),
    field(
        "interfaces: { e0: { addresses: [ @ ] } }",
        "interfaces.e0.addresses.0",
        &[
            "192.0.2.1/24",
            "192.0.2.0/24",
            "192.0.2.255/24",
            "224.0.0.1/4",
            "127.0.0.1/8",
            "fe80::1/64",
            "2001:DB8::1/64",
            "192.0.2.1/024",
            "2001:db8::1/0",
            "192.0.2.1/0",
        ],
        &[
            ("192.0.2.1", ": '192.0.2.1' is not a ip_interface."),
            (
                "192.0.2.1/255.255.255.0",
                ": '192.0.2.1/255.255.255.0' is not a ip_interface.",
            ),
            ("192.0.2.1/33", ": '192.0.2.1/33' is not a ip_interface."),
            (
                "2001:db8::1/129",
                ": '2001:db8::1/129' is not a ip_interface.",
            ),
            ("192.0.2.01/24", ": '192.0.2.01/24' is not a ip_interface."),
            ("1234", ": '1234' is not a ip_interface."),
            ("hello world", ": 'hello world' is not a ip_interface."),
        ],
    ),
    field(
        "interfaces: { e0: { addresses: @ } }",
        "interfaces.e0.addresses",
        &["[ 10.0.0.1/32, 10.0.0.2/32, 10.0.0.3/32, 10.0.0.4/32, 10.0.0.5/32, 10.0.0.6/32 ]"],
        &[
            ("[]", ": Length of [] is less than 1"),
            ("", ": 'None' is not a list."),
            ("10.0.0.1/8", ": '10.0.0.1/8' is not a list."),
            (
                "[ 10.0.0.1/32, 10.0.0.2/32, 10.0.0.3/32, 10.0.0.4/32, 10.0.0.5/32, 10.0.0.6/32, 10.0.0.7/32 ]",
                ": Length of ['10.0.0.1/32', '10.0.0.2/32', '10.0.0.3/32', '10.0.0.4/32', '10.0.0.5/32', '10.0.0.6/32', '10.0.0.7/32'] is greater than 6",
            ),
        ],
    ),
    field(
        "interfaces: { e0: { state: @ } }",
        "interfaces.e0.state",
        &["up", "down"],
        &[
            ("sideways", ": 'sideways' not in ('up', 'down')"),
            ("on", ": 'True' not in ('up', 'down')"),
        ],
    ),
    field(
        "interfaces: { e0: { mpls: @ } }",
        "interfaces.e0.mpls",
        &["true", "True", "yes", "Off", "NO"],
        &[
            ("1", ": '1' is not a bool."),
            ("\"yes\"", ": 'yes' is not a bool."),
            ("", ": 'None' is not a bool."),
        ],
    ),
    field(
        "interfaces: { e0: { sflow: @ } }",
        "interfaces.e0.sflow",
        &["on"],
        &[("maybe", ": 'maybe' is not a bool.")],
    ),
    field(
        "interfaces: { e0: { device-type: @ } }",
        "interfaces.e0.device-type",
        &["dpdk"],
        &[("rdma", ": 'rdma' not in ('dpdk',)")],
    ),
    field(
        "interfaces: { e0: { unnumbered: @ } }",
        "interfaces.e0.unnumbered",
        &["loop0"],
        &[("", ": 'None' is not a str.")],
    ),
    field(
        "interfaces: { e0: { l2xc: @ } }",
        "interfaces.e0.l2xc",
        &["e1"],
        &[("", ": 'None' is not a str.")],
    ),
    field(
        E0,
        "interfaces.e0.adresses",
        &[],
        &[("adresses: []", ": Unexpected element")],
    ),
    field(
        "interfaces: { e0: @ }",
        "interfaces.e0",
        &["{}"],
        &[
            ("", " : 'None' is not a map"),
            ("[]", " : '[]' is not a map"),
        ],
    ),
    field(
        "interfaces: @",
        "interfaces",
        &["{}", "{ \"\": {} }", "{ \"with blanks\": {}, a.b.c: {} }"],
        &[
            ("", " : 'None' is not a map"),
            ("{ 100: {} }", ": Key error - '100' is not a str."),
            ("{ yes: {} }", ": Key error - 'True' is not a str."),
            ("{ null: {} }", ": Key error - 'null' is not a str."),
        ],
    ),
];

#[test]
fn fields_of_interfaces() {
    check(INTERFACES);
}

const SUB_INTERFACES: &[Values] = &[
    field(
        "interfaces: { e0: { sub-interfaces: @ } }",
        "interfaces.e0.sub-interfaces",
        &[
            "{}",
            "{ 100: { mtu: 1500 } }",
            "{ 0x64: { mtu: 1500 } }",
            "{ 4294967295: { encapsulation: { dot1q: 1 } } }",
        ],
        &[
            (
                "{ \"100\": { mtu: 1500 } }",
                ": Key error - '100' is not a int.",
            ),
            (
                "{ 0: { mtu: 1500 } }",
                ": Key error - 0 is not between 1 and 4294967295",
            ),
            (
                "{ 4294967296: {} }",
                ": Key error - 4294967296 is not between 1 and 4294967295",
            ),
            ("{ string: {} }", ": Key error - 'string' is not a int."),
        ],
    ),
    field(
        "interfaces: { e0: { sub-interfaces: { 100: { @ } } } }",
        "interfaces.e0.sub-interfaces.100.",
        &[
            "addresses: []",
            "addresses: [ 10.0.0.1/32, 10.0.0.2/32, 10.0.0.3/32, 10.0.0.4/32, 10.0.0.5/32, 10.0.0.6/32, 10.0.0.7/32 ]",
        ],
        &[
            ("mac: 02:00:00:00:00:01", "mac: Unexpected element"),
            ("sflow: true", "sflow: Unexpected element"),
            ("device-type: dpdk", "device-type: Unexpected element"),
        ],
    ),
    field(
        "interfaces: { e0: { sub-interfaces: { 100: { encapsulation: { @ } } } } }",
        "interfaces.e0.sub-interfaces.100.encapsulation.",
        &[
            "",
            "dot1q: 1",
            "dot1q: 4095",
            "dot1ad: 4095, inner-dot1q: 1, exact-match: True",
        ],
        &[
            ("dot1q: 0", "dot1q: 0 is less than 1"),
            ("dot1ad: 4096", "dot1ad: 4096 is greater than 4095"),
            (
                "dot1q: \"hello world\"",
                "dot1q: 'hello world' is not a int.",
            ),
            (
                "inner-dot1q: 4096",
                "inner-dot1q: 4096 is greater than 4095",
            ),
            ("exact-match: 1", "exact-match: '1' is not a bool."),
        ],
    ),
];

#[test]
fn fields_of_sub_interfaces() {
    check(SUB_INTERFACES);
}

const OTHERS: &[Values] = &[
    field(
        "loopbacks: { @ }",
        "loopbacks",
        &["loop0: {}", "loop4095: { mpls: false }"],
        &[
            ("loop: {}", ": Key error - loop is not a regex match."),
            (
                "loop0abc: {}",
                ": Key error - loop0abc is not a regex match.",
            ),
            ("loop0: { state: up }", ".loop0.state: Unexpected element"),
            (
                "loop0: { sub-interfaces: {} }",
                ".loop0.sub-interfaces: Unexpected element",
            ),
            (
                "loop0: { addresses: [] }",
                ".loop0.addresses: Length of [] is less than 1",
            ),
            ("loop0:", ".loop0 : 'None' is not a map"),
        ],
    ),
    field(
        "bondethernets: { @ }",
        "bondethernets",
        &[
            "BondEthernet0: {}",
            "BondEthernet0: { interfaces: [], mode: round-robin }",
            "BondEthernet0: { mode: active-backup }",
            "BondEthernet0: { mode: broadcast }",
            "BondEthernet0: { load-balance: l23 }",
        ],
        &[
            ("bond0: {}", ": Key error - bond0 is not a regex match."),
            (
                "BondEthernet0: { mode: fast }",
                ".BondEthernet0.mode: 'fast' not in ('round-robin', 'active-backup', 'broadcast', 'lacp', 'xor')",
            ),
            (
                "BondEthernet0: { load-balance: l4 }",
                ".BondEthernet0.load-balance: 'l4' not in ('l2', 'l23', 'l34')",
            ),
        ],
    ),
    field(
        "bridgedomains: { @ }",
        "bridgedomains",
        &[
            "bd1: {}",
            "bd1: { settings: { learn: no, unicast-flood: no, unknown-unicast-flood: no, unicast-forward: no, arp-termination: yes, arp-unicast-forward: yes, mac-age-minutes: 255 } }",
        ],
        &[
            ("br1: {}", ": Key error - br1 is not a regex match."),
            ("bd1: { lcp: x }", ".bd1.lcp: Unexpected element"),
            (
                "bd1: { addresses: [ 10.0.0.1/8 ] }",
                ".bd1.addresses: Unexpected element",
            ),
            ("bd1: { bvi: e0 }", ".bd1.bvi: e0 is not a regex match."),
            ("bd1: { mtu: 9217 }", ".bd1.mtu: 9217 is greater than 9216"),
            (
                "bd1: { settings: { mac-age-minutes: 256 } }",
                ".bd1.settings.mac-age-minutes: 256 is greater than 255",
            ),
        ],
    ),
    field(
        "vxlan_tunnels: { vxlan_tunnel1: { @ } }",
        "vxlan_tunnels.vxlan_tunnel1.",
        &[
            "local: 192.0.2.1, remote: 192.0.2.2, vni: 1",
            "local: 2001:db8::1, remote: 2001:db8::1, vni: 16777215",
        ],
        &[
            (
                "local: 192.0.2.1, remote: 192.0.2.2",
                "vni: Required field missing",
            ),
            ("local: 192.0.2.1, vni: 1", "remote: Required field missing"),
            ("vni: 1", "local: Required field missing"),
            (
                "local: 192.0.2.1/24, remote: 192.0.2.2, vni: 1",
                "local: '192.0.2.1/24' is not a ip.",
            ),
            ("vni: 0", "vni: 0 is less than 1"),
            ("vni: 16777216", "vni: 16777216 is greater than 16777215"),
        ],
    ),
    field(
        "taps: { tap1: { @ } }",
        "taps.tap1.",
        &[
            "host: { name: t, mac: 02:00:00:00:00:01, mtu: 1500, bridge: br0, bridge-create: yes, namespace: ns, namespace-create: yes }, rx-ring-size: 8, tx-ring-size: 32768",
        ],
        &[
            ("", "host: Required field missing"),
            ("host: {}", "host.name: Required field missing"),
            ("host: { name: T }", "host.name: T is not a regex match."),
            (
                "host: { name: a234567890123456 }",
                "host.name: Length of a234567890123456 is greater than 15",
            ),
            (
                "host: { name: t, bridge: 0 }",
                "host.bridge: '0' is not a str.",
            ),
            (
                "host: { name: t, namespace: a/b }",
                "host.namespace: a/b is not a regex match.",
            ),
            ("rx-ring-size: 7", "rx-ring-size: 7 is less than 8"),
            (
                "tx-ring-size: 32769",
                "tx-ring-size: 32769 is greater than 32768",
            ),
        ],
    ),
    field(
        "prefixlists: { @ }",
        "prefixlists",
        &[
            "ab: { members: [] }",
            "a-1: { members: [ 192.0.2.1, 192.0.2.1/24, 2001:db8::1, 10.0.0.0/255.0.0.0 ] }",
        ],
        &[
            (
                "a: { members: [] }",
                ": Key error - a is not a regex match.",
            ),
            (
                "A1: { members: [] }",
                ": Key error - A1 is not a regex match.",
            ),
            ("ab: {}", ".ab.members: Required field missing"),
            (
                "ab: { members: [ 192.0.2.300 ] }",
                ".ab.members.0: '192.0.2.300' is not a ip.",
            ),
            (
                "ab: { members: [ 10.0.0.0/255.0.255.0 ] }",
                ".ab.members.0: '10.0.0.0/255.0.255.0' is not a ip.",
            ),
        ],
    ),
    field(
        "sflow: { @ }",
        "sflow.",
        &[
            "",
            "header-bytes: 1, polling-interval: 5, sampling-rate: 100",
            "header-bytes: 256, polling-interval: 600, sampling-rate: 1000000",
            "collector: 192.0.2.1, agent: 192.0.2.2",
            "collector: 192.0.2.1:9000",
            "collector: 2001:db8::1, agent: 2001:db8::2",
            "collector: \"[2001:db8::1]:65535\"",
        ],
        &[
            ("header-bytes: 257", "header-bytes: 257 is greater than 256"),
            ("polling-interval: 4", "polling-interval: 4 is less than 5"),
            ("sampling-rate: 99", "sampling-rate: 99 is less than 100"),
            ("collector: x", "collector: 'x' is not a collector address."),
            (
                "collector: 192.0.2.1:0",
                "collector: '192.0.2.1:0' is not a collector address.",
            ),
            (
                "collector: 192.0.2.1:65536",
                "collector: '192.0.2.1:65536' is not a collector address.",
            ),
            (
                "collector: \"fe80::1%2\"",
                "collector: 'fe80::1%2' is not a collector address.",
            ),
            ("agent: 192.0.2.1:1", "agent: '192.0.2.1:1' is not a ip."),
            ("colector: x", "colector: Unexpected element"),
        ],
    ),
];

#[test]
fn fields_of_other_objects() {
    check(OTHERS);
}

#[test]
fn nothing_is_a_configuration() {
    assert_valid(&[
        "",
        "# only a comment\n",
        "---\n",
        "{}",
        "[]",
        "false",
        "no",
        "~",
    ]);
    assert_errors(&[
        ("hello", &["'hello' is not a map"]),
        ("[ 1 ]", &["'[1]' is not a map"]),
    ]);
}

#[test]
fn a_file_is_one_document_of_yaml() {
    for (text, message) in [
        ("{}\n---\n{}\n", "expected a single document in the stream"),
        ("interfaces: [\n", "not YAML: "),
        ("interfaces:\n\ta: {}\n", "not YAML: "),
        ("a: *nobody\n", "not YAML: "),
        (
            "a: &a [ *a ]\n",
            "this alias names a value that it is part of",
        ),
    ] {
        let found = errors(text);
        assert!(found[0].starts_with(message), "{text}\n{found:?}");
    }
    let deep = "[".repeat(70) + &"]".repeat(70);
    assert!(errors(&deep)[0].contains("64 deep"));
    let mut bomb = "a: &a0 [ x, x, x, x, x, x, x, x, x, x ]\n".to_owned();
    for level in 1..9 {
        let below = format!("*a{}, ", level - 1).repeat(10);
        bomb += &format!("a{level}: &a{level} [ {below} ]\n");
    }
    assert!(
        errors(&bomb)[0].contains("more than 1000000 values"),
        "{:?}",
        errors(&bomb)
    );
}

#[test]
fn anchors_and_merge_keys_work() {
    let text = "interfaces:\n  e0: &usual { mtu: 9000, state: down }\n  e1: { <<: *usual, state: up }\n  e2: *usual\n  \
                e3: { <<: [ { mtu: 2000 }, *usual ] }\n";
    let config = Config::parse("x", text).expect("valid");
    let of = |name: &str| (config.interfaces[name].mtu, config.interfaces[name].state);
    assert_eq!(of("e1"), (Some(9000), Some(State::Up)));
    assert_eq!(of("e2"), (Some(9000), Some(State::Down)));
    assert_eq!(of("e3"), (Some(2000), Some(State::Down)));
    assert_errors(&[(
        "interfaces: { e0: { <<: 5 } }",
        &["'<<' merges maps, and this is not a map"],
    )]);
}

#[test]
fn tags_say_what_a_value_is() {
    assert_valid(&["interfaces: { e0: { description: !!str 1234, mtu: !!int \"1500\" } }"]);
    assert_eq!(
        errors("interfaces: { e0: { mtu: !frob 1500 } }"),
        ["'1500' cannot be read as its tag says"]
    );
}

#[test]
fn a_mistyped_name_has_a_suggestion() {
    for (text, help) in [
        ("interface: {}", "did you mean interfaces?"),
        (
            "interfaces: { e0: { adresses: [] } }",
            "did you mean addresses?",
        ),
        (
            "interfaces: { e0: { descr: x } }",
            "did you mean description?",
        ),
        ("interfaces: { e0: { state: dwn } }", "did you mean down?"),
        (
            "sflow: { xyzzy: 1 }",
            "known here: collector, agent, header-bytes, polling-interval, sampling-rate",
        ),
    ] {
        let problems = Checked::parse("x", text).expect_err(text);
        assert_eq!(problems.iter().next().expect("one").help, help, "{text}");
    }
}
