//! Programs, maps and links in the kernel, by bpftool(8).

use std::time::Duration;

use sandbox::command;
use serde_json::Value;

/// Name of the programs that keep the dispatcher full.
pub const FILLING: &str = "parshall_full";
/// Beginnings of the names of programs that bpftool and libbpf load themselves to look at the
/// kernel, and of ours.
const OWN: &[&str] = &["pid_iter", "libbpf_", FILLING];

/// bpftool never takes so long.
const LIMIT: Duration = Duration::from_secs(30);

/// Something in the kernel.
#[derive(Clone, Debug, PartialEq)]
pub struct Object {
    /// As in `XDP program 12 parshall_sink`.
    pub text: String,
    /// A process holds it.
    pub held: bool,
}

/// Runs `bpftool KIND show`.
fn show(kind: &str) -> Result<Vec<Value>, String> {
    let argv = ["bpftool", "-j", kind, "show"];
    let text = command::run_within(LIMIT, &argv, "").map_err(|e| e.to_string())?;
    serde_json::from_str(&text).map_err(|e| format!("bpftool {kind} show: {e}"))
}

/// All XDP programs, all maps and all links but those of [`FILLING`] and of bpftool's own.
///
/// # Errors
/// bpftool is missing or fails.
pub fn objects() -> Result<Vec<Object>, String> {
    let mut objects = Vec::new();
    for (kind, word) in [("prog", "XDP program"), ("map", "map"), ("link", "link")] {
        for value in show(kind)? {
            let name = value["name"].as_str().unwrap_or_default();
            let of_ours = OWN.iter().any(|own| name.starts_with(own));
            if of_ours || (kind == "prog" && value["type"] != "xdp") {
                continue;
            }
            let what = value["type"].as_str().unwrap_or_default();
            objects.push(Object {
                text: match kind {
                    "prog" => format!("{word} {} {name}", value["id"]),
                    _ => format!("{what} {word} {} {name}", value["id"]),
                }
                .trim_end()
                .to_owned(),
                held: value["pids"]
                    .as_array()
                    .is_some_and(|pids| !pids.is_empty()),
            });
        }
    }
    Ok(objects)
}

/// Numbers of the programs that keep the dispatcher full.
///
/// # Errors
/// As [`objects`].
pub fn filling() -> Result<Vec<u64>, String> {
    Ok(numbers(
        show("prog")?.iter().filter(|p| p["name"] == FILLING),
    ))
}

/// Numbers of all other XDP programs that are attached: they have a link, or no process holds them
/// and yet they are there.
///
/// # Errors
/// As [`objects`].
pub fn attached() -> Result<Vec<u64>, String> {
    let (programs, links) = (show("prog")?, show("link")?);
    let is_linked = |id: &Value| links.iter().any(|link| link["prog_id"] == *id);
    let is_held = |program: &Value| program["pids"].as_array().is_some_and(|p| !p.is_empty());
    let others = programs
        .iter()
        .filter(|p| p["type"] == "xdp" && p["name"] != FILLING);
    Ok(numbers(
        others.filter(|p| is_linked(&p["id"]) || !is_held(p)),
    ))
}

fn numbers<'a>(programs: impl Iterator<Item = &'a Value>) -> Vec<u64> {
    programs
        .filter_map(|program| program["id"].as_u64())
        .collect()
}
