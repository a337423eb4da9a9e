//! The software generator and receiver on in-process ports, in real time.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use graph::{Batch, Buffers, Desc, Frame, Pool, Port, pool};
use loadgen::clock::Monotonic;
use loadgen::device::{Count, Path, Receiver, Transmitter};
use loadgen::measure::trial;
use loadgen::model::profile::{self, Tunables, Way};
use loadgen::model::stream::Stream;
use loadgen::model::units::Pps;
use loadgen::receive::Counters;
use loadgen::send::{Cores, Generator};
use loadgen::tester::{Endpoint, Tester};
use testbed::{patience, until};

/// One end of a wire that holds a few packets and loses every `drop_each`th.
struct Wire {
    out: Arc<Mutex<VecDeque<Desc>>>,
    into: Arc<Mutex<VecDeque<Desc>>>,
    room: usize,
    drop_each: Option<u64>,
    count: u64,
}

fn wire(room: usize, drop_each: Option<u64>) -> (Wire, Wire) {
    let (a, b) = (Arc::default(), Arc::default());
    let end = |out: &Arc<_>, into: &Arc<_>| Wire {
        out: Arc::clone(out),
        into: Arc::clone(into),
        room,
        drop_each,
        count: 0,
    };
    (end(&a, &b), end(&b, &a))
}

impl Port for Wire {
    fn name(&self) -> &str {
        "wire"
    }

    fn rx(&mut self, _: &mut Buffers, frame: &mut Frame) {
        let mut queue = self.into.lock().unwrap();
        let n = queue.len().min(frame.room());
        for desc in queue.drain(..n) {
            frame.push(desc).unwrap();
        }
    }

    fn tx(&mut self, bufs: &mut Buffers, batch: &mut Batch<'_>) {
        let mut queue = self.out.lock().unwrap();
        for desc in batch.take(self.room - queue.len().min(self.room)) {
            self.count += 1;
            match self.drop_each {
                Some(each) if self.count.is_multiple_of(each) => bufs.free(desc),
                _ => queue.push_back(desc),
            }
        }
    }

    fn drain(&mut self, bufs: &mut Buffers) {
        let mut queue = self.into.lock().unwrap();
        queue.drain(..).for_each(|desc| bufs.free(desc));
    }
}

const LENGTH: Duration = Duration::from_millis(300);

fn streams(name: &str, way: Way, tunables: &str) -> Vec<Stream> {
    profile::open(name, way, &Tunables::parse(tunables).unwrap()).unwrap()
}

fn weighted(streams: &[Stream]) -> Vec<(Stream, Pps)> {
    streams
        .iter()
        .map(|s| (s.clone(), s.rate.pps(s.size(), None).unwrap()))
        .collect()
}

/// Checks that a load tester leaves no packet behind.
struct Whole(Option<Tester>, Arc<Pool>);

impl Drop for Whole {
    fn drop(&mut self) {
        drop(self.0.take());
        if !std::thread::panicking() {
            assert_eq!(self.1.available(), self.1.count());
        }
    }
}

/// A generator at each end of a wire; each receives what the other sends.
fn both_ways(wire: (Wire, Wire), out: &[Stream], back: &[Stream]) -> (Whole, Vec<Path>) {
    let pool = Pool::new(40_000, pool::STRIDE).unwrap();
    let endpoint = |port, send: &[Stream], expect: &[Stream]| Endpoint {
        port: Box::new(port),
        send: weighted(send),
        expect: expect.to_vec(),
    };
    let endpoints = vec![endpoint(wire.0, out, back), endpoint(wire.1, back, out)];
    let (tester, controls) = Tester::spawn(endpoints, pool.clone(), || ()).unwrap();
    let mut controls = controls.into_iter();
    let ((tx0, rx0), (tx1, rx1)) = (controls.next().unwrap(), controls.next().unwrap());
    let path = |tx, rx| Path {
        tx: Box::new(tx),
        rx: Box::new(rx),
    };
    (
        Whole(Some(tester), pool),
        vec![path(tx0, rx1), path(tx1, rx0)],
    )
}

