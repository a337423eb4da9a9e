//! A plan for people: what changes, by object and field, and the steps.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{self, Write};

use serde::Serialize;
use serde_json::Value as Json;

use super::Plan;
use super::item::{Item, Items, Key};
use super::rule::{Phase, Shown};
use super::rules::rule;
use super::steps::{Action, Step};

/// The change of an object.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Change {
    /// Its kind and name.
    pub object: String,
    /// Its fate.
    pub action: Fate,
    /// Its fields that change.
    pub fields: Vec<FieldChange>,
}

/// The fate of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Fate {
    /// It is new.
    Create,
    /// It stays, and something about it changes.
    Change,
    /// It goes.
    Remove,
}

impl Fate {
    fn sign(self) -> char {
        match self {
            Fate::Create => '+',
            Fate::Change => '~',
            Fate::Remove => '-',
        }
    }
}

/// The change of a field.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FieldChange {
    /// Its name.
    pub field: String,
    /// `None`: it was not there.
    pub before: Option<String>,
    /// `None`: it is not there any more.
    pub after: Option<String>,
}

/// The field whose value is nobody's business.
const SECRET: &str = "port memif secret";

/// Values by field; that of [`SECRET`] as it is.
type Fields = BTreeMap<String, Value>;

/// A value of a field.
struct Value {
    text: String,
    /// Nobody has written it: it matters only beside another.
    found: bool,
}

/// The changes from one set of items to another.
pub(super) fn changes(from: &Items, to: &Items) -> Vec<Change> {
    let mut objects: BTreeMap<String, [Fields; 2]> = BTreeMap::new();
    for (side, items, others) in [(0, from, to), (1, to, from)] {
        let changed = items
            .iter()
            .filter(|(key, item)| others.get(key) != Some(item));
        for (_, item) in changed {
            let (object, fields) = described(item);
            objects.entry(object).or_default()[side].extend(fields);
        }
    }
    let (before, after) = (names(from, &objects), names(to, &objects));
    let change = |(object, [old, new]): (String, [Fields; 2])| Change {
        action: match (before.contains(&object), after.contains(&object)) {
            (false, _) => Fate::Create,
            (_, false) => Fate::Remove,
            _ => Fate::Change,
        },
        fields: fields(&old, &new),
        object,
    };
    objects.into_iter().map(change).collect()
}

/// Those of the objects that are there.
fn names(items: &Items, objects: &BTreeMap<String, [Fields; 2]>) -> BTreeSet<String> {
    let own = items
        .iter()
        .filter(|(key, _)| matches!(key, Key::Object(_)));
    let names = own.map(|(_, item)| rule(item).label());
    names.filter(|name| objects.contains_key(name)).collect()
}

fn fields(old: &Fields, new: &Fields) -> Vec<FieldChange> {
    let mut names: Vec<&String> = old.keys().chain(new.keys()).collect();
    names.sort_unstable();
    names.dedup();
    let shown = |field: &str, value: &Value| match field {
        SECRET => "(hidden)".to_owned(),
        _ => value.text.clone(),
    };
    let change = |field: &String| {
        let [before, after] = [old.get(field), new.get(field)];
        let differ = match (before, after) {
            (Some(before), Some(after)) => before.text != after.text,
            (one, other) => one.or(other).is_some_and(|only| !only.found),
        };
        differ.then(|| FieldChange {
            field: field.clone(),
            before: before.map(|value| shown(field, value)),
            after: after.map(|value| shown(field, value)),
        })
    };
    names.into_iter().filter_map(change).collect()
}

/// The object that an item is shown with, and the fields that it is there.
fn described(item: &Item) -> (String, Fields) {
    let rule = rule(item);
    let object = rule.label();
    let fields = match rule.shown {
        Shown::Field(name, text) => {
            let (text, found) = (text.into_owned(), false);
            Fields::from([(name.into_owned(), Value { text, found })])
        }
        Shown::Leaves {
            name,
            value,
            found,
            secret,
        } => {
            let mut leaves = Vec::new();
            flatten(&value.json(), name.to_owned(), &mut leaves);
            leaves.extend(secret.map(|secret| (SECRET.to_owned(), secret.to_owned())));
            let shown = |(field, text)| {
                let found = found.contains(&field);
                (field, Value { text, found })
            };
            leaves.into_iter().map(shown).collect()
        }
    };
    (object, fields)
}

/// The leaves of a value, with the way to each.
fn flatten(value: &Json, path: String, to: &mut Vec<(String, String)>) {
    match value {
        Json::Null => {}
        Json::Object(fields) => {
            for (name, field) in fields {
                let blank = if path.is_empty() { "" } else { " " };
                flatten(field, format!("{path}{blank}{name}"), to);
            }
        }
        Json::Array(items) if items.iter().any(Json::is_object) => {
            for (index, item) in items.iter().enumerate() {
                let blank = if path.is_empty() { "" } else { " " };
                flatten(item, format!("{path}{blank}{}", index + 1), to);
            }
        }
        Json::Array(items) => {
            let items: Vec<String> = items.iter().map(leaf).collect();
            to.push((path, items.join(", ")));
        }
        value => to.push((path, leaf(value))),
    }
}

