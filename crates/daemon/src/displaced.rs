//! IPv6 addresses that interfaces are to have and cannot, since somebody else has given them to their
//! devices with another prefix length.

use std::collections::{HashMap, HashSet};
use std::fmt;

use control::config::Address;
use control::config::desired::{Interface, Kind};
use control::netdev;
use control::netlink::KernelAddress;

/// Such an address.
pub struct Displaced {
    /// The name of the interface.
    pub interface: String,
    /// The address that it lacks.
    pub address: Address,
    /// The reason, and the remedy.
    pub why: String,
}

/// What a change has seen, and no configuration tells of.
#[derive(Debug, Default)]
pub struct Seen {
    /// Those that were missing before it, by name of the interface.
    pub missing: HashSet<(String, Address)>,
    /// The one that the last step has taken from a device.
    pub taken: Option<KernelAddress>,
    /// TAPs whose host's ends were not in their places, by name: as they were, and as they were to be.
    pub astray: HashMap<String, (Kind, Kind)>,
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

/// Those of some interfaces, by the IPv6 addresses of all devices and the kernel's indexes of theirs.
pub fn displaced<'c>(
    there: &[KernelAddress],
    links: &HashMap<String, u32>,
    interfaces: impl Iterator<Item = &'c Interface>,
) -> impl Iterator<Item = Displaced> {
    let linked = interfaces.filter_map(|config| Some((config, *links.get(&config.name)?)));
    linked.flat_map(|(config, link)| {
        netdev::displaced(there, link, config).map(|(address, why)| Displaced {
            interface: config.name.clone(),
            address: *address,
            why,
        })
    })
}
