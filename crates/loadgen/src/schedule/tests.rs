use proptest::prelude::*;

use super::*;
use crate::model::stream::StreamRate;

const SECOND: u64 = 1_000_000_000;

fn stream(mode: Mode, isg: f64) -> Stream {
    Stream {
        mode,
        isg,
        ..Stream::new("s", vec![0; 60], StreamRate::Packets(Pps(1.0)))
    }
}

fn burst(packets: u64, isg: f64) -> Stream {
    stream(Mode::SingleBurst { packets }, isg)
}

fn schedule(streams: &[(Stream, f64)]) -> Schedule {
    Schedule::new(streams.iter().map(|(s, pps)| (s, Pps(*pps))))
}

/// The streams and times in microseconds of the first packets.
fn first(streams: &[(Stream, f64)], count: usize) -> Vec<(usize, f64)> {
    let mut schedule = schedule(streams);
    schedule.start(Nanos(0), 1.0);
    let packets = std::iter::from_fn(|| schedule.next(Nanos(u64::MAX / 4)));
    packets
        .take(count)
        .map(|(s, at)| (s, at.0 as f64 / 1e3))
        .collect()
}

#[test]
fn a_continuous_stream_starts_after_its_gap() {
    let streams = [(stream(Mode::Continuous, 10.0), 1e5)];
    assert_eq!(first(&streams, 3), [(0, 10.0), (0, 20.0), (0, 30.0)]);
}

#[test]
fn bursts_are_apart() {
    let mode = Mode::MultiBurst {
        packets: 2,
        bursts: 3,
        ibg: 100.0,
    };
    let times: Vec<f64> = first(&[(stream(mode, 5.0), 1e5)], 99)
        .iter()
        .map(|p| p.1)
        .collect();
    assert_eq!(times, [5.0, 15.0, 115.0, 125.0, 225.0, 235.0]);
}

/// S0 (1 packet, isg 10) to S1 (2 packets) to S2 (3 packets, twice) and back to S0, as in T-Rex's
/// burst_3st_loop_x_times.
#[test]
fn a_chain_goes_round_as_often_as_it_may() {
    let mut streams = [
        (burst(1, 10.0), 1e5),
        (burst(2, 0.0), 1e5),
        (burst(3, 0.0), 1e5),
    ];
    for (i, (stream, _)) in streams.iter_mut().enumerate() {
        (stream.next, stream.self_start) = (Some((i + 1) % 3), i == 0);
    }
    streams[2].0.action_count = 2;
    let round = [
        (0, 10.0),
        (1, 10.0),
        (1, 20.0),
        (2, 20.0),
        (2, 30.0),
        (2, 40.0),
    ];
    let second = round.map(|(s, at)| (s, at + 40.0));
    assert_eq!(first(&streams, 99), [round, second].concat());
}

#[test]
fn a_stream_that_is_active_is_not_started_again() {
    let mut streams = [(burst(1, 0.0), 1e5), (burst(3, 0.0), 1e5)];
    streams[0].0.next = Some(1);
    assert_eq!(
        first(&streams, 99),
        [(0, 0.0), (1, 0.0), (1, 10.0), (1, 20.0)]
    );
}

#[test]
fn a_dummy_takes_its_time() {
    let mut streams = [(burst(3, 0.0), 1e5), (burst(1, 5.0), 1e5)];
    streams[0].0.dummy = true;
    streams[0].0.next = Some(1);
    streams[1].0.self_start = false;
    assert_eq!(first(&streams, 99), [(1, 25.0)]);
}

/// However many slots of dummies come first, the packet after them is found; what only dummies are
/// left of is over.
#[test]
fn dummies_end_nothing_and_go_on_with_nothing() {
    let mut streams = [(stream(Mode::Continuous, 0.0), 1e6), (burst(2, 9.0), 100.0)];
    streams[0].0.dummy = true;
    let streams = streams.map(|(stream, pps)| (stream, Pps(pps)));
    let mut dry = crate::dry::Dry::new(&streams, Pps(100.0));
    let mut packets = Vec::new();
    while let Some((at, index, _)) = dry.next(Nanos(u64::MAX)) {
        packets.push((at.0, index));
    }
    assert_eq!(packets, [(9000, 1), (10_009_000, 1)]);
}

/// Passing over a great many bursts of one takes several calls, each of which ends soon.
#[test]
fn skipping_is_bounded() {
    let mut only = burst(1, 0.001);
    only.next = Some(0);
    let mut schedule = schedule(&[(only, 1.0)]);
    schedule.start(Nanos(0), 1.0);
    let once = schedule.skip(Nanos(100_000));
    assert_eq!(once, u64::from(SINGLES));
    let mut all = once;
    loop {
        match schedule.skip(Nanos(100_000)) {
            0 => break,
            more => all += more,
        }
    }
    assert_eq!(all, 99_999);
}

