//! `parshall ui` beside a real router: counters move, and a change is made by clicks.

#[path = "../crates/web/tests/web/browser.rs"]
mod browser;

use std::time::Duration;

use crate::harness::topology::H1;
use crate::harness::{
    Directory, Netns, PARSHALL, Process, Raw, Router, Spawn, patience, skipped, until,
};
use browser::Browser;

/// Address of the page, in the router's namespace.
const ADDRESS: &str = "127.0.0.1:8411";

/// Starts the page and waits until it is there.
fn start(netns: &Netns, socket: &str) -> Process {
    let words = ["ui", "--socket", socket];
    let ui = Spawn::new(PARSHALL).args(words).inside(netns).start();
    let ui = ui.expect("the binary starts");
    let up = until(patience(), || ui.log().contains("page at http://"));
    assert!(up, "{}", ui.log());
    ui
}

/// Sends pings to the router's own address by the tap `t0-port` until this is dropped.
fn packets(netns: &Netns) {
    let port = Raw::open(netns, "t0-port", H1);
    let mut frame = [&[0xff; 6][..], &H1, &[8, 6, 0, 1, 8, 0, 6, 4, 0, 1], &H1].concat();
    frame.extend([&[10, 9, 1, 2][..], &[0; 6], &[10, 9, 1, 1]].concat());
    frame.resize(60, 0);
    for _ in 0..50 {
        port.send(&frame);
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_page_shows_and_changes_a_real_router() {
    if skipped(
        "a_page_shows_and_changes_a_real_router",
        &["ip", "chromium"],
    ) {
        return;
    }
    let netns = Netns::create("router").unwrap();
    let yaml = "interfaces:\n  t0: { lcp: t0, addresses: [ 10.9.1.1/24 ] }\nports:\n  t0: { tap: { name: t0-port } }\n";
    let mut router = Router::start(&netns, yaml);
    netns.ip("link set t0-port up").unwrap();
    let mut ui = start(&netns, &router.socket());
    let directory = Directory::new();
    let mut browser = Browser::start(directory.path(), |spawn| spawn.inside(&netns));
    browser.open(&format!("http://{ADDRESS}/"), 1280);
    browser.wait_for("document.querySelectorAll('#chart-pps .js-line').length >= 2");
    packets(&netns);
    let received = "fetch('/metrics').then(r => r.text()).then(t => Number(t.match(/parshall_interface_receive_packets_total.interface=.t0.. ([0-9]+)/)[1]) >= 50)";
    browser.wait_for(received);
    browser.wait_for("fetch('/api/v1/samples').then(r => r.json()).then(all => all.some(s => s.interfaces.some(i => i.name === 't0' && i.rx_pps > 5)))");
    browser.click("#tab-overview");
    browser.press("ArrowRight");
    browser.wait_for("document.querySelector('#edges').innerText.includes('ethernet-input')");

    browser.click("#tab-configuration");
    let token = format!("{}/ui-8411.token", parent(&router.socket()));
    let token = std::fs::read_to_string(token).expect("the token");
    browser.enter("#token", token.trim());
    browser.click("#load");
    browser.wait_for("document.querySelector('#yaml').value.includes('10.9.1.1/24')");
    browser.enter("#yaml", &yaml.replace("10.9.1.1", "10.9.2.1"));
    browser.click("#apply");
    browser.wait_for("document.querySelector('#countdown').innerText.includes('Taken back in')");
    assert!(
        netns
            .ip("address show dev t0")
            .unwrap()
            .contains("10.9.2.1/24")
    );
    browser.click("#confirm");
    browser.wait_for("document.querySelector('#pending').hidden");
    browser.click("#rollback");
    browser.wait_for("document.querySelector('#countdown').innerText.includes('Taken back in') && !document.querySelector('#pending').hidden");
    assert!(
        netns
            .ip("address show dev t0")
            .unwrap()
            .contains("10.9.1.1/24")
    );
    browser.click("#confirm");
    browser.wait_for("document.querySelector('#pending').hidden");

    browser.assert_fits();

    router.process.stop().expect("it ends");
    browser
        .wait_for("document.querySelector('#problem').innerText.includes('no router is running')");
    router.relaunch(&netns);
    router.wait();
    browser.wait_for("document.querySelector('#problem').hidden");
    browser.assert_no_errors();
    ui.stop().expect("it ends");
    let token = format!("{}/ui-8411.token", parent(&router.socket()));
    assert!(!std::path::Path::new(&token).exists(), "{}", ui.log());
}

/// What a click starts is the real load tester: its packets come back, and its report is drawn.
#[test]
fn a_page_runs_a_load_test() {
    if skipped("a_page_runs_a_load_test", &["chromium"]) {
        return;
    }
    let netns = Netns::create("tester").unwrap();
    let directory = Directory::new();
    let path = |name: &str| directory.path().join(name).display().to_string();
    let mut ui = start(&netns, &path("cli.sock"));
    let mut browser = Browser::start(directory.path(), |spawn| spawn.inside(&netns));
    browser.open(&format!("http://{ADDRESS}/"), 380);
    let token = std::fs::read_to_string(path("ui-8411.token")).expect("the token");
    browser.enter("#token", token.trim());
    browser.click("#tab-loadtest");
    let port = |role: &str| format!("memif:{},id=0,role={role}", path("line.sock"));
    for (field, text) in [
        ("#tx", &*port("server")),
        ("#rx", &port("client")),
        ("#src-mac", "02:00:00:00:00:02"),
        ("#dst-mac", "02:00:00:00:00:01"),
        ("#rate", "1kpps"),
        ("#warmup", "1s"),
        ("#ramp", "2s"),
        ("#hold", "600s"),
        ("#latency-rate", "100pps"),
    ] {
        browser.enter(field, text);
    }
    browser.click("#start");
    browser.wait_for("document.querySelectorAll('#chart-test .js-line').length >= 2");
    browser.wait_for("fetch('/metrics').then(r => r.text()).then(t => Number(t.match(/parshall_loadtest_received_packets_total.direction=.0.. ([0-9]+)/)[1]) >= 1000)");
    browser.click("#stop");
    browser.wait_for("document.querySelector('#test-state').innerText.includes('Ended well')");
    browser.wait_for("fetch('/api/v1/loadtest/result').then(r => r.json()).then(all => Object.keys(all.stats).length >= 2)");
    browser.assert_fits();
    browser.assert_no_errors();
    browser.open(&format!("http://{ADDRESS}/api/v1/loadtest/report"), 1280);
    browser.wait_for("document.querySelectorAll('.js-line').length >= 2");
    browser.assert_no_errors();
    ui.stop().expect("it ends");
}

/// The directory of a file.
fn parent(path: &str) -> &str {
    path.rsplit_once('/').expect("an absolute path").0
}
