//! The graphs of tests of one profile.

use serde_json::{Value, json};

use super::super::chart::{Chart, MEGA, STYLES};
use super::super::percent;
use super::Group;
use crate::loadtest::{Curve, Sample, Spread};

const GRAY: &str = "#8a8a8a";

/// A curve with its name and its place among the styles.
type Named<'a> = (String, usize, &'a Curve);

/// The graphs over time, if there is a test over time, and that over the rate, if there is any.
/// `index` is that of the group.
pub(super) fn of(index: usize, group: &Group<'_>, threshold: f64) -> Vec<Chart> {
    let curves = group.tests.iter().flat_map(|test| {
        let curves = test.curves.iter();
        curves.map(|curve| (format!("{} {}", test.name, curve.channel), curve))
    });
    let curves: Vec<Named<'_>> = curves.enumerate().map(|(i, (n, c))| (n, i, c)).collect();
    let over_time: Vec<&Named<'_>> = curves.iter().filter(|c| c.2.is_over_time).collect();
    let mut charts = Vec::new();
    if !over_time.is_empty() {
        charts.push(time(index, group, &over_time, threshold));
        charts.extend(latency(index, group, &over_time));
    }
    if !curves.is_empty() {
        charts.push(rate(index, group, &curves, threshold));
    }
    charts
}

/// Rates sent and come back, and loss, over the seconds.
fn time(index: usize, group: &Group<'_>, curves: &[&Named<'_>], threshold: f64) -> Chart {
    let seconds = |curve: &Curve| (1..=curve.samples.len()).map(|s| s as f64).collect();
    let mut data = Vec::new();
    for (name, style, curve) in curves {
        let x: Vec<f64> = seconds(curve);
        let mut sent = line(*style, &x, curve, "y", |s| s.sent_pps / MEGA);
        sent["name"] = format!("{name}: sent").into();
        sent["line"]["dash"] = "dot".into();
        sent["mode"] = "lines".into();
        sent["hovertemplate"] = "%{y:.3f} Mpps".into();
        data.push(sent);
        data.extend(came_back(name, *style, &x, curve));
    }
    let longest = curves.iter().map(|c| c.2.samples.len()).max();
    data.push(limit(1.0, longest.unwrap_or(1) as f64, threshold));
    Chart {
        id: format!("time{index}"),
        title: format!("{}: over time", group.profile),
        about: "Rate sent (dotted) and rate that came back (above), and loss (below), second by second.".to_owned(),
        data,
        layout: layout("seconds", "x unified"),
    }
}

/// Latencies over the seconds, if any were measured.
fn latency(index: usize, group: &Group<'_>, curves: &[&Named<'_>]) -> Option<Chart> {
    let micros = |of: fn(&Spread) -> f64| {
        move |s: &Sample| s.latency.as_ref().map(|latency| of(latency) / 1000.0)
    };
    let figures = [
        ("median", "solid", micros(|s| s.p50)),
        ("99 %", "dash", micros(|s| s.p99)),
        ("most", "dot", micros(|s| s.max)),
    ];
    let mut data = Vec::new();
    for (name, style, curve) in curves {
        if curve.samples.iter().all(|s| s.latency.is_none()) {
            continue;
        }
        let (color, _, _) = STYLES[style % STYLES.len()];
        let seconds: Vec<usize> = (1..=curve.samples.len()).collect();
        data.extend(figures.iter().map(|(figure, dash, of)| {
            json!({
                "type": "scatter", "mode": "lines", "name": format!("{name}: {figure}"), "x": seconds,
                "y": curve.samples.iter().map(of).collect::<Vec<_>>(),
                "line": { "color": color, "width": 2, "dash": dash },
                "hovertemplate": "%{y:.1f} µs",
            })
        }));
    }
    (!data.is_empty()).then(|| Chart {
        id: format!("latency{index}"),
        title: format!("{}: latency over time", group.profile),
        about: "How long the packets took that came back in each second, of all streams that \
                measure it."
            .to_owned(),
        data,
        layout: json!({
            "hovermode": "x unified",
            "xaxis": { "title": { "text": "seconds" }, "rangemode": "tozero" },
            "yaxis": { "title": { "text": "latency, µs" }, "type": "log" },
        }),
    })
}

