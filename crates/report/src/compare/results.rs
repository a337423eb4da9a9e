//! Comparison of results of the lab, with the verdict in words: of several results the same device
//! under the same load, in one result the devices under the same load.

use std::fmt::Write;

use super::figures::{Figure, Of};
use super::number::general;
use super::{Confidence, Difference, LEAST, Sample};
use crate::model::{LabResult, Run};
use crate::setup::{Placement, Spread};

/// What the rates of runs are of: a load over a kind of port, and what ran there, if it is the same.
fn case(run: &Run, device: Option<&str>) -> Of {
    let device = device.map_or(String::new(), |device| format!(": {device}"));
    Of {
        name: format!("{}, {}{device}", run.load, run.io),
        unit: "Mpps".to_owned(),
        is_cost: false,
    }
}

/// The device of a run, and the processors that it ran on.
fn device(run: &Run) -> String {
    let (dut, lane) = (run.dut.to_string(), run.lane.to_string());
    let lane = match lane.is_empty() || lane == dut {
        true => String::new(),
        false => format!(" ({lane})"),
    };
    let processors = match (run.spread, run.placement) {
        (Some(Spread::Shared), _) => ", on the generator's processor",
        (_, Some(Placement::Near)) => ", near the generator",
        (_, Some(Placement::Far)) => ", far from the generator",
        _ => "",
    };
    dut + &lane + processors
}

/// The runs of a result that can be compared with others.
fn runs(result: &LabResult) -> impl Iterator<Item = &Run> {
    let runs = result.runs.iter();
    runs.filter(|run| run.valid && run.disturbed().is_none())
}

/// What was measured, under one name, of one thing.
#[derive(Debug, Default)]
struct Measured {
    values: Vec<f64>,
    /// One of them is that or more: something else than the device bounds it.
    is_bounded: bool,
}

/// Names, and what was measured under each.
type Rates = Vec<(String, Measured)>;

/// What the results of several runs of the lab prove about each device under each load that two of
/// them have; each result with its name, the first one is what others are compared with.
///
/// # Errors
/// There is nothing of which two have a result; the message says what there is.
pub fn between(results: &[(String, LabResult)], confidence: Confidence) -> Result<String, String> {
    let runs = results.iter().flat_map(|(name, result)| {
        runs(result).map(|run| {
            let case = case(run, Some(&device(run)));
            (case, name.clone(), (run.max_pps / 1e6, run.is_bounded()))
        })
    });
    verdicts(runs, 2, confidence)
}

/// What one result of the lab proves about its devices over a kind of port under each load; the first one of each load
/// is what others are compared with.
///
/// # Errors
/// As [`between`].
pub fn within(result: &LabResult, confidence: Confidence) -> Result<String, String> {
    let runs = runs(result).map(|run| {
        let value = (run.max_pps / 1e6, run.is_bounded());
        (case(run, None), device(run), value)
    });
    verdicts(runs, 2, confidence)
}

/// What the figures of several files prove about what two of them have; each file with its name, the
/// first one is what others are compared with. Of one file alone, what it has.
///
/// # Errors
/// As [`between`].
pub fn of_figures(
    files: &[(String, Vec<Figure>)],
    confidence: Confidence,
) -> Result<String, String> {
    let all = files.iter().flat_map(|(name, figures)| {
        let figures = figures.iter();
        figures.map(|figure| {
            let value = (figure.value, figure.is_bounded);
            (figure.of.clone(), name.clone(), value)
        })
    });
    verdicts(all, files.len().min(2), confidence)
}

/// The verdicts on what `least` or more have.
fn verdicts(
    runs: impl Iterator<Item = (Of, String, (f64, bool))>,
    least: usize,
    confidence: Confidence,
) -> Result<String, String> {
    let mut cases: Vec<(Of, Rates)> = Vec::new();
    for (case, name, (value, is_bounded)) in runs {
        let all = entry(&mut cases, case);
        let measured = entry(all, name);
        measured.values.push(value);
        measured.is_bounded |= is_bounded;
    }
    let comparable = cases.iter().filter(|(_, rates)| rates.len() >= least);
    let text: String = comparable
        .map(|(case, rates)| verdict(case, rates, confidence))
        .collect();
    match text.is_empty() {
        true => Err(nothing(&cases)),
        false => Ok(text),
    }
}

/// Says what there is, where no two have the same.
fn nothing(cases: &[(Of, Rates)]) -> String {
    let mut text = "there is nothing of which two have a result to compare".to_owned();
    for (case, rates) in cases {
        let names: Vec<&str> = rates.iter().map(|(name, _)| name.as_str()).collect();
        text += &format!("\n  {}: {} alone", case.name, names.join(", "));
    }
    if cases.is_empty() {
        text += "\n  none has one that counts: `valid`, `why`, `conditions` and, of bounds, `provisional` say why";
    }
    text
}

