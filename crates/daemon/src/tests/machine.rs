//! A machine in memory: a kernel with devices, addresses and routes, and ports that go nowhere.
//!
//! It refuses what Linux refuses, and drops without a word what Linux drops. The request of a
//! chosen number fails.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::mpsc::SyncSender;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ::io::{memif, null::Null, tap};
use control::config;
use control::facts::{BRIDGE, Batch, Event, Gateway, Link, Section};
use control::netlink::{Kernel, KernelAddress, Namespaces, StaticRoute};
use graph::{Buffers, Frame, Pool, Port};
use kernel::ethtool::{Ethtool, Feature};
use ports::{Open, OpenError};
use router::change::Address;
use router::{InterfaceId, Mac};

use crate::host::{DeviceQueues, Host, Promiscuous, udp_socket};
use crate::inbox::Message;

/// The smallest MTU at which the kernel has IPv6 (RFC 8200 section 5).
const IP6_MTU: u32 = 1280;

/// The machine, shared by all that ask it.
#[derive(Clone)]
pub struct Machine {
    world: Arc<Mutex<World>>,
    sender: SyncSender<Message>,
}

/// The kernel's state.
#[derive(Default)]
struct World {
    links: BTreeMap<u32, Link>,
    /// Those who want a device to take in frames to every station, by its index.
    promiscuous: BTreeMap<u32, usize>,
    /// Those that have a name, besides our own. What is in them is with all else.
    namespaces: BTreeSet<PathBuf>,
    /// The last index that was given: none is given twice.
    last: u32,
    addresses: Vec<KernelAddress>,
    routes: Vec<StaticRoute>,
    /// News that nobody has been told.
    news: Vec<Event>,
    asked: u64,
    /// How many devices were removed at once, each time.
    removed: Vec<usize>,
    /// Requests that change something, since this was last set to 0.
    requests: usize,
    /// The number of the one that fails.
    fails: Option<usize>,
    /// Messages of requests and answers: one for each, and one for each entry of an answer.
    messages: usize,
}

impl Machine {
    /// A machine with Ethernet devices of these names.
    pub fn new(devices: &[&str], sender: SyncSender<Message>) -> Self {
        let mut world = World::default();
        for (number, name) in (1u8..).zip(devices) {
            world.add(name, Mac([2, 0, 0, 1, 0, number]), 1500);
        }
        let news = std::mem::take(&mut world.news);
        for section in Section::ALL {
            world.news.push(Event::DumpBegin(section));
            if section == Section::Links {
                world.news.extend(news.iter().cloned());
            }
            let complete = true;
            world.news.push(Event::DumpEnd { section, complete });
        }
        Machine {
            world: Arc::new(Mutex::new(world)),
            sender,
        }
    }

    fn world(&self) -> MutexGuard<'_, World> {
        self.world.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The request of this number from now on fails (the first is 0); `None`: none does.
    pub fn fail(&self, request: Option<usize>) {
        let mut world = self.world();
        (world.requests, world.fails) = (0, request);
    }

    /// Returns true if it has failed.
    pub fn has_failed(&self) -> bool {
        let world = self.world();
        world.fails.is_some_and(|fails| world.requests > fails)
    }

    /// A device goes.
    pub fn remove(&self, index: u32) {
        self.world().remove(index);
    }

    /// How many devices were removed at once, each time.
    pub fn removed(&self) -> Vec<usize> {
        self.world().removed.clone()
    }

    /// Messages to the kernel and from it, other than news.
    pub fn messages(&self) -> usize {
        self.world().messages
    }

    /// Sends the news, if there is room for it.
    pub fn tell(&self) {
        let mut world = self.world();
        if world.news.is_empty() {
            return;
        }
        let batch = Batch {
            events: world.news.clone(),
            resync: false,
        };
        if self.sender.try_send(batch.into()).is_ok() {
            world.news.clear();
        }
    }

