//! Files that results are written to.

use std::fs;
use std::io::{self, Write};
use std::path::Path;

/// Whether `-`, which stands for standard output, was given.
pub fn is_stdout(file: &Path) -> bool {
    file.as_os_str() == "-"
}

/// Prints for a person, on standard output unless the JSON of the result goes there.
///
/// # Errors
/// Nobody reads any more (a closed pipe).
pub fn say(json: Option<&Path>, text: &str) -> io::Result<()> {
    if json.is_some_and(is_stdout) {
        io::stderr().lock().write_all(text.as_bytes())
    } else {
        io::stdout().lock().write_all(text.as_bytes())
    }
}

/// Fails now if the file could not be written later, after all the work.
///
/// # Errors
/// No such directory, or something that is no file is there.
pub fn check(file: &Path) -> crate::Outcome {
    if is_stdout(file) {
        return Ok(());
    }
    let directory = match file.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    if !directory.is_dir() {
        return Err(format!(
            "{}: there is no directory {}",
            file.display(),
            directory.display()
        )
        .into());
    }
    if file.is_dir() {
        return Err(format!("{} is a directory; name a file", file.display()).into());
    }
    Ok(())
}

/// Writes text to a file, or to standard output.
///
/// # Errors
/// What the system says, with the file's name.
pub fn write(file: &Path, text: &str) -> crate::Outcome {
    let written = if is_stdout(file) {
        io::stdout().lock().write_all(text.as_bytes())
    } else {
        fs::write(file, text)
    };
    written.map_err(|e| format!("{}: {e}", file.display()).into())
}

/// Writes a value as JSON, indented and with a newline at the end.
///
/// # Errors
/// As [`write`].
pub fn write_json(file: &Path, value: &impl serde::Serialize) -> crate::Outcome {
    write(file, &(serde_json::to_string_pretty(value)? + "\n"))
}
