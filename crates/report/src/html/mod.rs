//! The page of a comparison, in HTML.
//!
//! The page is one file that contains the graph library and needs no network. Everything that comes
//! from a measurement or a machine is escaped.

use std::fmt::Write;

use loadgen::measure::point::Point;

use self::chart::Chart;
use self::rows::Row;
use crate::model::{LabResult, Run};
use crate::published::PUBLISHED;
use crate::setup::Spread;

mod chart;
mod machine;
mod rows;

const STYLE: &str = include_str!("style.css");
const SCRIPT: &str = include_str!("page.js");

/// The page for `result`.
#[must_use]
pub fn page(result: &LabResult) -> String {
    let rows = rows::rows(&result.runs);
    let charts = chart::charts(result, &rows);
    let mut out = String::with_capacity(6 << 20);
    out.push_str("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n");
    out.push_str("<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n");
    out.push_str(
        "<title>Parshall: router comparison</title>\n<link rel=\"icon\" href=\"data:,\">\n",
    );
    let _ = writeln!(out, "<style>\n{STYLE}</style>\n</head>\n<body>");
    out.push_str(&head(result, &rows));
    out.push_str("<main>\n");
    out.push_str(&results(&rows));
    out.push_str(&graphs(&charts, &rows));
    out.push_str(&machine::section(result));
    out.push_str(&quoted());
    out.push_str(METHOD);
    out.push_str("</main>\n<footer>Written by Parshall.</footer>\n");
    out.push_str(&scripts(&charts));
    out.push_str("</body>\n</html>\n");
    out
}

/// Escapes text for HTML.
fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c => out.push(c),
        }
    }
    out
}