    /// Everything that is on it, a line each, by names.
    pub fn state(&self) -> BTreeSet<String> {
        let world = self.world();
        let name = |index: u32| match world.links.get(&index) {
            Some(link) => link.name.as_str(),
            None => "-",
        };
        let links = world.links.values().map(|link| {
            let (mac, up) = (link.mac.map(|mac| mac.to_string()), link.admin_up);
            let listens = match world.promiscuous.get(&link.index) {
                Some(1..) => " promiscuous",
                _ => "",
            };
            let master = link.master.map(name);
            format!(
                "{} {:?} {mac:?} {} {up}{listens} {master:?}",
                link.name, link.altnames, link.mtu
            )
        });
        let addresses = world.addresses.iter().map(|its| {
            let (address, length) = (its.address, its.length);
            format!("{} {address}/{length} {}", name(its.link), its.ours)
        });
        let routes = world.routes.iter().map(|route| {
            let hops = route.hops.iter();
            let hops: BTreeSet<_> = hops
                .map(|hop| format!("{:?} {} {}", hop.gateway, name(hop.link), hop.weight))
                .collect();
            let (prefix, table, metric) = (route.prefix, route.table, route.metric());
            format!("{prefix} {table} {metric} {hops:?}")
        });
        let namespaces = world
            .namespaces
            .iter()
            .map(|path| path.display().to_string());
        links
            .chain(addresses)
            .chain(routes)
            .chain(namespaces)
            .collect()
    }
}

impl World {
    fn add(&mut self, name: &str, mac: Mac, mtu: u32) -> u32 {
        self.last += 1;
        let index = self.last;
        let link = Link {
            index,
            name: name.to_owned(),
            mac: Some(mac),
            mtu,
            max_mtu: Some(9216),
            kind: Some("veth".to_owned()),
            ..Link::default()
        };
        self.news.push(Event::Link(link.clone()));
        self.links.insert(index, link);
        index
    }

    fn remove(&mut self, index: u32) {
        if self.links.remove(&index).is_some() {
            self.drop_addresses(|its| its.link == index);
            self.drop_routes(index, |_| true);
            for port in self.links.values_mut() {
                port.master = port.master.filter(|master| *master != index);
            }
            self.news.push(Event::LinkGone(index));
        }
    }

    /// Counts a request that changes something.
    fn request(&mut self) -> io::Result<()> {
        self.messages += 1;
        self.requests += 1;
        match self.fails {
            Some(fails) if self.requests == fails + 1 => {
                Err(io::Error::from_raw_os_error(libc::ENOMEM))
            }
            _ => Ok(()),
        }
    }

    fn change(&mut self, index: u32, change: impl FnOnce(&mut Link)) -> io::Result<()> {
        let missing = || io::Error::from_raw_os_error(libc::ENODEV);
        let link = self.links.get_mut(&index).ok_or_else(missing)?;
        change(link);
        self.news.push(Event::Link(link.clone()));
        Ok(())
    }

    fn is_taken(&self, name: &str) -> bool {
        let has =
            |link: &Link| link.name == name || link.altnames.iter().any(|other| other == name);
        self.links.values().any(has)
    }

    fn drop_addresses(&mut self, goes: impl Fn(&KernelAddress) -> bool) {
        let (gone, stay) = self.addresses.drain(..).partition(|its| goes(its));
        self.addresses = stay;
        let gone: Vec<KernelAddress> = gone;
        let gone = gone
            .iter()
            .map(|its| Event::AddressGone(its.link, told(its)));
        self.news.extend(gone);
    }

    /// Drops routes by a device without a word, as Linux does.
    fn drop_routes(&mut self, index: u32, of: impl Fn(IpAddr) -> bool) {
        let by = |route: &StaticRoute| route.hops.iter().any(|hop| hop.link == index);
        self.routes
            .retain(|route| !(by(route) && of(route.prefix.address())));
    }

    /// IPv6 is no more on a device: it is down, or its MTU is too small.
    fn drop_ip6(&mut self, index: u32) {
        self.drop_addresses(|its| its.link == index && its.address.is_ipv6());
        self.drop_routes(index, |prefix| prefix.is_ipv6());
    }

    /// The devices through which a gateway is reached, if one that is up leads to it.
    fn reaches(&self, gateway: IpAddr, link: u32) -> Option<u32> {
        let mut ways = self.addresses.iter().filter(|its| {
            let up = self.links.get(&its.link).is_some_and(|link| link.admin_up);
            let asked = link == 0 || its.link == link;
            let network = config::Address {
                address: its.address,
                length: its.length,
            };
            up && asked && network.contains(gateway)
        });
        ways.next().map(|its| its.link)
    }

    /// A route as the kernel keeps it: with the devices that it goes by.
    fn resolved(&self, route: &StaticRoute) -> io::Result<StaticRoute> {
        let mut route = route.clone();
        for hop in &mut route.hops {
            let down = self.links.get(&hop.link).is_some_and(|link| !link.admin_up);
            if down {
                return Err(io::Error::from_raw_os_error(libc::ENETDOWN));
            }
            if let Gateway::Via(address) = hop.gateway {
                let way = self.reaches(address, hop.link);
                let none = || io::Error::from_raw_os_error(libc::ENETUNREACH);
                hop.link = way.ok_or_else(none)?;
            }
        }
        Ok(route)
    }
}

