//! The configuration that a router starts with.
//!
//! That is what was applied last, unless its file was changed since it was looked at last: whoever
//! edits the file and restarts the router wants the file. A file that is wrong, or that the router
//! cannot carry out, is not used; nor is anything that the machine turns out to refuse: then the
//! history is gone through, newest first, to what can be used.

use std::mem;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use kernel::process::is_ending;

use crate::config::{Checked, Desired, Problems};
use crate::lock::{Lock, LockError};

use super::disk::Disk;
use super::store::Store;
use super::transaction::{Refused, Transactions};

/// The longest wait for a router that is ending: the kernel takes some 20 ms for each of its taps.
const PATIENCE: Duration = Duration::from_secs(30);

/// A configuration to start with.
#[derive(Debug)]
pub struct Started {
    /// To change it from then on.
    pub transactions: Transactions,
    /// The router's task.
    pub wanted: Desired,
    /// Problems of the configuration that do not keep it from being used.
    pub warnings: Problems,
    /// Notes for the operator about the choice of this configuration, a line each.
    pub notes: Vec<String>,
    /// Configurations to use instead if the machine refuses this one.
    pub others: Others,
}

/// The rest of the history, to start with instead.
#[derive(Debug, Clone)]
pub struct Others {
    file: PathBuf,
    directory: PathBuf,
    /// The configuration that is tried now: the file (`None`), or a number of the history.
    number: Option<u32>,
    /// What was tried: a configuration, as `number` has it, and its text.
    tried: Vec<(Option<u32>, String)>,
    /// Configurations that could not be used, with the reasons.
    refused: Vec<(Option<u32>, String)>,
}

/// A configuration that can be carried out.
struct Good {
    checked: Checked,
    wanted: Desired,
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
/// would mix up theirs. `None`: it cannot be written, so nobody keeps anything there. Whoever is
/// `told` hears when we wait for a router that is ending: the kernel lets go of this lock last.
///
/// # Errors
/// Another router holds it, or is still ending after 30 seconds; somebody else's file is in the
/// lock's place.
pub fn hold(directory: &Path, told: impl Fn(&str)) -> Result<Option<Lock>, String> {
    if Disk::new(directory).make().is_err() {
        return Ok(None);
    }
    let advice = "or name another directory with `--state`";
    let begun = Instant::now();
    let mut waits = false;
    loop {
        match Lock::take(&directory.join("router")) {
            Ok(mut lock) => return Ok(lock.sign().is_ok().then_some(lock)),
            Err(LockError::Held(pid))
                if begun.elapsed() < PATIENCE && pid.parse().is_ok_and(is_ending) =>
            {
                if !mem::replace(&mut waits, true) {
                    told(&format!(
                        "waiting for the router (pid {pid}) that is ending"
                    ));
                }
                thread::sleep(Duration::from_millis(20));
            }
            Err(LockError::Held(pid)) => {
                return Err(format!(
                    "directory {} is in use by another router (pid {pid}): stop that router \
                     first, {advice}",
                    directory.display()
                ));
            }
            Err(error @ LockError::NotOurs(_)) => return Err(format!("{error}, {advice}")),
            Err(LockError::Io(..)) => return Ok(None),
        }
    }
}

/// Chooses the configuration for a router with this file, given the history in the directory.
/// Nothing is written before [`Transactions::started`].
///
/// # Errors
/// The problems of the file, if there is nothing to use in its place.
pub fn start(file: &Path, directory: &Path) -> Result<Started, Problems> {
    let store = Store::open(directory);
    let mut notes = Vec::new();
    notes.extend(
        store
            .unusable()
            .map(|why| format!("the history cannot be read, so nothing can be applied: {why}")),
    );
    let others = Others {
        file: file.to_owned(),
        directory: directory.to_owned(),
        number: None,
        tried: Vec::new(),
        refused: Vec::new(),
    };
    let started = match Checked::load(file).and_then(Good::new) {
        Err(problems) => {
            let next = others.next(&problems.to_string());
            next.ok_or(problems)?
        }
        Ok(good) if store.file() == Some(&good.text) => match others.clone().newest() {
            Some((last, brief)) if !last.others.tries(&good.text) => {
                let name = file.display();
                notes.push(format!(
                    "starting with the configuration applied last, {brief}, not with {name}; \
                     `parshall apply -c {name}` applies the file"
                ));
                last
            }
            Some((last, _)) => last,
            None => others.begin(good),
        },
        Ok(good) => others.begin(good),
    };
    Ok(Started { notes, ..started })
}

impl Others {
    /// Returns the configuration to use instead of the one that is tried now, which failed because
    /// of `why`.
    pub fn next(mut self, why: &str) -> Option<Started> {
        self.refused.push((self.number, why.to_owned()));
        self.newest().map(|(started, _)| started)
    }

    /// Returns true if there is any.
    pub fn any(&self) -> bool {
        self.clone().next("").is_some()
    }

