//! Reads the instructions of a compiled profile's field engine.

use serde::de::DeserializeOwned;
use serde_json::Value;

use wire::eth::{self, MIN_FRAME};
use wire::{ip, ip4};

use super::raw::{
    Name, RawLayers, RawMask, RawName, RawOffset, RawRandom, RawTuple, RawVariable, RawWrite,
};
use crate::model::fields::{MAX_VARIABLES, Op, Step, Variable};
use crate::model::stream::Stream;

/// `l4_type` of UDP and TCP.
const L4_UDP: u32 = 11;
const L4_TCP: u32 = 13;

fn read<T: DeserializeOwned>(value: Value) -> Result<T, String> {
    serde_json::from_value(value).map_err(|e| e.to_string())
}

/// Adds `instructions` to the stream.
///
/// # Errors
/// The instruction, and what is wrong with it.
pub(super) fn add(stream: &mut Stream, instructions: Vec<Value>) -> Result<(), String> {
    // The names of the variables that depend on others, by these.
    let mut nexts = Vec::new();
    for (i, value) in instructions.into_iter().enumerate() {
        let kind = value
            .get("type")
            .and_then(Value::as_str)
            .unwrap_or("no type")
            .to_owned();
        instruction(stream, &kind, value, &mut nexts)
            .map_err(|why| format!("instruction {i} ({kind}): {why}"))?;
    }
    for (variable, next) in nexts {
        link(stream, variable, &next)
            .map_err(|why| format!("variable `{}`: {why}", stream.variables[variable].name))?;
    }
    Ok(())
}

