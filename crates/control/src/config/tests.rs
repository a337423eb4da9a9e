use proptest::prelude::*;

use super::*;

fn parse(text: &str) -> Result<Config, String> {
    Config::parse("test.yaml", text).map_err(|problems| problems.to_string())
}

const OPERATOR: &str = r#"
# As an operator of a small network has it.
interfaces:
  GigabitEthernet3/0/0:
    description: "Infra: nlams1"
    device-type: dpdk
    mac: 02:00:5E:10:00:01
    lcp: e0
    mtu: 9000
    addresses: [ 192.0.2.1/31, 2001:db8::1/112 ]
    sflow: false
  xe1:
    state: down
    mpls: no
ports:
  GigabitEthernet3/0/0: { pci: "0000:03:00.0", queues: 4, mode: zero-copy }
  peer:
    memif: { socket: /run/vpp/memif.sock, id: 1, role: server, mode: ethernet, rings: 2, ring-size: 0x800 }
  sink: { null: {} }
workers: { cpus: [2, 3] }
netns: dataplane
control: { show-group: users }
"#;

#[test]
fn an_operators_file_reads() {
    let config = Config::parse("x", OPERATOR).unwrap_or_else(|problems| panic!("{problems}"));
    let names: Vec<&str> = config
        .interfaces
        .iter()
        .map(|interface| interface.name.as_str())
        .collect();
    assert_eq!(names, ["GigabitEthernet3/0/0", "xe1", "peer", "sink"]);
    let first = &config.interfaces[0];
    assert_eq!(
        (first.mtu, first.lcp.as_deref(), first.up),
        (Some(9000), Some("e0"), true)
    );
    assert_eq!(first.mac, Some([2, 0, 0x5e, 0x10, 0, 1].into()));
    assert_eq!(first.addresses[1].to_string(), "2001:db8::1/112");
    assert_eq!(first.port.kind, PortKind::Pci("0000:03:00.0".into()));
    assert_eq!(
        (first.port.queues, first.port.mode),
        (Some(4), Mode::ZeroCopy)
    );
    assert_eq!(
        config.interfaces[1].port.kind,
        PortKind::Netdev("xe1".into())
    );
    assert!(!config.interfaces[1].up);
    let PortKind::Memif(memif) = &config.interfaces[2].port.kind else {
        panic!()
    };
    assert_eq!(
        (memif.role, memif.rings, memif.ring_size),
        (Role::Server, 2, 2048)
    );
    assert_eq!(config.interfaces[3].port.kind, PortKind::Null);
    assert_eq!(config.workers.cpus, [2, 3]);
    assert_eq!(
        config.netns.as_deref(),
        Some(Path::new("/run/netns/dataplane"))
    );
    assert_eq!(config.control.show_group.as_deref(), Some("users"));
    assert_eq!(config.control.group.as_deref(), Some("parshall"));
}

#[test]
fn nothing_is_a_configuration() {
    for text in ["", "# only a comment\n", "---\n", "{}\n"] {
        assert_eq!(parse(text), Ok(Config::default()), "{text:?}");
    }
}

#[test]
fn numbers_are_those_of_yaml_1_1() {
    for (text, mtu) in [
        ("0x5dc", 1500),
        ("02734", 1500),
        ("1_500", 1500),
        ("9216", 9216),
        ("128", 128),
    ] {
        let config = parse(&format!("interfaces: {{ a: {{ mtu: {text} }} }}")).expect(text);
        assert_eq!(config.interfaces[0].mtu, Some(mtu), "{text}");
    }
}

