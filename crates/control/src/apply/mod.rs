//! Carrying out a plan as one transaction: every step, or none.

#[cfg(test)]
mod tests;

use std::fmt;

use crate::config::Config;
use crate::plan::{Action, Item, Plan, Step};

/// The system on which plans are carried out: the router, or a model of it in tests.
pub trait Target {
    /// The configuration in force as the system has it by now: `running`, but for what others have
    /// changed so that a step can put it right. A step that leads back there need not do so.
    fn found(&mut self, running: &Config) -> Config {
        running.clone()
    }

    /// Checks that all of this can be done. Nothing is changed.
    ///
    /// # Errors
    /// All that cannot be done, by name, a line each.
    fn accepts(&mut self, to: &Config, plan: &Plan) -> Result<(), Vec<String>>;

    /// Does one thing, wholly or not at all.
    ///
    /// # Errors
    /// The reason why it was not done, in one line, without what the action says of itself. The
    /// target is as it was before.
    fn apply(&mut self, action: &Action) -> Result<(), String>;

    /// Looks after what cannot wait until all is done. What was applied is whole, and the rest is
    /// still to come: `running` is in force until then.
    fn between(&mut self, running: &Config);

    /// Finishes what steps have left to be done at once for several of them: no step follows, or
    /// those before it have been taken back.
    fn finish(&mut self);
}

/// The failure of a plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// The step that failed, in words.
    pub step: String,
    /// The reason.
    pub why: String,
    /// Steps before it that could not be taken back, in words, and why. If there are none,
    /// everything is as it was before the first step.
    pub stuck: Vec<(String, String)>,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot {}: {}", self.step, self.why)?;
        if self.stuck.is_empty() {
            return f.write_str("; the configuration is unchanged");
        }
        f.write_str("; some steps before it could not be undone:")?;
        for (step, why) in &self.stuck {
            write!(f, " {step} stays in force ({why});")?;
        }
        f.write_str(
            " restart the router, which then starts with the configuration that was in force \
             before",
        )
    }
}

impl std::error::Error for Failure {}

/// Takes the steps of a plan one by one, from the configuration `running` on. If one fails, those
/// before it are taken back, the last one first. After each step the target looks after [what cannot wait](Target::between).
///
/// # Errors
/// The step that failed, and what could not be taken back.
pub fn apply(target: &mut dyn Target, running: &Config, steps: &[Step]) -> Result<(), Failure> {
    let done = apply_each(target, running, steps);
    target.finish();
    done
}

fn apply_each(target: &mut dyn Target, running: &Config, steps: &[Step]) -> Result<(), Failure> {
    let mut take = |action: &Action| {
        let done = target.apply(action);
        target.between(running);
        done
    };
    for (done, step) in steps.iter().enumerate() {
        if let Err(why) = take(&step.action) {
            let back = steps[..done].iter().rev();
            let stuck = back.filter_map(|step| {
                let why = take(&step.action.clone().reverse()).err()?;
                Some((words(step), why))
            });
            return Err(Failure {
                step: opened(step, &steps[..done]).unwrap_or_else(|| words(step)),
                why,
                stuck: stuck.collect(),
            });
        }
    }
    Ok(())
}

/// Describes a step as an opening if it is one: the state of an interface that an earlier one has
/// made.
fn opened(step: &Step, earlier: &[Step]) -> Option<String> {
    let Action::Create {
        item: Item::State { of, .. },
        ..
    } = &step.action
    else {
        return None;
    };
    let makes_it = |step: &Step| matches!(&step.action, Action::Create { item: Item::Interface { name, .. }, .. } if name == of);
    let object = step.action.item().object();
    (earlier.iter().any(makes_it)).then(|| format!("open {object}"))
}

/// Describes a step, without what it interrupts.
fn words(step: &Step) -> String {
    let step = Step {
        interrupts: None,
        ..step.clone()
    };
    step.to_string()
}