fn instruction(
    stream: &mut Stream,
    kind: &str,
    value: Value,
    nexts: &mut Vec<(usize, String)>,
) -> Result<(), String> {
    let step = match kind {
        "flow_var" => {
            let mut raw: RawVariable = read(value)?;
            let next = raw.next_var.take();
            nexts.extend(next.map(|Name(next)| (stream.variables.len(), next)));
            let is_shared = raw.split_to_cores;
            let variable = variable(raw)?;
            return define(
                stream,
                Variable {
                    is_shared,
                    ..variable
                },
            );
        }
        "flow_var_rand_limit" => {
            let mut raw: RawRandom = read(value)?;
            let next = raw.next_var.take();
            nexts.extend(next.map(|Name(next)| (stream.variables.len(), next)));
            return define(stream, random(raw)?);
        }
        "tuple_flow_var" => return tuple(stream, read(value)?),
        "trim_pkt_size" => trim(stream, &read(value)?)?,
        "write_flow_var" => {
            let raw: RawWrite = read(value)?;
            Step::Write {
                variable: find(stream, &raw.name.0)?,
                offset: raw.pkt_offset,
                add: raw.add_value,
                big_endian: raw.is_big_endian,
            }
        }
        "write_mask_flow_var" => mask(stream, &read(value)?)?,
        "fix_checksum_ipv4" => {
            let raw: RawOffset = read(value)?;
            Step::Checksum4 {
                offset: raw.pkt_offset,
            }
        }
        "fix_checksum_hw" => transport(stream, &read(value)?)?,
        "fix_checksum_icmpv6" => {
            let raw: RawLayers = read(value)?;
            Step::ChecksumIcmp6 {
                network: raw.l2_len,
                transport: raw.l2_len.saturating_add(raw.l3_len),
            }
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

fn find(stream: &Stream, name: &str) -> Result<usize, String> {
    let place = stream.variables.iter().position(|v| v.name == name);
    place.ok_or_else(|| format!("no variable `{name}` is defined before it"))
}

/// Adds a variable to the stream.
fn define(stream: &mut Stream, variable: Variable) -> Result<(), String> {
    if stream.variables.iter().any(|v| v.name == variable.name) {
        return Err(format!("variable `{}` is defined twice", variable.name));
    }
    if stream.variables.len() == MAX_VARIABLES {
        return Err(format!("more than {MAX_VARIABLES} variables"));
    }
    stream.variables.push(variable);
    Ok(())
}

/// The largest number of `size` bytes.
fn top(size: u8) -> Result<u64, String> {
    match size {
        1 | 2 | 4 => Ok((1u64 << (8 * size)) - 1),
        8 => Ok(u64::MAX),
        other => Err(format!("size {other} is not 1, 2, 4 or 8")),
    }
}

fn variable(raw: RawVariable) -> Result<Variable, String> {
    let op = match raw.op.as_str() {
        "inc" => Op::Inc,
        "dec" => Op::Dec,
        "random" => Op::Random,
        other => return Err(format!("op `{other}` is not inc, dec or random")),
    };
    let top = top(raw.size)?;
    if raw.step == 0 {
        return Err("step is 0".to_owned());
    }
    if let Some(list) = raw.value_list {
        return listed(&raw.name.0, raw.size, op, raw.step, list, top);
    }
    let min = raw.min_value.ok_or("min_value is missing")?;
    let max = raw.max_value.ok_or("max_value is missing")?;
    let init = raw.init_value.unwrap_or(min);
    if min > max || max > top || !(min..=max).contains(&init) {
        return Err(format!(
            "min {min}, init {init}, max {max} are not in this order within {} bytes",
            raw.size
        ));
    }
    let (min, max) = match op {
        Op::Random => (min, max),
        Op::Inc | Op::Dec => whole_steps(op, min, max, raw.step, top)
            .ok_or_else(|| format!("min {min} to max {max} is not a whole number of steps of {} and cannot be extended to one within {} bytes", raw.step, raw.size))?,
    };
    Ok(Variable {
        op,
        init,
        step: raw.step,
        ..Variable::range(&raw.name.0, raw.size, min, max)
    })
}

/// A variable that takes the values of a list.
fn listed(
    name: &str,
    size: u8,
    op: Op,
    step: u64,
    list: Vec<u64>,
    top: u64,
) -> Result<Variable, String> {
    let last = list.len().checked_sub(1).ok_or("value_list is empty")? as u64;
    if let Some(value) = list.iter().find(|v| **v > top) {
        return Err(format!("value {value} does not fit into {size} bytes"));
    }
    Ok(Variable {
        op,
        init: if op == Op::Dec { last } else { 0 },
        step,
        list,
        ..Variable::range(name, size, 0, last)
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

fn random(raw: RawRandom) -> Result<Variable, String> {
    let (min, max) = (raw.min_value, raw.max_value);
    if raw.limit == 0 {
        return Err("limit is 0, after which no value is left".to_owned());
    }
    if min > max || max > top(raw.size)? {
        return Err(format!(
            "min {min} and max {max} are not in this order within {} bytes",
            raw.size
        ));
    }
    Ok(Variable {
        op: Op::Random,
        limit: raw.limit,
        seed: Some(raw.seed.unwrap_or(0)),
        is_shared: raw.split_to_cores,
        ..Variable::range(&raw.name.0, raw.size, min, max)
    })
}

/// Addresses and ports of clients: an address for each packet; the port steps when all have had
/// their turn.
fn tuple(stream: &mut Stream, raw: RawTuple) -> Result<(), String> {
    /// Lowest port of an unlimited number of flows.
    const LOWEST: u16 = 1025;
    let is_unlimited = raw.flags & 1 != 0;
    let (ports, limit) = if is_unlimited {
        ((LOWEST, u16::MAX), 0)
    } else {
        ((raw.port_min, raw.port_max), raw.limit_flows)
    };
    if raw.ip_min > raw.ip_max || ports.0 > ports.1 {
        return Err("a range whose end is before its start".to_owned());
    }
    let (ip, port) = (format!("{}.ip", raw.name.0), format!("{}.port", raw.name.0));
    let next = Some(stream.variables.len() + 1);
    define(
        stream,
        Variable {
            limit,
            next,
            ..Variable::range(&ip, 4, raw.ip_min.into(), raw.ip_max.into())
        },
    )?;
    define(
        stream,
        Variable::range(&port, 2, ports.0.into(), ports.1.into()),
    )
}

fn mask(stream: &Stream, raw: &RawMask) -> Result<Step, String> {
    let size = raw.pkt_cast_size;
    if !matches!(size, 1 | 2 | 4) {
        return Err(format!("pkt_cast_size {size} is not 1, 2 or 4"));
    }
    Ok(Step::WriteMasked {
        variable: find(stream, &raw.name.0)?,
        offset: raw.pkt_offset,
        size,
        mask: raw.mask,
        shift: raw.shift,
        add: raw.add_value,
        big_endian: raw.is_big_endian,
    })
}

/// Keeps the variable within the lengths that the frame can have.
fn trim(stream: &mut Stream, raw: &RawName) -> Result<Step, String> {
    let longest = stream.frame_len() as u64;
    let index = find(stream, &raw.name.0)?;
    let variable = &mut stream.variables[index];
    if variable.size != 2 {
        return Err(format!("variable `{}` is not of size 2", raw.name.0));
    }
    let lengths = MIN_FRAME as u64..=longest;
    if let Some(len) = variable.list.iter().find(|len| !lengths.contains(len)) {
        return Err(format!(
            "length {len} is not between {MIN_FRAME} and the frame's {longest} bytes"
        ));
    }
    if variable.list.is_empty() {
        if variable.min > longest {
            return Err(format!(
                "length {} is more than the frame's {longest} bytes",
                variable.min
            ));
        }
        variable.max = variable.max.clamp(*lengths.start(), longest);
        variable.min = variable.min.clamp(*lengths.start(), longest);
        variable.init = variable.init.clamp(variable.min, variable.max);
    }
    Ok(Step::Trim { variable: index })
}

/// As T-Rex does, takes the protocol from an IPv4 packet, and from the instruction otherwise.
fn transport(stream: &Stream, raw: &RawLayers) -> Result<Step, String> {
    let is_ip_only = !matches!(raw.l4_type, L4_UDP | L4_TCP);
    if raw.l2_len < eth::LEN {
        return Err(format!("l2_len {} is less than {}", raw.l2_len, eth::LEN));
    }
    if !is_ip_only && raw.l3_len < ip4::LEN {
        return Err(format!("l3_len {} is less than {}", raw.l3_len, ip4::LEN));
    }
    let frame = stream.frame();
    let header = frame
        .get(raw.l2_len..)
        .filter(|h| h.len() >= ip4::LEN)
        .ok_or("no IP packet at l2_len")?;
    let asked = match raw.l4_type {
        L4_UDP => Some(ip::UDP),
        L4_TCP => Some(ip::TCP),
        _ => None,
    };
    let (protocol, l3_len) = match header[0] >> 4 {
        4 => {
            let protocol = header[ip4::at::PROTO];
            let len = usize::from(header[0] & 0xf) * 4;
            if !is_ip_only && len != raw.l3_len {
                return Err(format!(
                    "the IPv4 header has {len} bytes, not l3_len {}",
                    raw.l3_len
                ));
            }
            let summed = matches!(protocol, ip::TCP | ip::UDP);
            (summed.then_some(protocol), len)
        }
        6 if asked.is_some() => (asked, raw.l3_len),
        6 => return Err("an IPv6 packet needs l4_type 11 (UDP) or 13 (TCP)".to_owned()),
        _ => return Err("no IP packet at l2_len".to_owned()),
    };
    Ok(Step::ChecksumTransport {
        network: raw.l2_len,
        transport: raw.l2_len.saturating_add(l3_len),
        protocol,
    })
}

/// Lets `next` depend on `variable`.
fn link(stream: &mut Stream, variable: usize, next: &str) -> Result<(), String> {
    let place = stream
        .variables
        .iter()
        .position(|v| v.name == next)
        .ok_or_else(|| format!("next_var `{next}`: no such variable"))?;
    if stream.variables.iter().any(|v| v.next == Some(place)) {
        return Err(format!(
            "next_var `{next}` depends on another variable already"
        ));
    }
    let mut end = Some(place);
    while let Some(at) = end {
        if at == variable {
            return Err(format!("next_var `{next}` leads back to it"));
        }
        end = stream.variables[at].next;
    }
    stream.variables[variable].next = Some(place);
    Ok(())
}
