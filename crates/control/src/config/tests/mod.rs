//! Every rule of the language, each with its message.

mod acls;
mod dump;
mod guide;
mod layer2;
mod nat;
mod ours;
mod policies;
mod rules;
mod schema;
mod values;

use proptest::prelude::*;

use super::desired::{Kind, Layer2};
use super::*;

/// The messages about a text, of one severity, in the order of the file.
fn said(text: &str, severity: Severity) -> Vec<String> {
    let problems = match Checked::parse("test.yaml", text) {
        Ok(checked) => checked.warnings,
        Err(problems) => problems,
    };
    let told = problems
        .iter()
        .filter(|problem| problem.severity == severity);
    told.map(|problem| problem.message.clone()).collect()
}

fn errors(text: &str) -> Vec<String> {
    said(text, Severity::Error)
}

/// Fails unless each text has exactly these errors.
fn assert_errors(cases: &[(&str, &[&str])]) {
    for (text, wanted) in cases {
        let mut found = errors(text);
        let mut wanted: Vec<String> = wanted.iter().map(|&error| error.to_owned()).collect();
        found.sort();
        wanted.sort();
        assert_eq!(found, wanted, "{text}");
    }
}

fn assert_valid(texts: &[&str]) {
    for text in texts {
        assert_eq!(errors(text), [""; 0], "{text}");
    }
}

/// As an operator has it: every section of vppcfg, and ours.
pub(crate) const OPERATOR: &str = include_str!("operator.yaml");

#[test]
fn an_operators_file_is_valid() {
    assert_eq!(said(OPERATOR, Severity::Error), [""; 0]);
    let config = Config::parse("x", OPERATOR).expect("valid");
    assert_eq!(
        config.interfaces["TenGigabitEthernet3/0/2"].sub_interfaces[&1235].mtu,
        Some(1400)
    );
    assert_eq!(config.routes.len(), 4);
    assert_eq!(config.workers.cpus, [2, 3]);
    assert_eq!(config.tables.ip4_routes, Some(2_000_000));
}

/// The model prints the language again.
#[test]
fn the_model_says_what_was_read() {
    let config = Config::parse("x", OPERATOR).expect("valid");
    let json = serde_json::to_value(&config).expect("JSON");
    let again: Config = serde_json::from_value(json).expect("the same");
    // A secret is not shown.
    assert_eq!(again, config);
}

#[test]
fn the_report_has_line_caret_and_advice() {
    let problems = Checked::parse(
        "router.yaml",
        "interfaces:\n  e0:\n    mtu:  99999\n    colour: red\n",
    );
    let report = problems.expect_err("an error").report(false);
    let wanted = "\
error: interfaces.e0.mtu: 99999 is greater than 9216
   --> router.yaml:3:11
 3 │     mtu:  99999
   │           ^^^^^
   help: it must be from 128 to 9216
error: interfaces.e0.colour: Unexpected element
   --> router.yaml:4:5
 4 │     colour: red
   │     ^^^^^^
";
    assert!(report.starts_with(wanted), "{report}");
    assert!(
        report.contains("   help: known here: description, "),
        "{report}"
    );
}

/// Whether the form or the length is wrong, the advice names both.
#[test]
fn advice_on_a_text_says_how_long_it_may_be() {
    let long = "a".repeat(57);
    for name in ["a", "A1", &long] {
        for section in ["acls", "policies"] {
            let problems = Checked::parse("x", &format!("{section}: {{ {name}: {{}} }}"));
            let said = problems.expect_err("an error").to_string();
            let advice =
                "; write 2 to 56 bytes: a lower-case letter, then such letters, digits and `-`";
            assert!(said.contains(advice), "{said}");
        }
    }
}

