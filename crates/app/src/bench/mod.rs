//! `parshall bench dataplane`: how many TSC cycles the router itself costs a packet, on in-process
//! ports.
//!
//! One worker, driven by hand, and one port whose receive queue is what it transmitted: receive,
//! every node, transmit and all counters are in the figure. Packets are rebuilt, and outputs
//! checked against a longest-match oracle, outside the timed part. Scenarios run interleaved, round
//! by round, so that a change of the machine's speed meets all of them.

mod command;
mod generator;
mod oracle;
mod scenario;
mod talk;
mod way;

use std::error::Error;

use lab::conditions::Watch;
use loadgen::measure::repeat;
use report::Conditions;
use report::model::Machine;
use serde::Serialize;

use scenario::{SCENARIOS, Scenario};

pub use command::Bench;

/// Median, minimum and maximum over the rounds.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Spread {
    /// The middle one.
    pub median: f64,
    /// The least.
    pub min: f64,
    /// The largest.
    pub max: f64,
}

impl Spread {
    /// None of nothing.
    fn of_some(values: &[f64]) -> Option<Self> {
        (!values.is_empty()).then(|| Self::of(values.iter().copied()))
    }

    fn of(values: impl Iterator<Item = f64>) -> Self {
        let mut v: Vec<f64> = values.collect();
        v.sort_by(f64::total_cmp);
        Spread {
            median: v[v.len() / 2],
            min: v[0],
            max: v[v.len() - 1],
        }
    }
}

/// One node's share.
#[derive(Debug, Serialize)]
pub struct NodeRow {
    /// Its name.
    pub name: String,
    /// TSC cycles a packet.
    pub cycles_per_packet: Spread,
}

/// One scenario's result.
#[derive(Debug, Serialize)]
pub struct Row {
    /// `ip4-hot`, `ip4-flows`, `ip4-1m-cold`.
    pub name: &'static str,
    /// Description for people.
    pub what: &'static str,
    /// TSC cycles a packet, everything included.
    pub cycles_per_packet: Spread,
    /// Millions of packets a second and core, at this machine's TSC.
    pub mpps: Spread,
    /// Cycles of each round, in order.
    pub rounds: Vec<f64>,
    /// The same divided by the cycles of an addition in that round, so that a processor that slows
    /// down does not matter; null if they are not known.
    pub additions_per_packet: Option<Spread>,
    /// The same of each round; empty if they are not known.
    pub round_additions: Vec<f64>,
    /// By node, receive and transmit included.
    pub nodes: Vec<NodeRow>,
}

/// The output of `bench dataplane --json`.
#[derive(Debug, Serialize)]
pub struct Report {
    /// Frame size on the wire, FCS included.
    pub frame_bytes: u32,
    /// TSC cycles in a second, in GHz.
    pub tsc_ghz: f64,
    /// Rounds of each scenario.
    pub rounds: usize,
    /// Packet memory: `Huge` (reserved), `Transparent` (asked for).
    pub pages: String,
    /// The results.
    pub rows: Vec<Row>,
    /// The machine.
    pub machine: Machine,
    /// The conditions meanwhile.
    pub conditions: Conditions,
}

/// The processor's speed in each round, as TSC cycles of an addition; empty if not known.
struct Speeds(Vec<f64>);

impl Speeds {
    /// Cycles of each round divided by those of an addition in it; empty if they are not known.
    fn divide(&self, cycles: &[f64]) -> Vec<f64> {
        match self.0.len() == cycles.len() {
            true => cycles.iter().zip(&self.0).map(|(c, add)| c / add).collect(),
            false => Vec::new(),
        }
    }
}

/// Makes a round that warms up, number 0, and `rounds` others. A round that was disturbed is made
/// again, under the same number.
fn measure(
    rounds: usize,
    mut round: impl FnMut(usize) -> Result<(), Box<dyn Error>>,
) -> Result<(Speeds, Conditions), Box<dyn Error>> {
    let whole = Watch::start()?;
    let mut speeds = Vec::new();
    for number in 0..=rounds {
        let seen = repeat::until_it_counts(|| {
            let watch = Watch::start()?;
            round(number)?;
            let seen = watch.end()?;
            let counts = number == 0 || seen.disturbed().is_none();
            Ok::<_, Box<dyn Error>>((seen, counts))
        })?;
        let speed = seen.cycles_per_add.filter(|_| number > 0);
        speeds.extend(speed.map(|(before, after)| (before + after) / 2.0));
    }
    let conditions = Conditions {
        generator_cpus: vec![last_cpu()],
        ..whole.end()?
    };
    Ok((Speeds(speeds), conditions))
}