fn leaf(value: &Json) -> String {
    match value {
        Json::String(text) => text.clone(),
        value => value.to_string(),
    }
}

/// A field and its value, which some do not have: an address is there or not.
fn given(field: &str, value: &str) -> String {
    match value {
        "" => field.to_owned(),
        value => format!("{field}: {value}"),
    }
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{} {}", self.action.sign(), self.object)?;
        for FieldChange {
            field,
            before,
            after,
        } in &self.fields
        {
            match (before, after) {
                (Some(before), Some(after)) => writeln!(f, "    ~ {field}: {before} -> {after}")?,
                (Some(before), None) => writeln!(f, "    - {}", given(field, before))?,
                (None, after) => {
                    let after = after.as_deref().unwrap_or_default();
                    writeln!(f, "    + {}", given(field, after))?;
                }
            }
        }
        Ok(())
    }
}

/// A step as programs get it.
#[derive(Serialize)]
struct Row<'p> {
    phase: Phase,
    action: Fate,
    object: String,
    fields: Vec<FieldChange>,
    interrupts: Option<&'p str>,
}

impl Step {
    fn row(&self) -> Row<'_> {
        let none = Fields::new();
        let (action, object, fields) = match &self.action {
            Action::Remove { item, .. } => {
                let (object, old) = described(item);
                (Fate::Remove, object, fields(&old, &none))
            }
            Action::Create { item, .. } => {
                let (object, new) = described(item);
                (Fate::Create, object, fields(&none, &new))
            }
            Action::Change { from, to } => {
                let ((object, old), (_, new)) = (described(from), described(to));
                (Fate::Change, object, fields(&old, &new))
            }
        };
        Row {
            phase: self.phase,
            action,
            object,
            fields,
            interrupts: self.interrupts.as_deref(),
        }
    }
}

/// The step's description, in a line.
impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let row = self.row();
        let verb = match row.action {
            Fate::Create if rule(self.action.item()).is_attribute => "set",
            Fate::Create => "create",
            Fate::Change => "change",
            Fate::Remove => "remove",
        };
        write!(f, "{verb} {}", row.object)?;
        for (index, change) in row.fields.iter().enumerate() {
            let separator = if index > 0 { "," } else { "" };
            let FieldChange { before, after, .. } = change;
            let value = if row.action == Fate::Change {
                let text = |side: &Option<String>| match side.as_deref() {
                    None | Some("") => "none".to_owned(),
                    Some(text) => text.to_owned(),
                };
                format!("{} -> {}", text(before), text(after))
            } else {
                before.clone().or_else(|| after.clone()).unwrap_or_default()
            };
            write!(f, "{separator} {}", given(&change.field, &value))?;
        }
        match &self.interrupts {
            Some(interface) => write!(f, "  (interrupts {interface})"),
            None => Ok(()),
        }
    }
}

impl Plan {
    /// Side effects in the kernel, a line each: where a device goes down, the kernel removes
    /// settings of others by itself.
    fn notes(&self) -> Vec<String> {
        let down = ("state", Some("down"));
        let goes_down = |change: &&Change| {
            let mut fields = change.fields.iter();
            fields.any(|change| (change.field.as_str(), change.after.as_deref()) == down)
        };
        let changes = self.changes.iter().filter(goes_down);
        changes
            .map(|Change { object, action, .. }| {
                let goes_down = match action {
                    Fate::Create => "is new, and its device goes down if it is up",
                    Fate::Change | Fate::Remove => "goes down",
                };
                format!(
                    "{object} {goes_down}: the kernel then drops its IPv6 addresses and the routes \
                     through it, including those of other programs"
                )
            })
            .collect()
    }

    /// Changes, steps and notes, for programs.
    pub fn json(&self) -> Json {
        let steps: Vec<Row<'_>> = self.steps.iter().map(Step::row).collect();
        serde_json::json!({ "changes": self.changes, "steps": steps, "notes": self.notes() })
    }

    /// The changes as text; with `steps`, also the steps.
    pub fn text(&self, steps: bool) -> String {
        if self.is_empty() {
            return "no change\n".to_owned();
        }
        let mut text = String::new();
        for change in &self.changes {
            text += &change.to_string();
        }
        for note in self.notes() {
            let _ = write!(text, "\n{note}\n");
        }
        let counts = [Fate::Create, Fate::Change, Fate::Remove].map(|fate| {
            self.changes
                .iter()
                .filter(|change| change.action == fate)
                .count()
        });
        let [new, changed, gone] = counts;
        let interrupting = self
            .steps
            .iter()
            .filter(|step| step.interrupts.is_some())
            .count();
        let total = self.steps.len();
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "\n{new} to create, {changed} to change, {gone} to remove; \
             {interrupting} of {total} steps interrupt traffic"
        );
        if steps {
            let mut phase = None;
            for (index, step) in self.steps.iter().enumerate() {
                if phase != Some(step.phase) {
                    phase = Some(step.phase);
                    let _ = writeln!(text, "\n{}", step.phase.name());
                }
                let _ = writeln!(text, "{:4} {step}", index + 1);
            }
        }
        text
    }
}
