//! Runs `parshall loadtest` and reads its output.

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

use serde::Deserialize;

use loadgen::device::{Count, Sender};
use loadgen::histogram::Times;
use loadgen::measure::search::{Event, Found};

use crate::cpu::{Stat, Time};
use crate::invocation::{Loadtest, Search};
use crate::power::{Meter, Metering};
use sandbox::{Error, Netns, Spawn, patience};

/// A process that has closed its standard error ends within this time.
const ENDING: Duration = Duration::from_secs(10);

/// The output of `parshall loadtest --search ... --json -`.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Outcome {
    /// Way in which packets were made.
    pub sender: Sender,
    /// The result of the search.
    pub search: Found,
}

/// The part `parshall` of what `parshall loadtest --duration ... --json -` writes.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Held {
    /// True if the generator sent what was offered.
    pub valid: bool,
    /// Why not.
    pub why: String,
    /// Each stream.
    pub streams: Vec<HeldStream>,
}

/// What became of a stream.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct HeldStream {
    /// What was sent.
    pub sent: Count,
    /// What came back.
    pub received: Count,
    /// How long its packets took, if it measures that.
    pub flow: Option<Times>,
}

/// The trial flat out, with the processor time used.
#[derive(Debug, Clone, Default)]
pub struct FlatOut {
    /// Packets sent.
    pub sent: u64,
    /// Packets that came back.
    pub received: u64,
    /// Length in seconds.
    pub seconds: f64,
    /// Watts that the machine took; `None`: nothing measures them.
    pub watts: Option<f64>,
    before: Stat,
    after: Stat,
}

impl FlatOut {
    /// Processor time of the processors for which `which` is true.
    pub fn time(&self, which: impl Fn(usize) -> bool) -> Time {
        self.after.since(&self.before, which)
    }
}

/// Runs a load test inside a namespace, or in ours, and passes each event to `watch`. Returns its
/// result, and the trial flat out if there was one.
///
/// # Errors
/// If it cannot be started, fails, prints something unexpected, or takes longer than twice its
/// budget plus a minute.
pub fn run(
    exe: &Path,
    netns: Option<&Netns>,
    test: &Loadtest<'_>,
    meter: Option<&Meter>,
    watch: impl FnMut(&Event),
) -> Result<(Outcome, Option<FlatOut>), Error> {
    let (text, said) = output(exe, netns, test, meter, watch)?;
    let outcome = serde_json::from_str(&text).map_err(|e| bad(&e.to_string()))?;
    Ok((outcome, said))
}

/// Runs a load test at one rate inside a namespace; its result.
///
/// # Errors
/// As [`run`].
pub fn hold(exe: &Path, netns: &Netns, test: &Loadtest<'_>) -> Result<Held, Error> {
    #[derive(Deserialize)]
    struct Answer {
        parshall: Held,
    }
    let (text, _) = output(exe, Some(netns), test, None, |_| ())?;
    let answer: Answer = serde_json::from_str(&text).map_err(|e| bad(&e.to_string()))?;
    Ok(answer.parshall)
}

