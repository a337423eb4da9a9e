//! The names of the host's devices: each is given once.

use std::collections::HashMap;

use crate::config::desired::OpenPort;
use crate::config::model::{Config, PortKind};
use crate::config::view::{AnyInterface, InterfaceKind};
use crate::config::yaml::Step;
use crate::config::{device_name, router_end};

use super::{Checker, field, to, whole};

/// Names that no device gets: the kernel's own loopback, and what stands for every device among its
/// settings.
const RESERVED: [&str; 3] = ["lo", "all", "default"];

/// The kind of device that has a name. Of two with the same name, the first in this order is
/// reported: it is the easiest to change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Device {
    /// The host's device of an interface, by `lcp`.
    Lcp,
    /// The host's end of a TAP.
    Host,
    /// The tap that is a port.
    Tap,
    /// The host's device of an interface without `lcp`.
    Own,
    /// A network device that is there already.
    Netdev,
}

/// A name, and what has it.
struct Name {
    name: String,
    device: Device,
    /// The interface.
    of: String,
    /// The interface's kind in messages.
    word: &'static str,
    path: Vec<Step>,
}

impl Name {
    /// Describes the device that has the name.
    fn words(&self) -> String {
        let of = &self.of;
        match self.device {
            Device::Lcp | Device::Own | Device::Netdev => format!("the device of {of}"),
            Device::Host => format!("the host's end of {of}"),
            Device::Tap => format!("the tap of port {of}"),
        }
    }

    /// Returns true if this cannot exist beside another that has the same name.
    fn clashes(&self, other: &Name) -> bool {
        let both = |device| self.device == device && other.device == device;
        // One is the other; or there are rules of their own.
        let is_end = |name: &Name| matches!(name.device, Device::Tap | Device::Host);
        let same = self.of == other.of && !is_end(self) && !is_end(other);
        !(same || both(Device::Netdev) || both(Device::Host))
    }
}

/// Each name is of one device. What is reserved by the kernel is none.
pub(super) fn check(c: &mut Checker<'_>) {
    let names = names(c);
    let mut places: HashMap<&str, Vec<usize>> = HashMap::new();
    for (place, name) in names.iter().enumerate() {
        places.entry(&name.name).or_default().push(place);
    }
    for (place, name) in names.iter().enumerate() {
        let others: Vec<_> = places[name.name.as_str()]
            .iter()
            .map(|other| (*other, &names[*other]))
            .filter(|(at, other)| *at != place && name.clashes(other))
            .collect();
        let lcp = name.device == Device::Lcp;
        if lcp && RESERVED.contains(&name.name.as_str()) {
            let help = "Linux keeps that name for itself".to_owned();
            report(c, name, "cannot have LCP name", help);
        }
        if lcp && others.iter().any(|(_, other)| other.device == Device::Lcp) {
            let help = "give each interface its own".to_owned();
            report(c, name, "does not have a unique LCP name", help);
        }
        let behind = |(at, other): &&(usize, &Name)| {
            (name.device, *at) < (other.device, place) && (!lcp || other.device != Device::Lcp)
        };
        if let Some((_, other)) = others.iter().find(behind) {
            let what = if lcp {
                "cannot have LCP name"
            } else {
                "cannot have the name"
            };
            let help = format!("{} is the name of {}", name.name, other.words());
            report(c, name, what, help);
        }
    }
}

fn report(c: &mut Checker<'_>, name: &Name, what: &str, help: String) {
    let Name {
        name,
        of,
        word,
        path,
        device,
    } = name;
    let whose = match device {
        Device::Tap => "the tap of ",
        Device::Host => "the host's end of ",
        _ => "",
    };
    c.error(path, format!("{whose}{word} {of} {what} {name}"), help);
}

/// All names of the host's devices in a configuration.
fn names(c: &Checker<'_>) -> Vec<Name> {
    let mut names = Vec::new();
    for entry in &c.view.entries {
        names.extend(entry.lcp.map(|lcp| Name {
            name: lcp.to_owned(),
            device: Device::Lcp,
            of: entry.name.clone(),
            word: entry.word(),
            path: field(entry, "lcp"),
        }));
        names.extend(own(c, entry));
    }
    for (name, port) in &c.config.ports {
        let open = OpenPort::of(name, Some(port));
        let given = |device, found: String, path: &[Step]| Name {
            name: found,
            device,
            of: name.clone(),
            word: "port",
            path: path.to_vec(),
        };
        let tap = open.tap(name);
        names.extend(tap.map(|tap| given(Device::Tap, tap, &to!["ports", name, "tap", "name"])));
        if !c.config.interfaces.contains_key(name) {
            let device = device_of(&open.kind);
            let own = open.device(name);
            names.extend(own.map(|own| given(device, own, &to!["ports", name])));
        }
    }
    for (name, tap) in &c.config.taps {
        let given = |device, found, path: &[Step]| Name {
            name: found,
            device,
            of: name.clone(),
            word: "tap",
            path: path.to_vec(),
        };
        names.push(given(Device::Own, router_end(name), &to!["taps", name]));
        if !tap.host.name.is_empty() && tap.host.namespace.is_none() {
            let (host, path) = (tap.host.name.clone(), to!["taps", name, "host", "name"]);
            names.push(given(Device::Host, host, &path));
        }
    }
    names
}

/// The name of an interface's device that it has by itself. A network card that gets another name
/// keeps its own as an alternative one.
fn own(c: &Checker<'_>, entry: &AnyInterface<'_>) -> Option<Name> {
    let config = c.config;
    let (device, name) = match entry.kind {
        InterfaceKind::Sub(parent, ..) => {
            let port = OpenPort::of(parent, config.ports.get(parent)).kind;
            (
                Device::Own,
                (!port.is_device() || has_no_port(config, parent))
                    .then(|| device_name(&entry.name)),
            )
        }
        InterfaceKind::Loopback(_) => (Device::Own, Some(entry.name.clone())),
        InterfaceKind::Interface(_) if has_no_port(config, &entry.name) => {
            (Device::Own, Some(device_name(&entry.name)))
        }
        // That of a TAP is known.
        InterfaceKind::Interface(_) if config.taps.contains_key(&entry.name) => return None,
        InterfaceKind::Interface(_) => {
            let open = OpenPort::of(&entry.name, config.ports.get(&entry.name));
            (device_of(&open.kind), open.device(&entry.name))
        }
    };
    let given = device == Device::Own && entry.lcp.is_some();
    let name = name.filter(|_| !given)?;
    Some(Name {
        name,
        device,
        of: entry.name.clone(),
        word: entry.word(),
        path: whole(entry),
    })
}

/// Returns true if it is a bond or a tunnel: a tap is its only device.
fn has_no_port(config: &Config, name: &str) -> bool {
    config.bondethernets.contains_key(name) || config.vxlan_tunnels.contains_key(name)
}

fn device_of(kind: &PortKind) -> Device {
    if kind.is_device() {
        Device::Netdev
    } else {
        Device::Own
    }
}
