//! Faults that tests inject into changes.

use rustix::process::{Signal, getpid, kill_process};

/// Faults of a router that is tested; usually none.
#[derive(Debug, Default)]
pub struct Faults {
    /// Steps of changes until the router ends without warning; `None`: it does not.
    pub end_after: Option<usize>,
    /// Of changes by `apply`, one after the other, the first fails at its first step, the next at its
    /// second and so on, until one has no more steps and is made; then anew.
    pub fail_each: bool,
    /// The step of the change that fails.
    turn: usize,
    /// Steps until then, with the one that fails; 0: it has failed, the others are taken back.
    left: usize,
}

impl Faults {
    /// A change by `apply` begins.
    pub fn begin(&mut self) {
        self.turn = match self.left {
            0 => self.turn + 1,
            _ => 1,
        };
        self.left = self.turn;
    }

    /// A step is to be taken.
    ///
    /// # Errors
    /// It fails.
    pub fn before_step(&mut self) -> Result<(), String> {
        if !self.fail_each || self.left == 0 {
            return Ok(());
        }
        self.left -= 1;
        match self.left {
            0 => Err("it is told to fail".to_owned()),
            _ => Ok(()),
        }
    }

    /// A step was taken.
    pub fn after_step(&mut self) {
        let Some(left) = &mut self.end_after else {
            return;
        };
        *left = left.saturating_sub(1);
        if *left == 0 {
            let _ = kill_process(getpid(), Signal::KILL);
        }
    }
}
