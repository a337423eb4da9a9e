//! The page of a comparison, and that of load tests, in HTML.
//!
//! A page is one file that contains the graph library and needs no network. Everything that comes
//! from a measurement or a machine is escaped.

use std::fmt::Write;

use self::chart::Chart;
use crate::model::LabResult;

mod chart;
mod graphs;
mod head;
mod latency;
mod loadtest;
mod machine;
mod matrix;
mod quoted;
mod results;
pub(crate) mod rows;

pub use loadtest::{Drawing, load_tests};
pub use matrix::matrix;

/// Fonts and colours of pages, light and dark.
pub const STYLE: &str = include_str!("style.css");
/// Script with `themed(layout)`, which gives a graph the page's fonts and colours.
pub const THEME: &str = include_str!("theme.js");
const SCRIPT: &str = include_str!("page.js");

/// Loss that the search of a comparison allows, as a share of the packets sent.
pub const LOSS: f64 = 0.001;

/// The page for `result`, whose highest rates lose no more than the share [`LOSS`].
pub fn page(result: &LabResult) -> String {
    let rows = rows::rows(&result.runs);
    let allowed = &percent(LOSS);
    let charts = chart::charts(result, &rows, allowed);
    let mut main = results::results(&rows, allowed);
    main.push_str(&latency::section(result));
    main.push_str(&graphs::graphs(&charts, &rows));
    main.push_str(&machine::section(result));
    main.push_str(&quoted::quoted());
    main.push_str(&METHOD.replace("{allowed}", allowed));
    Page {
        title: &head::title(&rows),
        head: &head::head(result, &rows, allowed),
        main: &main,
        charts: &charts,
    }
    .html()
}

/// The parts of a page. All but the title are HTML.
struct Page<'a> {
    title: &'a str,
    head: &'a str,
    main: &'a str,
    charts: &'a [Chart],
}

impl Page<'_> {
    /// The whole file.
    fn html(&self) -> String {
        let mut out = String::with_capacity(6 << 20);
        out.push_str("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n");
        out.push_str("<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n");
        let title = escape(self.title);
        let _ = writeln!(
            out,
            "<title>{title}</title>\n<link rel=\"icon\" href=\"data:,\">"
        );
        let _ = writeln!(out, "<style>\n{STYLE}</style>\n</head>\n<body>");
        out.push_str(self.head);
        let _ = writeln!(out, "<main>\n{}</main>", self.main);
        out.push_str("<footer>Written by Parshall.</footer>\n");
        out.push_str(&scripts(self.charts));
        out.push_str("</body>\n</html>\n");
        out
    }
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

/// A share in percent, without zeros at the end.
pub(crate) fn percent(share: f64) -> String {
    format!("{} %", (share * 1e8).round() / 1e6)
}

/// The last section: what the words of a result mean.
const METHOD: &str = "<section id=\"method\">
<h2>How to read this</h2>
<ul>
<li><strong>Max rate</strong>: the highest rate sent in a trial of at least one second of which no more than {allowed} was lost. It is found by a search: first flat out, then up and down until passing and failing rates are about 1 % apart or time is up.</li>
<li><strong>Flat out</strong>: what the device forwarded while the generator sent as fast as it could, whatever was lost. A device that collapses under overload shows less here than its max rate.</li>
<li><strong>Sent in full</strong>: a trial in which the generator sent less than 99.9 % of what it was asked for says nothing about the device. It is never counted as loss; it is marked, and drawn hollow.</li>
<li><strong>On the wire</strong>: frame with check sequence, preamble and inter-frame gap (20 bytes more than the frame). Sizes count the check sequence: 64 is the smallest frame.</li>
<li><strong>Mpps per CPU-second</strong>: packets forwarded for each second of processor time the device used. The machine table says how the time was attributed.</li>
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
    let library = graph_library();
    format!(
        "<script>{library}</script>\n<script type=\"application/json\" id=\"charts\">{data}</script>\n<script>\n{THEME}{SCRIPT}</script>\n"
    )
}

/// The graph library, a script.
pub fn graph_library() -> String {
    // A formula renderer follows the library; no graph here needs it.
    let sources = plotly::Plot::offline_js_sources();
    let first = sources.split("</script>").next().unwrap_or_default();
    first
        .split_once('>')
        .map_or("", |(_, script)| script)
        .to_owned()
}

#[cfg(test)]
mod tests;
