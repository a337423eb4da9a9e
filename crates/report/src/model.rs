//! The result of a comparison of devices: the JSON of `parshall lab --json`, and the input of table
//! and page.
//!
//! The keys are a contract with programs that read the file: a key is never renamed and never
//! changes its unit. New keys may be added, and readers must ignore keys they do not know. Rates
//! are packets (frames) a second of wall time. Sizes include the frame check sequence, as in T-Rex,
//! so the smallest frame has 64 bytes.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use loadgen::device::Sender;
use loadgen::measure::point::Point;
use loadgen::measure::search::Found;

use crate::conditions::Conditions;
pub use crate::conditions::PortMode;
use crate::setup::{Dut, Io, Lane, Load, Placement, Size, Spread, Word};

/// Everything that one run of the lab measured.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct LabResult {
    /// The load generator by itself.
    pub generator: Generator,
    /// The machine that measured it.
    #[serde(default)]
    pub machine: Machine,
    /// One entry for each device, I/O, lane, load, placement and round, in the order in which they
    /// ran.
    pub runs: Vec<Run>,
}

/// The load generator without a device. No device can have a result above this.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Generator {
    /// Highest rate that the generator sent and its own receiver counted, in packets a second.
    pub ceiling_pps: f64,
    /// Method by which the ceiling was measured, in one sentence.
    #[serde(default)]
    pub method: String,
    /// The ceiling of each kind of port and sender used; `ceiling_pps` is the highest.
    #[serde(default)]
    pub ceilings: Vec<Ceiling>,
}

/// The generator's ceiling over one kind of port.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Ceiling {
    /// Kind of port.
    pub io: Io,
    /// Way in which packets were made.
    pub sender: Sender,
    /// Frame size.
    pub size: Size,
    /// The ceiling in packets a second.
    pub pps: f64,
}

/// The machine, for readers to judge the figures by.
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
    /// Product name of the machine or hypervisor, from the firmware; empty if not known.
    #[serde(default)]
    pub product: String,
    /// Distribution, as `PRETTY_NAME` of /etc/os-release.
    #[serde(default)]
    pub os: String,
    /// Processor time that the hypervisor took during the measurement, in percent of all processor
    /// time.
    #[serde(default)]
    pub steal_percent: f64,
    /// The source of [`Run::watts`], or why there are none, in a few words.
    #[serde(default)]
    pub energy: String,
    /// Round trip of a cache line between the processors used, in nanoseconds: lowest and highest
    /// seen.
    #[serde(default)]
    pub round_trip_ns: Option<(f64, f64)>,
    /// Ports and the mode each ran in.
    #[serde(default)]
    pub ports: Vec<PortMode>,
    /// Versions by name of program (`parshall`, `iproute2`, `ethtool`).
    #[serde(default)]
    pub versions: BTreeMap<String, String>,
    /// The command line.
    #[serde(default)]
    pub command: String,
    /// Start of the measurement, RFC 3339 in UTC.
    #[serde(default)]
    pub started: String,
    /// Total duration in seconds.
    #[serde(default)]
    pub seconds: f64,
    /// Anything else that readers should know, in sentences.
    #[serde(default)]
    pub notes: Vec<String>,
}

/// One device under one load in one round.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// Device under test.
    pub dut: Word<Dut>,
    /// Kind of its ports.
    pub io: Word<Io>,
    /// The part of the device that forwarded.
    pub lane: Word<Lane>,
    /// Traffic profile: `bench`, `imix`.
    pub profile: String,
    /// Frame size, number of flows, directions.
    #[serde(flatten)]
    pub load: Load,
    /// False if the search found no rate; `why` says why.
    pub valid: bool,
    /// Highest rate with no more than 0.1 % loss in any direction, in packets a second, total of
    /// both directions. As many trials at this rate pass as fail.
    pub max_pps: f64,
    /// `max_pps` lies between these two with a confidence of 95 %; null if not known.
    #[serde(default)]
    pub interval_pps: Option<(f64, f64)>,
    /// `max_pps` on the wire, with preamble and inter-frame gap, in bits a second.
    pub l1_bps: f64,
    /// Share of the packets lost in the nearest long trial that passed, from 0.0 to 1.0.
    pub loss: f64,
    /// Packets that the device forwarded for each second of processor time it used, in millions;
    /// null if not known.
    #[serde(default)]
    pub mpps_per_cpu_second: Option<f64>,
    /// Power of the whole machine, as far as its meter sees it, generator included: in a comparison
    /// while the generator sent as fast as it could, in a test of its own while it sent at all; null
    /// if not known.
    #[serde(default)]
    pub watts: Option<f64>,
    /// Energy for each packet that came back meanwhile, in microjoules; null if not known.
    #[serde(default)]
    pub microjoules_per_packet: Option<f64>,
    /// Distance of the processors; null if only one took part.
    #[serde(default)]
    pub placement: Option<Placement>,
    /// Tells if generator and device shared a processor; null if nothing is known of the device's.
    #[serde(default)]
    pub spread: Option<Spread>,
    /// Round, from 1.
    #[serde(default)]
    pub round: u32,
    /// Rate that the device forwarded while the generator sent as fast as it could, whatever the
    /// loss, in packets a second; null if not measured.
    #[serde(default)]
    pub saturation_pps: Option<f64>,
    /// True if the generator bounded the highest rate, so that the device may be faster.
    #[serde(default)]
    pub limited_by_generator: bool,
    /// Reason why `valid` is false, or what to keep in mind; may be empty.
    #[serde(default)]
    pub why: String,
    /// Method by which processor time was attributed to the device.
    #[serde(default)]
    pub cpu_method: String,
    /// Way in which packets were made.
    #[serde(default)]
    pub sender: Word<Sender>,
    /// Latency under load, at rising shares of the highest rate; empty where it was not measured.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub latency: Vec<Latency>,
    /// Every trial and ramp step, in the order in which they ran.
    #[serde(default)]
    pub ramp: Vec<Point>,
    /// Conditions of the measurement; not written where they are not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conditions: Option<Conditions>,
}

