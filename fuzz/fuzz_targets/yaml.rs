//! A configuration file.
#![cfg_attr(fuzzing, no_main)]

use control::config::Checked;

/// It is read, or refused with words.
pub fn check(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let problems = match Checked::parse("fuzz.yaml", &text) {
        Ok(checked) => match checked.wanted() {
            Ok(_) => return,
            Err(problems) => problems,
        },
        Err(problems) => problems,
    };
    assert!(problems.to_string().contains("fuzz.yaml"), "{problems}");
    let report = problems.report(true);
    assert!(!report.contains("the language allows"), "{report}");
}

#[cfg(fuzzing)]
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| check(bytes));
