//! What holds up a generator that falls short of its offer, and what to do about it.

use std::time::Instant;

use lab::cpu::Stat;
use loadgen::device::Sender;

/// Share of a processor's time from which on software interrupts are what holds up a generator on
/// it.
const MUCH: f64 = 0.1;

/// Looks at the processors from the beginning of a test on.
pub struct Watch {
    sender: Sender,
    cpu: Option<usize>,
    began: Instant,
    then: Stat,
}

impl Watch {
    /// For a sender of this kind, on this processor if it is bound to one.
    pub fn new(sender: Sender, cpu: Option<usize>) -> Watch {
        Watch {
            sender,
            cpu,
            began: Instant::now(),
            then: Stat::now().unwrap_or_default(),
        }
    }

    /// What to tell whose generator fell short.
    pub fn advice(&self) -> String {
        let now = Stat::now().unwrap_or_default();
        let seconds = self.began.elapsed().as_secs_f64();
        let softirq = |cpu: usize| now.since(&self.then, |c| c == cpu).softirq / seconds;
        // A thread that is not bound takes its software interrupts with it.
        let cpus = self.cpu.map_or_else(kernel::cpu::usable, |cpu| vec![cpu]);
        let shares = cpus.into_iter().map(|cpu| (cpu, softirq(cpu)));
        let most = shares.max_by(|(_, a), (_, b)| a.total_cmp(b));
        advice(self.sender, most)
    }
}

/// By kind of sender, and where software interrupts took which share of the time.
fn advice(sender: Sender, softirq: Option<(usize, f64)>) -> String {
    let what = match (sender, softirq) {
        (Sender::Memif, _) => {
            "the other side of the memif left no room in its ring. It has to be as fast as what it is offered, on a \
             processor that the generator does not use (--cpu)"
                .to_owned()
        }
        (_, Some((cpu, share))) if share >= MUCH => format!(
            "software interrupts took {:.0} % of processor {cpu}. What is sent to a virtual interface is received on the \
             sender's processor, and a kernel that forwards it does that there too. Give it another one: after `echo 1 > \
             /sys/class/net/DEVICE/threaded` an interface DEVICE of the device under test receives in a thread of its own \
             (napi/DEVICE-...), which `taskset` keeps off the generator's processor (--cpu)",
            share * 100.0
        ),
        _ => "this is all it can send here. Keep other programs off its processor (--cpu)".to_owned(),
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
            (Sender::Live, Some((3, 0.01)), "all it can send"),
            (Sender::AfXdp, None, "all it can send"),
            (Sender::Memif, Some((3, 0.61)), "other side of the memif"),
        ] {
            let text = advice(sender, softirq);
            assert!(text.contains(word), "{text}");
            assert!(text.contains("--cpu") && text.ends_with(".\n"), "{text}");
        }
    }
}
