//! Streams with flow statistics through devices that lose, double and delay packets.

use std::time::Duration;

use graph::{Pool, Port, pool};
use io::ring::Ring;
use io::wrap::{Fault, Odds};
use loadgen::clock::Monotonic;
use loadgen::device::Path;
use loadgen::measure::trial;
use loadgen::model::profile::{self, Tunables, Way};
use loadgen::model::stream::{Stream, base_rates};
use loadgen::model::units::Pps;
use loadgen::receive::{self, flow::Flow};
use loadgen::source::mark;
use loadgen::tester::{Endpoint, Tester};
use testbed::{patience, until};

/// Packets and trials: long enough for every fault to happen, many times over.
const LENGTH: Duration = Duration::from_millis(400);
const PPS: f64 = 20_000.0;

fn streams(settings: &str) -> Vec<(Stream, Pps)> {
    let tunables = Tunables::parse(settings).unwrap();
    let mut streams = profile::open("bench", Way::Out, &tunables).unwrap();
    for stream in &mut streams {
        // Latency streams keep their own rate.
        stream.rate = loadgen::model::stream::StreamRate::Packets(Pps(PPS));
    }
    let rates = base_rates(&streams, None).unwrap();
    streams.into_iter().zip(rates).collect()
}

/// Outcome of two trials, of which the first was a warm-up.
struct Result {
    /// Packets of the warm-up.
    warm_up: u64,
    sent: u64,
    received: u64,
    flow: Option<Flow>,
}

impl Result {
    /// Number of packets of the second trial that were `every`th ones.
    fn every(&self, every: u64) -> u64 {
        (self.warm_up + self.sent) / every - self.warm_up / every
    }
}

/// Sent, received, and what the receiver made of it, after two trials.
fn through(odds: Odds, settings: &str) -> (u64, u64, Option<Flow>) {
    let result = after_warm_up(odds, settings);
    (result.sent, result.received, result.flow)
}

fn after_warm_up(odds: Odds, settings: &str) -> Result {
    after_warm_up_of(streams(settings), odds)
}

fn after_warm_up_of(streams: Vec<(Stream, Pps)>, odds: Odds) -> Result {
    let pool = Pool::new(40_000, pool::STRIDE).unwrap();
    let (near, far) = Ring::pair(["near", "far"], 16_384).unwrap();
    let far: Box<dyn Port> = Box::new(Fault::new(Box::new(far), odds, 5));
    let expect = streams.iter().map(|(s, _)| s.clone()).collect();
    let near = Endpoint {
        port: Box::new(near),
        send: streams,
        expect: Vec::new(),
    };
    let far = Endpoint {
        port: far,
        send: Vec::new(),
        expect,
    };
    let (tester, mut controls) = Tester::spawn(vec![near, far], pool, || ()).unwrap();
    let (_, rx) = controls.remove(1);
    let (tx, _) = controls.remove(0);
    let mut paths = [Path {
        tx: Box::new(tx),
        rx: Box::new(rx),
    }];
    trial::run(&mut paths, Pps(PPS), LENGTH, &Monotonic::new()).unwrap();
    arrived(&paths[0]);
    let warm_up = paths[0].tx.sent()[0].packets;
    paths[0].start_over();
    trial::run(&mut paths, Pps(PPS), LENGTH, &Monotonic::new()).unwrap();
    arrived(&paths[0]);
    let [Path { tx, rx }] = &paths;
    assert_eq!(rx.other().packets, 0);
    let (sent, received) = (tx.sent()[0].packets, rx.counts()[0].packets);
    let flow = rx.flows().remove(0);
    drop(tester);
    Result {
        warm_up,
        sent,
        received,
        flow: flow.map(|flow| flow.completed(sent)),
    }
}

/// Waits until nothing is on its way anymore: what was delayed comes with the next call.
fn arrived(path: &Path) {
    let received = || path.rx.counts()[0].packets;
    let mut last = received();
    until(patience(Duration::from_secs(2)), || {
        std::thread::sleep(Duration::from_millis(20));
        std::mem::replace(&mut last, received()) == received()
    });
}

#[test]
fn a_clean_wire_loses_nothing() {
    let (sent, received, flow) = through(Odds::default(), "flow=fsl,vm=var2");
    let flow = flow.unwrap();
    assert!(sent > 1000, "{sent}");
    assert_eq!((received, flow.latency.measured), (sent, sent));
    assert_eq!(
        (flow.missing, flow.out_of_order, flow.duplicates, flow.old),
        (0, 0, 0, 0)
    );
    let times = flow.latency;
    let rises = [
        times.min,
        times.p50,
        times.p90,
        times.p99,
        times.p99_9,
        times.max,
    ];
    assert!(rises.is_sorted() && times.max > 0, "{times:?}");
    assert!(
        (times.min as f64..=times.max as f64).contains(&times.avg),
        "{times:?}"
    );
}

