//! Compiles streams for the kernel's generator, which sends XDP live frames.
//!
//! That generator is simpler than [`crate::source::fields`]. It takes a frame, a few fields of up
//! to 32 bits that change from frame to frame, one IPv4 checksum computed after them, a weight for
//! each stream, and a number of packets for all of them. A profile that needs more does not fit and
//! has to be sent another way.
//!
//! The plan has types of its own, which the binary converts to those of crate `xdp` field by field.
//! Using the latter here would save those few lines, but make the load tester depend on the loader
//! of XDP programs.

use crate::clock::Nanos;
use crate::dry::SEED;
use crate::model::fields::{Op, Step, Variable};
use crate::model::stream::{Mode, Stream};
use crate::model::units::Pps;
use crate::source::fields::Fields;
use crate::source::mark::{TRAILER, counters_of};

/// Packets that the kernel's generator sends by one port.
#[derive(Debug, Clone, PartialEq)]
pub struct LivePlan {
    /// The streams.
    pub streams: Vec<LiveStream>,
    /// Packets of all streams together, after which it ends; None: no end.
    pub packets: Option<u64>,
    /// The rate of all streams together, if it is one that no rate of the port changes.
    pub rate: Option<Pps>,
}

/// A stream as the kernel's generator sends it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LiveStream {
    /// The first frame, padded to 60 bytes, without frame check sequence.
    pub frame: Vec<u8>,
    /// Number of its frames sent, relative to the other streams; 1 or more.
    pub weight: u32,
    /// The fields that change from frame to frame, applied in this order.
    pub fields: Vec<LiveField>,
    /// Offset of the IPv4 header whose checksum is computed after the fields have changed.
    pub ip4_checksum_at: Option<u16>,
    /// Offset of the trailer of packets that measure latency.
    pub mark_at: Option<u16>,
    /// Seed of the random field; there is at most one.
    pub seed: u32,
}

/// A field in network byte order that changes from frame to frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LiveField {
    /// Offset in the frame, in bytes.
    pub at: u16,
    /// Width in bytes.
    pub width: u8,
    /// Kind of change.
    pub op: Op,
    /// Value in the first frame, from `min` to `max`; ignored if random.
    pub init: u32,
    /// Smallest value.
    pub min: u32,
    /// Largest value.
    pub max: u32,
    /// Step from frame to frame, from 1 to `max - min + 1`; past one end the value wraps around to
    /// the other.
    pub step: u32,
}

/// Up to so many microseconds after the start a stream begins with it: the kernel sends live frames
/// 64 at a time, which takes as long.
const NO_WAIT: f64 = 10.0;

/// The plan for the streams of one port, addressed, each with its rate. They are to be sent at
/// `rates`, as far as known. The generator's order of streams has to repeat after at most
/// `longest_round` packets.
///
/// # Errors
/// A few words that say what the kernel's generator cannot do.
pub fn plan(
    streams: &[(Stream, Pps)],
    rates: &[Pps],
    longest_round: u32,
) -> Result<LivePlan, String> {
    let (rates, rate) = at_one_rate(streams, rates)?;
    let weights = weights(&rates, longest_round)?;
    let packets = packets(streams, &weights)?;
    if streams.iter().any(|(stream, _)| stream.isg > NO_WAIT) {
        return Err("a stream that begins later".to_owned());
    }
    let counters = counters_of(streams.iter().map(|(stream, _)| stream));
    let streams = streams.iter().zip(weights).zip(counters);
    let streams =
        streams.map(|(((stream, _), weight), counter)| live_stream(stream, weight, counter));
    Ok(LivePlan {
        streams: streams.collect::<Result<_, _>>()?,
        packets,
        rate,
    })
}

