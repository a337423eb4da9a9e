//! What a router begins with.
//!
//! That is what was applied last, unless its file was changed since it was looked at last: whoever
//! edits the file and restarts the router wants the file. A file that is wrong, or that the router
//! cannot carry out, is not used; nor is one that the machine turns out to refuse.

use std::path::Path;

use crate::config::{Checked, Problems, Wanted};
use crate::lock::{Lock, LockError};

use super::disk::Disk;
use super::store::{Entry, Store};
use super::transaction::Transactions;

/// What a router begins with.
#[derive(Debug)]
pub struct Started {
    /// To change it from then on.
    pub transactions: Transactions,
    /// What it is to do.
    pub wanted: Wanted,
    /// What the operator should know of what it is to do.
    pub warnings: Problems,
    /// What the operator should know about where it comes from, a line each.
    pub notes: Vec<String>,
    /// The last good configuration, if this is the file and that was another.
    pub instead: Option<Box<Started>>,
}

impl Started {
    /// Takes note of why the file is not used.
    #[must_use]
    pub fn because(mut self, why: &str) -> Started {
        self.transactions.refuse(why);
        self
    }
}

/// A configuration that can be carried out.
struct Good {
    checked: Checked,
    wanted: Wanted,
    text: String,
}

impl Good {
    fn new(checked: Checked) -> Result<Good, Problems> {
        Ok(Good {
            wanted: checked.wanted()?,
            text: checked.text().to_owned(),
            checked,
        })
    }
}

/// Holds a directory of configurations, made if need be, until the lock is dropped: two routers
/// would mix up theirs. `None`: it cannot be written, so nobody keeps anything there.
///
/// # Errors
/// Another router holds it; somebody else's file is in the lock's place.
pub fn hold(directory: &Path) -> Result<Option<Lock>, String> {
    if Disk::new(directory).make().is_err() {
        return Ok(None);
    }
    let advice = "or name another directory with `--state`";
    match Lock::take(&directory.join("router")) {
        Ok(mut lock) => Ok(lock.sign().is_ok().then_some(lock)),
        Err(LockError::Held(pid)) => Err(format!(
            "directory {} is in use by the router with process number {pid}: stop that first, \
             {advice}",
            directory.display()
        )),
        Err(error @ LockError::NotOurs(_)) => Err(format!("{error}, {advice}")),
        Err(LockError::Io(..)) => Ok(None),
    }
}

/// What a router with this file begins with, given what the directory says about earlier times.
/// Nothing is written before [`Transactions::started`].
///
/// # Errors
/// What is wrong with the file, if there is nothing to use in its place.
pub fn start(file: &Path, directory: &Path) -> Result<Started, Problems> {
    let store = Store::open(directory);
    let mut notes = Vec::new();
    notes.extend(store.unusable().map(|why| {
        format!("what was applied earlier is not known, and nothing can be applied: {why}")
    }));
    let from_file = Checked::load(file).and_then(Good::new);
    let last = last_good(&store, &mut notes);
    let name = file.display();
    let start = |good: Good, text: Option<String>, notes| Started {
        wanted: good.wanted,
        warnings: good.checked.warnings,
        notes,
        instead: None,
        transactions: Transactions::new(Store::open(directory), file, good.checked.config, text),
    };
    let from_history = |entry: &Entry, last: Good| {
        start(last, None, Vec::new()).because(&format!(
            "{name} cannot be used: starting with the last good configuration, {}",
            entry.brief()
        ))
    };
    match (from_file, last) {
        (Err(problems), None) => Err(problems),
        (Err(problems), Some((entry, last))) => Ok(Started {
            notes,
            ..from_history(&entry, last).because(&problems.to_string())
        }),
        (Ok(good), Some((entry, last))) if store.file() == Some(&good.text) => {
            if good.text != last.text {
                notes.push(format!(
                    "starting with what was applied last, {}, not with {name}; \
                     `parshall apply -c {name}` takes the file",
                    entry.brief()
                ));
            }
            Ok(start(last, None, notes))
        }
        (Ok(good), last) => {
            let text = good.text.clone();
            let last = last.filter(|(_, last)| last.text != text);
            let instead = last.map(|(entry, last)| Box::new(from_history(&entry, last)));
            Ok(Started {
                instead,
                ..start(good, Some(text), notes)
            })
        }
    }
}

/// The newest configuration that was in force and can be again.
fn last_good(store: &Store, notes: &mut Vec<String>) -> Option<(Entry, Good)> {
    store.applied_before(u32::MAX).find_map(|entry| {
        let name = format!("configuration {}", entry.number);
        let good = store.text(entry.number).and_then(|text| {
            let checked = Checked::parse(&name, &text).and_then(Good::new);
            checked.map_err(|problems| problems.to_string())
        });
        match good {
            Ok(good) => Some((entry.clone(), good)),
            Err(why) => {
                notes.push(format!("{name} cannot be used: {why}"));
                None
            }
        }
    })
}
