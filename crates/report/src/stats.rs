//! Statistics of repeated measurements: summaries, and the comparison of two sets at 95 %
//! confidence.

use std::fmt;

/// Summary of a set of measurements.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Summary {
    /// Number of values.
    pub n: usize,
    /// Smallest value.
    pub min: f64,
    /// Largest value.
    pub max: f64,
    /// Median; of an even number of values, the mean of the two in the middle.
    pub median: f64,
    /// Arithmetic mean.
    pub mean: f64,
    /// Standard deviation of the sample (n - 1); 0 for a single value.
    pub stddev: f64,
}

impl Summary {
    /// Summarizes `values`. None if there are none, or if one is infinite or not a number.
    #[must_use]
    pub fn of(values: &[f64]) -> Option<Summary> {
        if values.is_empty() || values.iter().any(|v| !v.is_finite()) {
            return None;
        }
        let n = values.len();
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        let median = f64::midpoint(sorted[(n - 1) / 2], sorted[n / 2]);
        let mean = values.iter().sum::<f64>() / n as f64;
        let squares: f64 = values.iter().map(|v| (v - mean) * (v - mean)).sum();
        let stddev = if n > 1 {
            (squares / (n - 1) as f64).sqrt()
        } else {
            0.0
        };
        Some(Summary {
            n,
            min: sorted[0],
            max: sorted[n - 1],
            median,
            mean,
            stddev,
        })
    }

    fn squares(&self) -> f64 {
        self.stddev * self.stddev * (self.n.saturating_sub(1)) as f64
    }
}

/// How a set of measurements differs from a reference set: Student's t at 95 %, pooled standard
/// deviation.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Difference {
    /// Difference of the means, in the measurements' unit.
    pub value: f64,
    /// Half width of the confidence interval of `value`.
    pub error: f64,
    /// Difference in percent of the reference's mean.
    pub percent: f64,
    /// Half width of the confidence interval of `percent`, which includes the spread of the
    /// reference.
    pub percent_error: f64,
    /// Pooled standard deviation.
    pub pooled: f64,
}

impl Difference {
    /// Compares `set` with `reference`. None if either has fewer than two values, or if the
    /// reference's mean is 0.
    #[must_use]
    pub fn between(reference: &Summary, set: &Summary) -> Option<Difference> {
        if reference.n < 2 || set.n < 2 || reference.mean == 0.0 {
            return None;
        }
        let (n, m) = (reference.n as f64, set.n as f64);
        let freedom = n + m - 2.0;
        let t = student95(reference.n + set.n - 2);
        let pooled = ((reference.squares() + set.squares()) / freedom).sqrt();
        let value = set.mean - reference.mean;
        // Error propagation of the quotient of two means.
        let ratio = set.mean / reference.mean;
        let relative =
            (set.squares() + reference.squares() * ratio * ratio) * (n + m) / (n * m * freedom);
        Some(Difference {
            value,
            error: t * pooled * (1.0 / n + 1.0 / m).sqrt(),
            percent: 100.0 * value / reference.mean,
            percent_error: 100.0 * t * relative.sqrt() / reference.mean.abs(),
            pooled,
        })
    }

    /// Whether the difference is more than chance at 95 % confidence.
    #[must_use]
    pub fn is_proven(&self) -> bool {
        self.value.abs() > self.error
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.is_proven() {
            return write!(f, "no difference proven at 95 % confidence");
        }
        write!(f, "{:+.2} % +/- {:.2} %", self.percent, self.percent_error)
    }
}

