//! Reads what T-Rex's load-test scripts write, and the JSON of `parshall loadtest` and `parshall
//! lab`.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Map, Value};

use loadgen::measure::point::Point;
use loadgen::model::units::Pps;

use super::{Channel, Curve, Latency, LoadTest, Method, Sample, Spread};
use crate::Conditions;
use crate::html::rows;
use crate::model::LabResult;

type Object = Map<String, Value>;

/// Reads the text of a file, which is called `name`. A result of the lab has many tests.
///
/// # Errors
/// It is no JSON or of another kind, or a key is missing or has a wrong value; the message names it.
pub fn read(name: &str, text: &str) -> Result<Vec<LoadTest>, String> {
    let value: Value = serde_json::from_str(text).map_err(|e| format!("no JSON: {e}"))?;
    of_json(name, &value)
}

/// As [`read`], of a value.
///
/// # Errors
/// As [`read`].
pub fn of_json(name: &str, value: &Value) -> Result<Vec<LoadTest>, String> {
    let has = |key: &str| value.get(key).is_some();
    if has("runs") {
        of_lab(name, value)
    } else if has("search") {
        Ok(vec![of_search(name, value)?])
    } else if has("method") && has("trials") {
        Ok(vec![of_method(name, value)?])
    } else if has("vars") || has("stats") {
        Ok(vec![of_ramp(name, value)?])
    } else {
        Err(
            "no result of a load test: it has none of the keys vars and stats (T-Rex's scripts \
             and `parshall loadtest`), search (`loadtest --search`), method and trials (`parshall \
             search`), and runs (`parshall lab`)"
                .to_owned(),
        )
    }
}

/// A test over time.
fn of_ramp(name: &str, value: &Value) -> Result<LoadTest, String> {
    let vars = object(value, "", "vars")?;
    let stats = object(value, "", "stats")?;
    let profile = match vars.get("profile_file") {
        Some(Value::String(file)) => label(file),
        other => return Err(wrong("vars", "profile_file", other, "a text")),
    };
    let is_one_way = !matches!(
        vars.get("unidirectional"),
        None | Some(Value::Null | Value::Bool(false))
    );
    let ways = [(Channel::Out, "0", "1"), (Channel::Back, "1", "0")];
    let ways = ways.iter().take(if is_one_way { 1 } else { 2 });
    let ours = our_samples(value);
    let mut curves = Vec::new();
    for (way, &(channel, from, to)) in ways.enumerate() {
        let samples = stats.iter().map(|(at, ports)| {
            let sample = sample(ports, &format!("stats.\"{at}\""), from, to)?;
            let ours = ours.get(at).copied().unwrap_or(&Value::Null);
            Ok(Sample {
                is_valid: ours["valid"] != false,
                latency: Spread::deserialize(&ours["ways"][way]["latency"]).ok(),
                ..sample
            })
        });
        let samples = samples.collect::<Result<Vec<_>, String>>()?;
        if samples.iter().any(|s| s.sent_pps > 0.0) {
            curves.push(Curve {
                channel,
                samples,
                is_over_time: true,
            });
        }
    }
    if curves.is_empty() {
        let why = match value.pointer("/parshall/interrupted") {
            Some(Value::Bool(true)) => ": the test was interrupted before the ramp began",
            _ => "",
        };
        return Err(format!(
            "stats has no sample in which packets were sent{why}"
        ));
    }
    let settings = vars.iter().filter(|(key, _)| *key != "profile_file");
    let settings = settings.map(|(k, v)| (k.clone(), plain(v)));
    let ours = value.get("parshall").unwrap_or(&Value::Null);
    Ok(LoadTest {
        name: name.to_owned(),
        profile,
        settings: settings.chain(conditions(ours)).collect(),
        curves,
        remarks: value.get("parshall").map(remarks).unwrap_or_default(),
        latencies: value.get("parshall").map(latencies).unwrap_or_default(),
        method: None,
    })
}

