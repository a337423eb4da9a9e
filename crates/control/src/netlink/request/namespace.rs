//! The kernel of a network namespace, as the router sees it.

use std::fs::File;
use std::io;
use std::net::IpAddr;
use std::path::Path;
use std::rc::Rc;

use kernel::ethtool::{Ethtool, Feature};
use kernel::netns;
use router::change::Mac;

use super::{KernelAddress, Requests};
use crate::facts::Link;
use crate::netlink::StaticRoute;
use crate::netlink::settings::is_ip6_off;

/// Opens the kernel of a network namespace, by its file; `None`: that of the process.
pub type Namespaces = Rc<dyn Fn(Option<&Path>) -> io::Result<Box<dyn Kernel>>>;

/// The running kernel's namespaces.
pub fn namespaces() -> Namespaces {
    Rc::new(|netns| Ok(Box::new(Requests::open_filtering(netns)?)))
}

/// The kernel of one network namespace: its devices, addresses, routes and neighbors.
///
/// [`Requests`] says what each request does, and its errors. A test may have a kernel in memory.
pub trait Kernel {
    /// All devices.
    fn links(&mut self) -> io::Result<Vec<Link>>;
    /// The device of a name or alternative name.
    fn link_named(&mut self, name: &str) -> io::Result<Link>;
    /// Sets a device administratively up or down.
    fn set_up(&mut self, link: u32, up: bool) -> io::Result<()>;
    /// Sets the MTU, in bytes.
    fn set_mtu(&mut self, link: u32, mtu: u32) -> io::Result<()>;
    /// Sets the Ethernet address.
    fn set_mac(&mut self, link: u32, mac: Mac) -> io::Result<()>;
    /// Renames a device.
    fn rename(&mut self, link: u32, name: &str) -> io::Result<()>;
    /// Gives a device an alternative name (`add`) or takes it away.
    fn altname(&mut self, link: u32, name: &str, add: bool) -> io::Result<()>;
    /// Removes devices all at once.
    fn remove_all(&mut self, links: &[u32]) -> io::Result<()>;
    /// Makes a bridge, which is up.
    fn add_bridge(&mut self, name: &str) -> io::Result<()>;
    /// Makes a device a port of a bridge.
    fn join(&mut self, link: u32, bridge: u32) -> io::Result<()>;
    /// Makes a network namespace with a name, a file. The inode number of that file, where the
    /// namespace is not mounted on it.
    fn add_namespace(&mut self, path: &Path) -> io::Result<u64>;
    /// Removes the name of a network namespace.
    fn delete_namespace(&mut self, path: &Path) -> io::Result<()>;
    /// Moves a device to another namespace under a name.
    fn move_to(&mut self, link: u32, namespace: &File, name: &str) -> io::Result<()>;
    /// The active offloads of a device, as `ethtool -k` names them.
    fn features(&mut self, link: u32) -> io::Result<Vec<Feature>>;
    /// Switches offloads on or off, and returns those that did not change.
    fn set_features(&mut self, link: u32, names: &[String], on: bool) -> io::Result<Vec<String>>;
    /// Returns true if IPv6 is disabled on a device, or will be on one of that name.
    fn is_ip6_off(&mut self, device: &str) -> io::Result<bool>;
    /// The addresses that somebody has given devices.
    fn all_addresses(&mut self) -> io::Result<Vec<KernelAddress>>;
    /// The same of one device.
    fn addresses_of(&mut self, link: u32) -> io::Result<Vec<KernelAddress>>;
    /// The IPv6 addresses of all devices, with those that the kernel makes by itself.
    fn ip6_addresses(&mut self) -> io::Result<Vec<KernelAddress>>;
    /// Adds an address to a device on nobody's account.
    fn add_address(&mut self, link: u32, address: IpAddr, length: u8) -> io::Result<()>;
    /// Adds an address to a device with our mark; false: it has it already.
    fn give_address(&mut self, link: u32, address: IpAddr, length: u8) -> io::Result<bool>;
    /// The same of one that the device had a moment ago with another prefix length.
    fn give_again(&mut self, link: u32, address: IpAddr, length: u8) -> io::Result<bool>;
    /// Takes from a device an address that we have given it.
    fn take_address(
        &mut self,
        link: u32,
        address: IpAddr,
        length: u8,
    ) -> io::Result<Option<KernelAddress>>;
    /// The routes that are ours.
    fn own_routes(&mut self) -> io::Result<Vec<StaticRoute>>;
    /// Makes a route.
    fn add_route(&mut self, route: &StaticRoute) -> io::Result<()>;
    /// Puts a route in the place of one of ours of the same prefix, metric and table.
    fn replace_route(&mut self, route: &StaticRoute) -> io::Result<()>;
    /// Removes a route of ours, whatever its next hops.
    fn remove_route(&mut self, route: &StaticRoute) -> io::Result<()>;
    /// Removes a route that was just listed, or the only one of ours of its prefix.
    fn remove_listed(&mut self, route: &StaticRoute) -> io::Result<()>;
    /// Resolves a neighbor, or says that it is in use.
    fn use_neighbor(&mut self, link: u32, address: IpAddr) -> io::Result<()>;
}

