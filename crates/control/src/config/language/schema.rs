//! The language as a JSON schema (draft 2020-12), for editors.

use serde_json::{Map, Value, json};

use super::{DOCUMENT, Field, Key, Text, Type};

/// The schema of the whole language. Rules that span fields are not in it.
pub fn schema() -> Value {
    let mut schema = object(DOCUMENT);
    schema["$schema"] = "https://json-schema.org/draft/2020-12/schema".into();
    schema["title"] = "Configuration of Parshall".into();
    schema
}

fn object(fields: &[Field]) -> Value {
    let mut properties = Map::new();
    for field in fields {
        let mut schema = of(field.of);
        let mut about = field.about.to_owned();
        if !field.default.is_empty() {
            about += &format!(" (if left out: {})", field.default);
        }
        schema["description"] = about.into();
        properties.insert(field.name.to_owned(), schema);
    }
    let required = fields.iter().filter(|field| field.required);
    let required: Vec<&str> = required.map(|field| field.name).collect();
    let mut schema = json!({
        "type": "object",
        "properties": properties,
        "additionalProperties": false,
    });
    if !required.is_empty() {
        schema["required"] = required.into();
    }
    schema
}

fn of(of_type: &Type) -> Value {
    match of_type {
        Type::Bool => json!({ "type": "boolean" }),
        Type::Int { least, most } => {
            json!({ "type": "integer", "minimum": least, "maximum": most })
        }
        Type::Text(form) => text(form),
        Type::Choice(words) => json!({ "enum": words }),
        Type::Mac => pattern(&format!(
            "{}|{}|{}",
            mac(5, 2),
            mac(2, 4),
            "^[0-9a-fA-F]{12}$"
        )),
        Type::Ip => {
            json!({ "type": "string", "anyOf": [{ "format": "ipv4" }, { "format": "ipv6" }] })
        }
        Type::Endpoint => pattern(&format!(
            r"^({ADDRESS}|[0-9.]+:[0-9]+|\[{ADDRESS}\]:[0-9]+)$"
        )),
        Type::InterfaceAddress | Type::Prefix => pattern(&format!("^{ADDRESS}/[0-9]+$")),
        Type::Network => pattern(&format!("^{ADDRESS}(/[0-9.]+)?$")),
        Type::List {
            of: item,
            least,
            most,
        } => {
            let mut schema = json!({ "type": "array", "items": of(item), "minItems": least });
            if *most < usize::MAX {
                schema["maxItems"] = (*most).into();
            }
            schema
        }
        Type::Object(fields) => object(fields),
        Type::Map { key, of: value } => {
            let names = match key {
                Key::Name(form) => text(form),
                Key::Number { .. } => pattern("^[0-9]+$"),
            };
            json!({ "type": "object", "propertyNames": names, "additionalProperties": of(value) })
        }
        Type::Either(types) => json!({ "anyOf": types.iter().map(of).collect::<Vec<_>>() }),
    }
}

/// Four numbers, or hexadecimal ones with colons between them, of which two may meet once.
const ADDRESS: &str =
    r"([0-9]+(\.[0-9]+){3}|[0-9a-fA-F:.]*::[0-9a-fA-F:.]*|([0-9a-fA-F]+:){7}[0-9a-fA-F]+)";

fn pattern(pattern: &str) -> Value {
    json!({ "type": "string", "pattern": pattern })
}

fn mac(more: usize, digits: usize) -> String {
    let group = format!("[0-9a-fA-F]{{{digits}}}");
    format!("^{group}(:{group}){{{more}}}$|^{group}(-{group}){{{more}}}$")
}

fn text(form: &Text) -> Value {
    let kind = if form.nothing {
        json!(["string", "null"])
    } else {
        json!("string")
    };
    let mut schema = json!({ "type": kind });
    if form.least > 0 {
        schema["minLength"] = form.least.into();
    }
    if form.most < usize::MAX {
        schema["maxLength"] = form.most.into();
    }
    if !form.pattern.is_empty() {
        schema["pattern"] = form.pattern.into();
    } else if !form.excludes.is_empty() {
        schema["pattern"] = format!("^[^{}]*$", form.excludes).into();
    }
    schema
}
