//! `parshall bench generator`: how many packets a second the load tester's generator makes on one
//! core.
//!
//! It sends as fast as it can to a port that keeps what it gets, so every frame is written into a
//! buffer of its own. Outside the timed part each frame is compared with what the profile says.
//! Scenarios run interleaved, round by round.

use std::error::Error;
use std::fmt;
use std::time::{Duration, Instant};

use report::Conditions;
use report::model::Machine;
use serde::Serialize;

use graph::pool::STRIDE;
use graph::{Batch, Buffers, Desc, Frame, Pool, Port};
use loadgen::clock::{Monotonic, Nanos};
use loadgen::device::Transmitter;
use loadgen::dry::{Dry, SEED};
use loadgen::model::profile::{self, Tunables, Way};
use loadgen::model::stream::{Stream, base_rates};
use loadgen::model::units::Pps;
use loadgen::send::{Generator, Sender};
use loadgen::source::mark::TRAILER;

use super::{ADDITIONS, Speeds, Spread, additions, last_cpu, measure};

/// Name, profile and settings; 64 byte frames unless the profile mixes sizes.
const SCENARIOS: [(&str, &str, &str); 4] = [
    ("fixed", "bench", "size=64"),
    ("var2-csum", "bench", "size=64,vm=var2"),
    ("latency", "bench", "size=64,flow=fsl"),
    ("imix", "imix", ""),
];

/// Frames of a batch, after which the clock stops and they are compared: so many that reading the
/// clock costs nothing for each.
const BATCH: usize = 4096;
/// Batches of a round: some milliseconds, so that scenarios take turns often and a change of the
/// machine's clock meets all of them.
const BATCHES: usize = 64;
/// Buffers beside those of a batch: what the caches hold.
const SPARE: u32 = 4096;

/// One scenario's result.
#[derive(Debug, Serialize)]
pub struct Row {
    /// `fixed`, `var2-csum`, `latency`, `imix`.
    pub name: &'static str,
    /// Profile and settings.
    pub what: String,
    /// Millions of packets a second.
    pub mpps: Spread,
    /// Nanoseconds a packet.
    pub nanos_per_packet: Spread,
    /// TSC cycles a packet, divided by those of an addition in the same round; null if not known.
    pub additions_per_packet: Option<Spread>,
    /// The same of each round; empty if they are not known.
    pub round_additions: Vec<f64>,
}

/// The output of `bench generator --json`.
#[derive(Debug, Serialize)]
pub struct Report {
    /// Rounds of each scenario.
    pub rounds: usize,
    /// Packets of a round.
    pub packets: usize,
    /// The results.
    pub rows: Vec<Row>,
    /// The machine.
    pub machine: Machine,
    /// The conditions meanwhile.
    pub conditions: Conditions,
}

/// Keeps what is sent.
struct Keep(Vec<Desc>);

impl Port for Keep {
    fn name(&self) -> &str {
        "keep"
    }

    fn rx(&mut self, _: &mut Buffers, _: &mut Frame) {}

    fn tx(&mut self, _: &mut Buffers, batch: &mut Batch<'_>) {
        self.0.extend(batch.take(BATCH - self.0.len()));
    }
}

struct Scenario {
    name: &'static str,
    what: String,
    sender: Sender,
    _control: Generator,
    expected: Dry,
    /// Bytes at the end of a frame that are the time, which is another one here.
    time: usize,
    nanos: Vec<f64>,
}