/// The rate of each stream, and that of all together if no rate of the port changes it. Streams that
/// keep their own rate may stand beside others if all is to be sent at one of `rates`: the weights
/// are those at that rate.
fn at_one_rate(
    streams: &[(Stream, Pps)],
    rates: &[Pps],
) -> Result<(Vec<f64>, Option<Pps>), String> {
    let own: Vec<f64> = streams.iter().map(|(_, rate)| rate.0).collect();
    let sum = |is_fixed| -> f64 {
        let these = streams.iter().filter(|(s, _)| s.is_fixed() == is_fixed);
        these.map(|(_, rate)| rate.0).sum()
    };
    let (fixed, others) = (sum(true), sum(false));
    match rates {
        _ if fixed == 0.0 => Ok((own, None)),
        _ if others == 0.0 => Ok((own, Some(Pps(fixed)))),
        [rate] if rate.is_limited() && rate.0 > fixed => {
            let scale = (rate.0 - fixed) / others;
            let scaled = streams.iter().map(|(stream, own)| match stream.is_fixed() {
                true => own.0,
                false => own.0 * scale,
            });
            Ok((scaled.collect(), Some(*rate)))
        }
        _ => Err("streams that measure latency at their own rate beside others".to_owned()),
    }
}

/// Packets of all streams together; None if they go on for ever. Bursts have to end together, as
/// the generator's order of streams goes on to the end.
fn packets(streams: &[(Stream, Pps)], weights: &[u32]) -> Result<Option<u64>, String> {
    let alone = |s: &Stream| s.self_start && s.next.is_none();
    let rounds = |(stream, weight): (&(Stream, Pps), &u32)| match stream.0.mode {
        Mode::Continuous if stream.0.self_start => Ok(None),
        Mode::SingleBurst { packets }
            if alone(&stream.0) && packets.is_multiple_of((*weight).into()) =>
        {
            Ok(Some(packets / u64::from(*weight)))
        }
        _ => Err("bursts that do not begin and end together".to_owned()),
    };
    let rounds: Vec<Option<u64>> = streams
        .iter()
        .zip(weights)
        .map(rounds)
        .collect::<Result<_, _>>()?;
    let first = rounds.first().copied().flatten();
    if rounds.iter().any(|rounds| *rounds != first) {
        return Err("bursts that do not begin and end together".to_owned());
    }
    let round: u64 = weights.iter().copied().map(u64::from).sum();
    Ok(first.map(|rounds| rounds.saturating_mul(round)))
}

/// The smallest whole numbers in the proportion of `rates`, none above `largest`.
fn weights(rates: &[f64], largest: u32) -> Result<Vec<u32>, String> {
    let least = rates.iter().copied().fold(f64::INFINITY, f64::min);
    if !(least > 0.0 && least.is_finite()) {
        return Err("a stream without a rate".to_owned());
    }
    let ratios = rates.iter().map(|rate| ratio(rate / least, largest));
    let weights = ratios.collect::<Option<Vec<_>>>().and_then(|ratios| {
        let parts = ratios.iter().try_fold(1, |parts, (_, q)| {
            let parts = parts / greatest_common_divisor(parts, *q) * q;
            (parts <= largest).then_some(parts)
        })?;
        let weights = ratios
            .iter()
            .map(|(p, q)| p.checked_mul(parts / q))
            .collect::<Option<Vec<u32>>>()?;
        weights.iter().all(|w| *w <= largest).then_some(weights)
    });
    weights.ok_or_else(|| {
        format!("rates of streams whose proportion repeats only after more than {largest} packets")
    })
}

/// `x`, which is 1 or more, as a fraction in lowest terms, of numbers up to `largest`: the first
/// convergent of its continued fraction within a relative distance of 10^-9.
///
/// That distance is larger than the rounding errors in `x`, and smaller than the distance between
/// two different fractions of numbers up to 4096 (1 / 4096^2). A fraction this close is always a
/// convergent (Legendre).
fn ratio(x: f64, largest: u32) -> Option<(u32, u32)> {
    let (mut now, mut before) = ((1, 0), (0, 1));
    let mut rest = x;
    while rest <= f64::from(largest) {
        let whole = rest as u64;
        (now, before) = ((whole * now.0 + before.0, whole * now.1 + before.1), now);
        let (p, q) = (u32::try_from(now.0).ok()?, u32::try_from(now.1).ok()?);
        if p > largest {
            return None;
        }
        if (x * f64::from(q) - f64::from(p)).abs() < 1e-9 * f64::from(p) {
            return Some((p, q));
        }
        rest = 1.0 / (rest - whole as f64);
    }
    None
}

