//! Links: finding, renaming, moving and changing them.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

use kernel::netlink::Builder;
use kernel::netlink::layout::{Header, LinkHeader, RTM_DELLINKPROP, RTM_NEWLINKPROP};
use router::change::Mac;

use super::{Requests, dump};
use crate::facts::{BRIDGE, Link, Section};
use crate::netlink::decode;

/// Group of devices that are about to be removed, with the number of the process: nobody else has
/// it.
const REMOVED: u32 = 0x5000_0000;

impl Requests {
    /// All devices.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn links(&mut self) -> io::Result<Vec<Link>> {
        let mut links = Vec::new();
        self.socket.dump(dump(Section::Links), |message| {
            links.extend(decode::link(message.payload));
        })?;
        Ok(links)
    }

    /// The device of a name or alternative name.
    ///
    /// # Errors
    /// NotFound: there is none.
    pub fn link_named(&mut self, name: &str) -> io::Result<Link> {
        // The kernel looks for either under either attribute, if it is long enough for the name.
        let attribute = match name.len() {
            0..libc::IFNAMSIZ => libc::IFLA_IFNAME,
            _ => libc::IFLA_ALT_IFNAME,
        };
        let request = LinkHeader::named(0)
            .message(libc::RTM_GETLINK)
            .string(attribute, name);
        let mut found = None;
        let asked = self.socket.ask(request, |message| {
            found = found.take().or(decode::link(message.payload));
        });
        let missing = || {
            let what = format!("there is no network device {name}");
            io::Error::new(io::ErrorKind::NotFound, what)
        };
        match asked.map_err(|error| (error.raw_os_error(), error)) {
            // What is no name, or too long for a kernel that knows no alternative ones, is refused.
            Err((Some(libc::ENODEV | libc::EINVAL | libc::ERANGE), _)) => Err(missing()),
            Err((_, error)) => Err(error),
            Ok(()) => found.ok_or_else(missing),
        }
    }

    /// Sets a device administratively up or down.
    ///
    /// # Errors
    /// The error of the kernel or of the driver.
    pub fn set_up(&mut self, link: u32, up: bool) -> io::Result<()> {
        let flag = libc::IFF_UP as u32;
        let header = LinkHeader {
            flags: if up { flag } else { 0 },
            change: flag,
            ..LinkHeader::named(link)
        };
        self.socket.command(header.message(libc::RTM_NEWLINK))
    }

    /// Sets the MTU in bytes.
    ///
    /// # Errors
    /// EINVAL: the device cannot have it.
    pub fn set_mtu(&mut self, link: u32, mtu: u32) -> io::Result<()> {
        self.socket
            .command(change(link).number(libc::IFLA_MTU, mtu))
    }

    /// Sets the Ethernet address. Some drivers refuse that while the device is up; it is then taken
    /// down for the moment.
    ///
    /// # Errors
    /// The driver's error.
    pub fn set_mac(&mut self, link: u32, mac: Mac) -> io::Result<()> {
        let request = change(link).attribute(libc::IFLA_ADDRESS, &mac.0);
        self.change_down_if_busy(link, &request)
    }

    /// Renames a device. Kernels before 6.2 refuse that while it is up; it is then taken down for
    /// the moment.
    ///
    /// # Errors
    /// EEXIST: the name is taken; EINVAL: it is not a valid name.
    pub fn rename(&mut self, link: u32, name: &str) -> io::Result<()> {
        let request = change(link).string(libc::IFLA_IFNAME, name);
        self.change_down_if_busy(link, &request)
    }

    /// Changes a device, taking it down for the moment if need be. Its routes and IPv6 addresses do
    /// not survive that.
    fn change_down_if_busy(&mut self, link: u32, request: &Builder) -> io::Result<()> {
        match self.socket.command(request.clone()) {
            Err(error) if error.raw_os_error() == Some(libc::EBUSY) => {
                self.set_up(link, false)?;
                let changed = self.socket.command(request.clone());
                self.set_up(link, true)?;
                changed
            }
            other => other,
        }
    }

    /// Removes devices all at once. One by one each of them waits for the kernel's readers, some 20
    /// ms. Those that are gone are no error.
    ///
    /// # Errors
    /// EOPNOTSUPP: there is one among them that cannot be removed, and all are there still.
    pub fn remove_all(&mut self, links: &[u32]) -> io::Result<()> {
        let group = REMOVED | std::process::id();
        let removal = LinkHeader::named(0).message(libc::RTM_DELLINK);
        let ours = |request: Builder| request.number(libc::IFLA_GROUP, group);
        let requests = links.iter().map(|link| change(*link)).chain([removal]);
        for request in requests {
            match self.socket.command(ours(request)) {
                Err(error) if error.raw_os_error() == Some(libc::ENODEV) => {}
                done => done?,
            }
        }
        Ok(())
    }

    /// Makes a bridge, which is up.
    ///
    /// # Errors
    /// EEXIST: the name is taken; EOPNOTSUPP: the kernel has no bridges.
    pub fn add_bridge(&mut self, name: &str) -> io::Result<()> {
        let up = libc::IFF_UP as u32;
        let header = LinkHeader {
            flags: up,
            change: up,
            ..LinkHeader::named(0)
        };
        let request = header
            .message(libc::RTM_NEWLINK)
            .flags(libc::NLM_F_CREATE | libc::NLM_F_EXCL)
            .string(libc::IFLA_IFNAME, name)
            .nested(libc::IFLA_LINKINFO, |kind| {
                kind.string(libc::IFLA_INFO_KIND, BRIDGE)
            });
        self.socket.command(request)
    }

    /// Makes a device a port of a bridge.
    ///
    /// # Errors
    /// ENODEV: one of them is not there; EINVAL: the other is no bridge.
    pub fn join(&mut self, link: u32, bridge: u32) -> io::Result<()> {
        self.socket
            .command(change(link).number(libc::IFLA_MASTER, bridge))
    }

    /// Gives a device an alternative name (`add`) or takes it away.
    ///
    /// # Errors
    /// EEXIST: the name is taken; ENOENT: it has no such name.
    pub fn altname(&mut self, link: u32, name: &str, add: bool) -> io::Result<()> {
        let create = libc::NLM_F_CREATE | libc::NLM_F_EXCL | libc::NLM_F_APPEND;
        let (kind, flags) = if add {
            (RTM_NEWLINKPROP, create)
        } else {
            (RTM_DELLINKPROP, 0)
        };
        let request = LinkHeader::named(link).message(kind).flags(flags);
        self.socket
            .command(request.nested(libc::IFLA_PROP_LIST, |list| {
                list.string(libc::IFLA_ALT_IFNAME, name)
            }))
    }

    /// Moves a device to another network namespace under a name. It is down and without addresses
    /// there, and may have another index.
    ///
    /// # Errors
    /// EEXIST: the name is taken there; EINVAL: the device cannot be moved.
    pub fn move_to(&mut self, link: u32, namespace: &File, name: &str) -> io::Result<()> {
        let namespace = namespace.as_raw_fd().to_ne_bytes();
        let request = change(link).attribute(libc::IFLA_NET_NS_FD, &namespace);
        self.socket.command(request.string(libc::IFLA_IFNAME, name))
    }
}

fn change(link: u32) -> Builder {
    LinkHeader::named(link).message(libc::RTM_NEWLINK)
}
