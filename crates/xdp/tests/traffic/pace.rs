//! Times at which packets go: rates, gaps, numbers of packets, stops.

use std::time::{Duration, Instant};

use testbed::patience;
use xdp::{Live, LivePlan, LiveStream, Op, Rate, Sink};

use super::{
    DST, Pair, SRC, address, alone_with_pair, attach, generator, limit, net, of_length, plan,
    settled, stream, wait,
};

/// Rates change under way, after a stop nothing is sent, and nothing is asked for meanwhile.
#[test]
fn rates_and_stops() {
    let Some((_alone, pair)) = alone_with_pair("stops") else {
        return;
    };
    let _sink = attach(&pair, &[of_length(60)]);
    pair.left(|ifindex| {
        let live = generator(plan(ifindex, vec![stream(60, 1)]), None);
        live.start(Rate::Pps(0)).expect("starts");
        std::thread::sleep(Duration::from_millis(20));
        assert_eq!((live.due(), live.sent()[0].packets), (0, 0));
        live.set_rate(Rate::Pps(20_000));
        wait(&live, "it sends", |live| live.sent()[0].packets >= 200);
        let totals = live.stop().expect("stops");
        std::thread::sleep(Duration::from_millis(50));
        assert_eq!((live.due(), live.sent()), (totals.due, totals.sent.clone()));
        live.start(Rate::Unpaced).expect("goes on");
        let enough = totals.sent[0].packets + 10_000;
        wait(&live, "it sends again", |live| {
            live.sent()[0].packets >= enough
        });
        // From unpaced to a schedule: the time before is not part of it.
        live.set_rate(Rate::Pps(0));
        let totals = live.stop().expect("stops");
        assert_eq!(
            totals.due,
            totals.sent[0].packets + totals.shortfall,
            "{totals:?}"
        );
    });
}

/// Each packet but the first of a run is as far from the one before as the schedule says.
#[test]
fn gaps_are_those_of_the_schedule() {
    let Some((_alone, pair)) = alone_with_pair("gaps_are_those_of_the_schedule") else {
        return;
    };
    let _sink = attach(&pair, &[of_length(60)]);
    let (pps, runs) = (20_000, 2);
    let (totals, gaps) = pair.left(|ifindex| {
        let patient = LivePlan {
            burst: patience(Duration::from_secs(5)),
            ..plan(ifindex, vec![stream(60, 1)])
        };
        let live = generator(patient, None);
        assert_eq!(live.gaps().sum, 0);
        for run in 1..=runs {
            live.start(Rate::Pps(pps)).expect("starts");
            wait(&live, "it sends", |live| {
                live.sent()[0].packets >= run * 500
            });
            live.stop().expect("stops");
        }
        (live.stop().expect("it is stopped"), live.gaps())
    });
    assert_eq!(totals.shortfall, 0, "{totals:?}");
    assert_eq!(
        gaps.buckets.iter().sum::<u64>(),
        totals.due - runs,
        "{totals:?}"
    );
    // From the first packet of a run to its last, on schedule but for the last look at the clock.
    let apart = 1_000_000_000 / u64::from(pps);
    let scheduled = (totals.due - runs) * apart;
    assert!(gaps.sum + runs * apart >= scheduled, "{gaps:?}");
    assert!(
        gaps.sum <= scheduled + runs * (apart + gaps.max),
        "{gaps:?}"
    );
    assert!(gaps.min < apart && gaps.max >= apart, "{gaps:?}");
}

/// A number of packets is sent exactly, at a rate and without one, and again at the next start.
#[test]
fn a_number_of_packets_is_exact() {
    let Some((_alone, pair)) = alone_with_pair("a_number_of_packets_is_exact") else {
        return;
    };
    let lengths = [64, 586];
    let sink = attach(&pair, &lengths.map(of_length));
    let streams = vec![stream(64, 3), stream(586, 1)];
    let sent = pair.left(|ifindex| {
        let numbered = LivePlan {
            packets: Some(4000),
            burst: patience(Duration::from_secs(5)),
            ..plan(ifindex, streams)
        };
        let live = generator(numbered, None);
        for (rate, all) in [(Rate::Pps(20_000), 4000), (Rate::Unpaced, 8000)] {
            live.start(rate).expect("starts");
            wait(&live, "it comes to its end", Live::is_over);
            assert_eq!((live.due(), live.shortfall()), (all, 0));
            live.stop().expect("stops");
        }
        live.sent()
    });
    let packets: Vec<u64> = sent.iter().map(|count| count.packets).collect();
    assert_eq!(packets, [6000, 2000]);
    assert_eq!(settled(&sink, 8000), sent);
}

/// Shows that packets which an overloaded generator could not send are not sent when it starts
/// again.
#[test]
fn nothing_is_left_of_an_earlier_schedule() {
    let Some((_alone, pair)) = alone_with_pair("leftover") else {
        return;
    };
    let _sink = attach(&pair, &[of_length(60)]);
    pair.left(|ifindex| {
        let patient = LivePlan {
            burst: Duration::from_millis(20),
            ..plan(ifindex, vec![stream(60, 1)])
        };
        let live = generator(patient, None);
        // Far more than it can do: the backlog is full.
        live.start(Rate::Pps(100_000_000)).expect("starts");
        wait(&live, "it is behind", |live| live.shortfall() > 10_000);
        let before = live.stop().expect("stops");
        let sent = before.sent[0].packets;
        assert!(before.shortfall > 10_000, "{before:?}");
        live.start(Rate::Pps(1000)).expect("starts");
        let some = before.due + 20;
        wait(&live, "it goes on", |live| live.due() >= some);
        let after = live.stop().expect("stops");
        assert!(
            after.sent[0].packets - sent <= after.due - before.due,
            "{before:?} {after:?}"
        );
    });
}

