//! The operator's configuration, read from YAML: vppcfg's language as it is, with sections of our
//! own.
//!
//! `yaml` is the text as a tree with places, `language` says what may be in it, [`Config`] is what
//! it says, `check` holds the rules that span the file, and [`Desired`] is the part that the router
//! can do today. The kernel stays the truth about what is there: this is only what is wanted.

mod check;
pub mod desired;
mod dump;
mod forms;
mod language;
mod merge;
mod model;
mod problem;
mod refusals;
pub(crate) mod registry;
pub mod rules;
mod view;
mod yaml;

use std::path::Path;

pub use desired::Desired;
pub(crate) use forms::router_end;
pub use forms::{Address, Collector, device_name, netns};
pub use language::schema;
pub use merge::merged;
pub use model::*;
pub use problem::{Problem, Problems, Severity};
pub(crate) use registry::protocol;
pub use view::{AllInterfaces, AnyInterface, InterfaceKind, MTU};

use problem::Findings;

use crate::text_file;

/// Bytes that the text of a configuration has at most: 100,000 routes fit, and a file without end,
/// such as a device, does not fill the memory.
pub const LARGEST: usize = 16 << 20;

/// A configuration that has passed every check.
#[derive(Debug, Clone, Default)]
pub struct Checked {
    /// Its content.
    pub config: Config,
    /// Problems that do not keep it from being used.
    pub warnings: Problems,
    tree: Option<yaml::Node>,
    name: String,
    text: String,
}

impl Checked {
    /// Reads and checks a file.
    ///
    /// # Errors
    /// The file cannot be read ([`Problems::is_unreadable`]), or [`Checked::parse`] finds errors.
    pub fn load(path: &Path) -> Result<Checked, Problems> {
        let name = path.display().to_string();
        let text = text_file::read(path, LARGEST);
        let text = text.map_err(|error| Problems::unreadable(&name, &error.to_string()))?;
        Self::parse(&name, &text)
    }

    /// Reads and checks a text; `name` is what messages call it.
    ///
    /// # Errors
    /// All that is wrong and the warnings with it; if the text is not YAML, only the first place
    /// that is not; if it is larger than [`LARGEST`], only that.
    pub fn parse(name: &str, text: &str) -> Result<Checked, Problems> {
        if text.len() > LARGEST {
            return Err(Problems::unreadable(name, &text_file::too_large(LARGEST)));
        }
        let unreadable = |fault: yaml::Fault| Problems::new(name, text, vec![fault.into()]);
        let (mut tree, faults) = yaml::parse(text).map_err(unreadable)?;
        let mut findings = Findings(faults.into_iter().map(Problem::from).collect());
        let json = language::read(&mut tree, language::DOCUMENT, &mut findings);
        let config = serde_json::from_value(json).unwrap_or_else(|error| {
            let message = format!("this passes every check, but cannot be used: {error}");
            findings.error(tree.at, message, "please report this with the file");
            Config::default()
        });
        check::check(&config, &tree, &mut findings);
        let wrong = |problem: &Problem| problem.severity == Severity::Error;
        if findings.0.iter().any(wrong) {
            return Err(Problems::new(name, text, findings.0));
        }
        // The file is good; that this version cannot do all of it is said before it is applied.
        if let Err(refused) = desired::wanted(&config, &tree) {
            let warnings = refused.0.into_iter().map(Problem::of_apply);
            findings.0.extend(warnings);
        }
        let problems = Problems::new(name, text, findings.0);
        Ok(Checked {
            config,
            warnings: problems,
            tree: Some(tree),
            name: name.to_owned(),
            text: text.to_owned(),
        })
    }

    /// The text that was read.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The router's task.
    ///
    /// # Errors
    /// It cannot do something of it yet: everything that it cannot do, by name.
    pub fn wanted(&self) -> Result<Desired, Problems> {
        let nothing = yaml::Node::default();
        let tree = self.tree.as_ref().unwrap_or(&nothing);
        desired::wanted(&self.config, tree)
            .map_err(|findings| Problems::new(&self.name, &self.text, findings.0))
    }
}

impl Config {
    /// Reads and checks a text, and forgets about warnings and places.
    ///
    /// # Errors
    /// As [`Checked::parse`].
    pub fn parse(name: &str, text: &str) -> Result<Config, Problems> {
        Checked::parse(name, text).map(|checked| checked.config)
    }
}

#[cfg(test)]
pub(crate) mod tests;
