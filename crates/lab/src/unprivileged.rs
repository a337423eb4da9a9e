//! The part of the laboratory that needs no root: the router within one process.

use std::fmt::Write;
use std::path::Path;
use std::time::Duration;

use serde::Deserialize;

use sandbox::{Error, command};

/// Printed after the figures: the measurements that root would add.
pub const WITH_ROOT: &str = "\
With root (sudo parshall lab) the laboratory also makes network namespaces and links and compares the forwarding of
the Linux kernel with the router over veth and memif: highest rate without loss, and packets a processor second.";

/// The bench takes a minute or two.
const LIMIT: Duration = Duration::from_secs(15 * 60);

/// The output of `parshall bench dataplane --json`.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Bench {
    /// One entry a case.
    pub rows: Vec<BenchRow>,
}

/// One case of the bench.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct BenchRow {
    /// Stable name: `ip4-hot`, `ip4-flows`, `ip4-1m-cold` ...
    pub name: String,
    /// TSC cycles a packet.
    pub cycles_per_packet: Spread,
    /// Millions of packets a second on one processor.
    pub mpps: Spread,
}

/// Median and extremes of repeated measurements.
#[derive(Debug, Clone, Copy, Default, PartialEq, Deserialize)]
pub struct Spread {
    /// Median.
    pub median: f64,
    /// Lowest.
    #[serde(default)]
    pub min: f64,
    /// Highest.
    #[serde(default)]
    pub max: f64,
}

/// Runs `<exe> bench dataplane --json`. Returns what it printed, and the same as a table for a
/// terminal.
///
/// # Errors
/// If it cannot be run, or prints something else.
pub fn bench(exe: &Path) -> Result<(String, String), Error> {
    let exe = exe.display().to_string();
    let json = command::run_within(LIMIT, &[&exe, "bench", "dataplane", "--json"], "")?;
    let table = table(&json)?;
    Ok((json, table))
}

fn table(json: &str) -> Result<String, Error> {
    let bench: Bench = serde_json::from_str(json).map_err(|e| Error::Output {
        program: "parshall bench".into(),
        message: e.to_string(),
    })?;
    let mut text = format!(
        "{:<20}{:>26}{:>10}\n",
        "in one process", "cycles a packet", "Mpps"
    );
    for row in &bench.rows {
        let cycles = row.cycles_per_packet;
        let cycles = format!(
            "{:.1} ({:.1} - {:.1})",
            cycles.median, cycles.min, cycles.max
        );
        // Writing to a String cannot fail.
        let _ = writeln!(
            text,
            "{:<20}{cycles:>26}{:>10.2}",
            row.name, row.mpps.median
        );
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_become_a_table() {
        let json = r#"{"rows":[{"name":"ip4-hot","cycles_per_packet":{"median":32.1,"min":31.0,"max":40.5},"mpps":{"median":80.9},"nodes":[]}]}"#;
        let text = table(json).unwrap();
        assert!(
            text.contains("ip4-hot                     32.1 (31.0 - 40.5)     80.90"),
            "{text}"
        );
        assert!(table("{}").is_err());
    }
}
