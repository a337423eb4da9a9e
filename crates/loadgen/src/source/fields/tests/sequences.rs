//! Sequences of values, computed by hand.

use super::*;

/// The first values that variables of these definitions take, written side by side.
fn values(variables: &[Variable], count: usize) -> Vec<Vec<u64>> {
    values_of(Share::WHOLE, variables, count)
}

/// The same, of a core's share.
pub(super) fn values_of(share: Share, variables: &[Variable], count: usize) -> Vec<Vec<u64>> {
    let steps = (0..variables.len()).map(|variable| Step::Write {
        variable,
        offset: 8 * variable,
        add: 0,
        big_endian: false,
    });
    let stream = Stream {
        share: Some(share),
        ..stream(vec![0; 60], variables.to_vec(), steps.collect())
    };
    let mut fields = Fields::new(&stream, 0, 0);
    let mut out = [0; 60];
    let packets = (0..count).map(|_| {
        fields.write(Nanos(0), &mut out);
        let value = |i: usize| u64::from_le_bytes(out[8 * i..8 * i + 8].try_into().unwrap());
        (0..variables.len()).map(value).collect()
    });
    packets.collect()
}

fn one(variable: Variable, count: usize) -> Vec<u64> {
    values(&[variable], count).concat()
}

#[test]
fn inc_and_dec_wrap() {
    assert_eq!(
        one(variable(Op::Inc, 1, 254, 253, 255, 1), 5),
        [254, 255, 253, 254, 255]
    );
    assert_eq!(one(variable(Op::Dec, 1, 1, 0, 2, 1), 5), [1, 0, 2, 1, 0]);
    let top = 0xffff_ffff;
    assert_eq!(one(variable(Op::Inc, 4, top, 0, top, 1), 3), [top, 0, 1]);
    assert_eq!(
        one(variable(Op::Dec, 4, 0, 0, top, 1), 3),
        [0, top, top - 1]
    );
    let top = u64::MAX;
    assert_eq!(
        one(variable(Op::Inc, 8, top - 1, 0, top, 3), 3),
        [top - 1, 1, 4]
    );
    assert_eq!(
        one(variable(Op::Dec, 8, 1, 0, top, 3), 3),
        [1, top - 1, top - 4]
    );
}

/// From 8 with step 5 in 5..=14: 8, 13, then one step past 14, 4 beyond: 5 + (5 - 1 - 1) = 8.
#[test]
fn a_step_leads_over_the_end() {
    assert_eq!(one(variable(Op::Inc, 2, 8, 5, 14, 5), 4), [8, 13, 8, 13]);
    assert_eq!(
        one(variable(Op::Inc, 2, 6, 5, 15, 4), 5),
        [6, 10, 14, 7, 11]
    );
    assert_eq!(
        one(variable(Op::Dec, 2, 14, 5, 15, 4), 5),
        [14, 10, 6, 13, 9]
    );
    // A step of more than the range, as trimming to the frame's length may leave one.
    assert_eq!(
        one(variable(Op::Inc, 2, 60, 60, 62, 7), 4),
        [60, 61, 62, 60]
    );
}

fn listed(op: Op, init: u64, step: u64, list: &[u64]) -> Variable {
    Variable {
        op,
        init,
        step,
        list: list.to_vec(),
        ..Variable::range("l", 2, 0, list.len() as u64 - 1)
    }
}

#[test]
fn lists_go_round() {
    let list = [7, 1, 60_000, 9];
    assert_eq!(one(listed(Op::Inc, 0, 1, &list), 5), [7, 1, 60_000, 9, 7]);
    assert_eq!(one(listed(Op::Dec, 3, 1, &list), 5), [9, 60_000, 1, 7, 9]);
    assert_eq!(one(listed(Op::Inc, 0, 3, &list), 4), [7, 9, 60_000, 1]);
    assert_eq!(one(listed(Op::Inc, 0, 6, &list), 3), [7, 60_000, 7]);
}

/// From the seed 1 the generator makes 41, 18467, 6334, 26500, 19169, 15724: the well-known
/// sequence of its constants.
const DRAWN: [u64; 6] = [41, 18_467, 6334, 26_500, 19_169, 15_724];

