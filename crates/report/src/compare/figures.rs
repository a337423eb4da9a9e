//! The figures of a result of any command, for a comparison with those of others.

use serde::Deserialize;
use serde_json::Value;

use crate::Conditions;
use crate::html::percent;
use crate::matrix::MatrixResult;

/// A figure, with what it is of.
#[derive(Debug, Clone, PartialEq)]
pub struct Figure {
    /// What was measured: figures of the same are compared.
    pub of: Of,
    /// Its value in that unit.
    pub value: f64,
    /// It is that or more: `-m` or the generator bounds it, not the device.
    pub is_bounded: bool,
}

/// What a figure is of.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Of {
    /// In words.
    pub name: String,
    /// Unit of the values.
    pub unit: String,
    /// Less of it is better.
    pub is_cost: bool,
}

const MPPS: f64 = 1e6;

/// The figures of a result that can be compared: those of disturbed measurements cannot.
///
/// # Errors
/// It is no result of ours that has figures.
pub fn of(result: &Value) -> Result<Vec<Figure>, String> {
    if result.pointer("/runs/0/at").is_some() {
        return of_matrix(result);
    }
    let figures = match (
        result.get("method"),
        result.get("search"),
        result.get("rows"),
    ) {
        (Some(method), ..) => of_search(method.as_str().unwrap_or_default(), &result["result"]),
        (_, Some(search), _) => of_highest(search),
        (.., Some(rows)) => of_bench(rows),
        _ if result["parshall"]["highest"].is_object() => {
            of_highest(&result["parshall"]["highest"])
        }
        _ => {
            return Err(
                "no result of `matrix`, `search`, `loadtest` or `bench`, nor one alone of `lab`; \
                 name a value of it by --key"
                    .to_owned(),
            );
        }
    };
    let ours = [&result["conditions"], &result["parshall"]["conditions"]];
    let known = ours
        .into_iter()
        .find_map(|c| Conditions::deserialize(c).ok());
    Ok(match known.and_then(|conditions| conditions.disturbed()) {
        // Each round of a bench has been looked at, and repeated.
        Some(_) if result.get("rows").is_none() => Vec::new(),
        _ => figures,
    })
}

/// The number at `key`, a JSON pointer such as `/search/max_pps`, or the numbers of a list there.
///
/// # Errors
/// There is nothing, or no number; the message names the key.
pub fn at(result: &Value, key: &str) -> Result<Vec<Figure>, String> {
    let found = result.pointer(key);
    let found = found.ok_or_else(|| format!("there is nothing at {key} in its JSON"))?;
    if found.is_null() {
        return Err(format!("{key} is null: this result has no such number"));
    }
    let values = match found {
        Value::Array(all) => all.iter().map(Value::as_f64).collect(),
        one => one.as_f64().map(|value| vec![value]),
    };
    let values =
        values.ok_or_else(|| format!("{key} is neither a number nor a list of numbers"))?;
    let of = Of {
        name: key.to_owned(),
        ..Of::default()
    };
    let figure = |value| Figure {
        of: of.clone(),
        value,
        is_bounded: false,
    };
    Ok(values.into_iter().map(figure).collect())
}

fn of_matrix(result: &Value) -> Result<Vec<Figure>, String> {
    let result = MatrixResult::deserialize(result)
        .map_err(|e| format!("no result of `parshall matrix`: {e}"))?;
    let (per, unit) = result.shown();
    let counted = result.runs.iter().filter_map(|run| {
        let of = Of {
            name: run.at.join(", "),
            unit: unit.to_owned(),
            is_cost: false,
        };
        let value = run.counted()? / per;
        let is_bounded = run.run.as_ref().is_some_and(crate::model::Run::is_bounded);
        Some(Figure {
            of,
            value,
            is_bounded,
        })
    });
    Ok(counted.collect())
}

fn rate(name: String, pps: &Value, is_bounded: bool) -> Option<Figure> {
    let of = Of {
        name,
        unit: "Mpps".to_owned(),
        is_cost: false,
    };
    let value = pps.as_f64()? / MPPS;
    Some(Figure {
        of,
        value,
        is_bounded,
    })
}

fn of_search(method: &str, result: &Value) -> Vec<Figure> {
    let goals = result["goals"].as_array().into_iter().flatten();
    let bounds = goals.chain([&result["bounds"], &result["throughput"]]);
    let bounds = bounds.filter_map(|bounds| {
        let allowed = percent(bounds["allowed"].as_f64()?);
        let name = format!("{method}, no more than {allowed} loss");
        let is_bounded = bounds["finished"] == false && bounds["upper_pps"].is_null();
        let lower = rate(name, &bounds["lower_pps"], is_bounded);
        lower.filter(|_| bounds["provisional"] != true)
    });
    let critical = rate(
        format!("{method}, critical load"),
        &result["critical_pps"],
        result["why"].as_str().is_some_and(|why| !why.is_empty()),
    );
    let is_valid = result["valid"] == true;
    let highest = rate(
        format!("{method}, highest rate"),
        &result["max_pps"],
        is_bounded(result),
    );
    let highest = highest.filter(|_| is_valid);
    bounds.chain(critical).chain(highest).collect()
}

