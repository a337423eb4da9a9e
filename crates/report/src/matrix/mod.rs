//! The result of a matrix: many configurations, each measured many times, and what that proves.

mod curves;
pub mod text;

use serde::{Deserialize, Serialize};

use crate::Conditions;
use crate::model::{Machine, PortMode, Run};

pub use curves::{Curve, Row, curves};

/// Everything that a matrix measured: the JSON of `parshall matrix --json`. Keys are kept as those
/// of [`crate::model`] are.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct MatrixResult {
    /// What was asked, in a few words.
    pub title: String,
    /// The axes, in the order of the file.
    pub axes: Vec<Axis>,
    /// Name of the axis that curves run along.
    pub along: String,
    /// Unit of the figures: `pps`, or the user's own.
    pub unit: String,
    /// Runs that each configuration was to have.
    pub rounds: u32,
    /// Start of the random order, which is the same for the same one.
    pub seed: u32,
    /// The machine that measured it.
    pub machine: Machine,
    /// All runs in the order in which they ran, unfit ones too.
    pub runs: Vec<MatrixRun>,
}

/// Something that differs between configurations.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Axis {
    /// Its name.
    pub name: String,
    /// Its values, in order.
    pub values: Vec<String>,
}

/// All combinations of the axes' values, those of the last axis next to each other.
pub fn combinations<'a>(axes: impl IntoIterator<Item = &'a Axis>) -> Vec<Vec<&'a str>> {
    axes.into_iter().fold(vec![Vec::new()], |all, axis| {
        let with = |of: Vec<&'a str>| {
            let values = axis.values.iter();
            values.map(move |value| [&of[..], &[value]].concat())
        };
        all.into_iter().flat_map(with).collect()
    })
}

/// One run of one configuration.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct MatrixRun {
    /// The configuration: a value of each axis, in their order.
    pub at: Vec<String>,
    /// Round, from 1.
    pub round: u32,
    /// Attempt in this round, from 1: an unfit run is repeated.
    pub attempt: u32,
    /// The figure; null if none was found.
    pub figure: Option<f64>,
    /// Why the run does not count; empty if it does.
    pub unfit: String,
    /// The processors meanwhile.
    pub conditions: Conditions,
    /// Time that it took, in seconds.
    pub seconds: f64,
    /// Packets a second that the generator reached without the device; null if not known.
    #[serde(default)]
    pub ceiling_pps: Option<f64>,
    /// Ports and the mode each ran in, as far as known.
    #[serde(default)]
    pub ports: Vec<PortMode>,
    /// The search, with all its trials; null if a command measured.
    #[serde(default)]
    pub run: Option<Run>,
}

impl MatrixRun {
    /// The figure of a run that counts.
    pub fn counted(&self) -> Option<f64> {
        self.figure.filter(|_| self.unfit.is_empty())
    }
}

impl MatrixResult {
    /// What a figure is divided by to be shown, and the unit that it has then.
    pub fn shown(&self) -> (f64, &str) {
        match self.unit.as_str() {
            "pps" => (1e6, "Mpps"),
            unit => (1.0, unit),
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Two devices with three table sizes, three rounds; one run of the kernel was unfit.
    pub(crate) fn sample() -> MatrixResult {
        let axis = |name: &str, values: &[&str]| Axis {
            name: name.into(),
            values: values.iter().map(|v| (*v).to_owned()).collect(),
        };
        let mut result = MatrixResult {
            title: "Cost of <routes>".into(),
            axes: vec![
                axis("device", &["kernel", "parshall"]),
                axis("routes", &["0", "10", "2000"]),
            ],
            along: "routes".into(),
            unit: "pps".into(),
            rounds: 3,
            seed: 7,
            ..MatrixResult::default()
        };
        for round in 1..=3 {
            for (device, rates) in [
                ("parshall", [4e6, 4e6, 3.9e6]),
                ("kernel", [1e6, 0.98e6, 0.7e6]),
            ] {
                for (routes, rate) in ["0", "10", "2000"].iter().zip(rates) {
                    result.runs.push(MatrixRun {
                        at: vec![device.into(), (*routes).into()],
                        round,
                        attempt: 1,
                        figure: Some(rate + f64::from(round) * 1e4),
                        ..MatrixRun::default()
                    });
                }
            }
        }
        result.runs.push(MatrixRun {
            at: vec!["kernel".into(), "10".into()],
            figure: Some(9e9),
            unfit: "the hypervisor took 7.0 % of the processors".into(),
            ..MatrixRun::default()
        });
        result
    }

    #[test]
    fn a_result_is_read_as_it_was_written() {
        let text = serde_json::to_string(&sample()).unwrap();
        assert_eq!(
            serde_json::from_str::<MatrixResult>(&text).unwrap(),
            sample()
        );
    }
}
