//! A stranger's packet as text.
#![cfg_attr(fuzzing, no_main)]

use wire::text::{Frame, Ip4};

/// No line is empty, and nothing in it moves a terminal's cursor.
pub fn check(bytes: &[u8]) {
    for text in [
        format!("{0}\n{0:#}", Frame(bytes)),
        format!("{0}\n{0:#}", Ip4(bytes)),
    ] {
        assert!(text.lines().all(|line| !line.is_empty()), "{text:?}");
        assert!(
            text.chars().all(|c| c == '\n' || !c.is_control()),
            "{text:?}"
        );
    }
}

#[cfg(fuzzing)]
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| check(bytes));
