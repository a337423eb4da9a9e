//! `parshall search`: what a device forwards, by a published method.

use std::error::Error;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use serde_json::{Value, json};

use loadgen::clock::Interruptible;
use loadgen::measure::point;
use loadgen::measure::search::{self, runs::Runs};
use loadgen::model::units::Pps;
use loadgen::search::classify::Goal;
use loadgen::search::{Limits, binary, mlrsearch, rfc2544, soak};
use session::Spec;

use super::interrupt::{Interrupt, reason, whole};
use super::measured::{Measuring, Seen, Trials};
use super::pairs::Pairs;
use super::progress::{Progress, Style};
use super::shortfall::Watch;
use super::steady::{address_note, floor, refuse_bursts, refuse_fixed, share, trial};
use super::text::{self, found};
use super::traffic::{Pace, Sending, Traffic, duration, pace};
use super::{rss, streams};
use crate::output::{self, write_json};
use crate::power_meter::PowerMeter;

/// Search for what a device under test forwards: MLRsearch, the highest rate within a given time, a
/// binary search, the tests of RFC 2544, or a soak.
///
/// Ports and profiles are those of `parshall loadtest`. A trial in which the generator falls short
/// never counts as loss: it is made again, and if that does not help, the result says that the
/// generator bounds it. Ctrl-C ends the search early, with what is known by then.
#[derive(Args, Debug)]
pub struct Search {
    #[command(flatten)]
    ports: Pairs,
    #[command(flatten)]
    traffic: Traffic,
    /// What to search for
    #[arg(long, value_enum, default_value_t)]
    method: Method,
    /// Highest rate to send in each direction: 1.48mpps, 10%, 1gbps, 1gbpsl1, or a multiple of the
    /// profile's own; max is what the port takes, which a trial flat out shows
    #[arg(short = 'm', long = "rate", value_name = "RATE", default_value = "max", value_parser = pace)]
    rate: Pace,
    /// Loss allowed, as a share of the packets sent; MLRsearch takes several [default: 0,0.005
    /// (mlrsearch), 0.001 (max-rate, binary), 0.0000001 (soak)]
    #[arg(long, value_name = "SHARE", value_delimiter = ',', value_parser = share)]
    loss: Vec<f64>,
    /// Length of a trial, one second or more [default: 1s (mlrsearch, max-rate), 20s (binary), 60s (rfc2544);
    /// 5.1s (soak), each trial 0.1 s longer]
    #[arg(long, value_name = "TIME", value_parser = trial)]
    trial: Option<Duration>,
    /// MLRsearch: time of trials that decide on a rate in any case (duration sum) [default: 21s]
    #[arg(long, value_name = "TIME", value_parser = trial)]
    sum: Option<Duration>,
    /// MLRsearch: share of that time that may be of trials with more loss (exceed ratio) [default:
    /// 0.5]
    #[arg(long, value_name = "SHARE", value_parser = share)]
    exceed: Option<f64>,
    /// Width at which the search ends: of the rate, or in a binary search of the highest one
    /// [default: 0.005 (mlrsearch, rfc2544), 0.01 (max-rate, binary)]
    #[arg(long, value_name = "SHARE", value_parser = width)]
    width: Option<f64>,
    /// Time of sending of all trials [default: 1200s; 20s (max-rate), 1800s (soak),
    /// 7200s (rfc2544)]
    #[arg(long, value_name = "TIME", value_parser = trial)]
    budget: Option<Duration>,
    /// RFC 2544: searches for the longest burst without loss [default: 50]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    bursts: Option<u32>,
    /// RFC 2544: length of the trial for the latency [default: 120s]
    #[arg(long, value_name = "TIME", value_parser = duration)]
    latency: Option<Duration>,
    #[command(flatten)]
    meter: PowerMeter,
    /// Write the result as JSON; with -, to standard output, and the text to standard error
    #[arg(long, value_name = "FILE|-")]
    json: Option<PathBuf>,
    /// Form of the progress on standard error
    #[arg(long, value_enum, default_value_t)]
    progress: Style,
}

/// The methods.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
enum Method {
    /// Rates that most of many short trials forward, for several losses at once
    #[default]
    Mlrsearch,
    /// The rate at which as many short trials pass as fail, within a given time: the search of
    /// `parshall lab` and of `parshall loadtest --search max-rate`
    MaxRate,
    /// One long trial for each rate, halving the range
    Binary,
    /// RFC 2544: throughput, frame loss rate, back-to-back frames, latency
    Rfc2544,
    /// The rate at which a given small share is lost on average, with its confidence
    Soak,
}

