//! `show sflow`.

use std::fmt;
use std::net::IpAddr;

use router::Router;
use serde::Serialize;

use super::agent::Agent;
use crate::interfaces::Slot;

/// `show sflow`.
#[derive(Serialize)]
pub struct Sflow {
    /// Null if nothing is sampled.
    sampling: Option<Sampling>,
    /// Datagrams that were sent.
    datagrams: u64,
    /// Datagrams that the kernel did not take.
    failed: u64,
    /// Why it did not take the last one; null if it did.
    error: Option<String>,
    interfaces: Vec<Interface>,
}

#[derive(Serialize)]
struct Sampling {
    collector: String,
    /// The router's address for the collector.
    agent: IpAddr,
    sampling_rate: u32,
    header_bytes: u16,
    /// Seconds.
    polling_interval: u16,
}

/// An interface whose packets are sampled.
#[derive(Serialize)]
struct Interface {
    name: String,
    /// Its number for the collector; null while its device is absent.
    ifindex: Option<u32>,
    /// Packets that have come in.
    packets: u64,
    /// Samples of them that were sent.
    samples: u32,
    /// Samples that found no room on their way from a worker.
    lost: u64,
}

/// What is sampled, and what has come of it.
pub fn show(agent: &Agent, slots: &[Slot], router: &Router) -> Sflow {
    let settings = agent.settings();
    let sampling = settings.map(|(settings, agent)| Sampling {
        collector: settings
            .collector
            .map(|c| c.0.to_string())
            .unwrap_or_default(),
        agent,
        sampling_rate: settings.sampling_rate,
        header_bytes: settings.header_bytes,
        polling_interval: settings.polling_interval,
    });
    let interface = |slot: &Slot| {
        let ifindex = slot.open().map(|open| open.ifindex);
        let counted = router.counted(slot.ids.port);
        Interface {
            name: slot.config.name.clone(),
            ifindex,
            packets: counted.packets.rx_packets,
            samples: ifindex.map_or(0, |index| agent.samples(index)),
            lost: counted.lost,
        }
    };
    let slots = slots.iter();
    Sflow {
        sampling,
        datagrams: u64::from(agent.datagrams) - agent.failed,
        failed: agent.failed,
        error: agent.error.map(|kind| kind.to_string()),
        interfaces: (slots.filter(|slot| slot.config.sampled).map(interface)).collect(),
    }
}

impl fmt::Display for Sflow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(sampling) = &self.sampling else {
            return writeln!(f, "no packets are sampled");
        };
        writeln!(f, "collector        {}", sampling.collector)?;
        writeln!(f, "agent            {}", sampling.agent)?;
        writeln!(f, "sampling-rate    1 in {}", sampling.sampling_rate)?;
        writeln!(f, "header-bytes     {}", sampling.header_bytes)?;
        writeln!(f, "polling-interval {} s", sampling.polling_interval)?;
        writeln!(
            f,
            "datagrams        {} sent, {} failed",
            self.datagrams, self.failed
        )?;
        if let Some(why) = &self.error {
            writeln!(f, "                 the last one: {why}")?;
        }
        let row = |f: &mut fmt::Formatter<'_>, cells: [&str; 5]| {
            let [name, ifindex, packets, samples, lost] = cells;
            writeln!(
                f,
                "{name:<32} {ifindex:>7} {packets:>16} {samples:>12} {lost:>8}"
            )
        };
        row(f, ["Interface", "ifIndex", "Packets", "Samples", "Lost"])?;
        for i in &self.interfaces {
            let ifindex = i.ifindex.map_or("-".into(), |n| n.to_string());
            let counts = [i.packets, i.samples.into(), i.lost].map(|n| n.to_string());
            row(f, [&i.name, &ifindex, &counts[0], &counts[1], &counts[2]])?;
        }
        Ok(())
    }
}
