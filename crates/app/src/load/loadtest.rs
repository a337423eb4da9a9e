//! `parshall loadtest`: measures what a device forwards, by a ramp or a search for the highest
//! rate.

use std::error::Error;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use serde_json::json;

use loadgen::clock::Interruptible;
use loadgen::device::Path;
use loadgen::json::{self, About};
use loadgen::measure::point;
use loadgen::measure::ramp::{self, Plan};
use loadgen::measure::search::{self, Event, Found, Goal};
use loadgen::measure::trial::Trial;
use loadgen::model::rate::Rate;
use loadgen::model::units::Pps;
use report::model::Run;
use session::{Links, Spec, TestPorts};

use super::interrupt::{Interrupt, reason, whole};
use super::measured::{Measured, Measuring, Seen, Trials};
use super::outcome;
use super::pairs::Pairs;
use super::progress::{Progress, Style};
use super::shortfall::Watch;
use super::steady::{address_note, floor, refuse_bursts, refuse_fixed, share, trial};
use super::text::{self, percent};
use super::traffic::{Pace, Sending, Traffic, duration, pace};
use super::{rss, streams};
use crate::output::{self, write_json};
use crate::power_meter::PowerMeter;

/// Send through a device under test and count what comes back: a ramp, or a search for its highest
/// rate.
///
/// Without --search: a warm-up, a linear ramp to the rate of -m, and a hold. Ports: live:IF (XDP
/// live frames, only sends), sink:IF (counts and drops in XDP, only receives), af_xdp:IF,
/// memif:PATH,id=N,role=client|server,secret-file=FILE, pcap:FILE. Ctrl-C ends the test early, with
/// the result of the time until then.
#[derive(Args, Debug)]
pub struct Loadtest {
    #[command(flatten)]
    ports: Pairs,
    #[command(flatten)]
    traffic: Traffic,
    /// Rate in each direction: 1.48mpps, 10%, 1gbps, 1gbpsl1, a multiple of the profile's own, or max,
    /// which is what the port takes, as a trial flat out shows. That at the end of the ramp, or the highest that a search may send [default: 100%, and for a
    /// search as fast as the port takes packets]
    #[arg(short = 'm', long = "rate", value_name = "RATE", value_parser = pace)]
    rate: Option<Pace>,
    /// Hold the rate of -m for this long, without a ramp
    #[arg(long, value_parser = duration, conflicts_with_all = ["search", "ramp", "hold"])]
    duration: Option<Duration>,
    /// Rate of the warm-up; max is as fast as the port takes packets
    #[arg(
        long,
        value_name = "RATE",
        default_value = "1kpps",
        value_parser = pace,
        conflicts_with = "search"
    )]
    warmup_rate: Pace,
    /// Length of the warm-up [default: 30s, with --duration none]
    #[arg(long, value_name = "TIME", value_parser = duration, conflicts_with = "search")]
    warmup: Option<Duration>,
    /// Length of the ramp
    #[arg(
        long,
        value_name = "TIME",
        value_parser = duration,
        default_value = "600s",
        conflicts_with = "search"
    )]
    ramp: Duration,
    /// Steps of the ramp
    #[arg(
        long,
        value_parser = clap::value_parser!(u32).range(1..=100_000),
        default_value_t = 100,
        conflicts_with_all = ["search", "duration"]
    )]
    steps: u32,
    /// Length of the hold at the rate of -m after the ramp
    #[arg(
        long,
        value_name = "TIME",
        value_parser = duration,
        default_value = "30s",
        conflicts_with = "search"
    )]
    hold: Duration,
    /// Instead of a ramp, search for the highest rate with no more loss than allowed, or make one
    /// trial flat out
    #[arg(long, value_enum)]
    search: Option<Search>,
    /// Loss that the highest rate may have, as a share of the packets sent
    #[arg(long, value_name = "SHARE", default_value = "0.001", value_parser = share)]
    loss: f64,
    /// Length of a trial of a search, one second or more; those that confirm its result take three
    /// times as long
    #[arg(
        long,
        value_name = "TIME",
        value_parser = trial,
        default_value = "1s",
        requires = "search"
    )]
    trial: Duration,
    /// Time for all trials of a search; with more time the result is more precise
    #[arg(
        long,
        value_name = "TIME",
        value_parser = duration,
        default_value = "20s",
        requires = "search"
    )]
    budget: Duration,
    #[command(flatten)]
    meter: PowerMeter,
    /// Write the result as JSON; with -, to standard output, and the text to standard error
    #[arg(long, value_name = "FILE|-")]
    json: Option<PathBuf>,
    /// Write a report with graphs as one HTML page
    #[arg(short = 'o', long = "output", value_name = "report.html")]
    output: Option<PathBuf>,
    /// Form of the progress on standard error
    #[arg(long, value_enum, default_value_t)]
    progress: Style,
}

