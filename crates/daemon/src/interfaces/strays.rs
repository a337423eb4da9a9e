//! What somebody has changed of an interface's device under the router. The host is in charge: it is
//! said, and left as it is.

use super::Slot;
use crate::routing::Routing;

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
