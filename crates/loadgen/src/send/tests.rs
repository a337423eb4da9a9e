//! Runs that end and pause, at times that are given.

use std::cell::Cell;

use graph::{Batch, Pool, pool};

use super::*;
use crate::device::Transmitter;
use crate::model::profile::{self, Tunables, Way};
use crate::model::stream::Mode;

/// A clock that is set.
struct Given(Cell<u64>);

impl Clock for Given {
    fn now(&self) -> Nanos {
        Nanos(self.0.get())
    }

    fn sleep(&self, _: Duration) {}
}

/// A port that takes all packets.
struct Open;

impl Port for Open {
    fn name(&self) -> &str {
        "open"
    }

    fn rx(&mut self, _: &mut Buffers, _: &mut Frame) {}

    fn tx(&mut self, bufs: &mut Buffers, batch: &mut Batch<'_>) {
        batch.take(batch.len()).for_each(|desc| bufs.free(desc));
    }
}

const MILLISECOND: u64 = 1_000_000;

struct Rig {
    sender: Sender,
    generator: Generator,
    clock: Given,
    port: Open,
    bufs: Buffers,
}

impl Rig {
    /// One stream of `bench`.
    fn new(mode: Mode) -> Self {
        let mut streams = profile::open("bench", Way::Out, &Tunables::default()).unwrap();
        streams[0].mode = mode;
        let (sender, generator) = Sender::new(&[(streams.remove(0), Pps(1.0))], 1);
        Self {
            sender,
            generator,
            clock: Given(Cell::new(MILLISECOND)),
            port: Open,
            bufs: Buffers::new(Pool::new(4096, pool::STRIDE).unwrap()),
        }
    }

    /// Serves the port for so many milliseconds; returns how many packets have been due by then.
    fn serve(&mut self, milliseconds: u64) -> u64 {
        for _ in 0..milliseconds {
            self.poll();
            self.clock.0.set(self.clock.0.get() + MILLISECOND);
        }
        self.poll();
        assert_eq!(self.generator.sent()[0].packets, self.generator.due());
        self.generator.due()
    }

    fn poll(&mut self) {
        let Self { port, bufs, .. } = self;
        // A stop takes a second look: nothing more was to be sent.
        for _ in 0..2 {
            self.sender.poll(&self.clock, port, bufs);
        }
    }

    fn pause(&mut self) {
        self.generator.want_bits(PAUSED.to_bits());
        self.poll();
    }
}

#[test]
fn a_run_has_the_packets_of_its_time() {
    let mut rig = Rig::new(Mode::Continuous);
    rig.generator.limit(Some(Duration::from_millis(50)));
    for run in 1..=2 {
        rig.generator.set_rate(Pps(1000.0));
        assert_eq!(rig.serve(49), 50 * run);
        assert!(!rig.generator.is_over());
        rig.serve(1);
        assert!(rig.generator.is_over());
        // A rate alone does not start it again.
        rig.generator.set_rate(Pps(2000.0));
        assert_eq!(rig.serve(20), 50 * run);
        rig.generator.set_rate(Pps(0.0));
        rig.poll();
    }
}

/// A stop that comes when the end has been noticed late sends nothing beyond it.
#[test]
fn a_stop_after_the_end_changes_nothing() {
    let mut rig = Rig::new(Mode::Continuous);
    rig.generator.limit(Some(Duration::from_millis(10)));
    rig.generator.set_rate(Pps(1000.0));
    rig.serve(5);
    rig.clock.0.set(12 * MILLISECOND);
    rig.sender.poll(&rig.clock, &mut rig.port, &mut rig.bufs);
    rig.generator.set_rate(Pps(0.0));
    assert_eq!(rig.serve(5), 10);
}

#[test]
fn a_pause_takes_nothing_from_a_run() {
    let mut rig = Rig::new(Mode::Continuous);
    rig.generator.limit(Some(Duration::from_millis(100)));
    rig.generator.set_rate(Pps(1000.0));
    assert_eq!(rig.serve(40), 41);
    rig.pause();
    assert_eq!(rig.serve(500), 41);
    assert!(!rig.generator.is_over());
    // 60 ms are left, from the packet that was next on.
    rig.generator.set_rate(Pps(2000.0));
    assert_eq!(rig.serve(200), 41 + 120);
    assert!(rig.generator.is_over());
    rig.pause();
    rig.generator.set_rate(Pps(2000.0));
    assert_eq!(rig.serve(200), 41 + 120, "nothing is left");
}

#[test]
fn a_burst_goes_on_after_a_pause_and_begins_anew_after_a_stop() {
    let mut rig = Rig::new(Mode::SingleBurst { packets: 100 });
    rig.generator.set_rate(Pps(1000.0));
    assert_eq!(rig.serve(29), 30);
    rig.pause();
    rig.generator.set_rate(Pps(1000.0));
    assert_eq!(rig.serve(200), 100);
    assert!(rig.generator.is_over());
    for stop in [PAUSED, 0.0] {
        rig.generator.want_bits(stop.to_bits());
        rig.poll();
    }
    rig.generator.set_rate(Pps(1000.0));
    assert_eq!(rig.serve(200), 200);
}