/// The goal of a search.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Search {
    MaxRate,
    FlatOut,
}

/// A test that has ended.
struct Ended {
    /// The generator fell short.
    fell_short: bool,
    /// Any packet was sent, but for those of a warm-up.
    sent: bool,
}

impl Loadtest {
    /// Runs the test and prints its result.
    ///
    /// # Errors
    /// The mistake in the command line, the ports or the files. Then nothing is left behind.
    pub fn run(self) -> crate::Outcome {
        let pairs = self.ports.pairs()?;
        let tx: Vec<Spec> = pairs.iter().map(|(tx, _)| tx.clone()).collect();
        let sendings = self.traffic.sendings(&tx)?;
        refuse_bursts(&sendings)?;
        self.check_rates(&sendings)?;
        let (plan, goal) = (self.plan(&sendings)?, self.goal(&sendings)?);
        for file in self.json.iter().chain(&self.output) {
            output::check(file)?;
        }
        let named = [
            ("--profile", self.traffic.file()),
            ("--json", self.json.as_deref()),
            ("-o", self.output.as_deref()),
        ];
        output::all_apart(named)?;
        let ways: Vec<(Sending, Spec)> = sendings
            .into_iter()
            .zip(pairs)
            .map(|(sending, (_, rx))| (sending, rx))
            .collect();
        let rates: Vec<Pps> = match self.search {
            None if plan.target.is_limited() => plan.rates().collect(),
            // What a trial shows is rounded.
            _ => Vec::new(),
        };
        let interrupt = Interrupt::on_signal()?;
        let measuring = Measuring::start(&self.meter)?;
        let to_open: Vec<session::Way<'_>> =
            ways.iter().map(|(tx, rx)| (tx.to_open(), rx)).collect();
        let threads = self.traffic.threads();
        let mut ports = session::open(&to_open, &rates, threads, &interrupt)?;
        let links = interrupt.on_loss_of(ways.iter().flat_map(|(tx, rx)| [&tx.tx, rx]))?;
        let clock = Interruptible::new(interrupt.flag());
        self.say(&streams::not_told_apart(&ports, &ways));
        self.say(&rss::of_one_flow(&ways));
        let watch = Watch::new(ports.sender, self.traffic.cpu.first().copied());
        let ended = match self.search {
            Some(search) => self.search(
                (search, &goal),
                &mut ports,
                &ways,
                (&clock, &links),
                measuring,
            ),
            None => {
                let plan = self.at_most(plan, &mut ports, &clock, &goal)?;
                self.climb(&plan, &mut ports, &ways, (&clock, &links), measuring)
            }
        }?;
        if ended.fell_short {
            self.say(&watch.advice(&ports.paths));
        }
        whole(&links)?;
        match ended.sent {
            false if interrupt.has_come() => {
                Err("interrupted before anything was sent that counts, so \
                                              the test has no result"
                    .into())
            }
            _ => Ok(()),
        }
    }

    /// Refuses a test at rates that a direction cannot have.
    fn check_rates(&self, sendings: &[Sending]) -> crate::Outcome {
        let tries_others = match self.search {
            Some(search) => search == Search::MaxRate,
            None => self.duration.is_none() || self.given().is_none(),
        };
        if tries_others {
            refuse_fixed(sendings, &self.traffic.profile)?;
        }
        if self.search == Some(Search::FlatOut) && self.given().is_some() {
            return Err(
                "--search flat-out sends as fast as the port takes packets, but -m gives a rate: \
                 hold it with --duration, or let --search max-rate go no higher"
                    .into(),
            );
        }
        self.ceiling(sendings).map(drop)
    }

