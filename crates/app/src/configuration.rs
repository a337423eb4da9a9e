//! `parshall check`, `plan`, `apply`, `rollback` and `schema`: what has to do with configuration
//! files.

use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;

use control::api::Request;
use control::config::{self, Checked, Problems};
use control::plan;

use crate::ask::Router;
use crate::load::duration;
use crate::output::{self, AlreadyReported};

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
    offline: Option<PathBuf>,
    /// Show the steps, too, in their order, and which of them interrupt traffic
    #[arg(long)]
    steps: bool,
    #[command(flatten)]
    router: Router,
}

impl Plan {
    /// Compares the file with the other one, or with what is in force.
    pub fn run(self) -> crate::Outcome {
        let Some(offline) = self.offline else {
            let checked = load(&self.config)?;
            return self.router.ask(Request {
                steps: self.steps,
                ..request("plan", &self.config, &checked)
            });
        };
        let (from, to) = (read(&offline)?, load(&self.config)?);
        let plan = plan::Plan::new(&from.config, &to.config);
        if self.router.json {
            let json = serde_json::to_string_pretty(&plan.json())?;
            return output::print(&format!("{json}\n"));
        }
        output::print(&plan.text(self.steps))
    }
}

/// Changes the configuration of the running router.
#[derive(Args)]
pub struct Apply {
    /// Configuration file that is wanted
    #[arg(short, long, value_name = "FILE")]
    config: PathBuf,
    /// Take it back unless `parshall confirm` comes within this time
    #[arg(long, value_name = "TIME", value_parser = duration)]
    confirm: Option<Duration>,
    /// Words for the history
    #[arg(long, value_name = "TEXT")]
    comment: Option<String>,
    #[command(flatten)]
    router: Router,
}

impl Apply {
    /// Applies the file, and prints what changed.
    pub fn run(self) -> crate::Outcome {
        let checked = load(&self.config)?;
        self.router.ask(Request {
            confirm: self.confirm.map(seconds),
            comment: self.comment,
            ..request("apply", &self.config, &checked)
        })
    }
}

/// Goes back to an earlier configuration.
#[derive(Args)]
pub struct Rollback {
    /// Number in the history [default: the one before, or before what waits for confirmation]
    #[arg(value_name = "N")]
    number: Option<u32>,
    /// Take it back unless `parshall confirm` comes within this time
    #[arg(long, value_name = "TIME", value_parser = duration)]
    confirm: Option<Duration>,
    #[command(flatten)]
    router: Router,
}

impl Rollback {
    /// Goes back, and prints what changed.
    pub fn run(self) -> crate::Outcome {
        let number = self.number.map(|number| number.to_string());
        self.router.ask(Request {
            command: ["rollback".to_owned()].into_iter().chain(number).collect(),
            confirm: self.confirm.map(seconds),
            ..Request::default()
        })
    }
}

/// Whole seconds, no fewer than asked for.
fn seconds(time: Duration) -> u64 {
    time.as_secs() + u64::from(time.subsec_nanos() > 0)
}

/// A request with the configuration of a file.
fn request(verb: &str, file: &Path, checked: &Checked) -> Request {
    Request {
        command: vec![verb.to_owned()],
        text: Some(checked.text().to_owned()),
        name: Some(file.display().to_string()),
        ..Request::default()
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
/// [`AlreadyReported`]: what is wrong has been said.
pub fn load(path: &Path) -> Result<Checked, AlreadyReported> {
    let checked = read(path)?;
    tell(&checked.warnings);
    Ok(checked)
}

/// Reads and checks a file.
fn read(path: &Path) -> Result<Checked, AlreadyReported> {
    Checked::load(path).map_err(|problems| refuse(&problems))
}

/// Says what is wrong with a file.
pub fn refuse(problems: &Problems) -> AlreadyReported {
    tell(problems);
    let unreadable = problems.is_unreadable();
    AlreadyReported(if unreadable { UNREADABLE } else { INVALID })
}

fn tell(problems: &Problems) {
    output::tell(&problems.report(std::io::stderr().is_terminal()));
}
