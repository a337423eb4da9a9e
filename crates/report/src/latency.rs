//! Latency under load as a table: rows are loads and shares of the highest rate.

use crate::model::{LabResult, Latency, Run};
use crate::setup::{Dut, Io};

/// A row: a device under a load at a share of its highest rate. Of several rounds it is the one whose
/// median is in the middle; disturbed trials only where there is no other.
pub(crate) struct Row<'a> {
    pub run: &'a Run,
    pub latency: &'a Latency,
}

/// The rows, in the order in which they were measured first.
pub(crate) fn rows(result: &LabResult) -> Vec<Row<'_>> {
    let mut groups: Vec<Vec<Row<'_>>> = Vec::new();
    for run in &result.runs {
        for latency in &run.latency {
            let row = Row { run, latency };
            match groups.iter_mut().find(|group| alike(&group[0], &row)) {
                Some(group) => group.push(row),
                None => groups.push(vec![row]),
            }
        }
    }
    groups.into_iter().filter_map(middle).collect()
}

fn alike(a: &Row<'_>, b: &Row<'_>) -> bool {
    let key = |run: &Run| (run.dut.clone(), run.io.clone(), run.load, run.spread);
    key(a.run) == key(b.run) && a.latency.share.total_cmp(&b.latency.share).is_eq()
}

fn middle(mut group: Vec<Row<'_>>) -> Option<Row<'_>> {
    let rank = |row: &Row<'_>| (!row.latency.valid, row.is_disturbed());
    let best = group.iter().map(rank).min()?;
    group.retain(|row| rank(row) == best);
    group.sort_by_key(|row| row.latency.p50_ns);
    let place = (group.len() - 1) / 2;
    group.into_iter().nth(place)
}

impl Row<'_> {
    /// True if the machine did not keep still.
    pub fn is_disturbed(&self) -> bool {
        self.latency.disturbed || self.run.disturbed().is_some()
    }

    /// The percentiles 50, 99 and 99.9 in microseconds.
    pub fn micros(&self) -> [Option<f64>; 3] {
        let Latency {
            p50_ns,
            p99_ns,
            p99_9_ns,
            ..
        } = *self.latency;
        [p50_ns, p99_ns, p99_9_ns].map(|nanos| Some(nanos? as f64 / 1e3))
    }

    /// What to keep in mind; empty if nothing.
    pub fn remark(&self) -> String {
        match (self.latency.valid, self.is_disturbed()) {
            (false, _) => format!("not valid: {}", self.latency.why),
            (true, true) => "the machine did not keep still".to_owned(),
            (true, false) => String::new(),
        }
    }
}

/// True if the kernel has a column without ports of shared memory beside one with them.
pub(crate) fn kernel_lacks_memif(result: &LabResult) -> bool {
    let has = |dut: Dut, io: Io| {
        let mut runs = result.runs.iter();
        runs.any(|run| run.dut == dut.into() && run.io == io.into())
    };
    has(Dut::Kernel, Io::Veth) && has(Dut::Parshall, Io::Memif)
}

/// The table for a terminal; empty if no latency was measured.
pub(crate) fn text(result: &LabResult) -> String {
    let rows = rows(result);
    if rows.is_empty() {
        return String::new();
    }
    let mut text = format!(
        "\n{:<34}{:<18}{:>6}{:>10}{:>10}{:>10}{:>10}\n",
        "latency under load, us", "", "load", "p50", "p99", "p99.9", "loss"
    );
    for row in &rows {
        let Row { run, latency } = row;
        let figures = row.micros().map(|micros| {
            let shown = micros.map_or("-".to_owned(), |micros| format!("{micros:.1}"));
            format!("{shown:>10}")
        });
        let line = format!(
            "{:<34}{:<18}{:>4.0} %{}{:>8.2} %  {}",
            run.load.to_string(),
            format!("{}, {}", run.dut, run.io),
            latency.share * 100.0,
            figures.concat(),
            latency.loss * 100.0,
            row.remark(),
        );
        text += line.trim_end();
        text.push('\n');
    }
    if kernel_lacks_memif(result) {
        text += "  kernel, memif: the kernel has no memif\n";
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(dut: Dut, io: Io, latency: Latency) -> Run {
        Run {
            dut: dut.into(),
            io: io.into(),
            valid: true,
            latency: vec![latency],
            ..Run::default()
        }
    }

    fn latency(p50: u64) -> Latency {
        Latency {
            share: 0.5,
            valid: true,
            measured: 10,
            p50_ns: Some(p50),
            p99_ns: Some(2 * p50),
            p99_9_ns: Some(3 * p50),
            ..Latency::default()
        }
    }

    #[test]
    fn the_round_in_the_middle_is_shown_and_what_does_not_count_only_alone() {
        let disturbed = Latency {
            disturbed: true,
            ..latency(9000)
        };
        let invalid = Latency {
            valid: false,
            why: "it fell short".into(),
            ..latency(7000)
        };
        let of = |latencies: &[&Latency]| LabResult {
            runs: latencies
                .iter()
                .map(|one| run(Dut::Kernel, Io::Veth, (*one).clone()))
                .collect(),
            ..LabResult::default()
        };
        let (one, two, three) = (latency(1000), latency(2000), latency(3000));
        let shown = text(&of(&[&three, &disturbed, &one, &two, &invalid]));
        assert!(
            shown.contains("50 %       2.0       4.0       6.0"),
            "{shown}"
        );
        assert_eq!(shown.lines().count(), 3, "{shown}");
        let shown = text(&of(&[&disturbed, &invalid]));
        assert!(
            shown.contains("9.0") && shown.contains("did not keep still"),
            "{shown}"
        );
        assert!(text(&of(&[&invalid])).contains("not valid: it fell short"));
        assert_eq!(text(&LabResult::default()), "");
    }

    #[test]
    fn it_says_that_the_kernel_has_no_memif() {
        let mut result = LabResult {
            runs: vec![run(Dut::Kernel, Io::Veth, latency(1000))],
            ..LabResult::default()
        };
        assert!(!text(&result).contains("no memif"));
        result
            .runs
            .push(run(Dut::Parshall, Io::Memif, latency(500)));
        assert!(text(&result).contains("the kernel has no memif"));
    }
}
