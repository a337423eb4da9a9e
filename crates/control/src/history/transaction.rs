//! From one configuration to another, and back if nobody confirms.

use std::mem;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::apply::{Failure, Target, apply};
use crate::config::{Checked, Config, LARGEST, Problems};
use crate::plan::{Plan, Step};
use crate::text_file;

use super::store::{State, Store, Who};

/// Time until a change that could not be undone is tried again: what stood in the way, such as a
/// lack of memory, may pass in seconds, and each try is a line in the log.
const RETRY: Duration = Duration::from_secs(10);

/// A wish to change the configuration.
#[derive(Debug, Clone, Default)]
pub struct Proposal<'p> {
    /// The text's name in messages.
    pub name: &'p str,
    /// The configuration.
    pub text: &'p str,
    /// It is taken back unless it is confirmed within this time.
    pub confirm: Option<Duration>,
    /// Words for people.
    pub comment: Option<String>,
    /// The user who wants it; `None`: the router itself.
    pub who: Option<Who>,
    /// The number that it goes back to, if it does.
    pub restores: Option<u32>,
}

/// A change that was made.
#[derive(Debug, Clone)]
pub struct Outcome {
    /// The plan that was carried out.
    pub plan: Plan,
    /// Number of the configuration that is in force now; `None`: it was in force already.
    pub number: Option<u32>,
    /// It is taken back unless it is confirmed within this time.
    pub confirm: Option<Duration>,
}

/// A change that waits for confirmation.
#[derive(Debug)]
struct Waiting {
    number: u32,
    until: Instant,
    before: Config,
}

/// The configuration in force, and how it changes.
#[derive(Debug)]
pub struct Transactions {
    pub(super) store: Store,
    /// The file that the router was started with.
    file: PathBuf,
    running: Config,
    waiting: Option<Waiting>,
    /// A change could be neither done nor taken back: what the machine has is not `running`.
    torn: bool,
    /// The router is not up yet.
    starting: bool,
    /// The text of the file, if it starts with that.
    from_file: Option<String>,
    /// The configurations that could not be used, with the reasons.
    refused: Option<Refused>,
}

/// Configurations that a start could not use.
#[derive(Debug)]
pub(super) struct Refused {
    /// The reasons, in lines, and the configuration in their place.
    pub text: String,
    /// Those of the history, and why.
    pub numbers: Vec<(u32, String)>,
}

impl Transactions {
    /// Of a router that is starting.
    pub(super) fn new(store: Store, file: &Path, running: Config, text: Option<String>) -> Self {
        Transactions {
            store,
            file: file.to_owned(),
            running,
            waiting: None,
            torn: false,
            starting: true,
            from_file: text,
            refused: None,
        }
    }

    /// Takes note of what is not used, and why.
    pub(super) fn refuse(&mut self, refused: Option<Refused>) {
        self.refused = refused;
    }

    /// The reasons, in lines, why the file or the configuration applied last is not used, and the
    /// one in its place: until something is applied that need not be confirmed any more, in
    /// whatever way.
    pub fn refused(&self) -> Option<&str> {
        self.refused.as_ref().map(|refused| refused.text.as_str())
    }

    /// The reason why the start could not use a configuration of the history.
    pub(super) fn unusable(&self, number: u32) -> Option<&str> {
        let numbers = self.refused.iter().flat_map(|refused| &refused.numbers);
        let mut whys = numbers.filter(|(refused, _)| *refused == number);
        whys.next().map(|(_, why)| why.as_str())
    }

    /// The router is up with what it was started with, which is good from now on.
    ///
    /// # Errors
    /// It cannot be kept: the next start may bring up something else.
    pub fn started(&mut self) -> Result<(), String> {
        self.starting = false;
        let Some(text) = self.from_file.take() else {
            return Ok(());
        };
        if self.is_current(&text) {
            return if self.store.file() == Some(&text) {
                Ok(())
            } else {
                self.store.saw(text)
            };
        }
        let comment = format!("started with {}", self.file.display());
        self.store
            .begin(&text, None, Some(comment), None, Some(text.clone()))?;
        self.store.settle(State::Applied)
    }

    /// The configuration in force.
    pub fn running(&self) -> &Config {
        &self.running
    }