/// Runs a load test; what it wrote, and the trial flat out.
fn output(
    exe: &Path,
    netns: Option<&Netns>,
    test: &Loadtest<'_>,
    meter: Option<&Meter>,
    mut watch: impl FnMut(&Event),
) -> Result<(String, Option<FlatOut>), Error> {
    let mut spawn = Spawn::new(exe.display().to_string())
        .args(test.args())
        .piped();
    if !test.others.is_empty() {
        spawn = spawn.on(test.others);
    }
    let mut process = match netns {
        Some(netns) => spawn.inside(netns),
        None => spawn,
    }
    .start()?;
    let Some((mut stdout, stderr)) = process.take_output() else {
        return Err(bad("no output"));
    };
    let (sender, result) = mpsc::channel();
    std::thread::spawn(move || {
        let mut text = String::new();
        let read = stdout.read_to_string(&mut text).map(|_| text);
        // Perhaps nobody is waiting for it any more.
        let _ = sender.send(read);
    });
    let budget = match test.search {
        Search::MaxRate(budget) => budget,
        Search::FlatOut => Duration::ZERO,
        Search::Hold { length, .. } => length,
    };
    let limit = patience(2 * budget + Duration::from_secs(60));
    let (said, last) = listen(stderr, limit, meter, &mut watch)?;
    let status = process.wait(patience(ENDING))?;
    if !status.success() {
        return Err(Error::Failed {
            command: "parshall loadtest".into(),
            message: last,
        });
    }
    let text = result
        .recv_timeout(patience(ENDING))
        .map_err(|_| bad("its output does not end"))?
        .map_err(|e| Error::file("standard output", e))?;
    Ok((text, said))
}

/// Reads events until the pipe is closed, but for no longer than `limit`. Returns the trial flat
/// out and the last line that was not an event.
fn listen(
    stderr: impl Read + Send + 'static,
    limit: Duration,
    meter: Option<&Meter>,
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
    let end = Instant::now() + limit;
    let (mut flat, mut before, mut last) = (None, Stat::default(), String::new());
    let mut metering = None;
    loop {
        let left = end.saturating_duration_since(Instant::now());
        let line = match lines.recv_timeout(left) {
            Ok(line) if !left.is_zero() => line,
            Err(RecvTimeoutError::Disconnected) => return Ok((flat, last)),
            Ok(_) | Err(RecvTimeoutError::Timeout) => {
                let what = "parshall loadtest did not end".to_owned();
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
            Event::TrialStart { flat_out: true, .. } => {
                metering = meter.map(Meter::start).transpose()?;
                before = Stat::now()?;
            }
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
                    watts: metering.take().map(Metering::watts).transpose()?,
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
        "{\"event\":\"trial-start\",\"flat_out\":true,\"offered_pps\":0.0}\n",
        "{\"event\":\"trial-end\",\"flat_out\":true,\"offered_pps\":0.0,\"sent\":100,\"received\":99,\"seconds\":1.0,\"valid\":true}\n",
        "{\"event\":\"trial-start\",\"flat_out\":false,\"offered_pps\":5e6}\n",
        "{\"event\":\"something-newer\"}\n",
    );

    #[test]
    fn events_are_read_and_other_lines_kept() {
        let mut seen = 0;
        let meter = Meter::Command("echo 20".into());
        let (flat, last) = listen(
            TALK.as_bytes(),
            Duration::from_secs(5),
            Some(&meter),
            &mut |_: &Event| seen += 1,
        )
        .unwrap();
        assert_eq!(seen, 3);
        let flat = flat.unwrap();
        assert_eq!((flat.sent, flat.received), (100, 99));
        assert_eq!(flat.watts, Some(20.0));
        assert_eq!(last, "{\"event\":\"something-newer\"}");
    }

    /// Reading stops at the limit even if events keep coming.
    #[test]
    fn events_without_end_are_given_up() {
        let (reader, mut writer) = std::io::pipe().unwrap();
        std::thread::spawn(move || {
            while std::io::Write::write_all(&mut writer, TALK.as_bytes()).is_ok() {
                std::thread::sleep(Duration::from_millis(10));
            }
        });
        let error = listen(
            reader,
            Duration::from_millis(200),
            None,
            &mut |_: &Event| {},
        )
        .unwrap_err();
        assert!(matches!(error, Error::Timeout { .. }), "{error}");
    }

    #[test]
    fn result_is_read() {
        let found = Found {
            valid: true,
            max_pps: 1e6,
            ..Found::default()
        };
        let text = serde_json::json!({ "sender": "live", "search": found, "newer": 1 }).to_string();
        let outcome: Outcome = serde_json::from_str(&text).unwrap();
        assert_eq!(outcome.search, found);
    }
}
