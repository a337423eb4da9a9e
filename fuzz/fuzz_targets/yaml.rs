//! A configuration file.
#![no_main]

use control::config::Config;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    if let Err(problems) = Config::parse("fuzz.yaml", text) {
        assert!(!problems.to_string().is_empty());
    }
});
