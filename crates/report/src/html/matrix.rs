//! The page of a matrix: its table and its curves.

use serde_json::json;

use super::chart::{Chart, STYLES};
use super::loadtest::{END, table};
use super::{Page, escape, graphs, machine};
use crate::compare::Confidence;
use crate::matrix::text::{change, interval, number, unfit};
use crate::matrix::{Curve, MatrixResult, MatrixRun, Row, curves};
use crate::model::{LabResult, Run};

/// Curves longer than this ratio of their ends are drawn on a logarithmic axis.
const DECADES: f64 = 100.0;

/// The page of `result`.
pub fn matrix(result: &MatrixResult, confidence: Confidence) -> String {
    let curves = curves(result, confidence);
    let chart = [chart(result, &curves, confidence)];
    let mut main = results(result, &curves, confidence);
    main.push_str(graphs::HEAD);
    main.push_str(&graphs::place(&chart[0], true));
    main.push_str("</section>\n");
    main.push_str(&machine::section(&LabResult {
        machine: result.machine.clone(),
        runs: result.runs.iter().map(of_machine).collect(),
        ..LabResult::default()
    }));
    main.push_str(METHOD);
    Page {
        title: &result.title,
        head: &head(result),
        main: &main,
        charts: &chart,
    }
    .html()
}

/// What a run says of the machine.
fn of_machine(run: &MatrixRun) -> Run {
    Run {
        conditions: Some(run.conditions.clone()),
        ..run.run.clone().unwrap_or_default()
    }
}

fn head(result: &MatrixResult) -> String {
    format!(
        "<header>\n<h1>{}</h1>\n<p class=\"soft\">{}</p>\n\
         <p>Runs of each configuration: {}, all of them in random order (seed {}).</p>\n\
         <nav aria-label=\"Sections\"><a href=\"#results\">Results</a><a href=\"#graphs\">Graphs</a>\
         <a href=\"#machine\">Machine</a><a href=\"#method\">How to read this</a></nav>\n</header>\n",
        escape(&result.title),
        escape(&result.machine.started),
        result.rounds,
        result.seed
    )
}

