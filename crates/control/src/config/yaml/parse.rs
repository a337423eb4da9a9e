//! From the events of the parser to a tree.

use std::collections::HashMap;

use granit_parser::{Event, Parser, ScalarStyle, ScanError, Span as Range, Tag};

use super::{Fault, Key, Kind, Node, Span, Value, scalar};

/// Values that a document may have once its aliases are resolved: a small file could name billions
/// of them.
const VALUES: usize = 1_000_000;
/// Greatest depth of nested values: the language needs less than 10, and what reads and writes the
/// tree calls itself for each level.
const DEPTH: usize = 64;
/// The key whose value is a map, or several, whose entries this map has too (yaml.org/type/merge).
const MERGE: &str = "<<";

/// The document of a text, and all that is wrong with it short of making it unreadable. An empty
/// text is the document `null`.
///
/// # Errors
/// The text is not YAML; from there on nothing can be said about it.
pub(in super::super) fn parse(text: &str) -> Result<(Node, Vec<Fault>), Fault> {
    let mut tree = Tree::default();
    for event in Parser::new_from_str(text) {
        let (event, at) = event.map_err(|error| unreadable(&error, text))?;
        tree.event(event, span(at, text))?;
    }
    let nothing = Node {
        at: Span::default(),
        value: Value::Null,
    };
    Ok((tree.root.unwrap_or(nothing), tree.faults))
}

/// A collection that has been begun.
struct Open {
    at: Span,
    anchor: usize,
    items: Items,
}

enum Items {
    List(Vec<Node>),
    Map {
        entries: Vec<(Key, Node)>,
        /// The key whose value comes next.
        key: Option<Node>,
        merged: Vec<Node>,
    },
}

#[derive(Default)]
struct Tree {
    root: Option<Node>,
    open: Vec<Open>,
    /// Values by the number of their anchor, with how many values they are.
    anchors: HashMap<usize, (Node, usize)>,
    values: usize,
    faults: Vec<Fault>,
}

impl Tree {
    fn event(&mut self, event: Event<'_>, at: Span) -> Result<(), Fault> {
        match event {
            Event::DocumentStart(..) if self.root.is_some() => {
                return Err(Fault {
                    at,
                    message: "expected a single document in the stream".into(),
                    help: "a configuration is one document: remove `---` and what follows",
                    also: None,
                });
            }
            Event::Scalar(text, style, anchor, tag) => {
                let node = self.scalar(&text, style, tag.as_deref(), at);
                self.value(node, anchor, 1)?;
            }
            Event::SequenceStart(_, anchor, _) => {
                self.begin(at, anchor, Items::List(Vec::new()))?
            }
            Event::MappingStart(_, anchor, _) => {
                let items = Items::Map {
                    entries: Vec::new(),
                    key: None,
                    merged: Vec::new(),
                };
                self.begin(at, anchor, items)?;
            }
            Event::SequenceEnd | Event::MappingEnd => self.end(at)?,
            Event::Alias(anchor) => {
                let Some((node, values)) = self.anchors.get(&anchor).cloned() else {
                    return Err(Fault {
                        at,
                        message: "this alias names a value that it is part of".into(),
                        help: "write out what it should stand for",
                        also: None,
                    });
                };
                self.value(Node { at, ..node }, 0, values)?;
            }
            _ => {}
        }
        Ok(())
    }

    fn scalar(&mut self, text: &str, style: ScalarStyle, tag: Option<&Tag>, at: Span) -> Node {
        let untagged = || match style {
            ScalarStyle::Plain => scalar::plain(text),
            _ => Value::Text(text.to_owned()),
        };
        let tagged = match tag.map(|tag| tag.core_suffix()) {
            None => Some(untagged()),
            Some(Some("str")) => Some(Value::Text(text.to_owned())),
            Some(Some("int")) => scalar::integer(text).map(Value::Int),
            Some(Some("bool")) => scalar::boolean(text).map(Value::Bool),
            Some(Some("null")) => Some(Value::Null),
            Some(_) => None,
        };
        let value = tagged.unwrap_or_else(|| {
            self.faults.push(Fault {
                at,
                message: format!("'{text}' cannot be read as its tag says"),
                help: "remove the tag (`!...`)",
                also: None,
            });
            untagged()
        });
        Node { at, value }
    }

    fn begin(&mut self, at: Span, anchor: usize, items: Items) -> Result<(), Fault> {
        if self.open.len() == DEPTH {
            return Err(Fault {
                at,
                message: format!("values are nested more than {DEPTH} deep"),
                help: "no field is like this: check brackets and indentation",
                also: None,
            });
        }
        self.open.push(Open { at, anchor, items });
        Ok(())
    }

