//! `parshall check`, `plan` and `schema`: configuration files without a router.

use std::io::IsTerminal;
use std::path::{Path, PathBuf};

use clap::Args;

use control::config::{self, Checked, Problems, Wanted};
use control::plan;

use crate::output::{self, Told};

/// Exit code for a configuration that is wrong.
const INVALID: u8 = 1;
/// Exit code for a file that cannot be read; also of wrong options.
const UNREADABLE: u8 = 2;

/// Checks a configuration file.
#[derive(Args)]
pub struct Check {
    /// Configuration file
    #[arg(short, long, value_name = "FILE")]
    config: PathBuf,
}

impl Check {
    /// Says all that is wrong with the file, and what the operator should know.
    pub fn run(self) -> crate::Outcome {
        load(&self.config)?;
        output::print(&format!("{} is valid\n", self.config.display()))
    }
}

/// Shows what would change.
#[derive(Args)]
pub struct Plan {
    /// Configuration file that is wanted
    #[arg(short, long, value_name = "FILE")]
    config: PathBuf,
    /// Configuration file that is in force, in place of a running router's
    #[arg(long, value_name = "OTHER")]
    offline: PathBuf,
    /// Show the steps, too, in their order, and which of them interrupt traffic
    #[arg(long)]
    steps: bool,
    /// Print changes and steps as JSON
    #[arg(long)]
    json: bool,
}

impl Plan {
    /// Compares the two files.
    pub fn run(self) -> crate::Outcome {
        let (from, to) = (read(&self.offline)?, load(&self.config)?);
        let plan = plan::Plan::new(&from.config, &to.config);
        if self.json {
            let json = serde_json::to_string_pretty(&plan.json())?;
            return output::print(&format!("{json}\n"));
        }
        output::print(&plan.text(self.steps))
    }
}

/// Prints the JSON schema of the language, for editors.
pub fn schema() -> crate::Outcome {
    let schema = serde_json::to_string_pretty(&config::schema())?;
    output::print(&format!("{schema}\n"))
}

/// Reads and checks a file, and tells its warnings.
///
/// # Errors
/// [`Told`]: what is wrong has been said.
pub fn load(path: &Path) -> Result<Checked, Told> {
    let checked = read(path)?;
    tell(&checked.warnings);
    Ok(checked)
}

/// Reads and checks a file.
fn read(path: &Path) -> Result<Checked, Told> {
    Checked::load(path).map_err(|problems| {
        tell(&problems);
        let unreadable = problems.is_unreadable();
        Told(if unreadable { UNREADABLE } else { INVALID })
    })
}

fn tell(problems: &Problems) {
    output::tell(&problems.report(std::io::stderr().is_terminal()));
}

/// What the router is to do.
///
/// # Errors
/// [`Told`]: what is wrong with the file, or what the router cannot do yet, has been said.
pub fn wanted(path: &Path) -> Result<Wanted, Told> {
    load(path)?.wanted().map_err(|problems| {
        tell(&problems);
        Told(INVALID)
    })
}
