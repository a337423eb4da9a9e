//! The control thread's questions: one at a time.

use std::sync::Arc;

use super::counters::Counters;
use super::walk::{Ends, Question, WALKS, Walk};

/// What the control thread knows of the workers' flows.
#[derive(Default)]
pub(crate) struct Asker {
    pub(super) workers: Vec<Worker>,
    /// Questions so far.
    questions: u64,
    current: Option<Current>,
}

/// A worker.
pub(super) struct Worker {
    ends: Ends,
    pub counters: Arc<Counters>,
    /// Walks that have not come back.
    away: usize,
}

/// The question that workers are on.
struct Current {
    question: Question,
    /// Workers that have not answered.
    waiting: Vec<usize>,
    done: Vec<(usize, Box<Walk>)>,
}

/// What workers have found: the question, and each one's walk by its number.
pub struct Answer {
    pub(super) question: Question,
    pub(super) walks: Vec<(usize, Box<Walk>)>,
}

/// Why a question is not asked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotAsked {
    /// Another one has not been answered.
    #[error("another question about flows is being answered; try again")]
    Busy,
    /// It is about a worker that does not exist; how many there are.
    #[error("there is no worker {0}; workers have numbers from 0 to {last}", last = .1 - 1)]
    NoWorker(usize, usize),
    /// This worker has not answered earlier ones.
    #[error(
        "worker {0} does not answer questions about its flows; `show threads` says whether it lives"
    )]
    Silent(usize),
}

impl Asker {
    /// One more worker, which has the other ends.
    pub fn add(&mut self, ends: Ends, counters: Arc<Counters>) {
        self.workers.push(Worker {
            ends,
            counters,
            away: 0,
        });
    }

    /// Sends walks to those workers whose flows a question is about, and gives their numbers.
    ///
    /// # Errors
    /// [`NotAsked`]: nobody was asked.
    pub(super) fn ask(&mut self, question: Question) -> Result<&[usize], NotAsked> {
        self.collect();
        if self.current.is_some() {
            return Err(NotAsked::Busy);
        }
        let count = self.workers.len();
        let asked: Vec<usize> = match question.filter.worker {
            Some(worker) if worker >= count => return Err(NotAsked::NoWorker(worker, count)),
            Some(worker) => vec![worker],
            None => (0..count).collect(),
        };
        let silent = |worker: &&usize| self.workers[**worker].away == WALKS;
        if let Some(silent) = asked.iter().find(silent) {
            return Err(NotAsked::Silent(*silent));
        }
        self.questions += 1;
        for worker in &asked {
            let worker = &mut self.workers[*worker];
            let walk = Walk::new(self.questions, &question);
            worker.away += usize::from(worker.ends.ask.push(walk).is_ok());
        }
        let current = self.current.insert(Current {
            question,
            waiting: asked,
            done: Vec::new(),
        });
        Ok(&current.waiting)
    }

    /// The answer to the question, if all have given theirs.
    pub(super) fn answer(&mut self) -> Option<Answer> {
        self.collect();
        let current = self.current.take_if(|of| of.waiting.is_empty())?;
        let mut walks = current.done;
        walks.sort_unstable_by_key(|(worker, _)| *worker);
        Some(Answer {
            question: current.question,
            walks,
        })
    }

    /// Forgets the question, and gives the numbers of the workers that have not answered it.
    pub(super) fn give_up(&mut self) -> Vec<usize> {
        self.current.take().map_or(Vec::new(), |of| of.waiting)
    }

    /// Takes what has come back; what belongs to questions that were given up is dropped.
    fn collect(&mut self) {
        for (number, worker) in self.workers.iter_mut().enumerate() {
            while let Some(walk) = worker.ends.done.pop() {
                worker.away -= 1;
                if let Some(current) = &mut self.current
                    && walk.question == self.questions
                {
                    current.waiting.retain(|waiting| *waiting != number);
                    current.done.push((number, walk));
                }
            }
        }
    }
}