#[test]
fn one_in_a_thousand_is_missing() {
    let odds = Odds {
        drop: 0.001,
        ..Odds::default()
    };
    let (sent, received, flow) = through(odds, "flow=fsl");
    let flow = flow.unwrap();
    assert!(received < sent, "{received} {sent}");
    assert_eq!(flow.latency.measured, received);
    assert_eq!((flow.out_of_order, flow.duplicates), (0, 0));
    assert_eq!(flow.missing, sent - received);
}

#[test]
fn exactly_one_in_a_thousand() {
    let odds = Odds {
        drop_every: 1000,
        ..Odds::default()
    };
    let result = after_warm_up(odds, "flow=fsl");
    let (lost, flow) = (result.every(1000), result.flow.clone().unwrap());
    assert!(lost >= 4, "{lost}");
    assert_eq!(result.sent - result.received, lost);
    assert_eq!(
        (flow.missing, flow.latency.measured),
        (lost, result.received)
    );
    assert_eq!((flow.out_of_order, flow.duplicates, flow.old), (0, 0, 0));
}

#[test]
fn exactly_one_in_a_hundred_late_and_one_in_seventy_twice() {
    let odds = Odds {
        delay_every: 100,
        duplicate_every: 70,
        ..Odds::default()
    };
    let result = after_warm_up(odds, "flow=fsl");
    let (late, twice) = (result.every(100), result.every(70));
    let flow = result.flow.clone().unwrap();
    assert_eq!(result.received, result.sent + twice);
    assert_eq!((flow.missing, flow.duplicates, flow.old), (0, twice, 0));
    // One that is the last of all comes after none.
    assert!(
        (late - 1..=late).contains(&flow.out_of_order),
        "{late} {flow:?}"
    );
}

#[test]
fn late_packets_and_doubles_are_told_apart() {
    let odds = Odds {
        duplicate: 0.01,
        delay: 0.01,
        ..Odds::default()
    };
    let (sent, received, flow) = through(odds, "flow=fsl,vm=random");
    let flow = flow.unwrap();
    assert!(received > sent, "{received} {sent}");
    assert_eq!((flow.missing, flow.latency.measured), (0, sent));
    assert_eq!(flow.duplicates, received - sent);
    assert!(flow.out_of_order > 0, "{flow:?}");
}

#[test]
fn a_group_without_latency_is_counted() {
    let odds = Odds {
        drop: 0.01,
        ..Odds::default()
    };
    let (sent, received, flow) = through(odds, "flow=fs,vm=var2");
    assert!(
        received < sent && received > sent * 9 / 10,
        "{received} {sent}"
    );
    assert_eq!(flow, None);
}

/// Sender and receiver have the same identifications, wherever they begin.
#[test]
fn identifications_begin_where_they_are_to() {
    for settings in ["flow=fs", "flow=fs,ipv6=1"] {
        for base in [1, 0xfffe] {
            let (mut of, rates): (Vec<_>, Vec<_>) = streams(settings).into_iter().unzip();
            mark::begin_at(base, &mut of).unwrap();
            let result = after_warm_up_of(of.into_iter().zip(rates).collect(), Odds::default());
            assert!(result.sent > 1000, "{}", result.sent);
            assert_eq!(result.received, result.sent, "{settings} from {base:#x}");
        }
    }
}

/// A mark tells packets whose lengths vary, and a trailer those that are not IP.
#[test]
fn what_headers_cannot_tell_marks_do() {
    for settings in ["flow=fsl,vm=size,size=200", "flow=fs,vm=size,ipv6=1"] {
        let streams = streams(settings);
        assert!(receive::Match::of(&streams[0].0).is_none());
        let result = after_warm_up_of(streams, Odds::default());
        assert!(result.sent > 1000, "{}", result.sent);
        assert_eq!(result.received, result.sent, "{settings}");
    }
    let mut streams = streams("flow=fsl");
    streams[0].0.packet[12..14].copy_from_slice(&[0x88, 0xb5]);
    let result = after_warm_up_of(streams, Odds::default());
    let flow = result.flow.unwrap();
    assert!(result.sent > 1000, "{}", result.sent);
    assert_eq!(
        (result.received, flow.latency.measured, flow.missing),
        (result.sent, result.sent, 0)
    );
}

#[test]
fn long_packets_say_their_latency_too() {
    let (sent, received, flow) = through(Odds::default(), "flow=fsl,size=9000");
    assert_eq!((received, flow.unwrap().latency.measured), (sent, sent));
}
