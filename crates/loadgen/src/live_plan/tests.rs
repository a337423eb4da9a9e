use proptest::prelude::*;

use super::*;
use crate::model::profile::{self, Tunables, Way, with_latency};
use crate::model::stream::StreamRate;
use crate::source::mark;

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
    let plan = plan(&rated.collect::<Vec<_>>(), &[], 4096).unwrap();
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
    /// Checks that single bits, where they can be written at all, take the values that they take in
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
            let mut software = Fields::new(&stream, SEED, 0);
            let mut frame = [0; 60];
            for value in values(live.fields[0], 50) {
                software.write(Nanos(0), &mut frame);
                let written = u16::from_be_bytes([frame[20], frame[21]]);
                prop_assert_eq!(u32::from(written), value);
            }
        }
    }
}

/// A variable of `size` bytes that is written with `add` to it.
fn sum(variable: Variable, add: i64) -> Stream {
    Stream {
        variables: vec![variable],
        steps: vec![Step::Write {
            variable: 0,
            offset: 20,
            add,
            big_endian: true,
        }],
        ..Stream::new("s", vec![0; 60], StreamRate::Packets(Pps(1.0)))
    }
}

proptest! {
    /// Checks that a variable, whatever is added to it, is written as in software, or by software;
    /// the range that is written is one of the field.
    #[test]
    fn sums_are_written_as_in_software(
        is_inc: bool, size in proptest::sample::select(vec![1u8, 2, 4]), is_whole: bool,
        min in 0u64..20, more in 0u64..20, init: u64, step in 1u64..30,
        near in proptest::sample::select(vec![0i64, 1 << 8, 1 << 16, 1 << 32]), off in -45i64..25,
    ) {
        let op = if is_inc { Op::Inc } else { Op::Dec };
        let top = (1u64 << (8 * size)) - 1;
        let (min, max) = if is_whole { (0, top) } else { (min, min + more) };
        let init = min + init % (max - min + 1);
        let add = near + off;
        let variable = Variable { op, init, step, ..Variable::range("v", size, min, max) };
        let stream = sum(variable, add);
        let written = |value: u64| (i128::from(value) + i128::from(add)) & i128::from(top);
        let fits = is_whole || written(min) <= written(max);
        let live = live_stream(&stream, 1, 0);
        prop_assert_eq!(live.is_ok(), fits);
        if let Ok(live) = live {
            let field = live.fields[0];
            prop_assert!(field.init >= field.min && field.init <= field.max);
            prop_assert!(u64::from(field.max) <= top);
            prop_assert!(field.step - 1 <= field.max - field.min);
            let mut software = Fields::new(&stream, SEED, 0);
            let mut frame = [0; 60];
            for value in values(field, 300) {
                software.write(Nanos(0), &mut frame);
                let bytes = &frame[20..20 + usize::from(size)];
                let written = bytes.iter().fold(0, |all, byte| all << 8 | u32::from(*byte));
                prop_assert_eq!(written, value);
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
    for (base, number) in [(None, [0xfc, 0]), (Some(0x1234), [0x12, 0x34])] {
        let mut streams = streams("bench", "size=imix,flow=fs");
        if let Some(base) = base {
            mark::begin_at(base, &mut streams).unwrap();
        }
        let rated: Vec<_> = streams.into_iter().map(|s| (s, Pps(1.0))).collect();
        let plan = plan(&rated, &[], 4096).unwrap();
        let marks = plan.streams.iter().map(|s| &s.frame[18..20]);
        assert_eq!(marks.collect::<Vec<_>>(), [number; 3]);
    }
}

#[test]
fn latency_is_measured_at_the_streams_own_rate() {
    let latency = streams("bench", "flow=fsl").remove(0);
    let of = |streams: &[&Stream]| {
        let rated: Vec<_> = streams.iter().map(|s| ((*s).clone(), Pps(5.0))).collect();
        plan(&rated, &[], 4096)
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
        plan(&streams, &[], 4096).map(|plan| plan.packets)
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

#[test]
fn a_stream_that_begins_later_does_not_fit() {
    for (isg, fits) in [(0.2, true), (10.0, true), (1000.0, false), (1e7, false)] {
        for late in 0..2 {
            let stream = streams("bench", "").remove(0);
            let mut streams = vec![(stream, Pps(5.0)); 2];
            streams[late].0.isg = isg;
            let why = plan(&streams, &[], 4096).map(drop);
            let begins_later = Err("a stream that begins later".to_owned());
            assert_eq!(why, if fits { Ok(()) } else { begins_later });
        }
    }
}

/// Beside others, a stream that measures latency has its share of the one rate that is sent.
#[test]
fn latency_beside_others_is_measured_at_one_rate() {
    let streams = with_latency(streams("bench", ""), Pps(100.0)).unwrap();
    let rated: Vec<_> = streams.into_iter().zip([Pps(1.0), Pps(100.0)]).collect();
    let at = |rates: &[Pps]| {
        let plan = plan(&rated, rates, 4096)?;
        let weights: Vec<u32> = plan.streams.iter().map(|s| s.weight).collect();
        Ok::<_, String>((weights, plan.rate))
    };
    assert_eq!(
        at(&[Pps(12_800.0)]),
        Ok((vec![127, 1], Some(Pps(12_800.0))))
    );
    for rates in [
        &[][..],
        &[Pps(1e3), Pps(2e3)],
        &[Pps(100.0)],
        &[Pps::UNLIMITED],
    ] {
        let why = at(rates).unwrap_err();
        assert!(why.contains("beside others"), "{why}");
    }
}
