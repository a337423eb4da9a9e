//! The configurations in force, now and earlier, on disk.
//!
//! `index.json` lists the configurations, `N.yaml` is the text of number N. A text is written
//! before the index names it, and the index is replaced as a whole: so there is one moment at which
//! a configuration begins to count.

use std::path::Path;
use std::time::SystemTime;

use serde::{Deserialize, Serialize};

use super::disk::Disk;

/// Configurations that are kept: a screen or two of `history`, and at most 50 texts of
/// [`LARGEST`](crate::config::LARGEST) bytes on the disk.
pub(super) const KEPT: usize = 50;
const INDEX: &str = "index.json";

/// A configuration that was applied, or is to be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// Its number, from 1.
    pub number: u32,
    /// Time of the change, in seconds since 1970.
    pub time: u64,
    /// The user who applied it; `None`: the router itself, at its start or when told to read its
    /// file.
    pub who: Option<Who>,
    /// Words for people.
    pub comment: Option<String>,
    /// The number that it goes back to, if it is a rollback.
    #[serde(default)]
    pub restores: Option<u32>,
    /// Its fate.
    pub state: State,
    /// The user who confirmed it, if it had to be confirmed and was.
    #[serde(default)]
    pub confirmed: Option<Who>,
    /// The reason why it is not in force, if nobody has taken it back.
    #[serde(default)]
    pub why: Option<String>,
}

/// The user of a request, as the kernel says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Who {
    /// User.
    pub uid: u32,
    /// Process.
    pub pid: i32,
    /// Name of the user, if it has one.
    pub name: Option<String>,
}

/// The fate of a configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// It was or is in force. The last of these is what a start brings up.
    Applied,
    /// It is being applied or waits for confirmation. After a start: it was not to be.
    Pending,
    /// It was taken back.
    Reverted,
    /// The machine did not take it.
    Failed,
    /// It was in force, but the start could not use it, and the next one tries again. Only shown:
    /// on disk it is [`State::Applied`].
    Unusable,
}

#[derive(Debug, Default, Serialize, Deserialize)]
struct Index {
    /// Oldest first.
    entries: Vec<Entry>,
    /// The text of the router's file when it was looked at last.
    file: Option<String>,
}

/// The reason why a configuration that was pending at the end of a router is not in force.
const UNFINISHED: &str = "the router ended before it was applied wholly, or confirmed";

/// The configurations on disk.
#[derive(Debug)]
pub(super) struct Store {
    pub(super) disk: Disk,
    index: Index,
    /// The reason why the index cannot be read; then it is not written either.
    unusable: Option<String>,
}

impl Store {
    /// Reads the history in a directory, which need not exist.
    pub fn open(directory: &Path) -> Store {
        let disk = Disk::new(directory);
        let read = disk.read(INDEX).and_then(|text| match text {
            None => Ok(Index::default()),
            Some(text) => serde_json::from_str(&text)
                .map_err(|error| format!("{}: {error}", disk.path(INDEX).display())),
        });
        let (mut index, unusable) = match read {
            Ok(index) => (index, None),
            Err(why) => (Index::default(), Some(why)),
        };
        for entry in &mut index.entries {
            if entry.state == State::Pending {
                entry.state = State::Reverted;
                entry.why = Some(UNFINISHED.to_owned());
            }
        }
        Store {
            disk,
            index,
            unusable,
        }
    }

    /// The reason why nothing can be saved, if there is one.
    pub fn unusable(&self) -> Option<&str> {
        self.unusable.as_deref()
    }

    /// All that are kept, oldest first.
    pub fn entries(&self) -> &[Entry] {
        &self.index.entries
    }

    /// One of them.
    pub fn entry(&self, number: u32) -> Option<&Entry> {
        self.entries().iter().find(|entry| entry.number == number)
    }

    /// One of them.
    ///
    /// # Errors
    /// There is none of this number.
    pub fn known(&self, number: u32) -> Result<&Entry, String> {
        let entry = self.entry(number);
        entry.ok_or_else(|| format!("there is no configuration {number}; `history` lists them"))
    }

    /// Those that were in force, newest first, before a number.
    pub fn applied_before(&self, number: u32) -> impl Iterator<Item = &Entry> {
        let applied = self.entries().iter().rev();
        applied.filter(move |entry| entry.state == State::Applied && entry.number < number)
    }