#[test]
fn a_duplicate_key_is_shown_at_both_places() {
    let text = "interfaces:\n  e0: { mtu: 1500 }\n  e1: {}\n  e0: { mtu: 9000 }\n";
    let report = Checked::parse("x", text)
        .expect_err("an error")
        .report(false);
    assert!(report.starts_with("error: duplicate key e0\n"), "{report}");
    assert!(
        report.contains("x:4:3") && report.contains("x:2:3"),
        "{report}"
    );
    assert!(report.contains("^^ and here"), "{report}");
    // The later one is checked further, and of the earlier one what stands in it.
    let text = "interfaces:\n  e0: {}\n  e0: { lcp: X, unnumbered: nobody }\n";
    assert_eq!(errors(text).len(), 3, "{:?}", errors(text));
}

/// Each mistake hides others: the value that does not count, the field that is not known.
#[test]
fn a_mistake_does_not_hide_those_inside() {
    let first = "{ mtu: 99999, adresses: [ 192.0.2.300/24 ] }";
    let inside = [
        "duplicate key e0",
        "interfaces.e0.mtu: 99999 is greater than 9216",
        "interfaces.e0.adresses: Unexpected element",
        "interfaces.e0.adresses.0: '192.0.2.300/24' is not a ip_interface.",
    ];
    let map = format!("interfaces:\n  e0: {first}\n  e0: {{}}\n");
    let section = format!("interfaces: {{ e0: {first} }}\ninterfaces: {{}}\n");
    let of_section = [&["duplicate key interfaces"], &inside[1..]].concat();
    let merged = "interfaces:\n  e1: &x\n    mtu: 1\n    mtu: 1500\n  e0:\n    <<: *x\n";
    let of_merged = ["duplicate key mtu", "interfaces.e1.mtu: 1 is less than 128"];
    assert_errors(&[
        (&map, &inside),
        (&section, &of_section),
        (merged, &of_merged),
    ]);
}

#[test]
fn an_error_of_form_hides_no_rule() {
    let text =
        "interfaces:\n  e0: { mtu: 1, unnumbered: nobody, mac: 01:00:5e:00:00:01 }\nsflows: {}\n";
    assert_errors(&[(
        text,
        &[
            "interfaces.e0.mtu: 1 is less than 128",
            "interface e0 unnumbered target nobody does not exist",
            "interface e0 MAC address 01:00:5e:00:00:01 cannot be multicast",
            "sflows: Unexpected element",
        ],
    )]);
}

#[test]
fn what_the_router_cannot_do_yet_is_refused_by_name() {
    let refused = |text: &str| {
        let checked = Checked::parse("x", text).expect("valid");
        let problems = checked.wanted().expect_err("cannot be done yet");
        problems
            .iter()
            .map(|p| (p.message.clone(), p.line()))
            .collect::<Vec<_>>()
    };
    let text = "interfaces:\n  e0:\n    sflow: true\n  e1:\n    vrf: a\n\
                loopbacks:\n  loop0: {}\n  loop1: { vrf: a }\nsflow: {}\nvrfs: { a: { table: 5 } }\n\
                routes:\n  - { prefix: 10.0.0.0/8, blackhole: true }\n";
    let wanted = [
        ("vrf of interface e1: not supported yet", 5),
        ("vrf of loopback loop1: not supported yet", 8),
        ("sflow has no collector that samples are sent to", 9),
        ("vrfs: not supported yet", 10),
    ];
    assert_eq!(
        refused(text),
        wanted.map(|(message, line)| (message.to_owned(), line))
    );
    // The file is valid, and who checks it hears the same.
    let warnings = Checked::parse("x", text).expect("valid").warnings;
    let told = warnings.iter().map(|p| (p.message.clone(), p.line()));
    assert_eq!(told.collect::<Vec<_>>(), refused(text));
    let first = "x:5:10: vrf of interface e1: not supported yet; `apply` refuses this: remove it";
    assert!(warnings.to_string().starts_with(first), "{warnings}");
    let bridges = "taps:\n  tap1: { host: { name: t1, bridge: t2, namespace: a } }\n  \
                   tap2: { host: { name: t2, bridge: br0, namespace: a } }\n  \
                   tap3: { host: { name: t3, bridge: t3 } }\n  tap4: { host: { name: t4, bridge: t2 } }\n";
    assert_eq!(
        refused(bridges),
        [
            (
                "tap tap1 has bridge t2, which is the host name of tap tap2",
                2
            ),
            (
                "tap tap3 has bridge t3, which is the host name of tap tap3",
                4
            ),
        ]
        .map(|(message, line)| (message.to_owned(), line))
    );
    let names = refused("interfaces: { GigabitEthernet3/0/0: {} }");
    assert_eq!(
        names[0].0,
        "interface GigabitEthernet3/0/0 cannot be the name of a network device"
    );
}

