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

/// Prints a result on standard output. Who has stopped reading (`| head`) wants no more of it: that
/// is no error.
///
/// # Errors
/// What the system says: a full disk, for one.
pub fn print(text: &str) -> crate::Outcome {
    match say(None, text) {
        Err(e) if e.kind() != io::ErrorKind::BrokenPipe => {
            Err(format!("standard output: {e}").into())
        }
        _ => Ok(()),
    }
}

/// Says something on standard error, whether anybody listens or not.
pub fn tell(text: &str) {
    let _ = io::stderr().lock().write_all(text.as_bytes());
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

/// Writes text to a file, or to standard output as [`print()`] does.
///
/// # Errors
/// What the system says, with the file's name.
pub fn write(file: &Path, text: &str) -> crate::Outcome {
    if is_stdout(file) {
        return print(text);
    }
    fs::write(file, text).map_err(|e| format!("{}: {e}", file.display()).into())
}

/// A value as JSON, indented and with a newline at the end.
///
/// # Errors
/// The value is none that JSON has.
pub fn json(value: &impl serde::Serialize) -> serde_json::Result<String> {
    Ok(serde_json::to_string_pretty(value)? + "\n")
}

/// Writes a value as JSON, indented and with a newline at the end.
///
/// # Errors
/// As [`write()`].
pub fn write_json(file: &Path, value: &impl serde::Serialize) -> crate::Outcome {
    write(file, &json(value)?)
}
