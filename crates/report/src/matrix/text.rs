//! A matrix as a table for a terminal.

use std::fmt::Write;

use super::{MatrixResult, Row, curves};
use crate::compare::Confidence;

/// The whole result: a row for each configuration, curve by curve.
pub fn table(result: &MatrixResult, confidence: Confidence) -> String {
    let (per, unit) = result.shown();
    let curves = curves(result, confidence);
    let of = curves.iter().map(|curve| curve.name().chars().count());
    let width = of.max().unwrap_or(0);
    let along = curves.iter().flat_map(|c| &c.rows).map(|row| row.at.len());
    let at = along.max().unwrap_or(0).max(result.along.len());
    let percent = confidence.percent();
    let head = format!("mean +/- at {percent} %");
    let mut text = format!("{}\n\n", result.title);
    // Writing to a String cannot fail.
    let _ = writeln!(
        text,
        "{:<width$}  {:>at$}  {:>12}  {head:>24}  change to the first",
        "",
        result.along,
        format!("median, {unit}")
    );
    for curve in &curves {
        for row in &curve.rows {
            let line = line(row, per, result.rounds as usize);
            let _ = writeln!(text, "{:<width$}  {:>at$}  {line}", curve.name(), row.at);
        }
    }
    let _ = writeln!(
        text,
        "\nRuns of each: {}, in random order (seed {}).",
        result.rounds, result.seed
    );
    for reason in unfit(result) {
        let _ = writeln!(text, "not counted: {reason}");
    }
    text
}

fn line(row: &Row<'_>, per: f64, rounds: usize) -> String {
    let median = row.median.map_or("-".into(), |m| number(m / per));
    let mean = row.mean.map_or("-".into(), |(mean, error)| {
        let [mean, error] = interval(mean / per, error / per);
        format!("{mean} +/- {error}")
    });
    let mut text = format!("{median:>12}  {mean:>24}  {}", change(row));
    if row.values.len() < rounds {
        // Writing to a String cannot fail.
        let _ = write!(text, "  ({} of {rounds} runs)", row.values.len());
    }
    text.trim_end().to_owned()
}

/// The difference to the first row in words; empty if there is none to speak of.
pub(crate) fn change(row: &Row<'_>) -> String {
    match row.change {
        None => String::new(),
        Some(d) if d.is_proven() => format!("{:+.2} % +/- {:.2} %", d.percent, d.percent_error),
        Some(_) => "none proven".to_owned(),
    }
}

/// A number with three decimals, or more digits where it is small.
pub(crate) fn number(n: f64) -> String {
    like(n, n)
}

/// `n` with as many decimals as [`number`] gives `model`.
fn like(model: f64, n: f64) -> String {
    match model.abs() {
        a if a >= 1000.0 => format!("{n:.0}"),
        a if a >= 0.01 || a == 0.0 => format!("{n:.3}"),
        _ => format!("{n:.3e}"),
    }
}

/// A mean and its error, which has as many decimals.
pub(crate) fn interval(mean: f64, error: f64) -> [String; 2] {
    [number(mean), like(mean, error)]
}

/// The runs that do not count, each with its configuration and reason.
pub(crate) fn unfit(result: &MatrixResult) -> impl Iterator<Item = String> {
    let unfit = result.runs.iter().filter(|run| run.counted().is_none());
    unfit.map(|run| format!("{}, round {}: {}", run.at.join(", "), run.round, run.unfit))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::matrix::tests::sample;

    #[test]
    fn an_error_has_the_decimals_of_its_mean() {
        assert_eq!(interval(0.938, 0.0096), ["0.938", "0.010"]);
        assert_eq!(interval(4321.2, 1.7), ["4321", "2"]);
        assert_eq!(interval(0.002, 0.0001), ["2.000e-3", "1.000e-4"]);
    }

    #[test]
    fn a_row_for_each_configuration() {
        let mut result = sample();
        result.runs.remove(0);
        let text = table(&result, Confidence::default());
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], "Cost of <routes>");
        assert!(
            lines[2].ends_with("mean +/- at 95 %  change to the first"),
            "{text}"
        );
        assert_eq!(
            lines[3],
            "kernel         0         1.020           1.020 +/- 0.025"
        );
        assert_eq!(
            lines[5],
            "kernel      2000         0.720           0.720 +/- 0.025  -29.41 % +/- 2.22 %"
        );
        assert!(lines[6].ends_with("(2 of 3 runs)"), "{text}");
        assert!(
            text.contains("not counted: kernel, 10, round 0: the hypervisor"),
            "{text}"
        );
    }
}