impl Method {
    /// Time of sending, if none is given.
    fn budget(self) -> Duration {
        Duration::from_secs(match self {
            Method::Mlrsearch | Method::Binary => 1200,
            Method::MaxRate => 20,
            Method::Rfc2544 => 7200,
            Method::Soak => 1800,
        })
    }

    fn name(self) -> String {
        self.to_possible_value()
            .map_or_else(String::new, |value| value.get_name().to_owned())
    }
}

impl Search {
    /// Runs the search and prints its result.
    ///
    /// # Errors
    /// The mistake in the command line, the ports or the files. Then nothing is left behind.
    pub fn run(self) -> crate::Outcome {
        self.check()?;
        let pairs = self.ports.pairs()?;
        let tx: Vec<Spec> = pairs.iter().map(|(tx, _)| tx.clone()).collect();
        let sendings = self.traffic.sendings(&tx)?;
        refuse_bursts(&sendings)?;
        refuse_fixed(&sendings, &self.traffic.profile)?;
        let limits = self.limits(&sendings)?;
        if let Some(file) = &self.json {
            output::check(file)?;
            output::all_apart([
                ("--profile", self.traffic.file()),
                ("--json", Some(&**file)),
            ])?;
        }
        let receivers = pairs.into_iter().map(|(_, rx)| rx);
        let ways: Vec<(Sending, Spec)> = sendings.into_iter().zip(receivers).collect();
        let to_open: Vec<session::Way<'_>> =
            ways.iter().map(|(tx, rx)| (tx.to_open(), rx)).collect();
        let interrupt = Interrupt::on_signal()?;
        let mut measuring = Measuring::start(&self.meter)?;
        let mut ports = session::open(&to_open, &[], self.traffic.threads(), &interrupt)?;
        let links = interrupt.on_loss_of(ways.iter().flat_map(|(tx, rx)| [&tx.tx, rx]))?;
        let clock = Interruptible::new(interrupt.flag());
        self.say(&streams::not_told_apart(&ports, &ways));
        self.say(&rss::of_one_flow(&ways));
        let watch = Watch::new(ports.sender, self.traffic.cpu.first().copied());
        let mut observer = Trials::new(
            Progress::new(self.progress, limits.budget),
            &mut measuring.energy,
        );
        let mut runs = Runs::new(&mut ports.paths, &clock, &mut observer);
        let (result, said) = self
            .search(&mut runs, &limits, &ways)
            .map_err(|e| reason(&links, &e))?;
        let (trials, bursts) = (runs.points, runs.bursts);
        let fell_short = observer.fell_short;
        drop(observer);
        let is_max = matches!(self.rate, Pace::Max);
        let seen = Seen {
            ceiling_pps: trials.first().filter(|_| is_max).map(|flat| flat.sent_pps),
            unsent: point::unsent(&trials) + point::unsent(&bursts),
        };
        let measured = measuring.end(&self.traffic, &ports, &ways, seen)?;
        let note = ways[0].0.rate_note(false);
        let mut document = json!({
            "method": self.method.name(),
            "sender": ports.sender,
            "fallback": ports.fallback,
            "profile": self.traffic.profile,
            "result": result,
            "ended_by": links.fault(),
            "trials": trials,
            "bursts": bursts,
            "rate_note": note,
            "address_note": address_note(&ways),
            "streams": streams::rows(&ports, &ways),
            "pacing": streams::pacing(&ports.paths, &ways),
        });
        measured.add_to(&mut document);
        if let Some(file) = &self.json {
            write_json(file, &document)?;
        }
        self.say(&measured.warning());
        self.say(&measured.energy.text());
        self.say(&note.map(|note| note + "\n").unwrap_or_default());
        self.say(&said);
        self.say(&streams::remarks(&document["streams"]));
        if fell_short {
            self.say(&watch.advice(&ports.paths));
        }
        whole(&links)?;
        match has_result(&document["result"]) {
            true => Ok(()),
            false => Err("the search has no result; it says why".into()),
        }
    }

    /// The result for programs, and for people.
    fn search(
        &self,
        runs: &mut Runs<'_>,
        limits: &Limits,
        ways: &[(Sending, Spec)],
    ) -> Result<(Value, String), Box<dyn Error + Send + Sync>> {
        let size = ways.first().map_or(0.0, |(sending, _)| sending.load.size);
        Ok(match self.method {
            Method::Mlrsearch => {
                let result = mlrsearch::search(runs, &self.goals(), limits)?;
                (json!(result), found::of_mlrsearch(&result, size))
            }
            Method::MaxRate => {
                let goal = self.max_rate(limits, ways.len() as f64);
                let mut found = search::max_rate_of(runs, &goal)?;
                let said = text::of_search(&found, goal.loss);
                // They stand beside the result.
                found.trials.clear();
                (json!(found), said)
            }
            Method::Binary => {
                let result = binary::search(runs, &self.binary(), limits)?;
                (json!(result), found::of_binary(&result, size))
            }
            Method::Rfc2544 => {
                let result = rfc2544::run(runs, &self.rfc2544(), limits)?;
                (json!(result), found::of_rfc2544(&result, size))
            }
            Method::Soak => {
                let result = soak::run(runs, &self.soak(), limits)?;
                (json!(result), found::of_soak(&result, size))
            }
        })
    }