/// Runs all scenarios (or those whose name contains `only`), `rounds` times each, interleaved.
///
/// # Errors
/// No memory, or a packet came out wrong.
pub fn dataplane(rounds: usize, only: Option<&str>) -> Result<Report, Box<dyn Error>> {
    // Where pinning is not allowed, measure all the same.
    let _ = kernel::cpu::pin(last_cpu());
    let chosen: Vec<_> = SCENARIOS
        .iter()
        .filter(|s| only.is_none_or(|o| s.name.contains(o)))
        .filter(|s| s.fits())
        .collect();
    if chosen.is_empty() {
        let names: Vec<_> = SCENARIOS.iter().map(|s| s.name).collect();
        return Err(format!(
            "bench: no scenario named `{}`; there are: {}",
            only.unwrap_or(""),
            names.join(", ")
        )
        .into());
    }
    let mut scenarios = chosen
        .into_iter()
        .map(Scenario::new)
        .collect::<Result<Vec<_>, _>>()?;
    let machine = lab::machine::describe();
    let (speeds, conditions) = measure(rounds, |round| {
        // The first round warms up; it and the last are checked packet by packet.
        let check = round == 0 || round == rounds;
        scenarios.iter_mut().try_for_each(|s| s.round(round, check))
    })?;
    let ghz = graph::cycles::per_second() / 1e9;
    Ok(Report {
        frame_bytes: 64,
        tsc_ghz: ghz,
        rounds,
        pages: format!("{:?}", scenarios[0].pages()),
        rows: scenarios.iter().map(|s| s.row(ghz, &speeds)).collect(),
        machine,
        conditions,
    })
}

/// What the column of additions is.
const ADDITIONS: &str =
    "additions: median of the cycles divided by those of an addition in the same round\n";

/// A median of additions; `-` if it is not known.
fn additions(of: Option<Spread>) -> String {
    of.map_or("-".to_owned(), |spread| format!("{:.1}", spread.median))
}

/// The processor that other work is least likely to be on.
fn last_cpu() -> usize {
    kernel::cpu::usable().last().copied().unwrap_or(0)
}

impl std::fmt::Display for Report {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        writeln!(
            f,
            "64 B frames, one worker, in-process ports, {} rounds interleaved, TSC {:.3} GHz, {} pages",
            self.rounds,
            self.tsc_ghz,
            self.pages.to_lowercase()
        )?;
        writeln!(
            f,
            "{:<14} {:>8} {:>8} {:>8} {:>9} {:>9}   TSC cycles a packet by node",
            "", "median", "min", "max", "additions", "Mpps"
        )?;
        for row in &self.rows {
            let c = row.cycles_per_packet;
            write!(
                f,
                "{:<14} {:>8.1} {:>8.1} {:>8.1} {:>9} {:>9.1}  ",
                row.name,
                c.median,
                c.min,
                c.max,
                additions(row.additions_per_packet),
                row.mpps.median
            )?;
            for n in &row.nodes {
                write!(f, " {} {:.1}", n.name, n.cycles_per_packet.median)?;
            }
            writeln!(f)?;
        }
        for row in &self.rows {
            writeln!(f, "{:<14} {}", row.name, row.what)?;
        }
        write!(f, "{ADDITIONS}{}", self.conditions.text())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is measured is the machine's; that every packet comes out right is checked in each.
    #[test]
    fn packets_of_small_scenarios_come_out_right() {
        let report = dataplane(1, Some("hot")).unwrap();
        let names: Vec<_> = report.rows.iter().map(|row| row.name).collect();
        for name in [
            "bvi-ip4-hot",
            "bridge-hot",
            "vxlan4-encap-hot",
            "vxlan4-decap-hot",
        ] {
            assert!(names.contains(&name), "{name}");
        }
        assert!(report.rows.iter().all(|r| r.cycles_per_packet.median > 0.0));
        let text = report.to_string();
        assert!(text.contains("an addition's TSC cycles: "), "{text}");
    }

    /// However the processor's speed changes, as many additions take the same time.
    #[test]
    fn cycles_are_divided_by_the_speed_of_their_round() {
        let speeds = Speeds(vec![1.0, 2.0, 4.0]);
        assert_eq!(speeds.divide(&[30.0, 60.0, 120.0]), [30.0; 3]);
        assert!(Speeds(Vec::new()).divide(&[30.0]).is_empty());
    }

    /// A round that is made again has the same number, so that it takes the place of the first.
    #[test]
    fn each_round_is_made() {
        let mut made = Vec::new();
        let (speeds, conditions) = measure(2, |round| {
            made.push(round);
            Ok(())
        })
        .unwrap();
        made.dedup();
        assert_eq!(made, [0, 1, 2]);
        assert_eq!(speeds.0.len(), 2);
        assert!(conditions.cycles_per_add.is_some());
    }

    /// Each frame finds its station: a frame that does not is missed.
    #[test]
    fn a_bridge_learns_as_many_stations_as_it_is_measured_with() {
        let report = dataplane(1, Some("bridge-20k")).unwrap();
        let nodes = &report.rows[0].nodes;
        assert!(nodes.iter().any(|node| node.name == "l2-forward"));
        assert!(nodes.iter().all(|node| node.name != "l2-flood"));
    }
}
