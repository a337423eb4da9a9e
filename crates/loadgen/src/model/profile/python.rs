//! Compiles a profile that is a Python program, by T-Rex's own library where the user has it.

use std::path::Path;
use std::process::Command;

use super::{ProfileError, Tunables, Way};

/// Loads the profile and prints it as JSON. Arguments: the file, the direction, and the settings as
/// NAME=VALUE.
const PROGRAM: &str = "
import json, sys
try:
    try:
        from trex.stl.api import STLProfile
    except ModuleNotFoundError as error:
        if error.name.split('.')[0] != 'trex':
            raise
        # Its name in older releases and in Python's package index (trex-stl-lib).
        from trex_stl_lib.api import STLProfile
except ImportError as error:
    sys.exit('no T-Rex library: %s' % error)
path, direction, settings = sys.argv[1], int(sys.argv[2]), sys.argv[3:]
settings = dict(setting.split('=', 1) for setting in settings)
profile = STLProfile.load_py(path, direction=direction, port_id=direction, **settings)
print(json.dumps([stream.to_json() for stream in profile.get_streams()]))
";

/// Where the library is below the directory of a T-Rex release or of its sources.
const LIBRARIES: [(&str, &str); 3] = [
    ("automation/trex_control_plane/interactive", "external_libs"),
    (
        "scripts/automation/trex_control_plane/interactive",
        "scripts/external_libs",
    ),
    (".", "../../../external_libs"),
];

/// The streams of `file` as the JSON of a compiled profile. `library` is the directory of T-Rex;
/// without it, the library has to be on PYTHONPATH.
///
/// # Errors
/// There is no Python or no library, or the profile is wrong.
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
    let mut python = Command::new("python3");
    python.args(["-c", PROGRAM]).arg(file).arg(match way {
        Way::Out => "0",
        Way::Back => "1",
    });
    python.args(
        tunables
            .0
            .iter()
            .map(|(key, value)| format!("{key}={value}")),
    );
    if let Some(library) = library {
        let place = LIBRARIES.iter().find(|(place, _)| {
            let place = library.join(place);
            ["trex", "trex_stl_lib"]
                .iter()
                .any(|name| place.join(name).is_dir())
        });
        let (place, external) = place.ok_or_else(|| {
            wrong(format!(
                "there is no T-Rex library in {}",
                library.display()
            ))
        })?;
        python.env("PYTHONPATH", library.join(place));
        python.env("TREX_EXT_LIBS", library.join(external));
    }
    let output = python
        .output()
        .map_err(|e| wrong(format!("python3, which compiles it: {e}")))?;
    if output.status.success() {
        // A profile may print something of its own first.
        let text = String::from_utf8_lossy(&output.stdout);
        return Ok(text.trim_end().lines().last().unwrap_or("").to_owned());
    }
    let errors = String::from_utf8_lossy(&output.stderr);
    let last = errors.trim_end().lines().last().unwrap_or("").trim();
    Err(wrong(match last.starts_with("no T-Rex library") {
        true => format!(
            "{last}; put its directory (automation/trex_control_plane/interactive) on PYTHONPATH, give --trex DIR, or compile the profile to JSON"
        ),
        false => format!("T-Rex's library: {last}"),
    }))
}