    /// Refuses options and losses that the method does not take.
    fn check(&self) -> Result<(), String> {
        let name = self.method.name();
        let (is_mlrsearch, is_rfc2544) = match self.method {
            Method::Mlrsearch => (true, false),
            Method::Rfc2544 => (false, true),
            Method::MaxRate | Method::Binary | Method::Soak => (false, false),
        };
        for (option, is_given, is_taken) in [
            ("--sum", self.sum.is_some(), is_mlrsearch),
            ("--exceed", self.exceed.is_some(), is_mlrsearch),
            ("--bursts", self.bursts.is_some(), is_rfc2544),
            ("--latency", self.latency.is_some(), is_rfc2544),
            ("--width", self.width.is_some(), self.method != Method::Soak),
        ] {
            if is_given && !is_taken {
                return Err(format!("{option}: {name} does not have it; leave it out"));
            }
        }
        let twice = (1..self.loss.len()).find(|&i| self.loss[..i].contains(&self.loss[i]));
        if let Some(at) = twice {
            return Err(format!("--loss: {} is given twice", self.loss[at]));
        }
        match (self.method, &self.loss[..]) {
            (Method::Rfc2544, [_, ..]) => {
                Err("--loss: the throughput of RFC 2544 has no loss; leave it out".to_owned())
            }
            (Method::MaxRate | Method::Binary | Method::Soak, [_, _, ..]) => {
                Err(format!("--loss: {name} takes one, mlrsearch takes several"))
            }
            (Method::Soak, [0.0]) => Err(
                "--loss 0: no trial shows that nothing is ever lost; give soak a share above 0"
                    .to_owned(),
            ),
            _ => Ok(()),
        }
    }

    fn limits(&self, sendings: &[Sending]) -> Result<Limits, Box<dyn Error>> {
        let ways = sendings.len() as f64;
        let mut limits = Limits {
            floor: Pps(floor(sendings).0 * ways),
            budget: self.budget.unwrap_or_else(|| self.method.budget()),
            ..Limits::default()
        };
        for sending in sendings {
            limits.line.0 = limits.line.0.min(sending.limit().0 * ways);
            if let Pace::At(rate) = self.rate {
                limits.ceiling.0 = limits.ceiling.0.min(sending.rate(rate)?.0 * ways);
            }
        }
        if limits.ceiling.0 < ways {
            let each = Pps(limits.ceiling.0 / ways);
            return Err(format!(
                "-m: {each:.3} in each direction is less than a packet a second, which no trial \
                 can tell from none; give 1pps or more"
            )
            .into());
        }
        Ok(limits)
    }

    fn goals(&self) -> Vec<Goal> {
        let losses: &[f64] = match &self.loss[..] {
            [] => &[0.0, 0.005],
            given => given,
        };
        let goal = |loss: &f64| {
            let goal = Goal::csit(*loss);
            let length = self.trial.unwrap_or(goal.length);
            Goal {
                exceed: self.exceed.unwrap_or(goal.exceed),
                width: self.width.unwrap_or(goal.width),
                length,
                sum: self.sum.unwrap_or(goal.sum).max(length),
                ..goal
            }
        };
        losses.iter().map(goal).collect()
    }

    /// Its rates are those of a direction, of which there are `ways`.
    fn max_rate(&self, limits: &Limits, ways: f64) -> search::Goal {
        let goal = search::Goal::default();
        let one = |total: Pps| Pps(total.0 / ways);
        search::Goal {
            loss: self.loss.first().copied().unwrap_or(goal.loss),
            trial: self.trial.unwrap_or(goal.trial),
            budget: limits.budget,
            width: self.width.unwrap_or(goal.width),
            limit: one(limits.line),
            ceiling: one(limits.ceiling),
            floor: one(limits.floor),
        }
    }

    fn binary(&self) -> binary::Plan {
        let plan = binary::Plan::default();
        binary::Plan {
            loss: self.loss.first().copied().unwrap_or(plan.loss),
            trial: self.trial.unwrap_or(plan.trial),
            width: self.width.unwrap_or(plan.width),
            ..plan
        }
    }

