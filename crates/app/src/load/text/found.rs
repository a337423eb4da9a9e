//! Results of `parshall search` as text for people.

use std::fmt::Write;

use loadgen::model::units::Pps;
use loadgen::search::mlrsearch::Bounds;
use loadgen::search::{Effort, binary, mlrsearch, rfc2544, soak};

use super::{at_least, between, percent};

/// The bounds of each goal. Packets have `size` bytes on average.
pub fn of_mlrsearch(found: &mlrsearch::Found, size: f64) -> String {
    let goals = found.goals.iter().map(|bounds| line(bounds, size));
    goals.chain([effort(&found.effort)]).collect()
}

/// As [`of_mlrsearch`].
pub fn of_binary(found: &binary::Found, size: f64) -> String {
    line(&found.bounds, size) + &effort(&found.effort)
}

/// As [`of_mlrsearch`].
pub fn of_rfc2544(found: &rfc2544::Found, size: f64) -> String {
    let mut text = format!("throughput, {}", line(&found.throughput, size));
    for rate in &found.loss_rates {
        let loss = rate.loss.map_or_else(
            || "the generator fell short".to_owned(),
            |loss| format!("{} lost", percent(loss)),
        );
        let share = 100.0 * rate.share;
        let _ = writeln!(
            text,
            "  {share:3.0} %: {:.3}, {loss}",
            Pps(rate.offered_pps)
        );
    }
    if let Some(bursts) = found.back_to_back {
        let more = if bursts.is_longest { " or more" } else { "" };
        let (packets, deviation, count) = (bursts.packets, bursts.deviation, bursts.bursts);
        let _ = writeln!(
            text,
            "back-to-back frames: {packets:.0}{more} (standard deviation {deviation:.0}, {count} \
             searches)"
        );
    }
    if found.latency_seconds > 0.0 {
        let seconds = found.latency_seconds;
        let _ = writeln!(
            text,
            "at the throughput for {seconds:.0} s: `streams` in the JSON, with their latency where \
             they measure it"
        );
    }
    text + &effort(&found.effort)
}

/// As [`of_mlrsearch`].
pub fn of_soak(found: &soak::Found, size: f64) -> String {
    let text = match (found.critical_pps, found.interval_pps) {
        (Some(critical), Some(interval)) => format!(
            "critical load, {} lost on average: {}{:.3} ({:.3} on the wire){}{}\n",
            percent(found.allowed),
            at_least(found.interval_pps),
            Pps(critical),
            Pps(critical).l1(size),
            between(Some(interval)),
            because(&found.why),
        ),
        _ => format!("no result: {}\n", found.why),
    };
    let without = found.lossless_trials;
    text + &format!("trials without loss: {without}\n") + &effort(&found.effort)
}

fn line(bounds: &Bounds, size: f64) -> String {
    let goal = format!("no more than {} loss", percent(bounds.allowed));
    let provisional = if bounds.provisional {
        "provisional, "
    } else {
        ""
    };
    let goal = format!("{provisional}{goal}");
    let Some(lower) = bounds.lower_pps.map(Pps) else {
        let below = bounds.upper_pps.map_or_else(
            || "no result".to_owned(),
            |upper| format!("no lower bound, and less than {:.3}", Pps(upper)),
        );
        return format!("{goal}: {below}{}\n", because(&bounds.why));
    };
    let below = bounds.upper_pps.map_or_else(String::new, |upper| {
        format!(", and less than {:.3}", Pps(upper))
    });
    let throughput = bounds.throughput_pps.map_or_else(String::new, |pps| {
        format!("; of it {:.3} came back", Pps(pps))
    });
    let why = because(&bounds.why);
    format!(
        "{goal}: {lower:.3} ({:.3} on the wire){below}{throughput}{why}\n",
        lower.l1(size)
    )
}

fn because(why: &str) -> String {
    match why {
        "" => String::new(),
        why => format!("; {why}"),
    }
}

fn effort(effort: &Effort) -> String {
    let invalid = match (effort.invalid_trials, effort.late_trials) {
        (0, _) => String::new(),
        (count, 0) => format!(", {count} of them invalid: the generator fell short"),
        (count, late) if count == late => {
            format!(", {count} of them invalid: the generator was held up")
        }
        (count, late) => format!(
            ", {count} of them invalid: the generator fell short in {}, and was held up in {late}",
            count - late
        ),
    };
    let top = match effort.top_is {
        // The first trial was interrupted.
        None => String::new(),
        Some(_) => format!(
            "highest load {:.3}{}; in the first trial {:.3} came back\n",
            Pps(effort.top_pps),
            because(effort.top_is_why()),
            Pps(effort.saturation_pps)
        ),
    };
    let (trials, seconds) = (effort.trials, effort.seconds);
    format!("{top}{trials} trials, {seconds:.0} s of sending{invalid}\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_why_trials_are_invalid_are_told_apart() {
        let said = |invalid_trials, late_trials| {
            effort(&Effort {
                trials: 9,
                invalid_trials,
                late_trials,
                ..Effort::default()
            })
        };
        // Without a first trial nothing is known of the highest load.
        assert_eq!(said(0, 0), "9 trials, 0 s of sending\n");
        assert!(said(3, 0).ends_with("3 of them invalid: the generator fell short\n"));
        assert!(said(3, 3).ends_with("3 of them invalid: the generator was held up\n"));
        let both = said(3, 1);
        assert!(
            both.contains("fell short in 2, and was held up in 1"),
            "{both}"
        );
    }

    #[test]
    fn what_was_found_is_said_and_what_was_not() {
        let bounds = Bounds {
            allowed: 0.005,
            lower_pps: Some(1e6),
            upper_pps: Some(1.004e6),
            throughput_pps: Some(0.998e6),
            finished: true,
            provisional: false,
            why: String::new(),
        };
        assert_eq!(
            line(&bounds, 64.0),
            "no more than 0.50 % loss: 1.000 Mpps (672.000 Mbit/s on the wire), and less than 1.004 \
             Mpps; of it 998.000 kpps came back\n"
        );
        let none = Bounds {
            why: "nothing came back".into(),
            ..Bounds::default()
        };
        assert_eq!(
            line(&none, 64.0),
            "no more than 0 % loss: no result; nothing came back\n"
        );
    }
}