/// Two-sided 95 % quantile of Student's t distribution for `freedom` degrees, 1 or more.
#[must_use]
pub fn student95(freedom: usize) -> f64 {
    const TABLE: [f64; 30] = [
        12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160,
        2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056,
        2.052, 2.048, 2.045, 2.042,
    ];
    match freedom {
        0 => f64::INFINITY,
        1..=30 => TABLE[freedom - 1],
        // Expansion about the normal quantile (Abramowitz and Stegun 26.7.5); three digits are
        // right in this range.
        _ => {
            let (z, v) = (1.959_964_f64, freedom as f64);
            z + (z.powi(3) + z) / (4.0 * v)
                + (5.0 * z.powi(5) + 16.0 * z.powi(3) + 3.0 * z) / (96.0 * v * v)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: Summary = Summary {
        n: 5,
        min: 4500078.0,
        max: 4735822.0,
        median: 4648451.0,
        mean: 4648293.8,
        stddev: 94545.404,
    };
    const B: Summary = Summary {
        n: 5,
        min: 4925106.0,
        max: 5198632.0,
        median: 5104512.0,
        mean: 5088362.1,
        stddev: 102920.87,
    };
    const C: Summary = Summary {
        n: 5,
        min: 5765684.0,
        max: 5801231.5,
        median: 5783115.0,
        mean: 5785004.7,
        stddev: 13724.265,
    };

    /// Compares six significant digits, as many as the published comparison has.
    fn same(ours: f64, printed: f64) {
        assert!((ours / printed - 1.0).abs() < 5e-6, "{ours} {printed}");
    }

    #[test]
    fn published_comparisons() {
        let b = Difference::between(&A, &B).unwrap();
        same(b.value, 440_068.0);
        same(b.error, 144_126.0);
        same(b.percent, 9.46731);
        same(b.percent_error, 3.23827);
        same(b.pooled, 98821.9);
        assert!(b.is_proven());
        let c = Difference::between(&A, &C).unwrap();
        same(c.value, 1.13671e6);
        same(c.error, 98524.2);
        same(c.percent, 24.4544);
        same(c.percent_error, 2.62824);
        same(c.pooled, 67554.4);
    }

    /// Mean and deviation give the published sets' missing values; the summary of the whole set is
    /// then the printed one.
    #[test]
    fn published_summary() {
        for set in [A, B, C] {
            let known = [set.min, set.median, set.max];
            let n = set.n as f64;
            let sum = n * set.mean - known.iter().sum::<f64>();
            let squares = set.stddev * set.stddev * (n - 1.0)
                - known.iter().map(|v| (v - set.mean).powi(2)).sum::<f64>();
            let (centre, spread) = (
                sum / 2.0,
                ((squares - 2.0 * (sum / 2.0 - set.mean).powi(2)) / 2.0)
                    .max(0.0)
                    .sqrt(),
            );
            let values = [
                set.max,
                centre - spread,
                set.min,
                centre + spread,
                set.median,
            ];
            let ours = Summary::of(&values).unwrap();
            same(ours.mean, set.mean);
            same(ours.stddev, set.stddev);
            assert_eq!(
                (ours.n, ours.min, ours.max, ours.median),
                (5, set.min, set.max, set.median)
            );
        }
    }

    #[test]
    fn small_sets() {
        let s = Summary::of(&[4.0, 1.0, 3.0, 2.0]).unwrap();
        assert_eq!((s.median, s.mean, s.min, s.max), (2.5, 2.5, 1.0, 4.0));
        assert!((s.stddev - (5.0f64 / 3.0).sqrt()).abs() < 1e-12);
        assert_eq!(Summary::of(&[7.0]).unwrap().stddev, 0.0);
        assert_eq!(Summary::of(&[]), None);
        assert_eq!(Summary::of(&[f64::NAN]), None);
        let one = Summary::of(&[1.0]).unwrap();
        assert_eq!(Difference::between(&one, &s), None);
        let equal = Difference::between(&s, &s).unwrap();
        assert!(!equal.is_proven() && equal.to_string().contains("no difference"));
    }

    #[test]
    fn quantiles() {
        assert_eq!(student95(8), 2.306);
        for (freedom, printed) in [
            (31, 2.040),
            (40, 2.021),
            (60, 2.000),
            (120, 1.980),
            (1_000_000, 1.960),
        ] {
            assert!((student95(freedom) - printed).abs() < 6e-4, "{freedom}");
        }
    }
}
