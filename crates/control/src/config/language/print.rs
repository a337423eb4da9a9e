//! The model, printed as a tree in the order of the language.

use serde_json::{Map, Value as Json};

use super::super::yaml::{Key as Name, Kind, Node, Span, Value};
use super::{Field, Key, Type};

/// The tree of an object that was read with these fields. What was not given is left out.
pub(in super::super) fn print(object: &Map<String, Json>, fields: &[Field]) -> Node {
    let given = fields.iter().filter_map(|field| {
        let value = object.get(field.name)?;
        let left_out = !field.required && is_nothing(value, field.of);
        (!left_out).then(|| (key(field.name, Kind::Text), tree(value, field.of)))
    });
    node(Value::Map(given.collect()))
}

/// Returns true if the model has this in place of a value that was not given.
fn is_nothing(value: &Json, of: &Type) -> bool {
    match (value, of) {
        (Json::Null, _) => true,
        (Json::Array(items), _) => items.is_empty(),
        (Json::Object(objects), Type::Map { .. }) => objects.is_empty(),
        (Json::Number(number), Type::Int { least, .. }) => {
            number.as_i64().is_some_and(|number| number < *least)
        }
        _ => false,
    }
}

fn tree(value: &Json, of: &Type) -> Node {
    match (value, of) {
        (_, Type::Either(types)) => {
            let suited = types.iter().find(|of| match of {
                Type::List { .. } => value.is_array(),
                Type::Object(_) => value.is_object(),
                _ => !value.is_array() && !value.is_object(),
            });
            tree(value, suited.unwrap_or(&types[0]))
        }
        (Json::Object(object), Type::Object(fields)) => print(object, fields),
        (Json::Object(objects), Type::Map { key: form, of }) => {
            let kind = match form {
                Key::Number { .. } => Kind::Int,
                Key::Name(_) => Kind::Text,
            };
            let named = |(name, object): (&String, &Json)| (key(name, kind), tree(object, of));
            node(Value::Map(objects.iter().map(named).collect()))
        }
        (Json::Array(items), Type::List { of, .. }) => node(Value::List(
            items.iter().map(|item| tree(item, of)).collect(),
        )),
        (Json::Bool(bool), _) => node(Value::Bool(*bool)),
        (Json::Number(number), _) => node(Value::Int(number.as_i64().unwrap_or_default().into())),
        (Json::String(text), _) => node(Value::Text(text.clone())),
        _ => node(Value::Null),
    }
}

fn key(text: &str, kind: Kind) -> Name {
    let at = Span::default();
    let text = text.to_owned();
    let replaced = false;
    Name {
        at,
        text,
        kind,
        replaced,
    }
}

fn node(value: Value) -> Node {
    let at = Span::default();
    Node { at, value }
}
