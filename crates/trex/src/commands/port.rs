//! What a port is, and what can be set of it.

use std::str::FromStr;

use serde::Deserialize;
use serde_json::{Value, json};
use session::State as Activity;
use wire::eth::Mac;

use super::{Call, access};
use crate::rpc::Refusal;
use crate::state::{PROFILE, State};

pub fn status(state: &mut State, call: &Call<'_>) -> Result<Value, Refusal> {
    let number = call.port;
    let port = &state.ports[number];
    let activity = match state.activity(number) {
        Activity::Sending => "TX",
        Activity::Paused => "PAUSE",
        Activity::Idle | Activity::Ready if port.has_none() => "IDLE",
        Activity::Idle | Activity::Ready => "STREAMS",
    };
    let off = json!({"is_active": false});
    Ok(json!({
        "owner": access::name(state, number),
        "state": activity,
        "state_profile": {PROFILE: activity},
        "service": false,
        "service_filtered": false,
        "profile_count": 1,
        "max_stream_id": port.streams.keys().last().unwrap_or(&0),
        "attr": port.attributes(),
        "rx_info": {
            "latency": off,
            "queue": off,
            "stack": off,
            "grat_arp": off,
            "capture_port": off,
            "capwap_proxy": off,
        },
    }))
}

pub fn xstats_names(_: &mut State, _: &Call<'_>) -> Result<Value, Refusal> {
    Ok(json!({"xstats_names": []}))
}

pub fn xstats_values(_: &mut State, _: &Call<'_>) -> Result<Value, Refusal> {
    Ok(json!({"xstats_values": []}))
}

#[derive(Deserialize)]
struct Attributes {
    attr: serde_json::Map<String, Value>,
}

/// A port that takes all packets takes them in either mode; nothing else can be set.
pub fn set_attributes(state: &mut State, call: &Call<'_>) -> Result<Value, Refusal> {
    let Attributes { attr } = call.read()?;
    for (name, value) in &attr {
        let enabled = value.get("enabled").and_then(Value::as_bool);
        let Some(enabled) = enabled.filter(|_| ["promiscuous", "multicast"].contains(&&**name))
        else {
            return Err(Refusal::Failed(format!(
                "`{}` cannot be set by a client; `ip link` and `ethtool` set it",
                name.chars().take(32).collect::<String>()
            )));
        };
        if enabled && !state.ports[call.port].facts.takes_all {
            return Err(Refusal::Failed(format!(
                "{name} mode is the device's own; `ip link set NAME promisc on` or `allmulticast \
                 on` sets it"
            )));
        }
    }
    if !attr.is_empty() {
        state.tell_attributes(call.port);
    }
    Ok(json!({}))
}

#[derive(Deserialize)]
struct Destination {
    dst_mac: String,
}

pub fn set_l2(state: &mut State, call: &Call<'_>) -> Result<Value, Refusal> {
    let Destination { dst_mac } = call.read()?;
    let mac = Mac::from_str(&dst_mac)
        .map_err(|_| Refusal::Params("dst_mac: not an Ethernet address".to_owned()))?;
    if state.activity(call.port).runs() {
        return Err(session::Error::Running(call.port).into());
    }
    let port = &mut state.ports[call.port];
    port.destination = mac;
    port.set = None;
    state.tell_attributes(call.port);
    Ok(json!({}))
}

#[derive(Deserialize)]
struct Enabled {
    enabled: bool,
}

pub fn set_rx_feature(_: &mut State, call: &Call<'_>) -> Result<Value, Refusal> {
    stays_off(
        call,
        "what a port receives is counted, and cannot be fetched",
    )
}

pub fn service(_: &mut State, call: &Call<'_>) -> Result<Value, Refusal> {
    stays_off(
        call,
        "there is no service mode: the kernel answers ARP, ND and ping",
    )
}

fn stays_off(call: &Call<'_>, why: &str) -> Result<Value, Refusal> {
    match call.read()? {
        Enabled { enabled: false } => Ok(json!({})),
        Enabled { enabled: true } => Err(Refusal::Failed(why.to_owned())),
    }
}

/// There are none: a receiver knows the packets of streams by their marks.
pub fn remove_rx_filters(_: &mut State, _: &Call<'_>) -> Result<Value, Refusal> {
    Ok(json!({}))
}
