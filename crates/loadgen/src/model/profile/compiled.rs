//! Reads compiled profiles: a list of T-Rex stream objects, as JSON or YAML.
//!
//! Unknown keys are ignored. What is known but not supported is refused, never sent differently.

use std::ops::RangeInclusive;

use base64::Engine;
use serde::Deserialize;
use serde_json::Value;

use wire::eth;

use super::chain::{Link, chain};
use super::raw::Name;
use super::{instructions, marks};
use crate::model::stream::{Macs, Mark, Mode, Stream, StreamRate};
use crate::model::units::{Bits, MAX_FRAME, Pps};

/// Most streams of a profile: more than any real one has, but few enough for a wrong file to fail
/// early.
const MAX_STREAMS: usize = 4096;

/// Range of a stream's rate, in any unit: the sum of all streams stays finite and above 0.
const RATES: RangeInclusive<f64> = 1e-6..=1e15;

/// Longest gap in microseconds: a year.
const MAX_GAP: f64 = 3.2e13;

#[derive(Deserialize)]
struct RawStream {
    name: Option<Name>,
    stream_id: Option<i64>,
    next: Option<Value>,
    #[serde(default = "nobody")]
    next_stream_id: i64,
    #[serde(default = "yes")]
    enabled: bool,
    #[serde(default = "yes")]
    self_start: bool,
    #[serde(default)]
    start_paused: bool,
    #[serde(default)]
    isg: f64,
    #[serde(default)]
    action_count: u32,
    #[serde(default = "nobody")]
    core_id: i64,
    random_seed: Option<u32>,
    #[serde(default)]
    flags: u32,
    mode: RawMode,
    packet: RawPacket,
    vm: Option<RawVm>,
    flow_stats: Option<RawFlowStats>,
}

fn yes() -> bool {
    true
}

fn nobody() -> i64 {
    -1
}

#[derive(Deserialize)]
struct RawMode {
    #[serde(rename = "type")]
    kind: String,
    rate: Option<RawRate>,
    total_pkts: Option<u64>,
    pkts_per_burst: Option<u64>,
    count: Option<u64>,
    #[serde(default)]
    ibg: f64,
}

#[derive(Deserialize)]
struct RawRate {
    #[serde(rename = "type")]
    kind: String,
    value: f64,
}

#[derive(Deserialize)]
struct RawPacket {
    binary: String,
}

#[derive(Deserialize)]
struct RawVm {
    #[serde(default)]
    instructions: Vec<Value>,
    cache: Option<u32>,
}

#[derive(Deserialize)]
struct RawFlowStats {
    #[serde(default)]
    enabled: bool,
    #[serde(default)]
    stream_id: u32,
    #[serde(default)]
    rule_type: String,
    #[serde(default)]
    vxlan: bool,
    #[serde(default)]
    ieee_1588: bool,
}

/// The enabled streams of the file.
pub(super) fn parse(raw: Value) -> Result<Vec<Stream>, String> {
    let Value::Array(raw) = raw else {
        return Err("not a JSON array of streams".to_owned());
    };
    if raw.len() > MAX_STREAMS {
        return Err(format!(
            "{} streams; at most {MAX_STREAMS} are supported",
            raw.len()
        ));
    }
    let (mut streams, mut links, mut off) = (Vec::new(), Vec::new(), Vec::new());
    for (i, value) in raw.into_iter().enumerate() {
        let raw: RawStream =
            serde_json::from_value(flat(value)).map_err(|e| format!("stream {i}: {e}"))?;
        let link = link(&raw).map_err(|why| format!("stream {i}: {why}"))?;
        if !raw.enabled {
            off.push(link);
            continue;
        }
        streams.push(stream(i, raw).map_err(|why| format!("stream {i}: {why}"))?);
        links.push(link);
    }
    chain(&mut streams, &links, &off)?;
    if !streams.iter().any(|s| s.self_start) {
        return Err("no stream that is enabled and starts by itself".to_owned());
    }
    marks::check(&streams)?;
    Ok(streams)
}

/// The console writes `{name, next, stream: {...}}`: the same with one level more.
fn flat(value: Value) -> Value {
    match value {
        Value::Object(mut outer) => match outer.remove("stream") {
            Some(Value::Object(mut inner)) => {
                outer.append(&mut inner);
                Value::Object(outer)
            }
            Some(other) => {
                outer.insert("stream".to_owned(), other);
                Value::Object(outer)
            }
            None => Value::Object(outer),
        },
        other => other,
    }
}

