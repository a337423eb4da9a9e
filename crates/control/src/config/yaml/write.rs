//! From a tree to text, so that reading it yields the same tree; other readers of YAML, 1.1 or 1.2,
//! take it for the same, too.

use std::fmt::Write;

use super::scalar::plain;
use super::{Kind, Node, Value};

/// Characters that a line may have, to fit into a window; longer lists are written an item a line.
const WIDTH: usize = 100;

/// The text of a document, with a newline at the end.
pub(in super::super) fn write(root: &Node) -> String {
    let mut text = String::new();
    block(&root.value, 0, &mut text);
    text
}

/// Writes a value on lines of its own.
fn block(value: &Value, indent: usize, to: &mut String) {
    match value {
        Value::Map(entries) if !entries.is_empty() => {
            for (key, node) in entries {
                let name = match key.kind {
                    Kind::Int => key.text.clone(),
                    _ => quoted(&key.text),
                };
                // Writing to a string cannot fail.
                let _ = write!(to, "{:indent$}{name}:", "");
                below(&node.value, indent, to);
            }
        }
        Value::List(items) if !items.is_empty() => {
            for item in items {
                let mut text = String::new();
                block(&item.value, indent + 2, &mut text);
                // The dash stands in the indent of the item's first line.
                let _ = write!(to, "{:indent$}- {}", "", text.trim_start_matches(' '));
            }
        }
        value => {
            let _ = writeln!(to, "{:indent$}{}", "", flow(value));
        }
    }
}

/// Writes the value of a key: behind it if it is short, else below it.
fn below(value: &Value, indent: usize, to: &mut String) {
    let scalars = match value {
        Value::List(items) => !items.iter().any(Node::is_collection),
        Value::Map(entries) => entries.is_empty(),
        _ => true,
    };
    let text = flow(value);
    let column = to.len() - to.rfind('\n').map_or(0, |end| end + 1);
    let list = matches!(value, Value::List(_));
    if scalars && (!list || column + text.len() < WIDTH) {
        let _ = writeln!(to, " {text}");
    } else {
        to.push('\n');
        block(value, indent + 2, to);
    }
}

/// A value within a line.
fn flow(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(bool) => bool.to_string(),
        Value::Int(int) => int.to_string(),
        Value::Float(text) => text.clone(),
        Value::Text(text) => quoted(text),
        Value::List(items) if items.is_empty() => "[]".to_owned(),
        Value::List(items) => {
            let items: Vec<String> = items.iter().map(|item| flow(&item.value)).collect();
            format!("[ {} ]", items.join(", "))
        }
        // Only empty ones are written within a line.
        Value::Map(_) => "{}".to_owned(),
    }
}

/// A text, in quotes unless it is beyond doubt without.
fn quoted(text: &str) -> String {
    if is_beyond_doubt(text) {
        return text.to_owned();
    }
    let mut quoted = String::from('"');
    for c in text.chars() {
        let _ = match c {
            '"' => write!(quoted, "\\\""),
            '\\' => write!(quoted, "\\\\"),
            '\n' => write!(quoted, "\\n"),
            '\t' => write!(quoted, "\\t"),
            c if c.is_control() && u32::from(c) < 0x100 => {
                write!(quoted, "\\x{:02x}", u32::from(c))
            }
            // Line breaks of YAML 1.1, and what is no character to some readers.
            '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}' => {
                write!(quoted, "\\u{:04x}", u32::from(c))
            }
            c => write!(quoted, "{c}"),
        };
    }
    quoted.push('"');
    quoted
}

