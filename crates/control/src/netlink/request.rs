//! What is asked of the kernel: to resolve a neighbor, to change a device.

use std::fs::{self, File};
use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::os::fd::AsRawFd;
use std::path::Path;

use kernel::netlink::{Attributes, Builder, Socket, u16_at, u32_at};
use kernel::netns::within;
use router::change::Mac;

use super::decode;
use crate::facts::{Event, Link, Neighbor};

// What libc lacks of linux/rtnetlink.h and linux/fib_rules.h.
const RTM_NEWLINKPROP: u16 = 108;
const RTM_DELLINKPROP: u16 = 109;
const FRA_PRIORITY: u16 = 6;

/// Asks the kernel of one network namespace. Every request waits for the kernel's answer.
#[derive(Debug)]
pub struct Requests(Socket);

impl Requests {
    /// Opens a socket in a namespace (`None`: our own).
    ///
    /// # Errors
    /// The namespace cannot be entered, or netlink is not to be had.
    pub fn open(netns: Option<&Path>) -> io::Result<Self> {
        Ok(Requests(Socket::route(netns)?))
    }

    /// Tells the kernel that a neighbor is in use, so that it resolves an unknown one and confirms
    /// a stale one as if it had a packet for it (NTF_USE). What the fast path forwards is not seen
    /// by the kernel, so this must be said again for as long as a neighbor is used, well within
    /// `base_reachable_time` (30 s).
    ///
    /// One that an operator has set for good stays as it is: NTF_USE would take its permanence
    /// away, and its address.
    ///
    /// # Errors
    /// ENODEV: no such device; ENETDOWN: it is down.
    pub fn use_neighbor(&mut self, link: u32, address: Ipv4Addr) -> io::Result<()> {
        if self.is_permanent(link, address)? {
            return Ok(());
        }
        let request = Builder::new(libc::RTM_NEWNEIGH, &neighbor_header(link, libc::NTF_USE))
            .flags(libc::NLM_F_CREATE)
            .attribute(libc::NDA_DST, &address.octets());
        self.0.command(request)
    }

