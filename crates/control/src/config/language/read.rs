//! Holds a tree to the language.
//!
//! Wrong parts are reported and taken out, so that the rest can be checked further. Messages are
//! those of vppcfg, without the prefix of its schema tool.

use std::collections::HashMap;
use std::fmt::Write;
use std::net::IpAddr;

use regex::Regex;
use serde_json::{Map, Value as Json};

use super::super::forms;
use super::super::problem::Findings;
use super::super::yaml::{Key as Name, Kind, Node, Span, Value};
use super::{Field, Key, Text, Type};

/// Reads a document, without its wrong parts. The tree loses these, too.
pub(in super::super) fn read(
    root: &mut Node,
    document: &'static [Field],
    findings: &mut Findings,
) -> Json {
    let empty = match &root.value {
        Value::Null | Value::Bool(false) => true,
        Value::List(items) => items.is_empty(),
        _ => false,
    };
    if empty {
        root.value = Value::Map(Vec::new());
    }
    let mut reader = Reader {
        findings,
        path: Vec::new(),
        patterns: HashMap::new(),
    };
    let at = root.at;
    if let Value::Map(entries) = &mut root.value {
        return reader.object(at, entries, document);
    }
    let message = format!("'{root}' is not a map");
    let help = "write sections as `interfaces:`, and what belongs to them below, indented";
    reader.findings.error(at, message, help);
    root.value = Value::Map(Vec::new());
    Json::Object(Map::new())
}

struct Reader<'a> {
    findings: &'a mut Findings,
    /// Its place in the document.
    path: Vec<String>,
    /// Those met so far.
    patterns: HashMap<&'static str, Option<Regex>>,
}

