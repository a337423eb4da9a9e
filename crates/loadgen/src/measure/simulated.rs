//! A simulated device, generator and clock, for tests of the measurements.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use crate::clock::{Clock, Nanos};
use crate::device::{Count, Failure, Path, Receiver, Transmitter};
use crate::model::units::Pps;

/// The simulated device and generator, in each direction.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Device {
    /// Packets a second that the device forwards.
    pub capacity: f64,
    /// Share of the capacity that is left when twice as much is offered.
    pub collapse: f64,
    /// Share of the packets that is lost at any rate.
    pub background: f64,
    /// Packets a second that the generator can send.
    pub ceiling: f64,
    /// Above half the capacity the generator is late by this, as if it shared a processor with the
    /// device; it sends what is missing after the end of its schedule.
    pub late: Duration,
    /// Time that a packet takes through the device.
    pub delay: Duration,
    /// In every n-th run, where n is this, the generator sends 1 % too little; 0: in none.
    pub held_up_each: u32,
    /// Relative standard deviation of the capacity from run to run; normally distributed.
    pub noise: f64,
    /// Seed of the scatter.
    pub seed: u64,
    /// Packets that the device can hold when more arrive than it forwards.
    pub queue: f64,
    /// For this long after the start everything is half as fast.
    pub slow: Duration,
    /// The generator's rates are multiples of this; 0: any.
    pub grain: f64,
    /// Time at which the clock is interrupted.
    pub interrupted: Duration,
    /// At the first time everything but the device stands still for as long as the second says.
    pub stopped: (Duration, Duration),
    /// The generator fails to start.
    pub broken: bool,
}

impl Default for Device {
    fn default() -> Self {
        let delay = Duration::from_millis(30);
        Self {
            capacity: 1e6,
            collapse: 1.0,
            background: 0.0,
            ceiling: 15e6,
            late: Duration::ZERO,
            delay,
            held_up_each: 0,
            noise: 0.0,
            seed: 0,
            queue: 0.0,
            slow: Duration::ZERO,
            grain: 0.0,
            interrupted: Duration::MAX,
            stopped: (Duration::MAX, Duration::ZERO),
            broken: false,
        }
    }
}

impl Device {
    /// Packets a second that are forwarded when `sent` are offered and none wait, and how many
    /// could be; both before the loss that occurs at any rate.
    fn forwards(&self, sent: f64, capacity: f64) -> (f64, f64) {
        let load = sent / capacity;
        let left = if load > 1.0 {
            1.0 - (1.0 - self.collapse) * (load - 1.0).min(1.0)
        } else {
            1.0
        };
        (sent.min(capacity * left), capacity * left)
    }

    /// The factor of this run's capacity.
    fn scatter(&self, state: &mut State) -> f64 {
        // The sum of twelve even numbers is close to a normal distribution of variance 1 about 6.
        let normal: f64 = (0..12).map(|_| state.random.even()).sum::<f64>() - 6.0;
        (1.0 + self.noise * normal).max(0.1)
    }
}

/// SplitMix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators, 2014).
#[derive(Debug, Default)]
pub(crate) struct Random(pub u64);

impl Random {
    /// Evenly distributed from 0 to below 1.
    pub fn even(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) >> 11) as f64 / (1u64 << 53) as f64
    }

    /// From 0 to below `end`.
    pub fn below(&mut self, end: usize) -> usize {
        (self.even() * end as f64) as usize
    }
}

#[derive(Debug, Default)]
struct State {
    now: Nanos,
    lines: Vec<Line>,
    random: Random,
}

#[derive(Debug, Clone, Default)]
struct Line {
    rate: f64,
    starts: u32,
    scatter: f64,
    due: f64,
    sent: f64,
    /// Packets that are due but not sent. They are sent at the pace of the schedule, even after its
    /// end.
    owed: f64,
    pace: f64,
    waiting: f64,
    received: f64,
    /// Fractions of a packet, not sent or forwarded yet.
    unsent: f64,
    parts: f64,
    /// On their way back, in order.
    late: VecDeque<Late>,
}

/// Packets that arrive evenly between two moments.
#[derive(Debug, Clone, Copy)]
struct Late {
    packets: f64,
    from: Nanos,
    to: Nanos,
}

impl Late {
    /// Takes out what has arrived by `now`.
    fn arrived(&mut self, now: Nanos) -> f64 {
        let (passed, length) = (now.since(self.from), self.to.since(self.from));
        let share = (passed.as_secs_f64() / length.as_secs_f64()).min(1.0);
        let packets = (self.packets * share).floor();
        self.packets -= packets;
        self.from = now.min(self.to);
        packets
    }
}

/// Adds `more` to `left` and takes the whole packets out of it.
fn whole(left: &mut f64, more: f64) -> f64 {
    *left += more;
    let packets = left.floor();
    *left -= packets;
    packets
}

/// Time passes in steps of this length.
const STEP: Duration = Duration::from_millis(10);

