//! Writes results to files and to standard output.

use std::fs;
use std::io::{self, Write};
use std::path::Path;

/// Returns true if the file is `-`, which stands for standard output.
pub fn is_stdout(file: &Path) -> bool {
    file.as_os_str() == "-"
}

/// Prints text for people: to standard output, or to standard error if the result's JSON goes
/// there.
///
/// # Errors
/// Nobody reads it anymore (a closed pipe).
pub fn say(json: Option<&Path>, text: &str) -> io::Result<()> {
    if json.is_some_and(is_stdout) {
        io::stderr().lock().write_all(text.as_bytes())
    } else {
        io::stdout().lock().write_all(text.as_bytes())
    }
}

/// Prints a result to standard output. It is not an error if nobody reads it anymore (`| head`).
///
/// # Errors
/// The system's error, such as a full disk.
pub fn print(text: &str) -> crate::Outcome {
    match say(None, text) {
        Err(e) if e.kind() != io::ErrorKind::BrokenPipe => {
            Err(format!("standard output: {e}").into())
        }
        _ => Ok(()),
    }
}

/// Prints to standard error, whether anybody reads it or not.
pub fn tell(text: &str) {
    let _ = io::stderr().lock().write_all(text.as_bytes());
}

/// Fails now if the file could not be written after the work is done.
///
/// # Errors
/// There is no such directory, or the path is that of a directory.
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
/// The system's error, with the file's name.
pub fn write(file: &Path, text: &str) -> crate::Outcome {
    if is_stdout(file) {
        return print(text);
    }
    fs::write(file, text).map_err(|e| format!("{}: {e}", file.display()).into())
}

/// The value as JSON, indented, with a newline at the end.
///
/// # Errors
/// JSON cannot represent the value.
pub fn json(value: &impl serde::Serialize) -> serde_json::Result<String> {
    Ok(serde_json::to_string_pretty(value)? + "\n")
}

/// Writes a value as JSON, indented, with a newline at the end.
///
/// # Errors
/// As [`write()`].
pub fn write_json(file: &Path, value: &impl serde::Serialize) -> crate::Outcome {
    write(file, &json(value)?)
}

/// An error that has been told already; what is left is the exit code.
#[derive(Debug, Clone, Copy)]
pub struct AlreadyReported(pub u8);

impl std::fmt::Display for AlreadyReported {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("see above")
    }
}

impl std::error::Error for AlreadyReported {}
