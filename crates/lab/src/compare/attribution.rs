//! Finds the device's part of the processor time.
//!
//! A device that works in software interrupts shares a processor with the generator, and no counter
//! of the kernel separates the two. So in the same round the generator runs alone, flat out into a
//! port that counts and drops. The time it used there is subtracted from that of the trial flat out
//! with the device: the cost of sending for each packet sent, and the cost of counting for each
//! packet that came back. Packets that the device drops are never counted. Counting happens in
//! software interrupts of the processor that delivers the packet: the generator's when it is alone,
//! the device's otherwise. Both trials are flat out because a generator that waits keeps its
//! processor busy too, and that time must not count.

use report::setup::Spread;

use super::load::FlatOut;
use crate::cpu::Time;

/// Cost of the generator alone, in processor seconds.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Alone {
    /// For each packet sent.
    sending: f64,
    /// For each packet that came back and was counted and dropped, in software interrupts.
    counting: f64,
}

impl Alone {
    /// From a trial without a device.
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

/// Processor seconds of the device in a trial flat out, and a sentence that says how they were
/// found.
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

/// The software interrupts on the generator's processor receive packets for the device.
fn apart(own: Time, other: Time, counting: f64) -> f64 {
    other.busy() + own.softirq - counting
}

/// Millions of packets forwarded a processor second; `None` if the time is too short to divide by
/// (its resolution is 10 ms).
pub fn efficiency(trial: &FlatOut, device_seconds: f64) -> Option<f64> {
    (device_seconds > 0.05).then(|| trial.received as f64 / device_seconds / 1e6)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sending takes 100 ns, counting 50, and the device 200 for each packet that it forwards.
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
        // Four million packets are sent, one million comes back.
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
        // A quarter of the device's work is receiving, on the generator's processor.
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
