//! Packets of each core in a sequence that several share, computed by hand.

use super::sequences::values_of;
use super::*;

/// The first values of each of `cores`.
fn on<const CORES: usize>(variables: &[Variable], count: usize) -> [Vec<Vec<u64>>; CORES] {
    std::array::from_fn(|core| {
        let share = Share {
            core: core as u32,
            cores: CORES as u32,
        };
        values_of(share, variables, count)
    })
}

fn one<const CORES: usize>(variable: Variable, count: usize) -> [Vec<u64>; CORES] {
    on(&[variable], count).map(|values| values.concat())
}

fn list(op: Op, init: u64) -> Variable {
    Variable {
        list: vec![10, 20, 30],
        ..variable(op, 1, init, 0, 2, 1)
    }
}

/// An address that goes through 1..=3, and a port that goes through 7 and 8.
fn tuple(limit: u64) -> [Variable; 2] {
    let ip = Variable {
        next: Some(1),
        limit,
        ..Variable::range("ip", 4, 1, 3)
    };
    [ip, Variable::range("port", 2, 7, 8)]
}

/// One core: 3, 4, 5, 1, 2, 3, 4, 5, 1, 2, 3. One core: 1, 0, 4, 3, 2, 1, 0, 4, 3.
#[test]
fn inc_and_dec_take_turns() {
    assert_eq!(
        one(variable(Op::Inc, 1, 3, 1, 5, 1), 5),
        [[3, 5, 2, 4, 1], [4, 1, 3, 5, 2]]
    );
    assert_eq!(
        one(variable(Op::Dec, 1, 1, 0, 4, 1), 3),
        [[1, 3, 0], [0, 2, 4], [4, 1, 3]]
    );
    // More cores than values.
    assert_eq!(
        one(variable(Op::Inc, 1, 0, 0, 1, 1), 2),
        [[0, 1], [1, 0], [0, 1]]
    );
}

/// One core: 0, 3, 6, 0. One core: top - 1, 1, 4, 7, 10.
#[test]
fn steps_take_turns() {
    assert_eq!(
        one(variable(Op::Inc, 2, 0, 0, 8, 3), 3),
        [[0, 6, 3], [3, 0, 6]]
    );
    let top = u64::MAX;
    assert_eq!(
        one(variable(Op::Inc, 8, top - 1, 0, top, 3), 3),
        [[top - 1, 4, 10], [1, 7, 13]]
    );
    let top = 0xffff_ffff;
    assert_eq!(
        one(variable(Op::Inc, 4, top, 0, top, 1), 2),
        [[top, 1], [0, 2]]
    );
}

/// One core: 10, 20, 30, 10. One core: 30, 20, 10, 30.
#[test]
fn lists_take_turns() {
    assert_eq!(one(list(Op::Inc, 0), 3), [[10, 30, 20], [20, 10, 30]]);
    assert_eq!(one(list(Op::Dec, 2), 3), [[30, 10, 20], [20, 30, 10]]);
}

#[test]
fn what_is_not_shared_every_core_goes_through() {
    let variable = Variable {
        is_shared: false,
        ..variable(Op::Inc, 1, 3, 1, 5, 1)
    };
    assert_eq!(one(variable, 4), [[3, 4, 5, 1], [3, 4, 5, 1]]);
}

/// One core: 1-7, 2-7, 3-7, 1-8, 2-8, 3-8, 1-7, 2-7.
#[test]
fn addresses_and_ports_take_turns() {
    assert_eq!(
        on(&tuple(0), 4),
        [
            [[1, 7], [3, 7], [2, 8], [1, 7]],
            [[2, 7], [1, 8], [3, 8], [2, 7]]
        ]
    );
    // Five flows: three and two.
    assert_eq!(
        on(&tuple(5), 4),
        [
            [[1, 7], [3, 7], [2, 8], [1, 7]],
            [[2, 7], [1, 8], [2, 7], [1, 8]]
        ]
    );
}

/// The generator of core k starts with the profile's seed, 7, times 514229 (k + 1).
#[test]
fn each_core_draws_its_own_numbers() {
    assert_eq!(
        one(variable(Op::Random, 2, 0, 0, 99, 1), 3),
        [[83, 96, 29], [60, 73, 19]]
    );
}

/// Its own seed, 9, times 514229 (k + 1); of four values, two each.
#[test]
fn repeatable_random_numbers_are_divided() {
    let limited = Variable {
        limit: 4,
        seed: Some(9),
        ..variable(Op::Random, 2, 0, 0, 999, 1)
    };
    let [[a, b], [c, d]] = [[290, 532], [542, 346]];
    assert_eq!(one(limited, 4), [[a, b, a, b], [c, d, c, d]]);
}

#[test]
fn a_cache_is_divided() {
    let stream = Stream {
        cache: 5,
        share: Some(Share { core: 1, cores: 2 }),
        ..stream(
            vec![0; 60],
            vec![variable(Op::Inc, 1, 0, 0, 9, 1)],
            vec![Step::Write {
                variable: 0,
                offset: 0,
                add: 0,
                big_endian: true,
            }],
        )
    };
    let (mut fields, mut out) = (Fields::new(&stream, 0, 0), [0; 60]);
    let mut next = || {
        fields.write(Nanos(0), &mut out);
        out[0]
    };
    assert_eq!([next(), next(), next()], [1, 3, 1]);
}
