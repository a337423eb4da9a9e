//! Those who only look while a change is made.

use std::thread;

use super::{Netns, Router, change, skipped};

/// Loopbacks: each that comes is a step.
const MANY: usize = 250;

/// The loopbacks in force.
fn loopbacks(router: &Router) -> usize {
    let shown = router.show(&["config"]);
    shown["loopbacks"].as_object().map_or(0, |all| all.len())
}

/// They are answered between its steps; other commands when it is made.
#[test]
fn who_only_looks_is_answered_in_the_middle_of_a_change() {
    if skipped(
        "who_only_looks_is_answered_in_the_middle_of_a_change",
        &["ip"],
    ) {
        return;
    }
    let netns = Netns::create("router").unwrap();
    let few = "interfaces: { t0: {} }\nports: { t0: { tap: {} } }\n";
    let all = |n| format!("  loop{n}: {{ addresses: [ 10.201.{n}.1/32 ] }}\n");
    let many: String = (0..MANY).map(all).collect();
    let router = Router::start(&netns, few);
    assert_eq!(loopbacks(&router), 0);
    let many = format!("{few}loopbacks:\n{many}");
    let between = thread::scope(|scope| {
        let made = scope.spawn(|| change(&router, &many).expect("it can"));
        let mut looks = 0;
        while !made.is_finished() {
            let there = loopbacks(&router);
            assert!([0, MANY].contains(&there), "{there}");
            looks += usize::from(there == 0);
        }
        looks
    });
    // One may have come before it, and one waits for it in any case.
    assert!(between > 3, "{}", router.process.log());
    assert_eq!(loopbacks(&router), MANY);
}
