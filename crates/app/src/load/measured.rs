//! What a test was measured on and under: the machine and the conditions, for its result.

use std::time::Instant;

use lab::conditions::Watch;
use loadgen::measure::search::{Event, Observer};
use report::Conditions;
use report::model::{Machine, PortMode};
use serde_json::{Value, json};
use session::interface::Interface;
use session::{Spec, TestPorts};

use super::energy::{Energy, Taken};
use super::progress::Progress;
use super::traffic::{Sending, Traffic};
use crate::power_meter::PowerMeter;

/// A test that is being measured.
pub struct Measuring {
    machine: Machine,
    begin: Instant,
    watch: Watch,
    /// What it takes.
    pub energy: Energy,
}

/// The machine and the conditions of a test that has ended.
#[derive(Debug, Clone)]
pub struct Measured {
    /// The load tester's machine.
    pub machine: Machine,
    /// The conditions during the test.
    pub conditions: Conditions,
    /// What it took.
    pub energy: Taken,
}

/// What the test itself knows of its conditions.
#[derive(Debug, Clone, Copy, Default)]
pub struct Seen {
    /// Packets a second that the generator reached flat out, if it sent so.
    pub ceiling_pps: Option<f64>,
    /// Packets that were due and not sent.
    pub unsent: u64,
}

impl Measuring {
    /// Watches from now on; nothing may be sent yet.
    ///
    /// # Errors
    /// The processors' time cannot be read; the power meter fails.
    pub fn start(meter: &PowerMeter) -> Result<Self, sandbox::Error> {
        Ok(Self {
            machine: lab::machine::describe(),
            begin: Instant::now(),
            watch: Watch::start()?,
            energy: Energy::by(meter)?,
        })
    }

    /// The conditions until now; nothing may be sent anymore.
    ///
    /// # Errors
    /// The processors' time cannot be read.
    pub fn end(
        self,
        traffic: &Traffic,
        ports: &TestPorts,
        ways: &[(Sending, Spec)],
        seen: Seen,
    ) -> Result<Measured, sandbox::Error> {
        let conditions = Conditions {
            ceiling_pps: seen.ceiling_pps,
            unsent: Some(seen.unsent),
            generator_cpus: traffic.cpu.clone(),
            ports: modes(ports, ways),
            notes: notes(traffic, seen),
            ..self.watch.end()?
        };
        let energy = self.energy.taken();
        let machine = Machine {
            energy: energy.source.clone(),
            steal_percent: conditions.steal_percent,
            seconds: self.begin.elapsed().as_secs_f64(),
            ..self.machine
        };
        Ok(Measured {
            machine,
            conditions,
            energy,
        })
    }
}

impl Measured {
    /// Adds them to a result.
    pub fn add_to(&self, document: &mut Value) {
        document["machine"] = json!(self.machine);
        document["conditions"] = json!(self.conditions);
        document["energy"] = self.energy.json();
    }

    /// What readers of the result should know; empty if the machine kept still.
    pub fn warning(&self) -> String {
        match self.conditions.disturbed() {
            Some(why) => format!("not to be compared with other results: {why}\n"),
            None => String::new(),
        }
    }
}

/// Why conditions that this test has not are null or empty.
fn notes(traffic: &Traffic, seen: Seen) -> Vec<String> {
    let ceiling = seen
        .ceiling_pps
        .is_none()
        .then(|| "ceiling_pps is null: nothing was sent flat out, as -m gives a rate".to_owned());
    let cpus = traffic.cpu.is_empty().then(|| {
        let usable = kernel::cpu::usable();
        format!("generator_cpus is empty: without --cpu, threads run on any of {usable:?}")
    });
    let device = "device_cpus is empty: the device is tested from outside".to_owned();
    ceiling.into_iter().chain(cpus).chain([device]).collect()
}

/// The generator's ports, and what each really was.
fn modes(ports: &TestPorts, ways: &[(Sending, Spec)]) -> Vec<PortMode> {
    let mode = |port: &Spec, mode: String| PortMode {
        user: "generator".to_owned(),
        name: port.to_string(),
        driver: match port {
            Spec::Memif { .. } => "memif".to_owned(),
            Spec::Pcap(_) => "pcap".to_owned(),
            Spec::Live(name) | Spec::AfXdp(name) | Spec::Sink(name) => driver(name),
        },
        mode: match ports.is_replaced(port) {
            true => "AF_XDP in its place".to_owned(),
            false => mode,
        },
    };
    let of_way = |(tx, rx): &(Sending, Spec)| {
        let counts = rx
            .sender()
            .map_or("counts in XDP".to_owned(), |s| s.to_string());
        [mode(&tx.tx, ports.sender.to_string()), mode(rx, counts)]
    };
    ways.iter().flat_map(of_way).collect()
}

/// The driver of an interface, from sysfs; of a virtual one, which has none there, its kind.
fn driver(interface: &str) -> String {
    let link = std::fs::read_link(format!("/sys/class/net/{interface}/device/driver"));
    let name = link
        .ok()
        .and_then(|l| Some(l.file_name()?.to_string_lossy().into_owned()));
    let kind = || Interface::open(interface).ok()?.kind;
    name.or_else(kind).unwrap_or_else(|| "not known".to_owned())
}

/// Watches each trial of a search and what it takes, and shows its progress.
pub struct Trials<'a> {
    progress: Progress,
    energy: &'a mut Energy,
    watch: Option<Watch>,
    disturbed: Option<String>,
    /// True if the generator fell short in any trial.
    pub fell_short: bool,
}

impl<'a> Trials<'a> {
    /// Shows what happens by `progress`.
    pub fn new(progress: Progress, energy: &'a mut Energy) -> Self {
        Self {
            progress,
            energy,
            watch: None,
            disturbed: None,
            fell_short: false,
        }
    }
}

impl Observer for Trials<'_> {
    fn event(&mut self, event: Event) {
        match event {
            Event::TrialStart { .. } => {
                self.watch = Watch::start().ok();
                self.energy.start();
            }
            Event::TrialEnd {
                received,
                sent,
                offered_pps,
                seconds,
                valid,
                late,
                ..
            } => {
                let is_short = !valid && !late && (sent as f64) < offered_pps * seconds;
                self.fell_short |= is_short;
                self.energy.end(received, seconds);
                let seen = self.watch.take().and_then(|watch| watch.end().ok());
                self.disturbed = seen.and_then(|conditions| conditions.disturbed());
            }
            _ => {}
        }
        self.progress.event(&event);
    }

    fn disturbance(&mut self) -> Option<String> {
        let why = self.disturbed.take()?;
        self.progress.doing(&format!("disturbed: {why}"));
        Some(why)
    }
}
