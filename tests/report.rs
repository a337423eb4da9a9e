//! The HTML report in a real browser: no script error, the lines are there, no network.

use crate::harness::skipped;

#[test]
fn report_opens_in_chromium() {
    if skipped("report_opens_in_chromium", &["chromium"]) {
        return;
    }
}
