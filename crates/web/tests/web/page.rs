//! The page in a browser, at two widths: what a user sees and clicks.

use crate::browser::Browser;
use crate::router::{HOSTILE, Site};

/// Whether the test is skipped, which is said.
pub fn skipped(name: &str) -> bool {
    !testbed::root_with(name, &["chromium"])
}

pub fn text_of(browser: &mut Browser, selector: &str) -> String {
    let text = browser.value(&format!("document.querySelector('{selector}').innerText"));
    text.as_str().unwrap().to_owned()
}

/// Waits until an element has a text in it.
pub fn wait_for_text(browser: &mut Browser, selector: &str, text: &str) {
    let text = serde_json::Value::from(text);
    browser.wait_for(&format!(
        "document.querySelector('{selector}').innerText.includes({text})"
    ));
}

#[test]
fn a_user_looks_and_changes_things() {
    if skipped("a_user_looks_and_changes_things") {
        return;
    }
    for width in [1280, 380] {
        let site = Site::start();
        let directory = tempfile::tempdir().unwrap();
        let mut browser = Browser::start(directory.path(), |spawn| spawn);
        browser.open(&format!("http://{}/", site.server.address()), width);
        look(&mut browser);
        change(&mut browser, &site);
        keyboard(&mut browser);
        assert_eq!(browser.value("document.title"), "Parshall");
        assert_eq!(browser.value("document.images.length"), 0);
        browser.assert_no_errors();
    }
}

fn look(browser: &mut Browser) {
    // Two samples make a line; names of the router are text, whatever they are.
    browser.wait_for("document.querySelectorAll('#chart-pps .js-line').length >= 4");
    wait_for_text(browser, "#interfaces", HOSTILE);
    wait_for_text(browser, "#warnings", HOSTILE);
    wait_for_text(browser, "#errors", "checksum");
    wait_for_text(browser, "#workers", "worker-0");
    let before = text_of(browser, "#interfaces");
    let moved = format!(
        "document.querySelector('#interfaces').innerText !== {}",
        serde_json::Value::from(before)
    );
    browser.wait_for(&moved);
    browser.assert_fits();
    browser.click("#tab-graph");
    browser.wait_for("document.querySelectorAll('#picture path.live').length >= 3");
    wait_for_text(browser, "#edges", "bad header");
    assert!(!text_of(browser, "#edges").contains("ip6-input"));
    browser.click("#all-edges");
    wait_for_text(browser, "#edges", "ip6-input");
    browser.assert_fits();
}

fn change(browser: &mut Browser, site: &Site) {
    browser.click("#tab-configuration");
    wait_for_text(browser, "#history", HOSTILE);
    browser.assert_fits();
    browser.click("#load");
    wait_for_text(browser, "#outcome", "this needs the token in");
    browser.enter("#token", &site.token());
    browser.click("#load");
    browser.wait_for("document.querySelector('#yaml').value === 'interfaces: {}\\n'");
    browser.enter("#yaml", "bogus: 1");
    browser.click("#plan");
    wait_for_text(browser, "#outcome", "`bogus` is not known here");
    browser.enter("#yaml", "interfaces: { e0: { mtu: 9000 } }");
    browser.click("#plan");
    wait_for_text(browser, "#outcome", "1 objects change in 1 steps");
    wait_for_text(browser, "#changes", "mtu: 1500 \u{2192} 9000");
    browser.assert_fits();
    site.fake.changes.lock().unwrap().clear();
    browser.enter("#comment", "more & larger");
    browser.click("#apply");
    wait_for_text(
        browser,
        "#outcome",
        "number 2 is in force; it is taken back unless you confirm it",
    );
    let asked = site.fake.changes.lock().unwrap().remove(0);
    assert_eq!(
        asked.text.as_deref(),
        Some("interfaces: { e0: { mtu: 9000 } }")
    );
    assert_eq!(
        (asked.confirm, asked.comment.as_deref()),
        (Some(60), Some("more & larger"))
    );
    wait_for_text(browser, "#countdown", "Taken back in 59 s");
    browser.click("#confirm");
    wait_for_text(browser, "#outcome", "confirmed");
    browser.wait_for("document.querySelector('#pending').hidden");
    browser.click("#confirmed");
    browser.click("#history button:last-of-type");
    wait_for_text(browser, "#outcome", "number 2 is in force");
    let asked = site.fake.changes.lock().unwrap().pop().unwrap();
    assert_eq!(
        (asked.command.join(" "), asked.confirm),
        ("rollback 1".to_owned(), None)
    );
}

fn keyboard(browser: &mut Browser) {
    browser.click("#tab-overview");
    browser.press("ArrowRight");
    browser.wait_for(
        "document.activeElement.id === 'tab-graph' && !document.querySelector('#graph').hidden",
    );
    browser.press("ArrowLeft");
    browser.wait_for("!document.querySelector('#overview').hidden");
}

#[test]
fn a_page_waits_for_its_router() {
    if skipped("a_page_waits_for_its_router") {
        return;
    }
    let mut site = Site::without_router();
    let directory = tempfile::tempdir().unwrap();
    let mut browser = Browser::start(directory.path(), |spawn| spawn);
    browser.open(&format!("http://{}/", site.server.address()), 380);
    wait_for_text(&mut browser, "#problem", "no router is running");
    site.start_router();
    browser.wait_for("document.querySelector('#problem').hidden");
    wait_for_text(&mut browser, "#interfaces", "e0");
    browser.assert_no_errors();
}
