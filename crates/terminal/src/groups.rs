//! What T-Rex's RPC says of packet groups.

use std::collections::BTreeMap;

use serde_json::{Value, json};

/// The counts and latencies of all groups, by `ask`, which is given a method and its parameters.
///
/// # Errors
/// Those of `ask`.
pub fn all<E>(mut ask: impl FnMut(&str, Value) -> Result<Value, E>) -> Result<Value, E> {
    let groups = ask("get_active_pgids", json!({}))?;
    let ids = ["flow_stats", "latency"].map(|kind| groups["ids"][kind].as_array().cloned());
    let ids: Vec<Value> = ids.into_iter().flatten().flatten().collect();
    ask("get_pgid_stats", json!({"pgids": ids}))
}

/// The rows of an object that are called by numbers.
pub fn numbered(groups: &Value) -> BTreeMap<u32, &Value> {
    let all = groups.as_object().into_iter().flatten();
    all.filter_map(|(name, row)| Some((name.parse().ok()?, row)))
        .collect()
}
