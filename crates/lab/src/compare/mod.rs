//! The head-to-head comparison: each device in turn, under the same loads from the same generator
//! on the same machine.

mod attribution;
pub mod device;
mod ip6;
mod latency;
pub mod load;
mod packets;
pub mod plan;
mod routes;
pub mod topology;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use loadgen::measure::search::{Event, Found};
use loadgen::measure::{point, repeat};
use report::Conditions;
use report::model::{Ceiling, LabResult, Machine, PortMode, Run};
use report::setup::{Direction, Dut, Family, Forwarding, Io, Lane, Load, Spread};

use self::attribution::Alone;
use self::device::{Cpus, Running};
use self::load::{FlatOut, Outcome};
use self::plan::Depth;
use self::topology::{Merge, Topology};
use crate::conditions::Watch;
use crate::cpu::Stat;
use crate::invocation::{self, Loadtest, Search};
use crate::machine;
use crate::power::{self, Meter};
use crate::probe::{self, RoundTrip};
use crate::script::Script;
use sandbox::{Error, cleanup};

/// The devices to compare, and how.
#[derive(Debug, Clone)]
pub struct Options {
    /// Devices, in this order.
    pub duts: Vec<Dut>,
    /// Kinds of ports, in this order.
    pub ios: Vec<Io>,
    /// Depth of the comparison.
    pub depth: Depth,
    /// Number of rounds in which everything is repeated; usually [`Depth::rounds`].
    pub rounds: u32,
    /// The binary `parshall` to run; [`invocation::parshall`] is the running one.
    pub exe: PathBuf,
    /// Meter of the machine's power, if there is one.
    pub meter: Option<Meter>,
    /// Length of a trial of the latency under load, if it is measured.
    pub latency: Option<Duration>,
}

/// One device under one load.
#[derive(Debug, Clone)]
pub struct Case {
    /// The device.
    pub dut: Dut,
    /// Its ports, which it must have ([`device::has`]).
    pub io: Io,
    /// The load.
    pub load: Load,
    /// Time for the search, warm-up included.
    pub budget: Duration,
    /// Configuration of the router beyond its ports, as YAML; empty if there is none.
    pub router: String,
    /// Run in the device's namespace once it forwards.
    pub prepare: Option<Script>,
}

/// Progress of the comparison.
#[derive(Debug, Clone, PartialEq)]
pub struct Step {
    /// The present measurement, in a few words.
    pub label: String,
    /// Seconds since the start.
    pub elapsed: f64,
    /// Seconds that all of it will take, roughly.
    pub expected: f64,
}

/// Observes the progress of the comparison.
pub trait Progress {
    /// A trial begins or ends.
    fn step(&mut self, step: &Step);
}

/// No observer.
impl Progress for () {
    fn step(&mut self, _: &Step) {}
}

/// A device to be measured: a column of the table, or in a full comparison one of two candidates
/// for it.
#[derive(Debug, Clone, Copy)]
struct Candidate {
    dut: Dut,
    io: Io,
    spread: Spread,
}

/// The running comparison.
struct Comparison<'a> {
    exe: &'a Path,
    meter: Option<&'a Meter>,
    budget: Duration,
    /// Length of a trial of the latency under load.
    latency: Option<Duration>,
    /// Configuration of the router beyond its ports, if there is any.
    router: Option<(&'a str, Merge)>,
    /// Run in a device's namespace once it forwards.
    prepare: Option<&'a Script>,
    cpus: Cpus,
    /// A load that was disturbed is measured again.
    repeats: bool,
    begin: Instant,
    expected: f64,
    result: LabResult,
    progress: &'a mut dyn Progress,
}

/// Seconds to set up and remove a device, and those a search takes beyond its budget.
const SETUP_SECONDS: f64 = 1.5;