/// Two interfaces are served packet by packet: neither is ever ahead of the other by more than one,
/// and what is meant for one goes out of that one.
#[test]
fn two_ways_take_turns() {
    let Some((_alone, pair)) = alone_with_pair("turns") else {
        return;
    };
    pair.add_second();
    let [first, second] = ["right", "right2"]
        .map(|name| {
            pair.right(|_| Sink::attach(net::index(name), &[of_length(60), of_length(61)], 0))
        })
        .map(|sink| sink.expect("attaches"));
    let (left, second_left) = pair.left(|index| (index, net::index("left2")));
    let totals = pair.left(|_| {
        let plans = [
            plan(left, vec![stream(60, 1)]),
            plan(second_left, vec![stream(61, 1)]),
        ];
        let ways = Live::open(&plans, None).expect("opens");
        let sent = |way: usize| ways[way].sent()[0].packets;
        for way in &ways {
            way.start(Rate::Unpaced).expect("starts");
        }
        // The first was alone for a moment.
        let more = |way: usize| {
            let enough = sent(way) + 10_000;
            wait(&ways[way], "a way sends", |live| {
                live.sent()[0].packets >= enough
            });
        };
        more(1);
        let still = || {
            let (a, b, c) = (sent(0), sent(1), sent(0));
            (a == c).then(|| a - b)
        };
        let give_up = Instant::now() + limit();
        let ahead = loop {
            if let Some(ahead) = still() {
                break ahead;
            }
            assert!(Instant::now() < give_up, "the first is never still");
        };
        for _ in 0..2000 {
            let (earliest, other, latest) = (sent(0), sent(1) + ahead, sent(0));
            assert!(
                other + 1 >= earliest && other <= latest + 1,
                "{earliest} to {latest}, {other}, {ahead} ahead"
            );
        }
        // One stops: the other goes on.
        let one = ways[0].stop().expect("stops");
        more(1);
        // The rate of one that has stopped does not matter.
        ways[0].set_rate(Rate::Unpaced);
        more(1);
        assert_eq!(sent(0), one.sent[0].packets);
        [one, ways[1].stop().expect("stops")]
    });
    for (sink, way) in [first, second].iter().zip(0..) {
        let counts = settled(sink, totals[way].sent[0].packets);
        assert_eq!(counts[1 - way].packets, 0);
        assert!(counts[way].packets > 1000, "{counts:?}");
    }
}

/// Measures the time that a start and a stop take beside traffic: printed, never judged. Run as
/// `ceiling`.
#[test]
#[ignore = "a measurement"]
fn start_and_stop() {
    let Some((_alone, pair)) = alone_with_pair("startstop") else {
        return;
    };
    pair.add_second();
    let _sinks = ["right", "right2"]
        .map(|name| pair.right(|_| Sink::attach(net::index(name), &[of_length(60)], 0)))
        .map(|sink| sink.expect("attaches"));
    pair.left(|left| {
        let other = generator(plan(left, vec![stream(60, 1)]), Some(0));
        let second = plan(net::index("left2"), vec![stream(60, 1)]);
        let live = generator(second, Some(1));
        other.start(Rate::Unpaced).expect("starts");
        let mut times = [Vec::new(), Vec::new()];
        for _ in 0..21 {
            let begin = Instant::now();
            live.start(Rate::Pps(1000)).expect("starts");
            times[0].push(begin.elapsed());
            std::thread::sleep(Duration::from_millis(20));
            let begin = Instant::now();
            live.stop().expect("stops");
            times[1].push(begin.elapsed());
        }
        for (what, mut times) in ["start", "stop"].into_iter().zip(times) {
            times.sort();
            println!("{what}: median {:?}, longest {:?}", times[10], times[20]);
        }
        other.stop().expect("stops");
    });
}

/// Measures the highest rate: printed, never judged. `cargo test -p xdp --release -- --ignored
/// --nocapture ceiling`.
#[test]
#[ignore = "a measurement"]
fn ceiling() {
    let Some((_alone, pair)) = alone_with_pair("ceiling") else {
        return;
    };
    let sink = attach(&pair, &[of_length(60)]);
    let mut varied = stream(60, 1);
    let fixed = varied.clone();
    varied.vars = vec![
        address(26, Op::Inc, SRC, SRC + 250, 1),
        address(30, Op::Inc, DST, DST + 250, 1),
    ];
    varied.ip4_checksum_at = Some(14);
    for (name, stream) in [("fixed", fixed), ("var2", varied)] {
        for rate in [Rate::Unpaced, Rate::Pps(20_000_000), Rate::Pps(1_000_000)] {
            let best = (0..5)
                .map(|_| measure(&pair, &sink, &stream, rate))
                .fold((0.0, 0.0), |a: (f64, f64), b| if b.0 > a.0 { b } else { a });
            println!(
                "{name} {rate:?}: sent {:.2} Mpps, received {:.2} Mpps",
                best.0, best.1
            );
        }
    }
}

/// Mpps sent and received over half a second.
fn measure(pair: &Pair, sink: &Sink, stream: &LiveStream, rate: Rate) -> (f64, f64) {
    pair.left(|ifindex| {
        let live = generator(plan(ifindex, vec![stream.clone()]), Some(0));
        live.start(rate).expect("starts");
        std::thread::sleep(Duration::from_millis(100));
        let count = || {
            (
                live.sent()[0].packets,
                sink.counts().expect("counts")[0].packets,
                Instant::now(),
            )
        };
        let before = count();
        std::thread::sleep(Duration::from_millis(500));
        let after = count();
        let micros = (after.2 - before.2).as_secs_f64() * 1e6;
        (
            (after.0 - before.0) as f64 / micros,
            (after.1 - before.1) as f64 / micros,
        )
    })
}
