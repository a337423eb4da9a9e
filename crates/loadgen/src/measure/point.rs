//! A measured point: what went in and what came out at one rate.

use serde::{Deserialize, Serialize};

/// One trial of a search or one step of a ramp.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Point {
    /// Rate wanted, in packets a second.
    pub offered_pps: f64,
    /// Rate sent, in packets a second; if below `offered_pps`, the generator fell short.
    #[serde(default)]
    pub sent_pps: f64,
    /// Rate that came back, in packets a second.
    pub forwarded_pps: f64,
    /// Share of the packets sent that did not come back, from 0.0 to 1.0.
    pub loss: f64,
    /// False if the generator fell short of the offer, so that this says nothing about the device.
    pub valid: bool,
    /// Length of the trial in seconds.
    #[serde(default)]
    pub seconds: f64,
    /// True if the machine did not keep still meanwhile, so that this is not to be compared with
    /// others; not written where it is false.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub disturbed: bool,
    /// Why the search made nothing of it; empty, and not written, if it counted.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub unfit: String,
}

/// Packets that were due in trials and not sent.
pub fn unsent(points: &[Point]) -> u64 {
    let short = |p: &Point| (p.offered_pps - p.sent_pps).max(0.0) * p.seconds;
    points.iter().map(short).sum::<f64>().round() as u64
}
