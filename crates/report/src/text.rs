//! The comparison as a table for a terminal: rows are loads, columns devices with their ports.

use crate::latency;
use crate::model::{LabResult, Run};
use crate::published::{PUBLISHED, Published};
use crate::setup::{Dut, Io, Load, Placement, Spread, Word};

/// A column: a device and its ports.
type Column = (Word<Dut>, Word<Io>);

/// Columns of a row's name.
const WIDTH: usize = 34;

/// The figures of one device under one load: medians of the rounds that can be compared.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Cell {
    /// Highest rate, packets a second.
    pub max_pps: f64,
    /// The same rate on the wire, bits a second.
    pub l1_bps: f64,
    /// Millions of packets a processor second, if known.
    pub efficiency: Option<f64>,
    /// Microjoules a packet while the generator sent as fast as it could, if known.
    pub energy: Option<f64>,
    /// Remarks as single letters, explained by `LEGEND`.
    pub marks: String,
}

/// Meaning of the letters after a rate.
const LEGEND: &[(char, &str)] = &[
    ('n', "processors near each other (they share a cache)"),
    ('f', "processors far from each other"),
    (
        'x',
        "the machine did not keep still, however often it was tried: not to be compared",
    ),
    ('s', "generator and device on one processor"),
    ('g', "bounded by the generator: the device may be faster"),
];

/// The whole result for a terminal.
pub fn comparison(result: &LabResult) -> String {
    let (rows, columns) = (rows(result), columns(result));
    let with_energy = result
        .runs
        .iter()
        .any(|run| run.microjoules_per_packet.is_some());
    let mut text = head(&columns, with_energy);
    for row in &rows {
        let mut line = format!("{:<WIDTH$}", row.to_string());
        for column in &columns {
            line += &figures(cell(result, row, column).as_ref(), with_energy);
        }
        text += line.trim_end();
        text.push('\n');
    }
    let about = [
        ceilings(result),
        legend(result, &rows, &columns),
        energy(result),
        failures(result),
        latency::text(result),
    ];
    text + &about.concat()
}

fn head(columns: &[Column], energy: bool) -> String {
    let mut first = " ".repeat(WIDTH);
    let mut second = format!("{:<WIDTH$}", "load test (loss <= 0.1 %)");
    let (width, energy) = if energy {
        (45, "  uJ/packet")
    } else {
        (34, "")
    };
    for (dut, io) in columns {
        first += &format!("{:<width$}", format!("{dut}, {io}"));
        second += &format!(
            "{:>9}{:>10}{:>11}{energy}    ",
            "Mpps", "Gbit/s L1", "Mpps/CPU-s"
        );
    }
    format!("{}\n{}\n", first.trim_end(), second.trim_end())
}

fn figures(cell: Option<&Cell>, energy: bool) -> String {
    let known = |value: Option<f64>| value.map_or("-".to_owned(), |value| format!("{value:.3}"));
    let mpps = known(cell.map(|cell| cell.max_pps / 1e6));
    let gbps = known(cell.map(|cell| cell.l1_bps / 1e9));
    let efficiency = known(cell.and_then(|cell| cell.efficiency));
    let energy = match energy {
        true => format!("{:>11}", known(cell.and_then(|cell| cell.energy))),
        false => String::new(),
    };
    let marks = cell.map_or("", |cell| &cell.marks);
    format!("{mpps:>9}{gbps:>10}{efficiency:>11}{energy} {marks:<3}")
}

fn rows(result: &LabResult) -> Vec<Load> {
    distinct(result.runs.iter().map(|run| run.load))
}

fn columns(result: &LabResult) -> Vec<Column> {
    let runs = result.runs.iter();
    distinct(runs.map(|run| (run.dut.clone(), run.io.clone())))
}

fn distinct<T: PartialEq>(items: impl Iterator<Item = T>) -> Vec<T> {
    items.fold(Vec::new(), |mut seen, item| {
        if !seen.contains(&item) {
            seen.push(item);
        }
        seen
    })
}

/// Medians of one cell. They are those of the better placement on processors, and of the runs with
/// processors near each other, if there are any. Disturbed runs are in none of them.
fn cell(result: &LabResult, load: &Load, (dut, io): &Column) -> Option<Cell> {
    let fits = |run: &&Run| run.valid && run.load == *load && (&run.dut, &run.io) == (dut, io);
    let runs: Vec<&Run> = result.runs.iter().filter(fits).collect();
    let still = [None, Some(Placement::Near), Some(Placement::Far)];
    let of = |spread: Option<Spread>| {
        let there = || runs.iter().copied().filter(move |run| run.spread == spread);
        let at = |placement: &Option<Placement>| {
            let alike = |run: &&Run| run.disturbed().is_none() && run.placement == *placement;
            summary(&there().filter(alike).collect::<Vec<_>>())
        };
        // Where all were disturbed, none is better than the last one.
        let last = || summary(there().next_back().as_slice());
        still.iter().find_map(at).or_else(last)
    };
    let all = [None, Some(Spread::Shared), Some(Spread::Apart)];
    let all = all.into_iter().filter_map(of);
    all.max_by(|a, b| a.max_pps.total_cmp(&b.max_pps))
}

