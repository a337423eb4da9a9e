//! Results of a load test as text for people.

pub mod found;

use loadgen::histogram::Times;
use loadgen::measure::ramp::Ramp;
use loadgen::measure::search::Found;
use loadgen::measure::trial::Trial;
use loadgen::model::units::{Bits, Pps};
use report::model::Run;

/// The result of a search for the highest rate.
pub fn of_search(found: &Found, loss: f64) -> String {
    let mut text = if found.valid {
        let bound = match found.why.as_str() {
            "" => String::new(),
            why => format!("; {why}"),
        };
        format!(
            "highest rate with no more than {} loss: {}{:.3}{} ({:.3} on the wire), lost {}{bound}\n",
            percent(loss),
            at_least(found.interval_pps),
            Pps(found.max_pps),
            between(found.interval_pps),
            Bits(found.l1_bps),
            percent(found.loss),
        )
    } else {
        format!("no result: {}\n", found.why)
    };
    if let (Some(forwarded), Some(sent)) = (found.saturation_pps, found.flat_out_pps) {
        text += &format!(
            "flat out: sent {:.3}, came back {:.3}\n",
            Pps(sent),
            Pps(forwarded)
        );
    }
    text
}

/// An interval that has a width. Of none, all that is known is at its one bound.
fn between(interval: Option<(f64, f64)>) -> String {
    match interval {
        Some((low, high)) if low < high => {
            format!(", {:.3} to {:.3} with 95 % confidence", Pps(low), Pps(high))
        }
        _ => String::new(),
    }
}

/// What comes before a rate whose interval has no width: more was not sent.
fn at_least(interval: Option<(f64, f64)>) -> &'static str {
    match interval {
        Some((low, high)) if low >= high => "at least ",
        _ => "",
    }
}

/// A ramp, and its highest rate with no more loss than `loss`, from `run`.
pub fn of_ramp(ramp: &Ramp, run: &Run, loss: f64) -> String {
    let best = if run.valid {
        let bound = match run.why.as_str() {
            "" => String::new(),
            why => format!("; {why}"),
        };
        format!(
            "{}{:.3}{}{bound}",
            at_least(run.interval_pps),
            Pps(run.max_pps),
            between(run.interval_pps)
        )
    } else {
        format!("none found: {}", run.why)
    };
    let all = of_trial("in total", &ramp.whole);
    format!(
        "{all}highest rate with no more than {} loss: {best}\n",
        percent(loss)
    )
}

/// One trial.
pub fn of_trial(what: &str, trial: &Trial) -> String {
    let objection = if trial.valid {
        String::new()
    } else {
        format!("; not valid: {}", trial.why)
    };
    let held = match trial.held.iter().sum::<u64>() {
        0 => "",
        _ => " while sending",
    };
    let what = if trial.interrupted {
        &format!("{what}, interrupted after {:.1} s", trial.seconds)
    } else {
        what
    };
    format!(
        "{what}: sent {} packets ({:.3}), {} came back ({:.3}{held}), loss {}{objection}\n",
        trial.sent(),
        trial.sent_pps(),
        trial.received(),
        trial.forwarded,
        percent(trial.loss()),
    )
}

/// Packets that a generator did not send although they were due.
pub fn of_shortfall(short: u64, due: u64) -> String {
    let share = percent(short as f64 / due as f64);
    format!("short: {short} of {due} packets that were due were not sent ({share})")
}

/// The delay between the time that packets were due and the time that they left. None if none were
/// due at any time.
pub fn of_late(late: &Times) -> Option<String> {
    spread("late by", late)
}

/// The time between packets that left; None if fewer than two did.
pub fn of_gaps(gaps: &Times) -> Option<String> {
    spread("gaps", gaps)
}

/// How long the packets of a stream took; None if that was not measured.
pub fn of_latency(stream: &str, latency: &Times) -> Option<String> {
    spread(&format!("latency of stream `{stream}`"), latency)
}

fn spread(what: &str, times: &Times) -> Option<String> {
    (times.measured > 0).then(|| {
        format!(
            "{what}: half up to {}, 99 % up to {}, 99.9 % up to {}, all up to {}",
            micros(times.p50),
            micros(times.p99),
            micros(times.p99_9),
            micros(times.max)
        )
    })
}

/// Nanoseconds as microseconds.
fn micros(nanos: u64) -> String {
    format!("{:.1} us", nanos as f64 / 1e3)
}

/// A share in percent, with enough digits to show that it is not zero.
pub fn percent(share: f64) -> String {
    match share * 100.0 {
        0.0 => "0 %".to_owned(),
        p if p < 0.000_1 => format!("{p:.0e} %"),
        p if p < 0.01 => format!("{p:.4} %"),
        p => format!("{p:.2} %"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_shares_are_not_zero() {
        assert_eq!(percent(0.0), "0 %");
        assert_eq!(percent(0.000_012), "0.0012 %");
        assert_eq!(percent(2e-7), "2e-5 %");
        assert_eq!(percent(0.5), "50.00 %");
    }

    #[test]
    fn what_was_late_or_short_is_said() {
        let late = Times {
            measured: 9,
            p50: 1234,
            p99: 20_000,
            p99_9: 1_000_000,
            max: 1_000_001,
            ..Times::default()
        };
        assert_eq!(
            of_late(&late).unwrap(),
            "late by: half up to 1.2 us, 99 % up to 20.0 us, 99.9 % up to 1000.0 us, all up to 1000.0 us"
        );
        assert_eq!(of_late(&Times::default()), None);
        assert_eq!(
            of_shortfall(5, 1000),
            "short: 5 of 1000 packets that were due were not sent (0.50 %)"
        );
    }

    #[test]
    fn an_interval_without_width_is_a_bound() {
        let said = |interval| {
            let found = Found {
                valid: true,
                max_pps: 2e5,
                interval_pps: Some(interval),
                ..Found::default()
            };
            of_search(&found, 0.001)
        };
        let bound = said((2e5, 2e5));
        assert!(bound.contains("loss: at least 200.000 kpps ("), "{bound}");
        assert!(!bound.contains("confidence"), "{bound}");
        let between = said((1.9e5, 2e5));
        assert!(
            between.contains("loss: 200.000 kpps, 190.000 kpps to 200.000 kpps with 95 %"),
            "{between}"
        );
    }

    #[test]
    fn nothing_found_says_why() {
        let found = Found {
            why: "nothing came back".into(),
            ..Found::default()
        };
        assert_eq!(of_search(&found, 0.001), "no result: nothing came back\n");
    }
}
