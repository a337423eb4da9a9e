//! The commands: a table of names, what each needs, and who does it.

mod absent;
mod access;
mod port;
mod server;
mod statistics;
mod streams;
mod traffic;

use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::rpc::{Params, Refusal};
use crate::state::State;

/// What a command needs before it is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Needs {
    /// Nothing.
    Nothing,
    /// The `api_h` that `api_sync_v2` gives.
    Api,
    /// That, and the number of a port.
    Port,
    /// That, and to have acquired the port.
    Owner,
}

struct Command {
    name: &'static str,
    needs: Needs,
    run: fn(&mut State, &Call<'_>) -> Result<Value, Refusal>,
}

/// A command's parameters.
struct Call<'a> {
    params: &'a Params,
    /// The port that is named; 0 where none is.
    port: usize,
}

const fn command(
    name: &'static str,
    needs: Needs,
    run: fn(&mut State, &Call<'_>) -> Result<Value, Refusal>,
) -> Command {
    Command { name, needs, run }
}

/// All commands.
const COMMANDS: &[Command] = {
    use Needs::{Api, Nothing, Owner, Port};
    &[
        command("ping", Nothing, server::ping),
        command("api_sync_v2", Nothing, server::api_sync),
        command("get_version", Nothing, server::version),
        command("get_supported_cmds", Api, server::supported),
        command("get_system_info", Api, server::system_info),
        command("publish_now", Api, server::publish_now),
        command("get_async_events", Api, server::events),
        command("capture", Api, server::capture),
        command("get_tpg_status", Api, server::tpg_status),
        command("acquire", Port, access::acquire),
        command("release", Owner, access::release),
        command("get_owner", Port, access::owner),
        command("get_port_status", Port, port::status),
        command("get_port_xstats_names", Port, port::xstats_names),
        command("get_port_xstats_values", Port, port::xstats_values),
        command("set_port_attr", Owner, port::set_attributes),
        command("set_l2", Owner, port::set_l2),
        command("set_rx_feature", Owner, port::set_rx_feature),
        command("service", Owner, port::service),
        command("remove_rx_filters", Owner, port::remove_rx_filters),
        command("add_stream", Owner, streams::add),
        command("remove_stream", Owner, streams::remove),
        command("remove_all_streams", Owner, streams::remove_all),
        command("get_stream_list", Port, streams::list),
        command("get_stream", Port, streams::get),
        command("get_all_streams", Port, streams::all),
        command("start_traffic", Owner, traffic::start),
        command("stop_traffic", Owner, traffic::stop),
        command("pause_traffic", Owner, traffic::pause),
        command("resume_traffic", Owner, traffic::resume),
        command("update_traffic", Owner, traffic::update),
        command("validate", Owner, traffic::validate),
        command("get_global_stats", Api, statistics::global),
        command("get_port_stats", Port, statistics::port),
        command("get_utilization", Api, statistics::utilization),
        command("get_active_pgids", Api, statistics::groups),
        command("get_pgid_stats", Api, statistics::of_groups),
    ]
};

/// Does what a request asks for.
///
/// # Errors
/// There is no such command, something that it needs is missing, or it cannot be done.
pub fn run(state: &mut State, method: &str, params: &Params) -> Result<Value, Refusal> {
    let found = COMMANDS.iter().find(|command| command.name == method);
    let command = found.ok_or_else(|| Refusal::NoMethod {
        method: method.chars().take(64).collect(),
        instead: absent::instead(method),
    })?;
    if command.needs != Needs::Nothing {
        check_api(state, params)?;
    }
    let mut call = Call { params, port: 0 };
    if matches!(command.needs, Needs::Port | Needs::Owner) {
        call.port = port_of(state, params)?;
    }
    if command.needs == Needs::Owner {
        check_owner(state, &call)?;
    }
    (command.run)(state, &call)
}

fn check_api(state: &State, params: &Params) -> Result<(), Refusal> {
    match params.get("api_h").and_then(Value::as_str) {
        Some(handler) if handler == state.api_handler => Ok(()),
        Some(_) => Err(Refusal::Params(
            "api_h is not this server's: it has been started anew; connect again".to_owned(),
        )),
        None => Err(Refusal::Params(
            "api_h is missing; api_sync_v2 gives it".to_owned(),
        )),
    }
}

/// The port that is named, and its one profile.
fn port_of(state: &State, params: &Params) -> Result<usize, Refusal> {
    let ports = state.ports.len();
    let number = params.get("port_id");
    let number = number.ok_or_else(|| Refusal::Params("port_id is missing".to_owned()))?;
    let wrong = || Refusal::Params("port_id is no number of a port: 0, 1 ...".to_owned());
    let number = number.as_u64().ok_or_else(wrong)?;
    let port = usize::try_from(number).ok().filter(|port| *port < ports);
    let port = port.ok_or_else(|| {
        Refusal::Params(format!(
            "there is no port {number}: there are {ports}, from 0 on"
        ))
    })?;
    match params.get("profile_id") {
        None => Ok(port),
        Some(Value::String(name)) if ["_", "*"].contains(&&**name) => Ok(port),
        Some(other) => Err(Refusal::Params(format!(
            "profile_id {other}: a port has one profile here, which is `_`"
        ))),
    }
}

fn check_owner(state: &State, call: &Call<'_>) -> Result<(), Refusal> {
    let port = call.port;
    let given = call.params.get("handler").and_then(Value::as_str);
    match &state.ports[port].owner {
        Some(owner) if given == Some(&owner.handler) => Ok(()),
        Some(owner) => Err(session::Error::Acquired {
            port,
            owner: owner.user.clone(),
        }
        .into()),
        None => Err(Refusal::Failed(format!(
            "port {port} is nobody's; acquire it first"
        ))),
    }
}

impl Call<'_> {
    /// The parameters of this command; others are not looked at.
    fn read<T: DeserializeOwned>(&self) -> Result<T, Refusal> {
        let params = Value::Object(self.params.clone());
        serde_json::from_value(params).map_err(|why| Refusal::Params(why.to_string()))
    }
}

/// The names of all commands.
fn names() -> Vec<&'static str> {
    COMMANDS.iter().map(|command| command.name).collect()
}
