//! The compiled stream compared with a slow implementation of its specification.

use proptest::prelude::*;

use super::*;
use crate::model::fields::Op;
use crate::model::share::Share;
use crate::model::stream::StreamRate;
use crate::model::units::Pps;

mod checksums;
mod sequences;
mod shares;

fn stream(packet: Vec<u8>, variables: Vec<Variable>, steps: Vec<Step>) -> Stream {
    Stream {
        variables,
        steps,
        random_seed: 7,
        ..Stream::new("s", packet, StreamRate::Packets(Pps(1.0)))
    }
}

fn variable(op: Op, size: u8, init: u64, min: u64, max: u64, step: u64) -> Variable {
    Variable {
        op,
        init,
        step,
        ..Variable::range("v", size, min, max)
    }
}

/// The `n`th packet, counted from 0, by definition: values by modular arithmetic, bytes one by one,
/// the checksum word by word.
fn oracle(stream: &Stream, n: u64) -> Vec<u8> {
    let n = if stream.cache > 0 {
        n % u64::from(stream.cache)
    } else {
        n
    };
    let mut frame = stream.packet.clone();
    while frame.len() < 60 {
        frame.push(0);
    }
    let values: Vec<u128> = oracle_values(stream, n);
    for step in &stream.steps {
        match *step {
            Step::Write {
                variable,
                offset,
                add,
                big_endian,
            } => {
                let size = usize::from(stream.variables[variable].size);
                let modulus = 1u128 << (8 * size);
                let value = (values[variable] as i128 + i128::from(add)).rem_euclid(modulus as i128)
                    as u128;
                for i in 0..size {
                    let shift = 8 * if big_endian { size - 1 - i } else { i };
                    frame[offset + i] = (value >> shift) as u8;
                }
            }
            Step::Checksum4 { offset } => {
                let words = (usize::from(frame[offset] & 15) * 2).max(10);
                frame[offset + 10] = 0;
                frame[offset + 11] = 0;
                let byte = |i: usize| frame.get(offset + i).map_or(0, |&b| u32::from(b));
                let mut total: u32 = (0..words)
                    .map(|w| byte(2 * w) * 256 + byte(2 * w + 1))
                    .sum();
                while total > 0xffff {
                    total = total % 0x10000 + total / 0x10000;
                }
                frame[offset + 10] = (!total >> 8) as u8;
                frame[offset + 11] = !total as u8;
            }
            _ => unreachable!("tested by hand"),
        }
    }
    frame
}

fn oracle_values(stream: &Stream, n: u64) -> Vec<u128> {
    let mut state = u128::from(stream.random_seed) * 514_229 % (1 << 32);
    let mut draw = move || {
        state = (state * 214_013 + 2_531_011) % (1 << 32);
        (state >> 16) % 0x8000
    };
    let mut values = Vec::new();
    for packet in 0..=n {
        values = stream
            .variables
            .iter()
            .map(|v| {
                let range = u128::from(v.max) - u128::from(v.min) + 1;
                let walked = u128::from(packet) * u128::from(v.step) % range;
                let from = u128::from(v.init - v.min);
                u128::from(v.min)
                    + match v.op {
                        Op::Inc => (from + walked) % range,
                        Op::Dec => (from + range - walked) % range,
                        Op::Random => {
                            let mut half = |bits: u32| {
                                if bits == 16 {
                                    draw()
                                } else {
                                    (draw() << 16) + draw()
                                }
                            };
                            let drawn = match v.size {
                                1 | 2 => half(16),
                                4 => half(32),
                                _ => (half(32) << 32) + half(32),
                            };
                            drawn % range
                        }
                    }
            })
            .collect();
    }
    values
}

fn any_variable() -> impl Strategy<Value = Variable> {
    let op = prop_oneof![Just(Op::Inc), Just(Op::Dec), Just(Op::Random)];
    (
        op,
        prop_oneof![Just(1u8), Just(2), Just(4), Just(8)],
        any::<u64>(),
        1..50u64,
        1..9u64,
        any::<u64>(),
    )
        .prop_map(|(op, size, min, steps, step, init)| {
            let top = if size == 8 {
                u64::MAX
            } else {
                (1 << (8 * size)) - 1
            };
            let count = (steps * step).min(top);
            let min = min % (top - (count - 1)).max(1);
            let max = min + (count - 1);
            let step = if count % step == 0 { step } else { 1 };
            variable(op, size, min + init % count, min, max, step)
        })
}

