//! The state of the router that all viewers share.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use crate::model::Snapshot;
use crate::sample::Sample;

/// Rows of all samples kept at most, some 100 bytes each: a router with very many interfaces has
/// fewer samples.
const ROWS: usize = 200_000;

/// The latest look at the router, and the samples so far.
#[derive(Debug)]
pub struct Live {
    /// Samples kept.
    most: usize,
    inner: Mutex<Inner>,
}

#[derive(Debug)]
struct Inner {
    now: Result<Arc<Snapshot>, String>,
    samples: VecDeque<Arc<Sample>>,
    rows: usize,
    is_asked: bool,
    /// The sample that ended with the latest look.
    latest: Option<Arc<Sample>>,
}

/// A look, and the rates up to it.
pub type Latest = (Arc<Snapshot>, Option<Arc<Sample>>);

impl Default for Inner {
    fn default() -> Self {
        Inner {
            now: Err("the router has not been asked yet".into()),
            samples: VecDeque::new(),
            rows: 0,
            is_asked: false,
            latest: None,
        }
    }
}

impl Live {
    /// One that keeps so many samples.
    pub(crate) fn keeping(most: usize) -> Self {
        Live {
            most,
            inner: Mutex::default(),
        }
    }

    /// The latest look, or the reason why there is none.
    pub fn now(&self) -> Result<Arc<Snapshot>, String> {
        self.inner(|inner| inner.now.clone())
    }

    /// The samples that ended after `time` (seconds since 1970), oldest first.
    pub fn since(&self, time: f64) -> Vec<Arc<Sample>> {
        self.inner(|inner| {
            let after = inner.samples.partition_point(|sample| sample.time <= time);
            inner.samples.range(after..).cloned().collect()
        })
    }

    /// The latest look and the sample that ended with it, which the first one has not, or the
    /// reason why there is none; `None` before the first one.
    pub fn latest(&self) -> Option<Result<Latest, String>> {
        self.inner(|inner| {
            let latest = |now: Arc<Snapshot>| (now, inner.latest.clone());
            inner.is_asked.then(|| inner.now.clone().map(latest))
        })
    }

    /// Sets the latest look and adds the sample that ends with it.
    pub(crate) fn set(&self, now: Result<Snapshot, String>, sample: Option<Sample>) {
        self.inner(|inner| {
            inner.is_asked = true;
            inner.now = now.map(Arc::new);
            inner.latest = sample.map(Arc::new);
            let Some(sample) = inner.latest.clone() else {
                return;
            };
            // A clock that was set back would leave samples out of order.
            let last = inner.samples.back();
            if last.is_some_and(|last| last.time >= sample.time) {
                inner.samples.clear();
                inner.rows = 0;
            }
            inner.rows += sample.rows();
            inner.samples.push_back(sample);
            while inner.samples.len() > self.most || inner.rows > ROWS {
                let Some(oldest) = inner.samples.pop_front() else {
                    return;
                };
                inner.rows -= oldest.rows();
            }
        });
    }

    fn inner<T>(&self, work: impl FnOnce(&mut Inner) -> T) -> T {
        work(&mut self.inner.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

#[cfg(test)]
mod tests {
    use crate::sample::InterfaceRates;

    use super::*;

    fn sample(time: f64, interfaces: usize) -> Option<Sample> {
        Some(Sample {
            time,
            interfaces: vec![InterfaceRates::default(); interfaces],
            ..Sample::default()
        })
    }

    #[test]
    fn samples_are_bounded_in_number_and_size() {
        const SAMPLES: usize = 600;
        let live = Live::keeping(SAMPLES);
        assert!(live.now().is_err());
        for second in 0..2000 {
            live.set(Ok(Snapshot::default()), sample(f64::from(second), 2));
        }
        assert_eq!(live.since(0.0).len(), SAMPLES);
        assert_eq!(live.since(1997.5).len(), 2);
        for second in 2000..2100 {
            live.set(Ok(Snapshot::default()), sample(f64::from(second), 9_999));
        }
        assert_eq!(live.since(0.0).len(), ROWS / 10_000);
        live.set(Err("gone".into()), None);
        assert_eq!(live.now(), Err("gone".into()));
        // The clock is set back: the samples of before would be in its future.
        live.set(Ok(Snapshot::default()), sample(5.0, 1));
        assert_eq!(live.since(0.0).len(), 1);
    }
}
