//! Results of load tests, whoever wrote them, as curves: the input of their page.

use std::fmt::{self, Display, Formatter};

use serde::Deserialize;

mod method;
mod read;

pub use method::Method;
pub use read::{of_json, read};

/// One test: a file, or a run of a file that has several.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct LoadTest {
    /// What it is called among others.
    pub name: String,
    /// What was sent; tests of the same profile are drawn in the same graphs.
    pub profile: String,
    /// Settings of the test by name, as they were written.
    pub settings: Vec<(String, String)>,
    /// One for each direction, or one for all together.
    pub curves: Vec<Curve>,
    /// What to keep in mind, in a few words each.
    pub remarks: Vec<String>,
    /// Latencies of streams, where they were measured.
    pub latencies: Vec<Latency>,
    /// What a search found, if it was one.
    pub method: Option<Method>,
}

/// What one direction sent and received.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Curve {
    /// The direction.
    pub channel: Channel,
    /// A sample a second in order of time, or trials in order of their rate.
    pub samples: Vec<Sample>,
    /// Whether the samples are seconds that follow each other.
    pub is_over_time: bool,
}

/// A direction of a test.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Channel {
    /// From port 0 to port 1.
    Out,
    /// From port 1 to port 0.
    Back,
    /// All directions together.
    #[default]
    All,
}

/// A second, or a trial.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sample {
    /// Rate sent in packets a second.
    pub sent_pps: f64,
    /// Rate that came back in packets a second.
    pub received_pps: f64,
    /// The latter in percent of the line rate, if known.
    pub received_percent: Option<f64>,
    /// Share of the packets lost, from 0.0 to 1.0.
    pub loss: f64,
    /// False if the generator sent less than it was asked for, or if the trial did not count.
    pub is_valid: bool,
    /// How long packets took in this second, where that was measured.
    pub latency: Option<Spread>,
}

/// The spread of latencies, in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
pub struct Spread {
    /// Half of all are no longer.
    pub p50: f64,
    /// 99 % are no longer.
    pub p99: f64,
    /// The largest.
    pub max: f64,
}

/// Latency of the packets of a stream, in nanoseconds.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Latency {
    /// Name of the stream.
    pub stream: String,
    /// Least, mean, median, 99th percentile and most; None where it is not known.
    pub nanos: [Option<f64>; 5],
}

impl Display for Channel {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Out => "0→1",
            Self::Back => "1→0",
            Self::All => "all",
        })
    }
}

impl std::str::FromStr for Channel {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "0→1" | "0->1" | "0-1" => Ok(Self::Out),
            "1→0" | "1->0" | "1-0" => Ok(Self::Back),
            "all" => Ok(Self::All),
            _ => Err("expected 0-1, 1-0 or all".to_owned()),
        }
    }
}

impl Curve {
    /// The rate at which loss reaches the share `threshold` for good, in packets a second that came
    /// back: that of the last unbroken row of samples with so much loss, where it begins. Without
    /// such samples it is the highest rate. None if there was so much loss from the beginning.
    ///
    /// Of trials, which have no order of time, it is the highest rate of those with less loss.
    pub fn rate_below(&self, threshold: f64) -> Option<f64> {
        let passes = |sample: &Sample| sample.loss < threshold;
        if !self.is_over_time {
            let passing = self.samples.iter().filter(|s| s.is_valid && passes(s));
            return passing.map(|s| s.received_pps).reduce(f64::max);
        }
        let Some(last) = self.samples.iter().rposition(|s| !passes(s)) else {
            return self.highest().map(|s| s.received_pps);
        };
        let before = self.samples[..last].iter().rposition(passes)?;
        Some(self.samples[before + 1].received_pps)
    }

    /// The sample in which most packets came back.
    pub fn highest(&self) -> Option<&Sample> {
        let samples = self.samples.iter();
        samples.max_by(|a, b| a.received_pps.total_cmp(&b.received_pps))
    }
}

/// Keeps the curves of `channels` alone, and the tests that have some.
pub fn keep(tests: &mut Vec<LoadTest>, channels: &[Channel]) {
    for test in tests.iter_mut() {
        test.curves.retain(|c| channels.contains(&c.channel));
    }
    tests.retain(|test| !test.curves.is_empty());
}

#[cfg(test)]
mod tests;
