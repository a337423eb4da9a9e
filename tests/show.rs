//! Every `show` command answers, as text and as JSON; unique prefixes are enough.

use crate::harness::{Hosts, Router, router::forwards, skipped, topology::CONFIGURATION};

const COMMANDS: &[&[&str]] = &[
    &["version"],
    &["interface"],
    &["hardware"],
    &["runtime"],
    &["errors"],
    &["cpu"],
    &["pci"],
    &["buffers"],
    &["memory"],
    &["ip", "fib"],
    &["ip", "fib", "48.0.0.0/8"],
    &["neighbors"],
    &["adjacency"],
    &["trace"],
];

#[test]
fn every_show_command_answers() {
    if skipped("every_show_command_answers", &["ip", "ethtool"]) {
        return;
    }
    let hosts = Hosts::new(1500, false);
    let (left, right) = hosts.raw();
    let router = Router::start(&hosts.router, CONFIGURATION);
    assert!(forwards(&left, &right));
    for words in COMMANDS {
        router.show_text(words);
        let json = router.show(words);
        assert!(
            json.is_object() || json.is_array(),
            "show {}: {json}",
            words.join(" ")
        );
    }
    assert_eq!(router.show_text(&["ver"]), router.show_text(&["version"]));
    assert!(router.show_text(&["interface"]).contains("r0"));
    assert!(
        router
            .show_text(&["ip", "fib", "48.0.0.0/8"])
            .contains("48.0.0.0/8")
    );
}
