//! The page of load tests: what was sent and came back over time, and loss over the rate.

use std::fmt::Write;

use super::chart::Chart;
use super::results::decimals;
use super::{Page, escape, graphs, machine, percent};
use crate::loadtest::{Curve, LoadTest};
use crate::model::LabResult;

mod charts;
mod methods;

/// What to draw, and how.
#[derive(Debug, Clone, Copy)]
pub struct Drawing<'a> {
    /// Title of the page.
    pub title: &'a str,
    /// Share of the packets that counts as too much loss.
    pub threshold: f64,
    /// The result whose machine measured it, if known.
    pub measured: Option<&'a LabResult>,
}

/// Tests of one profile, which share their graphs.
struct Group<'a> {
    profile: &'a str,
    tests: Vec<&'a LoadTest>,
}

/// The page of `tests`.
pub fn load_tests(tests: &[LoadTest], drawing: &Drawing<'_>) -> String {
    let mut groups: Vec<Group<'_>> = Vec::new();
    for test in tests {
        match groups.iter_mut().find(|g| g.profile == test.profile) {
            Some(group) => group.tests.push(test),
            None => groups.push(Group {
                profile: &test.profile,
                tests: vec![test],
            }),
        }
    }
    let charts: Vec<Chart> = groups
        .iter()
        .enumerate()
        .flat_map(|(i, group)| charts::of(i, group, drawing.threshold))
        .collect();
    let mut main = results(&groups, drawing.threshold);
    main.push_str(&methods::section(tests));
    main.push_str(graphs::HEAD);
    for chart in &charts {
        main.push_str(&graphs::place(chart, true));
    }
    main.push_str("</section>\n");
    main.push_str(&latencies(tests));
    main.push_str(&settings(tests));
    if let Some(result) = drawing.measured {
        main.push_str(&machine::section(result));
    }
    main.push_str(&METHOD.replace("{threshold}", &percent(drawing.threshold)));
    Page {
        title: drawing.title,
        head: &head(drawing),
        main: &main,
        charts: &charts,
    }
    .html()
}

fn head(drawing: &Drawing<'_>) -> String {
    let started = drawing.measured.map_or("", |r| r.machine.started.as_str());
    format!(
        "<header>\n<h1>{}</h1>\n<p class=\"soft\">{}</p>\n\
         <p>A load generator sent packets through a device and counted what came back.</p>\n\
         <nav aria-label=\"Sections\"><a href=\"#results\">Results</a><a href=\"#graphs\">Graphs</a>\
         <a href=\"#settings\">Settings</a><a href=\"#method\">How to read this</a></nav>\n</header>\n",
        escape(drawing.title),
        escape(started),
    )
}

/// A table's beginning: its caption, and its columns, each with whether it has numbers.
pub(super) fn table(caption: &str, columns: &[(&str, bool)]) -> String {
    let mut out = format!("<div class=\"wide\"><table>\n<caption>{caption}</caption>\n<thead><tr>");
    for (name, is_number) in columns {
        let class = if *is_number { " class=\"n\"" } else { "" };
        let _ = write!(out, "<th scope=\"col\"{class}>{name}</th>");
    }
    out.push_str("</tr></thead>\n<tbody>\n");
    out
}

pub(super) const END: &str = "</tbody></table></div>\n";

