//! Packets and bits a second: measured once a second, and smoothed as T-Rex does.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use loadgen::device::Count;
use session::Session;

/// Time between two samples at least.
const EVERY: Duration = Duration::from_secs(1);

/// What is sent and received in a second.
#[derive(Debug, Clone, Copy, Default)]
pub struct Rate {
    pub tx: Speed,
    pub rx: Speed,
    before: (Count, Count),
}

/// Packets a second, and layer 2 bits a second.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Speed {
    pub pps: f64,
    pub bps: f64,
}

/// The rates of all ports, and of packet groups by port and number.
pub struct Rates {
    sampled: Instant,
    pub ports: Vec<Rate>,
    pub groups: BTreeMap<(usize, u32), Rate>,
}

impl Rates {
    pub fn new(ports: usize) -> Self {
        Self {
            sampled: Instant::now(),
            ports: vec![Rate::default(); ports],
            groups: BTreeMap::new(),
        }
    }

    /// Takes a sample, if it is time to; of groups only where there are some.
    pub fn sample(&mut self, now: Instant, session: &Session, has_groups: bool) {
        let time = now.saturating_duration_since(self.sampled);
        if time < EVERY {
            return;
        }
        self.sampled = now;
        for (rate, port) in self.ports.iter_mut().zip(session.port_statistics()) {
            rate.add(port.sent, port.received, time);
        }
        let mut groups = BTreeMap::new();
        if has_groups {
            for row in session.statistics().streams {
                let Some(group) = row.group else { continue };
                let known = self.groups.get(&(row.port, group)).copied();
                let mut rate = known.unwrap_or_default();
                rate.add(row.sent, row.received, time);
                groups.insert((row.port, group), rate);
            }
        }
        self.groups = groups;
    }
}

impl Rate {
    fn add(&mut self, sent: Count, received: Count, time: Duration) {
        self.tx.add(sent.since(self.before.0), time);
        self.rx.add(received.since(self.before.1), time);
        self.before = (sent, received);
    }
}

impl Speed {
    fn add(&mut self, count: Count, time: Duration) {
        let a_second = |count: u64| count as f64 / time.as_secs_f64();
        self.pps = (self.pps + a_second(count.packets)) / 2.0;
        self.bps = (self.bps + a_second(count.bytes) * 8.0) / 2.0;
    }
}

impl std::iter::Sum for Speed {
    fn sum<I: Iterator<Item = Self>>(speeds: I) -> Self {
        speeds.fold(Self::default(), |a, b| Self {
            pps: a.pps + b.pps,
            bps: a.bps + b.bps,
        })
    }
}
