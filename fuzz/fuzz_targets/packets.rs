//! A packet through the whole graph. The input is the frame that interface 1 receives.
#![cfg_attr(fuzzing, no_main)]

#[allow(dead_code)]
#[path = "../../crates/router/tests/router/harness.rs"]
mod harness;
#[path = "../../crates/router/tests/router/sound.rs"]
mod sound;

use std::cell::RefCell;

thread_local! {
    static LAB: RefCell<harness::Lab> = RefCell::new(sound::lab());
}

/// What leaves is well-formed and no buffer is lost, see [`sound::round`].
pub fn check(frame: &[u8]) {
    let frame = &frame[..frame.len().min(graph::pool::MAX_PACKET)];
    LAB.with_borrow_mut(|lab| sound::round(lab, 1, vec![frame.to_vec()]));
}

#[cfg(fuzzing)]
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| check(bytes));