/// Rates come back, and loss, over the rate sent.
fn rate(index: usize, group: &Group<'_>, curves: &[Named<'_>], threshold: f64) -> Chart {
    let mut data = Vec::new();
    let mut top: f64 = 0.0;
    for (name, style, curve) in curves {
        let mut by_rate = (*curve).clone();
        by_rate
            .samples
            .sort_by(|a, b| a.sent_pps.total_cmp(&b.sent_pps));
        let x: Vec<f64> = by_rate.samples.iter().map(|s| s.sent_pps / MEGA).collect();
        top = x.iter().copied().fold(top, f64::max);
        data.extend(came_back(name, *style, &x, &by_rate));
    }
    data.push(json!({
        "type": "scatter", "mode": "lines", "name": "all that is sent", "x": [0.0, top], "y": [0.0, top],
        "line": { "dash": "dot", "color": GRAY, "width": 1 }, "hoverinfo": "skip",
    }));
    data.push(limit(0.0, top, threshold));
    Chart {
        id: format!("rate{index}"),
        title: format!("{}: over the rate sent", group.profile),
        about: "Rate that came back (above) and loss (below) over the rate sent.".to_owned(),
        data,
        layout: layout("rate sent, Mpps", "closest"),
    }
}

/// The rate that came back, and the loss below it.
fn came_back(name: &str, style: usize, x: &[f64], curve: &Curve) -> [Value; 2] {
    let mut rate = line(style, x, curve, "y", |s| s.received_pps / MEGA);
    rate["name"] = name.into();
    rate["legendgroup"] = name.into();
    rate["customdata"] = curve.samples.iter().map(|s| s.loss * 100.0).collect();
    rate["hovertemplate"] = "%{y:.3f} Mpps, loss %{customdata:.4f} %".into();
    let mut loss = line(style, x, curve, "y2", |s| s.loss * 100.0);
    loss["name"] = name.into();
    loss["legendgroup"] = name.into();
    loss["showlegend"] = false.into();
    loss["hovertemplate"] = "loss %{y:.4f} %".into();
    // A logarithm of 0 there is none.
    loss["y"] = curve
        .samples
        .iter()
        .map(|s| (s.loss > 0.0).then_some(s.loss * 100.0))
        .collect();
    [rate, loss]
}

fn line(style: usize, x: &[f64], curve: &Curve, axis: &str, y: impl Fn(&Sample) -> f64) -> Value {
    let (color, symbol, _) = STYLES[style % STYLES.len()];
    let symbol = |s: &Sample| match s.is_valid {
        true => symbol.to_owned(),
        false => format!("{symbol}-open"),
    };
    json!({
        "type": "scatter", "mode": "lines+markers", "yaxis": axis, "x": x,
        "y": curve.samples.iter().map(y).collect::<Vec<_>>(),
        "line": { "color": color, "width": 2 },
        "marker": { "color": color, "size": 5, "symbol": curve.samples.iter().map(symbol).collect::<Vec<_>>() },
    })
}

/// The line of too much loss.
fn limit(from: f64, to: f64, threshold: f64) -> Value {
    let percents = threshold * 100.0;
    json!({
        "type": "scatter", "mode": "lines", "name": format!("{} loss", percent(threshold)), "yaxis": "y2",
        "x": [from, to], "y": [percents, percents],
        "line": { "dash": "dash", "color": GRAY, "width": 1 }, "hoverinfo": "skip",
    })
}

fn layout(x: &str, hover: &str) -> Value {
    json!({
        "hovermode": hover,
        "xaxis": { "title": { "text": x }, "anchor": "y2", "rangemode": "tozero" },
        "yaxis": { "title": { "text": "Mpps" }, "domain": [0.42, 1.0], "rangemode": "tozero" },
        "yaxis2": { "title": { "text": "loss, %" }, "domain": [0.0, 0.34], "type": "log" },
    })
}
