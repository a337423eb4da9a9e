//! Compiles a profile that is a Python program, by T-Rex's own library where the user has it.

use std::env;
use std::ffi::OsString;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use super::{ProfileError, Tunables, Way};

#[cfg(test)]
mod tests;

/// Time that a profile may take, in seconds. A large one takes a few.
const LIMIT: u32 = 120;

/// The signal of an alarm that nobody handles: the time is over.
const SIGALRM: i32 = 14;

/// Loads the profile and prints it as JSON. Arguments: the time limit in seconds, the file, the
/// direction, and the settings as NAME=VALUE. The current directory goes off the path before
/// anything is imported (`sys` is part of the interpreter): whatever lies there is not to run.
const PROGRAM: &str = r#"
import sys
sys.path[:] = [place for place in sys.path if place]
import json, signal
signal.alarm(int(sys.argv[1]))
try:
    from trex.stl.api import STLProfile
except ModuleNotFoundError as error:
    if (error.name or '').split('.')[0] != 'trex':
        raise
    try:
        # Its name in older releases and in Python's package index (trex-stl-lib).
        from trex_stl_lib.api import STLProfile
    except ModuleNotFoundError as error:
        if (error.name or '').split('.')[0] != 'trex_stl_lib':
            raise
        sys.exit('no T-Rex library: no module named trex or trex_stl_lib')

def typed(text):
    if len(text) > 1 and text[0] in '\'"' and text[-1] == text[0]:
        return text[1:-1]
    try:
        if text.startswith('0x'):
            return int(text, 16)
        return float(text) if '.' in text else int(text)
    except ValueError:
        return text

path, direction = sys.argv[2], int(sys.argv[3])
settings = dict(setting.split('=', 1) for setting in sys.argv[4:])
settings = {name: typed(text) for name, text in settings.items()}
profile = STLProfile.load_py(path, direction=direction, port_id=direction, **settings)
print(json.dumps([stream.to_json() for stream in profile.get_streams()]))
"#;

/// Places of the library below the directory of a T-Rex release or of its sources.
const LIBRARIES: [(&str, &str); 3] = [
    ("automation/trex_control_plane/interactive", "external_libs"),
    (
        "scripts/automation/trex_control_plane/interactive",
        "scripts/external_libs",
    ),
    (".", "../../../external_libs"),
];

/// The streams of `file` as the JSON of a compiled profile. `library` is the directory of T-Rex;
/// without it, the library has to be on PYTHONPATH. Under sudo, the program runs with the rights of
/// the user who called it.
///
/// # Errors
/// There is no Python or no library, the profile is wrong or takes longer than two minutes, or the
/// variables that name who called sudo are not whole.
pub fn compile(
    file: &Path,
    way: Way,
    tunables: &Tunables,
    library: Option<&Path>,
) -> Result<String, ProfileError> {
    let wrong = |why: String| ProfileError::Wrong {
        name: file.display().to_string(),
        why,
    };
    let own = env::var_os("PYTHONPATH").unwrap_or_default();
    let places = env::split_paths(&own).collect();
    let mut python = command(file, way, tunables, LIMIT);
    add_library(&mut python, library, places).map_err(wrong)?;
    run(&mut python, |name| env::var_os(name)).map_err(wrong)
}

/// Runs it with the rights of the user whom the variables of sudo name, and returns what it printed
/// last.
fn run(
    python: &mut Command,
    variable: impl Fn(&str) -> Option<OsString>,
) -> Result<String, String> {
    if rustix::process::getuid().is_root()
        && let Some((user, group)) = caller(variable)?
    {
        run_as(python, user, group);
    }
    let output = python.output();
    printed(&output.map_err(|e| format!("python3, which compiles it: {e}"))?)
}

/// Python with the program and its arguments; `limit` is in seconds.
fn command(file: &Path, way: Way, tunables: &Tunables, limit: u32) -> Command {
    let mut python = Command::new("python3");
    python.args(["-c", PROGRAM, &limit.to_string()]);
    python.arg(file).arg(match way {
        Way::Out => "0",
        Way::Back => "1",
    });
    let settings = tunables.0.iter();
    python.args(settings.map(|(key, value)| format!("{key}={value}")));
    python
}

/// Sets where Python looks for modules: in the library, then in the user's own `places`. An empty
/// place would be the current directory.
fn add_library(
    python: &mut Command,
    library: Option<&Path>,
    mut places: Vec<PathBuf>,
) -> Result<(), String> {
    if let Some(library) = library {
        let found = LIBRARIES.iter().find(|(place, _)| {
            let place = library.join(place);
            ["trex", "trex_stl_lib"]
                .iter()
                .any(|name| place.join(name).is_dir())
        });
        let (place, external) =
            found.ok_or_else(|| format!("there is no T-Rex library in {}", library.display()))?;
        places.insert(0, library.join(place));
        python.env("TREX_EXT_LIBS", library.join(external));
    }
    places.retain(|place| !place.as_os_str().is_empty());
    let path = env::join_paths(places)
        .map_err(|e| format!("the directory of T-Rex cannot be on PYTHONPATH: {e}"))?;
    python.env("PYTHONPATH", path);
    Ok(())
}

/// User and group that called sudo, by the variables that it sets; None where there are none of
/// them.
///
/// # Errors
/// The one that is missing or no number: whoever called, the program is not to run as root.
fn caller(variable: impl Fn(&str) -> Option<OsString>) -> Result<Option<(u32, u32)>, String> {
    const NAMES: [&str; 2] = ["SUDO_UID", "SUDO_GID"];
    let id = |name: &str| {
        let id = variable(name);
        let number = id.as_ref().and_then(|id| id.to_str()?.parse().ok());
        number.ok_or_else(|| match id {
            Some(id) => format!("{name}={} is not a number", id.display()),
            None => format!("{name} is not set"),
        })
    };
    if NAMES.iter().all(|name| variable(name).is_none()) {
        return Ok(None);
    }
    let [user, group] = NAMES.map(id);
    let both = user.and_then(|user| Ok((user, group?)));
    both.map(Some).map_err(|why| {
        format!("{why}, and the profile is not to run as root for who called sudo; set both {} and {}, or neither", NAMES[0], NAMES[1])
    })
}

/// Has `python` run with the rights of a user, in no group but `group`. Without HOME, which is still
/// root's, Python takes the user's home from the system.
fn run_as(python: &mut Command, user: u32, group: u32) {
    python.uid(user).gid(group).env_remove("HOME");
}

/// Takes what the program printed last, since a profile may print something of its own first.
fn printed(output: &Output) -> Result<String, String> {
    let last = |text: &[u8]| {
        let text = String::from_utf8_lossy(text);
        text.trim_end().lines().last().unwrap_or("").to_owned()
    };
    if output.status.success() {
        return Ok(last(&output.stdout));
    }
    let error = last(&output.stderr);
    Err(match output.status.signal() {
        Some(SIGALRM) => "it takes too long to compile; does it wait for something?".to_owned(),
        Some(signal) => format!("python3, which compiles it, ended by signal {signal}"),
        None if error.starts_with("no T-Rex library") => format!(
            "{error}; put its directory (automation/trex_control_plane/interactive) on PYTHONPATH, give --trex DIR, or compile the profile to JSON"
        ),
        None => format!("T-Rex's library: {}", error.trim()),
    })
}
