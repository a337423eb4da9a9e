//! Rules that span interfaces: names, devices and networks that no two of them may share.

use serde_saphyr::Location;

use router::change::Kind;

use super::Address;
use super::problem::Problem;

/// Something that an interface has, and where in the file.
pub(super) struct Claim<T> {
    pub interface: String,
    pub what: T,
    pub at: Location,
}

/// What the interfaces of a file have, in its order.
#[derive(Default)]
pub(super) struct Claims {
    /// Their own names, and whether each has a host interface.
    pub names: Vec<Claim<bool>>,
    /// LCP names.
    pub lcps: Vec<Claim<String>>,
    /// Devices of the kernel.
    pub netdevs: Vec<Claim<String>>,
    /// Addresses.
    pub addresses: Vec<Claim<Address>>,
}

impl Claims {
    /// All that cannot be so together.
    pub fn conflicts(&self) -> Vec<Problem> {
        let mut problems = Vec::new();
        self.lcps_unique(&mut problems);
        self.netdevs_unique(&mut problems);
        self.host_interfaces_apart(&mut problems);
        self.addresses_apart(&mut problems);
        problems
    }

    fn lcps_unique(&self, problems: &mut Vec<Problem>) {
        for claim in &self.lcps {
            let Claim {
                interface,
                what: lcp,
                at,
            } = claim;
            if self.lcps.iter().filter(|other| other.what == *lcp).count() > 1 {
                let message =
                    format!("interface {interface} does not have a unique LCP name {lcp}");
                problems.push(Problem::new(*at, message).help("give each interface its own"));
            }
        }
    }

    fn netdevs_unique(&self, problems: &mut Vec<Problem>) {
        for (index, claim) in self.netdevs.iter().enumerate() {
            let mut before = self.netdevs[..index].iter();
            if let Some(other) = before.find(|other| other.what == claim.what) {
                let message = format!(
                    "interface {} stands for {}, as {} does",
                    claim.interface, claim.what, other.interface
                );
                let help = "a device can be only one interface";
                problems.push(Problem::new(claim.at, message).help(help));
            }
        }
    }

    fn host_interfaces_apart(&self, problems: &mut Vec<Problem>) {
        for claim in self.names.iter().filter(|claim| claim.what) {
            let of = &claim.interface;
            let host = Kind::host_name(of);
            if let Some(other) = self.names.iter().find(|other| other.interface == host) {
                let message = format!("interface {host} has the name of the host's end of {of}");
                problems.push(Problem::new(other.at, message).help("give it another"));
            }
        }
    }

    /// No network may overlap that of another interface; within one, hosts of the same network are
    /// fine.
    fn addresses_apart(&self, problems: &mut Vec<Problem>) {
        for (index, one) in self.addresses.iter().enumerate() {
            let clash = self.addresses.iter().enumerate().find(|(at, other)| {
                let elsewhere = other.interface != one.interface;
                let nested = *at < index && !other.what.same_network(&one.what);
                *at != index && (elsewhere || nested) && other.what.overlaps(&one.what)
            });
            if let Some((_, other)) = clash {
                let message = format!(
                    "interface {} IP address {} conflicts with another",
                    one.interface, one.what
                );
                let help = format!(
                    "its network overlaps that of {} on interface {}",
                    other.what, other.interface
                );
                problems.push(Problem::new(one.at, message).help(help));
            }
        }
    }
}