/// True if something else than the device bounds the highest rate, which `why` says of a valid one.
fn is_bounded(found: &Value) -> bool {
    let why = found["why"].as_str().unwrap_or_default();
    found["limited_by_generator"] == true || !why.is_empty()
}

fn of_highest(found: &Value) -> Vec<Figure> {
    let is_valid = found["valid"] == true;
    let bounded = is_bounded(found);
    let found = rate(
        "load test, highest rate".to_owned(),
        &found["max_pps"],
        bounded,
    );
    found.into_iter().filter(|_| is_valid).collect()
}

/// The rounds of each row, by additions where the speed of the processor is known.
fn of_bench(rows: &Value) -> Vec<Figure> {
    let of_row = |row: &Value| {
        let rounds = [("round_additions", "additions"), ("rounds", "cycles")];
        let known = rounds.into_iter().find_map(|(key, unit)| {
            let rounds = row[key].as_array().filter(|rounds| !rounds.is_empty())?;
            Some((rounds.clone(), unit))
        });
        let name = row["name"].as_str().unwrap_or_default().to_owned();
        let figures = known.into_iter().flat_map(move |(rounds, unit)| {
            let of = Of {
                name: name.clone(),
                unit: unit.to_owned(),
                is_cost: true,
            };
            let values: Vec<f64> = rounds.iter().filter_map(Value::as_f64).collect();
            values.into_iter().map(move |value| Figure {
                of: of.clone(),
                value,
                is_bounded: false,
            })
        });
        figures.collect::<Vec<_>>()
    };
    rows.as_array()
        .into_iter()
        .flatten()
        .flat_map(of_row)
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn said(result: &Value) -> Vec<(String, f64)> {
        let figures = of(result).unwrap().into_iter();
        let words = |of: Of| format!("{} [{}]", of.name, of.unit);
        figures.map(|f| (words(f.of), f.value)).collect()
    }

    #[test]
    fn results_of_all_commands_have_figures() {
        let goals = json!({"goals": [
            {"allowed": 0.0, "lower_pps": 1e6}, {"allowed": 0.005, "lower_pps": null}]});
        let search = json!({"method": "mlrsearch", "result": goals});
        let name = "mlrsearch, no more than 0 % loss [Mpps]";
        assert_eq!(said(&search), [(name.to_owned(), 1.0)]);
        let highest = "load test, highest rate [Mpps]".to_owned();
        let flat = json!({"search": {"valid": true, "max_pps": 2e6}});
        assert_eq!(said(&flat), [(highest.clone(), 2.0)]);
        let ramp = json!({"parshall": {"highest": {"valid": true, "max_pps": 3e6}}});
        assert_eq!(said(&ramp), [(highest, 3.0)]);
        let bench = json!({"rows": [{"name": "ip4", "rounds": [40.0, 41.0]}]});
        let row = |cycles| ("ip4 [cycles]".to_owned(), cycles);
        assert_eq!(said(&bench), [row(40.0), row(41.0)]);
        let matrix = serde_json::to_value(crate::matrix::tests::sample()).unwrap();
        assert_eq!(said(&matrix).len(), 18, "the unfit run does not count");
    }

    #[test]
    fn what_is_unfit_has_no_figure() {
        let ramp = json!({"parshall": {"highest": {"valid": false, "max_pps": null}}});
        assert_eq!(said(&ramp), []);
        let conditions = json!({"steal_percent": 9.0, "cycles_per_add": null});
        let found = json!({"valid": true, "max_pps": 2e6});
        assert_eq!(
            said(&json!({"search": found, "conditions": conditions})),
            []
        );
        assert!(of(&json!({"a": 1})).unwrap_err().contains("--key"));
    }

    #[test]
    fn a_key_names_a_value() {
        let result = json!({"a": {"b": [1, 2.5], "c": "x"}});
        let values = at(&result, "/a/b").unwrap().into_iter().map(|f| f.value);
        assert_eq!(values.collect::<Vec<_>>(), [1.0, 2.5]);
        let null = json!({"a": null});
        assert!(at(&null, "/a").unwrap_err().contains("/a is null"));
        assert!(at(&result, "/a/c").unwrap_err().contains("/a/c is neither"));
        assert!(at(&result, "/d").unwrap_err().contains("nothing at /d"));
    }
}
