//! What somebody has changed of an interface's device under the router. The host is in charge: it is
//! said, and left as it is.

use std::collections::BTreeMap;

use control::config::TapHost;
use control::config::desired::Kind;
use control::netdev::Astray;

use super::{Interfaces, Slot};
use crate::routing::Routing;

impl Interfaces {
    /// The TAPs whose host's ends are not in the namespace or bridge that the configuration names, by
    /// name of the interface. Where it names none, the end may be anywhere.
    pub fn astray(&self) -> BTreeMap<String, Astray> {
        let named = |slot: &&Slot| {
            host_end(slot).is_some_and(|host| host.namespace.is_some() || host.bridge.is_some())
        };
        // One that is deleted is made again by itself.
        let is_there = |slot: &&Slot| slot.port().is_some_and(|port| !port.is_deleted_tap());
        let taps = self.slots.iter().filter(named).filter(is_there);
        let names = taps.map(|slot| slot.config.name.as_str());
        self.opener.places.astray(names)
    }

    /// Says where those host's ends are, by name of the interface.
    pub fn astray_ends(&self) -> BTreeMap<String, String> {
        let astray = self.astray();
        let ends = self.slots.iter().filter_map(|slot| {
            let name = &slot.config.name;
            let said = in_words(astray.get(name)?, host_end(slot)?);
            Some((name.clone(), said))
        });
        ends.collect()
    }

    /// The same, a line each, with the remedy.
    pub fn astray_in_words(&self) -> Vec<String> {
        let line = |(name, said)| {
            format!("interface {name}: {said}: `parshall apply` of its configuration puts it back")
        };
        self.astray_ends().into_iter().map(line).collect()
    }

    /// Puts the host's end of a TAP back in its place; false: it has to be made anew there.
    ///
    /// # Errors
    /// A namespace or bridge is missing and must not be made; the kernel's.
    pub fn put_end_back(&mut self, name: &str) -> Result<bool, String> {
        let slot = self.slots.iter().find(|slot| slot.config.name == name);
        let Some(host) = slot.filter(|slot| slot.open().is_some()).and_then(host_end) else {
            return Ok(false);
        };
        let done = self.opener.places.put_back(name, &host.name);
        done.map_err(|error| error.to_string())
    }
}

/// The host's end of a TAP.
fn host_end(slot: &Slot) -> Option<&TapHost> {
    match &slot.config.kind {
        Kind::Tap { host, .. } => Some(host),
        _ => None,
    }
}

fn in_words(why: &Astray, host: &TapHost) -> String {
    let (name, bridge) = (&host.name, host.bridge.as_deref().unwrap_or_default());
    match why {
        Astray::Namespace => match &host.namespace {
            Some(namespace) => format!("tap {name} is no longer in namespace {namespace}"),
            None => format!("tap {name} is in another namespace, and not in bridge {bridge}"),
        },
        Astray::Bridge(Some(other)) => {
            format!("tap {name} is in bridge {other}, and not in bridge {bridge}")
        }
        Astray::Bridge(None) => format!("tap {name} is no longer in bridge {bridge}"),
    }
}

impl Slot {
    /// The settings in which its device is not as the configuration has it, a line each, with the
    /// remedy.
    pub fn strays(&self, routing: &Routing) -> Vec<String> {
        let (Some(open), Some(link)) = (self.open(), self.device_now(routing)) else {
            return Vec::new();
        };
        let (name, device) = (&self.config.name, &link.name);
        let was = &open.netdev;
        let renamed = (device != was).then(|| {
            format!(
                "interface {name}: its device {was} was renamed to {device}, and is used on; the \
                 next start looks for {was}: `ip link set {device} name {was}`"
            )
        });
        let stray = |what: &str, now: &str, wanted: &str, set: &str, write: &str| {
            format!(
                "interface {name}: {device}{what} {now} in the kernel, and the configuration has \
                 {wanted}: `ip link set {device} {set}`, or write `{write}`"
            )
        };
        let state = |up: bool| if up { "up" } else { "down" };
        let (now, wanted) = (state(link.admin_up), state(self.config.up));
        let set =
            (now != wanted).then(|| stray(" is", now, wanted, wanted, &format!("state: {now}")));
        let mtu = self
            .config
            .mtu
            .filter(|wanted| u32::from(*wanted) != link.mtu);
        let mtu = mtu.map(|wanted| {
            let (now, wanted) = (link.mtu.to_string(), wanted.to_string());
            let (set, write) = (format!("mtu {wanted}"), format!("mtu: {now}"));
            stray("'s MTU is", &now, &wanted, &set, &write)
        });
        let macs = self.config.mac.zip(link.mac);
        // A sub-interface's is configured with what it is on top of.
        let mac = macs
            .filter(|_| self.on.is_none())
            .filter(|(wanted, now)| wanted != now)
            .map(|(wanted, now)| {
                let (now, wanted) = (now.to_string(), wanted.to_string());
                let (set, write) = (format!("address {wanted}"), format!("mac: {now}"));
                stray("'s address is", &now, &wanted, &set, &write)
            });
        let tap = self.tap_is_down(routing);
        let all = [renamed, set, mtu, mac, tap];
        all.into_iter().flatten().collect()
    }

    /// Says so if somebody has set the tap down that is its port. One that was moved to another
    /// namespace is that one's.
    fn tap_is_down(&self, routing: &Routing) -> Option<String> {
        let tap = self.config.port()?.tap(&self.config.name)?;
        let mut links = routing.translator.links();
        links.find(|link| link.name == tap && !link.admin_up)?;
        Some(format!(
            "interface {}: {tap}, the tap that is its port, is down in the kernel: nothing comes or \
             goes: `ip link set {tap} up`",
            self.config.name
        ))
    }
}
