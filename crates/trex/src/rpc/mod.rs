//! JSON-RPC 2.0 as T-Rex's clients speak it: one request or several, compressed or plain.

mod pack;
mod refusal;

use std::time::Instant;

use serde_json::{Map, Value, json};

pub use refusal::Refusal;

/// The parameters of a request.
pub type Params = Map<String, Value>;

/// Bytes of a request at most, when it is unpacked: T-Rex's limit.
pub const REQUEST: usize = 999_999;
/// Bytes of an answer at most, before it is packed. A few requests could ask for anything many
/// times.
const ANSWER: usize = 32 << 20;

/// Answers a message: calls `call` with method and parameters of each request in it, in order.
/// Those that have not had their turn by `until` are refused.
pub fn answer(
    message: &[u8],
    until: Instant,
    call: &mut dyn FnMut(&str, &Params) -> Result<Value, Refusal>,
) -> Vec<u8> {
    let (request, is_packed) = match pack::unpack(message, REQUEST) {
        Ok(Some(request)) => (Ok(request), true),
        Ok(None) if message.len() > REQUEST => (Err(Refusal::too_large(REQUEST)), false),
        Ok(None) => (Ok(message.to_vec()), false),
        Err(refusal) => (Err(refusal), true),
    };
    let answer = match request.and_then(|request| read(&request)) {
        Err(refusal) => said(Value::Null, Err(refusal)).to_string(),
        Ok(Value::Array(requests)) if !requests.is_empty() => batch(&requests, until, call),
        Ok(request) => one(&request, call).to_string(),
    };
    match is_packed {
        true => pack::pack(answer.as_bytes()),
        false => answer.into_bytes(),
    }
}

fn read(request: &[u8]) -> Result<Value, Refusal> {
    serde_json::from_slice(request).map_err(|why| Refusal::Parse(why.to_string()))
}

/// Answers several requests; a single one is answered without a list around it.
fn batch(
    requests: &[Value],
    until: Instant,
    call: &mut dyn FnMut(&str, &Params) -> Result<Value, Refusal>,
) -> String {
    let (mut answers, mut length) = (Vec::new(), 0);
    for request in requests {
        let answer = match length < ANSWER && Instant::now() < until {
            true => one(request, call),
            false => said(id(request), Err(Refusal::too_much())),
        };
        let answer = answer.to_string();
        length += answer.len();
        answers.push(answer);
    }
    match &answers[..] {
        [one] => one.clone(),
        several => format!("[{}]", several.join(",")),
    }
}

fn one(request: &Value, call: &mut dyn FnMut(&str, &Params) -> Result<Value, Refusal>) -> Value {
    let no_params = Params::new();
    let outcome = match (&request["jsonrpc"], &request["method"], &request["params"]) {
        (Value::String(version), _, _) if version != "2.0" => {
            Err(Refusal::invalid("jsonrpc is not 2.0"))
        }
        (Value::String(_), Value::String(method), Value::Object(params)) => call(method, params),
        (Value::String(_), Value::String(method), Value::Null) => call(method, &no_params),
        (Value::String(_), Value::String(_), _) => Err(Refusal::invalid("params is no object")),
        _ => Err(Refusal::invalid("it has no jsonrpc, or no method")),
    };
    said(id(request), outcome)
}

/// What names a request: text or a number; null if it has no such name.
fn id(request: &Value) -> Value {
    let id = request
        .get("id")
        .filter(|id| id.is_string() || id.is_number());
    id.cloned().unwrap_or(Value::Null)
}

fn said(id: Value, outcome: Result<Value, Refusal>) -> Value {
    match outcome {
        Ok(result) => json!({"jsonrpc": "2.0", "id": id, "result": result}),
        Err(refusal) => json!({"jsonrpc": "2.0", "id": id, "error": {
            "code": refusal.code(),
            "message": refusal.kind(),
            "specific_err": refusal.to_string(),
        }}),
    }
}

#[cfg(test)]
mod tests;