/// Runs the whole comparison.
///
/// # Errors
/// If the laboratory cannot be set up. If a device fails, its run is not valid and says why.
pub fn run(options: &Options, progress: &mut dyn Progress) -> Result<LabResult, Error> {
    let cpus = Cpus::here();
    let candidates = candidates(options, cpus.count());
    if candidates.is_empty() {
        return Err(Error::Asked(
            "the kernel has no memif; choose veth, or parshall too".into(),
        ));
    }
    let loads = options.depth.loads();
    let latency = options.latency.map_or(0.0, |length| {
        latency::SHARES.len() as f64 * (length.as_secs_f64() + SETUP_SECONDS)
    });
    let per_load = options.depth.budget().as_secs_f64() + SETUP_SECONDS + latency;
    let per_round: f64 =
        candidates.len() as f64 * (SETUP_SECONDS + loads.len() as f64 * (per_load + 2.0));
    let mut comparison = Comparison {
        exe: &options.exe,
        meter: options.meter.as_ref(),
        budget: options.depth.budget(),
        latency: options.latency,
        router: None,
        prepare: None,
        cpus,
        // A quick one is over when it says.
        repeats: options.depth != Depth::Quick,
        begin: Instant::now(),
        expected: per_round * f64::from(options.rounds),
        result: LabResult {
            machine: Machine {
                energy: power::source(options.meter.as_ref()),
                ..machine::describe()
            },
            ..LabResult::default()
        },
        progress,
    };
    let before = Stat::now()?;
    for round in 1..=options.rounds {
        for candidate in &candidates {
            comparison.candidate(*candidate, &loads, round)?;
        }
    }
    let result = comparison.finish(&before);
    cleanup::own();
    Ok(result)
}

/// Time that a case takes beyond its budget, roughly: its setup, and the generator alone.
pub const BEYOND_BUDGET: Duration = Duration::from_secs(5);

/// A script that prepares a device ends within this time.
const PREPARE_LIMIT: Duration = Duration::from_secs(10 * 60);

impl Case {
    /// Measures it: a result with one run, and what is known of ports and generator. Nothing is said
    /// of the machine.
    ///
    /// # Errors
    /// As [`run`].
    pub fn measure(
        &self,
        exe: &Path,
        meter: Option<&Meter>,
        merge: Merge,
    ) -> Result<LabResult, Error> {
        let cpus = Cpus::here();
        let before = Stat::now()?;
        let mut comparison = Comparison {
            exe,
            meter,
            budget: self.budget,
            latency: None,
            router: (!self.router.is_empty()).then_some((&self.router, merge)),
            prepare: self.prepare.as_ref(),
            cpus,
            repeats: false,
            begin: Instant::now(),
            expected: 0.0,
            result: LabResult::default(),
            progress: &mut (),
        };
        for spread in Depth::Default.spreads(self.dut, cpus.count()) {
            let candidate = Candidate {
                dut: self.dut,
                io: self.io,
                spread,
            };
            comparison.candidate(candidate, &[self.load], 1)?;
        }
        Ok(comparison.finish(&before))
    }
}

/// Everything to be measured in a round, in order.
fn candidates(options: &Options, processors: usize) -> Vec<Candidate> {
    let mut candidates = Vec::new();
    for dut in &options.duts {
        for io in options.ios.iter().filter(|io| device::has(*dut, **io)) {
            for spread in options.depth.spreads(*dut, processors) {
                // Two threads that poll on one processor take turns: there, memif would measure the
                // scheduler.
                if *io == Io::Veth || spread == Spread::Apart || processors < 2 {
                    candidates.push(Candidate {
                        dut: *dut,
                        io: *io,
                        spread,
                    });
                }
            }
        }
    }
    candidates
}

impl Candidate {
    /// The run of this candidate under a load, with what was found.
    fn run(self, lane: Lane, load: &Load, round: u32, found: Found) -> Run {
        Run {
            dut: self.dut.into(),
            io: self.io.into(),
            lane: lane.into(),
            profile: match load.family {
                Family::Ip4 => "bench".into(),
                // It has no name.
                Family::Ip6 => String::new(),
            },
            load: *load,
            spread: Some(self.spread),
            round,
            ..Run::from(found)
        }
    }

    /// The lane that forwards once it has started.
    fn lane(self) -> Lane {
        match self.dut {
            Dut::Kernel => Lane::Kernel,
            Dut::Parshall => Lane::Userspace,
        }
    }
}

/// No result, and why.
fn nothing(error: &Error) -> Found {
    Found {
        why: error.to_string(),
        ..Found::default()
    }
}

