//! Commands that are about the server.

use std::fs;
use std::time::{SystemTime, UNIX_EPOCH};

use loadgen::source::mark::COUNTERS;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::{Call, names};
use crate::rpc::Refusal;
use crate::state::State;

/// The version of T-Rex's stateless interface that is spoken here.
const API: (u32, u32) = (5, 1);

/// Seconds since 1970.
pub fn now() -> f64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0.0, |since| since.as_secs_f64())
}

pub fn ping(_: &mut State, _: &Call<'_>) -> Result<Value, Refusal> {
    Ok(json!({"ts": now()}))
}

#[derive(Deserialize)]
struct Sync {
    name: String,
    major: u32,
    minor: u32,
}

pub fn api_sync(state: &mut State, call: &Call<'_>) -> Result<Value, Refusal> {
    let Sync { name, major, minor } = call.read()?;
    let (ours, newest) = API;
    match name == "STL" && major == ours && minor <= newest {
        true => Ok(json!({"api_h": state.api_handler})),
        false => Err(Refusal::Failed(format!(
            "the client speaks {} {major}.{minor}; this server speaks STL {ours}.{newest}: use a \
             client of T-Rex for that, in stateless mode",
            name.chars().take(16).collect::<String>()
        ))),
    }
}

pub fn version(_: &mut State, _: &Call<'_>) -> Result<Value, Refusal> {
    Ok(json!({
        "version": concat!("v", env!("CARGO_PKG_VERSION")),
        "build_date": "",
        "build_time": "",
        "built_by": "parshall",
        "mode": "STL",
    }))
}

pub fn supported(_: &mut State, _: &Call<'_>) -> Result<Value, Refusal> {
    Ok(json!(names()))
}

pub fn system_info(state: &mut State, _: &Call<'_>) -> Result<Value, Refusal> {
    let ports: Vec<Value> = (0..state.ports.len())
        .map(|port| port_info(state, port))
        .collect();
    Ok(json!({
        "hostname": fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default().trim(),
        "uptime": format!("{} s", state.begun.elapsed().as_secs()),
        "dp_core_count": 1,
        "dp_core_count_per_port": 1,
        "core_type": "",
        "is_multiqueue_mode": false,
        "advanced_per_stream_stats": false,
        "port_count": ports.len(),
        "ports": ports,
    }))
}

fn port_info(state: &State, port: usize) -> Value {
    let facts = &state.ports[port].facts;
    json!({
        "index": port,
        "driver": facts.driver,
        "pci_addr": "N/A",
        "numa": -1,
        "hw_mac": facts.mac.to_string(),
        "stack": "none",
        "description": facts.description,
        "rx": {"caps": ["flow_stats", "latency"], "counters": COUNTERS},
        "is_fc_supported": false,
        "is_led_supported": false,
        "is_link_supported": false,
        "is_prom_supported": facts.takes_all,
        "is_vxlan_supported": false,
        "is_ieee1588_supported": false,
        "is_virtual": true,
        "supp_speeds": [],
        "cores": [0],
    })
}

pub fn publish_now(state: &mut State, _: &Call<'_>) -> Result<Value, Refusal> {
    state.sessions.wake();
    Ok(json!({}))
}

#[derive(Deserialize)]
struct Asks {
    session_id: u64,
}

pub fn events(state: &mut State, call: &Call<'_>) -> Result<Value, Refusal> {
    let Asks { session_id } = call.read()?;
    state.watch();
    Ok(json!({"data": state.sessions.fetch(session_id)}))
}

/// Nothing is ever captured; clients ask whether something is.
pub fn capture(_: &mut State, call: &Call<'_>) -> Result<Value, Refusal> {
    match call.params.get("command").and_then(Value::as_str) {
        Some("status") => Ok(json!([])),
        _ => Err(Refusal::Failed(
            "packets are not captured here; `tcpdump` does that on an interface".to_owned(),
        )),
    }
}

pub fn tpg_status(_: &mut State, _: &Call<'_>) -> Result<Value, Refusal> {
    let data = json!({
        "acquired_ports": [],
        "rx_ports": [],
        "username": "",
        "num_tpgids": 0,
        "num_tags": 0,
    });
    Ok(Value::Object(Map::from_iter([
        ("enabled".to_owned(), json!(false)),
        ("data".to_owned(), data),
    ])))
}