fn random(size: u8, min: u64, max: u64, limit: u64) -> Variable {
    Variable {
        op: Op::Random,
        limit,
        seed: Some(1),
        ..Variable::range("r", size, min, max)
    }
}

#[test]
fn random_numbers_are_those_of_the_reference_generator() {
    assert_eq!(one(random(2, 0, 0xffff, 0), 6), DRAWN);
    assert_eq!(one(random(1, 10, 19, 0), 4), [11, 17, 14, 10]);
    let high = |i: usize| (DRAWN[i] << 16) + DRAWN[i + 1];
    assert_eq!(
        one(random(4, 0, 0xffff_ffff, 0), 3),
        [high(0), high(2), high(4)]
    );
    assert_eq!(
        one(random(8, 0, u64::MAX, 0), 1),
        [(high(0) << 32) + high(2)]
    );
    assert_eq!(
        one(random(8, 5, 1004, 0), 1),
        [5 + ((high(0) << 32) + high(2)) % 1000]
    );
}

#[test]
fn limited_random_numbers_repeat() {
    assert_eq!(
        one(random(2, 0, 0xffff, 2), 5),
        [41, 18_467, 41, 18_467, 41]
    );
    let list = Variable {
        list: vec![3, 5, 8],
        ..random(2, 0, 2, 0)
    };
    assert_eq!(one(list, 4), [8, 8, 5, 5]);
}

/// The stream's generator starts from its seed times 514229; variables draw from it in turns.
#[test]
fn variables_share_the_generator_of_the_stream() {
    let plain = Variable {
        seed: None,
        ..random(2, 0, 0xffff, 0)
    };
    let mut state = 7u32.wrapping_mul(514_229);
    let mut draw = || {
        state = state.wrapping_mul(214_013).wrapping_add(2_531_011);
        u64::from(state >> 16 & 0x7fff)
    };
    let drawn: Vec<_> = (0..3).map(|_| vec![draw(), draw()]).collect();
    assert_eq!(values(&[plain.clone(), plain], 3), drawn);
}

#[test]
fn what_depends_steps_when_its_predecessor_wraps() {
    let mut first = variable(Op::Inc, 1, 1, 0, 1, 1);
    first.next = Some(1);
    let mut second = variable(Op::Dec, 1, 5, 4, 5, 1);
    second.next = Some(2);
    let third = listed(Op::Inc, 0, 1, &[30, 20, 10]);
    let expected = [
        [1, 5, 30],
        [0, 4, 30],
        [1, 4, 30],
        [0, 5, 20],
        [1, 5, 20],
        [0, 4, 20],
        [1, 4, 20],
        [0, 5, 10],
    ];
    assert_eq!(values(&[first, second, third], 8), expected);
}

#[test]
fn what_depends_on_random_numbers() {
    let counter = variable(Op::Inc, 1, 0, 0, 9, 1);
    let dependent = |limit| {
        let first = Variable {
            next: Some(1),
            ..random(2, 0, 0xffff, limit)
        };
        let values = values(&[first, counter.clone()], 5);
        values.iter().map(|v| v[1]).collect::<Vec<_>>()
    };
    assert_eq!(dependent(2), [0, 0, 1, 1, 2]);
    assert_eq!(dependent(0), [0, 1, 2, 3, 4]);
}

#[test]
fn tuples_are_addresses_then_ports() {
    let tuple = |limit| {
        let ip = Variable {
            limit,
            next: Some(1),
            ..Variable::range("t.ip", 4, 10, 11)
        };
        values(&[ip, Variable::range("t.port", 2, 1025, 1026)], 6)
    };
    let all = [
        [10, 1025],
        [11, 1025],
        [10, 1026],
        [11, 1026],
        [10, 1025],
        [11, 1025],
    ];
    assert_eq!(tuple(0), all);
    let three = [all[0], all[1], all[2], all[0], all[1], all[2]];
    assert_eq!(tuple(3), three);
}

