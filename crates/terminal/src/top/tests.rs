//! Screens of recorded looks, at 80 x 24 and 200 x 50.

use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use serde_json::{Value, json};
use watch::model::Snapshot;
use watch::sample::{InterfaceRates, LossRate, Sample, WorkerLoad};

use super::style::Style;
use super::table::Look;
use super::view::View;
use super::{draw, router, tester};

fn style() -> Style {
    Style {
        has_color: true,
        bars: &ratatui::symbols::bar::NINE_LEVELS,
        is_dumb: false,
    }
}

fn from<T: serde::de::DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).expect("as the router says it")
}

/// What a router with 40 interfaces said, `packets` after its start.
fn look(packets: u64) -> Look {
    let interface = |number: u64| {
        from(json!({
            "name": format!("interface-{number:02}"), "up": number != 3, "mtu": 1500, "mac": null,
            "host_of": null, "absent": (number == 3).then_some("no device eth3"),
            "rx_packets": packets + number, "rx_bytes": packets * 60, "tx_packets": packets,
            "tx_bytes": packets * 60, "drops": 7, "tx_errors": 0,
        }))
    };
    let now = Snapshot {
        interfaces: (0..40).map(interface).collect(),
        threads: vec![from(json!({
            "name": "vpp_wk_0", "alive": true, "loops": 10, "busy_loops": 5, "sleeps": 0,
        }))],
        workers: vec![from(json!({
            "name": "vpp_wk_0", "cpu": 2, "vector_rate": 90.0, "nodes": [
                {"name": "ip4-lookup", "calls": 9, "vectors": 900, "clocks": 17.0, "rate": {
                    "pps": 5.2e6, "vectors_per_call": 96.5, "cycles_per_packet": 17.25}},
                {"name": "ip4-input", "calls": 9, "vectors": 900, "clocks": 17.0, "rate": {
                    "pps": 5.3e6, "vectors_per_call": 96.5, "cycles_per_packet": null}},
            ],
        }))],
        errors: vec![
            from(
                json!({"count": 12, "node": "ip4-input", "severity": "error",
                        "reason": "ip4 header checksum is wrong"}),
            ),
            from(
                json!({"count": 4_000_000, "node": "ip4-lookup", "severity": "info",
                        "reason": "no route"}),
            ),
        ],
        warnings: vec!["a veth hands over unfinished checksums\nsecond line".into()],
        ..Snapshot::default()
    };
    let rates = |number: u32| InterfaceRates {
        name: format!("interface-{number:02}"),
        rx_pps: 1e6 * f64::from(number),
        tx_pps: 14_880_952.0,
        rx_bps: 480e6 * f64::from(number),
        tx_bps: 7_142_857_000.0,
        drop_pps: 12.0,
        tx_error_pps: 0.0,
    };
    let sample = Sample {
        time: 1.0,
        interfaces: (0..40).map(rates).collect(),
        workers: vec![WorkerLoad {
            name: "vpp_wk_0".into(),
            busy: 0.5,
            work: 0.375,
            rx_pps: 5.2e6,
            vectors_per_call: Some(96.5),
            cycles_per_packet: Some(118.6),
        }],
        errors: vec![LossRate {
            node: "ip4-lookup".into(),
            reason: "no route".into(),
            pps: 1500.0,
        }],
    };
    router::look(&now, Some(&sample))
}

fn view() -> View {
    let mut view = View::new("/run/parshall/api.sock".into(), router::TABLES);
    view.take(Ok(look(1_000_000)));
    view
}

fn screen(view: &mut View, width: u16, height: u16) -> String {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).expect("in memory");
    terminal
        .draw(|frame| draw::draw(frame, view, style()))
        .expect("in memory");
    terminal.backend().to_string()
}

fn press(view: &mut View, keys: &str) -> bool {
    keys.chars()
        .any(|key| view.key(KeyEvent::from(KeyCode::Char(key))))
}

fn assert_shows(screen: &str, all: &[&str]) {
    for text in all {
        assert!(screen.contains(text), "no {text:?} in\n{screen}");
    }
}

