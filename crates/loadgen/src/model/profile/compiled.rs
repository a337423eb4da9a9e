//! Reads compiled profiles: a JSON array of T-Rex stream objects.
//!
//! Unknown keys are ignored. What is known but not supported is refused, never sent differently.

use std::ops::RangeInclusive;

use base64::Engine;
use serde::Deserialize;
use serde_json::Value;

use wire::eth;

use crate::model::stream::{MAX_VARIABLES, Macs, Op, Step, Stream, StreamRate, Variable};
use crate::model::units::{Bits, MAX_FRAME, Pps};

/// Most streams of a profile: more than any real one has, but few enough for a wrong file to fail
/// early.
const MAX_STREAMS: usize = 4096;

/// Range of a stream's rate, in any unit: the sum of all streams stays finite and above 0.
const RATES: RangeInclusive<f64> = 1e-6..=1e15;

#[derive(Deserialize)]
struct RawStream {
    name: Option<String>,
    #[serde(default = "yes")]
    enabled: bool,
    #[serde(default = "yes")]
    self_start: bool,
    #[serde(default)]
    start_paused: bool,
    #[serde(default)]
    isg: f64,
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

#[derive(Deserialize)]
struct RawMode {
    #[serde(rename = "type")]
    kind: String,
    rate: Option<RawRate>,
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
}

#[derive(Deserialize)]
struct RawVariable {
    name: String,
    size: u8,
    op: String,
    init_value: Option<u64>,
    min_value: Option<u64>,
    max_value: Option<u64>,
    value_list: Option<Value>,
    #[serde(default = "one")]
    step: u64,
    next_var: Option<Value>,
}

fn one() -> u64 {
    1
}

#[derive(Deserialize)]
struct RawWrite {
    name: String,
    pkt_offset: usize,
    #[serde(default)]
    add_value: i64,
    #[serde(default = "yes")]
    is_big_endian: bool,
}

#[derive(Deserialize)]
struct RawChecksum {
    pkt_offset: usize,
}

/// The streams of the file that start by themselves.
pub(super) fn parse(text: &str) -> Result<Vec<Stream>, String> {
    let raw: Vec<Value> =
        serde_json::from_str(text).map_err(|e| format!("not a JSON array of streams: {e}"))?;
    if raw.len() > MAX_STREAMS {
        return Err(format!(
            "{} streams; at most {MAX_STREAMS} are supported",
            raw.len()
        ));
    }
    let mut streams = Vec::new();
    for (i, value) in raw.into_iter().enumerate() {
        streams.extend(stream(i, value).map_err(|why| format!("stream {i}: {why}"))?);
    }
    if streams.is_empty() {
        return Err("no stream that is enabled and starts by itself".to_owned());
    }
    Ok(streams)
}

/// One stream; None if it never sends.
fn stream(index: usize, value: Value) -> Result<Option<Stream>, String> {
    let raw: RawStream = serde_json::from_value(value).map_err(|e| e.to_string())?;
    if !raw.enabled {
        return Ok(None);
    }
    continuous(&raw.mode.kind)?;
    if !raw.self_start {
        // Only the end of a burst starts another stream, and there are no bursts.
        return Ok(None);
    }
    supported(&raw)?;
    let mut stream = Stream {
        name: raw.name.unwrap_or_else(|| format!("stream {index}")),
        packet: packet(&raw.packet.binary)?,
        rate: rate(raw.mode.rate)?,
        isg: raw.isg,
        macs: Macs {
            keep_source: raw.flags & 1 != 0,
            keep_destination: raw.flags >> 1 & 3 == 1,
        },
        variables: Vec::new(),
        steps: Vec::new(),
        random_seed: raw.random_seed.unwrap_or(0),
        cache: 0,
    };
    if let Some(vm) = raw.vm {
        stream.cache = vm.cache.unwrap_or(0);
        for (i, value) in vm.instructions.into_iter().enumerate() {
            let kind = value
                .get("type")
                .and_then(Value::as_str)
                .unwrap_or("no type")
                .to_owned();
            instruction(&mut stream, &kind, value)
                .map_err(|why| format!("instruction {i} ({kind}): {why}"))?;
        }
    }
    Ok(Some(stream))
}

/// Refuses modes other than continuous.
fn continuous(mode: &str) -> Result<(), String> {
    match mode {
        "continuous" => Ok(()),
        "single_burst" | "multi_burst" => unsupported(&format!("mode {mode}")),
        other => Err(format!(
            "mode `{other}` is not continuous, single_burst or multi_burst"
        )),
    }
}

/// Refuses a stream that would have to be sent differently.
fn supported(raw: &RawStream) -> Result<(), String> {
    if raw.start_paused {
        return unsupported("start_paused");
    }
    if raw.flags & 8 != 0 {
        return unsupported("a dummy stream (flags bit 3)");
    }
    if raw.flow_stats.as_ref().is_some_and(|f| f.enabled) {
        return unsupported("flow_stats");
    }
    if !(raw.isg.is_finite() && raw.isg >= 0.0) {
        return Err(format!("isg {} is not a time in microseconds", raw.isg));
    }
    Ok(())
}

fn unsupported(what: &str) -> Result<(), String> {
    Err(format!("{what} is not supported yet"))
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

fn instruction(stream: &mut Stream, kind: &str, value: Value) -> Result<(), String> {
    let step = match kind {
        "flow_var" => return define(stream, value),
        "write_flow_var" => {
            let raw: RawWrite = serde_json::from_value(value).map_err(|e| e.to_string())?;
            let variable = stream.variables.iter().position(|v| v.name == raw.name);
            let variable = variable
                .ok_or_else(|| format!("no variable `{}` is defined before it", raw.name))?;
            Step::Write {
                variable,
                offset: raw.pkt_offset,
                add: raw.add_value,
                big_endian: raw.is_big_endian,
            }
        }
        "fix_checksum_ipv4" => {
            let raw: RawChecksum = serde_json::from_value(value).map_err(|e| e.to_string())?;
            Step::Checksum4 {
                offset: raw.pkt_offset,
            }
        }
        "flow_var_rand_limit"
        | "tuple_flow_var"
        | "write_mask_flow_var"
        | "trim_pkt_size"
        | "fix_checksum_hw"
        | "fix_checksum_icmpv6" => {
            return Err("not supported yet".to_owned());
        }
        _ => return Err("not an instruction".to_owned()),
    };
    if !stream.contains(&step) {
        return Err(format!(
            "reaches beyond the frame's {} bytes",
            stream.frame_len()
        ));
    }
    stream.steps.push(step);
    Ok(())
}

/// Adds a variable to the stream.
fn define(stream: &mut Stream, value: Value) -> Result<(), String> {
    let variable = variable(serde_json::from_value(value).map_err(|e| e.to_string())?)?;
    if stream.variables.iter().any(|v| v.name == variable.name) {
        return Err(format!("variable `{}` is defined twice", variable.name));
    }
    if stream.variables.len() == MAX_VARIABLES {
        return Err(format!("more than {MAX_VARIABLES} variables"));
    }
    stream.variables.push(variable);
    Ok(())
}

fn variable(raw: RawVariable) -> Result<Variable, String> {
    let op = match raw.op.as_str() {
        "inc" => Op::Inc,
        "dec" => Op::Dec,
        "random" => Op::Random,
        other => return Err(format!("op `{other}` is not inc, dec or random")),
    };
    if raw.value_list.is_some_and(|v| !v.is_null()) {
        return Err("value_list is not supported yet".to_owned());
    }
    if raw.next_var.is_some_and(|v| !v.is_null()) {
        return Err("next_var is not supported yet".to_owned());
    }
    let top = match raw.size {
        1 | 2 | 4 => (1u64 << (8 * raw.size)) - 1,
        8 => u64::MAX,
        other => return Err(format!("size {other} is not 1, 2, 4 or 8")),
    };
    let min = raw.min_value.ok_or("min_value is missing")?;
    let max = raw.max_value.ok_or("max_value is missing")?;
    let init = raw.init_value.unwrap_or(min);
    if min > max || max > top || !(min..=max).contains(&init) {
        return Err(format!(
            "min {min}, init {init}, max {max} are not in this order within {} bytes",
            raw.size
        ));
    }
    if raw.step == 0 {
        return Err("step is 0".to_owned());
    }
    let (min, max) = match op {
        Op::Random => (min, max),
        Op::Inc | Op::Dec => whole_steps(op, min, max, raw.step, top)
            .ok_or_else(|| format!("min {min} to max {max} is not a whole number of steps of {} and cannot be extended to one within {} bytes", raw.step, raw.size))?,
    };
    Ok(Variable {
        name: raw.name,
        size: raw.size,
        op,
        init,
        min,
        max,
        step: raw.step,
    })
}

/// Extends the range to a whole number of steps: upwards for inc, downwards for dec.
fn whole_steps(op: Op, min: u64, max: u64, step: u64, top: u64) -> Option<(u64, u64)> {
    let missing = step - 1 - (max - min) % step;
    match op {
        Op::Dec => Some((min.checked_sub(missing)?, max)),
        _ => Some((min, max.checked_add(missing).filter(|&m| m <= top)?)),
    }
}
