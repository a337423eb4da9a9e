//! The head of the page, with the result in one line.

use std::fmt::Write;

use loadgen::model::units::Pps;

use super::escape;
use super::rows::Row;
use crate::model::LabResult;

/// The summary in one line: the best result of each device under the first load.
fn summary(rows: &[Row<'_>]) -> Option<String> {
    let test = &rows.first()?.test;
    let mut best: Vec<(String, f64, String)> = Vec::new();
    for row in rows.iter().filter(|r| r.test == *test) {
        let Some(rate) = row.summary(|r| Some(r.max_pps)) else {
            continue;
        };
        let (dut, label) = (row.device.dut.to_string(), row.device.label());
        match best.iter_mut().find(|b| b.0 == dut) {
            Some(known) if known.1 < rate.median => *known = (dut, rate.median, label),
            Some(_) => {}
            None => best.push((dut, rate.median, label)),
        }
    }
    best.sort_by(|a, b| b.1.total_cmp(&a.1));
    let first = best.first()?;
    let mut text = format!(
        "{}: {} forwards {:.2} ({})",
        test.label(),
        first.0,
        Pps(first.1),
        first.2
    );
    for (dut, rate, label) in &best[1..] {
        let _ = write!(text, ", {dut} {:.2} ({label})", Pps(*rate));
        if *rate > 0.0 {
            let _ = write!(text, ", a factor of {:.1}", first.1 / rate);
        }
    }
    let capital = text.get(..1)?.to_uppercase();
    Some(format!("{capital}{}.", &text[1..]))
}

/// Title of the page: a comparison, or the test of one device.
pub(super) fn title(rows: &[Row<'_>]) -> String {
    let mut duts: Vec<String> = rows.iter().map(|r| r.device.dut.to_string()).collect();
    duts.sort();
    duts.dedup();
    let kind = match duts.len() {
        0 | 1 => "Load test",
        _ => "Router comparison",
    };
    format!("{kind}: {}", duts.join(" and "))
}

/// Title, summary and links to the sections. `allowed` is the loss allowed, with its unit.
pub(super) fn head(result: &LabResult, rows: &[Row<'_>], allowed: &str) -> String {
    let lead = summary(rows).unwrap_or_else(|| "No run has a result.".to_owned());
    format!(
        "<header>\n<h1>{}</h1>\n<p class=\"soft\">{}</p>\n<p class=\"lead\">{}</p>\n\
         <p>A load generator sent packets through each device under test and counted what came back. For each load the page shows \
         the highest rate at which no more than {allowed} of the packets were lost, and how the device behaved below and above it.</p>\n\
         <nav aria-label=\"Sections\"><a href=\"#results\">Results</a><a href=\"#graphs\">Graphs</a><a href=\"#machine\">Machine</a>\
         <a href=\"#published\">Published figures</a><a href=\"#method\">How to read this</a></nav>\n</header>\n",
        escape(&title(rows)),
        escape(&result.machine.started),
        escape(&lead),
    )
}
