//! Shell scripts that a user gives.

use std::time::Duration;

use sandbox::{Error, Netns, Spawn};

/// A script, and the variables that it has beside those of our own environment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Script {
    /// What it is for, as its user calls it.
    pub name: &'static str,
    /// Its text. It ends at the first command that fails, and a variable that is not set is an
    /// error.
    pub text: String,
    /// Names and values.
    pub variables: Vec<(String, String)>,
}

impl Script {
    /// With more variables.
    #[must_use]
    pub fn with(mut self, more: impl IntoIterator<Item = (String, String)>) -> Self {
        self.variables.extend(more);
        self
    }

    /// Runs it, within `netns` if one is given, and returns what it printed.
    ///
    /// # Errors
    /// It cannot be started, fails, or takes longer than `limit`.
    pub fn run(&self, limit: Duration, netns: Option<&Netns>) -> Result<String, Error> {
        let variables = self.variables.iter();
        let spawn = variables.fold(
            Spawn::new("sh").args(["-euc", &self.text]),
            |spawn, (name, value)| spawn.env(name, value),
        );
        let output = match netns {
            Some(netns) => spawn.inside(netns),
            None => spawn,
        }
        .output(limit)?;
        if output.status.success() {
            return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
        }
        let said = String::from_utf8_lossy(&output.stderr);
        let last = said.lines().rev().find(|line| !line.trim().is_empty());
        Err(Error::Failed {
            command: self.name.to_owned(),
            message: last.map_or_else(|| output.status.to_string(), str::to_owned),
        })
    }
}
