//! Which part of the processor time was the device's.
//!
//! A device that works in software interrupts shares a processor with the generator, and no counter of the kernel
//! separates them. So the generator is run alone in the same round, flat out into a counting drop, and what it used
//! there is taken off the total of the trial flat out with the device: for each packet sent what sending costs, and for
//! each packet that came back what counting costs, which a packet that the device drops never causes. Counting is done
//! in software interrupts of the processor that hands the packet over: the generator's when it is alone, the device's
//! when there is one. Flat out, because a generator that waits for its time keeps its processor busy too, and that
//! waiting is nobody's cost.

use report::setup::Spread;

use super::load::FlatOut;
use crate::cpu::Time;

/// What the generator costs by itself, in processor seconds.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Alone {
    /// For a packet sent.
    sending: f64,
    /// For a packet that came back, counted and dropped in software interrupts.
    counting: f64,
}

impl Alone {
    /// Out of a trial without a device.
    pub fn of(trial: &FlatOut, generator: usize) -> Self {
        let time = trial.time(|cpu| cpu == generator);
        Self::split(time, trial.sent, trial.received)
    }

    fn split(time: Time, sent: u64, received: u64) -> Self {
        Self {
            sending: (time.busy() - time.softirq) / sent.max(1) as f64,
            counting: time.softirq / received.max(1) as f64,
        }
    }
}

/// Processor seconds of the device in a trial flat out, and the sentence that says how they were found.
pub fn device(
    spread: Spread,
    trial: &FlatOut,
    alone: Alone,
    generator: usize,
    device: usize,
) -> (f64, &'static str) {
    let [own, other] = [generator, device].map(|one| trial.time(|cpu| cpu == one));
    let counting = trial.received as f64 * alone.counting;
    match spread {
        Spread::Shared => (
            shared(own, trial.sent as f64 * alone.sending, counting),
            "trial flat out: all time of the shared processor, less what the generator alone used in the same round for each packet sent and for each packet that came back",
        ),
        Spread::Apart => (
            apart(own, other, counting),
            "trial flat out: all time of the device's processor and the software interrupts on the generator's, less what counting used in the same round, without a device, for each packet that came back",
        ),
    }
}

fn shared(own: Time, sending: f64, counting: f64) -> f64 {
    own.busy() - sending - counting
}

/// What the generator's processor does in software interrupts is to receive for the device.
fn apart(own: Time, other: Time, counting: f64) -> f64 {
    other.busy() + own.softirq - counting
}

/// Millions of packets forwarded a processor second; `None` where the time found is too small to divide by (a
/// reading has a resolution of 10 ms).
pub fn efficiency(trial: &FlatOut, device_seconds: f64) -> Option<f64> {
    (device_seconds > 0.05).then(|| trial.received as f64 / device_seconds / 1e6)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 100 ns to send, 50 to count, and a device that needs 200 for each packet it forwards.
    const SENDING: f64 = 100e-9;
    const COUNTING: f64 = 50e-9;
    const DEVICE: f64 = 200e-9;

    fn time(system: f64, softirq: f64) -> Time {
        Time {
            system,
            softirq,
            ..Time::default()
        }
    }

    #[track_caller]
    fn close(found: f64, truth: f64) {
        assert!((found / truth - 1.0).abs() < 1e-9, "{found} s, {truth} s");
    }

    #[test]
    fn packets_that_are_dropped_are_not_taken_off_as_counted() {
        let millions = |n: f64| n * 1e6;
        let alone = Alone::split(
            time(millions(6.0) * SENDING, millions(6.0) * COUNTING),
            6_000_000,
            6_000_000,
        );
        // Four million are sent, one comes back.
        let (sending, counting) = (millions(4.0) * SENDING, millions(1.0) * COUNTING);
        let truth = millions(1.0) * DEVICE;
        close(
            shared(
                time(sending, truth + counting),
                millions(4.0) * alone.sending,
                millions(1.0) * alone.counting,
            ),
            truth,
        );
        // A quarter of the device's work is to receive, on the generator's processor.
        close(
            apart(
                time(sending, truth / 4.0),
                time(0.0, truth * 3.0 / 4.0 + counting),
                millions(1.0) * alone.counting,
            ),
            truth,
        );
    }
}