fn summary(runs: &[&Run]) -> Option<Cell> {
    let first = runs.first()?;
    let mut marks = match (first.spread, first.placement) {
        (Some(Spread::Shared), _) => "s",
        (_, Some(Placement::Near)) => "n",
        (_, Some(Placement::Far)) => "f",
        (_, Some(Placement::Flipped) | None) => "",
    }
    .to_owned();
    if first.disturbed().is_some() {
        marks.push('x');
    }
    if runs.iter().any(|run| run.limited_by_generator) {
        marks.push('g');
    }
    Some(Cell {
        max_pps: median(runs.iter().map(|run| run.max_pps))?,
        l1_bps: median(runs.iter().map(|run| run.l1_bps))?,
        efficiency: median(runs.iter().filter_map(|run| run.mpps_per_cpu_second)),
        energy: median(runs.iter().filter_map(|run| run.microjoules_per_packet)),
        marks,
    })
}

/// Median; of an even number of values the lower one in the middle, so that it is a measured value.
fn median(values: impl Iterator<Item = f64>) -> Option<f64> {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len().saturating_sub(1) / 2).copied()
}

fn ceilings(result: &LabResult) -> String {
    let mut text = String::from("\nGenerator alone\n");
    for ceiling in &result.generator.ceilings {
        let what = format!("{} {} ({})", ceiling.io, ceiling.size, ceiling.sender);
        text += &format!("  {what:<26}{:>9.3} Mpps\n", ceiling.pps / 1e6);
    }
    text
}

fn legend(result: &LabResult, rows: &[Load], columns: &[Column]) -> String {
    let cells = rows.iter().flat_map(|row| {
        columns
            .iter()
            .filter_map(|column| cell(result, row, column))
    });
    let used: String = cells.map(|cell| cell.marks).collect();
    let lines = LEGEND.iter().filter(|(letter, _)| used.contains(*letter));
    lines
        .map(|(letter, meaning)| format!("  {letter}: {meaning}\n"))
        .collect()
}

/// The source of the energy, or why there is none.
fn energy(result: &LabResult) -> String {
    match result.machine.energy.as_str() {
        "" => String::new(),
        energy => format!("  uJ/packet, of the whole machine, flat out: {energy}\n"),
    }
}

/// Runs without a result; each reason once.
fn failures(result: &LabResult) -> String {
    let failed = result.runs.iter().filter(|run| !run.valid);
    let lines = distinct(failed.map(|run| {
        let Run {
            dut, io, load, why, ..
        } = run;
        format!("  {dut} {io}, {load}: no result: {why}\n")
    }));
    lines.concat()
}

/// The published tables as text.
pub fn published() -> String {
    PUBLISHED.iter().map(quote).collect()
}