#[test]
fn what_is_sent_comes_back_by_stream_and_way() {
    let (out, back) = (
        streams("imix", Way::Out, ""),
        streams("imix", Way::Back, ""),
    );
    let (_tester, mut paths) = both_ways(wire(4096, None), &out, &back);
    let trial = trial::run(&mut paths, Pps(20_000.0), LENGTH, &Monotonic::new()).unwrap();
    for (way, path) in trial.ways.iter().zip(&paths) {
        assert!(
            way.sent.packets > 0 && way.sent.packets <= way.offered,
            "{trial:?}"
        );
        assert_eq!(
            (way.received, way.other.packets),
            (way.sent, 0),
            "{trial:?}"
        );
        assert_eq!(path.tx.sent(), path.rx.counts());
        let counts: Vec<_> = path.tx.sent().iter().map(|c| c.packets).collect();
        let total: u64 = counts.iter().sum();
        for (count, share) in counts.iter().zip([28, 16, 4]) {
            assert!(count.abs_diff(total * share / 48) <= 2, "{counts:?}");
        }
    }
    let again = trial::run(&mut paths, Pps(1000.0), LENGTH, &Monotonic::new()).unwrap();
    assert!(
        again.ways[0].offered < trial.ways[0].offered && again.loss() == 0.0,
        "{again:?}"
    );
}

#[test]
fn lost_packets_are_counted_exactly() {
    let (out, back) = (
        streams("bench", Way::Out, "vm=var2"),
        streams("bench", Way::Back, "vm=random"),
    );
    let (_tester, mut paths) = both_ways(wire(4096, Some(10)), &out, &back);
    let trial = trial::run(&mut paths, Pps(10_000.0), LENGTH, &Monotonic::new()).unwrap();
    for way in &trial.ways {
        assert_eq!(way.lost(), way.sent.packets / 10, "{trial:?}");
    }
}

#[test]
fn strangers_are_others() {
    let streams = streams("bench", Way::Out, "");
    let expected = self::streams("imix", Way::Out, "");
    let pool = Pool::new(4096, pool::STRIDE).unwrap();
    let (near, far) = wire(1024, None);
    let near = Endpoint {
        port: Box::new(near),
        send: weighted(&streams),
        expect: Vec::new(),
    };
    let far = Endpoint {
        port: Box::new(far),
        send: Vec::new(),
        expect: expected,
    };
    let (tester, mut controls) = Tester::spawn(vec![near, far], pool.clone(), || ()).unwrap();
    let _whole = Whole(Some(tester), pool);
    let (_, rx) = controls.remove(1);
    let (tx, _) = controls.remove(0);
    let mut paths = [Path {
        tx: Box::new(tx),
        rx: Box::new(rx),
    }];
    let trial = trial::run(&mut paths, Pps(1000.0), LENGTH, &Monotonic::new()).unwrap();
    // The wait for late packets only regards those of a stream, so others may still be on the wire.
    let way = trial.ways[0];
    assert!(way.sent.packets > 0 && way.other.packets > 0 && way.other.packets <= way.sent.packets);
    assert_eq!(way.received.packets, 0);
}

#[test]
fn a_port_that_is_full_is_no_loss() {
    let streams = streams("bench", Way::Out, "");
    let pool = Pool::new(4096, pool::STRIDE).unwrap();
    let (port, far) = wire(100, None);
    let endpoint = Endpoint {
        port: Box::new(port),
        send: weighted(&streams),
        expect: Vec::new(),
    };
    let (tester, mut controls) = Tester::spawn(vec![endpoint], pool.clone(), || ()).unwrap();
    let (mut tx, rx) = controls.remove(0);
    tx.start(Pps::UNLIMITED).unwrap();
    assert!(until(patience(Duration::from_secs(30)), || tx.queue_full() > 0));
    tx.stop().unwrap();
    assert_eq!(tx.sent()[0].packets, 100);
    assert_eq!((tx.due(), rx.counts().len()), (100, 0));
    tx.start(Pps(1e6)).unwrap();
    let went_on = until(patience(Duration::from_secs(30)), || tx.due() > 1000);
    assert!(went_on, "the schedule has stopped: {}", tx.due());
    tx.stop().unwrap();
    assert_eq!(tx.sent()[0].packets, 100);
    drop(tester);
    assert!(tx.start(Pps(1.0)).is_err(), "the thread has ended");
    assert_eq!(far.into.lock().unwrap().len(), 100);
    // Those on the wire; all packets that were built but not sent are back.
    assert_eq!(pool.available(), 4096 - 100);
}

#[test]
fn frames_longer_than_a_buffer_are_chained() {
    let streams = streams("bench", Way::Out, "size=9216");
    let pool = Pool::new(4096, pool::STRIDE).unwrap();
    let (port, far) = wire(10, None);
    let endpoint = Endpoint {
        port: Box::new(port),
        send: weighted(&streams),
        expect: Vec::new(),
    };
    let (tester, mut controls) = Tester::spawn(vec![endpoint], pool.clone(), || ()).unwrap();
    let (tx, _) = &mut controls[0];
    tx.start(Pps::UNLIMITED).unwrap();
    assert!(until(patience(Duration::from_secs(30)), || tx.queue_full() > 0));
    tx.stop().unwrap();
    assert_eq!(tx.sent()[0].bytes, 92_160);
    drop(tester);
    let mut sent = far.into.lock().unwrap();
    assert_eq!(sent.len(), 10);
    let mut bufs = Buffers::new(pool.clone());
    sent.drain(..).for_each(|desc| bufs.free(desc));
    assert_eq!(pool.available() + bufs.cached() as u32, 4096);
}

