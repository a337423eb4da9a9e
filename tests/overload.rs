//! More packets than the router can forward.

use crate::harness::{Hosts, PATIENCE, Router, skipped, topology::CONFIGURATION, until};

/// What does not fit is dropped by the kernel; all buffers come back, and the router forwards as before.
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
    let output = hosts.overload();
    assert!(output.status.success(), "{output:?}");
    let counters = router.show_text(&["hardware", "r0"]);
    assert!(
        counters.contains("rx-ring-full") || counters.contains("rx-dropped"),
        "{counters}"
    );
    // A ring of packets that were sent may wait for the next ones.
    let back = until(PATIENCE, || used() <= before + 4096);
    assert!(back, "{before} buffers in use before, {} after", used());
}