/// An address as it is told.
fn told(its: &KernelAddress) -> Address {
    Address {
        address: its.address,
        peer: its.address,
        length: its.length,
        scope: 0,
        secondary: false,
        deprecated: false,
        tentative: false,
    }
}

impl Kernel for Machine {
    fn links(&mut self) -> io::Result<Vec<Link>> {
        let mut world = self.world();
        world.messages += 1 + world.links.len();
        Ok(world.links.values().cloned().collect())
    }

    fn link_named(&mut self, name: &str) -> io::Result<Link> {
        let mut world = self.world();
        world.messages += 1;
        let found = Link::named(world.links.values(), name).cloned();
        found.ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, format!("no device {name}")))
    }

    fn set_up(&mut self, link: u32, up: bool) -> io::Result<()> {
        let mut world = self.world();
        world.request()?;
        let was_up = world.links.get(&link).is_some_and(|link| link.admin_up);
        world.change(link, |link| (link.admin_up, link.carrier) = (up, up))?;
        if was_up && !up {
            world.drop_ip6(link);
            world.drop_routes(link, |_| true);
        }
        Ok(())
    }

    fn set_mtu(&mut self, link: u32, mtu: u32) -> io::Result<()> {
        let mut world = self.world();
        world.request()?;
        world.change(link, |link| link.mtu = mtu)?;
        if mtu < IP6_MTU {
            world.drop_ip6(link);
        }
        Ok(())
    }

    fn set_mac(&mut self, link: u32, mac: Mac) -> io::Result<()> {
        let mut world = self.world();
        world.request()?;
        world.change(link, |link| link.mac = Some(mac))
    }

    fn rename(&mut self, link: u32, name: &str) -> io::Result<()> {
        let mut world = self.world();
        world.request()?;
        if world.is_taken(name) {
            return Err(io::Error::from_raw_os_error(libc::EEXIST));
        }
        world.change(link, |link| link.name = name.to_owned())
    }

    fn altname(&mut self, link: u32, name: &str, add: bool) -> io::Result<()> {
        let mut world = self.world();
        world.request()?;
        if add && world.is_taken(name) {
            return Err(io::Error::from_raw_os_error(libc::EEXIST));
        }
        world.change(link, |link| {
            if add {
                link.altnames.push(name.to_owned())
            } else {
                link.altnames.retain(|other| other != name)
            }
        })
    }

    fn remove_all(&mut self, links: &[u32]) -> io::Result<()> {
        let mut world = self.world();
        world.request()?;
        world.removed.push(links.len());
        links.iter().for_each(|link| world.remove(*link));
        Ok(())
    }

    fn add_bridge(&mut self, name: &str) -> io::Result<()> {
        let mut world = self.world();
        world.request()?;
        if world.is_taken(name) {
            return Err(io::Error::from_raw_os_error(libc::EEXIST));
        }
        let index = world.add(name, Mac([2, 0, 0, 8, 0, 0]), 1500);
        world.change(index, |link| link.kind = Some(BRIDGE.to_owned()))
    }
    fn join(&mut self, link: u32, bridge: u32) -> io::Result<()> {
        let mut world = self.world();
        world.request()?;
        world.change(link, |link| link.master = Some(bridge))
    }
    fn add_namespace(&mut self, path: &Path) -> io::Result<u64> {
        let mut world = self.world();
        world.request()?;
        world.namespaces.insert(path.to_owned());
        Ok(0)
    }
    fn delete_namespace(&mut self, path: &Path) -> io::Result<()> {
        let mut world = self.world();
        world.request()?;
        world.namespaces.remove(path);
        Ok(())
    }
    fn move_to(&mut self, _: u32, _: &File, _: &str) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn features(&mut self, _: u32) -> io::Result<Vec<Feature>> {
        Ok(Vec::new())
    }

    fn set_features(&mut self, _: u32, _: &[String], _: bool) -> io::Result<Vec<String>> {
        Ok(Vec::new())
    }

    fn is_ip6_off(&mut self, _: &str) -> io::Result<bool> {
        Ok(false)
    }

    fn all_addresses(&mut self) -> io::Result<Vec<KernelAddress>> {
        let mut world = self.world();
        world.messages += 1 + world.addresses.len();
        Ok(world.addresses.clone())
    }

    fn addresses_of(&mut self, link: u32) -> io::Result<Vec<KernelAddress>> {
        let mut world = self.world();
        let all = world.addresses.iter().copied();
        let its: Vec<_> = all.filter(|its| its.link == link).collect();
        world.messages += 1 + its.len();
        Ok(its)
    }

    fn ip6_addresses(&mut self) -> io::Result<Vec<KernelAddress>> {
        let all = self.all_addresses()?.into_iter();
        Ok(all.filter(|its| its.address.is_ipv6()).collect())
    }

    fn add_address(&mut self, link: u32, address: IpAddr, length: u8) -> io::Result<()> {
        self.add(link, address, length, false).map(drop)
    }

    fn give_address(&mut self, link: u32, address: IpAddr, length: u8) -> io::Result<bool> {
        self.add(link, address, length, true)
    }

    fn give_again(&mut self, link: u32, address: IpAddr, length: u8) -> io::Result<bool> {
        self.add(link, address, length, true)
    }

    fn take_address(
        &mut self,
        link: u32,
        address: IpAddr,
        length: u8,
    ) -> io::Result<Option<KernelAddress>> {
        let mut world = self.world();
        let is_it = |its: &KernelAddress| {
            (its.link, its.address, its.length) == (link, address, length) && its.ours
        };
        let Some(given) = world.addresses.iter().copied().find(is_it) else {
            return Ok(None);
        };
        world.request()?;
        world.drop_addresses(is_it);
        let of_family = |other: IpAddr| other.is_ipv6() == address.is_ipv6();
        let has_more = |its: &KernelAddress| its.link == link && of_family(its.address);
        if !world.addresses.iter().any(has_more) {
            world.drop_routes(link, of_family);
        }
        Ok(Some(given))
    }

    fn own_routes(&mut self) -> io::Result<Vec<StaticRoute>> {
        Ok(self.world().routes.clone())
    }

    fn add_route(&mut self, route: &StaticRoute) -> io::Result<()> {
        let mut world = self.world();
        world.request()?;
        if world.routes.iter().any(|other| other.is_at(route)) {
            return Err(io::Error::from_raw_os_error(libc::EEXIST));
        }
        let route = world.resolved(route)?;
        world.routes.push(route);
        Ok(())
    }

    fn replace_route(&mut self, route: &StaticRoute) -> io::Result<()> {
        let mut world = self.world();
        world.request()?;
        let route = world.resolved(route)?;
        world.routes.retain(|other| !other.is_at(&route));
        world.routes.push(route);
        Ok(())
    }

    fn remove_route(&mut self, route: &StaticRoute) -> io::Result<()> {
        self.remove_listed(route)
    }

    fn remove_listed(&mut self, route: &StaticRoute) -> io::Result<()> {
        let mut world = self.world();
        world.request()?;
        world.routes.retain(|other| !other.is_at(route));
        Ok(())
    }

    fn use_neighbor(&mut self, _: u32, _: IpAddr) -> io::Result<()> {
        Ok(())
    }
}

