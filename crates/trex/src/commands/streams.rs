//! The streams of a port.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Value, json};

use super::Call;
use crate::rpc::Refusal;
use crate::state::{MAX_STREAMS, MAX_TEXT, PROFILE, State, alone, compile};

#[derive(Deserialize)]
struct Add {
    stream_id: u32,
    stream: Value,
}

#[derive(Deserialize)]
struct Number {
    stream_id: u32,
}

pub fn add(state: &mut State, call: &Call<'_>) -> Result<Value, Refusal> {
    let Add {
        stream_id,
        mut stream,
    } = call.read()?;
    check_stopped(state, call)?;
    if !stream.is_object() {
        return Err(Refusal::Params("stream is no object".to_owned()));
    }
    let port = &mut state.ports[call.port];
    let refused = |why: String| Err(Refusal::Failed(format!("stream {stream_id}: {why}")));
    if port.streams.contains_key(&stream_id) {
        return refused("there is one of that number; remove it first".to_owned());
    }
    stream["stream_id"] = json!(stream_id);
    let text = stream.to_string();
    if port.streams.len() == MAX_STREAMS || port.text() + text.len() > MAX_TEXT {
        return refused(format!(
            "a port has {MAX_STREAMS} streams at most, of {} MiB",
            MAX_TEXT >> 20
        ));
    }
    // Whatever is wrong with a stream by itself is said now; chains are looked at when it starts.
    let name = format!("of port {}", call.port);
    if let Err(why) = compile(&name, &[&alone(&stream).to_string()]) {
        return refused(why.to_string());
    }
    port.loaded.clear();
    port.streams.insert(stream_id, text);
    port.set = None;
    Ok(json!({}))
}

pub fn remove(state: &mut State, call: &Call<'_>) -> Result<Value, Refusal> {
    let Number { stream_id } = call.read()?;
    check_stopped(state, call)?;
    let port = &mut state.ports[call.port];
    let removed = port.streams.remove(&stream_id);
    removed.ok_or_else(|| absent(stream_id))?;
    port.set = None;
    Ok(json!({}))
}

/// The session forgets them too, and what was counted for them.
pub fn remove_all(state: &mut State, call: &Call<'_>) -> Result<Value, Refusal> {
    check_stopped(state, call)?;
    let key = state.key(call.port);
    state.session.set_streams(call.port, &key, Vec::new())?;
    let port = &mut state.ports[call.port];
    port.streams.clear();
    port.loaded.clear();
    port.set = None;
    port.version += 1;
    Ok(json!({}))
}

pub fn list(state: &mut State, call: &Call<'_>) -> Result<Value, Refusal> {
    let numbers: Vec<_> = state.ports[call.port].streams.keys().collect();
    Ok(json!(numbers))
}

pub fn get(state: &mut State, call: &Call<'_>) -> Result<Value, Refusal> {
    let Number { stream_id } = call.read()?;
    let stream = state.ports[call.port].streams.get(&stream_id);
    let stream = stream.ok_or_else(|| absent(stream_id))?;
    Ok(json!({"stream": read(stream)}))
}

pub fn all(state: &mut State, call: &Call<'_>) -> Result<Value, Refusal> {
    let streams = &state.ports[call.port].streams;
    let streams: BTreeMap<String, Value> = streams
        .iter()
        .map(|(number, text)| (number.to_string(), read(text)))
        .collect();
    Ok(json!({"profiles": {PROFILE: streams}}))
}

fn absent(stream: u32) -> Refusal {
    Refusal::Failed(format!("there is no stream {stream}"))
}

/// A stream's object; the text was made from one.
fn read(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or(Value::Null)
}

fn check_stopped(state: &State, call: &Call<'_>) -> Result<(), Refusal> {
    match state.activity(call.port).runs() {
        true => Err(session::Error::Running(call.port).into()),
        false => Ok(()),
    }
}