/// The line of a screen that has this in it.
fn line<'s>(screen: &'s str, text: &str) -> &'s str {
    let found = screen.lines().find(|line| line.contains(text));
    found.unwrap_or_else(|| panic!("no {text:?} in\n{screen}"))
}

#[test]
fn a_small_screen_has_all_that_matters() {
    let mut view = view();
    let shown = screen(&mut view, 80, 24);
    assert_shows(
        &shown,
        &[
            "/run/parshall/api.sock",
            "1 Interfaces  2 Drops  3 Workers  4 Nodes",
            "interface        state   rx pps  tx pps  rx L2  tx L2  rx L1  tx L1  drop/s",
            "1 warning (`parshall show warnings`): a veth",
            "? help",
        ],
    );
    let row = line(&shown, "interface-02");
    assert_shows(
        row,
        &[
            "up", "2.00M", "14.9M", "960M", "7.14G", "1.34G", "10.0G", "12",
        ],
    );
    assert_shows(line(&shown, "interface-03"), &["absent"]);
    press(&mut view, "2");
    let shown = screen(&mut view, 80, 24);
    assert_shows(
        line(&shown, " info "),
        &["1.50k", "4000000", "info", "ip4-lookup"],
    );
    assert_shows(&shown, &["ip4 header checksum is wrong"]);
    press(&mut view, "3");
    let shown = screen(&mut view, 80, 24);
    assert_shows(
        line(&shown, "50.0%"),
        &["vpp_wk_0", "37.5%", "5.20M", "96.5", "119"],
    );
    press(&mut view, "4");
    let shown = screen(&mut view, 80, 24);
    assert_shows(line(&shown, "17.2"), &["ip4-lookup", "5.20M", "96.5"]);
    assert_shows(line(&shown, "vpp_wk_0     ip4-input"), &["5.30M", " - "]);
}

#[test]
fn a_large_screen_has_more() {
    let mut view = view();
    for _ in 0..30 {
        view.take(Ok(look(1_000_000)));
    }
    let shown = screen(&mut view, 200, 50);
    assert_shows(
        line(&shown, "interface-30"),
        &["1000030", "30.0M", "1000000"],
    );
    assert_shows(&shown, &["no device eth3", "tx err/s", "█"]);
    // Every size is drawn, whatever of it fits.
    for width in [1, 20, 40, 79, 81, 120] {
        for height in [1, 3, 8, 25, 36] {
            screen(&mut view, width, height);
        }
    }
}

#[test]
fn rows_are_sorted_by_a_column_and_chosen() {
    let mut view = view();
    let first = |view: &View| view.rows()[0].key.clone();
    press(&mut view, "sss");
    assert_eq!(first(&view), "interface-39", "by rx pps");
    assert_shows(&screen(&mut view, 80, 24), &["rx pps*"]);
    press(&mut view, "S");
    assert_eq!(first(&view), "interface-00");
    view.key(KeyEvent::from(KeyCode::End));
    let shown = screen(&mut view, 80, 24);
    assert_shows(
        &shown,
        &[
            "interface-39",
            "graphs: interface-39",
            "rx pps        max 39.0M",
        ],
    );
    assert!(!shown.contains("interface-05"), "{shown}");
    for _ in 0..router::TABLES[0].columns.len() - 2 {
        press(&mut view, "s");
    }
    assert_eq!(view.places[0].sort, None);
    // Rows go, and the choice with them.
    view.take(Ok(Look {
        rows: vec![Vec::new(); 4],
        ..Look::default()
    }));
    screen(&mut view, 80, 24);
    view.key(KeyEvent::from(KeyCode::Down));
}

