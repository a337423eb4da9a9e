//! Who has a port.

use serde::Deserialize;
use serde_json::{Value, json};

use super::Call;
use crate::events::Event;
use crate::rpc::Refusal;
use crate::state::{Owner, State, handler};

/// Longest name of a user.
const LONGEST_NAME: usize = 64;

#[derive(Deserialize)]
struct Acquire {
    user: String,
    #[serde(default)]
    session_id: u64,
    #[serde(default)]
    force: bool,
}

pub fn acquire(state: &mut State, call: &Call<'_>) -> Result<Value, Refusal> {
    let Acquire {
        user,
        session_id,
        force,
    } = call.read()?;
    let port = call.port;
    if user.is_empty() || user.len() > LONGEST_NAME {
        let why = format!("user: a name has 1 to {LONGEST_NAME} bytes");
        return Err(Refusal::Params(why));
    }
    if let Some(owner) = state.ports[port].owner.clone() {
        if (&owner.user, owner.session_id) == (&user, session_id) {
            return Ok(owner.handler.into());
        }
        if !force {
            let owner = owner.user;
            return Err(session::Error::Acquired { port, owner }.into());
        }
    }
    let handler = handler();
    state.session.acquire(port, &handler, force)?;
    state.ports[port].owner = Some(Owner {
        user: user.clone(),
        session_id,
        handler: handler.clone(),
    });
    let data = json!({"port_id": port, "who": user, "session_id": session_id, "force": force});
    state.sessions.tell(Event::Acquired, &data);
    Ok(handler.into())
}

pub fn release(state: &mut State, call: &Call<'_>) -> Result<Value, Refusal> {
    let key = state.key(call.port);
    state.session.release(call.port, &key)?;
    if let Some(owner) = state.ports[call.port].owner.take() {
        let data = json!({"port_id": call.port, "who": owner.user, "session_id": owner.session_id});
        state.sessions.tell(Event::Released, &data);
    }
    Ok(json!({}))
}

pub fn owner(state: &mut State, call: &Call<'_>) -> Result<Value, Refusal> {
    Ok(json!({"owner": name(state, call.port)}))
}

/// Who has a port; nothing if it is nobody's.
pub fn name(state: &State, port: usize) -> &str {
    let owner = state.ports[port].owner.as_ref();
    owner.map_or("", |owner| &owner.user)
}
