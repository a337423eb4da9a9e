//! Results of a load test as text for people.

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
            "highest rate with no more than {} loss: {:.3}{} ({:.3} on the wire), lost {}{bound}\n",
            percent(loss),
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

fn between(interval: Option<(f64, f64)>) -> String {
    interval.map_or(String::new(), |(low, high)| {
        format!(", {:.3} to {:.3} with 95 % confidence", Pps(low), Pps(high))
    })
}

/// A ramp, and its highest rate with no more loss than `loss`, from `run`.
pub fn of_ramp(ramp: &Ramp, run: &Run, loss: f64) -> String {
    let best = match run.valid {
        true => format!("{:.3}{}", Pps(run.max_pps), between(run.interval_pps)),
        false => "none was found".to_owned(),
    };
    let all = of_trial("in total", &ramp.whole);
    format!(
        "{all}highest rate with no more than {} loss: {best}\n",
        percent(loss)
    )
}

/// One trial.
pub fn of_trial(what: &str, trial: &Trial) -> String {
    let objection = match trial.valid {
        true => String::new(),
        false => format!("; not valid: {}", trial.why),
    };
    format!(
        "{what}: sent {} packets ({:.3}), {} came back ({:.3}), loss {}{objection}\n",
        trial.sent(),
        trial.sent_pps(),
        trial.received(),
        trial.forwarded,
        percent(trial.loss()),
    )
}

/// A share in percent, with enough digits to show that it is not zero.
pub fn percent(share: f64) -> String {
    match share * 100.0 {
        0.0 => "0 %".to_owned(),
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
        assert_eq!(percent(0.5), "50.00 %");
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
