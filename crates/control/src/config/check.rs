//! From the language to [`Config`]: ranges, forms, and rules that span the file.

use std::fmt::Display;

use serde_saphyr::{Location, Spanned};

use router::change::Mac;

use super::conflicts::{Claim, Claims};
use super::problem::Problem;
use super::schema::{self, Document, Given, State};
use super::{Address, Config, Control, Interface, Mode, Port, PortKind, Workers, forms};

/// Addresses that an interface may have.
const ADDRESSES: usize = 6;
/// Longest name of a network device (IFNAMSIZ - 1).
const DEVICE_NAME: usize = 15;

/// Reads a document to its end and collects all that is wrong.
pub(super) fn check(document: Document) -> (Config, Vec<Problem>) {
    let mut checker = Checker::default();
    checker.refuse_sections(&document);
    let mut ports = Vec::new();
    for (name, port) in document
        .ports
        .0
        .map(|ports| ports.value.0)
        .unwrap_or_default()
    {
        let read = checker.port(&name, port);
        ports.push((name, read));
    }
    let mut interfaces = Vec::new();
    for (name, interface) in document
        .interfaces
        .0
        .map(|map| map.value.0)
        .unwrap_or_default()
    {
        let at = ports.iter().position(|(port, _)| port.value == name.value);
        let port = at.map(|at| ports.remove(at).1);
        interfaces.push(checker.interface(&name, interface, port));
    }
    for (name, port) in ports {
        interfaces.push(checker.interface(&name, schema::Interface::default(), Some(port)));
    }
    let conflicts = checker.claims.conflicts();
    checker.problems.extend(conflicts);
    let config = Config {
        interfaces,
        workers: checker.workers(document.workers),
        netns: document.netns.0.map(|netns| forms::netns(&netns.value)),
        control: checker.control(document.control),
    };
    (config, checker.problems)
}

#[derive(Default)]
pub(super) struct Checker {
    problems: Vec<Problem>,
    claims: Claims,
}

impl Checker {
    pub(super) fn say(
        &mut self,
        at: Location,
        message: impl Into<String>,
        help: impl Into<String>,
    ) {
        self.problems.push(Problem::new(at, message).help(help));
    }

    fn refuse<T>(&mut self, given: &Given<T>, what: &str) {
        if let Some(given) = &given.0 {
            self.say(
                given.referenced,
                format!("{what}: not supported yet"),
                "remove it, or wait for a version that supports it",
            );
        }
    }

    fn refuse_sections(&mut self, document: &Document) {
        self.refuse(&document.bondethernets, "bondethernets");
        self.refuse(&document.loopbacks, "loopbacks");
        self.refuse(&document.bridgedomains, "bridgedomains");
        self.refuse(&document.vxlan_tunnels, "vxlan_tunnels");
        self.refuse(&document.taps, "taps");
        self.refuse(&document.prefixlists, "prefixlists");
        self.refuse(&document.acls, "acls");
        self.refuse(&document.sflow, "sflow");
    }

    /// A number within its range.
    pub(super) fn number<T: TryFrom<i64> + Display + PartialOrd>(
        &mut self,
        given: Given<i64>,
        what: &str,
        low: T,
        high: T,
    ) -> Option<T> {
        let given = given.0?;
        match T::try_from(given.value) {
            Ok(value) if value >= low && value <= high => Some(value),
            _ => {
                let message = format!("{what} is {}", given.value);
                self.say(
                    given.referenced,
                    message,
                    format!("it must be from {low} to {high}"),
                );
                None
            }
        }
    }

    fn interface(
        &mut self,
        name: &Spanned<String>,
        raw: schema::Interface,
        port: Option<Option<Port>>,
    ) -> Interface {
        let name_text = name.value.clone();
        let known = port.is_some() || self.refuse_name(name);
        self.unsupported(&name_text, &raw);
        let fallback = || Port {
            kind: PortKind::Netdev(name_text.clone()),
            queues: None,
            mode: Mode::Auto,
        };
        if !known {
            self.device_name(name, "interface");
        }
        let port = port.flatten().unwrap_or_else(fallback);
        let has_host_interface = !port.kind.is_device();
        self.claims.names.push(Claim {
            interface: name_text.clone(),
            what: has_host_interface,
            at: name.referenced,
        });
        if let PortKind::Netdev(device) = &port.kind {
            self.claims.netdevs.push(Claim {
                interface: name_text.clone(),
                what: device.clone(),
                at: name.referenced,
            });
        }
        Interface {
            description: raw.description.0.and_then(|text| text.value),
            mac: raw.mac.0.and_then(|mac| self.mac(&name_text, &mac)),
            lcp: raw.lcp.0.and_then(|lcp| self.lcp(&name_text, lcp)),
            mtu: self.number(raw.mtu, &format!("mtu of interface {name_text}"), 128, 9216),
            addresses: raw
                .addresses
                .0
                .map(|list| self.addresses(&name_text, list))
                .unwrap_or_default(),
            up: raw.state.0.is_none_or(|state| state.value == State::Up),
            port,
            name: name_text,
        }
    }

    /// Refuses a name that belongs to a section which is not supported yet. True if it does.
    fn refuse_name(&mut self, name: &Spanned<String>) -> bool {
        let sections = [("BondEthernet", "bondethernets"), ("tap", "taps")];
        let mut sections = sections.into_iter();
        let Some((_, section)) = sections.find(|(begin, _)| name.value.starts_with(begin)) else {
            return false;
        };
        let message = format!("interface {} does not exist in {section}", name.value);
        let help = format!("{section} is not supported yet; name a port for it in ports");
        self.say(name.referenced, message, help);
        true
    }

