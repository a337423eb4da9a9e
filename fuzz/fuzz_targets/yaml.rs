//! A configuration file.
#![cfg_attr(fuzzing, no_main)]

use control::config::{Checked, Config};
use control::plan::Plan;

/// It is read, planned and dumped, or refused with words.
pub fn check(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let problems = match Checked::parse("fuzz.yaml", &text) {
        Ok(checked) => {
            plans(&checked.config);
            dumps(&checked.config);
            match checked.wanted() {
                Ok(_) => return,
                Err(problems) => problems,
            }
        }
        Err(problems) => problems,
    };
    assert!(problems.to_string().contains("fuzz.yaml"), "{problems}");
    let report = problems.report(true);
    assert!(!report.contains("the language allows"), "{report}");
}

/// From nothing there and back again, and from there to there.
fn plans(config: &Config) {
    let nothing = Config::default();
    for (from, to) in [(&nothing, config), (config, &nothing)] {
        let plan = Plan::new(from, to);
        assert_eq!(
            plan.is_empty(),
            plan.changes.is_empty(),
            "{}",
            plan.text(true)
        );
        assert!(plan.text(true).starts_with(&plan.text(false)));
        let steps = plan.json()["steps"].as_array().map_or(0, Vec::len);
        assert_eq!(steps, plan.steps.len());
    }
    assert!(Plan::new(config, config).is_empty());
}

/// What is dumped is accepted and means the same.
fn dumps(config: &Config) {
    let text = config.dump();
    let again = Config::parse("dump.yaml", &text);
    let again = again.unwrap_or_else(|problems| panic!("{}\n{text}", problems.report(false)));
    let plan = Plan::new(config, &again);
    assert!(plan.is_empty(), "{}\n{text}", plan.text(true));
    assert_eq!(again.dump(), text);
}

#[cfg(fuzzing)]
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| check(bytes));
