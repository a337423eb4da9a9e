//! Taps by which the kernel of a network device is given packets that the router took in: those for
//! own addresses that may be translated, and are not.
//!
//! Each is there while addresses are translated. What leaves by it comes in by the device, as if it had
//! never left the kernel: with the device's settings, by the firewall's rules about it.

use tracing::warn;

use super::Interfaces;
use super::punt_tap::PuntTap;
use super::slot::Phase;
use crate::routing::Routing;
use crate::workers;

impl Interfaces {
    /// Makes these taps, where something is translated since, and ends them.
    pub fn follow_translation(&mut self, routing: &mut Routing) {
        let translates = routing.router.translates();
        for slot in &mut self.slots {
            let (is_device, is_routed) = (slot.config.netdev().is_some(), slot.l2.is_none());
            let wanted = slot.device_now(routing).and_then(|link| link.mac);
            let wanted = wanted.filter(|_| translates && is_device && is_routed);
            let (Phase::Open(open), Some(link)) = (&mut slot.phase, slot.link) else {
                continue;
            };
            let is_right = |punt: &PuntTap| Some(punt.mac) == wanted && !punt.tap.is_deleted_tap();
            if open.punt.as_ref().map_or(wanted.is_none(), is_right) {
                slot.untranslated = None;
                continue;
            }
            if let Some(punt) = open.punt.take() {
                routing.set_host(link, None);
                punt.end(routing);
            }
            let Some(mac) = wanted else { continue };
            let opener = &self.opener;
            let made = opener.host.punt_tap(opener.netns.as_deref(), link, mac);
            let made = made.map_err(|error| error.to_string()).and_then(|tap| {
                let id = routing.router.allocate();
                Ok((tap, id.ok_or("there are no numbers of interfaces left")?))
            });
            match made {
                Ok((mut tap, id)) => {
                    let queues = std::mem::take(&mut tap.queues);
                    workers::add_port(&mut routing.router.workers, id, queues, self.entry);
                    routing.set_host(link, Some(id));
                    open.punt = Some(PuntTap { id, mac, tap });
                    slot.untranslated = None;
                }
                Err(why) => {
                    let is_new = slot.untranslated.replace(why.clone()).as_ref() != Some(&why);
                    if let Some(trouble) = slot.trouble().filter(|_| is_new) {
                        warn!("{trouble}");
                    }
                }
            }
        }
    }
}
