//! Writes results to files and to standard output.

use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

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

/// Refuses files of which two are one, also by other names: what a command writes would overwrite
/// what it reads, or writes besides. Each has the option or the word that it is given as; `-` is no
/// file.
///
/// # Errors
/// The file, and what it is given as.
pub fn apart(files: &[(&str, &Path)]) -> crate::Outcome {
    let files: Vec<_> = files.iter().filter(|(_, file)| !is_stdout(file)).collect();
    for (at, (option, file)) in files.iter().enumerate() {
        let same = files[..at].iter().find(|(_, other)| is_same(file, other));
        if let Some((other, _)) = same {
            let name = file.display();
            return Err(format!("{name}: {other} and {option} are one file; name another").into());
        }
    }
    Ok(())
}

/// As [`apart`], of those that are given.
///
/// # Errors
/// As [`apart`].
pub fn all_apart<'a>(
    files: impl IntoIterator<Item = (&'a str, Option<&'a Path>)>,
) -> crate::Outcome {
    let given = files.into_iter();
    let given: Vec<_> = given
        .filter_map(|(option, file)| Some((option, file?)))
        .collect();
    apart(&given)
}

/// The files that a command reads, which it must not write.
///
/// # Errors
/// As [`apart`].
pub fn keeps(inputs: &[PathBuf], option: &str, output: &Path) -> crate::Outcome {
    let input = |input: &PathBuf| apart(&[("the input", input), (option, output)]);
    inputs.iter().try_for_each(input)
}

/// True if both are the same file: by what they lead to if they exist, else by where they would be.
fn is_same(one: &Path, other: &Path) -> bool {
    let id = |file: &Path| fs::metadata(file).map(|meta| (meta.dev(), meta.ino())).ok();
    match (id(one), id(other)) {
        (Some(one), Some(other)) => one == other,
        (None, None) => place(one).is_some_and(|one| Some(one) == place(other)),
        _ => false,
    }
}

/// Where a file that does not exist would be; a link leads there, too.
fn place(file: &Path) -> Option<PathBuf> {
    /// Links that the kernel follows.
    const LINKS: usize = 40;
    let mut file = file.to_owned();
    for _ in 0..LINKS {
        let directory = match file.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            _ => Path::new("."),
        };
        let directory = directory.canonicalize().ok()?;
        file = directory.join(file.file_name()?);
        match fs::read_link(&file) {
            Ok(to) => file = directory.join(to),
            Err(_) => return Some(file),
        }
    }
    None
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

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn one_file_by_two_names_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name);
        fs::write(path("a"), "a").unwrap();
        fs::hard_link(path("a"), path("hard")).unwrap();
        symlink("a", path("soft")).unwrap();
        symlink("new", path("ahead")).unwrap();
        fs::create_dir(path("d")).unwrap();
        for (one, other, same) in [
            ("a", "a", true),
            ("a", "hard", true),
            ("soft", "hard", true),
            ("a", "d/../a", true),
            ("new", "new", true),
            ("new", "d/../new", true),
            ("ahead", "new", true),
            ("a", "new", false),
            ("new", "newer", false),
            ("ahead", "a", false),
        ] {
            let [one, other] = [one, other].map(path);
            let said = apart(&[("--json", &one), ("-o", &other)]);
            assert_eq!(said.is_err(), same, "{one:?} {other:?}");
            let inputs = [one.clone()];
            assert_eq!(
                keeps(&inputs, "-o", &other).is_err(),
                same,
                "{one:?} {other:?}"
            );
        }
        let stdout = Path::new("-");
        assert!(apart(&[("--json", stdout), ("-o", stdout)]).is_ok());
    }
}
