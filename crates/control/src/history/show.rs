//! The history for people and programs.

use std::fmt;
use std::time::{Duration, SystemTime};

use kernel::clock;
use serde::Serialize;

use crate::config::Config;
use crate::plan::{Change, Plan};

use super::store::{Entry, State, Who};
use super::transaction::Transactions;

/// All configurations that are kept.
#[derive(Debug, Serialize)]
pub struct Listing {
    configurations: Vec<Row>,
    /// Seconds until what is pending is taken back.
    seconds_left: Option<u64>,
}

#[derive(Debug, Serialize)]
struct Row {
    number: u32,
    /// RFC 3339.
    time: String,
    who: Option<Who>,
    comment: Option<String>,
    state: State,
    confirmed: Option<Who>,
    /// The reason why it failed, or could not be used.
    why: Option<String>,
}

/// One of them, and what it changed.
#[derive(Debug, Serialize)]
pub struct Detail {
    #[serde(flatten)]
    row: Row,
    changes: Vec<Change>,
    #[serde(skip)]
    text: String,
}

impl Transactions {
    /// All configurations that are kept.
    pub fn history(&self) -> Listing {
        Listing {
            configurations: self.store.entries().iter().map(|e| self.row(e)).collect(),
            seconds_left: self.waiting().map(|(_, left)| left.as_secs()),
        }
    }

    /// One of them, and what it changed in the one that was in force before.
    ///
    /// # Errors
    /// It is not there, or not readable any more.
    pub fn history_of(&self, number: u32) -> Result<Detail, String> {
        let entry = self.store.known(number)?;
        let config = |number: u32| {
            let name = format!("configuration {number}");
            Config::parse(&name, &self.store.text(number)?).map_err(|wrong| wrong.to_string())
        };
        let before = self.store.applied_before(number).next();
        let before = before.map_or(Ok(Config::default()), |before| config(before.number))?;
        let plan = Plan::new(&before, &config(number)?);
        Ok(Detail {
            row: self.row(entry),
            text: plan.text(false),
            changes: plan.changes,
        })
    }

    fn row(&self, entry: &Entry) -> Row {
        let row = Row::new(entry);
        match self.unusable(entry.number) {
            Some(why) => Row {
                state: State::Unusable,
                why: Some(why.to_owned()),
                ..row
            },
            None => row,
        }
    }
}

impl Entry {
    fn time(&self) -> String {
        clock::rfc3339(SystemTime::UNIX_EPOCH + Duration::from_secs(self.time))
    }

    /// Its number and time.
    pub(super) fn brief(&self) -> String {
        format!("number {} of {}", self.number, self.time())
    }
}

impl Row {
    fn new(entry: &Entry) -> Row {
        Row {
            number: entry.number,
            time: entry.time(),
            who: entry.who.clone(),
            comment: entry.comment.clone(),
            state: entry.state,
            confirmed: entry.confirmed.clone(),
            why: entry.why.clone(),
        }
    }
}

impl fmt::Display for Who {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.name {
            Some(name) => write!(f, "{name} (uid {}, pid {})", self.uid, self.pid),
            None => write!(f, "uid {} (pid {})", self.uid, self.pid),
        }
    }
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let who = self.who.as_ref();
        let who = who.map_or("the router".to_owned(), Who::to_string);
        let state = match self.state {
            State::Applied => "applied",
            State::Pending => "pending",
            State::Reverted => "reverted",
            State::Failed => "failed",
            State::Unusable => "unusable",
        };
        write!(f, "{:4}  {}  {state:8}  {who}", self.number, self.time)?;
        // A comment is anybody's text.
        let plain = |c: char| if c.is_control() { ' ' } else { c };
        let comment: String = self
            .comment
            .iter()
            .flat_map(|c| c.chars().map(plain))
            .collect();
        if !comment.is_empty() {
            write!(f, "  {comment}")?;
        }
        if let Some(who) = &self.confirmed {
            write!(f, "  confirmed by {who}")?;
        }
        writeln!(f)
    }
}

impl fmt::Display for Listing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for row in &self.configurations {
            write!(f, "{row}")?;
        }
        match self.seconds_left {
            Some(left) => writeln!(f, "rolled back in {left} s unless confirmed"),
            None => Ok(()),
        }
    }
}

impl fmt::Display for Detail {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.row)?;
        if let Some(why) = &self.row.why {
            writeln!(f, "      {why}")?;
        }
        write!(f, "\n{}", self.text)
    }
}