    /// The rate of -m in each direction, the lower one if they differ; no limit where the port is
    /// it.
    fn ceiling(&self, sendings: &[Sending]) -> Result<Pps, Box<dyn Error>> {
        let Some(rate) = self.given() else {
            return Ok(Pps::UNLIMITED);
        };
        let rates = sendings.iter().map(|s| Ok(s.rate(rate)?.0));
        let rates: Result<Vec<f64>, Box<dyn Error>> = rates.collect();
        Ok(Pps(rates?.into_iter().fold(f64::INFINITY, f64::min)))
    }

    /// The rate of -m; None if it is what the port takes. Without -m, a ramp rises to the line rate,
    /// and a search has no limit.
    fn given(&self) -> Option<Rate> {
        match self.rate {
            Some(Pace::At(rate)) => Some(rate),
            Some(Pace::Max) => None,
            None => self.search.is_none().then_some(Rate::Percent(100.0)),
        }
    }

    /// The plan; if it has no rate, with what a trial flat out shows that the port takes.
    fn at_most(
        &self,
        plan: Plan,
        ports: &mut TestPorts,
        clock: &Interruptible,
        goal: &Goal,
    ) -> Result<Plan, Box<dyn Error>> {
        if plan.target.is_limited() {
            return Ok(plan);
        }
        let paths = &mut ports.paths;
        let trial =
            search::flat_out(paths, goal, clock, &mut |_: Event| ()).map_err(|e| e.to_string())?;
        paths.iter_mut().for_each(Path::start_over);
        let target = (trial.sent_pps().0 / paths.len() as f64).floor().max(1.0);
        self.say(&format!("-m max: {:.3} in each direction\n", Pps(target)));
        Ok(Plan {
            target: Pps(target),
            ..plan
        })
    }

    fn plan(&self, sendings: &[Sending]) -> Result<Plan, Box<dyn Error>> {
        if self.search.is_some() {
            return Ok(Plan::default());
        }
        let (sending, floor) = (&sendings[0], floor(sendings));
        let warmup_rate = match self.warmup_rate {
            Pace::Max => Pps::UNLIMITED,
            Pace::At(rate) => sending.warmup_rate(rate)?,
        };
        let plan = Plan {
            warmup_rate: Pps(warmup_rate.0.max(floor.0)),
            warmup: self.warmup.unwrap_or(Plan::default().warmup),
            target: match self.given() {
                Some(rate) => sending.rate(rate)?,
                None => Pps::UNLIMITED,
            },
            floor,
            ramp: self.ramp,
            steps: self.steps,
            hold: self.hold,
            ..Plan::default()
        };
        Ok(match self.duration {
            None => plan,
            Some(hold) => Plan {
                warmup: self.warmup.unwrap_or_default(),
                ramp: Duration::ZERO,
                hold,
                ..plan
            },
        })
    }

    fn goal(&self, sendings: &[Sending]) -> Result<Goal, Box<dyn Error>> {
        let limits = sendings.iter().map(|s| s.limit().0);
        Ok(Goal {
            loss: self.loss,
            trial: self.trial,
            budget: self.budget,
            limit: Pps(limits.fold(f64::INFINITY, f64::min)),
            ceiling: self.ceiling(sendings)?,
            floor: floor(sendings),
            ..Goal::default()
        })
    }

