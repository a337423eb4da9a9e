//! YAML as a tree in which every value knows its place in the file.
//!
//! Scalars are read as YAML 1.1 has them, since the files were written for a reader that does.
//! Aliases and merge keys are resolved here. A key that is there twice is a fault; the tree then
//! has both, and the earlier one says that another takes its place.

mod parse;
mod scalar;
mod write;

use std::fmt::{self, Write};

pub(super) use parse::parse;
pub(super) use write::write;

/// A place in the text.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Span {
    /// Bytes.
    pub start: usize,
    /// Bytes; the first one behind.
    pub end: usize,
    /// From 1; 0: nowhere in particular.
    pub line: usize,
    /// In characters, from 1.
    pub column: usize,
}

/// A value with its place.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Node {
    pub at: Span,
    pub value: Value,
}

/// A key of a map with its place.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Key {
    pub at: Span,
    /// As it is written; of a number, in digits.
    pub text: String,
    /// The kind that it would have as a value.
    pub kind: Kind,
    /// The map has it again further down: this value does not count.
    pub replaced: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Text,
    Int,
    Null,
    Other,
}

#[derive(Debug, Clone, Default, PartialEq)]
pub(super) enum Value {
    #[default]
    Null,
    Bool(bool),
    /// Whole numbers that do not fit are the nearest that does.
    Int(i128),
    /// As it is written; no field is one.
    Float(String),
    Text(String),
    List(Vec<Node>),
    Map(Vec<(Key, Node)>),
}

/// A step on the way to a value.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Step {
    Key(String),
    Index(usize),
}

impl From<&str> for Step {
    fn from(key: &str) -> Self {
        Step::Key(key.to_owned())
    }
}

impl From<&String> for Step {
    fn from(key: &String) -> Self {
        Step::Key(key.clone())
    }
}

impl From<String> for Step {
    fn from(key: String) -> Self {
        Step::Key(key)
    }
}

impl From<usize> for Step {
    fn from(index: usize) -> Self {
        Step::Index(index)
    }
}

impl From<u32> for Step {
    fn from(key: u32) -> Self {
        Step::Key(key.to_string())
    }
}

/// A place that is not YAML, or is ambiguous.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Fault {
    pub at: Span,
    pub message: String,
    pub help: &'static str,
    /// Another place that has to do with it.
    pub also: Option<Span>,
}

impl Node {
    /// The child of a step.
    pub fn child(&self, step: &Step) -> Option<&Node> {
        self.entry(step).map(|(_, node)| node)
    }

    /// The child of a step, and the place of its key.
    pub fn entry(&self, step: &Step) -> Option<(Span, &Node)> {
        match (&self.value, step) {
            (Value::Map(entries), Step::Key(key)) => {
                let mut entries = entries.iter();
                let (key, node) = entries.find(|(entry, _)| entry.text == *key)?;
                Some((key.at, node))
            }
            (Value::List(items), Step::Index(index)) => {
                items.get(*index).map(|node| (node.at, node))
            }
            _ => None,
        }
    }

    /// Returns true if it has no value of its own, only children.
    pub fn is_collection(&self) -> bool {
        matches!(self.value, Value::List(_) | Value::Map(_))
    }
}

/// The value as the original tool prints it in its messages.
impl fmt::Display for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.value {
            Value::Null => f.write_str("None"),
            Value::Bool(true) => f.write_str("True"),
            Value::Bool(false) => f.write_str("False"),
            Value::Int(int) => write!(f, "{int}"),
            Value::Float(text) | Value::Text(text) => f.write_str(text),
            Value::List(items) => {
                f.write_char('[')?;
                for (index, item) in items.iter().enumerate() {
                    f.write_str(if index > 0 { ", " } else { "" })?;
                    item.quoted(f)?;
                }
                f.write_char(']')
            }
            Value::Map(entries) => {
                f.write_char('{')?;
                for (index, (key, item)) in entries.iter().enumerate() {
                    let separator = if index > 0 { ", " } else { "" };
                    write!(f, "{separator}'{}': ", key.text)?;
                    item.quoted(f)?;
                }
                f.write_char('}')
            }
        }
    }
}

impl Node {
    fn quoted(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.value {
            Value::Text(text) => write!(f, "'{text}'"),
            _ => fmt::Display::fmt(self, f),
        }
    }
}