    /// The number of the configuration that waits for confirmation, and how long it will.
    pub fn waiting(&self) -> Option<(u32, Duration)> {
        let waiting = self.waiting.as_ref()?;
        let left = waiting.until.saturating_duration_since(Instant::now());
        Some((waiting.number, left))
    }

    /// Plans the change to a text, with all reasons against applying it, a line each.
    ///
    /// # Errors
    /// The problems of the text.
    pub fn plan(
        &self,
        target: &mut dyn Target,
        name: &str,
        text: &str,
    ) -> Result<(Plan, Vec<String>), Problems> {
        let wanted = Checked::parse(name, text)?;
        let plan = Plan::new(&target.found(&self.running), &wanted.config);
        let refused = if plan.is_empty() {
            Vec::new()
        } else {
            target
                .accepts(&wanted.config, &plan)
                .err()
                .unwrap_or_default()
        };
        Ok((plan, refused))
    }

    /// Changes the configuration, wholly or not at all.
    ///
    /// # Errors
    /// The reasons against it, a line each.
    pub fn apply(
        &mut self,
        target: &mut dyn Target,
        proposal: Proposal<'_>,
    ) -> Result<Outcome, String> {
        let outcome = self.change(target, proposal)?;
        if outcome.confirm.is_none() {
            self.refused = None;
        }
        Ok(outcome)
    }

    fn change(
        &mut self,
        target: &mut dyn Target,
        proposal: Proposal<'_>,
    ) -> Result<Outcome, String> {
        if self.starting {
            return Err("the router is starting; try again when it is up".to_owned());
        }
        if self.torn {
            return Err(
                "an earlier change failed halfway and could not be undone completely: restart \
                 the router, which then starts with the configuration that was in force before"
                    .to_owned(),
            );
        }
        if let Some((number, left)) = self.waiting() {
            return Err(format!(
                "configuration {number} waits for confirmation for another {} s: `parshall \
                 confirm` keeps it, `parshall rollback` goes back",
                left.as_secs()
            ));
        }
        let checked = Checked::parse(proposal.name, proposal.text);
        let config = checked.map_err(|problems| problems.to_string())?.config;
        let plan = Plan::new(&target.found(&self.running), &config);
        if plan.is_empty() && self.is_current(proposal.text) {
            return Ok(Outcome {
                plan,
                number: None,
                confirm: None,
            });
        }
        target
            .accepts(&config, &plan)
            .map_err(|refused| refused.join("\n"))?;
        let file = text_file::read(&self.file, LARGEST).ok();
        let begun = self.store.begin(
            proposal.text,
            proposal.who,
            proposal.comment,
            proposal.restores,
            file,
        );
        let number = begun.map_err(|why| format!("nothing was changed: cannot write {why}"))?;
        if let Err(failure) = self.carry_out(target, &plan.steps) {
            let why = failure.to_string();
            self.store.fail(&why);
            return Err(why);
        }
        let before = mem::replace(&mut self.running, config);
        // Nothing can be cut off by a change of nothing.
        let confirm = proposal.confirm.filter(|_| !plan.is_empty());
        match confirm {
            Some(time) => {
                self.waiting = Some(Waiting {
                    number,
                    until: Instant::now() + time,
                    before,
                });
            }
            None => self.keep(target, before)?,
        }
        Ok(Outcome {
            plan,
            number: Some(number),
            confirm,
        })
    }

    /// Takes the steps of a plan, and remembers if that left something between before and after.
    fn carry_out(&mut self, target: &mut dyn Target, steps: &[Step]) -> Result<(), Failure> {
        apply(target, &self.running, steps)
            .inspect_err(|failure| self.torn |= !failure.stuck.is_empty())
    }

    /// Has what was done survive a restart, or takes it back.
    fn keep(&mut self, target: &mut dyn Target, before: Config) -> Result<(), String> {
        let Err(why) = self.store.settle(State::Applied) else {
            return Ok(());
        };
        let back = Plan::new(&self.running, &before);
        match self.carry_out(target, &back.steps) {
            Ok(()) => {
                self.running = before;
                self.store.abandon();
                Err(format!(
                    "the configuration is unchanged: cannot write {why}"
                ))
            }
            Err(failure) => Err(format!(
                "the change is in force, but could not be saved, so the next start uses the \
                 configuration before it: cannot write {why}; nor could it be undone: {failure}"
            )),
        }
    }