impl Line {
    /// Simulates the time from `before` to `now`.
    fn pass(&mut self, device: &Device, before: Nanos, now: Nanos) {
        let seconds = now.since(before).as_secs_f64();
        let pace = if now <= Nanos(0).after(device.slow) {
            0.5
        } else {
            1.0
        };
        let sent = self.sends(device, pace * device.ceiling, seconds);
        let packets = whole(&mut self.unsent, seconds * sent);
        self.sent += packets;
        let (forwarded, able) = device.forwards(sent, pace * device.capacity * self.scatter);
        let through = packets * forwarded / sent.max(f64::MIN_POSITIVE);
        let waiting = (self.waiting + packets - through).min(device.queue);
        let drained = waiting.min((able - forwarded).max(0.0) * seconds);
        self.waiting = waiting - drained;
        let through = (through + drained) * (1.0 - device.background);
        let packets = whole(&mut self.parts, through);
        if packets > 0.0 {
            let (from, to) = (before.after(device.delay), now.after(device.delay));
            self.late.push_back(Late { packets, from, to });
        }
        let back = self.late.iter_mut().take_while(|late| late.from < now);
        self.received += back.map(|late| late.arrived(now)).sum::<f64>();
        while self.late.pop_front_if(|late| late.to <= now).is_some() {}
    }

    /// Packets a second that the generator sends during the given seconds.
    fn sends(&mut self, device: &Device, ceiling: f64, seconds: f64) -> f64 {
        if self.rate.is_infinite() {
            self.due += seconds * ceiling;
            return ceiling;
        }
        self.due += seconds * self.rate;
        let held_up = device.held_up_each > 0 && self.starts.is_multiple_of(device.held_up_each);
        if self.rate > 0.0 {
            self.pace = if held_up { 0.99 * self.rate } else { self.rate };
        }
        let late = if self.rate > 0.5 * device.capacity {
            self.rate * device.late.as_secs_f64()
        } else {
            0.0
        };
        let wanted = self.owed + seconds * self.rate;
        let sent = (wanted - late).clamp(0.0, seconds * self.pace.min(ceiling));
        self.owed = wanted - sent;
        if self.rate > 0.0 {
            // Packets that are later still are given up.
            self.owed = self.owed.min(late);
        }
        sent / seconds
    }
}

/// The simulation. Only its clock makes time pass.
#[derive(Debug, Clone)]
pub(crate) struct Simulation {
    device: Device,
    state: Arc<Mutex<State>>,
}

impl Simulation {
    pub fn new(device: Device) -> Self {
        let state = State {
            random: Random(device.seed),
            ..State::default()
        };
        Self {
            device,
            state: Arc::new(Mutex::new(state)),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    /// `count` directions through the device.
    pub fn paths(&self, count: usize) -> Vec<Path> {
        self.state().lines = vec![Line::default(); count];
        let half = |line| Half {
            world: self.clone(),
            line,
        };
        (0..count)
            .map(|i| Path {
                tx: Box::new(half(i)),
                rx: Box::new(half(i)),
            })
            .collect()
    }
}

impl Clock for Simulation {
    fn is_interrupted(&self) -> bool {
        self.now() >= Nanos(0).after(self.device.interrupted)
    }

    fn now(&self) -> Nanos {
        self.state().now
    }

    fn sleep(&self, duration: Duration) {
        let mut state = self.state();
        let end = state.now.after(duration);
        while state.now < end {
            let step = end.since(state.now).min(STEP);
            let (before, now) = (state.now, state.now.after(step));
            let (at, length) = self.device.stopped;
            let at = Nanos(0).after(at);
            state.now = if before <= at && at < now {
                now.after(length)
            } else {
                now
            };
            for line in &mut state.lines {
                line.pass(&self.device, before, now);
            }
        }
    }
}

struct Half {
    world: Simulation,
    line: usize,
}

impl Half {
    fn with<T>(&self, f: impl FnOnce(&mut Line) -> T) -> T {
        f(&mut self.world.state().lines[self.line])
    }
}

fn count(packets: f64) -> Count {
    Count {
        packets: packets.floor() as u64,
        bytes: packets.floor() as u64 * 64,
    }
}

impl Transmitter for Half {
    fn start(&mut self, rate: Pps) -> Result<(), Failure> {
        if self.world.device.broken {
            return Err("no carrier".into());
        }
        let scatter = self.world.device.scatter(&mut self.world.state());
        self.with(|line| {
            line.starts += 1;
            line.scatter = scatter;
            (line.unsent, line.parts) = (0.0, 0.0);
        });
        self.set_rate(rate);
        Ok(())
    }

    fn nearest(&self, rate: Pps) -> Pps {
        let grain = self.world.device.grain;
        if grain > 0.0 && rate.0 > 0.0 && rate.is_limited() {
            Pps((rate.0 / grain).round().max(1.0) * grain)
        } else {
            rate
        }
    }

    fn set_rate(&mut self, rate: Pps) {
        let rate = self.nearest(rate);
        self.with(|line| line.rate = rate.0);
    }

    fn due(&self) -> u64 {
        self.with(|line| line.due.floor() as u64)
    }

    fn sent(&self) -> Vec<Count> {
        vec![self.with(|line| count(line.sent))]
    }

    fn stop(&mut self) -> Result<(), Failure> {
        self.set_rate(Pps(0.0));
        self.world.sleep(self.world.device.late);
        self.with(|line| line.owed = 0.0);
        Ok(())
    }
}

impl Receiver for Half {
    fn counts(&self) -> Vec<Count> {
        vec![self.with(|line| count(line.received))]
    }

    fn other(&self) -> Count {
        Count::default()
    }
}
