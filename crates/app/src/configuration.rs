//! `parshall check` and `parshall schema`: configuration files without a router.

use std::io::IsTerminal;
use std::path::{Path, PathBuf};

use clap::Args;

use control::config::{self, Checked};

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
    let colour = std::io::stderr().is_terminal();
    match Checked::load(path) {
        Ok(checked) => {
            output::tell(&checked.warnings.report(colour));
            Ok(checked)
        }
        Err(problems) => {
            output::tell(&problems.report(colour));
            let unreadable = problems.is_unreadable();
            Err(Told(if unreadable { UNREADABLE } else { INVALID }))
        }
    }
}
