//! A server that runs for long. Alone in its process, whose memory it looks at.

mod client;
#[path = "client/rpc.rs"]
mod rpc;
#[path = "client/streams.rs"]
mod streams;

use serde_json::json;

use rpc::{Rpc, server};
use streams::marked;

/// Bytes of this process that are in memory.
fn resident() -> u64 {
    let statm = std::fs::read_to_string("/proc/self/statm").expect("proc");
    let pages = statm.split(' ').nth(1).expect("a field");
    pages.parse::<u64>().expect("a number") * 4096
}

/// Threads and descriptors of this process.
fn held() -> [usize; 2] {
    ["task", "fd"].map(|what| {
        let all = std::fs::read_dir(format!("/proc/self/{what}"));
        all.expect("proc").count()
    })
}

/// So many starts and stops leave nothing behind: no thread, no descriptor, no packet, no memory.
fn runs_leave_nothing(runs: u32) {
    let (server, pool) = server();
    let mut rpc = Rpc::with_ports(&server);
    let cycle = |rpc: &mut Rpc| {
        let stream = marked(7, "latency");
        let added = json!({"port_id": 0, "stream_id": 1, "stream": stream});
        rpc.call("add_stream", added);
        let mul = json!({"type": "raw", "op": "abs", "value": 1.0});
        rpc.call("start_traffic", json!({"port_id": 0, "mul": mul}));
        rpc.call("stop_traffic", json!({"port_id": 0}));
        rpc.call("remove_all_streams", json!({"port_id": 0}));
        rpc.events();
    };
    (0..100).for_each(|_| cycle(&mut rpc));
    let (before, held) = (resident(), held());
    (0..runs).for_each(|_| cycle(&mut rpc));
    let grown = resident().saturating_sub(before);
    println!("{runs} runs: {grown} bytes more");
    assert!(grown < 4 << 20, "{grown}");
    assert_eq!(self::held(), held);
    assert_eq!((rpc.state(0), rpc.events().len()), ("IDLE".into(), 0));
    drop(server);
    assert_eq!(pool.available(), pool.count(), "all packets are back");
}

#[test]
fn a_thousand_runs_leave_nothing() {
    runs_leave_nothing(1000);
}

#[test]
#[ignore = "takes 17 s: cargo test -p trex --test long -- --ignored"]
fn ten_thousand_runs_leave_nothing() {
    runs_leave_nothing(10_000);
}
