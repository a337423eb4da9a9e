//! Requests to the kernel, a file for each kind of object.

mod address;
mod link;
mod namespace;
mod neighbor;
mod route;
mod rule;

use std::io;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use kernel::netlink::layout::{
    AddressHeader, Header, INET, INET6, LinkHeader, NeighborHeader, NexthopHeader, RTM_GETNEXTHOP,
    RouteHeader, UNSPEC,
};
use kernel::netlink::{Builder, Socket};

use crate::facts::Section;

pub use address::KernelAddress;
pub(crate) use address::has_other_length;
pub use namespace::{Kernel, Namespaces, namespaces};

/// Asks the kernel of one network namespace. Every request waits for the kernel's answer.
#[derive(Debug)]
pub struct Requests {
    socket: Socket,
    netns: Option<PathBuf>,
}

impl Requests {
    /// Opens a socket in a namespace (`None`: our own).
    ///
    /// # Errors
    /// The namespace cannot be entered; the process or the system has no more file descriptors.
    pub fn open(netns: Option<&Path>) -> io::Result<Self> {
        Ok(Requests {
            socket: Socket::route(netns)?,
            netns: netns.map(Path::to_owned),
        })
    }

    /// The same for dumps of which only a part is wanted ([`own_routes`](Self::own_routes)).
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn open_filtering(netns: Option<&Path>) -> io::Result<Self> {
        let mut requests = Self::open(netns)?;
        requests.socket.filter_dumps();
        Ok(requests)
    }
}

/// The request for a whole section, of all families.
pub fn dump(section: Section) -> Builder {
    match section {
        Section::Links => LinkHeader::named(0).message(libc::RTM_GETLINK),
        Section::Addresses => AddressHeader::of(UNSPEC).message(libc::RTM_GETADDR),
        Section::Nexthops => NexthopHeader::of(UNSPEC).message(RTM_GETNEXTHOP),
        Section::Neighbors => NeighborHeader::of(UNSPEC).message(libc::RTM_GETNEIGH),
        Section::Routes => RouteHeader::of(UNSPEC).message(libc::RTM_GETROUTE),
    }
}

/// The family of an address (`AF_*`), and its bytes.
fn bytes(address: IpAddr) -> (u8, Vec<u8>) {
    match address {
        IpAddr::V4(address) => (INET, address.octets().to_vec()),
        IpAddr::V6(address) => (INET6, address.octets().to_vec()),
    }
}