impl Reader<'_> {
    fn path(&self) -> String {
        self.path.join(".")
    }

    fn wrong(&mut self, at: Span, what: &str, help: impl Into<String>) -> Option<Json> {
        let message = format!("{}: {what}", self.path());
        self.findings.error(at, message, help);
        None
    }

    fn read(&mut self, node: &mut Node, of: &'static Type) -> Option<Json> {
        let at = node.at;
        match (of, &mut node.value) {
            (Type::Bool, Value::Bool(bool)) => Some((*bool).into()),
            (Type::Bool, _) => self.not_a(node, "bool.", "write true or false"),
            (Type::Int { least, most }, Value::Int(int)) => {
                let int = *int;
                self.int(at, int, *least, *most)
            }
            (Type::Int { least, most }, _) => {
                let help = format!("write a number from {least} to {most}");
                self.not_a(node, "int.", &help)
            }
            (Type::Text(text), Value::Text(value)) => self.text(at, text, value),
            (Type::Text(text), Value::Null) if text.nothing => Some("".into()),
            (Type::Text(text), _) => {
                let help = match text.form {
                    "" => "write a text, in quotes if it looks like something else",
                    form => form,
                };
                self.not_a(node, "str.", help)
            }
            (Type::Choice(words), value) => match value {
                Value::Text(text) if words.contains(&text.as_str()) => Some(text.as_str().into()),
                _ => self.no_choice(node, words),
            },
            (Type::List { of, least, most }, Value::List(_)) => {
                self.list(node, of, (*least, *most))
            }
            (Type::List { .. }, _) => self.not_a(node, "list.", "write it as [ first, second ]"),
            (Type::Object(fields), Value::Map(entries)) => Some(self.object(at, entries, fields)),
            (Type::Map { key, of }, Value::Map(entries)) => Some(self.map(entries, key, of)),
            (Type::Object(_) | Type::Map { .. }, _) => {
                let message = format!("{} : '{node}' is not a map", self.path());
                let help = "write fields below it as `name: value`, indented, or {}";
                self.findings.error(at, message, help);
                None
            }
            (Type::Either(types), _) => {
                let suited = types.iter().find(|of| suits(node, of));
                self.read(node, suited.unwrap_or(&types[0]))
            }
            (
                Type::Mac
                | Type::Ip
                | Type::Endpoint
                | Type::InterfaceAddress
                | Type::Prefix
                | Type::Network,
                _,
            ) => self.address(node, of),
        }
    }

    fn not_a(&mut self, node: &Node, what: &str, help: &str) -> Option<Json> {
        self.wrong(node.at, &format!("'{node}' is not a {what}"), help)
    }

    fn no_choice(&mut self, node: &Node, words: &[&str]) -> Option<Json> {
        let mut list = String::new();
        for (index, word) in words.iter().enumerate() {
            let separator = if index > 0 { ", " } else { "" };
            // Writing to a string cannot fail.
            let _ = write!(list, "{separator}'{word}'");
        }
        let comma = if words.len() == 1 { "," } else { "" };
        let help = match nearest(&node.to_string(), words.iter().copied()) {
            Some(word) => format!("did you mean {word}?"),
            None => format!("write one of {}", words.join(", ")),
        };
        self.wrong(node.at, &format!("'{node}' not in ({list}{comma})"), help)
    }

    fn int(&mut self, at: Span, int: i128, least: i64, most: i64) -> Option<Json> {
        let help = || format!("it must be from {least} to {most}");
        if int < least.into() {
            return self.wrong(at, &format!("{int} is less than {least}"), help());
        }
        match i64::try_from(int) {
            Ok(int) if int <= most => Some(int.into()),
            _ => self.wrong(at, &format!("{int} is greater than {most}"), help()),
        }
    }

    fn text(&mut self, at: Span, text: &'static Text, value: &str) -> Option<Json> {
        match self.misfit(text, value) {
            None => Some(value.into()),
            Some((what, help)) => self.wrong(at, &what, help),
        }
    }

    fn address(&mut self, node: &Node, of: &Type) -> Option<Json> {
        let text = match &node.value {
            Value::Text(text) => text.as_str(),
            _ => "",
        };
        let (read, what, help) = match of {
            Type::Mac => (
                forms::mac(text).map(|mac| mac.to_string()),
                "mac match.",
                "write it as in 02:00:5e:10:00:01, in quotes if it has only digits",
            ),
            Type::Ip => (
                text.parse::<IpAddr>().ok().map(|ip| ip.to_string()),
                "ip.",
                "write an address without prefix length, as in 192.0.2.1 or 2001:db8::1",
            ),
            Type::Endpoint => (
                text.parse::<forms::Collector>().ok().map(|c| c.to_string()),
                "collector address.",
                "write it as in 192.0.2.1, 192.0.2.1:6343, 2001:db8::1 or \"[2001:db8::1]:6343\"",
            ),
            Type::InterfaceAddress => (
                text.parse::<forms::Address>().ok().map(|a| a.to_string()),
                "ip_interface.",
                "write it with its prefix length, as in 192.0.2.1/24 or 2001:db8::1/64",
            ),
            Type::Prefix => (
                forms::prefix(text).map(|prefix| prefix.to_string()),
                "ip_network.",
                "write a prefix without host bits, as in 192.0.2.0/24 or 2001:db8::/32",
            ),
            _ => (
                forms::network(text).map(|network| network.to_string()),
                "ip.",
                "write an address or a prefix, as in 192.0.2.1 or 2001:db8::/32",
            ),
        };
        match read {
            Some(text) => Some(text.into()),
            None => self.not_a(node, what, help),
        }
    }

    fn list(
        &mut self,
        node: &mut Node,
        of: &'static Type,
        (least, most): (usize, usize),
    ) -> Option<Json> {
        let at = node.at;
        let Value::List(items) = &mut node.value else {
            return None;
        };
        let count = items.len();
        let mut values = Vec::with_capacity(count);
        let mut index = 0;
        items.retain_mut(|item| {
            self.path.push(index.to_string());
            index += 1;
            let value = self.read(item, of);
            self.path.pop();
            let right = value.is_some();
            values.extend(value);
            right
        });
        if count < least || count > most {
            let (than, bound) = if count < least {
                ("less", least)
            } else {
                ("greater", most)
            };
            let help = format!("list {least} to {most}, or leave the field out");
            self.wrong(
                at,
                &format!("Length of {node} is {than} than {bound}"),
                help,
            );
        }
        Some(values.into())
    }

    fn object(
        &mut self,
        at: Span,
        entries: &mut Vec<(Name, Node)>,
        fields: &'static [Field],
    ) -> Json {
        let mut object = Map::new();
        let mut given = Vec::new();
        entries.retain_mut(|(key, value)| {
            let Some(field) = fields.iter().find(|field| field.name == key.text) else {
                self.unexpected(key, value, fields);
                return false;
            };
            self.path.push(field.name.to_owned());
            let read = self.read(value, field.of);
            self.path.pop();
            if key.replaced {
                return false;
            }
            given.push(field.name);
            let right = read.is_some();
            object.extend(read.map(|read| (field.name.to_owned(), read)));
            right
        });
        for field in fields.iter().filter(|field| field.required) {
            if !given.contains(&field.name) {
                self.path.push(field.name.to_owned());
                self.wrong(
                    at,
                    "Required field missing",
                    format!("add it: {}", field.about),
                );
                self.path.pop();
            }
        }
        Json::Object(object)
    }

    /// A field that is unknown. If it is misspelt, its value is held to what is meant.
    fn unexpected(&mut self, key: &Name, value: &mut Node, fields: &'static [Field]) {
        let names = fields.iter().map(|field| field.name);
        let meant = nearest(&key.text, names.clone());
        let help = match meant {
            Some(name) => format!("did you mean {name}?"),
            None => format!("known here: {}", names.collect::<Vec<_>>().join(", ")),
        };
        self.path.push(key.text.clone());
        self.wrong(key.at, "Unexpected element", help);
        if let Some(field) = fields.iter().find(|field| Some(field.name) == meant) {
            self.read(value, field.of);
        }
        self.path.pop();
    }

    fn map(
        &mut self,
        entries: &mut Vec<(Name, Node)>,
        key: &'static Key,
        of: &'static Type,
    ) -> Json {
        let mut map = Map::new();
        entries.retain_mut(|(name, value)| {
            // An object that is wrong exists all the same, for those who name it.
            if let Some((what, help)) = self.misnamed(name, key) {
                self.wrong(name.at, &format!("Key error - {what}"), help);
                let is_name = matches!(key, Key::Name(_)) && !name.replaced;
                if is_name {
                    map.insert(name.text.clone(), Json::Object(Map::new()));
                }
                return is_name;
            }
            self.path.push(name.text.clone());
            let read = self.read(value, of);
            let read = read.unwrap_or_else(|| Json::Object(Map::new()));
            self.path.pop();
            if name.replaced {
                return false;
            }
            map.insert(name.text.clone(), read);
            true
        });
        Json::Object(map)
    }

    /// Explains why a text does not have the form, and what to do.
    fn misfit(&mut self, text: &'static Text, value: &str) -> Option<(String, String)> {
        if let Some(excluded) = value.chars().find(|c| text.excludes.contains(*c)) {
            let what = format!("'{value}' contains excluded character '{excluded}'");
            return Some((what, "leave it out".to_owned()));
        }
        let pattern = self.patterns.entry(text.pattern);
        let pattern = pattern.or_insert_with_key(|pattern| Regex::new(pattern).ok());
        let fits = pattern
            .as_ref()
            .is_some_and(|pattern| pattern.is_match(value));
        if !fits {
            return Some((format!("{value} is not a regex match."), text.rule()));
        }
        if value.len() > text.most || value.len() < text.least {
            let (than, bound) = if value.len() > text.most {
                ("greater", text.most)
            } else {
                ("less", text.least)
            };
            let what = format!("Length of {value} is {than} than {bound}");
            return Some((what, text.rule()));
        }
        None
    }

    /// Explains why a key does not name an object, and what to do.
    fn misnamed(&mut self, name: &Name, key: &'static Key) -> Option<(String, String)> {
        match key {
            Key::Number { least, most } => {
                let number = name.text.parse::<i64>().ok();
                let help = format!("write a number from {least} to {most}, without quotes");
                if name.kind != Kind::Int {
                    return Some((format!("'{}' is not a int.", name.text), help));
                }
                let fits = number.is_some_and(|number| (*least..=*most).contains(&number));
                let what = || format!("{} is not between {least} and {most}", name.text);
                (!fits).then(|| (what(), help))
            }
            Key::Name(_) if name.kind != Kind::Text => Some((
                format!("'{}' is not a str.", name.text),
                "write it in quotes".to_owned(),
            )),
            Key::Name(text) => self.misfit(text, &name.text),
        }
    }
}

/// Returns true if a value is of a type's kind, right or wrong.
fn suits(node: &Node, of: &Type) -> bool {
    match of {
        Type::Int { .. } => matches!(node.value, Value::Int(_)),
        Type::List { .. } => matches!(node.value, Value::List(_)),
        Type::Object(_) | Type::Map { .. } => matches!(node.value, Value::Map(_)),
        _ => matches!(node.value, Value::Text(_)),
    }
}

/// The known name that a mistyped one is most like, if it is like any.
fn nearest<'n>(name: &str, known: impl Iterator<Item = &'n str>) -> Option<&'n str> {
    // Beyond that no two names are alike, and time would be lost on them.
    let short: String = name
        .chars()
        .take(64)
        .collect::<String>()
        .to_ascii_lowercase();
    let alike = known.filter_map(|known| {
        let distance = strsim::damerau_levenshtein(&short, known);
        let prefix = short.len() > 2 && known.starts_with(&short);
        (prefix || distance <= (known.len() / 3).max(1)).then_some((distance, known))
    });
    alike
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, known)| known)
}
