//! Streams as clients write them.
#![allow(dead_code, reason = "not every test uses all of it")]

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use wire::craft::Packet;

/// A stream of UDP packets of 64 bytes at 1000 packets a second.
pub fn stream(mode: Value, flow_stats: Value) -> Value {
    let packet = Packet::udp((0x0a00_0001, 1025), (0x0a00_0002, 12));
    let frame = packet.frame_len(60).frame();
    let mut mode = mode;
    mode["rate"] = json!({"type": "pps", "value": 1000.0});
    json!({
        "enabled": true, "self_start": true, "start_paused": false, "isg": 0.0,
        "next_stream_id": -1, "action_count": 0, "random_seed": 0, "flags": 0, "core_id": -1,
        "mode": mode,
        "packet": {"binary": STANDARD.encode(frame.as_slice()), "meta": ""},
        "vm": {"instructions": []},
        "flow_stats": flow_stats,
    })
}

pub fn continuous() -> Value {
    stream(json!({"type": "continuous"}), json!({"enabled": false}))
}

pub fn burst(packets: u64) -> Value {
    let mode = json!({"type": "single_burst", "total_pkts": packets});
    stream(mode, json!({"enabled": false}))
}

/// Of a packet group; `rule` is `stats` or `latency`.
pub fn marked(group: u32, rule: &str) -> Value {
    let flow_stats = json!({"enabled": true, "stream_id": group, "rule_type": rule});
    stream(json!({"type": "continuous"}), flow_stats)
}