    fn end(&mut self, end: Span) -> Result<(), Fault> {
        let Some(open) = self.open.pop() else {
            return Ok(());
        };
        let at = Span {
            end: end.end.max(open.at.start),
            ..open.at
        };
        let value = match open.items {
            Items::List(items) => Value::List(items),
            Items::Map {
                entries, merged, ..
            } => Value::Map(self.merge(entries, merged)),
        };
        let node = Node { at, value };
        // Only what may be named again is worth counting.
        let values = if open.anchor > 0 { count(&node) } else { 1 };
        self.value(node, open.anchor, values)
    }

    /// Puts a value where it belongs.
    fn value(&mut self, node: Node, anchor: usize, values: usize) -> Result<(), Fault> {
        self.values += if anchor > 0 { 1 } else { values };
        if self.values > VALUES {
            return Err(Fault {
                at: node.at,
                message: format!(
                    "more than {VALUES} values, counting those that aliases stand for"
                ),
                help: "write a smaller file, or fewer aliases",
                also: None,
            });
        }
        if anchor > 0 {
            self.anchors.insert(anchor, (node.clone(), values));
        }
        let Some(open) = self.open.last_mut() else {
            self.root = Some(node);
            return Ok(());
        };
        let (entries, key, merged) = match &mut open.items {
            Items::List(items) => {
                items.push(node);
                return Ok(());
            }
            Items::Map {
                entries,
                key,
                merged,
            } => (entries, key, merged),
        };
        let Some(of) = key.take() else {
            *key = Some(node);
            return Ok(());
        };
        // In quotes, which are part of its place, it is a key like others.
        if of.value == Value::Text(MERGE.into()) && of.at.end - of.at.start == MERGE.len() {
            merged.push(node);
            return Ok(());
        }
        let key = Key {
            at: of.at,
            kind: kind(&of.value),
            replaced: false,
            text: match of.value {
                Value::Null => "null".into(),
                _ => of.to_string(),
            },
        };
        entries.push((key, node));
        Ok(())
    }

    /// The entries of a map, and of merged maps what the map does not have itself.
    fn merge(&mut self, entries: Vec<(Key, Node)>, merged: Vec<Node>) -> Vec<(Key, Node)> {
        let mut whole: Vec<(Key, Node)> = Vec::with_capacity(entries.len());
        let mut places: HashMap<String, usize> = HashMap::new();
        for (key, node) in entries {
            if let Some(place) = places.insert(key.text.clone(), whole.len()) {
                let earlier = &mut whole[place].0;
                earlier.replaced = true;
                self.faults.push(Fault {
                    at: key.at,
                    message: format!("duplicate key {}", key.text),
                    help: "remove one of the two, or put what is in them together",
                    also: Some(earlier.at),
                });
            }
            whole.push((key, node));
        }
        for node in merged {
            let at = node.at;
            let maps = match node.value {
                Value::List(maps) => maps,
                value => vec![Node { at, value }],
            };
            for map in maps {
                let Value::Map(entries) = map.value else {
                    self.faults.push(Fault {
                        at,
                        message: "'<<' merges maps, and this is not a map".into(),
                        help: "write `<<: *NAME`, where `&NAME` stands before a map",
                        also: None,
                    });
                    continue;
                };
                for (key, node) in entries {
                    if !key.replaced && !places.contains_key(&key.text) {
                        places.insert(key.text.clone(), whole.len());
                        whole.push((key, node));
                    }
                }
            }
        }
        whole
    }
}

fn kind(value: &Value) -> Kind {
    match value {
        Value::Text(_) => Kind::Text,
        Value::Int(_) => Kind::Int,
        Value::Null => Kind::Null,
        _ => Kind::Other,
    }
}

fn count(node: &Node) -> usize {
    1 + match &node.value {
        Value::List(items) => items.iter().map(count).sum(),
        Value::Map(entries) => entries.iter().map(|(_, node)| count(node)).sum(),
        _ => 0,
    }
}

fn span(range: Range, text: &str) -> Span {
    let bytes = range.byte_range().unwrap_or(0..0);
    Span {
        start: bytes.start.min(text.len()),
        end: bytes.end.min(text.len()),
        line: range.start.line(),
        column: range.start.col() + 1,
    }
}

fn unreadable(error: &ScanError, text: &str) -> Fault {
    let marker = error.marker();
    let at = marker.byte_offset().unwrap_or(text.len()).min(text.len());
    Fault {
        at: Span {
            start: at,
            end: at,
            line: marker.line().max(1),
            column: marker.col() + 1,
        },
        message: format!("not YAML: {}", error.info()),
        help: "check brackets, quotes and indentation (blanks, no tabs)",
        also: None,
    }
}
