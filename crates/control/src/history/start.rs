//! What a router begins with.
//!
//! That is what was applied last, unless its file was changed since it was looked at last: whoever
//! edits the file and restarts the router wants the file. A file that is wrong, or that the router
//! cannot carry out, is not used.

use std::path::Path;

use crate::config::{Checked, Problems, Wanted};

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
    let (good, is_file) = match (from_file, last) {
        (Err(problems), None) => return Err(problems),
        (Err(problems), Some((entry, last))) => {
            notes.extend(problems.to_string().lines().map(str::to_owned));
            notes.push(format!(
                "{name} cannot be used: starting with the last good configuration, {}",
                entry.brief()
            ));
            (last, false)
        }
        (Ok(file), None) => (file, true),
        (Ok(file), Some((entry, last))) => {
            let changed = store.file() != Some(&file.text);
            if !changed && file.text != last.text {
                notes.push(format!(
                    "starting with what was applied last, {}, not with {name}; \
                     `parshall apply -c {name}` takes the file",
                    entry.brief()
                ));
            }
            (if changed { file } else { last }, changed)
        }
    };
    let Good {
        checked,
        wanted,
        text,
    } = good;
    Ok(Started {
        wanted,
        warnings: checked.warnings,
        notes,
        transactions: Transactions::new(store, file, checked.config, is_file.then_some(text)),
    })
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
