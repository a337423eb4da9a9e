//! The tables of what searches found, by their methods.

use loadgen::search::mlrsearch::Bounds;

use super::{END, cell, percent, table};
use crate::html::escape;
use crate::loadtest::{LoadTest, Method};

/// The section; empty if no test is a search.
pub(super) fn section(tests: &[LoadTest]) -> String {
    let searches = || tests.iter().filter_map(|t| Some((t, t.method.as_ref()?)));
    let tables: String = TABLES
        .iter()
        .map(|of| {
            let rows = searches().flat_map(|(test, method)| {
                let name = escape(&test.name);
                let line = move |cells| {
                    format!("<tr><th scope=\"row\" class=\"name\">{name}</th>{cells}</tr>\n")
                };
                (of.rows)(method).into_iter().map(line)
            });
            let rows: String = rows.collect();
            match rows.as_str() {
                "" => rows,
                _ => format!("{}{rows}{END}", table(of.caption, of.columns)),
            }
        })
        .collect();
    match tables.as_str() {
        "" => tables,
        _ => format!(
            "<section id=\"found\">\n<h2>What the searches found</h2>\n{tables}</section>\n"
        ),
    }
}

/// A kind of result: its columns, and the cells of each row beside the test's name.
struct Table {
    caption: &'static str,
    columns: &'static [(&'static str, bool)],
    rows: fn(&Method) -> Vec<String>,
}

const TABLES: [Table; 6] = [
    Table {
        caption: "Bounds of the load, all directions. A loss of 0 is the non-drop rate (NDR) or the throughput of RFC 2544, another one a partial drop rate (PDR)",
        columns: &[
            ("test", false),
            ("loss allowed", true),
            ("reached, Mpps", true),
            ("not reached, Mpps", true),
            ("width, %", true),
            ("came back at the lower one, Mpps", true),
            ("remarks", false),
        ],
        rows: |method| method.bounds().iter().map(bounds).collect(),
    },
    Table {
        caption: "Highest rate",
        columns: &[
            ("test", false),
            ("Mpps", true),
            ("95 % confidence: from", true),
            ("to", true),
            ("loss, %", true),
            ("remarks", false),
        ],
        rows: highest,
    },
    Table {
        caption: "Frame loss rate (RFC 2544, section 26.3)",
        columns: &[
            ("test", false),
            ("of the highest load, %", true),
            ("Mpps", true),
            ("loss, %", true),
            ("remarks", false),
        ],
        rows: loss_rates,
    },
    Table {
        caption: "Back-to-back frames (RFC 2544, section 26.4)",
        columns: &[
            ("test", false),
            ("frames", true),
            ("standard deviation", true),
            ("searches", true),
            ("remarks", false),
        ],
        rows: back_to_back,
    },
    Table {
        caption: "Critical load: so much is lost on average",
        columns: &[
            ("test", false),
            ("loss", true),
            ("Mpps", true),
            ("95 % confidence: from", true),
            ("to", true),
            ("trials without loss", true),
            ("remarks", false),
        ],
        rows: critical,
    },
    Table {
        caption: "What it took",
        columns: &[
            ("test", false),
            ("trials and bursts", true),
            ("of them invalid", true),
            ("seconds of sending", true),
            ("highest load, Mpps", true),
            ("came back then, Mpps", true),
            ("remarks", false),
        ],
        rows: effort,
    },
];

fn bounds(bounds: &Bounds) -> String {
    let (lower, upper) = (bounds.lower_pps, bounds.upper_pps);
    let width = lower
        .zip(upper)
        .map(|(lower, upper)| 100.0 * (upper - lower) / upper);
    let provisional = bounds.provisional.then_some("provisional");
    [
        text(&percent(bounds.allowed)),
        mega(lower),
        mega(upper),
        cell(width),
        mega(bounds.throughput_pps),
        why(provisional, &bounds.why),
    ]
    .concat()
}

fn highest(method: &Method) -> Vec<String> {
    let Method::MaxRate(found) = method else {
        return Vec::new();
    };
    let is_limited = found.limited_by_generator && found.why.is_empty();
    let row = [
        mega(found.valid.then_some(found.max_pps)),
        mega(found.interval_pps.map(|(low, _)| low)),
        mega(found.interval_pps.map(|(_, high)| high)),
        cell(found.valid.then_some(100.0 * found.loss)),
        why(is_limited.then_some("bounded by the generator"), &found.why),
    ];
    vec![row.concat()]
}

fn loss_rates(method: &Method) -> Vec<String> {
    let Method::Rfc2544(found) = method else {
        return Vec::new();
    };
    let rows = found.loss_rates.iter().map(|rate| {
        let short = rate
            .loss
            .is_none()
            .then_some("the generator could not send it");
        [
            whole(100.0 * rate.share),
            mega(Some(rate.offered_pps)),
            cell(rate.loss.map(|loss| 100.0 * loss)),
            why(short, ""),
        ]
        .concat()
    });
    rows.collect()
}

fn back_to_back(method: &Method) -> Vec<String> {
    let Method::Rfc2544(found) = method else {
        return Vec::new();
    };
    let rows = found.back_to_back.iter().map(|bursts| {
        let longest = "or more: the longest burst that is tried came back whole";
        [
            whole(bursts.packets),
            whole(bursts.deviation),
            whole(bursts.bursts.into()),
            why(bursts.is_longest.then_some(longest), ""),
        ]
        .concat()
    });
    rows.collect()
}

fn critical(method: &Method) -> Vec<String> {
    let Method::Soak(found) = method else {
        return Vec::new();
    };
    let row = [
        text(&percent(found.allowed)),
        mega(found.critical_pps),
        mega(found.interval_pps.map(|(low, _)| low)),
        mega(found.interval_pps.map(|(_, high)| high)),
        whole(found.lossless_trials.into()),
        why(None, &found.why),
    ];
    vec![row.concat()]
}

fn effort(method: &Method) -> Vec<String> {
    let rows = method.effort().into_iter().map(|effort| {
        let ended = match (effort.interrupted, effort.out_of_time) {
            (true, _) => Some("interrupted"),
            (false, true) => Some("the time was used up"),
            (false, false) => None,
        };
        [
            whole(effort.trials.into()),
            whole(effort.invalid_trials.into()),
            whole(effort.seconds),
            mega(Some(effort.top_pps)),
            mega(Some(effort.saturation_pps)),
            why(ended, effort.top_is_why()),
        ]
        .concat()
    });
    rows.collect()
}

/// A rate in packets a second, as Mpps.
fn mega(pps: Option<f64>) -> String {
    cell(pps.map(|pps| pps / 1e6))
}

fn whole(number: f64) -> String {
    text(&format!("{number:.0}"))
}

fn text(number: &str) -> String {
    format!("<td class=\"n\">{number}</td>")
}

/// The cell of the remarks.
fn why(first: Option<&str>, second: &str) -> String {
    let remarks = first.into_iter().chain([second]);
    let remarks: Vec<String> = remarks.filter(|r| !r.is_empty()).map(escape).collect();
    format!("<td class=\"why\">{}</td>", remarks.join("; "))
}
