//! The sFlow agent: samples of packets and counters of interfaces, sent to a collector
//! (sflow.org/sflow_version_5.txt).

mod agent;
mod show;

use std::collections::HashMap;
use std::net::IpAddr;
use std::time::Instant;

use control::config::Sflow;
use router::{Change, Router, arc};

use crate::host::Host;
use crate::interfaces::Slot;
use crate::routing::Routing;
use agent::Source;

pub use agent::Agent;
pub use show::show;

impl Agent {
    /// Samples go there, and are as many; `None`: there are none.
    ///
    /// # Errors
    /// No socket can be opened, and all is as it was; the router's.
    pub fn configure(
        &mut self,
        settings: Option<&Sflow>,
        host: &dyn Host,
        slots: &[Slot],
        routing: &mut Routing,
    ) -> Result<(), String> {
        let set = self.set(settings, |collector| host.udp_socket(collector));
        set.map_err(|e| format!("cannot open a socket for samples: {e}"))?;
        let mut sampled = slots.iter().filter(|slot| slot.config.sampled);
        sampled.try_for_each(|slot| self.sample(slot, routing))
    }

    /// An interface's packets are sampled from now on if its configuration says so, at our rate.
    ///
    /// # Errors
    /// The router's.
    pub fn sample(&self, slot: &Slot, routing: &mut Routing) -> Result<(), String> {
        let change = Change::FeatureSet {
            interface: slot.ids.port,
            feature: arc::SAMPLED,
            argument: self.rate().filter(|_| slot.config.sampled),
        };
        routing.configure(vec![change]).map_err(|e| e.to_string())
    }

    /// Takes the samples that workers have made, and sends what is due.
    pub fn tick(&mut self, now: Instant, slots: &[Slot], router: &mut Router) {
        let samples: Vec<_> = router.samples().collect();
        let Some(mut sending) = self.sending(now, || address(slots)) else {
            return;
        };
        let mut sources = HashMap::new();
        for sample in &samples {
            let known = sources.entry(sample.interface).or_insert_with(|| {
                let mut sampled = slots.iter();
                let slot = sampled.find(|slot| slot.ids.port == sample.interface);
                slot.and_then(|slot| source(router, slot))
            });
            if let Some(source) = known {
                sending.flow(source, sample);
            }
        }
        if sending.counters_are_due() {
            let sampled = slots.iter().filter(|slot| slot.config.sampled);
            for source in sampled.filter_map(|slot| source(router, slot)) {
                sending.counters(&source);
            }
        }
        sending.flush_if_due();
    }
}

/// What collectors are told of an interface; `None`: it is not there.
fn source(router: &Router, slot: &Slot) -> Option<Source> {
    Some(Source {
        index: slot.open()?.ifindex,
        counted: router.counted(slot.ids.port),
        admin_up: slot.config.up,
        up: router.is_up(slot.ids.port),
        promiscuous: slot.l2.is_some(),
    })
}

/// The lowest address of the router, of IPv4 if it has one; link-local ones are no name for it.
fn address(slots: &[Slot]) -> Option<IpAddr> {
    let all = slots.iter().flat_map(|slot| &slot.config.addresses);
    let global = all.filter(|address| !address.is_link_local());
    global.map(|address| address.address).min()
}
