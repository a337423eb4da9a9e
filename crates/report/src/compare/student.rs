//! Student's t test of two samples of equal variance.

use std::str::FromStr;

use statrs::distribution::{ContinuousCDF, Normal, StudentsT};

use super::Sample;

/// Level of confidence in percent.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Confidence(f64);

/// Levels that ministat knows, and the probability that is below the quantile of each. For the last
/// one it takes the quantile of 99.8 %, and so it is here.
const LEVELS: [(f64, f64); 6] = [
    (80.0, 0.9),
    (90.0, 0.95),
    (95.0, 0.975),
    (98.0, 0.99),
    (99.0, 0.995),
    (99.5, 0.999),
];

/// Most degrees of freedom that the t distribution is taken for; above, the normal distribution is,
/// as in ministat, and the error is below one percent.
const MOST_DEGREES: usize = 100;

impl Default for Confidence {
    fn default() -> Self {
        Self(95.0)
    }
}

impl FromStr for Confidence {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let level = text.trim_end_matches('%').parse();
        let known = level
            .ok()
            .filter(|wanted| LEVELS.iter().any(|(level, _)| level == wanted));
        known.map(Self).ok_or_else(|| {
            let all = LEVELS.map(|(level, _)| level.to_string()).join(", ");
            format!("confidence is one of {all}, in percent")
        })
    }
}

impl Confidence {
    /// The level in percent.
    pub const fn percent(self) -> f64 {
        self.0
    }

    /// Standard errors that a difference must exceed, to three decimals as tables have them.
    fn quantile(self, degrees: usize) -> f64 {
        let level = LEVELS.iter().find(|(level, _)| *level == self.0);
        let below = level.map_or(0.975, |(_, below)| *below);
        // Both distributions exist: a scale of 1 and one degree of freedom or more.
        let t = match StudentsT::new(0.0, 1.0, degrees as f64) {
            Ok(student) if degrees <= MOST_DEGREES => student.inverse_cdf(below),
            _ => Normal::standard().inverse_cdf(below),
        };
        (t * 1000.0).round() / 1000.0
    }
}

impl Sample {
    /// Half the width of the interval in which the mean of what the sample is of lies, with the
    /// confidence asked for.
    pub fn mean_error(&self, confidence: Confidence) -> f64 {
        confidence.quantile(self.n() - 1) * self.deviation() / (self.n() as f64).sqrt()
    }
}

/// Difference of the means of two samples.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Difference {
    /// The second mean less the first.
    pub difference: f64,
    /// Half the width of the interval in which the difference is, with the confidence asked for.
    pub error: f64,
    /// Standard deviation of both samples together.
    pub pooled: f64,
    /// The difference in percent of the first mean.
    pub percent: f64,
    /// Half the width of its interval, in percent of the first mean.
    pub percent_error: f64,
}

impl Difference {
    /// Difference of `b` to `a`.
    pub fn of(a: &Sample, b: &Sample, confidence: Confidence) -> Self {
        let (n, m) = (a.n() as f64, b.n() as f64);
        let squares = (n - 1.0) * a.deviation().powi(2) + (m - 1.0) * b.deviation().powi(2);
        let degrees = a.n() + b.n() - 2;
        let pooled = (squares / degrees as f64).sqrt();
        let error = confidence.quantile(degrees) * pooled * (1.0 / n + 1.0 / m).sqrt();
        let difference = b.mean() - a.mean();
        Self {
            difference,
            error,
            pooled,
            percent: difference * 100.0 / a.mean(),
            percent_error: error * 100.0 / a.mean(),
        }
    }

    /// True if the difference is greater than its error.
    pub fn is_proven(self) -> bool {
        self.difference.abs() > self.error
    }
}
