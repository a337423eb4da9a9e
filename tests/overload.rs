//! More packets than anything can forward.

use crate::harness::topology::CONFIGURATION;
use crate::harness::{Hosts, Router, patience, skipped, until};

/// The kernel drops the excess; all buffers come back.
#[test]
fn no_buffer_is_lost() {
    if skipped("no_buffer_is_lost", &["ip", "ethtool"]) {
        return;
    }
    let hosts = Hosts::new(1500, false);
    let router = Router::start(&hosts.router, CONFIGURATION);
    let used = || {
        let shown = router.show(&["buffers"]);
        shown["pools"][0]["used"].as_u64().expect("a number")
    };
    let before = used();
    hosts.overload();
    let counters = router.show_text(&["hardware", "r0"]);
    assert!(
        counters.contains("rx-ring-full") || counters.contains("rx-dropped"),
        "{counters}"
    );
    // Sent packets may stay in a ring until the next ones come.
    let back = until(patience(), || used() <= before + 4096);
    assert!(back, "{before} buffers in use before, {} after", used());
}
