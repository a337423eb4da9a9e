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
use crate::model::fields::{Op, Step, Variable};
use crate::model::stream::{Mode, Stream};
use crate::model::units::Pps;
use crate::source::fields::Fields;
use crate::source::mark::{TRAILER, counters_of};

/// What the kernel's generator sends by one port.
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
    /// How many of its frames are sent, relative to the other streams; 1 or more.
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
    /// How it changes.
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

/// Seed of random variables whose profile asks for a different sequence every time. Any number will
/// do.
const ENTROPY: u32 = 1;

/// The plan for the streams of one port, addressed, each with its rate. The generator's order of
/// streams has to repeat after at most `longest_round` packets.
///
/// # Errors
/// A few words that say what the kernel's generator cannot do.
pub fn plan(streams: &[(Stream, Pps)], longest_round: u32) -> Result<LivePlan, String> {
    let rates: Vec<f64> = streams.iter().map(|(_, rate)| rate.0).collect();
    let weights = weights(&rates, longest_round)?;
    let packets = packets(streams, &weights)?;
    let own = streams.iter().filter(|(stream, _)| stream.is_fixed());
    let rate = match own.count() {
        0 => None,
        own if own == streams.len() => Some(Pps(rates.iter().sum())),
        _ => return Err("streams that measure latency at their own rate beside others".to_owned()),
    };
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
        let weights = ratios.iter().map(|(p, q)| p.checked_mul(parts / q));
        let weights = weights.collect::<Option<Vec<u32>>>()?;
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
    Fields::new(stream, ENTROPY, counter).write(Nanos(0), &mut frame);
    let (mut fields, mut ip4_checksum_at) = (Vec::new(), None);
    for step in stream.steps.iter().filter(|step| stream.contains(step)) {
        match (*step, ip4_checksum_at) {
            (Step::Write { .. } | Step::WriteMasked { .. }, Some(_)) => {
                return Err("a write after the checksum".to_owned());
            }
            (Step::Write { .. }, None) => fields.push(field(stream, step)?),
            (Step::WriteMasked { .. }, None) => fields.push(masked(stream, step, &frame)?),
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
    let mark_at = stream.is_fixed().then_some(trailer);
    let mark_at = mark_at.map(u16::try_from).transpose();
    Ok(LiveStream {
        mark_at: mark_at.map_err(|_| "a time too far into the frame")?,
        frame,
        weight,
        fields,
        ip4_checksum_at,
        seed: stream.seed(ENTROPY),
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
    let fitting = |value: u64| {
        let sum = i128::from(value) + i128::from(add);
        u32::try_from(sum).map_err(|_| "a variable of more than 32 bits")
    };
    let count = (v.max - v.min).saturating_add(1);
    let step = (v.step.max(1) - 1) % count + 1;
    Ok(LiveField {
        at: u16::try_from(offset).map_err(|_| "a variable too far into the frame")?,
        width: v.size,
        op: v.op,
        init: fitting(v.init.clamp(v.min, v.max))?,
        min: fitting(v.min)?,
        max: fitting(v.max)?,
        step: u32::try_from(step).map_err(|_| "a step of more than 32 bits")?,
    })
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
    let count = (v.max - v.min).saturating_add(1);
    let step = ((v.step.max(1) - 1) % count + 1) << shift;
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

/// Whether two of the fields have a byte in common.
fn overlap(fields: &[LiveField]) -> bool {
    let end = |field: &LiveField| field.at + u16::from(field.width);
    fields.iter().enumerate().any(|(i, a)| {
        let others = fields[..i].iter();
        others.into_iter().any(|b| a.at < end(b) && b.at < end(a))
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::model::profile::{self, Tunables, Way};
    use crate::model::stream::StreamRate;

    fn streams(name: &str, tunables: &str) -> Vec<Stream> {
        profile::open(name, Way::Out, &Tunables::parse(tunables).unwrap()).unwrap()
    }

    #[test]
    fn bench_fits() {
        let streams = streams("bench", "size=64,vm=var2");
        let live = live_stream(&streams[0], 1, 0).unwrap();
        assert_eq!(live.frame.len(), 60);
        assert_eq!(live.ip4_checksum_at, Some(14));
        let fields = live.fields.iter();
        let at: Vec<_> = fields.map(|f| (f.at, f.width, f.step)).collect();
        assert_eq!(at, [(26, 4, 1), (30, 4, 1)]);
        let first = live.fields[0];
        assert_eq!((first.min, first.max), (0x1000_0004, 0x1000_00fe));
    }

    #[test]
    fn streams_have_their_turns_by_their_rates() {
        let streams = streams("imix", "").into_iter();
        let rated = streams.map(|s| (s.clone(), s.rate.pps(s.size(), None).unwrap()));
        let plan = plan(&rated.collect::<Vec<_>>(), 4096).unwrap();
        let weights: Vec<u32> = plan.streams.iter().map(|s| s.weight).collect();
        assert_eq!(weights, [7, 4, 1]);
    }

    #[test]
    fn weights_are_whole() {
        let weights = |rates: &[f64]| weights(rates, 4096);
        assert_eq!(weights(&[28.0, 16.0, 4.0]).unwrap(), [7, 4, 1]);
        assert_eq!(weights(&[1.5, 1.0]).unwrap(), [3, 2]);
        assert_eq!(weights(&[7.0]).unwrap(), [1]);
        assert_eq!(weights(&[1e-3 / 3.0, 0.1]).unwrap(), [1, 300]);
        assert_eq!(weights(&[1999.0, 2003.0]).unwrap(), [1999, 2003]);
        assert_eq!(weights(&[133.7, 199.9, 40.1]).unwrap(), [1337, 1999, 401]);
        assert_eq!(weights(&[4096.0, 1.0]).unwrap(), [4096, 1]);
        assert!(weights(&[4097.0, 1.0]).is_err());
        assert!(weights(&[64.0 + 1.0 / 64.0, 65.0 + 1.0 / 63.0, 1.0]).is_err());
        assert!(weights(&[std::f64::consts::PI, 1.0]).is_err());
        assert!(weights(&[1.0, 1e10]).is_err());
        assert!(weights(&[1e-308, 1e308]).is_err());
        assert!(weights(&[f64::NAN, 1.0]).is_err());
        assert!(weights(&[0.0]).is_err());
        assert!(weights(&[]).is_err());
    }

    proptest! {
        /// Rates keep their proportion whatever they are scaled by, as are those given in bits a
        /// second.
        #[test]
        fn proportions_are_found_again(
            parts in proptest::collection::vec(1u32..=4096, 1..5), scale in 1e-9..1e9f64,
        ) {
            let rates: Vec<f64> = parts.iter().map(|part| f64::from(*part) * scale).collect();
            let common = parts.iter().copied().fold(0, greatest_common_divisor);
            let reduced: Vec<u32> = parts.iter().map(|part| part / common).collect();
            prop_assert_eq!(weights(&rates, 4096), Ok(reduced));
        }
    }

    #[test]
    fn what_does_not_fit_is_said() {
        let cached = streams("bench", "vm=cached").remove(0);
        assert_eq!(
            live_stream(&cached, 1, 0).unwrap_err(),
            "a cache of packets"
        );
        let mut little = streams("bench", "vm=var1").remove(0);
        for step in &mut little.steps {
            if let Step::Write { big_endian, .. } = step {
                *big_endian = false;
            }
        }
        let why = live_stream(&little, 1, 0).unwrap_err();
        assert_eq!(why, "a little-endian variable");
    }

    /// The values of a field in the order in which the kernel's generator writes them.
    fn values(field: LiveField, count: usize) -> Vec<u32> {
        let mut value = field.init;
        let next = |value: u32| match field.op {
            Op::Dec if value - field.min >= field.step => value - field.step,
            Op::Dec => field.max - (field.step - (value - field.min) - 1),
            _ if field.max - value >= field.step => value + field.step,
            _ => field.min + (field.step - (field.max - value) - 1),
        };
        let values = (0..count).map(|_| {
            let after = next(value);
            std::mem::replace(&mut value, after)
        });
        values.collect()
    }

    fn bits(variable: Variable, template: u16, mask: u32, shift: i8, add: i32) -> Stream {
        let mut packet = vec![0; 60];
        packet[20..22].copy_from_slice(&template.to_be_bytes());
        Stream {
            variables: vec![variable],
            steps: vec![Step::WriteMasked {
                variable: 0,
                offset: 20,
                size: 2,
                mask,
                shift,
                add,
                big_endian: true,
            }],
            ..Stream::new("s", packet, StreamRate::Packets(Pps(1.0)))
        }
    }

    proptest! {
        /// Where single bits can be written at all, they take the values that they take in
        /// software.
        #[test]
        fn bits_are_written_as_in_software(
            is_inc: bool, min in 0u64..20, more in 0u64..20, init in 0u64..20, step in 1u64..30,
            template: u16, mask in proptest::sample::select(vec![0xff, 0xf0, 0x3fc, 0xffff, 0x50]),
            shift in 0i8..6, add in -3i32..4,
        ) {
            let op = if is_inc { Op::Inc } else { Op::Dec };
            let init = min + init % (more + 1);
            let variable = Variable { op, init, step, ..Variable::range("v", 2, min, min + more) };
            let stream = bits(variable, template, mask, shift, add);
            if let Ok(live) = live_stream(&stream, 1, 0) {
                let mut software = Fields::new(&stream, ENTROPY, 0);
                let mut frame = [0; 60];
                for value in values(live.fields[0], 50) {
                    software.write(Nanos(0), &mut frame);
                    let written = u16::from_be_bytes([frame[20], frame[21]]);
                    prop_assert_eq!(u32::from(written), value);
                }
            }
        }
    }

    #[test]
    fn bits_that_fit_are_written() {
        let variable = || Variable::range("v", 2, 0, 7);
        let field = |mask, shift, add| {
            let stream = bits(variable(), 0xabcd, mask, shift, add);
            live_stream(&stream, 1, 0).map(|live| live.fields[0])
        };
        let of = field(0x0ff0, 4, 1).unwrap();
        assert_eq!((of.min, of.max, of.step), (0xa01d, 0xa09c, 16));
        assert_eq!(values(of, 9)[6..], [0xa07d, 0xa08d, 0xa01d]);
        for (mask, shift, add) in [(0x3, 0, 0), (0xff, 6, 0), (0xff, 0, -1), (0x5, 0, 0)] {
            let why = field(mask, shift, add).unwrap_err();
            assert!(why.contains("does not fit into the bits"), "{why}");
        }
        assert!(field(0xff, -1, 0).is_err());
    }

    #[test]
    fn a_mark_without_latency_is_part_of_the_frame() {
        let planned = |flow: &str| {
            let streams = streams("bench", &format!("size=imix,flow={flow}")).into_iter();
            let rated: Vec<_> = streams.map(|s| (s.clone(), Pps(1.0))).collect();
            plan(&rated, 4096)
        };
        let marks: Vec<Vec<u8>> = planned("fs")
            .unwrap()
            .streams
            .iter()
            .map(|s| s.frame[18..20].into())
            .collect();
        assert_eq!(marks, [[0xfc, 0], [0xfc, 0], [0xfc, 0]]);
    }

    #[test]
    fn latency_is_measured_at_the_streams_own_rate() {
        let latency = streams("bench", "flow=fsl").remove(0);
        let of = |streams: &[&Stream]| {
            let rated: Vec<_> = streams.iter().map(|s| ((*s).clone(), Pps(5.0))).collect();
            plan(&rated, 4096)
        };
        let alone = of(&[&latency]).unwrap();
        assert_eq!(
            (alone.rate, alone.streams[0].mark_at),
            (Some(Pps(5.0)), Some(44))
        );
        // Magic, run, counter, and the first sequence number.
        assert_eq!(
            alone.streams[0].frame[44..52],
            [0xab, 1, 0, 0, 0xfe, 0xff, 0xff, 0xff]
        );
        let plain = streams("bench", "").remove(0);
        assert_eq!(of(&[&plain]).unwrap().rate, None);
        let why = of(&[&latency, &plain]).unwrap_err();
        assert!(why.contains("beside others"), "{why}");
    }

    #[test]
    fn bursts_that_end_together_fit() {
        let mut streams: Vec<_> = streams("imix", "")
            .into_iter()
            .map(|s| {
                let rate = s.rate.pps(s.size(), None).unwrap();
                (s, rate)
            })
            .collect();
        let mut packets = |counts: [u64; 3]| {
            for ((stream, _), packets) in streams.iter_mut().zip(counts) {
                stream.mode = match packets {
                    0 => Mode::Continuous,
                    packets => Mode::SingleBurst { packets },
                };
            }
            plan(&streams, 4096).map(|plan| plan.packets)
        };
        assert_eq!(packets([0, 0, 0]), Ok(None));
        assert_eq!(packets([700, 400, 100]), Ok(Some(1200)));
        for counts in [[700, 400, 0], [701, 400, 100], [700, 400, 200]] {
            let why = packets(counts).unwrap_err();
            assert!(why.contains("bursts"), "{why}");
        }
    }

    #[test]
    fn a_step_of_the_whole_range_stays() {
        let mut stream = streams("bench", "vm=var1").remove(0);
        let mut step = |of: u64| {
            stream.variables[0].step = of;
            live_stream(&stream, 1, 0).unwrap().fields[0].step
        };
        assert_eq!((step(2 * 251), step(252)), (251, 1));
    }
}