impl Scenario {
    fn new((name, profile, settings): (&'static str, &str, &str)) -> Result<Self, Box<dyn Error>> {
        let streams = profile::open(profile, Way::Out, &Tunables::parse(settings)?)?;
        let rates = base_rates(&streams, None).ok_or("a rate in %")?;
        let streams: Vec<(Stream, Pps)> = streams.into_iter().zip(rates).collect();
        let (sender, mut control) = Sender::new(&streams, SEED);
        control.set_rate(Pps::UNLIMITED);
        let latency = streams.iter().any(|(s, _)| s.is_fixed());
        Ok(Self {
            name,
            what: format!("{profile} {settings}").trim().to_owned(),
            sender,
            _control: control,
            expected: Dry::new(&streams, Pps::UNLIMITED),
            time: if latency { TRAILER / 2 } else { 0 },
            nanos: Vec::new(),
        })
    }

    fn round(&mut self, port: &mut Keep, bufs: &mut Buffers) -> Result<(), Box<dyn Error>> {
        let clock = Monotonic::new();
        let mut spent = Duration::ZERO;
        for _ in 0..BATCHES {
            let begin = Instant::now();
            while port.0.len() < BATCH {
                if self.sender.poll(&clock, port, bufs) == 0 {
                    return Err(format!("{}: the generator stopped", self.name).into());
                }
            }
            spent += begin.elapsed();
            for desc in port.0.drain(..) {
                let right = self.is_next(bufs.pool().bytes_of(&desc));
                bufs.free(desc);
                if !right {
                    return Err(format!("{}: a frame came out wrong", self.name).into());
                }
            }
        }
        self.nanos
            .push(spent.as_nanos() as f64 / (BATCH * BATCHES) as f64);
        Ok(())
    }

    /// Returns true if the frame is the next one of the profile.
    fn is_next(&mut self, frame: &[u8]) -> bool {
        let Some((_, _, expected)) = self.expected.next(Nanos(u64::MAX)) else {
            return false;
        };
        let end = expected.len() - self.time;
        frame.len() == expected.len() && frame[..end] == expected[..end]
    }

    fn row(self, ghz: f64, speeds: &Speeds) -> Row {
        let cycles: Vec<f64> = self.nanos.iter().map(|nanos| nanos * ghz).collect();
        let round_additions = speeds.divide(&cycles);
        Row {
            name: self.name,
            what: self.what,
            mpps: Spread::of(self.nanos.iter().map(|nanos| 1e3 / nanos)),
            nanos_per_packet: Spread::of(self.nanos.into_iter()),
            additions_per_packet: Spread::of_some(&round_additions),
            round_additions,
        }
    }
}

/// Runs all scenarios, `rounds` times each, after a round that warms up.
///
/// # Errors
/// No memory, or a frame came out wrong.
pub fn generator(rounds: usize) -> Result<Report, Box<dyn Error>> {
    // Where pinning is not allowed, measure all the same.
    let _ = kernel::cpu::pin(last_cpu());
    let mut bufs = Buffers::new(Pool::new(BATCH as u32 + SPARE, STRIDE)?);
    let mut port = Keep(Vec::with_capacity(BATCH));
    let scenarios = SCENARIOS.into_iter().map(Scenario::new);
    let mut scenarios = scenarios.collect::<Result<Vec<_>, _>>()?;
    let machine = lab::machine::describe();
    let (speeds, conditions) = measure(rounds, |round| {
        for scenario in &mut scenarios {
            // Neither the warm-up nor an attempt that was disturbed.
            scenario.nanos.truncate(round.saturating_sub(1));
            scenario.round(&mut port, &mut bufs)?;
        }
        Ok(())
    })?;
    let ghz = graph::cycles::per_second() / 1e9;
    for scenario in &mut scenarios {
        scenario.sender.close(&mut bufs);
    }
    Ok(Report {
        rounds,
        packets: BATCH * BATCHES,
        rows: scenarios.into_iter().map(|s| s.row(ghz, &speeds)).collect(),
        machine,
        conditions,
    })
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "one core, {} rounds of {} packets interleaved; Mpps",
            self.rounds, self.packets
        )?;
        writeln!(
            f,
            "{:<12} {:>8} {:>8} {:>8} {:>9}",
            "", "median", "min", "max", "additions"
        )?;
        for row in &self.rows {
            let Spread { median, min, max } = row.mpps;
            writeln!(
                f,
                "{:<12} {median:>8.1} {min:>8.1} {max:>8.1} {:>9}   {}",
                row.name,
                additions(row.additions_per_packet),
                row.what
            )?;
        }
        write!(f, "{ADDITIONS}{}", self.conditions.text())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The figures are the machine's; that every frame is right is checked in each round.
    #[test]
    fn every_scenario_is_measured() {
        let report = generator(1).unwrap();
        assert_eq!(report.rows.len(), SCENARIOS.len());
        assert!(report.rows.iter().all(|row| row.mpps.median > 0.0));
    }

    #[test]
    fn a_wrong_frame_is_noticed() {
        let mut scenario = Scenario::new(SCENARIOS[1]).unwrap();
        let (_, _, frame) = Scenario::new(SCENARIOS[1])
            .unwrap()
            .expected
            .next(Nanos(0))
            .map(|(a, s, f)| (a, s, f.to_vec()))
            .unwrap();
        assert!(scenario.is_next(&frame));
        assert!(
            !scenario.is_next(&frame),
            "the second one has other addresses"
        );
    }
}
