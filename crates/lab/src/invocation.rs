//! The command lines of `parshall` that the laboratory uses.
//!
//! `parshall loadtest`:
//!
//! | flag | meaning |
//! | --- | --- |
//! | `--tx SPEC` | port that a direction is sent by, once for each direction |
//! | `--rx SPEC` | port that the direction of the `--tx` before it is received by |
//! | `--src-mac MAC`, `--dst-mac MAC` | Ethernet addresses of a direction, once for each `--tx`, in order |
//! | `--direction one-way\|both-ways` | one or two pairs of `--tx` and `--rx` |
//! | `--profile NAME`, `--tunable KEY=VALUE` | the traffic |
//! | `--search max-rate` | a trial flat out, then a search for the highest rate with no more loss than allowed |
//! | `--search flat-out` | only the trial flat out |
//! | `--loss 0.001` | loss allowed, as a share of the packets sent |
//! | `--rate 1280pps`, `--latency-rate 10pps`, `--duration 2s` | instead of a search one rate in each direction, and of it packets that measure latency |
//! | `--trial 1s`, `--budget 20s` | length of a trial; time for all of them |
//! | `--cpu N` or `--cpu N,M` | processor of the sending thread, and of the receiving thread if it has its own |
//! | `--json -` | the result on standard output |
//! | `--progress json` | one event a line on standard error |
//!
//! Port specifications: `live:IF` (XDP live frames, send only), `af_xdp:IF`, `sink:IF` (count and
//! drop in XDP, receive only), `memif:PATH,id=N,role=client|server`. The same specification given
//! twice is one port. The events are [`loadgen::measure::search::Event`], the result is
//! [`crate::compare::load::Outcome`].
//!
//! `parshall run -c FILE --socket PATH` is the router, `parshall show --socket PATH WORDS...
//! [--json]` queries it, and `parshall bench dataplane --json` measures the packet path within one
//! process.

use std::path::{Path, PathBuf};
use std::time::Duration;

use report::setup::{Direction, Flows, Size};

use sandbox::Error;

/// One direction of a load.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pair {
    /// Port specification to send by.
    pub tx: String,
    /// Port specification to receive by.
    pub rx: String,
    /// Source Ethernet address.
    pub src_mac: String,
    /// Destination Ethernet address.
    pub dst_mac: String,
}

/// The kind of search.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Search {
    /// For the highest rate with no more than 0.1 % loss, within this time.
    MaxRate(Duration),
    /// One trial as fast as the generator can.
    FlatOut,
    /// No search: one rate in each direction, and of it packets that measure latency, both in packets
    /// a second.
    Hold {
        /// The rate.
        rate: u64,
        /// The part of it that measures latency.
        latency: u64,
        /// Time of sending.
        length: Duration,
    },
}

impl Search {
    /// Rate that is offered to all of `ways` directions together, packets a second; 0 where a search
    /// or the generator says which.
    pub fn offered_pps(self, ways: usize) -> f64 {
        match self {
            Self::Hold { rate, .. } => rate as f64 * ways as f64,
            Self::MaxRate(_) | Self::FlatOut => 0.0,
        }
    }
}

/// Packets that are sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Packets<'a> {
    /// Those of the built-in profile `bench`.
    Bench {
        /// Frame size with check sequence.
        size: Size,
        /// Number of flows.
        flows: Flows,
        /// VLAN of their tags, if they have one.
        vlan: Option<u16>,
    },
    /// Those of a compiled profile.
    File(&'a Path),
}

/// A load test to run.
#[derive(Debug, Clone)]
pub struct Loadtest<'a> {
    /// One pair, or two for both directions.
    pub pairs: &'a [Pair],
    /// The packets.
    pub packets: Packets<'a>,
    /// Processors of the sending and the receiving thread.
    pub cpus: &'a [usize],
    /// Processors that the other threads may use; empty: any.
    pub others: &'a [usize],
    /// The search.
    pub search: Search,
}

