//! The guide: its examples are valid, and it leaves nothing out.

use serde_json::Value;

use super::*;

const GUIDE: &str = include_str!("../../../../../docs/configuration.md");

/// The YAML examples.
pub(super) fn examples() -> Vec<&'static str> {
    let blocks = GUIDE.split("\n```yaml\n").skip(1);
    blocks
        .map(|block| block.split("\n```\n").next().unwrap_or(block))
        .collect()
}

#[test]
fn every_example_is_valid() {
    assert!(examples().len() >= 10, "{} examples", examples().len());
    for example in examples() {
        let problems = Checked::parse("guide.yaml", example).err();
        assert!(
            problems.is_none(),
            "{example}\n{}",
            problems.unwrap_or_default().report(false)
        );
    }
}

#[test]
fn every_field_is_in_an_example_or_explained() {
    fn names(schema: &Value, found: &mut Vec<String>) {
        for (name, field) in schema["properties"].as_object().into_iter().flatten() {
            found.push(name.clone());
            names(field, found);
        }
        for below in ["additionalProperties", "items"] {
            if schema[below].is_object() {
                names(&schema[below], found);
            }
        }
        for one in schema["anyOf"].as_array().into_iter().flatten() {
            names(one, found);
        }
    }
    let mut fields = Vec::new();
    names(&schema(), &mut fields);
    assert!(fields.len() > 100, "{fields:?}");
    let examples = examples().join("\n").replace('"', "");
    let missing: Vec<&String> = fields
        .iter()
        .filter(|field| !examples.contains(&format!("{field}:")))
        .filter(|field| {
            !GUIDE.contains(&format!("`{field}`")) && !GUIDE.contains(&format!("`{field}: "))
        })
        .collect();
    assert!(missing.is_empty(), "{missing:?}");
}