    /// Returns true if this is the text of the configuration that is tried now.
    fn tries(&self, text: &str) -> bool {
        self.tried.last().is_some_and(|(_, tried)| tried == text)
    }

    /// Names a configuration in messages: the file (`None`), or a number of the history.
    fn name(&self, number: Option<u32>) -> String {
        number.map_or_else(|| self.file.display().to_string(), name)
    }

    /// The newest that was in force before what is tried now and can be again, and its number and
    /// time.
    fn newest(mut self) -> Option<(Started, String)> {
        let store = Store::open(&self.directory);
        for entry in store.applied_before(self.number.unwrap_or(u32::MAX)) {
            self.number = Some(entry.number);
            let good = store.text(entry.number).and_then(|text| {
                let checked = Checked::parse(&name(entry.number), &text).and_then(Good::new);
                checked.map_err(|problems| problems.to_string())
            });
            match good {
                Ok(good) => {
                    if let Some((tried, _)) = self.tried.iter().find(|(_, text)| *text == good.text)
                    {
                        let why = format!("it is the same as {}", self.name(*tried));
                        self.refused.push((self.number, why));
                        continue;
                    }
                    let refused = self.refused(&entry.brief());
                    let mut started = self.begin(good);
                    started.transactions.refuse(refused);
                    return Some((started, entry.brief()));
                }
                Err(why) => self.refused.push((Some(entry.number), why)),
            }
        }
        None
    }

    /// Makes a configuration the one that is tried now.
    fn begin(mut self, good: Good) -> Started {
        let store = Store::open(&self.directory);
        let text = self.number.is_none().then(|| good.text.clone());
        self.tried.push((self.number, good.text));
        Started {
            wanted: good.wanted,
            warnings: good.checked.warnings,
            notes: Vec::new(),
            transactions: Transactions::new(store, &self.file, good.checked.config, text),
            others: self,
        }
    }

    /// Describes the configurations that could not be used, and the one in their place; `None`: all
    /// could.
    fn refused(&self, brief: &str) -> Option<Refused> {
        let lines = self.refused.iter().map(|(number, why)| {
            let name = self.name(*number);
            format!("{}\n{name} cannot be used", why.trim_end())
        });
        let lines: Vec<_> = lines.collect();
        let numbers = self.refused.iter().cloned();
        (!lines.is_empty()).then(|| Refused {
            text: format!(
                "{}: starting with the last good configuration, {brief}",
                lines.join("\n")
            ),
            numbers: numbers
                .filter_map(|(number, why)| Some((number?, why)))
                .collect(),
        })
    }
}

/// Names a configuration of the history in messages.
fn name(number: u32) -> String {
    format!("configuration {number}")
}

#[cfg(test)]
mod tests {
    use std::process::{Command, id};
    use std::sync::mpsc;
    use std::{cell, fs};

    use super::*;

    fn at_once(line: &str) {
        panic!("{line}");
    }

    #[test]
    fn a_directory_is_held_by_one_router() {
        let place = tempfile::tempdir().expect("a directory");
        let state = place.path().join("state");
        let held = hold(&state, at_once).expect("nobody has it");
        assert!(held.is_some());
        let refused = hold(&state, at_once).expect_err("it is held");
        let directory = format!("directory {} ", state.display());
        let holder = format!(" (pid {}):", id());
        assert!(
            refused.starts_with(&directory) && refused.contains(&holder),
            "{refused}"
        );
        drop(held);
        assert!(hold(&state, at_once).expect("it is free again").is_some());
        // A router whose directory cannot be made runs all the same.
        let file = place.path().join("file");
        fs::write(&file, "").expect("written");
        assert!(hold(&file.join("x"), at_once).expect("no matter").is_none());
    }

    /// The kernel holds what a killed process had locked until all that it had open is gone.
    #[test]
    fn a_router_that_is_ending_is_waited_for() {
        let state = tempfile::tempdir().expect("a directory");
        let held = hold(state.path(), at_once).expect("nobody has it");
        let mut dead = Command::new("sleep").arg("0").spawn().expect("is started");
        dead.wait().expect("it ends");
        let lock = state.path().join("router.lock");
        fs::write(&lock, format!("{}\n", dead.id())).expect("written");
        let told = cell::RefCell::new(Vec::new());
        let (ended, waiting) = mpsc::channel();
        let kernel = thread::spawn(move || {
            waiting.recv().expect("somebody waits");
            thread::sleep(Duration::from_millis(100));
            drop(held);
        });
        let next = hold(state.path(), |line| {
            told.borrow_mut().push(line.to_owned());
            ended.send(()).expect("it listens");
        });
        kernel.join().expect("no panic");
        assert!(next.expect("the other has ended").is_some());
        let line = format!("waiting for the router (pid {}) that is ending", dead.id());
        assert_eq!(told.into_inner(), [line]);
    }
}
