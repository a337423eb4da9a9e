//! `parshall send`: only the generator.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use clap::Args;
use serde_json::{Value, json};

use loadgen::device::{Count, Pacing, Transmitter};
use loadgen::dry::SEED;
use loadgen::model::units::{Pps, WIRE_OVERHEAD};
use session::{Spec, TestPorts};

use super::dry;
use super::interrupt::{Interrupt, reason, whole};
use super::streams;
use super::text;
use super::traffic::{Pace, Sending, Traffic, duration, pace};
use crate::output::{self, write_json};

/// Send a traffic profile through a port.
///
/// Every second says what was sent. With --dry-run, nothing is sent but a file written.
#[derive(Args, Debug)]
pub struct Send {
    /// Port to send by: live:IF (XDP live frames), af_xdp:IF,
    /// memif:PATH,id=N,role=client|server,secret-file=FILE, pcap:FILE
    #[arg(value_name = "PORT", required_unless_present = "dry_run")]
    port: Option<Spec>,
    #[command(flatten)]
    traffic: Traffic,
    /// Rate: 1.48mpps, 10%, 1gbps, 1gbpsl1, or a multiple of the profile's own; max is as fast as
    /// the port takes packets
    #[arg(short = 'm', long = "rate", value_name = "RATE", default_value = "1", value_parser = pace)]
    rate: Pace,
    /// Time to send for [default: until the profile ends, or Ctrl-C]
    #[arg(long, short = 'd', value_name = "TIME", value_parser = duration)]
    duration: Option<Duration>,
    /// Send nothing, write what would be sent to -o; needs no port and no rights
    #[arg(long, requires = "output", conflicts_with = "port")]
    dry_run: bool,
    /// Capture file that a dry run writes; times begin at 0
    #[arg(
        short = 'o',
        long = "output",
        value_name = "FILE.pcap",
        requires = "dry_run"
    )]
    output: Option<PathBuf>,
    /// Packets of a dry run
    #[arg(long, value_name = "N", requires = "dry_run")]
    limit: Option<u64>,
    /// Write the times of a dry run in microseconds, for programs that read no nanoseconds
    #[arg(long, requires = "dry_run")]
    micros: bool,
    /// Write what was sent as JSON at the end; with -, to standard output, and the lines to
    /// standard error
    #[arg(long, value_name = "FILE|-")]
    json: Option<PathBuf>,
}

/// Time between checks for the end: nobody sees so short a delay, and 20 checks a second cost
/// nothing.
const TICK: Duration = Duration::from_millis(50);

impl Send {
    /// Sends until the profile or the time is over or a signal arrives; all are success.
    ///
    /// # Errors
    /// The mistake in the command line or the port.
    pub fn run(self) -> crate::Outcome {
        output::all_apart([
            ("--profile", self.traffic.file()),
            ("--json", self.json.as_deref()),
            ("-o", self.output.as_deref()),
        ])?;
        let Some(port) = &self.port else {
            return self.dry_run();
        };
        let sending = self
            .traffic
            .sendings(std::slice::from_ref(port))?
            .pop()
            .ok_or("nothing to send")?;
        let rate = match self.rate {
            Pace::Max => Pps::UNLIMITED,
            Pace::At(rate) => sending.rate(rate)?,
        };
        if let Some(file) = &self.json {
            output::check(file)?;
        }
        if let Some(note) = sending.rate_note(!rate.is_limited()) {
            self.line(&note);
        }
        let interrupt = Interrupt::on_signal()?;
        let threads = self.traffic.threads();
        let (mut tx, ports) = session::open_sender(sending.to_open(), rate, threads, &interrupt)?;
        let links = interrupt.on_loss_of([port])?;
        let before: Count = tx.sent().into_iter().sum();
        let due = tx.due();
        tx.start(rate).map_err(|e| e.to_string())?;
        let begin = Instant::now();
        self.watch(&*tx, begin, &interrupt);
        tx.set_rate(Pps(0.0));
        let seconds = begin.elapsed().as_secs_f64();
        tx.stop().map_err(|e| reason(&links, &e))?;
        let all = All {
            rate,
            due: tx.due() - due,
            sent: tx.sent().into_iter().sum::<Count>().since(before),
            seconds,
            pacing: tx.pacing(),
        };
        self.line(&format!("in total: {}", amount(all.sent, all.gaps())));
        if all.short() > 0 {
            self.line(&text::of_shortfall(all.short(), all.due));
        }
        let delay = all.pacing.delay;
        if let Some(late) = delay.and_then(|delay| text::of_late(&delay.late)) {
            self.line(&late);
        }
        if let Some(gaps) = text::of_gaps(&all.pacing.gaps) {
            self.line(&gaps);
        }
        if let Some(file) = &self.json {
            let mut result = self.result(&sending, &ports, &*tx, &all);
            result["ended_by"] = json!(links.fault());
            write_json(file, &result)?;
        }
        whole(&links)
    }

