//! Shows the progress of a load test on standard error.

use std::io::{IsTerminal, Write};
use std::time::Duration;

use clap::ValueEnum;
use indicatif::{ProgressBar, ProgressStyle};

use loadgen::measure::ramp::{Plan, Sample};
use loadgen::measure::search::Event;
use loadgen::model::units::Pps;

use super::text::percent;

/// The form of the progress.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum Style {
    /// A bar on a terminal, otherwise plain lines
    #[default]
    Auto,
    /// A line for each trial or second
    Plain,
    /// One JSON object a line
    Json,
    /// Nothing
    None,
}

/// Shows the progress of one test.
pub struct Progress {
    style: Style,
    bar: Option<ProgressBar>,
}

impl Progress {
    /// For a test that takes about this long.
    pub fn new(style: Style, length: Duration) -> Progress {
        let on_terminal = style == Style::Auto && std::io::stderr().is_terminal();
        Progress {
            style,
            bar: on_terminal.then(|| bar(length.as_secs_f64())),
        }
    }

    /// Shows that a trial of a search begins or ends.
    pub fn event(&self, event: &Event) {
        if self.style == Style::Json {
            return json(event);
        }
        match event {
            Event::WarmUp => self.doing("warm-up"),
            Event::TrialStart {
                flat_out,
                offered_pps,
            } => self.doing(&rate(*flat_out, *offered_pps)),
            Event::TrialEnd {
                flat_out,
                offered_pps,
                sent,
                received,
                forwarded_pps,
                seconds,
                valid,
                late,
            } => {
                let lost = sent.saturating_sub(*received) as f64 / (*sent).max(1) as f64;
                self.line(&format!(
                    "{}: sent {:.3}, came back {:.3}, loss {}{}",
                    rate(*flat_out, *offered_pps),
                    Pps(*sent as f64 / seconds),
                    Pps(*forwarded_pps),
                    percent(lost),
                    match (valid, late) {
                        (true, _) => "",
                        (false, true) => ", not valid: sending was held up",
                        (false, false) => ", not valid: the generator fell short",
                    },
                ));
            }
            Event::Bounds {
                allowed,
                lower_pps,
                upper_pps,
            } => {
                let side =
                    |pps: Option<f64>| pps.map_or("?".into(), |pps| format!("{:.3}", Pps(pps)));
                self.line(&format!(
                    "  with no more than {} loss: from {} to {}",
                    percent(*allowed),
                    side(*lower_pps),
                    side(*upper_pps)
                ));
            }
        }
        if let Some(bar) = &self.bar {
            bar.set_position(bar.elapsed().as_millis() as u64);
        }
    }

    /// Shows a sample of a ramp.
    pub fn sample(&self, sample: &Sample, plan: &Plan) {
        if self.style == Style::Json {
            return json(sample);
        }
        let (sent, received) = (sample.sent_pps(), sample.received_pps());
        let lost = ((sent - received) / sent.max(f64::MIN_POSITIVE)).max(0.0);
        let text = format!(
            "sent {:.3}, came back {:.3}, loss {}{}",
            Pps(sent),
            Pps(received),
            percent(lost),
            if sample.valid {
                ""
            } else {
                ", the generator falls short"
            },
        );
        if let Some(bar) = &self.bar {
            bar.set_position(((plan.warmup.as_secs_f64() + sample.at) * 1000.0) as u64);
            bar.set_message(text);
        } else {
            self.line(&format!("{:>7.1} s  {text}", sample.at));
        }
    }

    /// Shows what is going on, if there is a bar.
    pub fn doing(&self, what: &str) {
        if let Some(bar) = &self.bar {
            bar.set_message(what.to_owned());
        }
    }

    fn line(&self, text: &str) {
        match (&self.bar, self.style) {
            (Some(bar), _) => bar.println(text),
            (None, Style::Auto | Style::Plain) => tell(text),
            (None, _) => {}
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

/// A bar for the given seconds, which moves by itself.
pub fn bar(seconds: f64) -> ProgressBar {
    let bar = ProgressBar::new((seconds * 1000.0) as u64);
    // If our template were wrong, the default one would do.
    if let Ok(style) = ProgressStyle::with_template("{elapsed:>4} {bar:24} {wide_msg}") {
        bar.set_style(style.progress_chars("=> "));
    }
    // Smooth to the eye, and nothing to the processor.
    bar.enable_steady_tick(Duration::from_millis(200));
    bar
}

fn json(value: &impl serde::Serialize) {
    if let Ok(text) = serde_json::to_string(value) {
        tell(&text);
    }
}

/// Prints a line to standard error. The test goes on if nobody reads it.
fn tell(line: &str) {
    let _ = writeln!(std::io::stderr().lock(), "{line}");
}

fn rate(flat_out: bool, offered: f64) -> String {
    if flat_out {
        "flat out".to_owned()
    } else {
        format!("{:.3}", Pps(offered))
    }
}
