//! A summary of repeated measurements.

/// Middle and range of a set of measurements.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Summary {
    /// Number of values.
    pub n: usize,
    /// Smallest value.
    pub min: f64,
    /// Median; of an even number of values, the mean of the two in the middle.
    pub median: f64,
    /// Largest value.
    pub max: f64,
}

impl Summary {
    /// Summarizes `values`. None if there are none, or if one is infinite or not a number.
    pub fn of(mut values: Vec<f64>) -> Option<Self> {
        if values.iter().any(|v| !v.is_finite()) {
            return None;
        }
        values.sort_by(f64::total_cmp);
        let n = values.len();
        Some(Self {
            n,
            min: *values.first()?,
            median: f64::midpoint(values[(n - 1) / 2], values[n / 2]),
            max: *values.last()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn middle_and_range() {
        let summary = |n, min, median, max| {
            Some(Summary {
                n,
                min,
                median,
                max,
            })
        };
        let of = |values: &[f64]| Summary::of(values.to_vec());
        assert_eq!(of(&[4.0, 1.0, 3.0, 2.0]), summary(4, 1.0, 2.5, 4.0));
        assert_eq!(of(&[9.0, 1.0, 3.0]), summary(3, 1.0, 3.0, 9.0));
        assert_eq!(of(&[7.0]), summary(1, 7.0, 7.0, 7.0));
        assert_eq!(of(&[]), None);
        assert_eq!(of(&[1.0, f64::NAN]), None);
        assert_eq!(of(&[1.0, f64::INFINITY]), None);
    }
}
