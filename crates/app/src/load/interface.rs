//! What the load tester wants to know about a network interface: addresses and line rate.

use std::error::Error;

use control::facts::Link;
use control::netlink::Requests;
use kernel::ethtool::Ethtool;
use loadgen::model::units::Bits;
use wire::eth::Mac;

/// An interface of the present network namespace.
pub struct Interface(Link);

/// A line rate on layer 1.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Line {
    /// Bits a second.
    pub rate: Bits,
    /// A virtual device made it up: good for percentages, but no limit to what the device can do.
    pub nominal: bool,
}

impl Interface {
    /// The interface of that name.
    ///
    /// # Errors
    /// There is none, or it is down.
    pub fn open(name: &str) -> Result<Interface, Box<dyn Error>> {
        let link = Requests::open(None)
            .and_then(|mut requests| requests.link_named(name))
            .map_err(|e| format!("{name}: {e}; `ip link` shows which there are"))?;
        if !link.admin_up {
            return Err(format!("{name} is down; `ip link set {name} up` first").into());
        }
        Ok(Interface(link))
    }

    /// The kernel's number for it.
    pub fn index(&self) -> u32 {
        self.0.index
    }

    /// Its own Ethernet address.
    ///
    /// # Errors
    /// It has none.
    pub fn mac(&self) -> Result<Mac, Box<dyn Error>> {
        let name = &self.0.name;
        let none = || format!("{name} has no Ethernet address; give --src-mac").into();
        self.0.mac.ok_or_else(none)
    }

    /// The only neighbor that the kernel knows on this link: whoever routes what is sent here.
    ///
    /// # Errors
    /// It knows none, or several.
    pub fn neighbor(&self) -> Result<Mac, Box<dyn Error>> {
        let neighbors = Requests::open(None)?.neighbors(self.0.index)?;
        let mut known: Vec<Mac> = Vec::new();
        for mac in neighbors.into_iter().filter_map(|neighbor| neighbor.mac) {
            if !known.contains(&mac) {
                known.push(mac);
            }
        }
        let name = &self.0.name;
        match known[..] {
            [mac] => Ok(mac),
            [] => Err(format!("{name} has no known neighbor to send to; give --dst-mac").into()),
            _ => Err(format!(
                "{name} has {} neighbors; say by --dst-mac which one to send to: {}",
                known.len(),
                known
                    .iter()
                    .map(Mac::to_string)
                    .collect::<Vec<_>>()
                    .join(", ")
            )
            .into()),
        }
    }

    /// Its line rate, if the driver says.
    pub fn line(&self) -> Option<Line> {
        let speed = Ethtool::open(None)
            .ok()?
            .link_mode(self.0.index)
            .ok()?
            .speed?;
        Some(Line {
            rate: Bits(f64::from(speed) * 1e6),
            nominal: self.0.kind.is_some(),
        })
    }
}