    /// Searches for the highest rate, or makes one trial flat out.
    fn search(
        &self,
        (search, goal): (Search, &Goal),
        ports: &mut TestPorts,
        ways: &[(Sending, Spec)],
        (clock, links): (&Interruptible, &Links),
        mut measuring: Measuring,
    ) -> Result<Ended, Box<dyn Error>> {
        let length = match search {
            Search::MaxRate => self.budget.max(2 * self.trial),
            Search::FlatOut => search::SHORTEST + self.trial,
        };
        let mut observer = Trials::new(Progress::new(self.progress, length), &mut measuring.energy);
        let (paths, loss) = (&mut ports.paths, self.loss);
        let (said, found) = match search {
            Search::MaxRate => {
                let found = search::max_rate(paths, goal, clock, &mut observer);
                found.map(|found| (text::of_search(&found, loss), found))
            }
            Search::FlatOut => {
                let trial = search::flat_out(paths, goal, clock, &mut observer);
                trial.map(|trial| {
                    (
                        text::of_trial("flat out", &trial),
                        of_flat_out(&trial, loss),
                    )
                })
            }
        }
        .map_err(|e| reason(links, &e))?;
        let fell_short = observer.fell_short;
        drop(observer);
        let seen = Seen {
            ceiling_pps: found.flat_out_pps,
            unsent: point::unsent(&found.trials),
        };
        let measured = measuring.end(&self.traffic, ports, ways, seen)?;
        let streams = streams::rows(ports, ways);
        let note = ways[0].0.rate_note(search == Search::FlatOut);
        let mut document = json!({
            "sender": ports.sender,
            "fallback": ports.fallback,
            "profile": self.traffic.profile,
            "search": &found,
            "ended_by": links.fault(),
            "rate_note": &note,
            "address_note": address_note(ways),
            "streams": streams,
            "pacing": streams::pacing(&ports.paths, ways),
        });
        measured.add_to(&mut document);
        self.write(&document, measured, || {
            outcome::of_search(&self.traffic, ports.sender, ways, found.clone())
        })?;
        self.say_note(note.as_deref());
        self.say(&said);
        self.say(&streams::remarks(&document["streams"]));
        Ok(Ended {
            fell_short,
            sent: found.trials.iter().any(|trial| trial.sent_pps > 0.0),
        })
    }

    /// Climbs the ramp.
    fn climb(
        &self,
        plan: &Plan,
        ports: &mut TestPorts,
        ways: &[(Sending, Spec)],
        (clock, links): (&Interruptible, &Links),
        mut measuring: Measuring,
    ) -> Result<Ended, Box<dyn Error>> {
        let progress = Progress::new(self.progress, plan.length());
        if !plan.warmup.is_zero() {
            progress.doing(&format!("warm-up at {}", self.warmup_rate));
        }
        ramp::warm_up(plan, &mut ports.paths, clock).map_err(|e| reason(links, &e))?;
        measuring.energy.start();
        let ramp = ramp::run(plan, &mut ports.paths, clock, &mut |sample| {
            progress.sample(sample, plan);
        })
        .map_err(|e| reason(links, &e))?;
        drop(progress);
        let came_back = ramp.whole.ways.iter().map(|way| way.received.packets);
        measuring.energy.end(came_back.sum(), ramp.whole.seconds);
        let due = ramp.whole.ways.iter();
        let seen = Seen {
            ceiling_pps: self
                .given()
                .is_none()
                .then_some(plan.target.0 * ways.len() as f64),
            unsent: due
                .map(|way| way.offered.saturating_sub(way.sent.packets))
                .sum(),
        };
        let measured = measuring.end(&self.traffic, ports, ways, seen)?;
        let sending = &ways[0].0;
        let about = About {
            profile: &self.traffic.profile,
            warmup: self.warmup_rate.to_string(),
            target: self.given().unwrap_or(Rate::Packets(plan.target)),
            size: sending.load.size,
            line: sending.line.map(|line| line.rate),
        };
        let mut document = json::result(&about, plan, &ramp);
        document["parshall"]["sender"] = json!(ports.sender);
        document["parshall"]["fallback"] = json!(ports.fallback);
        let note = sending.rate_note(false);
        document["parshall"]["ended_by"] = json!(links.fault());
        document["parshall"]["rate_note"] = json!(note);
        document["parshall"]["address_note"] = json!(address_note(ways));
        document["parshall"]["streams"] = streams::rows(ports, ways);
        document["parshall"]["pacing"] = streams::pacing(&ports.paths, ways);
        let run = outcome::of_ramp(&self.traffic, ports.sender, ways, &ramp, self.loss);
        document["parshall"]["highest"] = outcome::highest(&run, self.loss);
        measured.add_to(&mut document["parshall"]);
        self.write(&document, measured, || run.clone())?;
        self.say_note(note.as_deref());
        self.say(&text::of_ramp(&ramp, &run, self.loss));
        self.say(&streams::remarks(&document["parshall"]["streams"]));
        Ok(Ended {
            fell_short: ramp.samples.iter().any(|sample| !sample.valid),
            sent: ramp.whole.sent() > 0,
        })
    }

