//! The generator keeps its schedule, says how well, and hides nothing where it cannot.

use std::cell::Cell;
use std::time::Duration;

use graph::{Batch, Buffers, Frame, Pool, Port, pool};
use loadgen::clock::{Clock, Nanos};
use loadgen::device::{Delay, Pacing, Transmitter};
use loadgen::histogram::Times;
use loadgen::model::profile::{self, Tunables, Way};
use loadgen::model::units::Pps;
use loadgen::send::{Generator, Sender};

/// A clock that stands still until it is moved.
struct Hand(Cell<u64>);

impl Clock for Hand {
    fn now(&self) -> Nanos {
        Nanos(self.0.get())
    }

    fn sleep(&self, duration: Duration) {
        self.0.set(self.now().after(duration).0);
    }
}

/// A port that takes and forgets everything, or nothing.
struct Gate {
    open: bool,
}

impl Port for Gate {
    fn name(&self) -> &str {
        "gate"
    }

    fn rx(&mut self, _: &mut Buffers, _: &mut Frame) {}

    fn tx(&mut self, bufs: &mut Buffers, batch: &mut Batch<'_>) {
        let room = if self.open { batch.len() } else { 0 };
        batch.take(room).for_each(|desc| bufs.free(desc));
    }
}

fn sender() -> (Sender, Generator) {
    let streams = profile::open("bench", Way::Out, &Tunables::parse("vm=var2").unwrap()).unwrap();
    let streams: Vec<_> = streams.into_iter().map(|s| (s, Pps(1.0))).collect();
    Sender::new(&streams, 1)
}

/// Sends for a second at `rate`, looking at the clock every `tick`.
fn second(open: bool, rate: Pps, tick: Duration) -> (u64, u64, Delay, Times) {
    let port = &mut Gate { open };
    let (mut sender, mut generator) = sender();
    let mut bufs = Buffers::new(Pool::new(4096, pool::STRIDE).unwrap());
    let clock = Hand(Cell::new(1_000_000));
    let begin = clock.now();
    generator.set_rate(rate);
    while clock.now() <= begin.after(Duration::from_secs(1)) {
        sender.poll(&clock, port, &mut bufs);
        clock.sleep(tick);
    }
    generator.set_rate(Pps(0.0));
    for _ in 0..100 {
        sender.poll(&clock, port, &mut bufs);
        clock.sleep(Duration::from_millis(1));
    }
    sender.close(&mut bufs);
    let Pacing { gaps, delay } = generator.pacing();
    let (due, sent) = (generator.due(), generator.sent()[0].packets);
    (due, sent, delay.unwrap(), gaps)
}

#[test]
fn rates_are_right_and_packets_leave_when_they_are_due() {
    for rate in [1e3, 1e4, 1e5, 1e6] {
        let tick = 700;
        let (due, sent, delay, gaps) = second(true, Pps(rate), Duration::from_nanos(tick));
        assert_eq!(
            (due, delay.late.measured, delay.packets),
            (sent, sent, sent)
        );
        // One at the beginning and one at the end of the second.
        assert!(sent.abs_diff(rate as u64 + 1) <= 1, "{sent} at {rate}");
        let exact = delay.pps().unwrap().0 / rate - 1.0;
        assert!(exact.abs() < 1e-5, "{exact} at {rate}");
        assert!(delay.late.max <= tick, "{:?}", delay.late);
        // Those due at one look leave together, the others within a look of their time.
        assert_eq!(gaps.measured, sent - 1);
        let apart = 1e9 / rate;
        assert!((gaps.avg / apart - 1.0).abs() < 1e-3, "{gaps:?} at {rate}");
        assert!(gaps.max as f64 <= apart + tick as f64, "{gaps:?} at {rate}");
    }
}

#[test]
fn a_thread_that_comes_late_says_so() {
    let tick = Duration::from_millis(1);
    let (due, sent, delay, gaps) = second(true, Pps(1e5), tick);
    assert_eq!((due, delay.late.measured), (sent, sent));
    let late = delay.late;
    assert!((980_000..=1_000_000).contains(&late.max), "{late:?}");
    assert!((480_000..=520_000).contains(&late.p50), "{late:?}");
    // A hundred each millisecond: one of them after a millisecond, the others with it.
    assert_eq!((gaps.p90, gaps.p99_9, gaps.max), (0, 1_000_000, 1_000_000));
}

#[test]
fn what_a_port_does_not_take_is_short() {
    let tick = Duration::from_micros(5);
    let (due, sent, delay, gaps) = second(false, Pps(1e5), tick);
    assert!(due.abs_diff(100_001) <= 1, "{due}");
    assert_eq!((sent, delay.late.measured, delay.pps()), (0, 0, None));
    assert_eq!(gaps.measured, 0);
}