impl Loadtest<'_> {
    /// One direction or both, by the number of pairs.
    pub fn direction(&self) -> Direction {
        if self.pairs.len() > 1 {
            Direction::BothWays
        } else {
            Direction::OneWay
        }
    }

    /// The arguments after `parshall`.
    pub fn args(&self) -> Vec<String> {
        let mut args: Vec<String> = vec!["loadtest".into()];
        let mut flag =
            |name: &str, value: &str| args.extend([format!("--{name}"), value.to_owned()]);
        for pair in self.pairs {
            flag("tx", &pair.tx);
            flag("rx", &pair.rx);
            flag("src-mac", &pair.src_mac);
            flag("dst-mac", &pair.dst_mac);
        }
        flag(
            "direction",
            if self.direction() == Direction::OneWay {
                "one-way"
            } else {
                "both-ways"
            },
        );
        match self.packets {
            Packets::Bench { size, flows, vlan } => {
                let vm = match flows {
                    Flows::Many => "var2",
                    Flows::One => "none",
                };
                flag("profile", "bench");
                flag("tunable", &format!("size={size}"));
                flag("tunable", &format!("vm={vm}"));
                if let Some(vlan) = vlan {
                    flag("tunable", &format!("vlan={vlan}"));
                }
            }
            Packets::File(path) => flag("profile", &path.display().to_string()),
        }
        match self.search {
            Search::MaxRate(budget) => {
                flag("search", "max-rate");
                flag("loss", "0.001");
                flag("budget", &format!("{}ms", budget.as_millis()));
            }
            Search::FlatOut => flag("search", "flat-out"),
            Search::Hold {
                rate,
                latency,
                length,
            } => {
                flag("rate", &format!("{rate}pps"));
                flag("latency-rate", &format!("{latency}pps"));
                flag("duration", &format!("{}ms", length.as_millis()));
            }
        }
        if !matches!(self.search, Search::Hold { .. }) {
            flag("trial", "1s");
        }
        let cpus: Vec<String> = self.cpus.iter().map(usize::to_string).collect();
        flag("cpu", &cpus.join(","));
        flag("progress", "json");
        flag("json", "-");
        args
    }
}

/// Path of the running binary, which is also the router and the load tester to run.
///
/// # Errors
/// If the path is not known, or if the file was replaced while it runs.
pub fn parshall() -> Result<PathBuf, Error> {
    let path = std::env::current_exe().map_err(|e| Error::file("/proc/self/exe", e))?;
    if path.is_file() {
        return Ok(path);
    }
    Err(Error::Asked(format!(
        "{} was replaced or removed while running; start it again",
        path.display()
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_are_in_order() {
        let pair = |tx: &str, rx: &str| Pair {
            tx: tx.into(),
            rx: rx.into(),
            src_mac: "02:00:00:00:00:01".into(),
            dst_mac: "02:00:00:00:00:02".into(),
        };
        let pairs = [
            pair("live:gen0", "sink:gen1"),
            pair("live:gen1", "sink:gen0"),
        ];
        let test = Loadtest {
            pairs: &pairs,
            packets: Packets::Bench {
                size: Size::Bytes(64),
                flows: Flows::One,
                vlan: Some(10),
            },
            cpus: &[0, 1],
            others: &[],
            search: Search::MaxRate(Duration::from_secs(9)),
        };
        let line = test.args().join(" ");
        assert!(
            line.starts_with("loadtest --tx live:gen0 --rx sink:gen1 --src-mac 02:00:00:00:00:01 "),
            "{line}"
        );
        assert!(line.contains("--tx live:gen1 --rx sink:gen0"), "{line}");
        assert!(
            line.contains(
                "--direction both-ways --profile bench --tunable size=64 --tunable vm=none --tunable vlan=10"
            ),
            "{line}"
        );
        assert!(
            line.ends_with("--budget 9000ms --trial 1s --cpu 0,1 --progress json --json -"),
            "{line}"
        );
    }
}
