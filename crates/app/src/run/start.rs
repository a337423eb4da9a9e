//! The configuration that a router begins with.

use std::io::IsTerminal;
use std::path::{Path, PathBuf};

use control::history::{self, Started};

use crate::configuration;
use crate::output::{self, AlreadyReported};

/// Chooses the configuration to start with, from the router's file or from the history.
///
/// # Errors
/// [`AlreadyReported`]: what is wrong with the file has been said, and there is nothing to use in its place.
pub fn start(file: &Path, state: &Path) -> Result<Started, AlreadyReported> {
    let started =
        history::start(file, state).map_err(|problems| configuration::refuse(&problems))?;
    tell(&started);
    Ok(started)
}

/// Says what the operator should know of what the router begins with.
pub fn tell(started: &Started) {
    let colour = std::io::stderr().is_terminal();
    output::tell(&started.warnings.report(colour));
    let refused = started.transactions.refused().into_iter();
    let refused = refused.flat_map(str::lines);
    for line in started.notes.iter().map(String::as_str).chain(refused) {
        output::tell(&format!("parshall: {line}\n"));
    }
}

/// Directory for the history of the router with this file unless another is given: below
/// /var/lib/parshall, named by the file's path with `-` in place of `/`.
pub fn state(file: &Path) -> PathBuf {
    let path = std::path::absolute(file).unwrap_or_else(|_| file.to_owned());
    let path = path.to_string_lossy();
    let mut name = String::new();
    for c in path.trim_start_matches('/').chars() {
        match c {
            '/' => name.push('-'),
            // Other files must not have the same name.
            '-' => name.push_str("%2d"),
            '%' => name.push_str("%25"),
            c => name.push(c),
        }
    }
    Path::new("/var/lib/parshall").join(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_file_has_a_directory_of_its_own() {
        let name = |file: &str| state(Path::new(file)).display().to_string();
        assert_eq!(
            name("/etc/parshall/router.yaml"),
            "/var/lib/parshall/etc-parshall-router.yaml"
        );
        assert_eq!(name("/a-b/%2d"), "/var/lib/parshall/a%2db-%252d");
        assert!(name("x.yaml").ends_with("-x.yaml"));
    }
}