    fn rfc2544(&self) -> rfc2544::Plan {
        let plan = rfc2544::Plan::default();
        rfc2544::Plan {
            trial: self.trial.unwrap_or(plan.trial),
            width: self.width.unwrap_or(plan.width),
            bursts: self.bursts.unwrap_or(plan.bursts),
            latency: self.latency.unwrap_or(plan.latency),
            ..plan
        }
    }

    fn soak(&self) -> soak::Plan {
        let plan = soak::Plan::default();
        soak::Plan {
            loss: self.loss.first().copied().unwrap_or(plan.loss),
            trial: self.trial.unwrap_or(plan.trial),
        }
    }

    /// Prints text for people, unless only JSON is wanted.
    fn say(&self, text: &str) {
        if self.progress != Style::Json {
            // Perhaps nobody reads it anymore.
            let _ = output::say(self.json.as_deref(), text);
        }
    }
}

/// True if a search found any rate or bound, whatever the method.
fn has_result(result: &Value) -> bool {
    let goals = result["goals"].as_array().into_iter().flatten();
    let mut bounds = goals.chain([&result["bounds"], &result["throughput"]]);
    bounds.any(|of| of["lower_pps"].is_number() || of["upper_pps"].is_number())
        || result["critical_pps"].is_number()
        || result["valid"] == true
}

/// A width from above 0 to below 1.
fn width(text: &str) -> Result<f64, String> {
    let value = share(text).ok().filter(|value| *value > 0.0);
    value.ok_or_else(|| "expected a share above 0 and below 1, for example 0.005".to_owned())
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Command {
        #[command(flatten)]
        search: Search,
    }

    fn read(line: &str) -> Result<Search, String> {
        let line = format!("search --tx live:a --rx sink:b {line}");
        Command::try_parse_from(line.split_whitespace())
            .map(|command| command.search)
            .map_err(|e| e.to_string())
    }

    #[test]
    fn a_search_without_a_bound_has_no_result() {
        let none = json!({"goals": [{"lower_pps": null, "upper_pps": null}]});
        let upper = json!({"goals": [{"lower_pps": null, "upper_pps": 1.0}]});
        let lower = json!({"bounds": {"lower_pps": 1.0, "upper_pps": null}});
        let soak = |pps: Option<f64>| json!({"critical_pps": pps});
        let max = |valid: bool| json!({"valid": valid, "max_pps": 0.0});
        for (result, has) in [
            (none, false),
            (upper, true),
            (lower, true),
            (soak(None), false),
            (soak(Some(1.0)), true),
            (max(false), false),
            (max(true), true),
        ] {
            assert_eq!(has_result(&result), has, "{result}");
        }
    }

    #[test]
    fn times_and_numbers_of_nothing_are_refused() {
        for words in ["--sum 0s", "--method rfc2544 --bursts 0", "--budget 0s"] {
            assert!(read(words).is_err(), "{words}");
        }
    }

    #[test]
    fn methods_have_their_published_settings() {
        let plain = read("").unwrap();
        assert_eq!(plain.goals(), [Goal::csit(0.0), Goal::csit(0.005)]);
        assert_eq!(plain.binary(), binary::Plan::default());
        assert_eq!(plain.rfc2544(), rfc2544::Plan::default());
        assert_eq!(plain.soak(), soak::Plan::default());
        let given = read("--loss 0,0.01 --trial 2s --sum 1s --width 0.02 --exceed 0.2").unwrap();
        let goals = given.goals();
        assert_eq!(
            (goals.len(), goals[1].loss, goals[1].width),
            (2, 0.01, 0.02)
        );
        // Less than one full trial decides nothing.
        assert_eq!(
            (goals[0].sum, goals[0].exceed),
            (Duration::from_secs(2), 0.2)
        );
    }

    #[test]
    fn what_a_method_does_not_take_is_refused() {
        for line in [
            "--method rfc2544 --loss 0",
            "--method binary --loss 0,0.1",
            "--method soak --loss 0",
            "--loss 0.1,0.1",
        ] {
            let error = read(line).unwrap().check().unwrap_err();
            assert!(error.starts_with("--loss"), "{line}: {error}");
        }
        for line in [
            "binary --sum 3s",
            "soak --bursts 3",
            "max-rate --exceed 0.1",
            "soak --width 0.1",
        ] {
            let error = read(&format!("--method {line}")).unwrap().check();
            assert!(error.unwrap_err().ends_with("leave it out"), "{line}");
        }
        for line in [
            "--budget 0s",
            "--width 0",
            "--loss 1",
            "--trial 0.2s",
            "--method other",
        ] {
            assert!(read(line).is_err(), "{line}");
        }
        read("--loss 0,0.001").unwrap().check().unwrap();
    }
}