/// Returns true if every reader takes this for a text, even without quotes.
fn is_beyond_doubt(text: &str) -> bool {
    let legal = |c: char| c.is_ascii_alphanumeric() || "/_.:+-".contains(c);
    let begins = text.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '/' || c == '_');
    // A number in some base or notation, or a date.
    let numeric = text.starts_with(|c: char| c.is_ascii_digit())
        && (!text.contains(['.', ':', '/']) || text.parse::<f64>().is_ok());
    let word = matches!(text, "y" | "Y" | "n" | "N");
    begins
        && text.chars().all(legal)
        && !text.ends_with(':')
        && !numeric
        && !word
        && plain(text) == Value::Text(text.to_owned())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::{Key, Span, parse};
    use super::*;

    fn node(value: Value) -> Node {
        let at = Span::default();
        Node { at, value }
    }

    fn key(text: &str, kind: Kind) -> Key {
        let at = Span::default();
        let text = text.to_owned();
        let replaced = false;
        Key {
            at,
            text,
            kind,
            replaced,
        }
    }

    /// The tree without places, to compare.
    fn placeless(of: Node) -> Node {
        node(match of.value {
            Value::List(items) => Value::List(items.into_iter().map(placeless).collect()),
            Value::Map(entries) => {
                let entry = |(of, value): (Key, Node)| (key(&of.text, of.kind), placeless(value));
                Value::Map(entries.into_iter().map(entry).collect())
            }
            value => value,
        })
    }

    fn again(tree: &Node) -> Node {
        let text = write(tree);
        let (read, faults) = parse(&text).unwrap_or_else(|fault| panic!("{fault:?}\n{text}"));
        assert_eq!(faults, [], "{text}");
        placeless(read)
    }

    #[test]
    fn texts_that_look_like_something_else_stay_texts() {
        for text in [
            "",
            " ",
            "~",
            "null",
            "yes",
            "No",
            "on",
            "OFF",
            "true",
            "y",
            "n",
            "0x10",
            "0b1",
            "0o17",
            "017",
            "1_000",
            "1e3",
            "1.5",
            ".5",
            "1.5e3",
            ".inf",
            "-.inf",
            ".nan",
            "inf",
            "-1",
            "-1023",
            "1024-",
            "80-88",
            "10:20:30:40:50:58",
            "1:30",
            "2026-11-25",
            "<<",
            "=",
            "!x",
            "&a",
            "*a",
            "- a",
            "a: b",
            "a #b",
            "#",
            "?",
            "a:",
            ":a",
            "::1",
            "@",
            "`",
            "%",
            "'",
            "\"",
            "\\",
            "a\nb",
            "a\tb",
            "\r",
            "\u{85}",
            "\u{2028}",
            "\u{feff}",
            "\u{0}",
            "\u{7f}",
            "---",
            "...",
            "[",
            "{}",
            ",",
            "a, b",
            "|",
            ">",
            "ä",
            "名",
            "😀",
            " a",
            "a ",
        ] {
            let text = node(Value::Text(text.to_owned()));
            assert_eq!(again(&text), text);
        }
        for text in [
            "eth0",
            "192.0.2.1/24",
            "2001:db8::1/64",
            "/run/cli.sock",
            "e0.100",
            "lacp",
        ] {
            assert_eq!(quoted(text), text);
        }
    }

    #[test]
    fn a_tree_is_laid_out_for_people() {
        let text = "\
interfaces:
  e0:
    addresses: [ 192.0.2.1/24, 2001:db8::1/64 ]
    sub-interfaces:
      100:
        state: up
    \"0x10\": \"yes\"
ports: {}
routes:
  - prefix: 0.0.0.0/0
    via:
      - address: 192.0.2.2
        weight: 1
      - address: 192.0.2.3
  - blackhole: true
";
        let (tree, _) = parse(text).expect("YAML");
        assert_eq!(write(&tree), text);
        let items = (0..40).map(|i| node(Value::Text(format!("name{i}"))));
        let list = node(Value::Map(vec![(
            key("long", Kind::Text),
            node(Value::List(items.collect())),
        )]));
        assert!(write(&list).starts_with("long:\n  - name0\n  - name1\n"));
        assert_eq!(again(&list), list);
    }

    fn tree() -> impl Strategy<Value = Node> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::Bool),
            any::<i64>().prop_map(|int| Value::Int(int.into())),
            "\\PC{0,12}".prop_map(Value::Text),
            "[0-9a-fxnoyes:._+~ -]{0,9}".prop_map(Value::Text),
            any::<String>().prop_map(Value::Text),
        ];
        leaf.prop_map(node).prop_recursive(4, 40, 5, |inner| {
            let map = prop::collection::btree_map("\\PC{0,6}", inner.clone(), 0..5);
            prop_oneof![
                prop::collection::vec(inner, 0..5).prop_map(Value::List),
                map.prop_map(|map| {
                    let entry = |(text, value): (String, Node)| (key(&text, Kind::Text), value);
                    Value::Map(map.into_iter().map(entry).collect())
                }),
            ]
            .prop_map(node)
        })
    }

    /// In quotes it merges nothing.
    #[test]
    fn a_key_that_looks_like_a_merge_is_read_again() {
        let map = node(Value::Map(vec![(key("<<", Kind::Text), node(Value::Null))]));
        assert_eq!(write(&map), "\"<<\": null\n");
        assert_eq!(again(&map), map);
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_again(tree in tree()) {
            prop_assert_eq!(again(&tree), tree);
        }
    }
}
