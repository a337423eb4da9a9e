//! The highest rate that a ramp shows.
//!
//! A rising rate means more packets in the device than before, and a sample that compares what was
//! sent with what came back would call those lost. How long they are in it is not known, but
//! bounded by what came back after the last packet was sent, and by what any sample misses. With
//! that a sample passes if the device lost little in it, and in all before it together, where what
//! is in flight hardly matters. Where the bounds leave both open, a sample says nothing.
//!
//! Packets that came back only after sending ended, beyond what is in flight, the device held: it
//! did not keep up, and a sample that misses them fails as if they were lost.

use super::{Ramp, Sample, WaySample};
use crate::measure::steady;
use crate::measure::threshold::Threshold;

/// The verdict of a ramp on the highest rate. Rates are totals of all directions, in packets a
/// second.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Highest {
    /// The rate at which as many samples pass as fail, but no higher than the highest that passed.
    pub max_pps: f64,
    /// The rate lies between these two with a confidence of 95 %; None if only one was sent.
    pub interval_pps: Option<(f64, f64)>,
    /// Loss in the nearest sample that passed, from 0.0 to 1.0.
    pub loss: f64,
    /// No sample failed: the device may forward more than was offered.
    pub is_bounded: bool,
}

/// Seconds to which it is known how long packets are in flight: they come back in bursts, and
/// counters are not read at one moment.
const RESOLUTION: f64 = 0.001;

/// Verdict of a sample on its rate.
struct Verdict {
    pps: f64,
    /// Share lost by the direction that lost most.
    loss: f64,
    passes: bool,
}

impl Ramp {
    /// The highest rate at which no direction loses more than the share `allowed`, judged by all
    /// samples together and not by the luckiest.
    ///
    /// # Errors
    /// Reason why there is no such rate.
    pub fn max_rate(&self, allowed: f64) -> Result<Highest, String> {
        if !self.whole.valid {
            return Err(self.whole.why.clone());
        }
        if self.is_constant {
            return self.only_rate(allowed);
        }
        let verdicts = self.verdicts(allowed);
        if verdicts.is_empty() {
            return Err("no sample has enough packets to show so little loss".to_owned());
        }
        let rates = || {
            self.samples
                .iter()
                .map(|sample| self.named(sample))
                .filter(|pps| *pps > 0.0)
        };
        let lowest = rates().fold(f64::INFINITY, f64::min);
        let highest = rates().fold(0.0, f64::max);
        let passed = || verdicts.iter().filter(|verdict| verdict.passes);
        let most = passed()
            .map(|verdict| verdict.pps)
            .reduce(f64::max)
            .ok_or("no sample shows that so little was lost")?;
        // The ramp says nothing about rates beyond its ends.
        let mut threshold = Threshold::between(lowest * 0.9, highest * 1.1);
        for verdict in &verdicts {
            threshold.learn(verdict.pps, verdict.passes);
        }
        let is_bounded = verdicts.iter().all(|verdict| verdict.passes);
        let max_pps = if is_bounded {
            most
        } else {
            threshold.median().min(most)
        };
        if max_pps < lowest {
            return Err("more was lost in most samples, whatever the rate".to_owned());
        }
        let distance = |verdict: &&Verdict| (verdict.pps - max_pps).abs();
        let nearest = passed().min_by(|a, b| distance(a).total_cmp(&distance(b)));
        let (low, high) = threshold.interval();
        Ok(Highest {
            max_pps,
            interval_pps: Some((low.min(max_pps), high.min(highest))),
            loss: nearest.map_or(0.0, |verdict| verdict.loss),
            is_bounded,
        })
    }

    /// The verdict where all was sent at one rate. How much of it was lost is known exactly.
    fn only_rate(&self, allowed: f64) -> Result<Highest, String> {
        if !self.whole.passes(allowed) {
            let why = self.whole.failure();
            return Err(format!("at the only rate sent, {why}"));
        }
        let losses = self.whole.ways.iter().map(|way| way.loss());
        let loss = losses.fold(0.0, f64::max);
        Ok(Highest {
            max_pps: self.whole.sent_pps().0.min(self.whole.offered_pps().0),
            interval_pps: None,
            loss,
            is_bounded: true,
        })
    }

    /// The rate that a sample stands for: clocks are not read exactly when packets are due, and no
    /// more is asked for than the target.
    fn named(&self, sample: &Sample) -> f64 {
        sample.sent_pps().min(self.whole.offered_pps().0)
    }