impl Machine {
    fn add(&self, link: u32, address: IpAddr, length: u8, ours: bool) -> io::Result<bool> {
        let mut world = self.world();
        let is_there = |its: &&KernelAddress| (its.link, its.address) == (link, address);
        let there = world.addresses.iter().filter(is_there);
        let lengths: Vec<u8> = there.map(|its| its.length).collect();
        if lengths.contains(&length) {
            return Ok(false);
        }
        world.request()?;
        if address.is_ipv6() && !lengths.is_empty() {
            return Err(io::Error::from_raw_os_error(libc::EEXIST));
        }
        let mtu = world.links.get(&link).map(|link| link.mtu);
        let mtu = mtu.ok_or_else(|| io::Error::from_raw_os_error(libc::ENODEV))?;
        if address.is_ipv6() && mtu < IP6_MTU {
            return Err(io::Error::from_raw_os_error(libc::EINVAL));
        }
        let its = KernelAddress {
            link,
            address,
            length,
            ours,
            verified: true,
        };
        world.news.push(Event::Address(link, told(&its)));
        world.addresses.push(its);
        Ok(true)
    }
}

impl Host for Machine {
    fn namespaces(&self) -> Namespaces {
        let machine = self.clone();
        Rc::new(move |netns: Option<&Path>| {
            let is_there = |path| machine.world().namespaces.contains(path);
            if !netns.is_none_or(is_there) {
                return Err(io::ErrorKind::NotFound.into());
            }
            Ok(Box::new(machine.clone()) as Box<dyn Kernel>)
        })
    }