/// What is wrong, where, and a part of what is said about it.
const WRONG: &[(&str, &str, &str)] = &[
    (
        "interfaces:\n  a:\n    mtu: 127\n",
        "3:10",
        "from 128 to 9216",
    ),
    (
        "interfaces:\n  a:\n    mtu: 9217\n",
        "3:10",
        "from 128 to 9216",
    ),
    (
        "interfaces:\n  a:\n    mtu: much\n",
        "3:10",
        "not a whole number",
    ),
    (
        "interfaces:\n  a:\n    mtu:\n  b: {}\n",
        "3:",
        "not a whole number",
    ),
    ("interfaces:\n  a:\n    speed: 10\n", "3:5", "unknown field"),
    ("interfaces:\n  a: {}\n  a: {}\n", "3:3", "uplicate"),
    (
        "interfaces:\n  a:\n    state: sideways\n",
        "3:12",
        "unknown variant",
    ),
    (
        "interfaces:\n  a:\n    mac: 01:00:5e:00:00:01\n",
        "3:10",
        "cannot be multicast",
    ),
    (
        "interfaces:\n  a:\n    mac: 0001.0203.0405\n",
        "3:10",
        "is not one",
    ),
    ("interfaces:\n  a:\n    lcp: Loud\n", "3:10", "lower-case"),
    (
        "interfaces:\n  a:\n    lcp: sixteencharacter\n",
        "3:10",
        "at most 15",
    ),
    (
        "interfaces:\n  a: { lcp: e0 }\n  b: { lcp: e0 }\n",
        "",
        "does not have a unique LCP name e0",
    ),
    (
        "ports:\n  a: { tap: {} }\n  a-host: { tap: {} }\n",
        "3:3",
        "the name of the host's end of a",
    ),
    (
        "interfaces:\n  a:\n    addresses: [ 192.0.2.1 ]\n",
        "3:18",
        "prefix length",
    ),
    (
        "interfaces:\n  a:\n    addresses: [ 192.0.2.01/24 ]\n",
        "3:18",
        "is not one",
    ),
    (
        "interfaces:\n  a:\n    addresses: [ 192.0.2.1/33 ]\n",
        "3:18",
        "is not one",
    ),
    ("interfaces:\n  a:\n    addresses: []\n", "3:16", "1 to 6"),
    (
        "interfaces:\n  a:\n    addresses: [ 2001:DB8::1/64 ]\n",
        "3:18",
        "is not canonical, use 2001:db8::1/64",
    ),
    (
        "interfaces:\n  a: { addresses: [ 10.0.0.1/8 ] }\n  b: { addresses: [ 10.1.0.1/16 ] }\n",
        "3:21",
        "conflicts with another",
    ),
    (
        "interfaces:\n  a: { addresses: [ 10.0.0.1/8, 10.0.0.2/24 ] }\n",
        "2:33",
        "conflicts with another",
    ),
    (
        "interfaces:\n  a:\n    l2xc: b\n",
        "3:11",
        "not supported yet",
    ),
    (
        "interfaces:\n  a:\n    sub-interfaces:\n      100: { mtu: 1500 }\n",
        "4:7",
        "not supported yet",
    ),
    (
        "interfaces:\n  a:\n    mpls: true\n",
        "3:11",
        "not supported yet",
    ),
    (
        "interfaces:\n  BondEthernet0: { mtu: 1500 }\n",
        "2:3",
        "does not exist in bondethernets",
    ),
    (
        "bondethernets:\n  BondEthernet0: {}\n",
        "2:3",
        "not supported yet",
    ),
    ("acls: { a: { terms: [] } }\n", "1:7", "not supported yet"),
    ("bogus: 1\n", "1:1", "unknown field"),
    (
        "ports:\n  p: { netdev: e0, tap: {} }\n",
        "2:3",
        "exactly one of",
    ),
    ("ports:\n  p: { queues: 2 }\n", "2:3", "exactly one of"),
    (
        "ports:\n  p: { pci: 03:00.0 }\n",
        "2:13",
        "not a PCI address",
    ),
    ("ports:\n  p: { memif: { id: 1 } }\n", "2:15", "no socket"),
    (
        "ports:\n  p: { memif: { socket: /s, ring-size: 100 } }\n",
        "2:40",
        "power of two",
    ),
    (
        "ports:\n  p: { netdev: e0, mode: fast }\n",
        "2:26",
        "unknown variant",
    ),
    (
        "workers: { count: 3, cpus: [1, 2] }\n",
        "1:10",
        "3 workers on 2",
    ),
    ("workers: { count: 65 }\n", "1:19", "from 1 to 64"),
    ("interfaces: [\n", "", ""),
    ("interfaces:\n\ta: {}\n", "2:", ""),
];

#[test]
fn what_is_wrong_is_named_with_its_place() {
    for (text, place, what) in WRONG {
        let problems = parse(text).expect_err(text);
        assert!(problems.contains(what), "{text}\n{problems}");
        assert!(
            problems.contains(&format!("test.yaml:{place}")),
            "{text}\n{problems}"
        );
    }
}

#[test]
fn all_problems_are_told_at_once() {
    let problems =
        Config::parse("x", "interfaces:\n  a: { mtu: 1, lcp: X }\nsflow: {}\n").unwrap_err();
    assert_eq!(problems.iter().count(), 3, "{problems}");
}

#[test]
fn hosts_of_one_network_may_share_an_interface() {
    assert!(parse("interfaces:\n  a: { addresses: [ 10.0.0.1/24, 10.0.0.2/24 ] }\n").is_ok());
}

#[test]
fn the_report_shows_the_line() {
    let problems =
        Config::parse("router.yaml", "interfaces:\n  eth0:\n    mtu: 99999\n").unwrap_err();
    let report = problems.report(false);
    assert!(
        report.contains("mtu: 99999") && report.contains("router.yaml:3"),
        "{report}"
    );
}

proptest! {
    #[test]
    fn any_text_is_read_or_refused(text in "\\PC{0,200}") {
        if let Err(problems) = parse(&text) {
            prop_assert!(!problems.is_empty());
        }
    }

    #[test]
    fn a_damaged_file_is_read_or_refused(at in 0usize..OPERATOR.len(), len in 0usize..40, put in "[\\PC\n]{0,8}") {
        let start = OPERATOR.floor_char_boundary(at);
        let end = OPERATOR.floor_char_boundary((start + len).min(OPERATOR.len()));
        let text = format!("{}{put}{}", &OPERATOR[..start], &OPERATOR[end..]);
        if let Err(problems) = Config::parse("x", &text) {
            let report = problems.report(false);
            for problem in problems.iter() {
                prop_assert!(report.contains(problem.to_string().lines().next().unwrap_or("?")), "{}", report);
            }
        }
    }
}