    /// Whether a neighbor needs no resolution (NUD_PERMANENT, NUD_NOARP). One that is not known
    /// does.
    fn is_permanent(&mut self, link: u32, address: Ipv4Addr) -> io::Result<bool> {
        const SETTLED: u16 = libc::NUD_PERMANENT | libc::NUD_NOARP;
        let request = Builder::new(libc::RTM_GETNEIGH, &neighbor_header(link, 0))
            .attribute(libc::NDA_DST, &address.octets());
        let mut state = 0;
        let asked = self.0.ask(request, |message| {
            state = u16_at(message.payload, 8).unwrap_or(0);
        });
        match asked {
            Ok(()) => Ok(state & SETTLED != 0),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// All devices.
    ///
    /// # Errors
    /// What the kernel reports.
    pub fn links(&mut self) -> io::Result<Vec<Link>> {
        let request = Builder::new(libc::RTM_GETLINK, &link_header(0, 0, 0));
        let mut links = Vec::new();
        self.0.dump(request, |message| {
            if let Some(Event::Link(link)) = decode::event(message) {
                links.push(link);
            }
        })?;
        Ok(links)
    }

    /// The device of a name or alternative name.
    ///
    /// # Errors
    /// NotFound: there is none.
    pub fn link_named(&mut self, name: &str) -> io::Result<Link> {
        let links = self.links()?;
        let by_name = links.iter().position(|link| link.name == name);
        let found = by_name.or_else(|| {
            links
                .iter()
                .position(|link| link.altnames.iter().any(|other| other == name))
        });
        let missing = || {
            io::Error::new(
                io::ErrorKind::NotFound,
                format!("there is no network device {name}"),
            )
        };
        found
            .and_then(|at| links.into_iter().nth(at))
            .ok_or_else(missing)
    }

    /// The IPv4 neighbors on a device.
    ///
    /// # Errors
    /// What the kernel reports.
    pub fn neighbors(&mut self, link: u32) -> io::Result<Vec<Neighbor>> {
        let request = Builder::new(libc::RTM_GETNEIGH, &neighbor_header(0, 0));
        let mut neighbors = Vec::new();
        self.0.dump(request, |message| {
            if let Some(Event::Neighbor(neighbor)) = decode::event(message)
                && neighbor.link == link
            {
                neighbors.push(neighbor);
            }
        })?;
        Ok(neighbors)
    }

    /// The addresses of a device, with their prefix lengths, that are not the kernel's own doing:
    /// link-local and autoconfigured ones it makes anew.
    ///
    /// # Errors
    /// What the kernel reports.
    pub fn addresses(&mut self, link: u32) -> io::Result<Vec<(IpAddr, u8)>> {
        let mut addresses = Vec::new();
        let request = Builder::new(libc::RTM_GETADDR, &[0; 8]); // struct ifaddrmsg
        self.0.dump(request, |message| {
            addresses.extend(given_address(link, message.payload));
        })?;
        Ok(addresses)
    }

    /// Whether IPv4 routing depends on more than the destination: policy rules (`ip rule`) beside
    /// the kernel's own three, for tables local, main and default.
    ///
    /// # Errors
    /// What the kernel reports.
    pub fn has_policy_rules(&mut self) -> io::Result<bool> {
        let mut fixed = [0; 12]; // struct fib_rule_hdr
        fixed[0] = libc::AF_INET as u8;
        let mut more = false;
        self.0
            .dump(Builder::new(libc::RTM_GETRULE, &fixed), |message| {
                let priority = Attributes::behind(message.payload, 12).find(FRA_PRIORITY);
                let priority = priority.and_then(|value| u32_at(value, 0)).unwrap_or(0);
                let table = message.payload.get(4).copied().unwrap_or(0);
                more |= !matches!((priority, table), (0, 255) | (32766, 254) | (32767, 253));
            })?;
        Ok(more)
    }

    /// Sets a device administratively up or down.
    ///
    /// # Errors
    /// What the kernel or the driver reports.
    pub fn set_up(&mut self, link: u32, up: bool) -> io::Result<()> {
        let flag = libc::IFF_UP as u32;
        self.0
            .command(change_link(link, if up { flag } else { 0 }, flag))
    }

    /// Sets the MTU in bytes.
    ///
    /// # Errors
    /// EINVAL: the device cannot have it.
    pub fn set_mtu(&mut self, link: u32, mtu: u32) -> io::Result<()> {
        self.0
            .command(change_link(link, 0, 0).number(libc::IFLA_MTU, mtu))
    }

    /// Sets the Ethernet address. Some drivers refuse that while the device is up; then it is taken
    /// down for the moment.
    ///
    /// # Errors
    /// What the driver reports.
    pub fn set_mac(&mut self, link: u32, mac: Mac) -> io::Result<()> {
        self.change(link, || {
            change_link(link, 0, 0).attribute(libc::IFLA_ADDRESS, &mac.0)
        })
    }

    /// Renames a device. Kernels before 6.2 refuse that while it is up; then it is taken down for
    /// the moment.
    ///
    /// # Errors
    /// EEXIST: the name is taken; EINVAL: it is not a valid name.
    pub fn rename(&mut self, link: u32, name: &str) -> io::Result<()> {
        self.change(link, || {
            change_link(link, 0, 0).string(libc::IFLA_IFNAME, name)
        })
    }

    /// Changes a device, if need be while it is down. Its routes and IPv6 addresses do not outlast
    /// that.
    fn change(&mut self, link: u32, request: impl Fn() -> Builder) -> io::Result<()> {
        match self.0.command(request()) {
            Err(error) if error.raw_os_error() == Some(libc::EBUSY) => {
                self.set_up(link, false)?;
                let changed = self.0.command(request());
                self.set_up(link, true)?;
                changed
            }
            other => other,
        }
    }

    /// Gives a device an alternative name (`add`) or takes it away.
    ///
    /// # Errors
    /// EEXIST: the name is taken; ENOENT: it has no such name.
    pub fn altname(&mut self, link: u32, name: &str, add: bool) -> io::Result<()> {
        let create = libc::NLM_F_CREATE | libc::NLM_F_EXCL | libc::NLM_F_APPEND;
        let (kind, flags) = match add {
            true => (RTM_NEWLINKPROP, create),
            false => (RTM_DELLINKPROP, 0),
        };
        let request = Builder::new(kind, &link_header(link, 0, 0)).flags(flags);
        self.0.command(request.nested(libc::IFLA_PROP_LIST, |list| {
            list.string(libc::IFLA_ALT_IFNAME, name)
        }))
    }

    /// Moves a device to another network namespace under a name. It is down and without addresses
    /// there, and may have another index.
    ///
    /// # Errors
    /// EEXIST: the name is taken there; EINVAL: the device cannot be moved.
    pub fn move_to(&mut self, link: u32, namespace: &File, name: &str) -> io::Result<()> {
        let fd = namespace.as_raw_fd() as u32;
        self.0.command(
            change_link(link, 0, 0)
                .number(libc::IFLA_NET_NS_FD, fd)
                .string(libc::IFLA_IFNAME, name),
        )
    }

    /// Adds an address to a device; one that it has already is no error.
    ///
    /// # Errors
    /// What the kernel reports.
    pub fn add_address(&mut self, link: u32, address: IpAddr, length: u8) -> io::Result<()> {
        match self.0.command(address_request(link, address, length)) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
            other => other,
        }
    }
}

/// Whether the kernel of a namespace forwards IPv4 packets by itself.
///
/// # Errors
/// The namespace cannot be entered or /proc is not mounted.
pub fn ip_forward(netns: Option<&Path>) -> io::Result<bool> {
    within(netns, || {
        Ok(fs::read_to_string("/proc/sys/net/ipv4/ip_forward")?.trim() == "1")
    })
}

/// `struct ndmsg` with NUD_NONE.
fn neighbor_header(link: u32, flags: u8) -> [u8; 12] {
    let mut fixed = [0; 12];
    fixed[0] = libc::AF_INET as u8;
    fixed[4..8].copy_from_slice(&link.to_ne_bytes());
    fixed[10] = flags;
    fixed
}

/// `struct ifinfomsg`.
fn link_header(link: u32, flags: u32, mask: u32) -> [u8; 16] {
    let mut fixed = [0; 16];
    fixed[4..8].copy_from_slice(&link.to_ne_bytes());
    fixed[8..12].copy_from_slice(&flags.to_ne_bytes());
    fixed[12..].copy_from_slice(&mask.to_ne_bytes());
    fixed
}

fn change_link(link: u32, flags: u32, mask: u32) -> Builder {
    Builder::new(libc::RTM_NEWLINK, &link_header(link, flags, mask))
}

fn address_request(link: u32, address: IpAddr, length: u8) -> Builder {
    let (family, bytes) = match address {
        IpAddr::V4(address) => (libc::AF_INET, address.octets().to_vec()),
        IpAddr::V6(address) => (libc::AF_INET6, address.octets().to_vec()),
    };
    let mut fixed = [family as u8, length, 0, 0, 0, 0, 0, 0]; // struct ifaddrmsg
    fixed[4..].copy_from_slice(&link.to_ne_bytes());
    let request = Builder::new(libc::RTM_NEWADDR, &fixed)
        .flags(libc::NLM_F_CREATE | libc::NLM_F_EXCL)
        .attribute(libc::IFA_ADDRESS, &bytes)
        .attribute(libc::IFA_LOCAL, &bytes);
    match address {
        // The broadcast address is not derived by the kernel.
        IpAddr::V4(address) if length < 31 => {
            let host = u32::MAX.checked_shr(length.into()).unwrap_or(0);
            request.attribute(
                libc::IFA_BROADCAST,
                &(u32::from(address) | host).to_be_bytes(),
            )
        }
        _ => request,
    }
}

/// An address that somebody has given a device, and its prefix length, out of a message of the
/// kernel.
fn given_address(link: u32, message: &[u8]) -> Option<(IpAddr, u8)> {
    // struct ifaddrmsg: family, prefix length, flags, scope, index.
    let &[family, length, flags, scope, ..] = message else {
        return None;
    };
    // On a point-to-point link IFA_ADDRESS is the peer.
    let attributes = Attributes::behind(message, 8);
    let local = attributes.clone().find(libc::IFA_LOCAL);
    let bytes = local.or_else(|| attributes.find(libc::IFA_ADDRESS))?;
    let address = match i32::from(family) {
        libc::AF_INET => IpAddr::from(<[u8; 4]>::try_from(bytes).ok()?),
        libc::AF_INET6 => IpAddr::from(<[u8; 16]>::try_from(bytes).ok()?),
        _ => return None,
    };
    let stays = u32::from(flags) & libc::IFA_F_PERMANENT != 0 && scope != libc::RT_SCOPE_LINK;
    let given = address.is_ipv4() || stays;
    (u32_at(message, 4)? == link && given).then_some((address, length))
}
