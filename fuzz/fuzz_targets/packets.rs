//! A packet through the whole graph. The input is the frame that interface 1 receives.
#![no_main]

#[path = "../../crates/router/tests/router/harness.rs"]
#[allow(dead_code)]
mod harness;

use harness::{Lab, neighbor, route, via};
use libfuzzer_sys::fuzz_target;
use router::{Change, Interface, Route};
use std::cell::RefCell;

thread_local! {
    static LAB: RefCell<Lab> = RefCell::new(lab());
}

/// Ways of every kind: a small link, several next hops, decisions.
fn lab() -> Lab {
    let mut lab = Lab::new();
    lab.apply(vec![
        Change::InterfaceSet(Interface {
            mtu: 576,
            ..harness::interface(3)
        }),
        neighbor(2, 9),
        route("60.0.0.0/8", Route::Blackhole),
        route("61.0.0.0/8", Route::Prohibit),
        route("62.0.0.0/8", Route::Forward(vec![via(2, 2), via(3, 2)])),
        route("128.0.0.0/1", Route::Forward(vec![via(3, 2)])),
    ]);
    lab
}

fuzz_target!(|frame: &[u8]| {
    LAB.with_borrow_mut(|lab| {
        lab.receive(1, [frame.to_vec()]);
        for id in 1..=3 {
            for sent in lab.sent(id) {
                assert!(sent.len() >= 34 && wire::checksum::of(&sent[14..34]) == 0);
                let total = usize::from(u16::from_be_bytes([sent[16], sent[17]]));
                assert!(total <= if id == 3 { 576 } else { 1500 });
                assert!(sent.len() >= 14 + total && sent[22] > 0);
            }
        }
    });
});