impl Kernel for Requests {
    fn links(&mut self) -> io::Result<Vec<Link>> {
        self.links()
    }
    fn link_named(&mut self, name: &str) -> io::Result<Link> {
        self.link_named(name)
    }
    fn set_up(&mut self, link: u32, up: bool) -> io::Result<()> {
        self.set_up(link, up)
    }
    fn set_mtu(&mut self, link: u32, mtu: u32) -> io::Result<()> {
        self.set_mtu(link, mtu)
    }
    fn set_mac(&mut self, link: u32, mac: Mac) -> io::Result<()> {
        self.set_mac(link, mac)
    }
    fn rename(&mut self, link: u32, name: &str) -> io::Result<()> {
        self.rename(link, name)
    }
    fn altname(&mut self, link: u32, name: &str, add: bool) -> io::Result<()> {
        self.altname(link, name, add)
    }
    fn remove_all(&mut self, links: &[u32]) -> io::Result<()> {
        self.remove_all(links)
    }
    fn add_bridge(&mut self, name: &str) -> io::Result<()> {
        self.add_bridge(name)
    }
    fn join(&mut self, link: u32, bridge: u32) -> io::Result<()> {
        self.join(link, bridge)
    }
    fn add_namespace(&mut self, path: &Path) -> io::Result<u64> {
        netns::create(path)
    }
    fn delete_namespace(&mut self, path: &Path) -> io::Result<()> {
        netns::delete(path)
    }
    fn move_to(&mut self, link: u32, namespace: &File, name: &str) -> io::Result<()> {
        self.move_to(link, namespace, name)
    }
    fn features(&mut self, link: u32) -> io::Result<Vec<Feature>> {
        Ethtool::open(self.netns.as_deref())?.features(link)
    }
    fn set_features(&mut self, link: u32, names: &[String], on: bool) -> io::Result<Vec<String>> {
        Ethtool::open(self.netns.as_deref())?.set_features(link, names, on)
    }
    fn is_ip6_off(&mut self, device: &str) -> io::Result<bool> {
        is_ip6_off(self.netns.as_deref(), device)
    }
    fn all_addresses(&mut self) -> io::Result<Vec<KernelAddress>> {
        self.all_addresses()
    }
    fn addresses_of(&mut self, link: u32) -> io::Result<Vec<KernelAddress>> {
        self.addresses_of(link)
    }
    fn ip6_addresses(&mut self) -> io::Result<Vec<KernelAddress>> {
        self.ip6_addresses()
    }
    fn add_address(&mut self, link: u32, address: IpAddr, length: u8) -> io::Result<()> {
        self.add_address(link, address, length)
    }
    fn give_address(&mut self, link: u32, address: IpAddr, length: u8) -> io::Result<bool> {
        self.give_address(link, address, length)
    }
    fn give_again(&mut self, link: u32, address: IpAddr, length: u8) -> io::Result<bool> {
        self.give_again(link, address, length)
    }
    fn take_address(
        &mut self,
        link: u32,
        address: IpAddr,
        length: u8,
    ) -> io::Result<Option<KernelAddress>> {
        self.take_address(link, address, length)
    }
    fn own_routes(&mut self) -> io::Result<Vec<StaticRoute>> {
        self.own_routes()
    }
    fn add_route(&mut self, route: &StaticRoute) -> io::Result<()> {
        self.add_route(route)
    }
    fn replace_route(&mut self, route: &StaticRoute) -> io::Result<()> {
        self.replace_route(route)
    }
    fn remove_route(&mut self, route: &StaticRoute) -> io::Result<()> {
        self.remove_route(route)
    }
    fn remove_listed(&mut self, route: &StaticRoute) -> io::Result<()> {
        self.remove_listed(route)
    }
    fn use_neighbor(&mut self, link: u32, address: IpAddr) -> io::Result<()> {
        self.use_neighbor(link, address)
    }
}
