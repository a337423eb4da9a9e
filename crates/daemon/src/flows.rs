//! Questions about the firewall's flows. The workers that hold them answer, beside their packets;
//! nobody waits for that but who has asked.

use std::collections::VecDeque;
use std::sync::mpsc::SyncSender;
use std::time::{Duration, Instant};

use control::cli::{Command, Given, Verb, ports, protocol_number};
use router::Router;
use router::firewall::flows::{By, Filter, Question, What, show as flows};
use router::flow::State;
use router::{show, worker_name};

use crate::reply::{Reply, give};
use crate::request::ControlRequest;

/// Questions that may wait for those before them.
const WAITING: usize = 16;
/// Time that workers have for an answer: for a full table and a busy worker more than enough.
const PATIENCE: Duration = Duration::from_secs(120);
/// Flows that are shown unless more or fewer are asked for.
const LIMIT: usize = 100;
/// The same, of those with the most.
const TOP: usize = 10;

/// The questions, which are asked one after the other.
#[derive(Default)]
pub struct Questions {
    waiting: VecDeque<Asked>,
    /// The one that workers are asked now, and when that is given up.
    current: Option<(Asked, Instant)>,
}

/// A question, and who has asked.
struct Asked {
    verb: Verb,
    question: Question,
    json: bool,
    reply: SyncSender<Reply>,
}

impl Questions {
    /// Takes a question in: its answer goes to who has asked, once workers have given it.
    ///
    /// # Errors
    /// Why it cannot be asked.
    pub fn ask(&mut self, request: &ControlRequest, router: &mut Router) -> Result<(), String> {
        if self.waiting.len() == WAITING {
            return Err("too many questions about flows wait for their answers; try again".into());
        }
        let command = &request.command;
        self.waiting.push_back(Asked {
            verb: command.verb,
            question: question(command, router)?,
            json: request.request.json,
            reply: request.reply.clone(),
        });
        self.tick(Instant::now(), router);
        Ok(())
    }

    /// Gives the answers that have come, and asks what is next.
    pub fn tick(&mut self, now: Instant, router: &mut Router) {
        loop {
            if let Some((asked, until)) = self.current.take() {
                let Some(answer) = asked.answer(router, now >= until) else {
                    self.current = Some((asked, until));
                    return;
                };
                // Whoever asked may have gone away.
                let _ = asked.reply.send(answer);
            }
            let Some(next) = self.waiting.pop_front() else {
                return;
            };
            match router.ask_flows(next.question.clone()) {
                Ok(()) => self.current = Some((next, now + PATIENCE)),
                Err(why) => _ = next.reply.send(Err(why.to_string())),
            }
        }
    }
}

impl Asked {
    /// The answer, if all workers have given theirs; or that they have not, if it is too `late`.
    fn answer(&self, router: &mut Router, late: bool) -> Option<Reply> {
        let Some(answer) = router.flows_answer() else {
            return late.then(|| {
                let missing = router.give_up_flows().into_iter().map(worker_name);
                let missing: Vec<String> = missing.collect();
                let (missing, time) = (missing.join(", "), PATIENCE.as_secs());
                Err(format!("{missing}: no answer about flows within {time} s"))
            });
        };
        Some(match self.verb {
            Verb::ClearFlows => give(&flows::cleared(&answer), self.json),
            Verb::ShowFlowsSummary => give(&flows::summary(router, &answer), self.json),
            _ => give(&flows::flows(router, &answer), self.json),
        })
    }
}

/// What a command asks.
fn question(command: &Command, router: &Router) -> Result<Question, String> {
    let given = |word: &str| {
        let mut options = command.options.iter();
        options.find_map(|(name, value)| (*name == word).then_some(value.as_str()))
    };
    let number = |given: Option<&str>, usual| given.and_then(|n| n.parse().ok()).unwrap_or(usual);
    let what = match command.verb {
        Verb::ClearFlows => What::Remove,
        Verb::ShowFlowsSummary => What::Count,
        Verb::ShowFlowsTop => {
            let by = match given("by") {
                Some("packets") => By::Packets,
                _ => By::Bytes,
            };
            What::Top(number(command.argument(0), TOP), by)
        }
        _ => What::Some(number(given("limit"), LIMIT)),
    };
    let filter = filter(&command.options, router)?;
    Ok(Question { filter, what })
}

/// The flows that are meant. Values have the forms that the table of commands demands.
fn filter(options: &[Given], router: &Router) -> Result<Filter, String> {
    let mut filter = Filter::default();
    for (name, value) in options {
        match *name {
            "protocol" => filter.protocol = protocol_number(value),
            "source" => filter.source = value.parse().ok(),
            "destination" => filter.destination = value.parse().ok(),
            "address" => filter.address = value.parse().ok(),
            "source-port" => filter.source_port = ports(value),
            "destination-port" => filter.destination_port = ports(value),
            "port" => filter.port = ports(value),
            "state" => filter.state = State::ALL.into_iter().find(|of| of.name() == value),
            "worker" => filter.worker = value.parse().ok(),
            "interface" => {
                let number = show::number_of(router, value).map_err(|why| why.to_string())?;
                filter.interface = Some(number);
            }
            _ => {}
        }
    }
    Ok(filter)
}
