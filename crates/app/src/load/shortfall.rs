//! Reasons for a generator to fall short of its offer, and advice.

use std::time::{Duration, Instant};

use lab::cpu::Stat;
use loadgen::device::{Path, Sender};
use loadgen::send::BACKLOG;

/// From this share of a processor's time on, software interrupts are what slows down a generator on
/// it: it lacks that time. Those of an idle machine take a percent or so.
const MUCH: f64 = 0.1;

/// Watches the processors during a test.
pub struct Watch {
    sender: Sender,
    cpu: Option<usize>,
    began: Instant,
    then: Stat,
}

impl Watch {
    /// Watches from now on, for a sender of this kind, bound to this processor if any.
    pub fn new(sender: Sender, cpu: Option<usize>) -> Watch {
        Watch {
            sender,
            cpu,
            began: Instant::now(),
            then: Stat::now().unwrap_or_default(),
        }
    }

    /// Advice if the generators of `paths` fell short.
    pub fn advice(&self, paths: &[Path]) -> String {
        let now = Stat::now().unwrap_or_default();
        let seconds = self.began.elapsed().as_secs_f64();
        let softirq = |cpu: usize| now.since(&self.then, |c| c == cpu).softirq / seconds;
        // The software interrupts of a thread that is not bound move with it.
        let cpus = self.cpu.map_or_else(kernel::cpu::usable, |cpu| vec![cpu]);
        let shares = cpus.into_iter().map(|cpu| (cpu, softirq(cpu)));
        let most = shares.max_by(|(_, a), (_, b)| a.total_cmp(b));
        let never_full = paths.iter().all(|path| path.tx.queue_full() == 0);
        let delays = paths.iter().filter_map(|path| path.tx.pacing().delay);
        let late = delays
            .map(|delay| Duration::from_nanos(delay.late.max))
            .max();
        advice(self.sender, most, late.filter(|_| never_full))
    }
}

/// Advice by kind of sender, by the processor and share of time that software interrupts took, and
/// by how late a packet left of a sender whose port was never full.
fn advice(sender: Sender, softirq: Option<(usize, f64)>, late: Option<Duration>) -> String {
    let held_up = late.unwrap_or_default();
    let what = match (sender, softirq) {
        _ if sender == Sender::Memif && held_up > BACKLOG => format!(
            "its thread was held up for {:.0} ms, and packets more than {:.0} ms late are not \
             sent. Keep other programs off its processor (--cpu)",
            held_up.as_secs_f64() * 1e3,
            BACKLOG.as_secs_f64() * 1e3
        ),
        (Sender::Memif, _) => {
            "the other side of the memif left no room in its ring. It has to take packets as fast \
             as they are offered, on a processor that the generator does not use (--cpu)"
                .to_owned()
        }
        (_, Some((cpu, share))) if share >= MUCH => format!(
            "software interrupts took {:.0} % of processor {cpu}. Packets sent to a virtual \
             interface are received on the sender's processor, and if the kernel forwards them, it \
             does so there too. Move that to another processor: after `echo 1 > \
             /sys/class/net/DEVICE/threaded` the interface DEVICE of the device under test receives \
             in a thread of its own (napi/DEVICE-...), which `taskset` keeps off the generator's \
             processor (--cpu)",
            share * 100.0
        ),
        _ => "it was held up, or this is the most it can send here. Keep other programs off its \
              processor (--cpu)"
            .to_owned(),
    };
    format!("The generator fell short: {what}.\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn advice_fits_what_held_the_generator_up() {
        for (sender, softirq, word) in [
            (Sender::Live, Some((3, 0.61)), "took 61 % of processor 3"),
            (Sender::AfXdp, Some((3, 0.61)), "threaded"),
            (Sender::Live, Some((3, 0.01)), "the most it can send here"),
            (Sender::AfXdp, None, "the most it can send here"),
            (Sender::Memif, Some((3, 0.61)), "other side of the memif"),
        ] {
            let text = advice(sender, softirq, None);
            assert!(text.contains(word), "{text}");
            assert!(text.contains("--cpu") && text.ends_with(".\n"), "{text}");
        }
        let held_up = advice(Sender::Memif, None, Some(Duration::from_millis(63)));
        assert!(held_up.contains("held up for 63 ms"), "{held_up}");
        let in_time = advice(Sender::Memif, None, Some(BACKLOG / 2));
        assert!(in_time.contains("other side of the memif"), "{in_time}");
    }
}
