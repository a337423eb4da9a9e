//! Compiles streams for the kernel's generator, which sends XDP live frames.
//!
//! That generator is simpler than [`crate::source::fields`]. It takes a frame, a few fields of up
//! to 32 bits that change from frame to frame, one IPv4 checksum computed after them, and a weight
//! for each stream. A profile that needs more does not fit and has to be sent another way.
//!
//! The plan has types of its own, which the binary converts to those of crate `xdp` field by field.
//! Using the latter here would save those few lines, but make the load tester depend on the loader
//! of XDP programs.

use crate::clock::Nanos;
use crate::model::fields::{Op, Step, Variable};
use crate::model::stream::{Mode, Stream};
use crate::model::units::Pps;
use crate::source::fields::Fields;

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
pub fn plan(streams: &[(Stream, Pps)], longest_round: u32) -> Result<Vec<LiveStream>, String> {
    let rates: Vec<f64> = streams.iter().map(|(_, rate)| rate.0).collect();
    let weights = weights(&rates, longest_round)?;
    let streams = streams.iter().zip(weights);
    streams
        .map(|((stream, _), weight)| live_stream(stream, weight))
        .collect()
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

fn live_stream(stream: &Stream, weight: u32) -> Result<LiveStream, String> {
    plain(stream)?;
    let random = stream.variables.iter().filter(|v| v.op == Op::Random);
    if random.count() > 1 {
        return Err("several random variables in a stream".to_owned());
    }
    // The bytes that do not vary are those of the first packet.
    let mut frame = vec![0; stream.frame_len()];
    Fields::new(stream, ENTROPY, 0).write(Nanos(0), &mut frame);
    let (mut fields, mut ip4_checksum_at) = (Vec::new(), None);
    for step in stream.steps.iter().filter(|step| stream.contains(step)) {
        match (*step, ip4_checksum_at) {
            (Step::Write { .. }, Some(_)) => return Err("a write after the checksum".to_owned()),
            (Step::Write { .. }, None) => fields.push(field(stream, step)?),
            (Step::Checksum4 { .. }, Some(_)) => return Err("two checksums".to_owned()),
            (Step::Checksum4 { offset }, None) => {
                let offset =
                    u16::try_from(offset).map_err(|_| "a header too far into the frame")?;
                ip4_checksum_at = Some(offset);
            }
            (Step::WriteMasked { .. }, _) => return Err("a write of single bits".to_owned()),
            (Step::Trim { .. }, _) => return Err("frames of varying length".to_owned()),
            (Step::ChecksumTransport { .. } | Step::ChecksumIcmp6 { .. }, _) => {
                return Err("a checksum beyond the IPv4 header".to_owned());
            }
        }
    }
    let writes = |variable: usize| {
        let steps = stream.steps.iter();
        steps.filter(move |s| matches!(s, Step::Write { variable: v, .. } if *v == variable))
    };
    if (0..stream.variables.len()).any(|variable| writes(variable).count() > 1) {
        return Err("a variable that is written twice".to_owned());
    }
    Ok(LiveStream {
        frame,
        weight,
        fields,
        ip4_checksum_at,
        seed: stream.seed(ENTROPY),
    })
}

/// Refuses what is not a simple continuous stream.
fn plain(stream: &Stream) -> Result<(), String> {
    let refused = |what: &str| Err(what.to_owned());
    let any = |of: fn(&Variable) -> bool| stream.variables.iter().any(of);
    if stream.mode != Mode::Continuous {
        refused("bursts")
    } else if stream.dummy {
        refused("a dummy stream")
    } else if stream.mark.is_some() {
        refused("flow statistics")
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::model::profile::{self, Tunables, Way};

    fn streams(name: &str, tunables: &str) -> Vec<Stream> {
        profile::open(name, Way::Out, &Tunables::parse(tunables).unwrap()).unwrap()
    }

    #[test]
    fn bench_fits() {
        let streams = streams("bench", "size=64,vm=var2");
        let live = live_stream(&streams[0], 1).unwrap();
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
        let weights: Vec<u32> = plan.iter().map(|s| s.weight).collect();
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
        assert_eq!(live_stream(&cached, 1).unwrap_err(), "a cache of packets");
        let mut little = streams("bench", "vm=var1").remove(0);
        for step in &mut little.steps {
            if let Step::Write { big_endian, .. } = step {
                *big_endian = false;
            }
        }
        let why = live_stream(&little, 1).unwrap_err();
        assert_eq!(why, "a little-endian variable");
    }

    #[test]
    fn a_step_of_the_whole_range_stays() {
        let mut stream = streams("bench", "vm=var1").remove(0);
        let mut step = |of: u64| {
            stream.variables[0].step = of;
            live_stream(&stream, 1).unwrap().fields[0].step
        };
        assert_eq!((step(2 * 251), step(252)), (251, 1));
    }
}
