//! punt: sends frames for the host to its interface, unchanged, and no more than the worker
//! has time for.

mod class;

pub(crate) use class::{Class, allowances};

use graph::{Desc, Each, Emit, Flag, Pkt, edges};
use tables::interface::Tags;

use crate::context::Cx;
use crate::vlan;

edges! {
    /// Ways out of punt.
    pub enum Next {
        /// To the host.
        Host => Interface,
        /// The kernel takes its packets from this port before we see them, but did not take this
        /// one.
        NoHost => Drop("interface has no host interface"),
        /// There is no room in front of the packet for the tags that were taken off.
        NoRoom => Drop("no room for VLAN tags"),
        /// Made here, without an Ethernet header that the host would accept.
        Own => Drop("own packet for the host"),
        /// More ARP and neighbor discovery than the host is given.
        NeighborsLimited => Drop("too much neighbor discovery for the host"),
        /// More packets of routing and link protocols than the host is given.
        ControlLimited => Drop("too many control packets for the host"),
        /// More of all other packets than the host is given.
        RestLimited => Drop("too many packets for the host"),
    }
}

/// The node.
pub struct Punt;

impl Each<Cx> for Punt {
    const NAME: &'static str = "punt";
    type Next = Next;

    fn packet(&mut self, cx: &Cx, out: &mut Emit<'_, Next>, mut d: Desc) {
        let next = self.punt(cx, out, &mut d);
        out.push(next, d);
    }
}

impl Punt {
    fn punt(&self, cx: &Cx, out: &Emit<'_, Next>, d: &mut Desc) -> Next {
        if d.has(Flag::OURS) {
            return Next::Own;
        }
        let interface = cx.interfaces.load(d.rx_if);
        let (host, tags) = match (interface.peer(), interface.parent()) {
            // The host tells sub-interfaces by their tags, too.
            (0, parent) if parent != 0 => (cx.interfaces.load(parent).peer(), interface.tags()),
            (host, _) => (host, Tags::NONE),
        };
        if host == 0 {
            return Next::NoHost;
        }
        let class = Class::of(out.pool().bytes_of(d));
        if !cx.limits.host[class as usize].take(d.rx_if, out.now()) {
            return match class {
                Class::Neighbors => Next::NeighborsLimited,
                Class::Control => Next::ControlLimited,
                Class::Rest => Next::RestLimited,
            };
        }
        if !tags.is_empty() && !vlan::push(&mut Pkt::new(out.pool(), d), tags) {
            return Next::NoRoom;
        }
        d.set_tx_if(host);
        Next::Host
    }
}
