//! Metrics, and the dashboard that uses them.

use std::collections::BTreeSet;
use std::time::Duration;

use testbed::{patience, until};

use crate::http::get;
use crate::loadtest;
use crate::router::Site;

/// The metrics of a router that answers, while a load test runs.
fn metrics() -> String {
    let site = Site::start();
    let at = site.server.address();
    loadtest::start(&site);
    let up = || get(at, "/metrics").body.contains("parshall_up 1");
    assert!(until(patience(Duration::from_secs(20)), up));
    let answer = get(at, "/metrics");
    assert!(
        answer
            .head
            .contains("content-type: application/openmetrics-text; version=1.0.0")
    );
    answer.body
}

#[test]
fn counters_have_their_labels() {
    let text = metrics();
    for line in [
        "parshall_interface_up{interface=\"e0\"} 1",
        "parshall_interface_receive_packets_total{interface=\"e0\"} ",
        "parshall_interface_dropped_packets_total{interface=\"e0\"} 0",
        "parshall_worker_busy_rounds_total{worker=\"worker-0\"} 50",
        "parshall_flows{worker=\"worker-0\"} 7",
        "parshall_flows_room{worker=\"worker-0\"} 1000",
        "parshall_flows_embryonic{worker=\"worker-0\"} 2",
        "parshall_flows_begun_total{worker=\"worker-0\"} 20",
        "parshall_flows_refused_total{worker=\"worker-0\"} 3",
        "parshall_flows_displaced_total{worker=\"worker-0\"} 4",
        "parshall_flows_expired_total{worker=\"worker-0\"} 9",
        "parshall_bridge_stations{bridge_domain=\"bd10\"} 12",
        "parshall_bridge_flooded_broadcast_packets_total{bridge_domain=\"bd10\"} 31",
        "parshall_bridge_flooded_multicast_packets_total{bridge_domain=\"bd10\"} 32",
        "parshall_bridge_flooded_unknown_packets_total{bridge_domain=\"bd10\"} 33",
        "parshall_bridge_moves_total{bridge_domain=\"bd10\"} 34",
        "parshall_bridge_not_learned_total{bridge_domain=\"bd10\"} 35",
        "parshall_bridge_learns_lost_total{bridge_domain=\"bd10\"} 36",
        "parshall_node_cycles_total{worker=\"worker-0\",node=\"ip4-input\"} 1245",
        "parshall_errors_total{node=\"ip4-input\",reason=\"ip4 header \\\"checksum\\\" is\\nwrong\",severity=\"error\"} 5",
        "parshall_build{version=\"0.1.0\",build=\"debug\",kernel=\"6.18\"} 1",
    ] {
        assert!(
            text.lines().any(|known| known.starts_with(line)),
            "{line}:\n{text}"
        );
    }
    // What is not counted has no line: packets of a loopback, cycles behind a first stage.
    assert!(!text.contains("packets_total{interface=\"loop0\"}"));
    assert!(!text.contains("cycles_total{worker=\"worker-0\",node=\"ip4-lookup\"}"));
    assert!(text.ends_with("# EOF\n"));
}

/// The metrics that a text names.
fn names(text: &str) -> BTreeSet<&str> {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    words.filter(|word| word.starts_with("parshall_")).collect()
}

#[test]
fn the_dashboard_asks_for_what_there_is() {
    let dashboard = include_str!("../../../../dist/grafana-dashboard.json");
    let parsed: serde_json::Value = serde_json::from_str(dashboard).unwrap();
    assert!(parsed["panels"].as_array().unwrap().len() >= 6);
    let text = metrics();
    let (used, there) = (names(dashboard), names(&text));
    assert!(used.len() >= 8, "{used:?}");
    let missing: Vec<_> = used.difference(&there).collect();
    assert!(missing.is_empty(), "{missing:?}");
}
