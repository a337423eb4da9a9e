//! Addresses: reading, adding and removing them.

use std::io;
use std::net::IpAddr;

use kernel::netlink::layout::{
    AddressHeader, Header, IFA_PROTO, INET, INET6, LinkHeader, UNSPEC, read,
};
use kernel::netlink::{Attributes, Builder, u32_at};

use super::{Requests, bytes};
use crate::netlink::{PROTOCOL, decode};

/// Address attributes of a link, by family.
const IFLA_AF_SPEC: u16 = libc::IFLA_AF_SPEC;
/// Within IFLA_AF_SPEC and AF_INET: settings, by number (linux/if_link.h).
const IFLA_INET_CONF: u16 = 1;
/// The setting `promote_secondaries` (linux/ip.h).
const PROMOTE_SECONDARIES: u16 = 20;

/// An address of a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KernelAddress {
    /// The kernel's index of the device.
    pub link: u32,
    /// The address.
    pub address: IpAddr,
    /// Length of its prefix.
    pub length: u8,
    /// We have given it ([`PROTOCOL`]); else somebody else has.
    pub ours: bool,
    /// No other host has answered to it, and the kernel has asked; always so of IPv4.
    pub verified: bool,
}

impl From<decode::Held> for KernelAddress {
    fn from(held: decode::Held) -> Self {
        KernelAddress {
            link: held.link,
            address: held.address,
            length: held.length,
            ours: held.protocol == PROTOCOL,
            verified: held.verified,
        }
    }
}

impl Requests {
    /// The addresses that somebody has given devices, and whose they are. Those that the kernel makes
    /// by itself, link-local and autoconfigured ones, are not among them.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn all_addresses(&mut self) -> io::Result<Vec<KernelAddress>> {
        self.held(AddressHeader::of(UNSPEC), |held| !held.by_kernel)
    }

    /// The same of one device. One that is not there has none.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn addresses_of(&mut self, link: u32) -> io::Result<Vec<KernelAddress>> {
        let header = AddressHeader {
            link,
            ..AddressHeader::of(UNSPEC)
        };
        self.held(header, |held| !held.by_kernel)
    }

    /// The IPv6 addresses of all devices, those too that the kernel makes by itself.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn ip6_addresses(&mut self) -> io::Result<Vec<KernelAddress>> {
        self.held(AddressHeader::of(INET6), |_| true)
    }

    fn held(
        &mut self,
        header: AddressHeader,
        wanted: impl Fn(&decode::Held) -> bool,
    ) -> io::Result<Vec<KernelAddress>> {
        let mut all = Vec::new();
        self.dump_addresses(header, |payload| {
            let held = decode::held_address(payload);
            all.extend(held.filter(|held| wanted(held)).map(KernelAddress::from));
        })?;
        all.retain(|held| header.link == 0 || held.link == header.link);
        Ok(all)
    }

    /// Reads the addresses of the header's family and device, or of more: a kernel that does not
    /// filter has them all.
    fn dump_addresses(
        &mut self,
        header: AddressHeader,
        mut each: impl FnMut(&[u8]),
    ) -> io::Result<()> {
        let request = header.message(libc::RTM_GETADDR);
        match self.socket.dump(request, |message| each(message.payload)) {
            Err(error) if error.raw_os_error() == Some(libc::ENODEV) => Ok(()),
            done => done.map(drop),
        }
    }

    /// Adds an address to a device on nobody's account; it is no error if the device has it
    /// already.
    ///
    /// # Errors
    /// AlreadyExists: the device has that IPv6 address with another prefix length; what else the
    /// kernel reports.
    pub fn add_address(&mut self, link: u32, address: IpAddr, length: u8) -> io::Result<()> {
        let request = add(link, address, length);
        self.add(request, link, address, length).map(drop)
    }

    /// Adds an address to a device with our mark. False: the device has it already, and it stays
    /// whose it is.
    ///
    /// # Errors
    /// As [`add_address`](Self::add_address).
    pub fn give_address(&mut self, link: u32, address: IpAddr, length: u8) -> io::Result<bool> {
        let request = add(link, address, length).attribute(IFA_PROTO, &[PROTOCOL]);
        self.add(request, link, address, length)
    }

    /// The same of an IPv6 address that the device had a moment ago with another prefix length: the
    /// kernel does not ask again whether another host has it, which takes about a second.
    ///
    /// # Errors
    /// As [`add_address`](Self::add_address).
    pub fn give_again(&mut self, link: u32, address: IpAddr, length: u8) -> io::Result<bool> {
        let request = add(link, address, length)
            .attribute(IFA_PROTO, &[PROTOCOL])
            .number(libc::IFA_FLAGS, libc::IFA_F_NODAD);
        let new = self.add(request, link, address, length)?;
        if new {
            // It is asked again when the link comes back, as of any other.
            let request = named(libc::RTM_NEWADDR, link, address, length)
                .flags(libc::NLM_F_REPLACE)
                .attribute(IFA_PROTO, &[PROTOCOL]);
            self.socket.command(request)?;
        }
        Ok(new)
    }

    fn add(
        &mut self,
        request: Builder,
        link: u32,
        address: IpAddr,
        length: u8,
    ) -> io::Result<bool> {
        match self.socket.command(request) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            done => return done.map(|()| true),
        }
        match self.length_of(link, address, length)? {
            Some(its) if its != length => Err(io::Error::new(
                io::ErrorKind::AlreadyExists,
                has_other_length(address, its),
            )),
            _ => Ok(false),
        }
    }

    /// The prefix length of an address that a device has, whoever made it: `wanted` if it has that
    /// one too.
    fn length_of(&mut self, link: u32, address: IpAddr, wanted: u8) -> io::Result<Option<u8>> {
        let mut found = None;
        let (family, _) = bytes(address);
        let header = AddressHeader {
            link,
            ..AddressHeader::of(family)
        };
        self.dump_addresses(header, |payload| {
            let Some((its_link, its)) = decode::device_address(payload) else {
                return;
            };
            if (its_link, its.address) == (link, address) && found != Some(wanted) {
                found = Some(its.length);
            }
        })?;
        Ok(found)
    }

    /// Takes from a device an address that we have given it, and no other: an IPv4 address that came
    /// after it in the same network stays, though the kernel would drop it, too. Returns what it was;
    /// `None`: the device has no such address, or another one's.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn take_address(
        &mut self,
        link: u32,
        address: IpAddr,
        length: u8,
    ) -> io::Result<Option<KernelAddress>> {
        let is_it = |given: &KernelAddress| {
            (given.link, given.address, given.length) == (link, address, length) && given.ours
        };
        let Some(given) = self.addresses_of(link)?.into_iter().find(is_it) else {
            return Ok(None);
        };
        let request = named(libc::RTM_DELADDR, link, address, length);
        if address.is_ipv6() || self.promotes(link)? {
            return self.socket.command(request).map(|()| Some(given));
        }
        self.promote(link, true)?;
        let removed = self.socket.command(request);
        self.promote(link, false)?;
        removed.map(|()| Some(given))
    }

    /// Returns true if the kernel keeps the addresses of a device's network when it loses the
    /// first.
    fn promotes(&mut self, link: u32) -> io::Result<bool> {
        let mut promotes = false;
        let request = LinkHeader::named(link).message(libc::RTM_GETLINK);
        self.socket.ask(request, |message| {
            promotes |= setting(message.payload, PROMOTE_SECONDARIES).is_some_and(|on| on != 0);
        })?;
        Ok(promotes)
    }

    fn promote(&mut self, link: u32, on: bool) -> io::Result<()> {
        let request = LinkHeader::named(link).message(libc::RTM_NEWLINK);
        self.socket
            .command(request.nested(IFLA_AF_SPEC, |families| {
                families.nested(u16::from(INET), |ip4| {
                    ip4.nested(IFLA_INET_CONF, |settings| {
                        settings.number(PROMOTE_SECONDARIES, on.into())
                    })
                })
            }))
    }
}

