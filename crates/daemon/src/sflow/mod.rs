//! The sFlow agent: samples of packets and counters of interfaces, sent to a collector
//! (sflow.org/sflow_version_5.txt).

mod agent;
mod show;

use std::io;
use std::net::IpAddr;
use std::time::Instant;

use control::config::Sflow;
use router::change::{Change, InterfaceId};
use router::{Router, arc};

use crate::daemon::Daemon;
use crate::interfaces::Slot;
use crate::routing::Routing;
use agent::Source;

pub use agent::Agent;
pub use show::show;

/// The packets of an interface are sampled from now on, one in so many; `None`: none are.
fn sample(routing: &mut Routing, interface: InterfaceId, rate: Option<u32>) -> Result<(), String> {
    let change = Change::FeatureSet {
        interface,
        feature: arc::SAMPLED,
        argument: rate,
    };
    routing.configure(vec![change]).map_err(|e| e.to_string())
}

impl Daemon {
    /// Samples go there, and are as many; `None`: there are none.
    ///
    /// # Errors
    /// No socket can be opened; the router's. Then all is as it was.
    pub fn set_sflow(&mut self, settings: Option<&Sflow>) -> Result<(), String> {
        let host = &*self.host;
        let open = |collector| host.udp_socket(collector);
        let set = self.sflow.set(settings, open);
        set.map_err(|e: io::Error| format!("cannot open a socket for samples: {e}"))?;
        let rate = settings.map(|settings| settings.sampling_rate);
        let slots = self.interfaces.slots.iter();
        for slot in slots.filter(|slot| slot.config.sampled) {
            sample(&mut self.routing, slot.ids.port, rate)?;
        }
        Ok(())
    }

    /// An interface's packets are sampled from now on, or not.
    ///
    /// # Errors
    /// There is no such interface; the router's.
    pub fn set_sampled(&mut self, name: &str, sampled: bool) -> Result<(), String> {
        let rate = self.sflow.rate().filter(|_| sampled);
        let slot = self.interfaces.named(name);
        let slot = slot.ok_or("there is no such interface")?;
        sample(&mut self.routing, slot.ids.port, rate)?;
        slot.config.sampled = sampled;
        Ok(())
    }

    /// Takes the samples that workers have made, and sends what is due.
    pub fn look_after_samples(&mut self, now: Instant) {
        let slots = &self.interfaces.slots;
        let router = &mut self.routing.router;
        let samples: Vec<_> = router.samples().collect();
        let Some(mut sending) = self.sflow.sending(now, address(slots)) else {
            return;
        };
        for sample in &samples {
            let mut sampled = slots.iter();
            let slot = sampled.find(|slot| slot.ids.port == sample.interface);
            if let Some(source) = slot.and_then(|slot| source(router, slot)) {
                sending.flow(&source, sample);
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