#[test]
fn streams_get_their_share_evenly() {
    let three = [28.0, 16.0, 4.0].map(|pps| (stream(Mode::Continuous, 0.0), pps));
    let mut schedule = schedule(&three);
    schedule.start(Nanos(0), f64::INFINITY);
    for _ in 0..100 {
        let mut counts = [0; 3];
        for _ in 0..48 {
            counts[schedule.next(Nanos(u64::MAX)).unwrap().0] += 1;
        }
        assert_eq!(counts, [28, 16, 4]);
    }
}

#[test]
fn a_year_at_line_rate_does_not_drift() {
    let mut schedule = schedule(&[(stream(Mode::Continuous, 0.0), 1_488_095.0)]);
    schedule.start(Nanos(0), 1.0);
    let year = 365 * 24 * 3600;
    assert_eq!(schedule.skip(Nanos(year * SECOND)), 1_488_095 * year);
    assert_eq!(
        schedule.next(Nanos(u64::MAX)),
        Some((0, Nanos(year * SECOND)))
    );
}

#[test]
fn a_schedule_ends_with_its_last_burst() {
    let mut schedule = schedule(&[(burst(10, 0.0), 10.0)]);
    assert!(schedule.is_over());
    schedule.start(Nanos(SECOND), 1.0);
    assert!(!schedule.is_over());
    assert_eq!(schedule.next(Nanos(SECOND - 1)), None);
    assert_eq!(
        (schedule.skip(Nanos(100 * SECOND)), schedule.is_over()),
        (10, true)
    );
    schedule.start(Nanos(0), 2.0);
    assert_eq!(schedule.skip(Nanos(SECOND / 2)), 10);
}

#[test]
fn what_is_fixed_keeps_its_rate() {
    let mut latency = stream(Mode::Continuous, 0.0);
    latency.mark = Some(crate::model::stream::Mark {
        group: 1,
        latency: true,
    });
    let mut schedule = schedule(&[(latency, 10.0), (stream(Mode::Continuous, 0.0), 10.0)]);
    schedule.start(Nanos(0), 100.0);
    let mut counts = [0; 2];
    while let Some((stream, _)) = schedule.next(Nanos(SECOND - 1)) {
        counts[stream] += 1;
    }
    assert_eq!(counts, [10, 1000]);
}

#[test]
fn what_was_unlimited_goes_on_at_a_pace() {
    let mut schedule = schedule(&[(stream(Mode::Continuous, 0.0), 1.0)]);
    schedule.start(Nanos(0), f64::INFINITY);
    for _ in 0..1000 {
        schedule.next(Nanos(u64::MAX)).unwrap();
    }
    schedule.catch_up(Nanos(SECOND));
    schedule.set_factor(Nanos(SECOND), 50.0);
    assert_eq!(schedule.skip(Nanos(2 * SECOND)), 50);
}

proptest! {
    /// However a schedule is polled and its rate changed, the sum is right to within a packet.
    #[test]
    fn positions_are_exact(steps in proptest::collection::vec((1u64..50_000_000, 0.1..2e7f64, any::<bool>(), any::<bool>()), 1..60)) {
        let mut schedule = schedule(&[(stream(Mode::Continuous, 0.0), 1.0)]);
        schedule.start(Nanos(0), 1000.0);
        let (mut now, mut rate, mut exact, mut sent) = (0u64, 1000.0, 0.0f64, 0u64);
        for (wait, next, change, skip) in steps {
            now += wait;
            exact += wait as f64 * rate / 1e9;
            if skip {
                sent += schedule.skip(Nanos(now));
            } else {
                while schedule.next(Nanos(now - 1)).is_some() {
                    sent += 1;
                }
            }
            prop_assert!((sent as f64 - exact).abs() <= 1.5 + exact * 1e-9, "{sent} {exact}");
            if change {
                rate = next;
                schedule.set_factor(Nanos(now), rate);
            }
        }
    }

    /// Passing over packets is the same as taking them.
    #[test]
    fn skipping_is_taking(
        modes in proptest::collection::vec((1u64..6, 1u64..4, 0.0..50.0f64, 0.0..20.0f64, 1.0..9.0f64, any::<bool>()), 1..5),
        until in 0u64..400_000,
    ) {
        let streams: Vec<_> = modes.iter().enumerate().map(|(i, &(packets, bursts, ibg, isg, rate, dummy))| {
            let mode = match i % 3 {
                0 => Mode::Continuous,
                1 => Mode::SingleBurst { packets },
                _ => Mode::MultiBurst { packets, bursts, ibg },
            };
            let mut stream = stream(mode, isg);
            stream.dummy = dummy;
            stream.next = Some((i + 1) % modes.len());
            stream.isg += 1.0;
            (stream, rate * 1e4)
        }).collect();
        let mut one = schedule(&streams);
        one.start(Nanos(0), 1.0);
        let mut other = one.clone();
        let mut taken = 0;
        while until > 0 && one.next(Nanos(until - 1)).is_some() {
            taken += 1;
        }
        prop_assert_eq!(other.skip(Nanos(until)), taken);
        for _ in 0..20 {
            prop_assert_eq!(other.next(Nanos(1 << 60)), one.next(Nanos(1 << 60)));
        }
    }
}