    fn unsupported(&mut self, name: &str, raw: &schema::Interface) {
        self.refuse(&raw.unnumbered, &format!("unnumbered of interface {name}"));
        self.refuse(&raw.l2xc, &format!("l2xc of interface {name}"));
        for (given, what) in [(&raw.mpls, "mpls"), (&raw.sflow, "sflow")] {
            if given.0.as_ref().is_some_and(|on| on.value) {
                self.refuse(given, &format!("{what} of interface {name}"));
            }
        }
        if raw
            .sub_interfaces
            .0
            .as_ref()
            .is_some_and(|map| !map.value.0.is_empty())
        {
            self.refuse(
                &raw.sub_interfaces,
                &format!("sub-interfaces of interface {name}"),
            );
        }
    }

    fn mac(&mut self, name: &str, text: &Spanned<String>) -> Option<Mac> {
        let Some(mac) = forms::mac(&text.value) else {
            let message = format!("interface {name} MAC address {} is not one", text.value);
            self.say(text.referenced, message, "write it as in 02:00:5e:10:00:01");
            return None;
        };
        if mac.is_group() {
            let message = format!(
                "interface {name} MAC address {} cannot be multicast",
                text.value
            );
            self.say(text.referenced, message, "the first byte must be even");
        }
        Some(mac)
    }

    fn lcp(&mut self, name: &str, lcp: Spanned<String>) -> Option<String> {
        let text = &lcp.value;
        let fits = text.len() <= DEVICE_NAME && text.starts_with(|c: char| c.is_ascii_lowercase());
        let legal = text
            .chars()
            .all(|c| c.is_ascii_graphic() && c != '/' && c != ':');
        if !fits || !legal {
            let help = "at most 15 characters, beginning with a lower-case letter, without blanks, `/` and `:`";
            self.say(
                lcp.referenced,
                format!("interface {name} cannot have LCP name {text:?}"),
                help,
            );
            return None;
        }
        self.claims.lcps.push(Claim {
            interface: name.to_owned(),
            what: lcp.value.clone(),
            at: lcp.referenced,
        });
        Some(lcp.value)
    }

    pub(super) fn device_name(&mut self, name: &Spanned<String>, what: &str) {
        let text = &name.value;
        let legal = text
            .chars()
            .all(|c| c.is_ascii_graphic() && c != '/' && c != ':');
        if text.is_empty() || text.len() > DEVICE_NAME || !legal {
            let message = format!("{what} {text:?} cannot be the name of a network device");
            self.say(
                name.referenced,
                message,
                "name its port in ports, as in `ports: {NAME: {netdev: eth0}}`",
            );
        }
    }

    fn addresses(&mut self, name: &str, list: Spanned<Vec<Spanned<String>>>) -> Vec<Address> {
        if list.value.is_empty() || list.value.len() > ADDRESSES {
            let message = format!("interface {name} has {} addresses", list.value.len());
            self.say(
                list.referenced,
                message,
                format!("list 1 to {ADDRESSES}, or leave the field out"),
            );
        }
        let mut read = Vec::new();
        for text in list.value {
            let Some((address, canonical)) = forms::address(&text.value) else {
                let message = format!("interface {name} address {:?} is not one", text.value);
                self.say(
                    text.referenced,
                    message,
                    "write it with its prefix length, as in 192.0.2.1/24 or 2001:db8::1/64",
                );
                continue;
            };
            if !canonical {
                let message = format!(
                    "interface {name} IP address {} is not canonical, use {address}",
                    text.value
                );
                self.say(
                    text.referenced,
                    message,
                    "an address must be written in the same way everywhere",
                );
            }
            self.claims.addresses.push(Claim {
                interface: name.to_owned(),
                what: address,
                at: text.referenced,
            });
            read.push(address);
        }
        read
    }

    fn workers(&mut self, given: Given<schema::Workers>) -> Workers {
        let Some(raw) = given.0 else {
            return Workers::default();
        };
        let mut cpus = Vec::new();
        for cpu in raw.value.cpus.0.map(|list| list.value).unwrap_or_default() {
            let at = cpu.referenced;
            let Some(cpu) = self.number(Given(Some(cpu)), "this processor", 0, 4095) else {
                continue;
            };
            if cpus.contains(&cpu) {
                self.say(
                    at,
                    format!("processor {cpu} is named twice"),
                    "a worker has its processor to itself",
                );
            }
            cpus.push(cpu);
        }
        if cpus.len() > router::WORKERS {
            let message = format!("{} workers", cpus.len());
            let help = format!("at most {}", router::WORKERS);
            self.say(raw.referenced, message, help);
        }
        let most = router::WORKERS as u16;
        let count = self.number(raw.value.count, "count of workers", 1, most);
        if let Some(count) =
            count.filter(|&count| !cpus.is_empty() && usize::from(count) != cpus.len())
        {
            let message = format!("{count} workers on {} processors", cpus.len());
            self.say(
                raw.referenced,
                message,
                "give one of count and cpus, or as many cpus as workers",
            );
        }
        Workers { count, cpus }
    }

    fn control(&mut self, given: Given<schema::Control>) -> Control {
        let usual = Control::default();
        let Some(raw) = given.0.map(|raw| raw.value) else {
            return usual;
        };
        if let Some(socket) = raw
            .socket
            .0
            .as_ref()
            .filter(|socket| socket.value.is_empty() || socket.value.len() > 107)
        {
            self.say(
                socket.referenced,
                "this cannot be the path of a socket",
                "1 to 107 bytes",
            );
        }
        Control {
            socket: raw
                .socket
                .0
                .map_or(usual.socket, |socket| socket.value.into()),
            group: raw.group.0.map_or(usual.group, |group| Some(group.value)),
            show_group: raw.show_group.0.map(|group| group.value),
        }
    }
}
