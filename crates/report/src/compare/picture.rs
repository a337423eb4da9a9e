//! Samples on a line of characters: a mark for each value, stacked where they fall together, and
//! below a bar from one standard deviation below the mean to one above it, with M at the median and
//! A at the mean.

use super::Sample;

/// Marks by the samples that have a value there, each a bit: the first one, the second one, both, the
/// third one, and so on.
const MARKS: &[u8; 8] = b" x+*%#@O";

/// Most samples that can be told apart.
pub const MOST: usize = MARKS.len() - 1;

/// The mark of the `n`-th sample, from 0, below [`MOST`].
pub(super) fn mark(n: usize) -> char {
    character(n as u8 + 1)
}

/// The mark of these samples.
fn character(samples: u8) -> char {
    char::from(MARKS[usize::from(samples) % MARKS.len()])
}

/// The lines of a picture so many characters wide, frame not included. None if all values are the
/// same, so that there is nothing to see.
pub fn lines(samples: &[Sample], width: usize, separate_bars: bool) -> Option<Vec<String>> {
    let scale = Scale::of(samples, width)?;
    let mut rows: Vec<Vec<u8>> = Vec::new();
    for (n, sample) in (1u8..).zip(samples) {
        let mut heights = vec![0; width];
        for value in sample.values() {
            let at = scale.at(*value);
            if rows.len() == heights[at] {
                rows.push(vec![0; width]);
            }
            rows[heights[at]][at] |= n;
            heights[at] += 1;
        }
    }
    let marks = |row: &Vec<u8>| row.iter().map(|of| character(*of)).collect();
    let marks = rows.iter().rev().map(marks);
    Some(marks.chain(bars(samples, &scale, separate_bars)).collect())
}

fn bars(samples: &[Sample], scale: &Scale, separate: bool) -> Vec<String> {
    let mut bars: Vec<Vec<char>> = Vec::new();
    for sample in samples {
        if separate || bars.is_empty() {
            bars.push(vec![' '; scale.width]);
        }
        let Some(bar) = bars.last_mut() else {
            continue;
        };
        let [low, high] =
            [-1.0, 1.0].map(|sign| scale.at(sample.mean() + sign * sample.deviation()));
        for blank in bar[low..high].iter_mut().filter(|c| **c == ' ') {
            *blank = '_';
        }
        for (at, c) in [
            (low, '|'),
            (high, '|'),
            (scale.at(sample.median()), 'M'),
            (scale.at(sample.mean()), 'A'),
        ] {
            bar[at] = c;
        }
    }
    bars.into_iter()
        .map(|bar| bar.into_iter().collect())
        .collect()
}

/// Where values are on a line.
struct Scale {
    /// The value at the left edge of the first character.
    first: f64,
    /// The width of a character.
    step: f64,
    width: usize,
}

impl Scale {
    /// From the least to the greatest of all values, means and deviations, each at the middle of a
    /// character.
    fn of(samples: &[Sample], width: usize) -> Option<Self> {
        let edges = samples.iter().flat_map(|sample| {
            let (mean, deviation) = (sample.mean(), sample.deviation());
            [
                sample.min(),
                sample.max(),
                mean - deviation,
                mean + deviation,
            ]
        });
        let [low, high] = edges.fold([f64::INFINITY, f64::NEG_INFINITY], |[low, high], edge| {
            [low.min(edge), high.max(edge)]
        });
        let step = (high - low) / (width as f64 - 1.0);
        (step > 0.0 && step.is_finite()).then_some(Self {
            first: low - 0.5 * step,
            step,
            width,
        })
    }

    fn at(&self, value: f64) -> usize {
        let at = ((value - self.first) / self.step) as usize;
        at.min(self.width - 1)
    }
}
