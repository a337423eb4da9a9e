//! Changes of the running router, as a plan's steps ask for them.

use std::collections::HashSet;
use std::io;

use control::apply::Target;
use control::config::wanted::{self, OpenPort};
use control::config::{Address, Config, MTU, State, Wanted};
use control::netdev::{give_addresses, is_known, takes_ip6};
use control::netlink::{Given, Requests};
use control::plan::{Action, Field, Item, Key, Plan, Table, Value};

use super::daemon::Daemon;
use super::displaced::Displaced;
use super::interfaces::own_mac;
use super::statics::Place;

impl Target for Daemon {
    fn accepts(&mut self, to: &Config, plan: &Plan) -> Result<(), Vec<String>> {
        if !self.interfaces.are_open() {
            return Err(vec!["the router is still starting; try again".into()]);
        }
        let mut refused = Wanted::of(to).err().unwrap_or_default();
        if let Ok(wanted) = Wanted::of(to) {
            refused.extend(self.refusals(&wanted, plan));
        }
        for action in plan.steps.iter().map(|step| &step.action) {
            let setting = match action.key() {
                Key::Workers => "workers",
                Key::Tables => "tables",
                Key::Netns => "netns",
                Key::Control => "control",
                _ => continue,
            };
            refused.push(format!(
                "{setting}: cannot change while the router runs; restart it"
            ));
        }
        match refused.is_empty() {
            true => Ok(()),
            false => Err(refused),
        }
    }

    fn apply(&mut self, action: &Action) -> Result<(), String> {
        self.faults.before_step()?;
        let what = || name(action.key());
        let taken = self.taken.take();
        let done = match action {
            Action::Create(Item {
                key: Key::Address(name, address),
                ..
            }) => self.give_address(name, *address, taken),
            Action::Remove(Item {
                key: Key::Address(name, address),
                ..
            }) => self.take_address(name, *address),
            Action::Create(Item {
                key,
                value,
                attributes,
            }) => self.set(key, Some(value)).and_then(|()| {
                // What comes back comes back with its attributes; the last one, the state, opens it.
                let mut attributes = attributes.iter();
                let set = attributes
                    .try_for_each(|(field, value)| self.attribute(key, *field, Some(value)));
                set.inspect_err(|_| {
                    let _ = self.set(key, None);
                })
            }),
            Action::Remove(Item { key, .. }) => self.set(key, None),
            Action::Change { key, to, .. } => self.set(key, Some(to)),
        };
        self.faults.after_step();
        done.map_err(|why| format!("{}: {why}", what()))
    }

    fn between(&mut self) {
        self.look_between();
    }
}

/// The interfaces that are to be opened.
fn new(plan: &Plan) -> Vec<&str> {
    let new = plan.steps.iter().filter_map(|step| match &step.action {
        Action::Create(item) => match &item.key {
            Key::Interface(name) => Some(name.as_str()),
            _ => None,
        },
        _ => None,
    });
    new.collect()
}

/// The interfaces that are changed, other than in their descriptions.
fn changed(plan: &Plan) -> HashSet<&str> {
    let keys = plan.steps.iter().map(|step| step.action.key());
    let keys = keys.filter(|key| !matches!(key, Key::Of(_, Field::Description)));
    keys.filter_map(Key::interface).collect()
}

/// What messages call an item.
fn name(key: &Key) -> String {
    match (key, key.interface()) {
        (_, Some(interface)) => format!("interface {interface}"),
        (Key::Route(_, prefix, _), _) => format!("route {prefix}"),
        (Key::Of(of, _), _) => name(of),
        _ => "configuration".into(),
    }
}