    fn dry_run(&self) -> crate::Outcome {
        let (Pace::At(rate), Some(file)) = (self.rate, &self.output) else {
            return Err(
                "a dry run gives each packet a time, so it needs a rate other than max".into(),
            );
        };
        if self.limit.is_none() && self.duration.is_none() {
            return Err("give --limit or --duration: a profile may have no end".into());
        }
        let bounds = dry::Bounds {
            packets: self.limit.unwrap_or(u64::MAX),
            duration: self.duration.unwrap_or(Duration::MAX),
        };
        let (unbound, cores) = (self.traffic.unbound(rate)?, self.traffic.cores);
        let sent = dry::write(&unbound, cores, file, bounds, self.micros)?;
        self.line(&format!("{sent} packets in {}", file.display()));
        if let Some(note) = &unbound.address_note {
            self.line(note);
        }
        if unbound
            .streams
            .iter()
            .any(|(stream, _)| stream.is_unseeded())
        {
            self.line(&format!(
                "the profile has streams without a seed: they use seed {SEED}"
            ));
        }
        Ok(())
    }

    /// Prints a line every second until the end.
    fn watch(&self, tx: &dyn Transmitter, begin: Instant, interrupt: &Interrupt) {
        let mut last: Count = tx.sent().into_iter().sum();
        let mut last_at = begin;
        let until = self.duration.map(|duration| begin + duration);
        let mut next = begin + Duration::from_secs(1);
        while !interrupt.has_come() {
            let now = Instant::now();
            if tx.is_over() {
                return;
            }
            if until.is_some_and(|until| now >= until) {
                return;
            }
            if now >= next {
                let sent: Count = tx.sent().into_iter().sum();
                let text = amount(sent.since(last), (now - last_at).as_secs_f64());
                if !self.line(&format!("{:>7.0} s  {text}", (now - begin).as_secs_f64())) {
                    return;
                }
                (last, last_at) = (sent, now);
                next += Duration::from_secs(1);
            }
            let wait = until.map_or(next, |until| until.min(next));
            std::thread::sleep(wait.saturating_duration_since(now).min(TICK));
        }
    }

    /// Prints a line. Returns false if nobody reads it anymore.
    fn line(&self, text: &str) -> bool {
        output::say(self.json.as_deref(), &format!("{text}\n")).is_ok()
    }

    fn result(
        &self,
        sending: &Sending,
        ports: &TestPorts,
        tx: &dyn Transmitter,
        all: &All,
    ) -> Value {
        let streams = sending.streams.iter().zip(tx.sent());
        let streams = streams.map(|((stream, _), count)| {
            json!({ "name": stream.name, "packets": count.packets, "bytes": count.bytes })
        });
        json!({
            "port": self.port.as_ref().map(Spec::to_string),
            "sender": ports.sender,
            "fallback": ports.fallback,
            "cores": self.traffic.cores,
            "profile": self.traffic.profile,
            "seconds": all.seconds,
            "rate_pps": all.rate.is_limited().then_some(all.rate.0),
            "rate_note": sending.rate_note(!all.rate.is_limited()),
            "address_note": sending.address_note,
            "due": all.due,
            "packets": all.sent.packets,
            "short": all.short(),
            "bytes": all.sent.bytes,
            "pps": all.sent.packets as f64 / all.gaps(),
            "late": all.pacing.delay.and_then(|delay| streams::measured(delay.late)),
            "gaps": streams::measured(all.pacing.gaps),
            "queue_full": tx.queue_full(),
            "streams": streams.collect::<Vec<_>>(),
        })
    }
}

/// The traffic from start to stop.
struct All {
    rate: Pps,
    /// Packets that were due.
    due: u64,
    sent: Count,
    seconds: f64,
    pacing: Pacing,
}

impl All {
    /// Packets that were due and not sent.
    fn short(&self) -> u64 {
        self.due.saturating_sub(self.sent.packets)
    }

    /// The seconds that as many gaps take as there are packets, if that is known; otherwise those
    /// from start to stop, which at slow rates are up to a gap more or less.
    fn gaps(&self) -> f64 {
        let pps = self.pacing.delay.and_then(|delay| delay.pps());
        pps.map_or(self.seconds, |pps| self.sent.packets as f64 / pps.0)
    }
}

/// Packets and their rate, on layer 2 and on the wire.
fn amount(count: Count, seconds: f64) -> String {
    let pps = Pps(count.packets as f64 / seconds);
    let bits = |bytes: f64| loadgen::model::units::Bits(bytes * 8.0 / seconds);
    format!(
        "{} packets, {pps:.3}, {:.3}, {:.3} on the wire",
        count.packets,
        bits(count.bytes as f64),
        bits(count.bytes as f64 + WIRE_OVERHEAD * count.packets as f64),
    )
}
