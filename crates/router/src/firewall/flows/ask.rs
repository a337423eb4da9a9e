//! How workers are asked about their flows.

use super::asker::{Answer, NotAsked};
use super::walk::Question;
use crate::Router;

impl Router {
    /// Asks workers about their flows. There is one question at a time: the next one may be asked
    /// after [`Router::flows_answer`] has given the answer, or [`Router::give_up_flows`].
    ///
    /// # Errors
    /// [`NotAsked`].
    pub fn ask_flows(&mut self, question: Question) -> Result<(), NotAsked> {
        let asked = self.flows.ask(question)?;
        asked.iter().for_each(|worker| {
            if let Some(worker) = self.workers.get(*worker) {
                worker.wake();
            }
        });
        Ok(())
    }

    /// What workers say, once all of them have. It waits for nobody.
    pub fn flows_answer(&mut self) -> Option<Answer> {
        self.flows.answer()
    }

    /// Nobody waits for the answer any more. Gives the numbers of the workers that are missing.
    pub fn give_up_flows(&mut self) -> Vec<usize> {
        self.flows.give_up()
    }
}
