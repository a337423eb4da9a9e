//! Facts about a network interface that a session needs: address and line rate.

use std::io;

use kernel::ethtool::Ethtool;
use kernel::netlink::layout::{Header, LinkHeader, read};
use kernel::netlink::{Attributes, Socket, text};
use loadgen::model::units::Bits;
use wire::eth::Mac;

use crate::Error;

/// An interface of the present network namespace that is up.
#[derive(Debug, Clone)]
pub struct Interface {
    /// Its name.
    pub name: String,
    /// The kernel's number for it.
    pub index: u32,
    /// Its own Ethernet address, if it has one.
    pub mac: Option<Mac>,
    /// What a virtual device is, as `ip link add type` has it; None of others.
    pub kind: Option<String>,
    is_up: bool,
}

/// A line rate on layer 1.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Line {
    /// Bits a second.
    pub rate: Bits,
    /// A virtual device made it up: good for percentages, but no limit to what the device can do.
    pub nominal: bool,
}

impl Interface {
    /// The interface of that name, or with that other name.
    ///
    /// # Errors
    /// There is none, or it is down.
    pub fn open(name: &str) -> Result<Self, Error> {
        let failed = |source| Error::Interface {
            name: name.to_owned(),
            source,
        };
        let interface = ask(name)
            .map_err(failed)?
            .ok_or_else(|| Error::NoInterface(name.to_owned()))?;
        if interface.is_up {
            Ok(interface)
        } else {
            Err(Error::Down(name.to_owned()))
        }
    }

    /// Its line rate, if the driver says.
    pub fn line(&self) -> Option<Line> {
        let mut ethtool = Ethtool::open(None).ok()?;
        let speed = ethtool.link_mode(self.index).ok()?.speed?;
        Some(Line {
            rate: Bits(f64::from(speed) * 1e6),
            nominal: self.kind.is_some(),
        })
    }
}

/// Asks the kernel for one link. Other names are as good as the first: it looks both up alike.
fn ask(name: &str) -> io::Result<Option<Interface>> {
    let request = LinkHeader::named(0)
        .message(libc::RTM_GETLINK)
        .string(libc::IFLA_ALT_IFNAME, name);
    let mut found = None;
    let asked = Socket::route(None)?.ask(request, |message| found = link(message.payload));
    match asked {
        Err(e) if matches!(e.raw_os_error(), Some(libc::ENODEV | libc::ERANGE)) => Ok(None),
        other => other.map(|()| found),
    }
}

/// Interface that an RTM_NEWLINK message describes.
fn link(payload: &[u8]) -> Option<Interface> {
    let (header, attributes): (LinkHeader, Attributes<'_>) = read(payload)?;
    let find = |kind| attributes.clone().find(kind);
    let mac = find(libc::IFLA_ADDRESS).and_then(|mac| mac.try_into().ok());
    let info = find(libc::IFLA_LINKINFO).map(Attributes);
    Some(Interface {
        name: find(libc::IFLA_IFNAME).map(text)?,
        index: header.index,
        mac: mac.map(Mac),
        is_up: header.flags & libc::IFF_UP as u32 != 0,
        kind: info
            .and_then(|info| info.find(libc::IFLA_INFO_KIND))
            .map(text),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interface_is_known_by_its_name() {
        let lo = ask("lo")
            .expect("the kernel answers")
            .expect("there is one");
        assert_eq!((lo.name.as_str(), lo.mac), ("lo", Some(Mac::default())));
        assert_eq!(kernel::netdev::index("lo"), Some(lo.index));
        assert!(lo.kind.is_none(), "its kind has no name");
    }

    #[test]
    fn what_is_not_there_is_said_with_what_helps() {
        let long = "no-such-device-with-a-name-that-only-another-name-may-have";
        for name in ["nowhere", long, &"x".repeat(200)] {
            let error = Interface::open(name)
                .expect_err("there is none")
                .to_string();
            assert_eq!(
                error,
                format!(
                    "{name}: there is no network device {name}; `ip link` shows which there are"
                )
            );
        }
    }
}