fn greatest_common_divisor(a: u32, b: u32) -> u32 {
    match b {
        0 => a,
        _ => greatest_common_divisor(b, a % b),
    }
}

fn live_stream(stream: &Stream, weight: u32, counter: u16) -> Result<LiveStream, String> {
    plain(stream)?;
    let random = stream.variables.iter().filter(|v| v.op == Op::Random);
    if random.count() > 1 {
        return Err("several random variables in a stream".to_owned());
    }
    // The bytes that do not vary are those of the first packet.
    let mut frame = vec![0; stream.frame_len()];
    Fields::new(stream, SEED, counter).write(Nanos(0), &mut frame);
    let (mut fields, mut ip4_checksum_at) = (Vec::new(), None);
    for step in stream.steps.iter().filter(|step| stream.contains(step)) {
        match (*step, ip4_checksum_at) {
            (Step::Write { .. } | Step::WriteMasked { .. }, Some(_)) => {
                return Err("a write after the checksum".to_owned());
            }
            (Step::Write { .. }, None) => fields.push(field(stream, step)?),
            (Step::WriteMasked { .. }, None) => fields.push(masked(stream, step, &frame)?),
            (Step::Checksum4 { offset: 0 }, _) => {
                return Err("an IPv4 header at the first byte".to_owned());
            }
            (Step::Checksum4 { .. }, Some(_)) => return Err("two checksums".to_owned()),
            (Step::Checksum4 { offset }, None) => {
                let offset =
                    u16::try_from(offset).map_err(|_| "a header too far into the frame")?;
                ip4_checksum_at = Some(offset);
            }
            (Step::Trim { .. }, _) => return Err("frames of varying length".to_owned()),
            (Step::ChecksumTransport { .. } | Step::ChecksumIcmp6 { .. }, _) => {
                return Err("a checksum beyond the IPv4 header".to_owned());
            }
        }
    }
    let writes = |variable: usize| {
        let steps = stream.steps.iter();
        steps.filter(move |step| step.variable() == Some(variable))
    };
    if (0..stream.variables.len()).any(|variable| writes(variable).count() > 1) {
        return Err("a variable that is written twice".to_owned());
    }
    let masked = |step: &&Step| matches!(step, Step::WriteMasked { .. });
    if stream.steps.iter().any(|step| masked(&step)) && overlap(&fields) {
        return Err("a write of single bits of a field that changes otherwise".to_owned());
    }
    let trailer = frame.len().saturating_sub(TRAILER);
    let mark_at = stream
        .is_fixed()
        .then_some(trailer)
        .map(u16::try_from)
        .transpose();
    Ok(LiveStream {
        mark_at: mark_at.map_err(|_| "a time too far into the frame")?,
        frame,
        weight,
        fields,
        ip4_checksum_at,
        seed: stream.seed(SEED),
    })
}

/// Refuses streams that are not simple.
fn plain(stream: &Stream) -> Result<(), String> {
    let refused = |what: &str| Err(what.to_owned());
    let any = |of: fn(&Variable) -> bool| stream.variables.iter().any(of);
    if stream.dummy {
        refused("a dummy stream")
    } else if stream.cache > 0 {
        refused("a cache of packets")
    } else if any(|v| !v.list.is_empty()) {
        refused("a list of values")
    } else if any(|v| v.next.is_some()) {
        refused("a variable that depends on another")
    } else if any(|v| v.limit > 0 || v.seed.is_some()) {
        refused("a variable that starts again")
    } else {
        Ok(())
    }
}

