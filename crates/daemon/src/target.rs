//! Changes of the running router, as a plan's steps ask for them.

use std::collections::HashSet;
use std::io;

use control::apply::Target;
use control::config::desired::{self, Layer2, OpenPort};
use control::config::{Address, Config, Desired, MTU, Nat, Sflow, State};
use control::netdev::{Astray, give_addresses, is_known};
use control::netlink::{Kernel, KernelAddress};
use control::plan::{Action, Item, Kind, Object, Plan, Table};
use router::acl::Direction;
use router::change::Mac;

use crate::answer;
use crate::daemon::Daemon;
use crate::displaced::{Displaced, displaced};
use crate::static_routes::Place;

impl Target for Daemon {
    fn found(&mut self, running: &Config) -> Config {
        let mut found = running.clone();
        self.seen.astray.clear();
        for (name, astray) in self.interfaces.astray() {
            let Some(tap) = found.taps.get_mut(&name) else {
                continue;
            };
            let wanted = desired::Kind::tap(tap);
            match astray {
                Astray::Bridge(bridge) => tap.host.bridge = bridge,
                Astray::Namespace => {
                    tap.host.namespace = Some(ELSEWHERE.to_owned());
                    tap.host.bridge = None;
                }
            }
            self.seen
                .astray
                .insert(name, (desired::Kind::tap(tap), wanted));
        }
        found
    }

    fn accepts(&mut self, to: &Config, plan: &Plan) -> Result<(), Vec<String>> {
        if !self.interfaces.are_open() {
            return Err(vec!["the router is still starting; try again".into()]);
        }
        let mut refused = match Desired::of(to) {
            Ok(wanted) => self.refusals(&wanted, plan),
            Err(refused) => refused,
        };
        let items = plan.steps.iter().map(|step| step.action.item());
        refused.extend(items.filter(|item| item.is_for_start()).map(|item| {
            let setting = item.object();
            format!("{setting}: cannot change while the router runs; restart it")
        }));
        match refused.is_empty() {
            true => Ok(()),
            false => Err(refused),
        }
    }

    fn apply(&mut self, action: &Action) -> Result<(), String> {
        self.faults.before_step()?;
        let removes = matches!(
            action,
            Action::Remove {
                item: Item::Interface { .. },
                ..
            }
        );
        if !removes {
            // The step may want a name or an address that a tap has still.
            self.interfaces.remove_taps();
        }
        let taken = self.seen.taken.take();
        let done = match action {
            Action::Create { item, attributes } => self.set(item, true, taken).and_then(|()| {
                // What comes back comes back with its attributes; the last one, the state, opens it.
                let mut attributes = attributes.iter();
                let set = attributes.try_for_each(|attribute| self.set(attribute, true, None));
                set.inspect_err(|_| {
                    let _ = self.set(item, false, None);
                })
            }),
            Action::Remove { item, .. } => self.set(item, false, None),
            Action::Change { to, .. } => self.set(to, true, None),
        };
        self.faults.after_step();
        done
    }

    fn between(&mut self, running: &Config) {
        answer::look_between(self, running);
    }

    fn finish(&mut self) {
        self.interfaces.remove_taps();
        self.interfaces.follow_translation(&mut self.routing);
    }
}

/// What stands for the namespace of a TAP's host end that is not where the router put it.
const ELSEWHERE: &str = "elsewhere";

/// The interfaces that are to be opened.
fn new(plan: &Plan) -> Vec<&str> {
    let new = plan.steps.iter().filter_map(|step| match &step.action {
        Action::Create {
            item: Item::Interface { name, .. },
            ..
        } => Some(name.as_str()),
        _ => None,
    });
    new.collect()
}

/// The interfaces that are changed, other than in their descriptions.
fn changed(plan: &Plan) -> HashSet<&str> {
    let items = plan.steps.iter().map(|step| step.action.item());
    let items = items.filter(|item| !matches!(item, Item::Description { .. }));
    items.filter_map(Item::interface).collect()
}

impl Daemon {
    /// The parts of a configuration that need a restart or cannot be done, a line each.
    fn refusals(&mut self, wanted: &Desired, plan: &Plan) -> Vec<String> {
        let mut refused = self.refusals_of_ip6(wanted, plan);
        refused.extend(self.refusals_of_addresses(wanted, plan));
        refused.extend(self.interfaces.fit(wanted).err());
        let devices = wanted.interfaces.iter().filter(|i| i.netdev().is_some());
        if !self.interfaces.takes_devices() {
            refused.extend(devices.map(|interface| {
                format!(
                    "interface {}: the router was started without network devices, and its memory does not suit them; restart it",
                    interface.name
                )
            }));
            return refused;
        }
        refused.extend(self.interfaces.obstacles(&wanted.interfaces, &new(plan)));
        refused
    }

