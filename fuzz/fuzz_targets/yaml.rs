//! A configuration file.
#![cfg_attr(fuzzing, no_main)]

use control::config::Config;

/// It is read, or refused with words.
pub fn check(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    if let Err(problems) = Config::parse("fuzz.yaml", &text) {
        assert!(problems.to_string().contains("fuzz.yaml"), "{problems}");
    }
}

#[cfg(fuzzing)]
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| check(bytes));