/// The summary in one line: the best result of each device under the first load.
fn summary(rows: &[Row<'_>]) -> Option<String> {
    let test = &rows.first()?.test;
    let mut best: Vec<(String, f64, String)> = Vec::new();
    for row in rows.iter().filter(|r| r.test == *test) {
        let Some(rate) = row.summary(|r| Some(r.max_pps / 1e6)) else {
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
        "{}: {} forwards {:.2} Mpps ({})",
        test.label(),
        first.0,
        first.1,
        first.2
    );
    for (dut, rate, label) in &best[1..] {
        let _ = write!(text, ", {dut} {rate:.2} Mpps ({label})");
        if *rate > 0.0 {
            let _ = write!(text, ", a factor of {:.1}", first.1 / rate);
        }
    }
    let capital = text.get(..1)?.to_uppercase();
    Some(format!("{capital}{}.", &text[1..]))
}

fn head(result: &LabResult, rows: &[Row<'_>]) -> String {
    let duts: Vec<String> = {
        let mut names: Vec<String> = rows.iter().map(|r| r.device.dut.to_string()).collect();
        names.sort();
        names.dedup();
        names
    };
    let lead = summary(rows).unwrap_or_else(|| "No run has a result.".to_owned());
    format!(
        "<header>\n<h1>Router comparison: {}</h1>\n<p class=\"soft\">{}</p>\n<p class=\"lead\">{}</p>\n\
         <p>A load generator sent packets through each device under test and counted what came back. For each load the page shows \
         the highest rate at which no more than 0.1 % of the packets were lost, and how the device behaved below and above it.</p>\n\
         <nav aria-label=\"Sections\"><a href=\"#results\">Results</a><a href=\"#graphs\">Graphs</a><a href=\"#machine\">Machine</a>\
         <a href=\"#published\">Published figures</a><a href=\"#method\">How to read this</a></nav>\n</header>\n",
        escape(&duts.join(" and ")),
        escape(&result.machine.started),
        escape(&lead),
    )
}

/// The median of a figure, and its range if there were several rounds.
fn figure(row: &Row<'_>, digits: usize, of: impl Fn(&Run) -> Option<f64>) -> String {
    match row.summary(of) {
        None => "&ndash;".to_owned(),
        Some(s) if s.n == 1 => format!("{:.digits$}", s.median),
        Some(s) => format!(
            "{:.digits$} <span class=\"range\">({:.digits$}&ndash;{:.digits$})</span>",
            s.median, s.min, s.max
        ),
    }
}

const COLUMNS: [(&str, bool); 9] = [
    ("device under test", false),
    ("I/O", false),
    ("forwarding by", false),
    ("processors", false),
    ("max rate, Mpps", true),
    ("on the wire, Gbit/s", true),
    ("loss, %", true),
    ("Mpps per CPU-second", true),
    ("flat out, Mpps", true),
];

fn results(rows: &[Row<'_>]) -> String {
    let mut out = String::from(
        "<section id=\"results\">\n<h2>Results</h2>\n<div class=\"wide\"><table>\n\
         <caption>Highest rate with no more than 0.1 % loss; median and range of the rounds. Both ways: the sum of both.</caption>\n<thead><tr>",
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
        (Spread::Shared, _) => "one for all".to_owned(),
        (Spread::Apart, None) => "two".to_owned(),
        (Spread::Apart, Some(placement)) => format!("two, {placement}"),
    };
    let mut remarks: Vec<String> = row.remarks().into_iter().map(escape).collect();
    let invalid = row.runs.len() - row.valid().count();
    if invalid > 0 {
        remarks.insert(
            0,
            format!(
                "<span class=\"bad\">{invalid} of {} rounds without a result</span>",
                row.runs.len()
            ),
        );
    }
    if row.runs.iter().any(|r| r.limited_by_generator) && row.remarks().is_empty() {
        remarks.push("bounded by the generator".to_owned());
    }
    format!(
        "<tr><th scope=\"row\">{}</th><td>{}</td><td>{}</td><td>{}</td><td class=\"n{}\">{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td>\
         <td class=\"n\">{}</td><td class=\"n\">{}</td><td class=\"why\">{}</td></tr>\n",
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
        figure(row, 3, |r| r.saturation_pps.map(|p| p / 1e6)),
        remarks.join("; "),
    )
}

fn graphs(charts: &[Chart], rows: &[Row<'_>]) -> String {
    let mut out = String::from(
        "<section id=\"graphs\">\n<h2>Graphs</h2>\n<p>Drag to zoom, double-click to go back, click a name in the legend to hide or show it.</p>\n\
         <noscript><p>The graphs need JavaScript; the tables have the same figures.</p></noscript>\n",
    );
    for (i, chart) in charts.iter().enumerate() {
        let about = escape(&chart.about);
        let tall = if i > 0 { " tall" } else { "" };
        let _ = writeln!(
            out,
            "<h3>{}</h3>\n<p class=\"soft\">{about}</p>\n<div id=\"{}\" class=\"chart{tall}\" role=\"img\" aria-label=\"{about}\"></div>",
            escape(&chart.title),
            chart.id
        );
        if i > 0 {
            out.push_str(&trials(
                rows.iter().filter(|r| r.test.label() == chart.title),
            ));
        }
    }
    out.push_str("</section>\n");
    out
}

/// The trials behind a graph.
fn trials<'a>(rows: impl Iterator<Item = &'a Row<'a>>) -> String {
    let mut out = String::from(
        "<details><summary>All trials</summary>\n<div class=\"wide\"><table>\n<thead><tr><th scope=\"col\">device</th><th scope=\"col\" class=\"n\">round</th>\
         <th scope=\"col\" class=\"n\">offered, Mpps</th><th scope=\"col\" class=\"n\">sent, Mpps</th><th scope=\"col\" class=\"n\">forwarded, Mpps</th>\
         <th scope=\"col\" class=\"n\">loss, %</th><th scope=\"col\" class=\"n\">seconds</th><th scope=\"col\">sent in full</th></tr></thead>\n<tbody>\n",
    );
    for row in rows {
        let label = escape(&row.device.label());
        for run in &row.runs {
            for Point {
                offered_pps,
                sent_pps,
                forwarded_pps,
                loss,
                valid,
                seconds,
            } in &run.ramp
            {
                let _ = writeln!(
                    out,
                    "<tr><th scope=\"row\">{label}</th><td class=\"n\">{}</td><td class=\"n\">{:.3}</td><td class=\"n\">{:.3}</td><td class=\"n\">{:.3}</td>\
                     <td class=\"n\">{:.3}</td><td class=\"n\">{seconds:.2}</td><td>{}</td></tr>",
                    run.round,
                    offered_pps / 1e6,
                    sent_pps / 1e6,
                    forwarded_pps / 1e6,
                    loss * 100.0,
                    if *valid {
                        "yes"
                    } else {
                        "<span class=\"bad\">no</span>"
                    }
                );
            }
        }
    }
    out.push_str("</tbody></table></div></details>\n");
    out
}

fn quoted() -> String {
    let mut out = String::from(
        "<section id=\"published\">\n<h2>Published figures, for reference</h2>\n\
         <p>Measured by others on other machines: they show what a reader may already know, and are no part of this measurement.</p>\n",
    );
    for published in PUBLISHED {
        let _ = write!(
            out,
            "<div class=\"wide\"><table>\n<caption>{} (source: {})</caption>\n<thead><tr>",
            escape(published.title),
            escape(published.source)
        );
        for (i, column) in published.columns.iter().enumerate() {
            let _ = write!(
                out,
                "<th scope=\"col\"{}>{}</th>",
                if i > 0 { " class=\"n\"" } else { "" },
                escape(column)
            );
        }
        out.push_str("</tr></thead>\n<tbody>\n");
        for row in published.rows {
            for (i, cell) in row.iter().enumerate() {
                let cell = escape(cell);
                let _ = if i == 0 {
                    write!(out, "<tr><th scope=\"row\">{cell}</th>")
                } else {
                    write!(out, "<td class=\"n\">{cell}</td>")
                };
            }
            out.push_str("</tr>\n");
        }
        out.push_str("</tbody></table></div>\n");
    }
    out.push_str("</section>\n");
    out
}

const METHOD: &str = "<section id=\"method\">
<h2>How to read this</h2>
<ul>
<li><strong>Max rate</strong>: the highest rate sent in a trial of at least one second of which no more than 0.1 % was lost. It is found by a search: first flat out, then up and down until passing and failing rates are about 1 % apart or time is up.</li>
<li><strong>Flat out</strong>: what the device forwarded while the generator sent as fast as it could, whatever was lost. A device that collapses under overload shows less here than its max rate.</li>
<li><strong>Sent in full</strong>: a trial in which the generator sent less than 99.9 % of what it was asked for says nothing about the device. It is never counted as loss; it is marked, and drawn hollow.</li>
<li><strong>Mpps per CPU-second</strong>: packets forwarded for each second of processor time the device used. How the time was attributed stands in the machine table.</li>
<li><strong>On the wire</strong>: frame with check sequence, preamble and inter-frame gap (20 bytes more than the frame). Sizes count the check sequence: 64 is the smallest frame.</li>
<li><strong>Near, far</strong>: whether the two processors share a cache, by a ping-pong on one cache line before and after the run; <em>flipped</em>: the two probes disagree. Compare runs of one kind only.</li>
</ul>
</section>
";

/// The graph library, the data of the graphs, and the script that draws them.
fn scripts(charts: &[Chart]) -> String {
    let data: Vec<_> = charts
        .iter()
        .map(|c| serde_json::json!({ "id": c.id, "data": c.data, "layout": c.layout }))
        .collect();
    // No `</script>` may appear in the data, whatever the name of a device.
    let data = serde_json::Value::from(data)
        .to_string()
        .replace('<', "\\u003c");
    // A formula renderer follows the library; no graph here needs it.
    let sources = plotly::Plot::offline_js_sources();
    let library = sources
        .split_inclusive("</script>")
        .next()
        .unwrap_or_default();
    format!(
        "{library}\n<script type=\"application/json\" id=\"charts\">{data}</script>\n<script>\n{SCRIPT}</script>\n"
    )
}

#[cfg(test)]
mod tests;