/// Samples that have nowhere to go, or are not those of a port.
#[test]
fn sflow_without_a_collector_or_a_port_is_refused() {
    let refused = |text: &str| {
        let checked = Checked::parse("x", text).expect("valid");
        let problems = checked.wanted().expect_err("cannot be done");
        let said = problems
            .iter()
            .map(|p| format!("{}: {}", p.line(), p.message));
        said.collect::<Vec<_>>()
    };
    assert_eq!(
        refused("interfaces:\n  e0:\n    sflow: true\n"),
        ["3: sflow of interface e0 without a section sflow"]
    );
    assert_eq!(
        refused("sflow:\n  agent: 192.0.2.1\n"),
        ["1: sflow has no collector that samples are sent to"]
    );
    let text = "interfaces:\n  e0: {}\n  BondEthernet0: { sflow: true }\n  vxlan_tunnel1: { sflow: yes }\n\
                bondethernets: { BondEthernet0: { interfaces: [ e0 ] } }\n\
                vxlan_tunnels: { vxlan_tunnel1: { local: 10.0.0.1, remote: 10.0.0.2, vni: 1 } }\n\
                sflow: { collector: 192.0.2.1 }\n";
    assert_eq!(
        refused(text),
        [
            "3: sflow of interface BondEthernet0, which is a bond and has no port",
            "4: sflow of interface vxlan_tunnel1, which is a tunnel and has no port",
        ]
    );
    let text = "interfaces: { e0: { sflow: true }, e1: { sflow: false } }\nsflow: { collector: \"[2001:db8::1]:6343\" }";
    let checked = Checked::parse("x", text).expect("valid");
    let wanted = checked.wanted().expect("can be done");
    let sampled = |name| wanted.interface(name).expect("it is there").sampled;
    assert_eq!((sampled("e0"), sampled("e1")), (true, false));
    let sflow = wanted.sflow.expect("there are samples");
    assert_eq!(
        sflow.collector.map(|c| c.to_string()).as_deref(),
        Some("2001:db8::1")
    );
    assert_eq!((sflow.sampling_rate, sflow.header_bytes), (10_000, 128));
}

/// What stands in `bondethernets` and what stands in `interfaces` come together.
#[test]
fn a_bond_is_what_both_sections_say() {
    use router::bond::{Headers, Spread};
    let text = "interfaces: { e0: {}, BondEthernet0: { lcp: be0, sub-interfaces: { 5: { lcp: be5 } } } }\n\
                bondethernets: { BondEthernet0: { mode: xor, description: both, mac: 02:00:00:00:00:09, interfaces: [ e0 ] } }";
    let wanted = Checked::parse("x", text).expect("valid").wanted();
    let wanted = wanted.expect("can be done");
    let of = |name: &str| wanted.interface(name).expect("it is there").clone();
    let bond = of("BondEthernet0");
    assert_eq!(bond.kind, Kind::Bond(Spread::Xor(Headers::L34)));
    assert_eq!(bond.description.as_deref(), Some("both"));
    let mac = Some([2, 0, 0, 0, 0, 9].into());
    assert_eq!((bond.mac, of("BondEthernet0.5").mac), (mac, mac));
    let member = Layer2::Bond("BondEthernet0".to_owned());
    assert_eq!(of("e0").l2, Some(member));
}