    /// Interfaces that change and cannot have their IPv6 addresses, a line each.
    fn refusals_of_ip6(&mut self, wanted: &Desired, plan: &Plan) -> Vec<String> {
        let changed = changed(plan);
        let changes = |config: &&desired::Interface| changed.contains(config.name.as_str());
        let new = new(plan);
        let mut refused = Vec::new();
        let kernel = &mut *self.kernel;
        for config in wanted.interfaces.iter().filter(changes) {
            let is_new = new.contains(&config.name.as_str());
            if let Err(why) = self.interfaces.takes_ip6(kernel, config, is_new) {
                refused.push(format!("interface {}: {why}", config.name));
            }
        }
        refused
    }

    /// Interfaces that change and cannot have an IPv6 address, since somebody else has given it to
    /// them with another prefix length: a line each.
    fn refusals_of_addresses(&mut self, wanted: &Desired, plan: &Plan) -> Vec<String> {
        let there = self.kernel.ip6_addresses().unwrap_or_default();
        let (changed, links) = (changed(plan), self.links());
        let of_now = displaced(&there, &links, self.wanted());
        let of_now = of_now.map(|missing| (missing.interface, missing.address));
        self.seen.missing = of_now.collect();
        self.seen.taken = None;
        let missing = displaced(&there, &links, wanted.interfaces.iter());
        let missing = missing.filter(|missing| changed.contains(missing.interface.as_str()));
        let line = |Displaced {
                        interface,
                        address,
                        why,
                    }: Displaced| {
            format!("interface {interface} cannot have IPv6 address {address}: {why}")
        };
        missing.map(line).collect()
    }

    /// An item is to be there as it is, or not to be there; `taken`: what the step before has taken,
    /// if that is an address.
    fn set(
        &mut self,
        item: &Item,
        there: bool,
        taken: Option<KernelAddress>,
    ) -> Result<(), String> {
        match item {
            Item::Interface { name, kind } if there => self.make(name, kind),
            Item::Interface { name, .. } => self.interfaces.remove(name, &mut self.routing),
            Item::Lcp { of, name } => self.interfaces.rename(of, there.then(|| name.clone())),
            Item::Address { of, address, .. } if there => self.give_address(of, *address, taken),
            Item::Address { of, address, .. } => self.take_address(of, *address),
            Item::Route {
                table: Table::Number(table),
                prefix,
                metric,
                via,
                ..
            } => {
                let place = (*table, *prefix, *metric);
                self.set_route(place, there.then_some(&via[..]))
            }
            Item::Description {
                of: Object::Interface(name),
                text,
            } => self.set_description(name, there.then(|| text.clone())),
            Item::Mac { of, mac } => self.set_mac(of, there.then_some(*mac)),
            Item::Mtu {
                of: Object::Interface(name),
                mtu,
            } => self.set_mtu(name, there.then_some(*mtu)),
            Item::State { of, state } => self.set_up(of, !there || *state == State::Up),
            Item::Bridge { name, settings } if there => {
                let routing = &mut self.routing;
                self.interfaces.set_bridge(name, *settings, routing)
            }
            Item::Bridge { name, .. } => self.interfaces.remove_bridge(name, &mut self.routing),
            Item::BridgeMember {
                of,
                bridge,
                bvi: false,
                ..
            } => self.set_l2(of, there.then(|| Layer2::Bridge(bridge.clone()))),
            Item::BridgeMember { of, bridge, .. } => {
                let bridge = there.then_some(bridge.as_str());
                self.interfaces.set_bvi(of, bridge, &mut self.routing)
            }
            Item::BondMember { of, bond } => {
                self.set_l2(of, there.then(|| Layer2::Bond(bond.clone())))
            }
            Item::CrossConnect { of, target, .. } => {
                self.set_l2(of, there.then(|| Layer2::CrossConnect(target.clone())))
            }
            Item::PrefixList { name, members } => {
                let members = there.then_some(&members[..]);
                self.filters.set_list(name, members, &mut self.routing)
            }
            Item::Acl { name, terms } => {
                let terms = there.then_some(&terms[..]);
                self.filters.set_acl(name, terms, &mut self.routing)
            }
            Item::Input { of, acls } => self.set_acls(of, Direction::Input, acls, there),
            Item::Output { of, acls } => self.set_acls(of, Direction::Output, acls, there),
            Item::Policy { name, policy } => {
                let policy = there.then_some(policy);
                self.filters.set_policy(name, policy, &mut self.routing)
            }
            Item::Firewall {
                of,
                direction,
                policy,
            } => self.set_policy(of, *direction, there.then_some(policy)),
            Item::Nat(nat) => {
                let none = Nat::default();
                self.set_nat(if there { nat } else { &none })
            }
            Item::Sflow(settings) => self.set_sflow(there.then_some(settings)),
            Item::Sampled { of } => self.set_sampled(of, there),
            // Without effect: what is borrowed are addresses as any others; that members have the MTU
            // of their bridge has been checked.
            Item::Description { .. }
            | Item::Mpls { .. }
            | Item::Unnumbered { .. }
            | Item::Mtu {
                of: Object::Bridge(_),
                ..
            } => Ok(()),
            Item::Workers(_) | Item::Tables(_) | Item::Netns { .. } | Item::Control(_) => {
                Err("restart the router".into())
            }
            Item::Vrf { .. }
            | Item::VrfMember { .. }
            | Item::Route {
                table: Table::Vrf(_),
                ..
            }
            | Item::Mtu { .. } => Err("not supported yet".into()),
        }
    }