/// The value of a key, which is added if it is new.
fn entry<K: PartialEq, V: Default>(of: &mut Vec<(K, V)>, key: K) -> &mut V {
    let at = of
        .iter()
        .position(|(known, _)| *known == key)
        .unwrap_or_else(|| {
            of.push((key, V::default()));
            of.len() - 1
        });
    &mut of[at].1
}

fn verdict(of: &Of, rates: &Rates, confidence: Confidence) -> String {
    let mut text = format!("{}\n", of.name);
    let largest = rates.iter().flat_map(|(_, m)| &m.values).copied();
    let (unit, factor) = unit(&of.unit, largest.fold(0.0, f64::max));
    let blank = if unit.is_empty() { "" } else { " " };
    let width = rates.iter().map(|(name, _)| name.chars().count()).max();
    let width = width.unwrap_or(0);
    let mut first = None;
    let is_first_bounded = rates.first().is_some_and(|(_, first)| first.is_bounded);
    for (name, Measured { values, is_bounded }) in rates {
        let rates: Vec<f64> = values.iter().map(|value| value * factor).collect();
        let mean = rates.iter().sum::<f64>() / rates.len() as f64;
        let said = match (Sample::new(name.clone(), rates.clone()), &first) {
            (None, _) => format!("too few rounds, {LEAST} are needed"),
            (Some(_), _) if *is_bounded => {
                "at least: -m or the generator bounds it, not the device".to_owned()
            }
            (Some(_), None) if is_first_bounded => {
                "no verdict: what it is compared with is only known to be at least that".to_owned()
            }
            (Some(sample), None) => {
                let deviation = general(sample.deviation(), 3);
                first = Some(sample);
                format!("standard deviation {deviation}")
            }
            (Some(sample), Some(first)) => words(Difference::of(first, &sample, confidence), of),
        };
        let count = rates.len();
        // Writing to a String cannot fail.
        let _ = writeln!(
            text,
            "  {name:<width$}  {mean:>8.3}{blank}{unit}, mean of {count}: {said}"
        );
    }
    text
}

/// The unit in which values up to `largest` are shown, and the factor that makes them so.
fn unit(unit: &str, largest: f64) -> (&str, f64) {
    match unit {
        "Mpps" if largest < 1e-4 => ("pps", 1e6),
        "Mpps" if largest < 0.1 => ("kpps", 1e3),
        _ => (unit, 1.0),
    }
}

