//! The runs of a matrix as curves, and what each point of them proves.

use super::{MatrixResult, MatrixRun, combinations};
use crate::compare::{Confidence, Difference, Sample};
use crate::stats::Summary;

/// The configurations that differ in nothing but their place on the axis that curves run along.
#[derive(Debug, Clone, PartialEq)]
pub struct Curve<'a> {
    /// Values of the other axes, in their order.
    pub of: Vec<&'a str>,
    /// One for each value of that axis, in its order.
    pub rows: Vec<Row<'a>>,
}

/// All runs of one configuration.
#[derive(Debug, Clone, PartialEq)]
pub struct Row<'a> {
    /// Value on the axis that the curve runs along.
    pub at: &'a str,
    /// Figures of the runs that count, the least first.
    pub values: Vec<f64>,
    /// Runs that do not count.
    pub unfit: usize,
    /// Median; None if no run counts.
    pub median: Option<f64>,
    /// Mean, and half the width of its interval with the confidence asked for; None if too few runs
    /// count.
    pub mean: Option<(f64, f64)>,
    /// Difference to the first row of the curve; None for that one, or if too few runs count.
    pub change: Option<Difference>,
}

impl Curve<'_> {
    /// Its name, such as `kernel, veth`; empty if there is no other axis.
    pub fn name(&self) -> String {
        self.of.join(", ")
    }
}

/// The curves of a result, in the order of the axes.
pub fn curves(result: &MatrixResult, confidence: Confidence) -> Vec<Curve<'_>> {
    let axes = &result.axes;
    let along = axes.iter().position(|axis| axis.name == result.along);
    let Some(along) = along else {
        return Vec::new();
    };
    let others = axes.iter().enumerate().filter(|(i, _)| *i != along);
    let all = combinations(others.map(|(_, axis)| axis));
    let curve = |of: Vec<&str>| {
        let mut rows: Vec<Row<'_>> = Vec::new();
        let mut first: Option<Sample> = None;
        for value in &axes[along].values {
            let mut at = of.clone();
            at.insert(along, value);
            let runs: Vec<&MatrixRun> = result.runs.iter().filter(|run| run.at == at).collect();
            let values: Vec<f64> = runs.iter().filter_map(|run| run.counted()).collect();
            let sample = Sample::new(value.clone(), values.clone());
            let difference = |(first, sample)| Difference::of(first, sample, confidence);
            rows.push(Row {
                at: value,
                unfit: runs.len() - values.len(),
                median: Summary::of(values.clone()).map(|summary| summary.median),
                mean: sample
                    .as_ref()
                    .map(|s| (s.mean(), s.mean_error(confidence))),
                change: first.as_ref().zip(sample.as_ref()).map(difference),
                values: sorted(values),
            });
            if rows.len() == 1 {
                first = sample;
            }
        }
        rows
    };
    let named = all.into_iter().map(|of| (of.clone(), curve(of)));
    named.map(|(of, rows)| Curve { of, rows }).collect()
}

fn sorted(mut values: Vec<f64>) -> Vec<f64> {
    values.sort_by(f64::total_cmp);
    values
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::matrix::tests::sample;

    #[test]
    fn runs_become_curves() {
        let result = sample();
        let curves = curves(&result, Confidence::default());
        let names: Vec<String> = curves.iter().map(Curve::name).collect();
        assert_eq!(names, ["kernel", "parshall"]);
        let [none, ten, many] = &curves[0].rows[..] else {
            panic!("{curves:?}");
        };
        assert_eq!(
            (none.at, none.median, none.change),
            ("0", Some(1.02e6), None)
        );
        // Student's t for two degrees of freedom is 4.303.
        let (mean, error) = none.mean.unwrap();
        assert!((mean - 1.02e6).abs() < 1e-3 && (error - 4.303e4 / 3_f64.sqrt()).abs() < 1.0);
        assert_eq!((ten.values.len(), ten.unfit), (3, 1));
        assert!(!ten.change.unwrap().is_proven());
        let change = many.change.unwrap();
        assert!(
            change.is_proven() && (change.percent + 29.41).abs() < 0.01,
            "{change:?}"
        );
    }

    #[test]
    fn too_few_runs_prove_nothing() {
        let mut result = sample();
        result.runs.truncate(6);
        let curves = curves(&result, Confidence::default());
        let row = &curves[1].rows[2];
        assert_eq!(
            (row.median, row.mean, row.change),
            (Some(3.91e6), None, None)
        );
        result.runs.clear();
        assert_eq!(
            super::curves(&result, Confidence::default())[0].rows[0].median,
            None
        );
    }
}