/// Explains why a device cannot have an IPv6 address: it has it with the length `its`.
pub(crate) fn has_other_length(address: IpAddr, its: u8) -> String {
    format!(
        "the device has it as {address}/{its}, and an IPv6 address has only one prefix length on \
         a device: remove that one (`ip address del`), or write {address}/{its}"
    )
}

/// An IPv4 setting of a link, by its number from 1 on.
fn setting(payload: &[u8], number: u16) -> Option<u32> {
    let (_, attributes): (LinkHeader, _) = read(payload)?;
    let families = Attributes(attributes.find(IFLA_AF_SPEC)?);
    let ip4 = Attributes(families.find(INET.into())?);
    u32_at(ip4.find(IFLA_INET_CONF)?, usize::from(number - 1) * 4)
}

/// A message about an address of a device.
fn named(kind: u16, link: u32, address: IpAddr, length: u8) -> Builder {
    let (family, bytes) = bytes(address);
    let header = AddressHeader {
        length,
        link,
        ..AddressHeader::of(family)
    };
    header
        .message(kind)
        .attribute(libc::IFA_ADDRESS, &bytes)
        .attribute(libc::IFA_LOCAL, &bytes)
}

fn add(link: u32, address: IpAddr, length: u8) -> Builder {
    let request = named(libc::RTM_NEWADDR, link, address, length);
    let request = request.flags(libc::NLM_F_CREATE | libc::NLM_F_EXCL);
    match address {
        // The kernel does not derive the broadcast address.
        IpAddr::V4(address) if length < 31 => {
            let host = u32::MAX.checked_shr(length.into()).unwrap_or(0);
            let broadcast = (address.to_bits() | host).to_be_bytes();
            request.attribute(libc::IFA_BROADCAST, &broadcast)
        }
        _ => request,
    }
}