fn quote(published: &Published) -> String {
    let rows = || std::iter::once(published.columns).chain(published.rows.iter().copied());
    let width = |column: usize| {
        let cells = rows().filter_map(move |row| row.get(column));
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let mut out = format!("\nPublished: {} ({})\n", published.title, published.source);
    for row in rows() {
        let cells = row.iter().enumerate().map(|(column, cell)| match column {
            0 => format!("  {cell:<0$}", width(0)),
            _ => format!("  {cell:>0$}", width(column)),
        });
        out += cells.collect::<String>().trim_end();
        out.push('\n');
    }
    out
}

#[cfg(test)]
mod tests {
    use loadgen::device::Sender;

    use super::*;
    use crate::Conditions;
    use crate::model::{Ceiling, Generator};
    use crate::setup::{Direction, Family, Flows, Forwarding, Size};

    const SMALL: Load = Load {
        size: Size::Bytes(64),
        flows: Flows::Many,
        direction: Direction::OneWay,
        family: Family::Ip4,
        routes: 0,
        forwarding: Forwarding::Routed,
    };

    fn run(dut: Dut, mpps: f64, spread: Spread, placement: Option<Placement>) -> Run {
        Run {
            dut: dut.into(),
            io: Io::Veth.into(),
            load: SMALL,
            valid: true,
            max_pps: mpps * 1e6,
            l1_bps: mpps * 672e6,
            mpps_per_cpu_second: Some(mpps),
            spread: Some(spread),
            placement,
            ..Run::default()
        }
    }

    fn result(runs: Vec<Run>) -> LabResult {
        let ceilings = vec![Ceiling {
            io: Io::Veth,
            sender: Sender::Live,
            size: SMALL.size,
            pps: 7.5e6,
        }];
        LabResult {
            runs,
            generator: Generator {
                ceilings,
                ..Generator::default()
            },
            ..LabResult::default()
        }
    }

    #[test]
    fn published_tables_are_aligned() {
        let text = published();
        let heads: Vec<&str> = text
            .lines()
            .filter(|l| l.starts_with("Published: "))
            .collect();
        assert_eq!(heads.len(), PUBLISHED.len());
        // Numbers are aligned to the right, so all lines of a table end in the same column.
        let first = text.lines().skip(2).take_while(|line| !line.is_empty());
        let mut widths: Vec<usize> = first.map(str::len).collect();
        widths.dedup();
        assert_eq!(widths.len(), 1, "{text}");
    }

    #[test]
    fn better_placement_and_median_are_shown() {
        let shared = [1.2, 1.3, 1.1].map(|mpps| run(Dut::Kernel, mpps, Spread::Shared, None));
        let apart = [0.8, 0.9, 0.7]
            .map(|mpps| run(Dut::Kernel, mpps, Spread::Apart, Some(Placement::Near)));
        let text = comparison(&result(shared.into_iter().chain(apart).collect()));
        assert!(
            text.contains("one way, 64 B many flows              1.200     0.806      1.200 s"),
            "{text}"
        );
        assert!(text.contains("veth 64 (live)"), "{text}");
        assert!(
            text.contains("s: generator and device on one processor"),
            "{text}"
        );
    }

    #[test]
    fn energy_has_a_column_where_it_was_measured() {
        let (mut with, without) = (run(Dut::Kernel, 1.2, Spread::Shared, None), Io::Memif);
        with.microjoules_per_packet = Some(12.5);
        let mut other = run(Dut::Parshall, 2.4, Spread::Shared, None);
        other.io = without.into();
        let mut result = result(vec![with, other]);
        result.machine.energy = "power meter `m`".into();
        let text = comparison(&result);
        let lines: Vec<&str> = text.lines().take(3).collect();
        let (head, row) = (lines[1], lines[2]);
        assert!(head.ends_with("Mpps/CPU-s  uJ/packet"), "{text}");
        assert!(row.contains("1.200     12.500 s"), "{text}");
        assert!(row.trim_end().ends_with("2.400          - s"), "{text}");
        assert!(text.contains("flat out: power meter `m`"), "{text}");
    }

    #[test]
    fn near_runs_are_not_mixed_with_far_ones() {
        let runs = vec![
            run(Dut::Parshall, 6.0, Spread::Apart, Some(Placement::Far)),
            run(Dut::Parshall, 5.5, Spread::Apart, Some(Placement::Far)),
            run(Dut::Parshall, 16.0, Spread::Apart, Some(Placement::Near)),
        ];
        let column = (Dut::Parshall.into(), Io::Veth.into());
        let cell = cell(&result(runs), &SMALL, &column).unwrap();
        assert_eq!((cell.max_pps, cell.marks.as_str()), (16.0e6, "n"));
    }

    /// A disturbed run is not in a median; without any other it is shown, and marked.
    #[test]
    fn disturbed_runs_are_not_mixed_with_others() {
        let of = |mpps, steal_percent| Run {
            conditions: Some(Conditions {
                steal_percent,
                ..Conditions::default()
            }),
            ..run(Dut::Kernel, mpps, Spread::Shared, None)
        };
        let column = (Dut::Kernel.into(), Io::Veth.into());
        let shown = |runs| {
            let cell = cell(&result(runs), &SMALL, &column).unwrap();
            (cell.max_pps / 1e6, cell.marks)
        };
        let mixed = vec![of(0.5, 9.0), of(1.2, 0.0), of(0.6, 9.0), of(1.0, 0.0)];
        assert_eq!(shown(mixed), (1.0, "s".to_owned()));
        assert_eq!(
            shown(vec![of(0.5, 9.0), of(0.6, 9.0)]),
            (0.6, "sx".to_owned())
        );
    }

    #[test]
    fn failure_is_explained() {
        let failed = Run {
            valid: false,
            why: "it ended".into(),
            ..run(Dut::Parshall, 0.0, Spread::Apart, None)
        };
        let text = comparison(&result(vec![failed]));
        assert!(
            text.contains("parshall veth, one way, 64 B many flows: no result: it ended"),
            "{text}"
        );
    }

    #[test]
    fn loads_are_named_as_in_the_published_tables() {
        let name = |size, flows, direction| {
            Load {
                size,
                flows,
                direction,
                ..Load::default()
            }
            .to_string()
        };
        let small = Size::Bytes(64);
        assert_eq!(SMALL.to_string(), "one way, 64 B many flows");
        assert_eq!(
            name(Size::Imix, Flows::Many, Direction::OneWay),
            "one way, imix"
        );
        assert_eq!(
            name(small, Flows::One, Direction::BothWays),
            "both ways, 64 B one flow"
        );
        let size = Size::Bytes(66);
        let family = Family::Ip6;
        let ip6 = Load {
            size,
            family,
            ..SMALL
        };
        assert_eq!(ip6.to_string(), "one way, IPv6 66 B many flows");
        let routes = |routes| Load { routes, ..ip6 }.to_string();
        assert_eq!(routes(250_000), "one way, IPv6 66 B, 250 k routes");
        assert_eq!(routes(12), "one way, IPv6 66 B, 12 routes");
        let name = |forwarding| {
            Load {
                forwarding,
                ..SMALL
            }
            .to_string()
        };
        assert_eq!(name(Forwarding::Vlan), "one way, 64 B many flows, VLAN");
        assert_eq!(
            name(Forwarding::Bridged),
            "one way, 64 B many flows, bridged"
        );
    }
}
