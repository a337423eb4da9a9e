//! Changes of the configuration, as operators and SIGHUP ask for them.

use std::time::{Duration, Instant};

use serde_json::json;
use tracing::{error, info, warn};

use control::api::{Output, Request};
use control::cli::{Command, Verb};
use control::history::{Outcome, Proposal, Transactions, Who};

use super::daemon::Daemon;
use super::foreign;
use super::reply::{Reply, done, give};

/// Takes note that the router is up.
pub fn started(transactions: &mut Transactions) {
    if let Err(why) = transactions.started() {
        warn!("the configuration cannot be saved; choose another directory with `--state`: {why}");
    }
}

/// Takes back what nobody has confirmed in time.
pub fn tick(transactions: &mut Transactions, daemon: &mut Daemon, now: Instant) {
    match transactions.tick(daemon, now) {
        Some(Ok(outcome)) => info!("not confirmed in time, rolled back: {}", said(&outcome)),
        Some(Err(why)) => error!("{why}"),
        None => {}
    }
}

/// Applies the file again (SIGHUP).
pub fn reload(transactions: &mut Transactions, daemon: &mut Daemon) {
    match transactions.reload(daemon) {
        Ok(outcome) => info!("SIGHUP: {}", said(&outcome)),
        Err(why) => {
            for line in why.lines() {
                error!("SIGHUP: nothing is changed: {line}");
            }
        }
    }
}

/// Carries out the commands that have to do with the configuration.
///
/// # Errors
/// The reason why it was not done.
pub fn answer(
    transactions: &mut Transactions,
    daemon: &mut Daemon,
    command: &Command,
    request: &Request,
    who: &Who,
) -> Reply {
    let json = request.json;
    let number = command.argument(0).and_then(|number| number.parse().ok());
    let confirm = request.confirm.map(Duration::from_secs);
    let name = request.name.as_deref().unwrap_or("configuration");
    let text = || {
        let text = request.text.as_deref();
        text.ok_or("the request has no configuration; `parshall plan -c FILE` sends one")
    };
    match command.verb {
        Verb::Plan => {
            let planned = transactions.plan(daemon, name, text()?);
            let (plan, refused) = planned.map_err(|problems| problems.to_string())?;
            let foreign = foreign::items(daemon);
            if json {
                let mut answer = plan.json();
                answer["foreign"] = foreign.into();
                answer["refused"] = refused.into();
                return Ok(Output::Json(answer));
            }
            let text = plan.text(request.steps)
                + &listed("foreign, left as it is", &foreign)
                + &listed("refused, so that nothing can be applied", &refused);
            Ok(Output::Text(text))
        }
        Verb::Apply => {
            daemon.faults.begin();
            let proposal = Proposal {
                name,
                text: text()?,
                confirm,
                comment: request.comment.clone(),
                who: Some(who.clone()),
                restores: None,
            };
            let outcome = transactions.apply(daemon, proposal);
            let outcome = outcome.inspect_err(|why| refused(why, who))?;
            Ok(applied(&outcome, who, json))
        }
        Verb::Rollback => {
            let outcome = transactions.rollback(daemon, number, confirm, Some(who.clone()));
            let outcome = outcome.inspect_err(|why| refused(why, who))?;
            Ok(applied(&outcome, who, json))
        }
        Verb::Confirm => {
            let number = transactions.confirm(Some(who.clone()))?;
            info!("{who}: configuration {number} is confirmed");
            done("", json)
        }
        Verb::History => match number {
            Some(number) => give(&transactions.history_of(number)?, json),
            None => give(&transactions.history(), json),
        },
        _ => {
            let text = transactions.running().dump() + &foreign::comments(daemon);
            Ok(if json {
                Output::Json(json!({ "yaml": text }))
            } else {
                Output::Text(text)
            })
        }
    }
}

/// Items below a heading; nothing if there are none.
fn listed(heading: &str, items: &[String]) -> String {
    if items.is_empty() {
        return String::new();
    }
    let lines: String = items.iter().map(|item| format!("  {item}\n")).collect();
    format!("\n{heading}:\n{lines}")
}

/// The answer to whoever changed the configuration, and a line in the log.
fn applied(outcome: &Outcome, who: &Who, json: bool) -> Output {
    info!("{who}: {}", said(outcome));
    if !json {
        let end = match outcome.number {
            Some(_) => format!("\n{}\n", said(outcome)),
            None => String::new(),
        };
        return Output::Text(outcome.plan.text(false) + &end);
    }
    let mut answer = outcome.plan.json();
    answer["number"] = outcome.number.into();
    answer["seconds_left"] = outcome.confirm.map(|time| time.as_secs()).into();
    Output::Json(answer)
}

/// A line in the log for each reason why a change was not made.
fn refused(why: &str, who: &Who) {
    for line in why.lines() {
        warn!("{who}: not applied: {line}");
    }
}

/// Describes the fate of the configuration, in a line.
fn said(outcome: &Outcome) -> String {
    match (outcome.number, outcome.confirm) {
        (None, _) => "no change".to_owned(),
        (Some(number), None) => format!("configuration {number} is in force"),
        (Some(number), Some(time)) => format!(
            "configuration {number} is in force, and is rolled back in {} s unless `parshall \
             confirm` keeps it",
            time.as_secs()
        ),
    }
}