fn any_step(variables: usize) -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => (0..variables, 0..60usize, any::<i64>(), any::<bool>())
            .prop_map(|(variable, offset, add, big_endian)| Step::Write { variable, offset, add, big_endian }),
        3 => (0..variables, prop_oneof![Just(26usize), Just(30)], -9..9i64)
            .prop_map(|(variable, offset, add)| Step::Write { variable, offset, add, big_endian: true }),
        2 => prop_oneof![Just(14usize), 0..60usize].prop_map(|offset| Step::Checksum4 { offset }),
    ]
}

fn any_stream() -> impl Strategy<Value = Stream> {
    let packet = prop_oneof![Just(0x45u8), any::<u8>()].prop_flat_map(|first| {
        proptest::collection::vec(any::<u8>(), 14..90).prop_map(move |mut bytes| {
            if bytes.len() > 14 {
                bytes[14] = first;
            }
            bytes
        })
    });
    proptest::collection::vec(any_variable(), 1..4).prop_flat_map(move |variables| {
        let steps = proptest::collection::vec(any_step(variables.len()), 0..6);
        (
            packet.clone(),
            Just(variables),
            steps,
            prop_oneof![Just(0u32), 1..9u32],
        )
            .prop_map(|(packet, variables, steps, cache)| {
                let mut stream = stream(packet, variables, steps);
                stream.cache = cache;
                let fits: Vec<Step> = stream
                    .steps
                    .iter()
                    .copied()
                    .filter(|s| stream.contains(s))
                    .collect();
                stream.steps = fits;
                stream
            })
    })
}

proptest! {
    #[test]
    fn packets_are_as_specified(stream in any_stream()) {
        let mut fields = Fields::new(&stream, 0, 0);
        let mut out = [0u8; 128];
        for n in 0..40 {
            let len = fields.write(Nanos(0), &mut out);
            prop_assert_eq!(&out[..len], &oracle(&stream, n)[..], "packet {}", n);
        }
    }
}

/// The common kind of stream uses the prepared sum, so the property above covers it.
#[test]
fn addresses_take_the_prepared_sum() {
    let steps = vec![
        Step::Write {
            variable: 0,
            offset: 26,
            add: 0,
            big_endian: true,
        },
        Step::Checksum4 { offset: 14 },
    ];
    let mut packet = vec![0x11u8; 60];
    packet[14] = 0x45;
    let stream = stream(packet, vec![variable(Op::Inc, 4, 5, 5, 9, 1)], steps);
    let fields = Fields::new(&stream, 0, 0);
    assert!(matches!(
        fields.steps[1],
        Compiled::Delta { header: 14, .. }
    ));
}

#[test]
fn the_largest_range_wraps() {
    let steps = vec![Step::Write {
        variable: 0,
        offset: 0,
        add: 0,
        big_endian: true,
    }];
    for (op, init, second) in [(Op::Inc, u64::MAX, 0), (Op::Dec, 0, u64::MAX)] {
        let stream = stream(
            vec![0; 60],
            vec![variable(op, 8, init, 0, u64::MAX, 1)],
            steps.clone(),
        );
        let mut fields = Fields::new(&stream, 0, 0);
        let mut out = [0u8; 60];
        fields.write(Nanos(0), &mut out);
        assert_eq!(out[..8], init.to_be_bytes());
        fields.write(Nanos(0), &mut out);
        assert_eq!(out[..8], u64::to_be_bytes(second));
    }
}

#[test]
fn what_does_not_fit_is_left_out() {
    let steps = vec![
        Step::Write {
            variable: 0,
            offset: 57,
            add: 0,
            big_endian: true,
        },
        Step::Write {
            variable: 3,
            offset: 0,
            add: 0,
            big_endian: true,
        },
        Step::Write {
            variable: 0,
            offset: usize::MAX,
            add: 0,
            big_endian: true,
        },
        Step::Checksum4 { offset: 41 },
    ];
    let stream = stream(vec![9; 60], vec![variable(Op::Inc, 4, 0, 0, 9, 1)], steps);
    let mut out = [0u8; 60];
    assert_eq!(Fields::new(&stream, 0, 0).write(Nanos(0), &mut out), 60);
    assert_eq!(out, [9; 60]);
    assert_eq!(
        Fields::new(&stream, 0, 0).write(Nanos(0), &mut out[..59]),
        0,
        "a buffer that is too short"
    );
}
