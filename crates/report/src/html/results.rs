//! The section with the table of results.

use std::fmt::Write;

use super::escape;
use super::rows::Row;
use crate::model::Run;
use crate::setup::Spread;

/// The median of a figure, and its range if there were several rounds.
fn figure(row: &Row<'_>, digits: usize, of: impl Fn(&Run) -> Option<f64>) -> String {
    match row.summary(of) {
        None => "&ndash;".to_owned(),
        Some(s) => {
            let digits = digits.max(decimals(s.median));
            match s.n {
                1 => format!("{:.digits$}", s.median),
                _ => format!(
                    "{:.digits$} <span class=\"range\">({:.digits$}&ndash;{:.digits$})</span>",
                    s.median, s.min, s.max
                ),
            }
        }
    }
}

/// Decimal places that show three digits of a small number other than 0, at most nine.
pub(super) fn decimals(number: f64) -> usize {
    match number.abs() {
        0.0 => 0,
        small => (2.0 - small.log10().floor()).clamp(0.0, 9.0) as usize,
    }
}

const COLUMNS: [(&str, bool); 10] = [
    ("device under test", false),
    ("I/O", false),
    ("forwarding by", false),
    ("processors", false),
    ("max rate, Mpps", true),
    ("on the wire, Gbit/s", true),
    ("loss, %", true),
    ("Mpps per CPU-second", true),
    ("microjoules per packet", true),
    ("flat out, Mpps", true),
];

/// One row for each load test and device. `allowed` is the loss allowed, with its unit.
pub(super) fn results(rows: &[Row<'_>], allowed: &str) -> String {
    let mut out = format!(
        "<section id=\"results\">\n<h2>Results</h2>\n<div class=\"wide\"><table>\n\
         <caption>Highest rate with no more than {allowed} loss; median and range of the rounds. Both ways: the sum of both.</caption>\n<thead><tr>",
    );
    for (name, number) in COLUMNS {
        let _ = write!(
            out,
            "<th scope=\"col\"{}>{name}</th>",
            if number { " class=\"n\"" } else { "" }
        );
    }
    out.push_str("<th scope=\"col\">remarks</th></tr></thead>\n<tbody>\n");
    let mut last = None;
    for row in rows {
        if last != Some(&row.test) {
            let span = COLUMNS.len() + 1;
            let _ = writeln!(
                out,
                "<tr class=\"group\"><th scope=\"rowgroup\" colspan=\"{span}\">{}</th></tr>",
                escape(&row.test.label())
            );
            last = Some(&row.test);
        }
        out.push_str(&result(row, rows));
    }
    out.push_str("</tbody></table></div>\n</section>\n");
    out
}

fn result(row: &Row<'_>, rows: &[Row<'_>]) -> String {
    let rate = |row: &Row<'_>| row.summary(|r| Some(r.max_pps)).map_or(0.0, |s| s.median);
    let best = rows
        .iter()
        .filter(|r| r.test == row.test)
        .map(rate)
        .fold(0.0, f64::max);
    let device = &row.device;
    let processors = match (device.spread, device.placement) {
        (None, _) => "&ndash;".to_owned(),
        (Some(Spread::Shared), _) => "one for all".to_owned(),
        (Some(Spread::Apart), None) => "two".to_owned(),
        (Some(Spread::Apart), Some(placement)) => format!("two, {placement}"),
    };
    let mut remarks: Vec<String> = row.remarks().into_iter().map(escape).collect();
    let invalid = row.runs.len() - row.valid().count();
    if invalid > 0 {
        remarks.insert(
            0,
            format!(
                "<span class=\"bad\">no rate found in {invalid} of {} rounds</span>",
                row.runs.len()
            ),
        );
    }
    if row.runs.iter().any(|r| r.limited_by_generator) && row.remarks().is_empty() {
        remarks.push("bounded by the generator".to_owned());
    }
    format!(
        "<tr><th scope=\"row\">{}</th><td>{}</td><td>{}</td><td>{}</td><td class=\"n{}\">{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td>\
         <td class=\"n\">{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td><td class=\"why\">{}</td></tr>\n",
        escape(&device.dut.to_string()),
        escape(&device.io.to_string()),
        escape(&device.lane.to_string()),
        processors,
        if best > 0.0 && rate(row) >= best {
            " best"
        } else {
            ""
        },
        figure(row, 3, |r| Some(r.max_pps / 1e6)),
        figure(row, 2, |r| Some(r.l1_bps / 1e9)),
        figure(row, 3, |r| Some(r.loss * 100.0)),
        figure(row, 3, |r| r.mpps_per_cpu_second),
        figure(row, 3, |r| r.microjoules_per_packet),
        figure(row, 3, |r| r.saturation_pps.map(|p| p / 1e6)),
        remarks.join("; "),
    )
}