    /// Verdicts of the samples, without those that say nothing.
    fn verdicts(&self, allowed: f64) -> Vec<Verdict> {
        let ways = 0..self.whole.ways.len();
        let in_flight: Vec<f64> = ways.clone().map(|way| self.in_flight(way)).collect();
        let verdict = |index: usize| {
            let sample = &self.samples[index];
            let losses = ways
                .clone()
                .map(|way| self.loses(way, index, in_flight[way], allowed));
            let losses: Vec<Option<f64>> = losses.collect();
            let failed = losses.iter().flatten().any(|loss| *loss > allowed);
            let is_known = failed || losses.iter().all(Option::is_some);
            let loss = losses.into_iter().flatten().fold(0.0, f64::max);
            (sample.valid && is_known && !self.whole.ways.is_empty()).then(|| Verdict {
                pps: self.named(sample),
                loss,
                passes: !failed,
            })
        };
        (0..self.samples.len()).filter_map(verdict).collect()
    }

    /// The share that a direction lost in a sample, where packets are in flight for `in_flight`
    /// seconds. None where that cannot be told from `allowed`.
    fn loses(&self, way: usize, index: usize, in_flight: f64, allowed: f64) -> Option<f64> {
        let (sample, before) = (&self.samples[index], index.checked_sub(1));
        let seconds = sample.at - before.map_or(0.0, |i| self.samples[i].at);
        let rate = |index: Option<usize>| index.map_or(0.0, |i| self.samples[i].ways[way].tx_pps);
        let all_lost = (self.whole.ways[way].lost() + self.whole.held[way]) as f64;
        let WaySample {
            tx_pps,
            rx_pps,
            total,
            ..
        } = sample.ways[way];
        let sent = tx_pps * seconds;
        if sent <= 0.0 {
            return None;
        }
        // No sample loses more than all together.
        let share = |lost: f64, sent: f64| lost.clamp(0.0, all_lost) / sent;
        let rising = in_flight * (tx_pps - rate(before)).max(0.0);
        let missing = (tx_pps - rx_pps) * seconds;
        let loss = share(missing - rising, sent);
        // At its end the rate may have risen by twice as much as on average.
        let surely = share(missing - 2.0 * rising, sent);
        if surely > allowed {
            return Some(loss);
        }
        // Packets in flight now were sent at the rates since then.
        let since = 1 + (in_flight / seconds) as usize;
        let missing = total.lost() as f64;
        let at_least = (in_flight - RESOLUTION).max(0.0);
        let most = missing - at_least * rate(index.checked_sub(since));
        let least = missing - in_flight * tx_pps - rising;
        let all_sent = total.sent.packets as f64;
        if share(least, all_sent) > allowed {
            return Some(share(least, all_sent));
        }
        // So few packets show no such loss.
        let shows = all_lost == 0.0 || sent * allowed >= 1.0;
        (shows && loss <= allowed && share(most, all_sent) <= allowed).then_some(loss)
    }

    /// Seconds that packets of a direction are in flight, at most.
    fn in_flight(&self, way: usize) -> f64 {
        let ages = (0..self.samples.len()).filter_map(|index| self.age(way, index));
        // They leave at the rate at which they come back, which at the end is that of the target.
        let drained = self.samples.last().map_or(0.0, |sample| {
            let last = sample.ways[way];
            self.drained[way] as f64 / (last.rx_pps / last.tx_pps * self.last_rate(way))
        });
        let drained = if drained.is_finite() { drained } else { 0.0 };
        ages.reduce(f64::min)
            .map_or(drained, |age| age.min(drained))
    }

    /// Seconds since the last packet that was back at the end of a sample had been sent, if none was
    /// lost. None if none was back.
    fn age(&self, way: usize, index: usize) -> Option<f64> {
        let total = |sample: &Sample| sample.ways[way].total;
        let now = &self.samples[index];
        let received = total(now).received.packets;
        let is_before = |sample: &&Sample| total(sample).sent.packets < received;
        let before = self.samples[..index].iter().rfind(is_before);
        let (start, sent) = before.map_or((0.0, 0), |s| (s.at, total(s).sent.packets));
        let mut until = self.samples[..=index].iter();
        let after = until.find(|s| total(s).sent.packets >= received)?;
        let share = (received - sent) as f64 / (total(after).sent.packets - sent) as f64;
        let sent_at = start + share * (after.at - start);
        (received > 0 && sent_at.is_finite()).then_some(now.at - sent_at)
    }

    /// Rate at which a direction was sent when sending ended.
    fn last_rate(&self, way: usize) -> f64 {
        let last = self.samples.last();
        if self.whole.interrupted {
            last.map_or(0.0, |sample| sample.ways[way].tx_pps)
        } else {
            self.whole.rate.0
        }
    }

    /// Finds what the device held when sending ended, which did not come back while packets were
    /// sent.
    pub(super) fn subtract_held(&mut self) {
        let held = |way: usize| {
            let rate = self.last_rate(way);
            let more = self.drained[way] as f64 - self.in_flight(way) * rate;
            steady::held(more, rate)
        };
        self.whole.held = (0..self.whole.ways.len()).map(held).collect();
        let held: u64 = self.whole.held.iter().sum();
        self.whole.forwarded.0 *= 1.0 - held as f64 / self.whole.received().max(1) as f64;
    }
}

#[cfg(test)]
mod tests;
