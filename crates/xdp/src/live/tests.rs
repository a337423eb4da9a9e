use std::time::Duration;

use testbed::veth::{self, End};
use testbed::{Netns, patience, until};

use super::*;
use crate::Sink;

/// Runs of one batch each: the schedule is kept over hundreds of their ends.
#[test]
fn a_run_that_ends_loses_nothing() {
    if !testbed::root("a_run_that_ends_loses_nothing") {
        return;
    }
    let _alone = testbed::alone();
    let [here, there] = ["run-here", "run-there"].map(|name| Netns::create(name).expect("makes"));
    let end = |netns, name, mac| End {
        netns,
        name,
        mac,
        address: None,
    };
    let near = end(&here, "near", "02:00:00:00:00:01");
    let far = end(&there, "far", "02:00:00:00:00:02");
    veth::pair(near, far, 1500).expect("makes a pair");
    let sink = there.inside(|| Sink::attach(index(&there, "far"), &[], 0).expect("attaches"));
    let received = || sink.other().expect("counts");
    // What waits for its time in the schedule may wait longer where all is slow.
    let slowness = patience(Duration::from_secs(1)).as_secs() as u32;
    let plan = || LivePlan {
        ifindex: index(&here, "near"),
        streams: vec![LiveStream {
            // Of an experimental type, which nobody answers.
            frame: vec![2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 0x88, 0xb5],
            weight: 1,
            vars: Vec::new(),
            ip4_checksum_at: None,
            mark_at: None,
        }],
        packets: None,
        epoch: 0,
        burst: patience(Duration::from_millis(200)),
    };
    let totals = here.inside(|| {
        let ways = Live::with_runs_of(64, &[plan()], None).expect("opens");
        let live = &ways[0];
        live.start(Rate::Pps(20_000 / slowness)).expect("starts");
        let limit = patience(Duration::from_secs(60));
        assert!(until(limit, || live.due() >= 20_000), "{}", live.due());
        live.stop().expect("stops")
    });
    let sent = totals.sent[0].packets;
    assert_eq!((totals.shortfall, totals.due), (0, sent), "{totals:?}");
    until(patience(Duration::from_secs(10)), || received() >= sent);
    assert_eq!(received(), sent);
}

fn index(netns: &Netns, name: &str) -> u32 {
    let line = netns
        .ip(&format!("-o link show dev {name}"))
        .expect("is there");
    let (index, _) = line.split_once(':').expect("begins with the index");
    index.parse().expect("is a number")
}
