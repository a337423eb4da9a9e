//! More packets than anything can forward.

use crate::harness::{Hosts, Router, patience, skipped, topology::CONFIGURATION, until};

/// What does not fit is dropped by the kernel; all buffers come back.
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
    // A ring of packets that were sent may wait for the next ones.
    let back = until(patience(), || used() <= before + 4096);
    assert!(back, "{before} buffers in use before, {} after", used());
}

/// A kernel that forwards between virtual interfaces does it on the generator's processor: that is
/// said, and what to do.
#[test]
fn a_generator_that_falls_short_is_told_why() {
    if skipped(
        "a_generator_that_falls_short_is_told_why",
        &["ip", "ethtool"],
    ) {
        return;
    }
    let hosts = Hosts::new(1500, false);
    hosts.router.set_forwarding(true).expect("forwarding");
    let said = hosts.overload();
    assert!(
        said.contains("The generator fell short: software interrupts took"),
        "{said}"
    );
}