/// Latency at a share of a device's highest rate. Of two directions the slower one counts.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Latency {
    /// The share, from 0.0 to 1.0.
    pub share: f64,
    /// Rate offered, all directions, packets a second.
    pub offered_pps: f64,
    /// False if the generator fell short, or no latency was measured; `why` says which.
    pub valid: bool,
    /// Reason why `valid` is false; else empty.
    pub why: String,
    /// Share of the packets sent that was lost, from 0.0 to 1.0.
    pub loss: f64,
    /// The machine did not keep still, however often it was tried.
    pub disturbed: bool,
    /// Packets whose latency was measured.
    pub measured: u64,
    /// Half of them took no longer, in nanoseconds; null if none was measured.
    pub p50_ns: Option<u64>,
    /// 99 % took no longer.
    pub p99_ns: Option<u64>,
    /// 99.9 % took no longer.
    pub p99_9_ns: Option<u64>,
}

impl Run {
    /// True if something else than the device bounds the highest rate, so that it is that or more.
    pub fn is_bounded(&self) -> bool {
        self.valid && (self.limited_by_generator || !self.why.is_empty())
    }

    /// Why the run is not to be compared with others, though it may have a result; None if it is.
    pub fn disturbed(&self) -> Option<String> {
        if self.placement == Some(Placement::Flipped) {
            return Some("the processors changed their distance".to_owned());
        }
        self.conditions.as_ref()?.disturbed()
    }
}

impl LabResult {
    /// True if the device was tested from outside: then it has a machine of its own, or may have.
    pub fn is_from_outside(&self) -> bool {
        let is_other = |run: &Run| matches!(run.dut, Word::Other(_));
        !self.runs.is_empty() && self.runs.iter().all(is_other)
    }
}

impl From<Found> for Run {
    /// The result of a search, without what it is a result of.
    fn from(found: Found) -> Self {
        Self {
            valid: found.valid,
            max_pps: found.max_pps,
            interval_pps: found.interval_pps,
            l1_bps: found.l1_bps,
            loss: found.loss,
            saturation_pps: found.saturation_pps,
            limited_by_generator: found.limited_by_generator,
            why: found.why,
            ramp: found.trials,
            ..Self::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Written by `parshall lab --quick`.
    const SAMPLE: &str = include_str!("sample.json");

    #[test]
    fn a_result_is_written_as_it_was_read() {
        let result: LabResult = serde_json::from_str(SAMPLE).unwrap();
        let again = serde_json::to_string_pretty(&result).unwrap() + "\n";
        assert_eq!(again, SAMPLE);
        let run = &result.runs[0];
        assert_eq!(
            (&run.dut, &run.sender),
            (&Dut::Kernel.into(), &Sender::Live.into())
        );
        assert_eq!(run.load.size, Size::Bytes(64));
    }

    #[test]
    fn words_that_are_not_ours_are_kept() {
        let text = SAMPLE.replace("\"dut\": \"kernel\"", "\"dut\": \"vpp\"");
        let result: LabResult = serde_json::from_str(&text).unwrap();
        assert_eq!(result.runs[0].dut, Word::Other("vpp".into()));
        assert_eq!(serde_json::to_string_pretty(&result).unwrap() + "\n", text);
    }
}
