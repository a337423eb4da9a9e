//! Neighbors: reading them, and having them resolved.

use std::io;
use std::net::IpAddr;

use kernel::netlink::Builder;
use kernel::netlink::layout::{Header, NeighborHeader, read};

use super::{Requests, bytes, dump};
use crate::facts::{Neighbor, Section};
use crate::netlink::decode;

impl Requests {
    /// The hosts that are neighbors on a device: not groups, nor what the kernel maps to an Ethernet
    /// address without asking (NUD_NOARP), such as the multicast that a host with IPv6 sends itself.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn neighbors(&mut self, link: u32) -> io::Result<Vec<Neighbor>> {
        let mut neighbors = Vec::new();
        self.socket.dump(dump(Section::Neighbors), |message| {
            if state(message.payload) & libc::NUD_NOARP == 0 {
                let neighbor = decode::neighbor(message.payload);
                let is_host = |n: &Neighbor| n.link == link && !n.address.is_multicast();
                neighbors.extend(neighbor.filter(is_host));
            }
        })?;
        Ok(neighbors)
    }

    /// Tells the kernel that a neighbor is in use, so that it resolves an unknown one and confirms
    /// a stale one as if it had a packet for it (NTF_USE). The kernel does not see what the fast
    /// path forwards, so this must be repeated for as long as a neighbor is used, well within
    /// `base_reachable_time` (30 s).
    ///
    /// One that an operator has set for good stays as it is: NTF_USE would take its permanence
    /// away, and its address.
    ///
    /// # Errors
    /// ENODEV: no such device; ENETDOWN: it is down.
    pub fn use_neighbor(&mut self, link: u32, address: IpAddr) -> io::Result<()> {
        if self.is_permanent(link, address)? {
            return Ok(());
        }
        let request = request(libc::RTM_NEWNEIGH, link, address, libc::NTF_USE);
        self.socket.command(request.flags(libc::NLM_F_CREATE))
    }

    /// Returns true if a neighbor needs no resolution (NUD_PERMANENT, NUD_NOARP). One that is not
    /// known does.
    fn is_permanent(&mut self, link: u32, address: IpAddr) -> io::Result<bool> {
        const SETTLED: u16 = libc::NUD_PERMANENT | libc::NUD_NOARP;
        let mut found = 0;
        let request = request(libc::RTM_GETNEIGH, link, address, 0);
        let asked = self
            .socket
            .ask(request, |message| found = state(message.payload));
        match asked {
            Ok(()) => Ok(found & SETTLED != 0),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }
}

/// The state (NUD_*) in a message about a neighbor; 0 (NUD_NONE) where there is none.
fn state(payload: &[u8]) -> u16 {
    read::<NeighborHeader>(payload).map_or(0, |(header, _)| header.state)
}

/// A message about one neighbor.
fn request(kind: u16, link: u32, address: IpAddr, flags: u8) -> Builder {
    let (family, bytes) = bytes(address);
    let header = NeighborHeader {
        link,
        flags,
        ..NeighborHeader::of(family)
    };
    header.message(kind).attribute(libc::NDA_DST, &bytes)
}
