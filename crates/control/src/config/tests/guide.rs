//! The guides: their examples are valid, and the first leaves nothing out.

use serde_json::Value;

use super::*;

const GUIDE: &str = include_str!("../../../../../docs/configuration.md");
const FIREWALL: &str = include_str!("../../../../../docs/firewall.md");

/// The YAML examples.
pub(super) fn examples() -> Vec<&'static str> {
    [GUIDE, FIREWALL].into_iter().flat_map(of).collect()
}

fn of(guide: &'static str) -> impl Iterator<Item = &'static str> {
    let blocks = guide.split("\n```yaml\n").skip(1);
    blocks.map(|block| block.split("\n```\n").next().unwrap_or(block))
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
fn every_firewall_can_be_had() {
    assert!(of(FIREWALL).count() >= 3);
    for example in of(FIREWALL) {
        let config = Config::parse("firewall.yaml", example).expect("valid");
        let wanted = Desired::of(&config).unwrap_or_else(|why| panic!("{example}\n{why:?}"));
        let mut interfaces = wanted.interfaces.iter();
        assert!(interfaces.any(|interface| interface.firewall.input.is_some()));
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
    let examples = of(GUIDE).collect::<Vec<_>>().join("\n").replace('"', "");
    let missing: Vec<&String> = fields
        .iter()
        .filter(|field| !examples.contains(&format!("{field}:")))
        .filter(|field| {
            !GUIDE.contains(&format!("`{field}`")) && !GUIDE.contains(&format!("`{field}: "))
        })
        .collect();
    assert!(missing.is_empty(), "{missing:?}");
}
