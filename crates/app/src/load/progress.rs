//! What a load test shows while it runs, on standard error.

use std::io::{IsTerminal, Write};
use std::time::Duration;

use clap::ValueEnum;
use indicatif::{ProgressBar, ProgressStyle};
use loadgen::measure::ramp::{Plan, Sample};
use loadgen::measure::search::Event;
use loadgen::model::units::Pps;

use super::text::percent;

/// How progress is shown.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum Style {
    /// A bar on a terminal, else plain lines
    #[default]
    Auto,
    /// A line for each trial or second
    Plain,
    /// A JSON object a line
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
    /// For a test of about this length.
    pub fn new(style: Style, length: Duration) -> Progress {
        let on_terminal = style == Style::Auto && std::io::stderr().is_terminal();
        Progress {
            style,
            bar: on_terminal.then(|| bar(length.as_secs_f64())),
        }
    }

    /// A trial of a search begins or ends.
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
                seconds,
                valid,
            } => {
                let lost = sent.saturating_sub(*received) as f64 / (*sent).max(1) as f64;
                self.line(&format!(
                    "{}: sent {:.3}, came back {:.3}, loss {}{}",
                    rate(*flat_out, *offered_pps),
                    Pps(*sent as f64 / seconds),
                    Pps(*received as f64 / seconds),
                    percent(lost),
                    if *valid {
                        ""
                    } else {
                        ", not valid: the generator fell short"
                    },
                ));
            }
        }
        if let Some(bar) = &self.bar {
            bar.set_position(bar.elapsed().as_millis() as u64);
        }
    }

    /// A second of a ramp has gone by.
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

    /// Says what is going on, where there is a bar to say it at.
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

/// A bar over so many seconds, which moves by itself.
pub fn bar(seconds: f64) -> ProgressBar {
    let bar = ProgressBar::new((seconds * 1000.0) as u64);
    // The template is a constant of ours: if it were wrong, the default one serves.
    if let Ok(style) = ProgressStyle::with_template("{elapsed:>4} {bar:24} {wide_msg}") {
        bar.set_style(style.progress_chars("=> "));
    }
    bar.enable_steady_tick(Duration::from_millis(200));
    bar
}

fn json(value: &impl serde::Serialize) {
    if let Ok(text) = serde_json::to_string(value) {
        tell(&text);
    }
}

/// A line on standard error; the test goes on if nobody reads it.
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
