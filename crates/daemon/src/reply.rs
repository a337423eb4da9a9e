//! Replies to operators.

use std::fmt::Display;

use serde::Serialize;

use control::api::Output;

/// An answer, or why there is none, in a line.
pub type Reply = Result<Output, String>;

/// Gives facts, for people or programs.
pub fn give<T: Serialize + Display>(shown: &T, json: bool) -> Reply {
    if json {
        serde_json::to_value(shown)
            .map(Output::Json)
            .map_err(|e| e.to_string())
    } else {
        Ok(Output::Text(shown.to_string()))
    }
}

/// It is done; what, in a line for people, or nothing.
pub fn done(what: &str, json: bool) -> Reply {
    Ok(if json {
        Output::Json(serde_json::json!({"done": true}))
    } else {
        let end = if what.is_empty() { "" } else { "\n" };
        Output::Text(format!("{what}{end}"))
    })
}