/// A tester of two wires, of which the first ends send.
fn two_wires(streams: &[Stream]) -> (Whole, Vec<(Generator, Counters)>) {
    let pool = Pool::new(40_000, pool::STRIDE).unwrap();
    let endpoint = |port, send: &[Stream], expect: &[Stream]| Endpoint {
        port: Box::new(port),
        send: weighted(send),
        expect: expect.to_vec(),
    };
    let [(a, b), (c, d)] = [wire(4096, None), wire(4096, None)];
    let endpoints = vec![
        endpoint(a, streams, &[]),
        endpoint(b, &[], streams),
        endpoint(c, streams, &[]),
        endpoint(d, &[], streams),
    ];
    let (tester, controls) = Tester::spawn(endpoints, pool.clone(), || ()).unwrap();
    (Whole(Some(tester), pool), controls)
}

/// Awaits that something has grown: the thread goes on.
fn grows(mut value: impl FnMut() -> u64) {
    let before = value();
    assert!(until(patience(Duration::from_secs(30)), || value() > before));
}

fn packets(counts: Vec<Count>) -> u64 {
    counts.into_iter().sum::<Count>().packets
}

#[test]
fn streams_are_replaced_while_other_ports_send() {
    let (old, new) = (
        streams("bench", Way::Out, ""),
        streams("imix", Way::Out, ""),
    );
    let (mut whole, mut controls) = two_wires(&old);
    let tester = whole.0.as_mut().unwrap();
    let (mut other, mut one) = (controls.remove(2).0, controls.remove(0).0);
    other.start(Pps(20_000.0)).unwrap();
    one.start(Pps(20_000.0)).unwrap();
    grows(|| packets(one.sent()));
    let mut rx = tester.expect(1, &new).unwrap();
    let mut tx = tester.send(0, &weighted(&new)).unwrap();
    assert!(one.start(Pps(1.0)).is_err(), "its place is taken");
    assert_eq!((tx.sent().len(), rx.counts().len()), (3, 3));
    grows(|| packets(other.sent()));
    rx.start_over();
    tx.start(Pps(20_000.0)).unwrap();
    grows(|| tx.sent().iter().map(|count| count.packets).min().unwrap());
    tx.stop().unwrap();
    other.stop().unwrap();
    let came = || tx.sent() == rx.counts();
    assert!(
        until(patience(Duration::from_secs(30)), came),
        "{:?} {:?}",
        tx.sent(),
        rx.counts()
    );
    let there = &controls[1].1;
    let came = || other.sent() == there.counts();
    assert!(until(patience(Duration::from_secs(30)), came));
}

#[test]
fn a_run_ends_when_its_time_is_over() {
    let (whole, mut controls) = two_wires(&streams("bench", Way::Out, ""));
    let mut tx = Cores(vec![controls.remove(0).0]);
    for run in 1..=2 {
        tx.start_for(Pps(1000.0), Some(Duration::from_millis(50)))
            .unwrap();
        assert!(until(patience(Duration::from_secs(30)), || tx.is_over()));
        // A rate alone does not start it again.
        tx.set_rate(Pps(2000.0));
        tx.start(Pps(3000.0)).unwrap();
        tx.stop().unwrap();
        assert_eq!(tx.due(), 50 * run);
    }
    drop(whole);
    assert!(
        tx.start_for(Pps(1.0), None).is_err(),
        "the thread has ended"
    );
}

#[test]
fn a_sender_that_is_replaced_gives_its_packets_back() {
    let pool = Pool::new(4096, pool::STRIDE).unwrap();
    let (port, _far) = wire(100, None);
    let endpoint = Endpoint {
        port: Box::new(port),
        send: weighted(&streams("bench", Way::Out, "")),
        expect: Vec::new(),
    };
    let (mut tester, mut controls) = Tester::spawn(vec![endpoint], pool.clone(), || ()).unwrap();
    let (tx, _) = &mut controls[0];
    tx.start(Pps::UNLIMITED).unwrap();
    assert!(until(patience(Duration::from_secs(30)), || tx.queue_full() > 0));
    tester.send(0, &[]).unwrap();
    assert_eq!(tx.sent()[0].packets, 100);
    drop(tester);
    assert_eq!(pool.available(), 4096 - 100, "all but those on the wire");
}