    fn set_nat(&mut self, nat: &Nat) -> Result<(), String> {
        self.filters.set_nat(nat, &mut self.routing)?;
        self.interfaces.follow_translation(&mut self.routing);
        Ok(())
    }

    fn set_sflow(&mut self, settings: Option<&Sflow>) -> Result<(), String> {
        let (host, slots) = (&*self.host, &self.interfaces.slots);
        let routing = &mut self.routing;
        self.sflow.configure(settings, host, slots, routing)
    }

    fn set_sampled(&mut self, name: &str, sampled: bool) -> Result<(), String> {
        let slot = self.interfaces.named(name);
        let slot = slot.ok_or("there is no such interface")?;
        slot.config.sampled = sampled;
        self.sflow.sample(slot, &mut self.routing)
    }

    fn set_l2(&mut self, name: &str, l2: Option<Layer2>) -> Result<(), String> {
        self.interfaces.set_l2(name, l2, &mut self.routing)
    }

    fn set_acls(
        &mut self,
        name: &str,
        direction: Direction,
        acls: &[String],
        there: bool,
    ) -> Result<(), String> {
        let acls = if there { acls } else { &[] };
        let routing = &mut self.routing;
        self.interfaces.set_acls(name, direction, acls, routing)
    }

    fn set_policy(
        &mut self,
        name: &str,
        direction: Direction,
        policy: Option<&String>,
    ) -> Result<(), String> {
        let routing = &mut self.routing;
        self.interfaces.set_policy(name, direction, policy, routing)
    }

    fn make(&mut self, name: &str, kind: &Kind) -> Result<(), String> {
        let kind = match kind {
            Kind::Port { port } => desired::Kind::Port(OpenPort::of(name, port.as_deref())),
            Kind::Loopback {} => desired::Kind::Loopback,
            Kind::Sub {
                parent,
                encapsulation,
            } => desired::Kind::Sub {
                parent: parent.clone(),
                encapsulation: *encapsulation,
            },
            Kind::Bond { mode, load_balance } => {
                desired::Kind::Bond(desired::spread(*mode, *load_balance))
            }
            Kind::Tap {
                host, rx_ring_size, ..
            } => desired::Kind::Tap {
                host: host.clone(),
                queue: *rx_ring_size,
            },
            Kind::Vxlan { local, remote, vni } => {
                let tunnel = desired::tunnel(*local, *remote, *vni);
                desired::Kind::Vxlan(tunnel.ok_or("its ends are of two families")?)
            }
        };
        let kind = match self.seen.astray.get(name) {
            // It is taken back: it lay elsewhere, but need not.
            Some((astray, wanted)) if *astray == kind => wanted.clone(),
            _ => kind,
        };
        if let Some(slot) = self.interfaces.named(name) {
            let is_same = slot.config.kind == kind && matches!(kind, desired::Kind::Tap { .. });
            if is_same && self.interfaces.put_end_back(name)? {
                return Ok(());
            }
            self.interfaces.set_kind(name, kind, &mut self.routing)
        } else {
            self.interfaces.create(name, kind, &mut self.routing)
        }
    }

