//! The graphs as data for plotly. Colors and sizes that depend on the reader's theme are set in the
//! page.

use serde_json::{Value, json};

use loadgen::measure::point::Point;

use super::rows::{Row, Test};
use crate::model::LabResult;

/// Colors that people with any color vision can tell apart (Okabe and Ito), and shapes for those
/// who see none.
pub(super) const STYLES: [(&str, &str, &str); 7] = [
    ("#0072b2", "circle", "solid"),
    ("#d55e00", "square", "solid"),
    ("#009e73", "diamond", "solid"),
    ("#cc79a7", "triangle-up", "solid"),
    ("#e69f00", "triangle-down", "dash"),
    ("#56b4e9", "cross", "dash"),
    ("#8a8a8a", "x", "dash"),
];

/// A graph of the page.
pub(super) struct Chart {
    /// Identifier of its element in the page.
    pub id: String,
    pub title: String,
    /// Description for those who cannot see it.
    pub about: String,
    pub data: Vec<Value>,
    pub layout: Value,
}

/// All graphs: the overview, then one for each load.
pub(super) fn charts(result: &LabResult, rows: &[Row<'_>], allowed: &str) -> Vec<Chart> {
    let devices = devices(rows);
    let mut charts = vec![overview(result, rows, &devices, allowed)];
    let mut rest = rows;
    while let Some(first) = rest.first() {
        let same = rest.iter().take_while(|r| r.test == first.test).count();
        charts.extend(ramp(charts.len(), &first.test, &rest[..same], &devices));
        rest = &rest[same..];
    }
    charts
}

/// Labels of all devices, in order: a device has the same color in every graph.
fn devices(rows: &[Row<'_>]) -> Vec<String> {
    let mut devices: Vec<String> = Vec::new();
    for row in rows {
        let label = row.device.label();
        if !devices.contains(&label) {
            devices.push(label);
        }
    }
    devices
}

fn style(devices: &[String], label: &str) -> (&'static str, &'static str, &'static str) {
    let index = devices.iter().position(|d| d == label).unwrap_or(0);
    STYLES[index % STYLES.len()]
}

pub(super) const MEGA: f64 = 1e6;

/// Bars: the highest rate of each device under each load.
fn overview(result: &LabResult, rows: &[Row<'_>], devices: &[String], allowed: &str) -> Chart {
    let mut data: Vec<Value> = devices
        .iter()
        .map(|device| {
            let (color, ..) = style(devices, device);
            let mine: Vec<_> = rows
                .iter()
                .filter(|r| r.device.label() == *device)
                .filter_map(|r| Some((r.test.label(), r.summary(|run| Some(run.max_pps / MEGA))?)))
                .collect();
            json!({
                "type": "bar",
                "name": device,
                "x": mine.iter().map(|m| m.0.as_str()).collect::<Vec<_>>(),
                "y": mine.iter().map(|m| m.1.median).collect::<Vec<_>>(),
                "error_y": {
                    "type": "data", "symmetric": false, "thickness": 1.5,
                    "array": mine.iter().map(|m| m.1.max - m.1.median).collect::<Vec<_>>(),
                    "arrayminus": mine.iter().map(|m| m.1.median - m.1.min).collect::<Vec<_>>(),
                },
                "marker": { "color": color },
                "hovertemplate": "%{y:.3f} Mpps",
            })
        })
        .collect();
    let tests: Vec<String> = {
        let mut labels: Vec<String> = rows.iter().map(|r| r.test.label()).collect();
        labels.dedup();
        labels
    };
    if result.generator.ceiling_pps > 0.0 && !tests.is_empty() {
        data.push(json!({
            "type": "scatter", "mode": "lines", "name": "generator's ceiling",
            "x": tests, "y": vec![result.generator.ceiling_pps / MEGA; tests.len()],
            "line": { "dash": "dot", "color": "#8a8a8a" },
            "hovertemplate": "%{y:.3f} Mpps",
        }));
    }
    Chart {
        id: "overview".to_owned(),
        title: format!("Highest rate with no more than {allowed} loss"),
        about: "Bars of the highest rate of each device under each load test; the table above has the same figures.".to_owned(),
        data,
        layout: json!({
            "barmode": "group", "hovermode": "x unified",
            "yaxis": { "title": { "text": "Mpps" }, "rangemode": "tozero" },
            "xaxis": { "type": "category" },
        }),
    }
}

/// Rate forwarded and loss over rate offered, of each device under one load. None if there are no
/// trials.
fn ramp(index: usize, test: &Test, rows: &[Row<'_>], devices: &[String]) -> Option<Chart> {
    let mut data = Vec::new();
    let mut top: f64 = 0.0;
    for row in rows {
        let label = row.device.label();
        let mut points: Vec<&Point> = row
            .runs
            .iter()
            .flat_map(|r| &r.ramp)
            .filter(|p| p.offered_pps.is_finite())
            .collect();
        points.sort_by(|a, b| a.offered_pps.total_cmp(&b.offered_pps));
        top = points
            .iter()
            .map(|p| p.offered_pps / MEGA)
            .fold(top, f64::max);
        let style = style(devices, &label);
        let (valid, short): (Vec<_>, Vec<_>) = points.into_iter().partition(|p| p.valid);
        if !valid.is_empty() {
            data.push(line(&label, &label, &valid, style, "y", |p| {
                p.forwarded_pps / MEGA
            }));
            data.push(line(&label, &label, &valid, style, "y2", |p| {
                p.loss * 100.0
            }));
        }
        if !short.is_empty() {
            data.push(sent_short(&label, &short, style));
        }
    }
    if data.is_empty() {
        return None;
    }
    data.push(json!({
        "type": "scatter", "mode": "lines", "name": "all that is offered", "x": [0.0, top], "y": [0.0, top],
        "line": { "dash": "dot", "color": "#8a8a8a", "width": 1 }, "hoverinfo": "skip",
    }));
    Some(Chart {
        id: format!("ramp{index}"),
        title: test.label(),
        about: "Rate forwarded (above) and loss (below) over the rate offered, a line for each device. Hollow marks: the generator sent less than was offered, which is no loss. The trials are listed below the graph.".to_owned(),
        data,
        layout: json!({
            "hovermode": "closest",
            "xaxis": { "title": { "text": "rate offered, Mpps" }, "anchor": "y2", "rangemode": "tozero" },
            "yaxis": { "title": { "text": "forwarded, Mpps" }, "domain": [0.36, 1.0], "rangemode": "tozero" },
            "yaxis2": { "title": { "text": "loss, %" }, "domain": [0.0, 0.27], "rangemode": "tozero" },
        }),
    })
}

fn line(
    name: &str,
    group: &str,
    points: &[&Point],
    style: (&str, &str, &str),
    axis: &str,
    y: impl Fn(&Point) -> f64,
) -> Value {
    let (color, symbol, dash) = style;
    json!({
        "type": "scatter", "mode": "lines+markers", "name": name, "legendgroup": group, "showlegend": axis == "y", "yaxis": axis,
        "x": points.iter().map(|p| p.offered_pps / MEGA).collect::<Vec<_>>(),
        "y": points.iter().map(|p| y(p)).collect::<Vec<_>>(),
        "line": { "color": color, "dash": dash, "width": 2 },
        "marker": { "color": color, "symbol": symbol, "size": 7 },
        "hovertemplate": if axis == "y" { "offered %{x:.3f}, forwarded %{y:.3f} Mpps" } else { "offered %{x:.3f} Mpps, loss %{y:.3f} %" },
    })
}

/// Trials in which the generator fell short: hollow marks without a line.
fn sent_short(group: &str, points: &[&Point], (color, symbol, _): (&str, &str, &str)) -> Value {
    json!({
        "type": "scatter", "mode": "markers", "name": format!("{group}: not sent in full"), "legendgroup": group, "showlegend": false,
        "x": points.iter().map(|p| p.offered_pps / MEGA).collect::<Vec<_>>(),
        "y": points.iter().map(|p| p.forwarded_pps / MEGA).collect::<Vec<_>>(),
        "marker": { "color": color, "symbol": format!("{symbol}-open"), "size": 8 },
        "hovertemplate": "wanted %{x:.3f}, forwarded %{y:.3f} Mpps; not sent in full",
    })
}
