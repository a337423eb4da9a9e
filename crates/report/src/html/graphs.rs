//! The section with the graphs, and the trials behind each.

use std::fmt::Write;

use loadgen::measure::point::Point;

use super::chart::Chart;
use super::escape;
use super::rows::Row;

/// The beginning of the section.
pub(super) const HEAD: &str = "<section id=\"graphs\">\n<h2>Graphs</h2>\n<p>Drag to zoom, double-click to go back, click a name in the legend to hide or show it.</p>\n\
    <noscript><p>The graphs need JavaScript; the tables have the same figures.</p></noscript>\n";

/// The places of the graphs, which a script fills.
pub(super) fn graphs(charts: &[Chart], rows: &[Row<'_>]) -> String {
    let mut out = String::from(HEAD);
    for (i, chart) in charts.iter().enumerate() {
        out.push_str(&place(chart, i > 0));
        if i > 0 {
            out.push_str(&trials(
                rows.iter().filter(|r| r.test.label() == chart.title),
            ));
        }
    }
    out.push_str("</section>\n");
    out
}

/// The place of one graph.
pub(super) fn place(chart: &Chart, is_tall: bool) -> String {
    let about = escape(&chart.about);
    let tall = if is_tall { " tall" } else { "" };
    format!(
        "<h3>{}</h3>\n<p class=\"soft\">{about}</p>\n<div id=\"{}\" class=\"chart{tall}\" role=\"img\" aria-label=\"{about}\"></div>\n",
        escape(&chart.title),
        chart.id
    )
}

/// What is wrong with a trial, and why it did not count.
fn bad(what: &str, unfit: &str) -> String {
    let why = if unfit.is_empty() { "" } else { ": " };
    format!("<span class=\"bad\">{what}{why}{}</span>", escape(unfit))
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
                disturbed,
                unfit,
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
                    match (valid, disturbed) {
                        (true, false) => "yes".to_owned(),
                        (true, true) => bad("disturbed", unfit),
                        (false, _) => bad("no", unfit),
                    }
                );
            }
        }
    }
    out.push_str("</tbody></table></div></details>\n");
    out
}
