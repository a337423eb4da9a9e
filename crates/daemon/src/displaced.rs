//! IPv6 addresses that interfaces are to have and cannot, since somebody else has given them to their
//! devices with another prefix length.

use std::fmt;

use control::config::{Address, Desired};
use control::netdev;

use super::daemon::Daemon;

/// Such an address.
pub struct Displaced {
    /// The name of the interface.
    pub interface: String,
    /// What it is to have.
    pub address: Address,
    /// Why it cannot, and what to do.
    pub why: String,
}

impl fmt::Display for Displaced {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Displaced {
            interface,
            address,
            why,
        } = self;
        write!(
            f,
            "interface {interface} lacks IPv6 address {address}: {why}"
        )
    }
}

impl Daemon {
    /// Those of a configuration; none if the kernel does not say what there is.
    pub fn displaced(&mut self, wanted: &Desired) -> Vec<Displaced> {
        let there = self.kernel.ip6_addresses().unwrap_or_default();
        let links = self.links();
        let all = wanted.interfaces.iter().chain(&wanted.loopbacks);
        let linked = all.filter_map(|config| Some((config, *links.get(&config.name)?)));
        let displaced = linked.flat_map(|(config, link)| {
            netdev::displaced(&there, link, config).map(|(address, why)| Displaced {
                interface: config.name.clone(),
                address: *address,
                why,
            })
        });
        displaced.collect()
    }
}
