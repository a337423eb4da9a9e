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
mod way;

use std::error::Error;

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
    for round in 0..rounds + 1 {
        for s in &mut scenarios {
            // The first round warms up; it and the last are checked packet by packet.
            s.round(round > 0, round == 0 || round == rounds)?;
        }
    }
    let ghz = graph::cycles::per_second() / 1e9;
    Ok(Report {
        frame_bytes: 64,
        tsc_ghz: ghz,
        rounds,
        pages: format!("{:?}", scenarios[0].pages()),
        rows: scenarios.iter().map(|s| s.row(ghz)).collect(),
    })
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
            "{:<14} {:>8} {:>8} {:>8} {:>9}   TSC cycles a packet by node",
            "", "median", "min", "max", "Mpps"
        )?;
        for row in &self.rows {
            let c = row.cycles_per_packet;
            write!(
                f,
                "{:<14} {:>8.1} {:>8.1} {:>8.1} {:>9.1}  ",
                row.name, c.median, c.min, c.max, row.mpps.median
            )?;
            for n in &row.nodes {
                write!(f, " {} {:.1}", n.name, n.cycles_per_packet.median)?;
            }
            writeln!(f)?;
        }
        for row in &self.rows {
            writeln!(f, "{:<14} {}", row.name, row.what)?;
        }
        Ok(())
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
        assert!(names.contains(&"bvi-ip4-hot") && names.contains(&"bridge-hot"));
        assert!(report.rows.iter().all(|r| r.cycles_per_packet.median > 0.0));
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
