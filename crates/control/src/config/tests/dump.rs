//! A dump is the same configuration.

use super::guide::examples;
use super::*;
use crate::plan::Plan;
use crate::plan::tests::configs;

/// Reads what was dumped.
fn again(config: &Config) -> Config {
    let text = config.dump();
    let read = Config::parse("dump.yaml", &text);
    let read = read.unwrap_or_else(|problems| panic!("{}\n{text}", problems.report(false)));
    assert_eq!(read.dump(), text);
    read
}

#[test]
fn every_configuration_is_read_as_what_was_dumped() {
    let read = |text: &&str| Config::parse("x", text).expect("valid");
    let examples: Vec<Config> = examples().iter().map(read).collect();
    for config in examples.iter().chain(&configs()) {
        assert_eq!(again(config), *config);
        assert!(Plan::new(config, &again(config)).is_empty());
        assert_eq!(Desired::of(config), Desired::of(&again(config)));
    }
}

#[test]
fn what_nobody_wrote_is_not_dumped() {
    for text in [
        "routes:\n  - prefix: 10.0.0.0/8\n    via:\n      - address: 192.0.2.2\n      - address: 192.0.2.3\n        weight: 2\n  - prefix: 10.1.0.0/16\n    blackhole: true\n",
        "interfaces:\n  m: {}\nports:\n  m:\n    memif:\n      socket: /s\n      role: server\n",
        "taps:\n  tap1:\n    host:\n      name: t1\nacls:\n  one:\n    terms:\n      - action: deny\nsflow:\n  header-bytes: 64\n",
        "interfaces:\n  e0:\n    firewall:\n      in: one\nprefixlists:\n  web:\n    members: []\npolicies:\n  one:\n    rules:\n      - action: drop\n      - action: accept\n        state: [ new, related ]\n        protocol: tcp\n        destination-port: www\n        limit: 10\n  two:\n    default: accept\ntables:\n  flows: 5000\n",
        "interfaces:\n  e0: {}\n  BondEthernet0: {}\n  e1:\n    sub-interfaces:\n      5:\n        encapsulation:\n          dot1q: 5\nbondethernets:\n  BondEthernet0:\n    interfaces: [ e0 ]\nbridgedomains:\n  bd1: {}\n  bd2:\n    settings:\n      learn: false\n",
    ] {
        let config = Config::parse("x", text).unwrap_or_else(|e| panic!("{}", e.report(false)));
        assert_eq!(config.dump(), text);
        assert_eq!(again(&config), config);
    }
}

/// A name or text may look like anything.
#[test]
fn texts_stay_what_they_are() {
    for text in [
        "yes", "on", "0x10", "1e3", "10:20", "~", "", "a: b", "- #", "\t", "名",
    ] {
        let mut config = Config::default();
        let interface = Interface {
            description: Some(text.to_owned()),
            ..Interface::default()
        };
        config.interfaces.insert(text.to_owned(), interface);
        config.netns = (!text.is_empty()).then(|| text.to_owned());
        assert_eq!(again(&config), config);
    }
}

#[test]
fn a_secret_and_an_empty_sub_interface_come_back() {
    let text = "interfaces: { e0: { sub-interfaces: { 5: { addresses: [] } } } }\n\
                ports: { m: { memif: { socket: /s, secret: \"no\" } } }\n";
    let config = Config::parse("x", text).expect("valid");
    assert!(Plan::new(&config, &again(&config)).is_empty());
    assert!(
        config.dump().contains("secret: \"no\"\n"),
        "{}",
        config.dump()
    );
}

proptest! {
    #[test]
    fn what_is_accepted_can_be_dumped(
        cuts in prop::collection::vec((0usize..OPERATOR.len(), 0usize..40, "[\\PC\n]{0,8}"), 1..4),
    ) {
        let mut text = OPERATOR.to_owned();
        for (at, len, put) in cuts {
            let start = text.floor_char_boundary(at);
            let end = text.floor_char_boundary(start + len);
            text.replace_range(start..end, &put);
        }
        if let Ok(config) = Config::parse("x", &text) {
            prop_assert!(Plan::new(&config, &again(&config)).is_empty());
        }
    }
}