#[test]
fn a_cache_repeats_the_first_packets() {
    let mut stream = stream(
        vec![0; 60],
        vec![random(2, 0, 0xffff, 0)],
        vec![Step::Write {
            variable: 0,
            offset: 0,
            add: 0,
            big_endian: true,
        }],
    );
    stream.cache = 3;
    let mut fields = Fields::new(&stream, 0, 0);
    let mut out = [0; 60];
    let mut next = || {
        fields.write(Nanos(0), &mut out);
        u64::from(u16::from_be_bytes([out[0], out[1]]))
    };
    let values: Vec<_> = (0..7).map(|_| next()).collect();
    assert_eq!(values, [&DRAWN[..3], &DRAWN[..3], &DRAWN[..1]].concat());
}

fn masked(size: u8, mask: u32, shift: i8, add: i32, big_endian: bool) -> [u8; 4] {
    let step = Step::WriteMasked {
        variable: 0,
        offset: 0,
        size,
        mask,
        shift,
        add,
        big_endian,
    };
    let stream = stream(
        vec![0xa5; 60],
        vec![variable(Op::Inc, 4, 0x1234, 0, 0xffff, 1)],
        vec![step],
    );
    let mut out = [0; 60];
    Fields::new(&stream, 0, 0).write(Nanos(0), &mut out);
    out[..4].try_into().unwrap()
}

#[test]
fn masks_keep_the_other_bits() {
    // 0xa5 & !0x0f | 0x34 & 0x0f
    assert_eq!(masked(1, 0x0f, 0, 0, true), [0xa4, 0xa5, 0xa5, 0xa5]);
    assert_eq!(masked(2, 0x0ff0, 4, 0, true), [0xa3, 0x45, 0xa5, 0xa5]);
    assert_eq!(masked(2, 0x0ff0, 4, 0, false), [0x45, 0xa3, 0xa5, 0xa5]);
    assert_eq!(masked(4, 0xff, -8, 1, true), [0xa5, 0xa5, 0xa5, 0x12]);
    assert_eq!(masked(4, 0xffff_ffff, 40, 0, true), [0; 4]);
    assert_eq!(masked(4, 0xffff_ffff, 0, -0x1235, true), [0xff; 4]);
}

#[test]
fn writes_add_within_their_width() {
    let write = |size, init, add, big_endian| {
        let step = Step::Write {
            variable: 0,
            offset: 1,
            add,
            big_endian,
        };
        let variable = variable(Op::Inc, size, init, 0, init, 1);
        let mut out = [0; 60];
        Fields::new(&stream(vec![0; 60], vec![variable], vec![step]), 0, 0)
            .write(Nanos(0), &mut out);
        out[..9].to_vec()
    };
    assert_eq!(write(1, 0xff, 2, true), [0, 1, 0, 0, 0, 0, 0, 0, 0]);
    assert_eq!(write(2, 0, -1, true), [0, 0xff, 0xff, 0, 0, 0, 0, 0, 0]);
    assert_eq!(
        write(4, 0xffff_ffff, 0x203, false),
        [0, 2, 2, 0, 0, 0, 0, 0, 0]
    );
    assert_eq!(write(8, u64::MAX, 1, true), [0; 9]);
}

#[test]
fn frames_are_cut_to_their_length() {
    let mut packet = vec![7; 100];
    packet[99] = 9;
    let lengths = listed(Op::Inc, 0, 1, &[60, 100, 40]);
    let steps = vec![
        Step::Trim { variable: 0 },
        Step::Write {
            variable: 0,
            offset: 70,
            add: 0,
            big_endian: true,
        },
    ];
    let stream = stream(packet, vec![lengths], steps);
    let mut fields = Fields::new(&stream, 0, 0);
    let mut out = [1; 100];
    assert_eq!(fields.write(Nanos(0), &mut out), 60);
    assert_eq!((out[59], out[60]), (7, 1));
    assert_eq!(fields.write(Nanos(0), &mut out), 100);
    assert_eq!(out[68..73], [7, 7, 0, 100, 7]);
    assert_eq!(fields.write(Nanos(0), &mut out), 60);
    assert_eq!((out[39], &out[40..60]), (7, &[0; 20][..]));
}