/// One direction of an entry of `stats`. Where nothing was sent, nothing was lost.
fn sample(ports: &Value, path: &str, from: &str, to: &str) -> Result<Sample, String> {
    let (sender, receiver) = (object(ports, path, from)?, object(ports, path, to)?);
    let of = |end: &str| format!("{path}.\"{end}\"");
    let sent_pps = number(sender, &of(from), "tx_pps")?;
    let received_pps = number(receiver, &of(to), "rx_pps")?;
    let received_percent = match receiver.get("rx_util") {
        None => None,
        Some(_) => Some(number(receiver, &of(to), "rx_util")?),
    };
    Ok(Sample {
        sent_pps,
        received_pps,
        received_percent,
        loss: match sent_pps > 0.0 {
            true => (1.0 - received_pps / sent_pps).max(0.0),
            false => 0.0,
        },
        is_valid: true,
        latency: None,
    })
}

/// Our own samples by their key in `stats`.
fn our_samples(value: &Value) -> BTreeMap<String, &Value> {
    let samples = value.pointer("/parshall/samples").and_then(Value::as_array);
    let samples = samples.into_iter().flatten();
    let key = |sample: &Value| Some(format!("{:.3}", sample["at"].as_f64()?));
    samples.filter_map(|s| Some((key(s)?, s))).collect()
}

/// What our part of the file says beside the curves.
fn remarks(ours: &Value) -> Vec<String> {
    let text = |at: &str| ours.pointer(at).and_then(Value::as_str).unwrap_or("");
    let mut remarks = Vec::new();
    if let Some(rate) = ours.pointer("/highest/max_pps").and_then(Value::as_f64) {
        let allowed = ours.pointer("/highest/allowed").and_then(Value::as_f64);
        let allowed = crate::html::percent(allowed.unwrap_or_default());
        remarks.push(format!(
            "with no more than {allowed} loss in any direction: {:.3}",
            Pps(rate)
        ));
    }
    let others = ["/highest/why", "/why", "/rate_note", "/address_note"].map(text);
    for other in others.into_iter().filter(|o| !o.is_empty()) {
        if !remarks.iter().any(|r| r == other) {
            remarks.push(other.to_owned());
        }
    }
    if ours["interrupted"] == true && !remarks.iter().any(|r| r.contains("interrupted")) {
        remarks.push("interrupted".to_owned());
    }
    remarks
}

/// Latencies of the streams of our part of the file, or of the result of a search.
fn latencies(ours: &Value) -> Vec<Latency> {
    let streams = ours["streams"].as_array().into_iter().flatten();
    let measured = streams.filter(|s| s["flow"]["measured"].as_u64() > Some(0));
    let keys = ["min", "avg", "p50", "p99", "max"];
    measured
        .map(|s| Latency {
            stream: plain(&s["name"]),
            nanos: keys.map(|key| s["flow"][key].as_f64()),
        })
        .collect()
}

/// The conditions of a test of ours by name; none in older files.
fn conditions(ours: &Value) -> impl Iterator<Item = (String, String)> {
    let known = Conditions::deserialize(&ours["conditions"]).ok();
    let facts = known.map(|conditions| conditions.facts());
    let facts = facts.into_iter().flatten();
    facts.map(|(name, value)| (name.to_owned(), value))
}

/// The search's own trials.
fn of_search(name: &str, value: &Value) -> Result<LoadTest, String> {
    let search = object(value, "", "search")?;
    let trials = search.get("trials").unwrap_or(&Value::Null);
    let trials = Vec::<Point>::deserialize(trials).map_err(|e| format!("search.trials: {e}"))?;
    let mut remarks = Vec::new();
    if search.get("valid") == Some(&Value::Bool(true)) {
        remarks.push(found(number(search, "search", "max_pps")?));
    }
    let why = search.get("why").map(plain).unwrap_or_default();
    remarks.extend(Some(why).filter(|why| !why.is_empty()));
    Ok(LoadTest {
        name: name.to_owned(),
        profile: profile(value),
        curves: vec![of_trials(&trials).ok_or("search.trials is empty")?],
        remarks,
        latencies: latencies(value),
        settings: conditions(value).collect(),
        method: method("max-rate", "search", &value["search"])?,
    })
}

/// A search by a method that has a name.
fn of_method(name: &str, value: &Value) -> Result<LoadTest, String> {
    let trials = Vec::<Point>::deserialize(&value["trials"]).map_err(|e| format!("trials: {e}"))?;
    let rate = value["result"]["max_pps"].as_f64().filter(|pps| *pps > 0.0);
    let named = plain(&value["method"]);
    Ok(LoadTest {
        name: name.to_owned(),
        profile: profile(value),
        curves: vec![of_trials(&trials).ok_or("trials is empty")?],
        remarks: (rate.map(found).into_iter())
            .chain([format!("method: {named}")])
            .collect(),
        latencies: latencies(value),
        settings: conditions(value).collect(),
        method: method(&named, "result", &value["result"])?,
    })
}

