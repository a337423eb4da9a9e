//! A device, a generator and a clock that exist in numbers only, for tests of the controller.

use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use crate::clock::{Clock, Nanos};
use crate::device::{Count, Failure, Path, Receiver, Transmitter};
use crate::units::Pps;

/// What the simulated device and generator can do, each way.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Device {
    /// Packets a second that the device forwards.
    pub capacity: f64,
    /// Share of the capacity that is left when twice as much is offered.
    pub collapse: f64,
    /// Share that is lost at any rate.
    pub background: f64,
    /// Packets a second that the generator can send.
    pub ceiling: f64,
    /// Packets come back so much later.
    pub delay: Duration,
    /// In each so-manieth run the generator sends 1 % less than it should; 0: never.
    pub held_up_each: u32,
    /// The generator does not start.
    pub broken: bool,
}

impl Default for Device {
    fn default() -> Self {
        let delay = Duration::from_millis(30);
        Device {
            capacity: 1e6,
            collapse: 1.0,
            background: 0.0,
            ceiling: 15e6,
            delay,
            held_up_each: 0,
            broken: false,
        }
    }
}

impl Device {
    fn forwards(&self, sent: f64) -> f64 {
        let load = sent / self.capacity;
        let left = if load > 1.0 {
            1.0 - (1.0 - self.collapse) * (load - 1.0).min(1.0)
        } else {
            1.0
        };
        sent.min(self.capacity * left) * (1.0 - self.background)
    }
}

#[derive(Debug, Default)]
struct State {
    now: Nanos,
    lines: Vec<Line>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Line {
    rate: f64,
    starts: u32,
    due: f64,
    sent: f64,
    received: f64,
    /// On the way back: packets, arriving at.
    late: (f64, Nanos),
}

/// The simulated world: its clock is the only thing that moves it.
#[derive(Debug, Clone)]
pub(crate) struct Simulation {
    device: Device,
    state: Arc<Mutex<State>>,
}

impl Simulation {
    pub fn new(device: Device) -> Self {
        Simulation {
            device,
            state: Arc::default(),
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
    fn now(&self) -> Nanos {
        self.state().now
    }

    fn sleep(&self, duration: Duration) {
        let device = self.device;
        let mut state = self.state();
        state.now = state.now.after(duration);
        let now = state.now;
        let seconds = duration.as_secs_f64();
        for line in &mut state.lines {
            if now >= line.late.1 {
                line.received += std::mem::take(&mut line.late.0);
            }
            if line.rate > 0.0 {
                let held_up =
                    device.held_up_each > 0 && line.starts.is_multiple_of(device.held_up_each);
                let sent = line.rate.min(device.ceiling) * if held_up { 0.99 } else { 1.0 };
                line.due += seconds
                    * if line.rate.is_finite() {
                        line.rate
                    } else {
                        sent
                    };
                line.sent += seconds * sent;
                line.late = (
                    line.late.0 + seconds * device.forwards(sent),
                    now.after(device.delay),
                );
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
        packets: packets.round() as u64,
        bytes: packets.round() as u64 * 64,
    }
}

impl Transmitter for Half {
    fn start(&mut self, rate: Pps) -> Result<(), Failure> {
        if self.world.device.broken {
            return Err("no carrier".into());
        }
        self.with(|line| line.starts += 1);
        self.set_rate(rate);
        Ok(())
    }

    fn set_rate(&mut self, rate: Pps) {
        self.with(|line| line.rate = rate.0);
    }

    fn due(&self) -> u64 {
        self.with(|line| line.due.round() as u64)
    }

    fn sent(&self) -> Vec<Count> {
        vec![self.with(|line| count(line.sent))]
    }

    fn stop(&mut self) -> Result<(), Failure> {
        self.with(|line| line.rate = 0.0);
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
