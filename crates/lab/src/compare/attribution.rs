//! Which part of the processor time was the device's.
//!
//! A device that works in software interrupts shares a processor with the generator, and no counter of the kernel
//! separates them. So the generator is run alone in the same round, flat out into a counting drop, and what it used
//! there for each packet it sent is taken off the total of the trial flat out with the device. Flat out, because a
//! generator that waits for its time keeps its processor busy too, and that waiting is nobody's cost.

use loadgen::report::model::Spread;

use super::load::FlatOut;

/// What the generator costs by itself, in processor seconds a packet.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Alone {
    /// All time of its processor.
    pub busy: f64,
    /// Software interrupts on its processor.
    pub softirq: f64,
}

impl Alone {
    /// Out of a trial without a device.
    pub fn of(trial: &FlatOut, generator: usize) -> Self {
        let time = trial.time(|cpu| cpu == generator);
        let packets = trial.sent.max(1) as f64;
        Self {
            busy: time.busy() / packets,
            softirq: time.softirq / packets,
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
    let sent = trial.sent as f64;
    let own = trial.time(|cpu| cpu == generator);
    match spread {
        Spread::Shared => (
            own.busy() - sent * alone.busy,
            "trial flat out: all time of the shared processor, less what the generator alone used a packet in the same round times the packets sent",
        ),
        Spread::Apart => (
            trial.time(|cpu| cpu == device).busy() + (own.softirq - sent * alone.softirq).max(0.0),
            "trial flat out: all time of the device's processor, and the software interrupts on the generator's less those of the generator alone in the same round",
        ),
    }
}

/// Millions of packets forwarded a processor second; `None` where the time found is too small to divide by (a
/// reading has a resolution of 10 ms).
pub fn efficiency(trial: &FlatOut, device_seconds: f64) -> Option<f64> {
    (device_seconds > 0.05).then(|| trial.received as f64 / device_seconds / 1e6)
}
