//! What a comparison of devices writes down: the JSON of `parshall lab --json` and the input of the HTML report.
//!
//! The keys are a contract with programs that read the file: a key is never renamed or given another unit. New
//! keys may be added, and every reader must ignore keys that it does not know. All rates count packets (frames)
//! of one second of wall time; sizes count the frame check sequence as T-Rex does (64 = smallest frame).

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use loadgen::point::Point;

/// Everything one invocation of the lab measured.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct LabResult {
    /// What the load generator could do by itself.
    pub generator: Generator,
    /// Where it was measured.
    #[serde(default)]
    pub machine: Machine,
    /// One entry a device, I/O, lane, load test, placement and round, in the order in which they ran.
    pub runs: Vec<Run>,
}

/// The load generator without a device: no result above it can be the device's.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Generator {
    /// Highest rate that the generator sent and its own sink counted, in packets a second.
    pub ceiling_pps: f64,
    /// How the ceiling was measured, in one sentence.
    #[serde(default)]
    pub method: String,
    /// The ceiling for each way of sending that was used; `ceiling_pps` is the highest of them.
    #[serde(default)]
    pub ceilings: Vec<Ceiling>,
}

/// The generator's ceiling over one kind of port.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Ceiling {
    /// Kind of port: `veth`, `memif`, `ring`.
    pub io: String,
    /// How packets were made: `live` (XDP live frames), `af_xdp`, `memif`, `ring`.
    pub sender: String,
    /// Frame size, as in [`Run::size`].
    pub size: String,
    /// Packets a second.
    pub pps: f64,
}

/// The machine, so that a reader who was not there can judge the figures.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Machine {
    /// Kernel release, as `uname -r` prints it.
    pub kernel: String,
    /// Model name of the processor.
    pub cpu: String,
    /// Number of processors online.
    pub cpus: u32,
    /// Main memory in bytes.
    #[serde(default)]
    pub memory_bytes: u64,
    /// Machine or hypervisor product name, where the firmware tells; empty if not known.
    #[serde(default)]
    pub product: String,
    /// Distribution, as `PRETTY_NAME` of /etc/os-release.
    #[serde(default)]
    pub os: String,
    /// Processor time the hypervisor took away while measuring, in percent of all processor time.
    #[serde(default)]
    pub steal_percent: f64,
    /// Cache-line round trip between the processors used, in nanoseconds, lowest and highest seen.
    #[serde(default)]
    pub round_trip_ns: Option<(f64, f64)>,
    /// Ports and the mode each ran in.
    #[serde(default)]
    pub ports: Vec<PortMode>,
    /// Program or library name to version (`parshall`, `rustc`, `libbpf` ...).
    #[serde(default)]
    pub versions: BTreeMap<String, String>,
    /// The command as it was typed.
    #[serde(default)]
    pub command: String,
    /// Begin of the measurement, RFC 3339 in UTC.
    #[serde(default)]
    pub started: String,
    /// Whole duration in seconds.
    #[serde(default)]
    pub seconds: f64,
    /// Anything else that a reader should know, a sentence each.
    #[serde(default)]
    pub notes: Vec<String>,
}

/// A port of a device under test or of the generator.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct PortMode {
    /// Who used it: `generator`, `kernel`, `parshall` ...
    pub user: String,
    /// Interface name or a pattern of names.
    pub name: String,
    /// Driver or kind: `veth`, `memif`.
    pub driver: String,
    /// Live mode: `zero-copy`, `driver copy`, `generic`, `XDP live frames`, `kernel forwarding` ...
    pub mode: String,
}

/// Ways of the load.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize,
)]
#[serde(rename_all = "kebab-case")]
pub enum Direction {
    /// From the first port to the second.
    #[default]
    OneWay,
    /// From each port to the other; rates are the sum of both.
    BothWays,
}

/// How many flows the load has.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize,
)]
#[serde(rename_all = "kebab-case")]
pub enum Flows {
    /// Addresses vary from packet to packet.
    #[default]
    Many,
    /// Every packet has the same addresses and ports.
    One,
}

/// Distance of the two processors that took part, by a ping-pong on a shared cache line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Placement {
    /// They share a cache.
    Near,
    /// They do not: anything that crosses processors is several times slower.
    Far,
    /// The probes before and after the run disagree: do not compare this run.
    Flipped,
}

/// Which processors generator and device ran on.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize,
)]
#[serde(rename_all = "kebab-case")]
pub enum Spread {
    /// Generator, device and sink on one processor.
    #[default]
    Shared,
    /// The device on a processor of its own.
    Apart,
}

/// One device under one load test in one round.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// Device under test: `kernel`, `parshall`.
    pub dut: String,
    /// Kind of its ports: `veth`, `memif`.
    pub io: String,
    /// What forwarded: `kernel`, `userspace`, `xdp`.
    pub lane: String,
    /// Traffic profile: `bench`, `imix`.
    pub profile: String,
    /// Frame size with frame check sequence, or `imix`.
    pub size: String,
    /// Number of flows.
    pub flows: Flows,
    /// One way or both ways.
    pub direction: Direction,
    /// False: the search found no rate that can be reported; `why` tells the reason.
    pub valid: bool,
    /// Highest rate with a loss of no more than 0.1 % in any direction, in packets a second, both directions summed:
    /// as many trials of this rate pass as fail.
    pub max_pps: f64,
    /// `max_pps` lies between these with a confidence of 95 %; null if not known.
    #[serde(default)]
    pub interval_pps: Option<(f64, f64)>,
    /// `max_pps` on the wire: frame, preamble, inter-frame gap, in bits a second.
    pub l1_bps: f64,
    /// Share of the packets that did not come back in the longest trial that passed next to `max_pps`, 0.0 to 1.0.
    pub loss: f64,
    /// Packets the device forwarded for each second of processor time it used, in millions; null if not known.
    #[serde(default)]
    pub mpps_per_cpu_second: Option<f64>,
    /// Distance of the processors; null where only one took part.
    #[serde(default)]
    pub placement: Option<Placement>,
    /// Whether generator and device shared a processor.
    #[serde(default)]
    pub spread: Spread,
    /// Round, from 1.
    #[serde(default)]
    pub round: u32,
    /// Rate the device forwarded while the generator sent as fast as it could, in packets a second (loss is
    /// allowed here); null if not measured.
    #[serde(default)]
    pub saturation_pps: Option<f64>,
    /// The highest rate was bounded by the generator, not by the device: the device may be faster.
    #[serde(default)]
    pub limited_by_generator: bool,
    /// Why `valid` is false, or what to bear in mind; empty otherwise.
    #[serde(default)]
    pub why: String,
    /// How processor time was attributed to the device.
    #[serde(default)]
    pub cpu_method: String,
    /// How packets were made: `live`, `af_xdp`, `memif`, `ring`.
    #[serde(default)]
    pub sender: String,
    /// Every trial and ramp step, in the order in which they ran.
    #[serde(default)]
    pub ramp: Vec<Point>,
}