/// The profile of a search, as it is shown; older results do not have it.
fn profile(value: &Value) -> String {
    value["profile"].as_str().map_or("search".to_owned(), label)
}

/// What a method found, which stands at `path`.
fn method(name: &str, path: &str, result: &Value) -> Result<Option<Method>, String> {
    Method::read(name, result).map_err(|e| format!("{path}: no result of {name}: {e}"))
}

/// The runs of a lab, each with its device and its round.
fn of_lab(name: &str, value: &Value) -> Result<Vec<LoadTest>, String> {
    let result = LabResult::deserialize(value)
        .map_err(|e| format!("no result of `parshall lab --json`: {e}"))?;
    let rows = rows::rows(&result.runs);
    let runs = rows
        .iter()
        .flat_map(|row| row.runs.iter().map(move |r| (row, r)));
    let tests: Vec<LoadTest> = runs
        .filter_map(|(row, run)| {
            let why = Some(run.why.clone()).filter(|why| !why.is_empty());
            let rate = run.valid.then(|| found(run.max_pps));
            Some(LoadTest {
                name: format!("{name}: {}, round {}", row.device.label(), run.round),
                profile: row.test.label(),
                curves: vec![of_trials(&run.ramp)?],
                remarks: rate.into_iter().chain(why).collect(),
                ..LoadTest::default()
            })
        })
        .collect();
    if tests.is_empty() {
        return Err("runs has no run with trials".to_owned());
    }
    Ok(tests)
}

fn found(pps: f64) -> String {
    format!("found by the search: {:.3}", Pps(pps))
}

/// Trials by their rate; None if there are none.
fn of_trials(points: &[Point]) -> Option<Curve> {
    let samples = points.iter().map(|p| Sample {
        sent_pps: p.sent_pps,
        received_pps: p.forwarded_pps,
        received_percent: None,
        loss: p.loss,
        is_valid: p.valid && p.unfit.is_empty(),
        latency: None,
    });
    let finite = |s: &Sample| s.sent_pps.is_finite() && s.received_pps.is_finite();
    let mut samples: Vec<Sample> = samples.filter(finite).collect();
    samples.sort_by(|a, b| a.sent_pps.total_cmp(&b.sent_pps));
    (!samples.is_empty()).then_some(Curve {
        channel: Channel::All,
        samples,
        is_over_time: false,
    })
}

/// A profile's name without its directory and ending; T-Rex's example of small packets by their
/// size.
fn label(file: &str) -> String {
    match file.rsplit('/').next().unwrap_or(file) {
        "udp_1pkt_simple_bdir.py" => "64 B".to_owned(),
        base => base.strip_suffix(".py").unwrap_or(base).to_owned(),
    }
}

/// The object `key` of `value`, which is called `path`.
fn object<'a>(value: &'a Value, path: &str, key: &str) -> Result<&'a Object, String> {
    match value.get(key) {
        Some(Value::Object(object)) => Ok(object),
        other => Err(wrong(path, key, other, "an object")),
    }
}

/// The number `key`, 0 or more, of an object that is called `path`; whole ones have no need of a
/// decimal point.
fn number(object: &Object, path: &str, key: &str) -> Result<f64, String> {
    let value = object.get(key);
    let number = value.and_then(Value::as_f64).filter(|n| *n >= 0.0);
    number.ok_or_else(|| wrong(path, key, value, "a number, 0 or more"))
}

/// The message for a key that has `value` in place of what is `expected`.
fn wrong(path: &str, key: &str, value: Option<&Value>, expected: &str) -> String {
    let key = match path {
        "" => key.to_owned(),
        path if key.parse::<u32>().is_ok() => format!("{path}.\"{key}\""),
        path => format!("{path}.{key}"),
    };
    match value {
        None => format!("{key} is missing; expected {expected}"),
        Some(Value::String(_)) => format!("{key} is a text; expected {expected}"),
        Some(Value::Array(_)) => format!("{key} is a list; expected {expected}"),
        Some(Value::Object(_)) => format!("{key} is an object; expected {expected}"),
        Some(other) => format!("{key} is {other}; expected {expected}"),
    }
}

/// A value as text, without quotes.
fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}
