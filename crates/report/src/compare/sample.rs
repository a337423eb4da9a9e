//! A set of measurements.

/// Fewest values that a sample needs: with two of them any spread may be chance.
pub const LEAST: usize = 3;

/// A set of measurements of one thing, and what describes it.
#[derive(Debug, Clone, PartialEq)]
pub struct Sample {
    /// Its name: the file that it comes from, or what was measured.
    pub name: String,
    /// Its values, the least first; at least [`LEAST`].
    values: Vec<f64>,
    mean: f64,
    deviation: f64,
}

impl Sample {
    /// A sample of these values. None if they are fewer than [`LEAST`], or one is not a finite
    /// number.
    pub fn new(name: impl Into<String>, mut values: Vec<f64>) -> Option<Self> {
        if values.len() < LEAST || values.iter().any(|value| !value.is_finite()) {
            return None;
        }
        let n = values.len() as f64;
        let mean = values.iter().sum::<f64>() / n;
        values.sort_by(f64::total_cmp);
        let squares = values.iter().map(|value| (value - mean).powi(2));
        Some(Self {
            name: name.into(),
            deviation: (squares.sum::<f64>() / (n - 1.0)).sqrt(),
            mean,
            values,
        })
    }

    /// Its values, the least first.
    pub fn values(&self) -> &[f64] {
        &self.values
    }

    /// Number of values.
    pub fn n(&self) -> usize {
        self.values.len()
    }

    /// Least value.
    pub fn min(&self) -> f64 {
        self.values[0]
    }

    /// Greatest value.
    pub fn max(&self) -> f64 {
        self.values[self.n() - 1]
    }

    /// Median; of an even number of values the upper one of the two in the middle, as ministat has
    /// it.
    pub fn median(&self) -> f64 {
        self.values[self.n() / 2]
    }

    /// Arithmetic mean.
    pub fn mean(&self) -> f64 {
        self.mean
    }

    /// Standard deviation of what the sample is of (with Bessel's correction).
    pub fn deviation(&self) -> f64 {
        self.deviation
    }
}
