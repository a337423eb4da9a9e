//! A comparison as text, as ministat prints it.

use std::fmt::Write;

use super::number::general;
use super::picture::{self, mark};
use super::{Confidence, Difference, Sample};

/// What is shown beside the figures of each sample.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Show {
    /// A picture so many characters wide.
    pub picture: Option<usize>,
    /// A line for the bar of each sample.
    pub separate_bars: bool,
    /// The difference of each other sample to the first one, with this confidence.
    pub difference: Option<Confidence>,
}

/// The samples, [`MOST`](picture::MOST) at most, as ministat prints them.
pub fn samples(samples: &[Sample], show: Show) -> String {
    let mut text = String::new();
    for (n, sample) in samples.iter().enumerate() {
        line(&mut text, format_args!("{} {}", mark(n), sample.name));
    }
    if let Some(width) = show.picture {
        let frame = format!("+{}+", "-".repeat(width));
        match picture::lines(samples, width, show.separate_bars) {
            None => line(&mut text, format_args!("[no plot, span is zero width]")),
            Some(lines) => {
                line(&mut text, format_args!("{frame}"));
                for inner in lines {
                    line(&mut text, format_args!("|{inner}|"));
                }
                line(&mut text, format_args!("{frame}"));
            }
        }
    }
    let titles = ["Min", "Max", "Median", "Avg", "Stddev"].map(|title| format!("{title:>13}"));
    line(&mut text, format_args!("    N {}", titles.join(" ")));
    for (n, sample) in samples.iter().enumerate() {
        let figures = [
            sample.min(),
            sample.max(),
            sample.median(),
            sample.mean(),
            sample.deviation(),
        ];
        let figures = figures.map(|figure| format!("{:>13}", general(figure, 8)));
        line(
            &mut text,
            format_args!("{} {:>3} {}", mark(n), sample.n(), figures.join(" ")),
        );
        if let Some(confidence) = show.difference.filter(|_| n > 0) {
            let difference = Difference::of(&samples[0], sample, confidence);
            text += &proof(difference, confidence);
        }
    }
    text
}

/// What a difference proves.
fn proof(of: Difference, confidence: Confidence) -> String {
    let level = confidence.percent();
    if !of.is_proven() {
        return format!("No difference proven at {level:.1}% confidence\n");
    }
    let [difference, error, percent, percent_error, pooled] = [
        of.difference,
        of.error,
        of.percent,
        of.percent_error,
        of.pooled,
    ]
    .map(|figure| general(figure, 6));
    format!(
        "Difference at {level:.1}% confidence\n\
         \t{difference} +/- {error}\n\
         \t{percent}% +/- {percent_error}%\n\
         \t(Student's t, pooled s = {pooled})\n"
    )
}

fn line(text: &mut String, content: std::fmt::Arguments<'_>) {
    // Writing to a String cannot fail.
    let _ = writeln!(text, "{content}");
}