    /// Writes the requested files.
    fn write(
        &self,
        document: &serde_json::Value,
        measured: Measured,
        run: impl FnOnce() -> Run,
    ) -> crate::Outcome {
        self.say(&measured.warning());
        self.say(&measured.energy.text());
        if let Some(file) = &self.json {
            write_json(file, document)?;
        }
        if let Some(file) = &self.output {
            let profile = &self.traffic.profile;
            let page = outcome::html(document, profile, (run(), measured), self.loss);
            output::write(file, &page)?;
        }
        Ok(())
    }

    fn say_note(&self, note: Option<&str>) {
        if let Some(note) = note {
            self.say(&format!("{note}\n"));
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

/// A trial flat out as the result of a search.
fn of_flat_out(trial: &Trial, loss: f64) -> Found {
    let kept = trial.received() > 0 && trial.passes(loss) && !trial.interrupted;
    let why = match (trial.valid, kept) {
        (_, true) => String::new(),
        (true, _) if trial.interrupted => String::new(),
        (false, _) => trial.why.clone(),
        (true, _) => format!("{} was lost flat out", percent(trial.loss())),
    };
    Found {
        valid: kept,
        why,
        max_pps: if kept { trial.sent_pps().0 } else { 0.0 },
        l1_bps: if kept { trial.l1().0 } else { 0.0 },
        loss: trial.loss(),
        saturation_pps: Some(trial.forwarded.0),
        flat_out_pps: Some(trial.sent_pps().0),
        limited_by_generator: kept,
        trials: vec![trial.point()],
        ..Found::default()
    }
    .ended_early(trial.interrupted)
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use loadgen::model::load::Load;
    use loadgen::model::stream::{Mark, Stream, StreamRate};
    use report::setup::{Flows, Size};

    use super::*;

    #[derive(Parser)]
    struct Command {
        #[command(flatten)]
        test: Loadtest,
    }

    fn read(line: &str) -> Result<Loadtest, String> {
        let argv = std::iter::once("loadtest").chain(line.split_whitespace());
        Command::try_parse_from(argv)
            .map(|c| c.test)
            .map_err(|e| e.to_string())
    }

    #[test]
    fn what_the_laboratory_asks_is_understood() {
        let pair = |tx: &str, rx: &str| lab::invocation::Pair {
            tx: tx.into(),
            rx: rx.into(),
            src_mac: "02:00:00:00:00:01".into(),
            dst_mac: "02:00:00:00:00:02".into(),
        };
        let pairs = [
            pair("live:gen0", "sink:gen1"),
            pair("memif:/x,id=0,role=client", "memif:/y,id=0,role=client"),
        ];
        let bench = lab::invocation::Packets::Bench {
            size: Size::Bytes(64),
            flows: Flows::Many,
            vlan: None,
        };
        let file = lab::invocation::Packets::File("/x/profile.json".as_ref());
        for (search, packets) in [
            (
                lab::invocation::Search::MaxRate(Duration::from_secs(9)),
                bench,
            ),
            (lab::invocation::Search::FlatOut, file),
        ] {
            let asked = lab::invocation::Loadtest {
                pairs: &pairs,
                packets,
                cpus: &[0, 1],
                others: &[],
                search,
            };
            let argv = asked.args();
            let test = read(&argv[1..].join(" ")).unwrap();
            assert_eq!(test.ports.pairs().unwrap().len(), 2);
            assert_eq!(test.traffic.cpu, [0, 1]);
            assert!(test.search.is_some() && test.progress == Style::Json);
        }
        let held = lab::invocation::Loadtest {
            pairs: &pairs,
            packets: bench,
            cpus: &[0],
            others: &[],
            search: lab::invocation::Search::Hold {
                rate: 1280,
                latency: 10,
                length: Duration::from_secs(2),
            },
        };
        let test = read(&held.args()[1..].join(" ")).unwrap();
        assert_eq!(test.duration, Some(Duration::from_secs(2)));
        assert_eq!(test.given(), Some(Rate::Packets(Pps(1280.0))));
        let streams = test.traffic.streams(loadgen::model::profile::Way::Out);
        assert_eq!(streams.unwrap().len(), 2);
    }

    #[test]
    fn the_way_back_is_made_up() {
        let test = read("--tx live:a --rx sink:b --direction both-ways").unwrap();
        let pairs = test.ports.pairs().unwrap();
        assert_eq!(pairs[1], (Spec::Live("b".into()), Spec::Sink("a".into())));
    }

    #[test]
    fn wrong_numbers_of_ports_are_refused() {
        for line in [
            "--tx live:a --tx live:b --rx sink:b",
            "--tx live:a --tx live:b --rx sink:b --rx sink:a --direction one-way",
        ] {
            assert!(read(line).unwrap().ports.pairs().is_err(), "{line}");
        }
        assert!(read("--tx live:a").is_err());
        assert!(read("--tx live:a --rx sink:b --duration 5s --ramp 3s").is_err());
        assert!(read("--tx live:a --rx sink:b --loss 1").is_err());
        for ignored in [
            "--search max-rate --warmup 1s",
            "--search max-rate --warmup-rate 1kpps",
            "--search max-rate --ramp 1s",
            "--search max-rate --steps 2",
            "--search max-rate --hold 1s",
            "--search max-rate --duration 1s",
            "--search max-rate --trial 0.2s",
            "--duration 1s --steps 2",
            "--trial 2s",
            "--budget 30s",
        ] {
            let line = format!("--tx live:a --rx sink:b {ignored}");
            assert!(read(&line).is_err(), "{line}");
        }
        let flat_out = read("--tx live:a --rx sink:b --search flat-out -m 1kpps").unwrap();
        assert!(flat_out.check_rates(&[]).is_err());
        let flat = read("--tx live:a --rx sink:b --warmup-rate max").unwrap();
        assert!(matches!(flat.warmup_rate, Pace::Max));
        for max in [
            "",
            "--search flat-out",
            "--search max-rate",
            "--duration 1s",
        ] {
            let test = read(&format!("--tx live:a --rx sink:b -m max {max}")).unwrap();
            assert!(test.check_rates(&[]).is_ok(), "{max}");
            assert_eq!(test.ceiling(&[]).unwrap(), Pps::UNLIMITED, "{max}");
        }
    }

    /// Whichever direction has the streams that keep their rate, a ramp and a search go no lower.
    #[test]
    fn the_floor_is_the_highest_of_all_directions() {
        let sending = |kept: f64| {
            let stream = |pps, latency: bool| {
                let rate = StreamRate::Packets(Pps(pps));
                let mark = latency.then_some(Mark { group: 1, latency });
                let stream = Stream::new("s", vec![0; 60], rate);
                (Stream { mark, ..stream }, Pps(pps))
            };
            let streams = vec![stream(1000.0, false), stream(kept, true)];
            Sending {
                tx: Spec::Pcap("x".into()),
                load: Load::of(&streams).unwrap(),
                streams,
                line: None,
                address_note: None,
            }
        };
        let line = "--tx live:a --rx sink:b -m 100kpps";
        for kept in [[200.0, 5000.0], [5000.0, 200.0]] {
            let sendings = kept.map(sending);
            let plan = read(line).unwrap().plan(&sendings).unwrap();
            assert_eq!((plan.floor, plan.warmup_rate), (Pps(5000.0), Pps(5000.0)));
            let search = read(&format!("{line} --search max-rate")).unwrap();
            let goal = search.goal(&sendings).unwrap();
            assert_eq!((goal.floor, goal.ceiling), (Pps(5000.0), Pps(100_000.0)));
        }
    }
}