/// A difference of rates in words.
fn words(of: Difference, what: &Of) -> String {
    if !of.percent.is_finite() || !of.percent_error.is_finite() {
        // The first one is 0, of which nothing is a share.
        let [difference, error] = [of.difference, of.error].map(|n| general(n, 3));
        return match of.is_proven() {
            true => format!("{difference} +/- {error} more than the first, which is 0"),
            false => format!("no difference proven ({difference} +/- {error})"),
        };
    }
    if !of.is_proven() {
        return format!(
            "no difference proven ({:+.2} % +/- {:.2} %)",
            of.percent, of.percent_error
        );
    }
    let is_more = of.difference > 0.0;
    let verdict = match (what.unit.as_str(), is_more != what.is_cost) {
        ("", _) if is_more => "more",
        ("", _) => "less",
        (_, true) => "faster",
        (_, false) => "slower",
    };
    format!(
        "{:.2} % +/- {:.2} % {verdict}",
        of.percent.abs(),
        of.percent_error
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::setup::{Dut, Io};

    fn run(dut: Dut, max_pps: f64) -> Run {
        Run {
            dut: dut.into(),
            io: Io::Veth.into(),
            valid: true,
            max_pps,
            ..Run::default()
        }
    }

    fn result(rates: &[(Dut, f64)]) -> LabResult {
        LabResult {
            runs: rates.iter().map(|(dut, rate)| run(*dut, *rate)).collect(),
            ..LabResult::default()
        }
    }

    #[test]
    fn devices_are_compared_with_the_first() {
        use Dut::{Kernel, Parshall};
        let mut both = result(&[
            (Kernel, 1.00e6),
            (Parshall, 1.50e6),
            (Kernel, 1.02e6),
            (Parshall, 1.52e6),
            (Kernel, 1.01e6),
            (Parshall, 1.51e6),
        ]);
        both.runs.push(Run {
            valid: false,
            ..run(Kernel, 9e9)
        });
        both.runs.push(Run {
            placement: Some(Placement::Flipped),
            ..run(Kernel, 9e9)
        });
        both.runs.push(Run {
            placement: Some(Placement::Near),
            ..run(Parshall, 2e6)
        });
        assert_eq!(
            within(&both, Confidence::default()).unwrap(),
            [
                "one way, imix, veth",
                "  kernel                           1.010 Mpps, mean of 3: standard deviation 0.01",
                "  parshall                         1.510 Mpps, mean of 3: 49.50 % +/- 2.24 % faster",
                "  parshall, near the generator     2.000 Mpps, mean of 1: too few rounds, 3 are needed",
                ""
            ]
            .join("\n")
        );
    }

    #[test]
    fn results_are_compared_device_by_device() {
        let same = |rates: [f64; 3]| result(&rates.map(|rate| (Dut::Parshall, rate * 1e6)));
        let files = |second: LabResult| {
            let first = same([1.0, 1.1, 1.2]);
            [("a.json".to_owned(), first), ("b.json".to_owned(), second)]
        };
        let said = |second| between(&files(second), Confidence::default());
        let compared = |second| said(second).unwrap();
        assert!(compared(same([1.1, 1.0, 1.15])).contains("no difference proven (-1.52 %"));
        assert!(compared(same([0.5, 0.51, 0.52])).contains("% slower\n"));
        let few = result(&[(Dut::Parshall, 1e6)]);
        assert!(compared(few).contains("mean of 1: too few rounds, 3 are needed\n"));
        let other = result(&[(Dut::Kernel, 1e6)]);
        let nothing = said(other).unwrap_err();
        let lines: Vec<&str> = nothing.lines().collect();
        assert_eq!(
            lines[0],
            "there is nothing of which two have a result to compare"
        );
        assert!(lines[1].ends_with(": a.json alone") && lines[2].ends_with(": b.json alone"));
        let none = said(result(&[])).unwrap_err().lines().count();
        assert_eq!((none, lines.len()), (2, 3));
    }

    /// What -m or the generator bounds is at least that: more or less of it proves nothing.
    #[test]
    fn what_something_else_bounds_has_no_verdict() {
        let bounded = |rates: [f64; 3]| {
            let mut result = result(&rates.map(|rate| (Dut::Parshall, rate)));
            result.runs[1].limited_by_generator = true;
            result
        };
        let free = |rates: [f64; 3]| result(&rates.map(|rate| (Dut::Parshall, rate)));
        let (low, high) = ([3000.0, 3001.0, 3002.0], [4000.0, 4001.0, 4002.0]);
        for (first, second, words) in [
            (
                free(low),
                bounded(high),
                ["standard deviation", "at least: -m"],
            ),
            (
                bounded(low),
                free(high),
                ["at least: -m", "no verdict: what"],
            ),
            (free(low), free(high), ["standard deviation", "faster"]),
        ] {
            let files = [("a".to_owned(), first), ("b".to_owned(), second)];
            let said = between(&files, Confidence::default()).unwrap();
            let lines: Vec<&str> = said.lines().skip(1).collect();
            for (line, words) in lines.iter().zip(words) {
                assert!(line.contains(words), "{said}");
            }
            assert!(lines[0].contains("3.001 kpps"), "{said}");
        }
    }

    /// Of a cost less is faster; of what has no unit nobody knows.
    #[test]
    fn figures_are_compared_in_words() {
        let file = |name: &str, (unit, is_cost): (&str, bool), values: [f64; 3]| {
            let of = Of {
                name: "ip4".to_owned(),
                unit: unit.to_owned(),
                is_cost,
            };
            let figure = |value| Figure {
                of: of.clone(),
                value,
                is_bounded: false,
            };
            (name.to_owned(), values.map(figure).to_vec())
        };
        for (what, word) in [
            (("cycles", true), "% faster"),
            (("Mpps", false), "% slower"),
            (("", false), "% less"),
        ] {
            let before = file("a", what, [50.0, 51.0, 52.0]);
            let after = file("b", what, [40.0, 41.0, 42.0]);
            let text = of_figures(&[before, after], Confidence::default()).unwrap();
            assert!(text.contains(word), "{text}");
        }
        // Nothing is a share of 0.
        let zero = file("a", ("Mpps", false), [0.0; 3]);
        let some = file("b", ("Mpps", false), [0.5, 0.51, 0.52]);
        let text = of_figures(&[zero, some], Confidence::default()).unwrap();
        assert!(
            !text.contains("inf") && text.contains("which is 0"),
            "{text}"
        );
        // One file alone has its mean.
        let alone = file("a", ("Mpps", false), [0.5, 0.51, 0.52]);
        let text = of_figures(&[alone], Confidence::default()).unwrap();
        assert!(
            text.contains("mean of 3: standard deviation 0.01"),
            "{text}"
        );
        assert!(of_figures(&[("a".to_owned(), Vec::new())], Confidence::default()).is_err());
    }
}