#[test]
fn counts_begin_at_the_baseline_and_a_pause_holds_the_screen() {
    let mut view = view();
    press(&mut view, "c");
    view.take(Ok(look(1_000_250)));
    let shown = screen(&mut view, 200, 50);
    assert_shows(line(&shown, "interface-07"), &[" 250 "]);
    assert_shows(&shown, &["counts of the last 0 s"]);
    press(&mut view, "p");
    view.take(Ok(look(1_000_777)));
    let shown = screen(&mut view, 200, 50);
    assert_shows(&shown, &["PAUSED"]);
    assert_shows(line(&shown, "interface-07"), &[" 250 "]);
    press(&mut view, "p");
    assert_shows(
        line(&screen(&mut view, 200, 50), "interface-07"),
        &[" 777 "],
    );
    // The router was started anew: it has counted less than the baseline.
    view.take(Ok(look(40)));
    assert_shows(line(&screen(&mut view, 200, 50), "interface-07"), &[" 47 "]);
}

#[test]
fn a_router_that_is_gone_is_said_and_comes_back() {
    let mut view = view();
    view.take(Err("no router is running".into()));
    let shown = screen(&mut view, 80, 24);
    assert_shows(&shown, &["no router is running", "interface-00"]);
    view.take(Ok(look(5)));
    assert!(!screen(&mut view, 80, 24).contains("no router"));
}

#[test]
fn keys_leave_and_help() {
    let mut view = view();
    assert!(!press(&mut view, "?"));
    assert_shows(
        &screen(&mut view, 80, 24),
        &["`parshall clear` clears the router's"],
    );
    assert!(!press(&mut view, "x"));
    assert!(!screen(&mut view, 80, 24).contains("`parshall clear`"));
    assert!(press(&mut view, "q"));
    let end = KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL);
    assert!(view.key(end));
    view.key(KeyEvent::from(KeyCode::BackTab));
    assert_eq!(view.table, 3);
    press(&mut view, "9");
    view.key(KeyEvent::from(KeyCode::Tab));
    assert_eq!(view.table, 0);
}

#[test]
fn a_tester_has_ports_streams_and_latency() {
    let status = json!({"state": "TX", "owner": "ann"});
    let counts = json!({"opackets": 5000, "ipackets": 4999, "m_total_tx_pps": 1000.0,
        "m_total_rx_pps": 999.0, "m_total_tx_bps": 512_000.0, "m_total_rx_bps": 511_000.0});
    let info = json!({"description": "memif:@a"});
    let streams = json!({"profiles": {"_": {
        "10": {"name": "big", "flow_stats": {"enabled": true, "stream_id": 7}},
        "2": {"flow_stats": {"enabled": false, "stream_id": 1}},
    }}});
    let flows = json!({"7": {"tp": {"0": 300}, "rp": {"1": 299}, "tps": {"0": 60.0},
        "rps": {"1": 59.0}, "tbs": {"0": 100.0}, "rbs": {"1": 100.0}}});
    let latency = json!({"9": {"lat": {"average": 12.5, "total_min": 3.0, "total_max": 90.0,
        "jit": 1.5, "histogram": {}}, "er": {"drp": 2, "ooo": 1, "dup": 0}},
        "g": {"old_flow": 0}});
    let rows = vec![
        tester::ports_of(&[info], &[status], &[counts]),
        tester::streams(&[streams], &flows),
        tester::latencies(&latency),
    ];
    let mut view = View::new("127.0.0.1:4501".into(), tester::TABLES);
    view.take(Ok(Look {
        rows,
        ..Look::default()
    }));
    let shown = screen(&mut view, 80, 24);
    // 512 kbit/s, and 1000 times 20 bytes.
    assert_shows(
        line(&shown, "ann"),
        &["TX", "1.00k", "999", "512k", "511k", "672k"],
    );
    press(&mut view, "2");
    let shown = screen(&mut view, 80, 24);
    assert_shows(line(&shown, "big"), &["10", "7", "60", "59", "300", "299"]);
    let keys: Vec<_> = view.rows().into_iter().map(|row| row.key).collect();
    assert_eq!(keys, ["port 0, stream 2", "port 0, stream 10"]);
    press(&mut view, "3");
    let shown = screen(&mut view, 80, 24);
    assert_shows(
        line(&shown, "12.5         3"),
        &["9", "3", "90", "1.50", "2", "1", "0"],
    );
}