    fn catch_up(&self) -> u64 {
        let mut world = self.world();
        world.asked += 1;
        let asked = world.asked;
        world.news.push(Event::CaughtUp(asked));
        asked
    }

    fn warnings(&self) -> Vec<String> {
        Vec::new()
    }

    fn has_programs(&self) -> bool {
        true
    }

    fn has_long_packets(&self) -> bool {
        true
    }

    fn queues(&self, device: &str) -> Option<u32> {
        let world = self.world();
        Link::named(world.links.values(), device).map(|_| 1)
    }

    fn foreign_program(&self, _: Option<&Path>, _: u32) -> Result<Option<String>, OpenError> {
        Ok(None)
    }

    fn device(&self, device: &DeviceQueues<'_>, _: &Arc<Pool>) -> Result<Open, OpenError> {
        let mut world = self.world();
        world.request()?;
        if Link::named(world.links.values(), device.name).is_none() {
            return Err(OpenError::NotThere(device.name.to_owned()));
        }
        Ok(ports::software(vec![Queue::new(device.name, None)]))
    }

    fn tap(&self, _: Option<&Path>, config: &tap::Config) -> Result<Open, OpenError> {
        let mut world = self.world();
        world.request()?;
        if world.is_taken(&config.name) {
            return Err(io::Error::from_raw_os_error(libc::EBUSY).into());
        }
        let mac = Mac(config.mac.unwrap_or([2, 0, 0, 9, 0, 0]));
        let index = world.add(&config.name, mac, config.mtu.unwrap_or(1500));
        drop(world);
        let tap = (self.world.clone(), index);
        Ok(ports::software(vec![Queue::new(&config.name, Some(tap))]))
    }

    fn punt_tap(&self, netns: Option<&Path>, device: u32, mac: Mac) -> Result<Open, OpenError> {
        let config = tap::Config {
            name: format!("punt{device}"),
            mac: Some(mac.0),
            ..tap::Config::default()
        };
        self.tap(netns, &config)
    }

    fn memif(&self, config: memif::Config) -> Result<Open, OpenError> {
        self.world().request()?;
        Ok(ports::software(vec![Queue::new(&config.name, None)]))
    }

    fn promiscuous(&self, link: u32) -> io::Result<Promiscuous> {
        let mut world = self.world();
        world.request()?;
        if !world.links.contains_key(&link) {
            return Err(io::Error::from_raw_os_error(libc::ENODEV));
        }
        *world.promiscuous.entry(link).or_default() += 1;
        Ok(Box::new(Listener {
            world: self.world.clone(),
            link,
        }))
    }

    fn udp_socket(&self, to: SocketAddr) -> io::Result<UdpSocket> {
        udp_socket(to)
    }

    fn program_counters(&self, _: InterfaceId) -> Option<xdp::Counters> {
        None
    }

    fn ethtool(&self) -> Option<Ethtool> {
        None
    }
}

/// Somebody who wants a device to take in frames to every station.
struct Listener {
    world: Arc<Mutex<World>>,
    link: u32,
}

impl Drop for Listener {
    fn drop(&mut self) {
        let mut world = self.world.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = world.promiscuous.get_mut(&self.link) {
            *count -= 1;
        }
    }
}

/// A queue of a port, and the tap that goes with it.
struct Queue {
    name: String,
    tap: Option<(Arc<Mutex<World>>, u32)>,
}

impl Queue {
    fn new(name: &str, tap: Option<(Arc<Mutex<World>>, u32)>) -> Self {
        Queue {
            name: name.to_owned(),
            tap,
        }
    }
}

impl Port for Queue {
    fn name(&self) -> &str {
        &self.name
    }
    fn rx(&mut self, buffers: &mut Buffers, frame: &mut Frame) {
        Null.rx(buffers, frame);
    }
    fn tx(&mut self, buffers: &mut Buffers, batch: &mut graph::Batch<'_>) {
        Null.tx(buffers, batch);
    }
}

impl Drop for Queue {
    fn drop(&mut self) {
        if let Some((world, index)) = &self.tap {
            let world = world.lock();
            world.unwrap_or_else(PoisonError::into_inner).remove(*index);
        }
    }
}
