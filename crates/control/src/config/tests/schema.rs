//! The JSON schema says what the reader does.

use serde_json::{Value, json};

use super::*;

/// Returns true if a value fits a schema, by the keywords that ours uses.
fn fits(schema: &Value, value: &Value) -> bool {
    let object = schema.as_object().expect("a schema");
    object.iter().all(|(keyword, rule)| match keyword.as_str() {
        "type" => match rule {
            Value::Array(types) => types.iter().any(|of| is(of, value)),
            of => is(of, value),
        },
        "properties" => value.as_object().is_none_or(|fields| {
            fields
                .iter()
                .all(|(name, field)| rule.get(name).is_none_or(|schema| fits(schema, field)))
        }),
        "additionalProperties" => value.as_object().is_none_or(|fields| {
            let known = schema.get("properties");
            let mut others = fields
                .iter()
                .filter(|(name, _)| known.is_none_or(|known| known.get(name).is_none()));
            others.all(|(_, field)| {
                if rule.is_object() {
                    fits(rule, field)
                } else {
                    rule == true
                }
            })
        }),
        "propertyNames" => value
            .as_object()
            .is_none_or(|fields| fields.keys().all(|name| fits(rule, &json!(name)))),
        "required" => value.as_object().is_none_or(|fields| {
            rule.as_array()
                .expect("a list")
                .iter()
                .all(|name| fields.contains_key(name.as_str().expect("a name")))
        }),
        "items" => value
            .as_array()
            .is_none_or(|items| items.iter().all(|item| fits(rule, item))),
        "minItems" => value
            .as_array()
            .is_none_or(|items| items.len() as u64 >= rule.as_u64().expect("a number")),
        "maxItems" => value
            .as_array()
            .is_none_or(|items| items.len() as u64 <= rule.as_u64().expect("a number")),
        "minimum" => value
            .as_i64()
            .is_none_or(|int| int >= rule.as_i64().expect("a number")),
        "maximum" => value
            .as_i64()
            .is_none_or(|int| int <= rule.as_i64().expect("a number")),
        "minLength" => value
            .as_str()
            .is_none_or(|text| text.len() as u64 >= rule.as_u64().expect("a number")),
        "maxLength" => value
            .as_str()
            .is_none_or(|text| text.len() as u64 <= rule.as_u64().expect("a number")),
        "pattern" => value.as_str().is_none_or(|text| {
            regex::Regex::new(rule.as_str().expect("one"))
                .expect("a pattern")
                .is_match(text)
        }),
        "enum" => rule.as_array().expect("a list").contains(value),
        "anyOf" => rule
            .as_array()
            .expect("a list")
            .iter()
            .any(|schema| fits(schema, value)),
        "format" => value.as_str().is_none_or(|text| match rule.as_str() {
            Some("ipv4") => text.parse::<std::net::Ipv4Addr>().is_ok(),
            Some("ipv6") => text.parse::<std::net::Ipv6Addr>().is_ok(),
            _ => panic!("format {rule}"),
        }),
        "$schema" | "title" | "description" => true,
        other => panic!("keyword {other}"),
    })
}

fn is(of: &Value, value: &Value) -> bool {
    match of.as_str().expect("a type") {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_i64(),
        "null" => value.is_null(),
        other => panic!("type {other}"),
    }
}

/// JSON is YAML, so both can be asked about the same text. Only forms are in the schema, so a rule
/// that spans fields may refuse more.
fn assert_same(value: &Value) {
    let says_form = |message: &String| {
        let words = [
            "Unexpected element",
            "is not a ",
            "is less than",
            "is greater than",
            "not in (",
            "Required field",
            "Key error",
            "excluded character",
        ];
        words.iter().any(|word| message.contains(word))
    };
    // Numbers are no keys in JSON.
    let keys = regex::Regex::new(r#""([0-9]+)":"#).expect("a pattern");
    let text = keys.replace_all(&value.to_string(), "$1: ").into_owned();
    let refused = errors(&text).iter().any(says_form);
    assert_eq!(
        fits(&schema(), value),
        !refused,
        "{value}\n{:?}",
        errors(&text)
    );
}

#[test]
fn an_operators_file_fits() {
    let config: Value =
        serde_json::to_value(Config::parse("x", OPERATOR).expect("valid")).expect("JSON");
    // What the model prints for what was left out is no part of the language.
    fn given(value: &Value) -> Value {
        match value {
            Value::Object(fields) => fields
                .iter()
                .filter(|(_, field)| {
                    !field.is_null() && **field != json!([]) && **field != json!(0)
                })
                .map(|(name, field)| (name.clone(), given(field)))
                .collect::<serde_json::Map<_, _>>()
                .into(),
            Value::Array(items) => items.iter().map(given).collect(),
            other => other.clone(),
        }
    }
    assert_same(&given(&config));
}

/// Every field of the language with values of every kind, at the edges of ranges and beyond.
#[test]
fn reader_and_schema_agree() {
    fn walk(schema: &Value, wrap: &dyn Fn(Value) -> Value, seen: &mut usize) {
        let numbers = [schema["minimum"].as_i64(), schema["maximum"].as_i64()];
        let edges = numbers
            .into_iter()
            .flatten()
            .flat_map(|edge| [edge - 1, edge, edge + 1]);
        let mut values: Vec<Value> = edges.map(Value::from).collect();
        values.extend([
            json!(true),
            json!("x"),
            json!("e0"),
            json!([]),
            json!(null),
            json!("192.0.2.1"),
            json!("192.0.2.0/24"),
        ]);
        values.extend(
            [
                "UP",
                "any",
                "tcp",
                "80-88",
                "02:00:00:00:00:01",
                "0000:03:00.0",
                "it's",
                "a/b",
            ]
            .map(Value::from),
        );
        values.extend(["a".repeat(15), "a".repeat(16), "a".repeat(65)].map(Value::from));
        values.extend(schema["enum"].as_array().into_iter().flatten().cloned());
        for value in values {
            assert_same(&wrap(value));
            *seen += 1;
        }
        for (name, field) in schema["properties"].as_object().into_iter().flatten() {
            walk(field, &|value| wrap(json!({ name: value })), seen);
        }
        assert_same(&wrap(json!({ "xyzzy": 1 })));
        if schema["additionalProperties"].is_object() {
            let name = [
                "loop1",
                "BondEthernet1",
                "bd1",
                "vxlan_tunnel1",
                "tap1",
                "ab",
                "1",
            ];
            let fitting = name
                .iter()
                .find(|name| fits(&schema["propertyNames"], &json!(name)))
                .expect("a name");
            walk(
                &schema["additionalProperties"],
                &|value| wrap(json!({ *fitting: value })),
                seen,
            );
        }
        if schema["items"].is_object() {
            walk(&schema["items"], &|value| wrap(json!([value])), seen);
        }
        for one in schema["anyOf"].as_array().into_iter().flatten() {
            walk(one, wrap, seen);
        }
    }
    let mut seen = 0;
    let whole = schema();
    let sections = whole["properties"].as_object().expect("sections");
    for (name, section) in sections {
        walk(section, &|value| json!({ name: value }), &mut seen);
    }
    assert!(seen > 1000, "{seen}");
}

/// A user who may change the configuration makes the router, which is root, write any file.
#[test]
fn operators_are_told_what_the_group_may() {
    let control = &schema()["properties"]["control"]["properties"];
    let group = control["group"]["description"].as_str();
    assert!(group.is_some_and(|about| about.contains("as good as root")));
    let show = control["show-group"]["description"].as_str();
    assert!(show.is_some_and(|about| !about.contains("root")));
}