fn link(raw: &RawStream) -> Result<Link, String> {
    let next = match &raw.next {
        None | Some(Value::Null) => None,
        // Some writers use -1 for none.
        Some(Value::Number(n)) if n.as_i64() == Some(-1) => None,
        Some(value) => Some(
            Name::try_from(value.clone())
                .map_err(|why| format!("next {why}"))?
                .0,
        ),
    };
    Ok(Link {
        name: raw.name.as_ref().map(|name| name.0.clone()),
        id: raw.stream_id,
        next,
        next_id: raw.next_stream_id,
        core: raw.core_id,
    })
}

/// One stream, without its link to the next.
fn stream(index: usize, raw: RawStream) -> Result<Stream, String> {
    if raw.start_paused {
        return Err("start_paused is not supported: nothing would resume it".to_owned());
    }
    let name = raw
        .name
        .map_or_else(|| format!("stream {index}"), |name| name.0);
    let mut stream = Stream {
        mode: mode(&raw.mode)?,
        isg: gap("isg", raw.isg)?,
        self_start: raw.self_start,
        action_count: raw.action_count,
        dummy: raw.flags & 8 != 0,
        macs: Macs {
            keep_source: raw.flags & 1 != 0,
            keep_destination: raw.flags >> 1 & 3 == 1,
        },
        random_seed: raw.random_seed.unwrap_or(0),
        core: u32::try_from(raw.core_id).ok(),
        ..Stream::new(&name, packet(&raw.packet.binary)?, rate(raw.mode.rate)?)
    };
    if let Some(vm) = raw.vm {
        stream.cache = vm.cache.unwrap_or(0);
        instructions::add(&mut stream, vm.instructions)?;
    }
    stream.mark = raw.flow_stats.map_or(Ok(None), mark_of)?;
    Ok(stream)
}

fn mode(raw: &RawMode) -> Result<Mode, String> {
    let some = |name: &str, value: Option<u64>| match value {
        Some(0) => Err(format!("{name} is 0")),
        Some(value) => Ok(value),
        None => Err(format!("{name} is missing")),
    };
    match raw.kind.as_str() {
        "continuous" => Ok(Mode::Continuous),
        "single_burst" => Ok(Mode::SingleBurst {
            packets: some("total_pkts", raw.total_pkts)?,
        }),
        "multi_burst" => Ok(Mode::MultiBurst {
            packets: some("pkts_per_burst", raw.pkts_per_burst)?,
            bursts: some("count", raw.count)?,
            ibg: gap("ibg", raw.ibg)?,
        }),
        other => Err(format!(
            "mode `{other}` is not continuous, single_burst or multi_burst"
        )),
    }
}

fn gap(name: &str, value: f64) -> Result<f64, String> {
    if (0.0..=MAX_GAP).contains(&value) {
        Ok(value)
    } else {
        Err(format!(
            "{name} {value:e} is not a time in microseconds, from 0 to {MAX_GAP:e}"
        ))
    }
}

fn mark_of(raw: RawFlowStats) -> Result<Option<Mark>, String> {
    if !raw.enabled {
        return Ok(None);
    }
    let refused = |what: &str| Err(format!("flow_stats: {what} is not supported"));
    if raw.vxlan {
        return refused("vxlan");
    }
    if raw.ieee_1588 {
        return refused("ieee_1588");
    }
    let latency = match raw.rule_type.as_str() {
        "stats" => false,
        "latency" => true,
        other => return refused(&format!("rule_type `{other}`")),
    };
    Ok(Some(Mark {
        group: raw.stream_id,
        latency,
    }))
}

fn packet(binary: &str) -> Result<Vec<u8>, String> {
    let packet = base64::engine::general_purpose::STANDARD
        .decode(binary)
        .map_err(|e| format!("packet.binary: {e}"))?;
    match packet.len() {
        eth::LEN..=MAX_FRAME => Ok(packet),
        len => Err(format!(
            "a packet of {len} bytes is not between {} and {MAX_FRAME}",
            eth::LEN
        )),
    }
}

fn rate(raw: Option<RawRate>) -> Result<StreamRate, String> {
    let raw = raw.unwrap_or(RawRate {
        kind: "pps".to_owned(),
        value: 1.0,
    });
    let value = raw.value;
    if !RATES.contains(&value) {
        let (least, most) = RATES.into_inner();
        return Err(format!(
            "rate {value:e} is not between {least:e} and {most:e}"
        ));
    }
    match raw.kind.as_str() {
        "pps" => Ok(StreamRate::Packets(Pps(value))),
        "bps_L2" => Ok(StreamRate::L2(Bits(value))),
        "bps_L1" => Ok(StreamRate::L1(Bits(value))),
        "percentage" => Ok(StreamRate::Percent(value)),
        other => Err(format!(
            "rate type `{other}` is not pps, bps_L2, bps_L1 or percentage"
        )),
    }
}