fn results(groups: &[Group<'_>], threshold: f64) -> String {
    let rate = format!("at less than {} loss, Mpps", percent(threshold));
    let columns = [
        ("test", false),
        ("direction", false),
        (&rate, true),
        ("most that came back, Mpps", true),
        ("of the line, %", true),
        ("highest loss, %", true),
        ("remarks", false),
    ];
    let mut out = String::from("<section id=\"results\">\n<h2>Results</h2>\n");
    out.push_str(&table("Rates that came back", &columns));
    for group in groups {
        let _ = writeln!(
            out,
            "<tr class=\"group\"><th scope=\"rowgroup\" colspan=\"{}\">{}</th></tr>",
            columns.len(),
            escape(group.profile)
        );
        for test in &group.tests {
            for curve in &test.curves {
                out.push_str(&result(test, curve, threshold));
            }
            if test.curves.is_empty() {
                out.push_str(&result(test, &Curve::default(), threshold));
            }
        }
    }
    out.push_str(END);
    out.push_str("</section>\n");
    out
}

fn result(test: &LoadTest, curve: &Curve, threshold: f64) -> String {
    let highest = curve.highest();
    let mega = |rate: Option<f64>| cell(rate.map(|pps| pps / 1e6));
    let util = highest.and_then(|s| s.received_percent);
    let loss = curve.samples.iter().map(|s| s.loss * 100.0);
    let mut remarks: Vec<String> = test.remarks.iter().map(|r| escape(r)).collect();
    let short = curve.samples.iter().filter(|s| !s.is_valid).count();
    if short > 0 {
        let all = curve.samples.len();
        let what = match curve.is_over_time {
            true => "samples were not sent in full",
            false => "trials did not count",
        };
        remarks.push(format!(
            "<span class=\"bad\">{short} of {all} {what}</span>"
        ));
    }
    format!(
        "<tr><th scope=\"row\" class=\"name\">{}</th><td>{}</td>{}{}{}{}<td class=\"why\">{}</td></tr>\n",
        escape(&test.name),
        curve.channel,
        mega(curve.rate_below(threshold)),
        mega(highest.map(|s| s.received_pps)),
        cell(util.map(|util| util.min(100.0))),
        cell(loss.reduce(f64::max)),
        remarks.join("; "),
    )
}

/// A number with three digits or more.
fn cell(number: Option<f64>) -> String {
    match number {
        None => "<td class=\"n\">&ndash;</td>".to_owned(),
        Some(n) => format!("<td class=\"n\">{n:.*}</td>", decimals(n).max(3)),
    }
}

/// Latencies, if any were measured.
fn latencies(tests: &[LoadTest]) -> String {
    let columns = [
        ("test", false),
        ("stream", false),
        ("least", true),
        ("mean", true),
        ("median", true),
        ("p99", true),
        ("most", true),
    ];
    let rows = tests
        .iter()
        .flat_map(|t| t.latencies.iter().map(move |l| (t, l)));
    let rows: String = rows
        .map(|(test, latency)| {
            let micros = latency.nanos.map(|n| cell(n.map(|n| n / 1e3)));
            let (test, stream) = (escape(&test.name), escape(&latency.stream));
            let micros = micros.concat();
            format!(
                "<tr><th scope=\"row\" class=\"name\">{test}</th><td>{stream}</td>{micros}</tr>\n"
            )
        })
        .collect();
    if rows.is_empty() {
        return rows;
    }
    let table = table(
        "Microseconds, over the whole test; of RFC 2544 over the trial at the throughput",
        &columns,
    );
    format!("<section id=\"latency\">\n<h2>Latency</h2>\n{table}{rows}{END}</section>\n")
}

/// The settings of each test, as they were written, one below the other to be compared.
fn settings(tests: &[LoadTest]) -> String {
    let names = tests.iter().flat_map(|t| &t.settings).map(|s| &s.0);
    let mut known: Vec<&String> = Vec::new();
    for name in names {
        if !known.contains(&name) {
            known.push(name);
        }
    }
    let escaped: Vec<String> = known.iter().map(|name| escape(name)).collect();
    let mut columns = vec![("test", false), ("profile", false)];
    columns.extend(escaped.iter().map(|name| (name.as_str(), false)));
    let mut out = String::from("<section id=\"settings\">\n<h2>Settings</h2>\n");
    out.push_str(&table("As the file has them", &columns));
    for test in tests {
        let (name, profile) = (escape(&test.name), escape(&test.profile));
        let _ = write!(
            out,
            "<tr><th scope=\"row\" class=\"name\">{name}</th><td>{profile}</td>"
        );
        for key in &known {
            let value = test.settings.iter().find(|(k, _)| k == *key);
            let value = value.map_or("&ndash;".to_owned(), |(_, v)| escape(v));
            let _ = write!(out, "<td>{value}</td>");
        }
        out.push_str("</tr>\n");
    }
    out.push_str(END);
    out.push_str("</section>\n");
    out
}

const METHOD: &str = "<section id=\"method\">
<h2>How to read this</h2>
<ul>
<li><strong>At less than {threshold} loss</strong>: the rate that came back where the loss of a test over time reaches {threshold} for the last time and stays there, or the highest one if it never does; none if it is there from the beginning. Of the trials of a search, the highest rate of those with less loss.</li>
<li><strong>Loss</strong>: the share of the packets sent in a second that did not come back in it. It is drawn on a logarithmic scale, which has no place for zero: where there is no mark, nothing was lost.</li>
<li><strong>Not sent in full</strong>: the generator sent less than it was asked for. That is never counted as loss; such samples are drawn hollow, as are trials of a search that did not count because the generator or the machine was held up.</li>
</ul>
</section>
";

#[cfg(test)]
mod tests;
