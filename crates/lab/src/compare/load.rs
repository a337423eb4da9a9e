//! Runs `parshall loadtest` and reads what it says.

use std::{
    io::{BufRead, BufReader, Read},
    path::Path,
    sync::mpsc::{self, RecvTimeoutError},
    time::Duration,
};

use loadgen::report::model::RampPoint;
use serde::Deserialize;

use crate::{
    Error, Netns, Spawn,
    cpu::{Stat, Time},
    invocation::{Loadtest, Search},
};

/// A line of `parshall loadtest --progress json`. Lines that are none of these are log lines.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub enum Event {
    /// A trial begins; warm-up is over.
    TrialStart {
        /// The generator sends as fast as it can.
        #[serde(default)]
        flat_out: bool,
        /// Rate wanted, packets a second; 0 if flat out.
        #[serde(default)]
        offered_pps: f64,
    },
    /// The trial is over; what was on its way is counted.
    TrialEnd {
        /// As in the start.
        #[serde(default)]
        flat_out: bool,
        /// Packets sent.
        sent: u64,
        /// Packets that came back.
        received: u64,
        /// Length.
        seconds: f64,
        /// The generator did what it was asked.
        #[serde(default)]
        valid: bool,
    },
}

/// What `parshall loadtest --search ... --json -` prints.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
pub struct Outcome {
    /// How packets were made: `live`, `af_xdp`, `memif`, `ring`.
    #[serde(default)]
    pub sender: String,
    /// What the search found.
    pub search: Found,
}

/// Result of a search. Rates are the sum of all directions.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
pub struct Found {
    /// Something can be reported.
    pub valid: bool,
    /// Why not, or what to bear in mind.
    #[serde(default)]
    pub why: String,
    /// Highest rate sent in a valid trial with no more loss than allowed, packets a second.
    pub max_pps: f64,
    /// The same on the wire, bits a second.
    pub l1_bps: f64,
    /// Loss in that trial, 0.0 to 1.0.
    pub loss: f64,
    /// Rate that came back while the generator sent as fast as it could.
    #[serde(default)]
    pub saturation_pps: Option<f64>,
    /// All trials in order.
    #[serde(default)]
    pub trials: Vec<RampPoint>,
}

/// The trial flat out with the processor time that it took.
#[derive(Debug, Clone, Default)]
pub struct FlatOut {
    /// Packets sent.
    pub sent: u64,
    /// Packets that came back.
    pub received: u64,
    /// Length in seconds.
    pub seconds: f64,
    before: Stat,
    after: Stat,
}

impl FlatOut {
    /// Processor time of the processors that `which` picks.
    pub fn time(&self, which: impl Fn(usize) -> bool) -> Time {
        self.after.since(&self.before, which)
    }
}

/// Runs a load test inside a namespace (or outside of all), tells `watch` of each event, and returns its result and
/// the trial flat out if there was one.
///
/// # Errors
/// If it cannot be started, fails, prints something else, or is silent for longer than its budget and 30 s.
pub fn run(
    exe: &Path,
    netns: Option<&Netns>,
    test: &Loadtest<'_>,
    mut watch: impl FnMut(&Event),
) -> Result<(Outcome, Option<FlatOut>), Error> {
    let spawn = Spawn::new(exe.display().to_string())
        .args(test.args())
        .piped();
    let mut process = match netns {
        Some(netns) => spawn.inside(netns),
        None => spawn,
    }
    .start()?;
    let Some((mut stdout, stderr)) = process.take_output() else {
        return Err(bad("no output"));
    };
    let result = std::thread::spawn(move || {
        let mut text = String::new();
        stdout.read_to_string(&mut text).map(|_| text)
    });
    let limit = match test.search {
        Search::MaxRate(budget) => Duration::from_millis(budget) + Duration::from_secs(30),
        Search::FlatOut => Duration::from_secs(30),
    };
    let (said, last) = listen(stderr, limit, &mut watch)?;
    let status = process.wait(Duration::from_secs(10))?;
    if !status.success() {
        return Err(Error::Failed {
            command: "parshall loadtest".into(),
            message: last,
        });
    }
    let text = result
        .join()
        .map_err(|_| bad("reader died"))?
        .map_err(|e| Error::file("standard output", e))?;
    let outcome = serde_json::from_str(&text).map_err(|e| bad(&e.to_string()))?;
    Ok((outcome, said))
}

/// Reads events until the pipe is closed. Returns the trial flat out and the last line that was no event.
fn listen(
    stderr: impl Read + Send + 'static,
    limit: Duration,
    watch: &mut impl FnMut(&Event),
) -> Result<(Option<FlatOut>, String), Error> {
    let (sender, lines) = mpsc::channel();
    std::thread::spawn(move || {
        for line in BufReader::new(stderr).lines().map_while(Result::ok) {
            if sender.send(line).is_err() {
                return;
            }
        }
    });
    let (mut flat, mut before, mut last) = (None, Stat::default(), String::new());
    loop {
        let line = match lines.recv_timeout(limit) {
            Ok(line) => line,
            Err(RecvTimeoutError::Disconnected) => return Ok((flat, last)),
            Err(RecvTimeoutError::Timeout) => {
                let what = "parshall loadtest said nothing".to_owned();
                return Err(Error::Timeout {
                    what,
                    seconds: limit.as_secs(),
                    log: last,
                });
            }
        };
        let Ok(event) = serde_json::from_str::<Event>(&line) else {
            if !line.trim().is_empty() {
                last = line;
            }
            continue;
        };
        match event {
            Event::TrialStart { flat_out: true, .. } => before = Stat::now()?,
            Event::TrialEnd {
                flat_out: true,
                sent,
                received,
                seconds,
                ..
            } => {
                flat = Some(FlatOut {
                    sent,
                    received,
                    seconds,
                    before: before.clone(),
                    after: Stat::now()?,
                });
            }
            _ => {}
        }
        watch(&event);
    }
}

fn bad(message: &str) -> Error {
    Error::Output {
        program: "parshall loadtest".into(),
        message: message.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TALK: &str = concat!(
        "some log line\n",
        "{\"event\":\"trial-start\",\"flat_out\":true}\n",
        "{\"event\":\"trial-end\",\"flat_out\":true,\"sent\":100,\"received\":99,\"seconds\":1.0,\"valid\":true}\n",
        "{\"event\":\"trial-start\",\"offered_pps\":5e6}\n",
        "{\"event\":\"something-newer\"}\n",
    );

    #[test]
    fn events_are_read_and_other_lines_kept() {
        let mut seen = 0;
        let (flat, last) = listen(TALK.as_bytes(), Duration::from_secs(5), &mut |_: &Event| {
            seen += 1
        })
        .unwrap();
        assert_eq!(seen, 3);
        let flat = flat.unwrap();
        assert_eq!((flat.sent, flat.received), (100, 99));
        assert_eq!(last, "{\"event\":\"something-newer\"}");
    }

    #[test]
    fn result_is_read() {
        let text = r#"{"sender":"live","search":{"valid":true,"max_pps":1e6,"l1_bps":6.7e8,"loss":0.0,"saturation_pps":1.1e6,
            "trials":[{"offered_pps":1e6,"forwarded_pps":1e6,"loss":0.0,"valid":true}],"newer":1}}"#;
        let outcome: Outcome = serde_json::from_str(text).unwrap();
        assert_eq!(outcome.search.trials.len(), 1);
        assert_eq!(outcome.search.saturation_pps, Some(1.1e6));
    }
}
