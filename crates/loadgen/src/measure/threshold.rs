//! Estimates the rate at which a device stops keeping up from trials that it passed or failed.
//!
//! Trials at the same rate do not always end alike: another program takes the processor, a cache is
//! cold. So the threshold is the rate that passes as often as it fails (in MLRsearch, an exceed
//! ratio of one half). What is known of it is a probability for each rate, which every verdict
//! updates by Bayes' rule. Taking the highest rate that ever passed would report the luckiest trial
//! instead. How much verdicts scatter is unknown too, so several spreads are considered side by
//! side, and the verdicts make the wrong ones unlikely.

/// Relative distance between neighboring rates.
const GRAIN: f64 = 0.001;
/// Spreads considered: standard deviations of the logarithm of the rate, all equally likely at
/// first.
const SPREADS: [f64; 5] = [0.002, 0.01, 0.03, 0.1, 0.2];
/// Share of trials whose verdict has nothing to do with the rate.
const ODD: f64 = 0.02;
/// At first, half of the probability lies within this relative distance of the likely rate. The
/// rest falls off slowly, so that a search that starts in the wrong place leaves it in growing
/// steps.
const CLOSE: f64 = 0.03;

/// The highest rate that passes, as far as it is known. All rates have the same unit, whichever it
/// is.
#[derive(Debug, Clone)]
pub struct Threshold {
    /// Logarithm of the lowest rate considered.
    lowest: f64,
    /// Probability of each rate and spread; the sum is 1.
    share: Vec<[f64; SPREADS.len()]>,
}

impl Threshold {
    /// Before any trial: from `lowest` to `highest`, most likely near `likely`. All are above 0.
    pub fn near(likely: f64, lowest: f64, highest: f64) -> Self {
        let likely = likely.ln();
        Self::with(lowest, highest, |x| {
            1.0 / (1.0 + ((x - likely) / CLOSE).powi(2))
        })
    }

    /// Before any trial: anywhere from `lowest` to `highest`, both above 0.
    pub fn between(lowest: f64, highest: f64) -> Self {
        Self::with(lowest, highest, |_| 1.0)
    }

    fn with(lowest: f64, highest: f64, likely: impl Fn(f64) -> f64) -> Self {
        let lowest = lowest.ln();
        let count = ((highest.ln() - lowest) / GRAIN).max(1.0) as usize + 1;
        let share = (0..count).map(|i| {
            let rate = likely(lowest + GRAIN * i as f64);
            [rate; SPREADS.len()]
        });
        let mut threshold = Self {
            lowest,
            share: share.collect(),
        };
        threshold.scale();
        threshold
    }

    /// Updates the probabilities with the verdict of a trial at `rate`.
    pub fn learn(&mut self, rate: f64, passed: bool) {
        let rate = rate.ln();
        for (i, shares) in self.share.iter_mut().enumerate() {
            let above = self.lowest + GRAIN * i as f64 - rate;
            for (share, spread) in shares.iter_mut().zip(SPREADS).filter(|(s, _)| **s > 0.0) {
                let passes = ODD / 2.0 + (1.0 - ODD) * logistic(above / spread);
                *share *= if passed { passes } else { 1.0 - passes };
            }
        }
        self.scale();
    }

    /// Scales the sum to 1. What has become impossible stays so.
    fn scale(&mut self) {
        // Rounding alone is as large: a share below it says nothing any more.
        const NEVER: f64 = 1e-15;
        let sum: f64 = self.share.iter().flatten().sum();
        for share in self.share.iter_mut().flatten() {
            *share = if *share > NEVER * sum {
                *share / sum
            } else {
                0.0
            };
        }
    }

    /// The rate that the threshold is below with this probability, from 0.0 to 1.0.
    pub fn quantile(&self, probability: f64) -> f64 {
        let mut below = 0.0;
        for (i, shares) in self.share.iter().enumerate() {
            let here: f64 = shares.iter().sum();
            if here > 0.0 && below + here >= probability {
                let within = (probability - below) / here - 0.5;
                return (self.lowest + GRAIN * (i as f64 + within)).exp();
            }
            below += here;
        }
        (self.lowest + GRAIN * (self.share.len() - 1) as f64).exp()
    }

    /// The rate that is too high as likely as it is too low.
    pub fn median(&self) -> f64 {
        self.quantile(0.5)
    }

    /// The two rates between which the threshold lies with a probability of 95 %.
    pub fn interval(&self) -> (f64, f64) {
        (self.quantile(0.025), self.quantile(0.975))
    }
}

/// Probability of a value below `x` in the logistic distribution of standard deviation 1, which is
/// close to the normal one.
fn logistic(x: f64) -> f64 {
    // From here on it is 0 or 1 to the last bit, and far out `exp` would overflow.
    const FLAT: f64 = 20.0;
    match x {
        x if x < -FLAT => 0.0,
        x if x > FLAT => 1.0,
        x => 1.0 / (1.0 + (-x * std::f64::consts::PI / 3f64.sqrt()).exp()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verdicts_that_agree_enclose_the_rate() {
        let mut threshold = Threshold::near(1e6, 1e5, 1e8);
        for _ in 0..30 {
            for place in [0.2, 0.8] {
                let rate = threshold.quantile(place);
                threshold.learn(rate, rate <= 3.3e6);
            }
        }
        let (low, high) = threshold.interval();
        assert!(
            low < 3.3e6 && 3.3e6 < high && high - low < 0.003 * high,
            "{low} {high}"
        );
        assert!((threshold.median() / 3.3e6 - 1.0).abs() < 0.001);
    }

    /// A single odd verdict changes little; scattered verdicts leave a wide interval.
    #[test]
    fn a_lucky_trial_is_not_the_result() {
        let mut steady = Threshold::between(1e5, 1e7);
        for rate in [0.9e6, 0.95e6, 0.98e6, 1.02e6, 1.05e6, 1.1e6, 0.99e6, 1.01e6] {
            steady.learn(rate, rate <= 1e6);
        }
        let mut lucky = steady.clone();
        lucky.learn(1.5e6, true);
        assert!((lucky.median() / steady.median() - 1.0).abs() < 0.02);
        let mut scattered = Threshold::between(1e5, 1e7);
        for (rate, passed) in [
            (0.8e6, true),
            (0.9e6, false),
            (0.95e6, true),
            (1.05e6, false),
            (1.1e6, true),
            (1.2e6, false),
        ] {
            scattered.learn(rate, passed);
        }
        let width = |t: &Threshold| t.interval().1 / t.interval().0;
        assert!(width(&scattered) > 1.1 && width(&scattered) > width(&steady));
        assert!(
            (0.9..1.1).contains(&(scattered.median() / 1e6)),
            "{}",
            scattered.median()
        );
    }

    /// No verdict, however odd, turns a rate into infinity or NaN.
    #[test]
    fn stays_within_its_bounds() {
        for passed in [true, false] {
            let mut threshold = Threshold::near(1.0, 1.0, 1.0);
            for rate in [f64::MIN_POSITIVE, 1.0, 1e300] {
                (0..200).for_each(|_| threshold.learn(rate, passed));
            }
            for probability in [0.0, 0.025, 0.5, 1.0] {
                let rate = threshold.quantile(probability);
                assert!((0.99..1.01).contains(&rate), "{rate}");
            }
        }
    }
}