fn field(stream: &Stream, step: &Step) -> Result<LiveField, String> {
    let Step::Write {
        variable,
        offset,
        add,
        big_endian,
    } = *step
    else {
        return Err("a step that writes nothing".to_owned());
    };
    let v = &stream.variables[variable];
    if !big_endian && v.size > 1 {
        return Err("a little-endian variable".to_owned());
    }
    if v.op == Op::Random && add != 0 {
        return Err("a random variable with a constant added".to_owned());
    }
    if v.size > 4 {
        return Err("a variable of more than 32 bits".to_owned());
    }
    // What is written is the sum modulo the field's width.
    let top = u32::MAX >> (32 - 8 * u32::from(v.size));
    let written = |value: u64| value.wrapping_add_signed(add) as u32 & top;
    let (min, max) = match (written(v.min), written(v.max)) {
        // All values there are: they go around at the field's ends in place of the variable's.
        _ if v.max - v.min == u64::from(top) => (0, top),
        (min, max) if min > max => return Err("a sum that leaves the field's width".to_owned()),
        range => range,
    };
    let step = step_of(v);
    Ok(LiveField {
        at: u16::try_from(offset).map_err(|_| "a variable too far into the frame")?,
        width: v.size,
        op: v.op,
        init: written(v.init.clamp(v.min, v.max)),
        min,
        max,
        step: u32::try_from(step).map_err(|_| "a step of more than 32 bits")?,
    })
}

/// The step of a variable, from 1 to the number of its values.
fn step_of(v: &Variable) -> u64 {
    let count = (v.max - v.min).saturating_add(1);
    (v.step.max(1) - 1) % count + 1
}

/// Some bits of a field, as a field of its own that the others are added to. That takes a variable
/// all of whose values fit into these bits.
fn masked(stream: &Stream, step: &Step, frame: &[u8]) -> Result<LiveField, String> {
    let Step::WriteMasked {
        variable,
        offset,
        size,
        mask,
        shift,
        add,
        big_endian,
    } = *step
    else {
        return Err("a step that writes no bits".to_owned());
    };
    let v = &stream.variables[variable];
    let random = v.op == Op::Random;
    if (!big_endian && size > 1)
        || !(0..32).contains(&shift)
        || (random && (shift > 0 || size != v.size))
    {
        return Err("a write of single bits of this kind".to_owned());
    }
    let bytes = &frame[offset..offset + usize::from(size)];
    let field = bytes
        .iter()
        .fold(0, |all, byte| all << 8 | u32::from(*byte));
    // The bits below those of the variable.
    let below = (1u32 << shift) - 1;
    let moved = |value: u64| {
        let sum = (i128::from(value) + i128::from(add)) << shift;
        let bits = u32::try_from(sum).ok();
        // No value of a variable has a bit above the highest one of its largest value.
        let fit = |bits: &u32| {
            u32::MAX.checked_shr(bits.leading_zeros()).unwrap_or(0) & !below & !mask == 0
        };
        bits.filter(fit)
            .map(|bits| (field & !mask) | bits)
            .ok_or("a variable that does not fit into the bits that are written")
    };
    let (init, min) = (moved(v.init.clamp(v.min, v.max))?, moved(v.min)?);
    // A step past the end wraps by the number of values up to `max`, so the bits below count.
    let top = u32::MAX >> (32 - 8 * u32::from(size));
    let max = moved(v.max)?.checked_add(below).filter(|max| *max <= top);
    let max = max.ok_or("a write of single bits at the top of a field")?;
    let step = step_of(v) << shift;
    Ok(LiveField {
        at: u16::try_from(offset).map_err(|_| "a variable too far into the frame")?,
        width: size,
        op: v.op,
        init,
        min,
        max,
        step: u32::try_from(step).map_err(|_| "a step of more than 32 bits")?,
    })
}

/// True if two of the fields have a byte in common.
fn overlap(fields: &[LiveField]) -> bool {
    let end = |field: &LiveField| field.at + u16::from(field.width);
    fields.iter().enumerate().any(|(i, a)| {
        let others = fields[..i].iter();
        others.into_iter().any(|b| a.at < end(b) && b.at < end(a))
    })
}

#[cfg(test)]
mod tests;