    /// The one that a rollback from this one goes to. A rollback stands where the one that it went
    /// back to stood: so each goes one further.
    pub fn back(&self, from: u32) -> Option<u32> {
        let mut place = from;
        while let Some(earlier) = self.entry(place).and_then(|entry| entry.restores) {
            place = earlier;
        }
        self.applied_before(place).next().map(|entry| entry.number)
    }

    /// The configuration that a start would use.
    pub fn current(&self) -> Option<&Entry> {
        self.applied_before(u32::MAX).next()
    }

    /// The text of the router's file when it was looked at last.
    pub fn file(&self) -> Option<&str> {
        self.index.file.as_deref()
    }

    /// The text of a configuration.
    ///
    /// # Errors
    /// It is not there, or cannot be read.
    pub fn text(&self, number: u32) -> Result<String, String> {
        let text = self.disk.read(&text_file(number))?;
        text.ok_or_else(|| {
            format!(
                "{} is missing",
                self.disk.path(&text_file(number)).display()
            )
        })
    }

    /// Takes note that a configuration is going to be applied, and of the text of the router's
    /// file. The number.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn begin(
        &mut self,
        text: &str,
        who: Option<Who>,
        comment: Option<String>,
        restores: Option<u32>,
        file: Option<String>,
    ) -> Result<u32, String> {
        let number = self.entries().last().map_or(1, |last| last.number + 1);
        self.disk.write(&text_file(number), text)?;
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        self.index.entries.push(Entry {
            number,
            time: since.map_or(0, |since| since.as_secs()),
            who,
            comment,
            restores,
            state: State::Pending,
            confirmed: None,
            why: None,
        });
        let before = self.index.file.clone();
        self.index.file = file.or(before.clone());
        if let Err(why) = self.save() {
            self.index.entries.pop();
            self.index.file = before;
            return Err(why);
        }
        self.trim();
        Ok(number)
    }

    /// Takes note of what became of the configuration that was begun.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn settle(&mut self, state: State) -> Result<(), String> {
        self.finish(|entry| entry.state = state)
    }

    /// Takes note that it is to stay, and who says so.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn confirm(&mut self, who: Option<Who>) -> Result<(), String> {
        self.finish(|entry| {
            entry.state = State::Applied;
            entry.confirmed = who;
        })
    }

    /// Takes note that it could not be applied. If that cannot be written, it is forgotten.
    pub fn fail(&mut self, why: &str) {
        let written = self.finish(|entry| {
            entry.state = State::Failed;
            entry.why = Some(why.to_owned());
        });
        if written.is_err() {
            self.abandon();
        }
    }

    /// Changes the last entry, also on disk, or leaves it as it is.
    fn finish(&mut self, change: impl FnOnce(&mut Entry)) -> Result<(), String> {
        let Some(last) = self.index.entries.last_mut() else {
            return Ok(());
        };
        let before = last.clone();
        change(last);
        self.save().inspect_err(|_| {
            self.index.entries.pop();
            self.index.entries.push(before);
        })
    }

    /// Forgets the configuration that was begun. If that cannot be written, the next start does.
    pub fn abandon(&mut self) {
        self.index.entries.pop();
        let _ = self.save();
    }

    /// Takes note of the text of the router's file.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn saw(&mut self, file: String) -> Result<(), String> {
        self.index.file = Some(file);
        self.save()
    }

    fn save(&self) -> Result<(), String> {
        if let Some(why) = &self.unusable {
            return Err(format!(
                "{why}; correct or remove it, then restart the router"
            ));
        }
        let text = serde_json::to_string_pretty(&self.index).map_err(|error| error.to_string())?;
        self.disk.write(INDEX, &text)
    }

    /// Forgets the oldest, but never what a start would bring up.
    fn trim(&mut self) {
        let mut gone = Vec::new();
        while self.entries().len() > KEPT {
            let current = self.current().map(|entry| entry.number);
            let oldest = (self.entries().iter()).position(|entry| Some(entry.number) != current);
            let Some(oldest) = oldest else { break };
            gone.push(self.index.entries.remove(oldest).number);
        }
        // The texts stay until the index does not name them any more.
        if !gone.is_empty() && self.save().is_ok() {
            for number in gone {
                self.disk.remove(&text_file(number));
            }
        }
    }
}

fn text_file(number: u32) -> String {
    format!("{number}.yaml")
}
