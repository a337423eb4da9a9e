//! Descriptions, of which every object may have one.

use crate::config::yaml::{Node, Value};

use super::Checker;

/// Characters that one should have at most, as vppcfg documents.
const MOST: usize = 64;

pub(super) fn check(c: &mut Checker<'_>) {
    let tree = c.tree;
    walk(c, tree);
}

fn walk(c: &mut Checker<'_>, node: &Node) {
    match &node.value {
        Value::List(items) => items.iter().for_each(|item| walk(c, item)),
        Value::Map(entries) => {
            for (key, value) in entries {
                match &value.value {
                    Value::Text(text) if key.text == "description" => long(c, value, text),
                    _ => walk(c, value),
                }
            }
        }
        _ => {}
    }
}

fn long(c: &mut Checker<'_>, node: &Node, text: &str) {
    let length = text.chars().count();
    if length > MOST {
        let message = format!("a description of {length} characters");
        let help = format!("SNMP and other programs show {MOST} at most");
        c.findings.warning(node.at, message, help);
    }
}