impl Comparison<'_> {
    /// Measures all loads on one device.
    fn candidate(&mut self, candidate: Candidate, loads: &[Load], round: u32) -> Result<(), Error> {
        for forwarding in Forwarding::ALL {
            let such = loads.iter().filter(|load| load.forwarding == forwarding);
            let such: Vec<Load> = such.copied().collect();
            if !such.is_empty() {
                self.such(candidate, forwarding, &such, round)?;
            }
        }
        Ok(())
    }

    /// Measures loads that a device forwards in one way.
    fn such(
        &mut self,
        candidate: Candidate,
        forwarding: Forwarding,
        loads: &[Load],
        round: u32,
    ) -> Result<(), Error> {
        let Candidate { dut, io, spread } = candidate;
        let topology = Topology::new(io, forwarding)?;
        self.say(&format!("{dut} {io}: starting"));
        let mut running = match self.start(dut, io, spread, &topology) {
            Ok(running) => running,
            Err(error) => {
                let failed = |load| candidate.run(candidate.lane(), load, round, nothing(&error));
                self.result.runs.extend(loads.iter().map(failed));
                return Ok(());
            }
        };
        for port in &running.ports {
            self.note_port(port);
        }
        for load in loads {
            let lane = running.lane;
            let failed = |error| candidate.run(lane, load, round, nothing(&error));
            if let Err(error) = self.add_routes(&mut running, load, &topology) {
                self.result.runs.push(failed(error));
                continue;
            }
            repeat::until_it_counts(|| {
                let watch = Watch::start()?;
                let run = self.load(candidate, lane, load, round, &topology);
                let run = self.under(watch.end()?, spread, run.unwrap_or_else(failed));
                let counts = !self.repeats || run.disturbed().is_none();
                self.result.runs.push(run);
                Ok(((), counts))
            })?;
        }
        running.stop()
    }

    /// The run with the conditions under which it was.
    fn under(&self, seen: Conditions, spread: Spread, run: Run) -> Run {
        let conditions = Conditions {
            ceiling_pps: run.conditions.and_then(|known| known.ceiling_pps),
            unsent: (!run.ramp.is_empty()).then(|| point::unsent(&run.ramp)),
            generator_cpus: vec![self.cpus.generator],
            device_cpus: vec![match spread {
                Spread::Shared => self.cpus.generator,
                Spread::Apart => self.cpus.device,
            }],
            ..seen
        };
        Run {
            conditions: Some(conditions),
            ..run
        }
    }

    /// Starts a device and prepares it.
    fn start(&self, dut: Dut, io: Io, spread: Spread, at: &Topology) -> Result<Running, Error> {
        let running = Running::start(dut, io, self.exe, spread, self.cpus, at, self.router)?;
        if let Some(prepare) = self.prepare {
            let variables = running.variables();
            prepare
                .clone()
                .with(variables)
                .run(PREPARE_LIMIT, Some(&at.device))?;
        }
        Ok(running)
    }

    /// Adds the routes of a load.
    fn add_routes(
        &mut self,
        device: &mut Running,
        load: &Load,
        at: &Topology,
    ) -> Result<(), Error> {
        if load.routes == 0 {
            return Ok(());
        }
        self.say(&format!("{} routes", load.routes));
        device.add_routes(at, &routes::prefixes(load.routes))
    }

    /// Measures one load on one device: the generator alone, then through the device.
    fn load(
        &mut self,
        candidate: Candidate,
        lane: Lane,
        load: &Load,
        round: u32,
        at: &Topology,
    ) -> Result<Run, Error> {
        let Candidate { dut, io, spread } = candidate;
        let label = format!("{dut} {io}, {load}");
        let (alone, ceiling) = self.alone(candidate, load, at, &label)?;
        let before = self.distance(spread);
        let pairs = at.pairs(load.direction == Direction::BothWays);
        let search = Search::MaxRate(self.budget);
        let (Outcome { sender, search }, flat) =
            self.loadtest(at, spread, load, &pairs, search, &label)?;
        let after = self.distance(spread);
        self.note_port(&PortMode {
            user: "generator".into(),
            name: "gen0, gen1".into(),
            driver: io.to_string(),
            mode: sender.to_string(),
        });
        let mut run = candidate.run(lane, load, round, search);
        run.sender = sender.into();
        run.placement = before
            .zip(after)
            .map(|(before, after)| probe::between(before, after));
        // The ceiling is that of a single trial, and the search ends within a percent or two of the
        // rate.
        run.limited_by_generator = run.max_pps > 0.95 * ceiling;
        run.conditions = Some(Conditions {
            ceiling_pps: Some(ceiling),
            ..Conditions::default()
        });
        if let Some(flat) = flat {
            let Cpus { generator, device } = self.cpus;
            let (seconds, method) = attribution::device(spread, &flat, alone, generator, device);
            run.mpps_per_cpu_second = attribution::efficiency(&flat, seconds);
            run.cpu_method = method.into();
            run.watts = flat.watts;
            run.microjoules_per_packet = flat.watts.and_then(|watts| {
                power::microjoules_per_packet(watts, flat.seconds, flat.received)
            });
        }
        run.latency = self.latencies(&run, spread, at, &pairs, &label)?;
        Ok(run)
    }

    /// Measures the generator without a device: its cost a packet and its highest rate.
    fn alone(
        &mut self,
        Candidate { io, spread, .. }: Candidate,
        load: &Load,
        at: &Topology,
        label: &str,
    ) -> Result<(Alone, f64), Error> {
        let pairs = at.calibration();
        let (outcome, flat) = self.loadtest(
            at,
            spread,
            load,
            &pairs,
            Search::FlatOut,
            &format!("{label}: generator alone"),
        )?;
        let flat = flat.ok_or_else(|| Error::Output {
            program: "parshall loadtest".into(),
            message: "no trial flat out".into(),
        })?;
        let ceiling = flat.received as f64 / flat.seconds.max(f64::MIN_POSITIVE);
        let ceilings = &mut self.result.generator.ceilings;
        match ceilings
            .iter_mut()
            .find(|c| (c.io, c.size, c.sender) == (io, load.size, outcome.sender))
        {
            Some(known) => known.pps = known.pps.max(ceiling),
            None => ceilings.push(Ceiling {
                io,
                sender: outcome.sender,
                size: load.size,
                pps: ceiling,
            }),
        }
        Ok((Alone::of(&flat, self.cpus.generator), ceiling))
    }

    fn loadtest(
        &mut self,
        at: &Topology,
        spread: Spread,
        load: &Load,
        pairs: &[invocation::Pair],
        search: Search,
        label: &str,
    ) -> Result<(Outcome, Option<FlatOut>), Error> {
        let others = self.cpus.off_device(spread, &kernel::cpu::usable());
        let file = cleanup::directory().join("profile.json");
        let test = Loadtest {
            pairs,
            packets: packets::of(load, &file)?,
            cpus: &[self.cpus.generator],
            others: &others,
            search,
        };
        self.say(label);
        let (exe, meter) = (self.exe, self.meter);
        load::run(exe, Some(&at.generator), &test, meter, |event| {
            if let Event::TrialStart {
                flat_out,
                offered_pps,
            } = event
            {
                let rate = if *flat_out {
                    "flat out".into()
                } else {
                    format!("{:.3} Mpps", offered_pps / 1e6)
                };
                self.say(&format!("{label}: {rate}"));
            }
        })
    }

    /// Measures the distance of the two processors, if two are used.
    fn distance(&mut self, spread: Spread) -> Option<RoundTrip> {
        if spread == Spread::Shared {
            return None;
        }
        let trip = probe::round_trip(self.cpus.generator, self.cpus.device)?;
        let (low, high) = self
            .result
            .machine
            .round_trip_ns
            .unwrap_or((trip.nanos, trip.nanos));
        self.result.machine.round_trip_ns = Some((low.min(trip.nanos), high.max(trip.nanos)));
        Some(trip)
    }

    fn note_port(&mut self, port: &PortMode) {
        if !self.result.machine.ports.contains(port) {
            self.result.machine.ports.push(port.clone());
        }
    }

    fn say(&mut self, label: &str) {
        let elapsed = self.begin.elapsed().as_secs_f64();
        self.progress.step(&Step {
            label: label.to_owned(),
            elapsed,
            expected: self.expected,
        });
    }

    fn finish(mut self, before: &Stat) -> LabResult {
        let machine = &mut self.result.machine;
        machine.seconds = self.begin.elapsed().as_secs_f64();
        if let Ok(now) = Stat::now() {
            machine.steal_percent = now.since(before, |_| true).steal_percent();
        }
        let generator = &mut self.result.generator;
        generator.ceiling_pps = generator
            .ceilings
            .iter()
            .map(|ceiling| ceiling.pps)
            .fold(0.0, f64::max);
        generator.method =
            "the same generator on the same processor, flat out for one second into its own counting port".into();
        self.result
    }
}
