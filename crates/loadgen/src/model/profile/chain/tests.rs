//! Chains that take no time.

use proptest::prelude::*;

use super::*;
use crate::clock::Nanos;
use crate::model::stream::StreamRate;
use crate::model::units::Pps;
use crate::schedule::Schedule;

fn stream(name: &str, mode: Mode, isg: f64, next: Option<usize>, action_count: u32) -> Stream {
    Stream {
        mode,
        isg,
        next,
        action_count,
        ..Stream::new(name, vec![0; 60], StreamRate::Packets(Pps(1e6)))
    }
}

const ONE: Mode = Mode::SingleBurst { packets: 1 };

fn bursts(bursts: u64, ibg: f64) -> Mode {
    Mode::MultiBurst {
        packets: 1,
        bursts,
        ibg,
    }
}

#[test]
fn a_chain_without_time_is_refused_by_name() {
    let refused = |streams: &[Stream]| endless(streams).expect_err("it takes no time");
    let around = |mode| [stream("a", mode, 0.0, Some(0), 0)];
    let why = refused(&around(ONE));
    assert_eq!(
        why,
        "the chain of stream `a` takes no time, and more than 65536 packets would be sent at once; \
         give one of its streams an isg"
    );
    refused(&around(bursts(1, 0.0)));
    refused(&around(bursts(7, 0.0)));
    // A gap that is nothing on a clock, and one with an end that is too far away.
    refused(&[stream("a", ONE, 1e-300, Some(0), 0)]);
    refused(&[stream("a", ONE, 0.0, Some(0), u32::MAX)]);
    refused(&[stream("a", bursts(u64::MAX, 0.0), 0.0, None, 0)]);
    // Into a circle of two, by way of another.
    let why = refused(&[
        stream("a", ONE, 5.0, Some(1), 0),
        stream("b", ONE, 0.0, Some(2), 0),
        stream("c", bursts(2, 0.0), 0.0, Some(1), 0),
    ]);
    assert!(why.contains("`b`") || why.contains("`c`"), "{why}");
}

/// The most that is sent at once is the same for one stream and for several, and with an isg before
/// them or without.
#[test]
fn no_more_than_so_much_is_sent_at_once() {
    let one = |count, ibg, isg| endless(&[stream("a", bursts(count, ibg), isg, None, 0)]);
    for isg in [0.0, 10.0] {
        assert_eq!(one(AT_ONCE, 0.0, isg), Ok(()));
        assert_eq!(one(100_000, 1.0, isg), Ok(()));
        let why = one(100_000, 0.0, isg).unwrap_err();
        assert!(why.contains("stream `a`: its bursts") && why.contains("give it an ibg"));
        let two = |gap| {
            endless(&[
                stream("a", bursts(AT_ONCE, 0.0), isg, Some(1), 0),
                stream("b", ONE, gap, None, 0),
            ])
        };
        assert_eq!(two(1.0), Ok(()));
        assert!(two(0.0).unwrap_err().contains("the chain of stream `b`"));
    }
    // Gaps that no clock shows.
    assert!(one(1 << 40, 1e-9, 0.0).is_err());
}

/// Shows that a stream which nothing starts is never sent.
#[test]
fn a_chain_that_nothing_starts_is_not_refused() {
    let around = stream("a", ONE, 0.0, Some(0), 0);
    let idle = Stream {
        self_start: false,
        ..around.clone()
    };
    let other = |next| stream("b", ONE, 5.0, next, 0);
    assert_eq!(endless(&[idle.clone(), other(None)]), Ok(()));
    assert!(endless(&[idle, other(Some(0))]).is_err());
    assert!(endless(&[around]).is_err());
}

#[test]
fn a_chain_with_time_or_an_end_is_not() {
    let runs = |streams: &[Stream]| assert_eq!(endless(streams), Ok(()));
    runs(&[stream("a", ONE, 1.0, Some(0), 0)]);
    runs(&[stream("a", bursts(2, 1.0), 0.0, Some(0), 0)]);
    runs(&[stream(
        "a",
        Mode::SingleBurst { packets: 2 },
        0.0,
        Some(0),
        0,
    )]);
    runs(&[stream("a", ONE, 0.0, Some(0), 100)]);
    runs(&[
        stream("a", ONE, 0.0, Some(1), 0),
        stream("b", Mode::Continuous, 0.0, Some(0), 0),
    ]);
}

fn mode() -> impl Strategy<Value = Mode> {
    let gap = prop_oneof![Just(0.0), Just(1e-12), Just(0.25), Just(30.0)];
    let bursts = (1u64..3, 1u64..4, gap);
    prop_oneof![
        Just(Mode::Continuous),
        (1u64..3).prop_map(|packets| Mode::SingleBurst { packets }),
        bursts.prop_map(|(packets, bursts, ibg)| Mode::MultiBurst {
            packets,
            bursts,
            ibg
        }),
    ]
}

/// The time after so many packets; None if there are fewer.
fn after(schedule: &mut Schedule, packets: usize) -> Option<Nanos> {
    let times = std::iter::from_fn(|| schedule.next(Nanos(u64::MAX)));
    times.take(packets).map(|(_, at)| at).nth(packets - 1)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]
    /// Exactly those chains are refused in whose schedule time stands still.
    #[test]
    fn time_goes_by_or_it_is_refused(
        raw in proptest::collection::vec((
            mode(),
            prop_oneof![3 => Just(0.0), 1 => Just(1e-12), 1 => Just(0.5)],
            proptest::option::of(0usize..6),
            prop_oneof![4 => Just(0u32), 1 => 1u32..4],
        ), 1..6),
    ) {
        let count = raw.len();
        let streams: Vec<Stream> = raw.into_iter().map(|(mode, isg, next, actions)| {
            stream("s", mode, isg, next.map(|next| next % count), actions)
        }).collect();
        let mut schedule = Schedule::new(streams.iter().map(|s| (s, Pps(1e6))));
        schedule.start(Nanos(0), 1.0);
        let stands_still = after(&mut schedule, 3000).is_some_and(|early| {
            after(&mut schedule, 1000).is_some_and(|late| late.0 - early.0 <= 1)
        });
        prop_assert_eq!(endless(&streams).is_err(), stands_still);
    }
}