    /// An interface is to have an address; `taken`: what the step before has taken, if that is one.
    fn give_address(
        &mut self,
        name: &str,
        address: Address,
        taken: Option<KernelAddress>,
    ) -> Result<(), String> {
        let Address {
            address: host,
            length,
        } = address;
        let displaced = self.seen.missing.contains(&(name.to_owned(), address));
        let edit = |config: &mut desired::Interface| config.addresses.push(address);
        self.edit(name, edit, |kernel, link, _, _| {
            let known = taken.is_some_and(|taken| taken.link == link && is_known(&taken, host));
            let given = match known {
                true => kernel.give_again(link, host, length),
                false => kernel.give_address(link, host, length),
            };
            match given {
                // It is taken back, and was missing before, too.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists && displaced => Ok(()),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                    let what = format!(
                        "its device has {host} already, and not from this router: remove it there \
                         (`ip address del`), or from the configuration"
                    );
                    Err(io::Error::new(error.kind(), what))
                }
                given => given.map(drop),
            }
        })
    }

    /// An interface is no longer to have an address.
    fn take_address(&mut self, name: &str, address: Address) -> Result<(), String> {
        let mut taken = None;
        let edit = |config: &mut desired::Interface| config.addresses.retain(|own| *own != address);
        let done = self.edit(name, edit, |kernel, link, _, _| {
            taken = kernel.take_address(link, address.address, address.length)?;
            Ok(())
        });
        self.seen.taken = taken;
        done
    }

    /// A route is to have these next hops; `None`: not to be there.
    fn set_route(
        &mut self,
        place: Place,
        via: Option<&[control::config::Hop]>,
    ) -> Result<(), String> {
        let Some(via) = via else {
            return self.static_routes.remove(place, &mut *self.kernel);
        };
        let links = self.links();
        let link = |name: &str| links.get(name).copied();
        self.static_routes.set(place, via, &link, &mut *self.kernel)
    }

    fn set_description(&mut self, name: &str, text: Option<String>) -> Result<(), String> {
        self.edit(
            name,
            |config| config.description = text,
            |_, _, _, _| Ok(()),
        )
    }

    /// An interface is to have an Ethernet address; `None`: that of its device.
    fn set_mac(&mut self, name: &str, mac: Option<Mac>) -> Result<(), String> {
        let usual = self.interfaces.usual_mac(name);
        self.interfaces.note(name, mac, None)?;
        self.edit(
            name,
            |config| config.mac = mac,
            |kernel, link, before, config| {
                kernel.set_mac(link, mac.unwrap_or(usual))?;
                // Some drivers have to be down for it, which takes IPv6 addresses away.
                give_addresses(kernel, link, config).inspect_err(|_| {
                    let _ = kernel.set_mac(link, before.mac.unwrap_or(usual));
                })
            },
        )
    }

    /// An interface is to have an MTU; `None`: that of its device.
    fn set_mtu(&mut self, name: &str, mtu: Option<u16>) -> Result<(), String> {
        let slot = self.interfaces.named(name);
        let usual = slot
            .as_ref()
            .map_or(u32::from(MTU), |slot| slot.usual_mtu());
        let tap = slot.and_then(|slot| slot.config.port()?.tap(name));
        self.interfaces.note(name, None, mtu)?;
        self.edit(
            name,
            |config| config.mtu = mtu,
            |kernel, link, _, _| {
                let mtu = mtu.map_or(usual, u32::from);
                let Some(tap) = tap else {
                    return kernel.set_mtu(link, mtu);
                };
                let tap = kernel.link_named(&tap)?;
                kernel.set_mtu(tap.index, mtu)?;
                kernel.set_mtu(link, mtu).inspect_err(|_| {
                    let _ = kernel.set_mtu(tap.index, tap.mtu);
                })
            },
        )
    }

    fn set_up(&mut self, name: &str, up: bool) -> Result<(), String> {
        let (kernel, routing) = (&mut *self.kernel, &mut self.routing);
        self.interfaces.set_up(name, up, kernel, routing)?;
        // The kernel drops IPv6 addresses and routes of what goes down.
        self.look_soon();
        Ok(())
    }

    /// Changes what is wanted of an interface, and its device if that is there: `act` gets what
    /// was wanted before and what is wanted now. If the device refuses, nothing is changed.
    fn edit(
        &mut self,
        name: &str,
        edit: impl FnOnce(&mut desired::Interface),
        act: impl FnOnce(
            &mut dyn Kernel,
            u32,
            &desired::Interface,
            &desired::Interface,
        ) -> io::Result<()>,
    ) -> Result<(), String> {
        let slot = self.interfaces.named(name);
        let slot = slot.ok_or("there is no such interface")?;
        let link = slot.open().map(|open| open.ifindex);
        let config = &mut slot.config;
        let before = config.clone();
        edit(config);
        let Some(link) = link else { return Ok(()) };
        act(&mut *self.kernel, link, &before, config).map_err(|error| {
            *config = before;
            error.to_string()
        })
    }
}