    /// Keeps the configuration that waits for confirmation. Its number.
    ///
    /// # Errors
    /// None does, or it cannot be written, and goes on waiting.
    pub fn confirm(&mut self, who: Option<Who>) -> Result<u32, String> {
        let waiting = self.waiting.as_ref();
        let number = waiting.ok_or("nothing waits for confirmation")?.number;
        let kept = self.store.confirm(who);
        kept.map_err(|why| {
            format!("configuration {number} still waits for confirmation: cannot write {why}")
        })?;
        self.waiting = None;
        self.refused = None;
        Ok(number)
    }

    /// Goes back: to a number, or to what was before. What waits for confirmation is taken back.
    ///
    /// # Errors
    /// As [`Transactions::apply`]; there is no such configuration.
    pub fn rollback(
        &mut self,
        target: &mut dyn Target,
        number: Option<u32>,
        confirm: Option<Duration>,
        who: Option<Who>,
    ) -> Result<Outcome, String> {
        if self.waiting.is_some() && number.is_none() {
            return self.revert(target);
        }
        let number = match number {
            Some(number) => self.store.known(number)?.number,
            None => {
                let back = self.in_force().and_then(|now| self.store.back(now));
                back.ok_or("there is no earlier configuration; `history` lists them")?
            }
        };
        let text = self.store.text(number)?;
        let proposal = Proposal {
            name: &format!("configuration {number}"),
            text: &text,
            confirm,
            comment: Some(format!("rollback to {number}")),
            who,
            restores: Some(number),
        };
        self.apply(target, proposal)
    }

    /// Takes back what waits for confirmation.
    fn revert(&mut self, target: &mut dyn Target) -> Result<Outcome, String> {
        let mut waiting = (self.waiting.take()).ok_or("nothing waits for confirmation")?;
        let plan = Plan::new(&self.running, &waiting.before);
        if let Err(failure) = self.carry_out(target, &plan.steps) {
            let cannot = format!("configuration {} cannot be rolled back", waiting.number);
            // It goes on waiting, but not if what there is now is neither this nor the other.
            if self.torn {
                return Err(format!("{cannot}: {failure}"));
            }
            waiting.until = Instant::now() + RETRY;
            self.waiting = Some(waiting);
            let seconds = RETRY.as_secs();
            return Err(format!("{cannot}, next try in {seconds} s: {failure}"));
        }
        self.running = waiting.before;
        // If it cannot be written, the next start knows all the same.
        let _ = self.store.settle(State::Reverted);
        Ok(Outcome {
            plan,
            number: self.in_force(),
            confirm: None,
        })
    }

    /// Takes back what nobody confirmed in time.
    ///
    /// # Errors
    /// It cannot be taken back, and will be tried again.
    pub fn tick(
        &mut self,
        target: &mut dyn Target,
        now: Instant,
    ) -> Option<Result<Outcome, String>> {
        let is_over = |waiting: &Waiting| now >= waiting.until;
        let over = self.waiting.as_ref().is_some_and(is_over);
        over.then(|| self.revert(target))
    }

    /// Applies the file that the router was started with, as it is now.
    ///
    /// # Errors
    /// The file cannot be read, and as [`Transactions::apply`].
    pub fn reload(&mut self, target: &mut dyn Target) -> Result<Outcome, String> {
        let name = self.file.display().to_string();
        let text = text_file::read(&self.file, LARGEST);
        let text = text.map_err(|error| format!("{name}: {error}"))?;
        let proposal = Proposal {
            name: &name,
            text: &text,
            comment: Some(format!("read {name} again")),
            ..Proposal::default()
        };
        self.apply(target, proposal)
    }

    /// The number of the configuration in force. A start that could not use the newest has brought
    /// up an older one.
    fn in_force(&self) -> Option<u32> {
        let mut applied = self.store.applied_before(u32::MAX);
        let used = applied.find(|entry| self.unusable(entry.number).is_none());
        used.map(|entry| entry.number)
    }

    /// Returns true if this is the text of the configuration that a start would use.
    fn is_current(&self, text: &str) -> bool {
        let current = self.store.current();
        current.is_some_and(|entry| self.store.text(entry.number).as_deref() == Ok(text))
    }
}
