//! Addresses: reading and adding them.

use std::io;
use std::net::IpAddr;

use kernel::netlink::Builder;
use kernel::netlink::layout::{AddressHeader, Header, UNSPEC};

use super::{Requests, bytes};
use crate::netlink::decode;

impl Requests {
    /// The addresses that somebody has given a device, with their prefix lengths. Those that the
    /// kernel makes by itself, link-local and autoconfigured ones, are not among them.
    ///
    /// # Errors
    /// What the kernel reports.
    pub fn addresses(&mut self, link: u32) -> io::Result<Vec<(IpAddr, u8)>> {
        let mut addresses = Vec::new();
        let all = AddressHeader::of(UNSPEC); // of either family
        self.0.dump(all.message(libc::RTM_GETADDR), |message| {
            addresses.extend(decode::given_address(link, message.payload));
        })?;
        Ok(addresses)
    }

    /// Adds an address to a device; it is no error if the device has it already.
    ///
    /// # Errors
    /// What the kernel reports.
    pub fn add_address(&mut self, link: u32, address: IpAddr, length: u8) -> io::Result<()> {
        match self.0.command(add(link, address, length)) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
            other => other,
        }
    }
}

fn add(link: u32, address: IpAddr, length: u8) -> Builder {
    let (family, bytes) = bytes(address);
    let header = AddressHeader {
        length,
        link,
        ..AddressHeader::of(family)
    };
    let request = header
        .message(libc::RTM_NEWADDR)
        .flags(libc::NLM_F_CREATE | libc::NLM_F_EXCL)
        .attribute(libc::IFA_ADDRESS, &bytes)
        .attribute(libc::IFA_LOCAL, &bytes);
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