#[test]
fn layer_2_is_what_the_file_says() {
    let text = "ports: { m: { null: {} }, n: { null: {} } }\n\
                interfaces: { m: { mtu: 2000, sub-interfaces: { 5: { l2xc: n } } }, n: { mtu: 2000 }  }\n\
                bridgedomains: { bd1: { mtu: 2000, interfaces: [ m ] } }\n";
    let wanted = Checked::parse("x", text).expect("valid").wanted();
    let wanted = wanted.expect("can be done");
    let of = |name: &str| wanted.interface(name).expect("it is there").clone();
    assert_eq!(of("m").l2, Some(Layer2::Bridge("bd1".into())));
    assert_eq!(of("n").l2, None);
    let sub = of("m.5");
    assert_eq!(sub.l2, Some(Layer2::CrossConnect("n".into())));
    assert_eq!((sub.mtu, sub.up), (Some(2000), true));
    let Kind::Sub {
        parent,
        encapsulation,
    } = sub.kind
    else {
        panic!("{sub:?}");
    };
    assert_eq!(
        (
            parent.as_str(),
            encapsulation.dot1q,
            encapsulation.exact_match
        ),
        ("m", 5, true)
    );
    assert_eq!(wanted.bridges.len(), 1);
    // The tap of a sub-interface has a name that no other device has.
    let taken = text.replace("n: { mtu: 2000 }", "n: { mtu: 2000 }, p: { lcp: m.5 }");
    let taken = taken.replace("n: { null", "p: { null: {} }, n: { null");
    let problems = Checked::parse("x", &taken)
        .expect_err("a name twice")
        .to_string();
    assert!(
        problems.contains("m.5 is the name of the device of m.5"),
        "{problems}"
    );
}

#[test]
fn what_the_router_can_do_is_what_the_file_says() {
    let text = "interfaces:\n  lan: { mtu: 9000, lcp: e0, state: down, mpls: yes, addresses: [ 192.0.2.1/31 ] }\n\
                ports:\n  lan: { pci: \"0000:03:00.A\", queues: 4, mode: zero-copy }\n  sink: { null: {} }\n\
                workers: { cpus: [ 2, 3 ] }\ntables: { ip6-routes: 1000 }\nnetns: dataplane\ncontrol: { show-group: users }\n";
    let wanted = Checked::parse("x", text)
        .expect("valid")
        .wanted()
        .expect("can be done");
    let lan = &wanted.interfaces[0];
    assert_eq!(
        (lan.mtu, lan.lcp.as_deref(), lan.up),
        (Some(9000), Some("e0"), false)
    );
    let port = lan.netdev().expect("a network device");
    assert_eq!(port.kind, PortKind::Pci("0000:03:00.a".into()));
    assert_eq!((port.queues, port.mode), (Some(4), Mode::ZeroCopy));
    assert_eq!(wanted.interfaces[1].name, "sink");
    let port = wanted.interfaces[1].port();
    assert_eq!(port.map(|port| &port.kind), Some(&PortKind::Null));
    assert_eq!(
        wanted.netns.as_deref(),
        Some(Path::new("/run/netns/dataplane"))
    );
    assert_eq!(wanted.control.show_group.as_deref(), Some("users"));
    assert_eq!(wanted.control.group.as_deref(), Some("parshall"));
    assert_eq!(wanted.workers.cpus, [2, 3]);
    let tables = Tables {
        ip6_routes: Some(1000),
        ..Tables::default()
    };
    assert_eq!(wanted.tables, tables);
}

proptest! {
    #[test]
    fn any_text_is_read_or_refused(text in "\\PC{0,200}") {
        if let Err(problems) = Checked::parse("x", &text) {
            prop_assert!(!problems.is_empty());
        }
    }

    #[test]
    fn a_damaged_file_is_read_or_refused(
        at in 0usize..OPERATOR.len(),
        len in 0usize..40,
        put in "[\\PC\n]{0,8}",
    ) {
        let start = OPERATOR.floor_char_boundary(at);
        let end = OPERATOR.floor_char_boundary((start + len).min(OPERATOR.len()));
        let text = format!("{}{put}{}", &OPERATOR[..start], &OPERATOR[end..]);
        if let Err(problems) = Checked::parse("x", &text) {
            let report = problems.report(false);
            for problem in problems.iter() {
                let word = problem.severity.word();
                prop_assert!(report.contains(&format!("{word}: ")), "{}", report);
                prop_assert!(!problem.message.contains("the language allows"), "{}", report);
            }
        }
    }
}