fn results(result: &MatrixResult, curves: &[Curve<'_>], confidence: Confidence) -> String {
    let (per, unit) = result.shown();
    let (along, unit) = (escape(&result.along), escape(unit));
    let median = format!("median, {unit}");
    let mean = format!("mean, {} %", confidence.percent());
    let columns = [
        ("configuration", false),
        (along.as_str(), true),
        (median.as_str(), true),
        (mean.as_str(), true),
        ("change to the first", true),
        ("runs", true),
        ("not counted", true),
    ];
    let mut out = String::from("<section id=\"results\">\n<h2>Results</h2>\n");
    out.push_str(&table("Medians, means and what differs", &columns));
    for curve in curves {
        let name = escape(&curve.name());
        out.extend(curve.rows.iter().map(|row| cells(&name, row, per)));
    }
    out.push_str(END);
    let reasons: String = unfit(result)
        .map(|reason| format!("<li>{}</li>\n", escape(&reason)))
        .collect();
    if !reasons.is_empty() {
        out += &format!(
            "<details><summary>Runs that do not count</summary>\n<ul>\n{reasons}</ul></details>\n"
        );
    }
    out.push_str("</section>\n");
    out
}

fn cells(name: &str, row: &Row<'_>, per: f64) -> String {
    let none = || "&ndash;".to_owned();
    let median = row.median.map_or_else(none, |m| number(m / per));
    let mean = row.mean.map_or_else(none, |(mean, error)| {
        let [mean, error] = interval(mean / per, error / per);
        format!("{mean} &plusmn; {error}")
    });
    let (runs, unfit) = (row.values.len().to_string(), row.unfit.to_string());
    let cells = [escape(row.at), median, mean, change(row), runs, unfit];
    let cells = cells.map(|cell| format!("<td class=\"n\">{cell}</td>"));
    let cells = cells.concat();
    format!("<tr><th scope=\"row\" class=\"name\">{name}</th>{cells}</tr>\n")
}

/// Medians over the axis that curves run along, a line for each curve.
fn chart(result: &MatrixResult, curves: &[Curve<'_>], confidence: Confidence) -> Chart {
    let (per, unit) = result.shown();
    let kind = axis(curves);
    let data = curves.iter().zip(STYLES.iter().cycle()).map(|(curve, (color, symbol, dash))| {
        let rows: Vec<&Row<'_>> = curve.rows.iter().filter(|r| r.median.is_some()).collect();
        json!({
            "type": "scatter", "mode": "lines+markers", "name": curve.name(),
            "x": rows.iter().map(|r| r.at).collect::<Vec<_>>(),
            "y": rows.iter().map(|r| r.median.map(|m| m / per)).collect::<Vec<_>>(),
            "error_y": { "type": "data", "thickness": 1.5, "array": rows.iter().map(|r| r.mean.map_or(0.0, |(_, error)| error / per)).collect::<Vec<_>>() },
            "line": { "color": color, "dash": dash, "width": 2 },
            "marker": { "color": color, "symbol": symbol, "size": 7 },
        })
    });
    Chart {
        id: "curves".to_owned(),
        title: format!("{unit} over {}", result.along),
        about: format!(
            "Medians, a line for each device; bars are the interval of the mean at {} %. The table above has the same figures.",
            confidence.percent()
        ),
        data: data.collect(),
        layout: json!({
            "hovermode": "x unified", "showlegend": true,
            "xaxis": { "title": { "text": result.along }, "type": kind },
            "yaxis": { "title": { "text": unit }, "rangemode": "tozero" },
        }),
    }
}

/// The kind of axis that shows all of the values: of names, of numbers, or of their logarithms.
fn axis(curves: &[Curve<'_>]) -> &'static str {
    let values = curves.iter().flat_map(|c| &c.rows).map(|r| r.at.parse());
    let Ok(values) = values.collect::<Result<Vec<f64>, _>>() else {
        return "category";
    };
    let least = values.iter().copied().fold(f64::INFINITY, f64::min);
    let most = values.iter().copied().fold(0.0, f64::max);
    match most >= DECADES * least.max(1.0) {
        true if least > 0.0 => "log",
        // Zero has no logarithm, and beside a large number the small ones would be one.
        true => "category",
        false => "linear",
    }
}

const METHOD: &str = "<section id=\"method\">
<h2>How to read this</h2>
<ul>
<li><strong>Change to the first</strong>: the difference of the means to the first row of the same device, with its interval, by Student's t test; <em>none proven</em> if it is not greater than its interval.</li>
<li><strong>Not counted</strong>: runs that gave no figure, or that were disturbed: the hypervisor took processor time, the processor's speed changed, or its distance to the generator's. They were repeated, and are in no mean.</li>
</ul>
</section>
";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::matrix::tests::sample;

    #[test]
    fn table_and_curves_have_the_figures() {
        let page = matrix(&sample(), Confidence::default());
        for said in [
            "<h1>Cost of &lt;routes&gt;</h1>",
            "<td class=\"n\">2000</td><td class=\"n\">0.720</td><td class=\"n\">0.720 &plusmn; 0.025</td><td class=\"n\">-29.41 % +/- 2.22 %</td><td class=\"n\">3</td><td class=\"n\">0</td>",
            "<li>kernel, 10, round 0: the hypervisor took 7.0 % of the processors</li>",
            "\"name\":\"parshall\"",
        ] {
            assert!(page.contains(said), "{said}");
        }
    }

    #[test]
    fn an_axis_shows_all_values() {
        let kind = |values: &[&str]| {
            let mut result = sample();
            result.axes[1].values = values.iter().map(|v| (*v).to_owned()).collect();
            axis(&curves(&result, Confidence::default()))
        };
        assert_eq!(kind(&["0", "10", "2000"]), "category");
        assert_eq!(kind(&["1", "10", "2000"]), "log");
        assert_eq!(kind(&["0", "1", "2"]), "linear");
        assert_eq!(kind(&["64", "imix"]), "category");
    }
}