impl Daemon {
    /// What of a configuration the running router cannot become, a line each.
    fn refusals(&mut self, wanted: &Wanted, plan: &Plan) -> Vec<String> {
        let mut refused = self.refusals_of_ip6(wanted, plan);
        refused.extend(self.refusals_of_addresses(wanted, plan));
        let (found, most) = (wanted.interfaces.len(), self.interfaces.most());
        if found > most {
            refused.push(format!("{found} interfaces; there can be {most} at most"));
        }
        let devices = wanted.interfaces.iter().filter(|i| i.port.kind.is_device());
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

    /// Which interfaces that change cannot have their IPv6 addresses, a line each.
    fn refusals_of_ip6(&self, wanted: &Wanted, plan: &Plan) -> Vec<String> {
        let changed = changed(plan);
        let changes = |config: &&wanted::Interface| changed.contains(config.name.as_str());
        let new = new(plan);
        let interfaces = wanted.interfaces.iter().filter(changes).map(|config| {
            let is_new = new.contains(&config.name.as_str());
            (
                "interface",
                config,
                self.interfaces.takes_ip6(config, is_new),
            )
        });
        let netns = self.config.netns.as_deref();
        let loopbacks = wanted.loopbacks.iter().filter(changes).map(|config| {
            let name = config.lcp.as_ref().unwrap_or(&config.name);
            let mtu = config.mtu.unwrap_or(MTU).into();
            ("loopback", config, takes_ip6(netns, name, mtu, config))
        });
        let all = interfaces.chain(loopbacks);
        let refused = all.filter_map(|(word, config, takes)| {
            let why = takes.err()?;
            Some(format!("{word} {}: {why}", config.name))
        });
        refused.collect()
    }

    /// Which interfaces that change cannot have an IPv6 address, since somebody else has given it to
    /// them with another prefix length: a line each.
    fn refusals_of_addresses(&mut self, wanted: &Wanted, plan: &Plan) -> Vec<String> {
        let in_force = self.in_force();
        let missing = self.displaced(&in_force);
        let of_now = missing
            .into_iter()
            .map(|missing| (missing.interface, missing.address));
        self.displaced = of_now.collect();
        let changed = changed(plan);
        let missing = self.displaced(wanted).into_iter();
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

    /// An item becomes a value; `None`: it is no more.
    fn set(&mut self, key: &Key, value: Option<&Value>) -> Result<(), String> {
        match (key, value) {
            (Key::Of(of, field), value) => self.attribute(of, *field, value),
            (Key::Interface(name), Some(Value::Port { port })) => self
                .interfaces
                .create(name, OpenPort::of(name, port.as_deref())),
            (Key::Interface(name), Some(Value::Loopback {})) => {
                let config = wanted::Interface::plain(name, OpenPort::NONE);
                self.loopbacks.make(config, &mut self.requests)
            }
            (Key::Interface(name), None) => {
                self.loopbacks.remove(name);
                self.interfaces.remove(name, &mut self.routing)
            }
            (Key::Lcp(name), value) => {
                let lcp = match value {
                    Some(Value::Name(lcp)) => Some(lcp.clone()),
                    _ => None,
                };
                said(self.loopbacks.rename(name, lcp.clone(), &mut self.requests))?;
                self.interfaces.rename(name, lcp)
            }
            (Key::Route(Table::Number(table), prefix, metric), value) => {
                let place = (*table, *prefix, *metric);
                match value {
                    Some(Value::Route { via, .. }) => self.set_route(place, via),
                    _ => self.statics.remove(place, &mut self.requests),
                }
            }
            _ => Err("not supported yet".into()),
        }
    }

    /// An interface is to have an address; `taken`: what the step before has taken, if that is one.
    fn give_address(
        &mut self,
        name: &str,
        address: Address,
        taken: Option<Given>,
    ) -> Result<(), String> {
        let Address {
            address: host,
            length,
        } = address;
        let displaced = self.displaced.contains(&(name.to_owned(), address));
        let edit = |config: &mut wanted::Interface| config.addresses.push(address);
        self.edit(name, edit, |requests, link, _, _| {
            let known = taken.is_some_and(|taken| taken.link == link && is_known(&taken, host));
            let given = match known {
                true => requests.give_again(link, host, length),
                false => requests.give_address(link, host, length),
            };
            match given {
                // It is taken back, and was missing before, too.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists && displaced => Ok(()),
                given => given.map(drop),
            }
        })
    }

    /// An interface is no longer to have an address.
    fn take_address(&mut self, name: &str, address: Address) -> Result<(), String> {
        let mut taken = None;
        let edit = |config: &mut wanted::Interface| config.addresses.retain(|own| *own != address);
        let done = self.edit(name, edit, |requests, link, _, _| {
            taken = requests.take_address(link, address.address, address.length)?;
            Ok(())
        });
        self.taken = taken;
        done
    }

    fn set_route(&mut self, place: Place, via: &[control::config::Hop]) -> Result<(), String> {
        let links = self.links();
        let link = |name: &str| links.get(name).copied();
        self.statics.set(place, via, &link, &mut self.requests)
    }

    /// An attribute of an item becomes a value; `None`: what it is by itself.
    fn attribute(&mut self, of: &Key, field: Field, value: Option<&Value>) -> Result<(), String> {
        let Key::Interface(name) = of else {
            return Ok(()); // the description of a route
        };
        match (field, value) {
            (Field::Description, value) => {
                let text = match value {
                    Some(Value::Name(text)) => Some(text.clone()),
                    _ => None,
                };
                self.edit(
                    name,
                    |config| config.description = text,
                    |_, _, _, _| Ok(()),
                )
            }
            (Field::Mac, value) => {
                let mac = match value {
                    Some(Value::Mac(mac)) => Some(*mac),
                    _ => None,
                };
                let slot = self.interfaces.named(name);
                let usual = slot.map_or_else(|| own_mac(name), |slot| slot.usual_mac());
                self.interfaces.note(name, mac, None)?;
                self.edit(
                    name,
                    |config| config.mac = mac,
                    |requests, link, before, config| {
                        requests.set_mac(link, mac.unwrap_or(usual))?;
                        // Some drivers have to be down for it, which takes IPv6 addresses away.
                        give_addresses(requests, link, config).inspect_err(|_| {
                            let _ = requests.set_mac(link, before.mac.unwrap_or(usual));
                        })
                    },
                )
            }
            (Field::Mtu, value) => {
                let mtu = match value {
                    Some(Value::Mtu(mtu)) => Some(*mtu),
                    _ => None,
                };
                let slot = self.interfaces.named(name);
                let usual = slot
                    .as_ref()
                    .map_or(u32::from(MTU), |slot| slot.usual_mtu());
                let tap = slot.and_then(|slot| slot.port_tap());
                self.interfaces.note(name, None, mtu)?;
                self.edit(
                    name,
                    |config| config.mtu = mtu,
                    |requests, link, _, _| {
                        let mtu = mtu.map_or(usual, u32::from);
                        let Some(tap) = tap else {
                            return requests.set_mtu(link, mtu);
                        };
                        let tap = requests.link_named(&tap)?;
                        requests.set_mtu(tap.index, mtu)?;
                        requests.set_mtu(link, mtu).inspect_err(|_| {
                            let _ = requests.set_mtu(tap.index, tap.mtu);
                        })
                    },
                )
            }
            (Field::State, value) => {
                let up = value != Some(&Value::State(State::Down));
                let (requests, routing) = (&mut self.requests, &mut self.routing);
                self.interfaces.set_up(name, up, requests, routing)?;
                // The kernel drops IPv6 addresses and routes of what goes down.
                self.look_soon();
                Ok(())
            }
            // Without effect.
            (Field::Mpls, _) => Ok(()),
            (Field::Sflow, _) => Err("sflow: not supported yet".into()),
        }
    }

    /// Changes what is wanted of an interface, and its device if that is there: `act` gets what
    /// was wanted before and what is wanted now. If the device refuses, nothing is changed.
    fn edit(
        &mut self,
        name: &str,
        edit: impl FnOnce(&mut wanted::Interface),
        act: impl FnOnce(&mut Requests, u32, &wanted::Interface, &wanted::Interface) -> io::Result<()>,
    ) -> Result<(), String> {
        let (config, link) = match (self.loopbacks.named(name), self.interfaces.named(name)) {
            (Some((config, link)), _) => (config, link),
            (None, Some(slot)) => {
                let link = slot.open().map(|open| open.ifindex);
                (&mut slot.config, link)
            }
            (None, None) => return Err("there is no such interface".into()),
        };
        let before = config.clone();
        edit(config);
        let Some(link) = link else { return Ok(()) };
        act(&mut self.requests, link, &before, config).map_err(|error| {
            *config = before;
            error.to_string()
        })
    }
}

fn said(done: io::Result<()>) -> Result<(), String> {
    done.map_err(|error| error.to_string())
}
