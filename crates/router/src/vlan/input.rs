//! vlan-input: finds the sub-interface that a frame with VLAN tags is for, and takes the tags out of
//! what is routed there.
//!
//! The tags of a frame must be those of the sub-interface exactly, unless that is at layer 2 and lets
//! further ones follow. Frames for the host lose them where the sub-interface has a host interface.
//! Elsewhere they keep them: the host has the same sub-interface on the device that stands for the
//! parent. Where the parent is at layer 2, it takes what no sub-interface does.

use graph::{Pkt, Stage, edges};
use tables::interface::{Hot, Mode, Remembered, Tags};
use wire::eth;
use wire::vlan::{self, Tag};

use super::{INNER, OUTER, pop};
use crate::context::Cx;
use crate::eth::{GROUP, is_dhcp_reply, is_from_group, mac};
use crate::l2::{Fate, cross};

edges! {
    /// Ways out of vlan-input.
    pub enum Next {
        /// IPv4 for us.
        Ip4 => Node("ip4-input"),
        /// IPv4 for us, at a sub-interface with features.
        Ip4Features => Node("ip4-input-features"),
        /// IPv6 for us.
        Ip6 => Node("ip6-input"),
        /// IPv6 for us, at a sub-interface with features.
        Ip6Features => Node("ip6-input-features"),
        /// For the host: as from ethernet-input, and frames whose tags nobody here has.
        Punt => Node("punt") as Punted,
        /// Somebody else's unicast.
        NotOurs => Drop("destination MAC is not ours"),
        /// Nobody here has its tags, and it is not for the host either: its destination is somebody
        /// else, or the kernel takes such frames from this port before we see them, but did not take
        /// this one.
        NoSub => Drop("no sub-interface has these tags"),
        /// It ends within its tags.
        Runt => Drop("frame is shorter than its VLAN tags"),
        /// The sub-interface is down.
        Down => Drop("sub-interface is down"),
        /// Out by the other end of a cross connect, with that one's tags.
        CrossConnect => Interface,
        /// At a member of a bridge domain.
        Bridge => Node("l2-forward"),
        /// At a member of a bond.
        Bond => Node("bond-input"),
        /// It claims to come from many (IEEE 802.3 clause 3.2.3: the source is an individual address).
        BadSource => Drop("source MAC is multicast"),
        /// At layer 2, and without a cross connect.
        Unconnected => Drop("interface has no cross connect"),
        /// The other end of the cross connect is down or gone.
        OtherDown => Drop("cross-connected interface is down"),
        /// Longer than that interface's link allows.
        TooLong => Drop("frame is longer than MTU of cross-connected interface"),
        /// There is no room in front of the frame for the tags of that interface.
        NoRoom => Drop("no room for VLAN tags"),
    }
}

/// The stage.
#[derive(Default)]
pub struct Input {
    last: Remembered,
}

impl Stage<Cx> for Input {
    const NAME: &'static str = "vlan-input";
    type Next = Next;
    const THRU: Next = Next::Ip4;

    #[inline(always)]
    fn packet(&mut self, cx: &Cx, p: &mut Pkt<'_>) -> Next {
        // Nearly all frames have one tag, a sub-interface that was found before, and nothing else to
        // ask about them: half of what `any` costs.
        let (outer, inner) = (p.header::<Tag>(OUTER), p.header::<Tag>(INNER));
        let tags = Tags::one(outer.vlan());
        let ethertype = inner.tpid();
        if outer.tpid() == eth::VLAN
            && !inner.is_tag()
            && p.len() >= eth::LEN + tags.len()
            && let Some(sub) = cx.interfaces.remembered(p.rx_if, tags, &self.last)
        {
            let interface = cx.interfaces.load(sub);
            let is_ip = matches!(ethertype, eth::IP4 | eth::IP6);
            if interface.is(mac(p, 0), Mode::Routed) && is_ip && !is_from_group(p) {
                cx.received(sub, p.total());
                enter(p, sub, tags);
                return match ethertype {
                    eth::IP4 => Next::Ip4,
                    _ => Next::Ip6,
                };
            }
            if interface.mode() == Mode::L2 {
                cx.received(sub, p.total());
                p.set_rx_if(sub);
                return cross(cx, p, interface, tags).into();
            }
        }
        self.any(cx, p)
    }
}

impl Input {
    /// The same for any frame.
    #[inline(never)]
    fn any(&mut self, cx: &Cx, p: &mut Pkt<'_>) -> Next {
        let (tags, ethertype) = tags(p);
        let at = (eth::LEN + tags.len()) as u8;
        if p.len() < usize::from(at) {
            return Next::Runt;
        }
        let destination = mac(p, 0);
        let Some(sub) = cx.interfaces.sub(p.rx_if, tags, &mut self.last) else {
            let parent = cx.interfaces.load(p.rx_if);
            return match parent.mode() {
                Mode::L2 => cross(cx, p, parent, Tags::NONE).into(),
                _ if !parent.is_mac(destination) && destination & GROUP == 0 => Next::NoSub,
                _ if parent.peer() == 0 => Next::NoSub,
                _ => Next::Punt,
            };
        };
        cx.received(sub, p.total());
        let interface = cx.interfaces.load(sub);
        if interface.mode() == Mode::L2 {
            p.set_rx_if(sub);
            return cross(cx, p, interface, interface.tags()).into();
        }
        if is_from_group(p) {
            return Next::BadSource;
        }
        let ours = interface.is_mac(destination);
        let family = match interface.mode() {
            Mode::Down => return Next::Down,
            Mode::Routed | Mode::Unaddressed if ours => ethertype,
            _ if ours || destination & GROUP != 0 => {
                return for_host(p, sub, interface);
            }
            _ => return Next::NotOurs,
        };
        let featured = interface.is_featured();
        let next = match family {
            eth::IP4
                if interface.mode() == Mode::Unaddressed && is_dhcp_reply(p, at, interface) =>
            {
                return for_host(p, sub, interface);
            }
            eth::IP4 if featured => Next::Ip4Features,
            eth::IP4 => Next::Ip4,
            eth::IP6 if featured => Next::Ip6Features,
            eth::IP6 => Next::Ip6,
            _ => return for_host(p, sub, interface),
        };
        enter(p, sub, tags);
        next
    }
}

impl From<Fate> for Next {
    #[inline(always)]
    fn from(fate: Fate) -> Self {
        match fate {
            Fate::Crosses => Next::CrossConnect,
            Fate::Bridges => Next::Bridge,
            Fate::Bonded => Next::Bond,
            Fate::Unconnected => Next::Unconnected,
            Fate::OtherDown => Next::OtherDown,
            Fate::TooLong => Next::TooLong,
            Fate::NoRoom => Next::NoRoom,
            Fate::BadSource => Next::BadSource,
        }
    }
}

/// Makes a frame one of a sub-interface, without the tags that it begins with.
#[inline(always)]
fn enter(p: &mut Pkt<'_>, sub: u16, tags: Tags) {
    pop(p, tags);
    p.set_l3(eth::LEN as u8);
    p.set_rx_if(sub);
}

/// Sends a frame of a sub-interface to the host.
#[cold]
fn for_host(p: &mut Pkt<'_>, sub: u16, interface: Hot<'_>) -> Next {
    if interface.peer() != 0 {
        enter(p, sub, interface.tags());
    }
    Next::Punt
}

/// The tags of a frame, two at most and whether there are more, and the type behind them.
#[inline]
fn tags(p: &Pkt<'_>) -> (Tags, u16) {
    const THIRD: u8 = INNER + vlan::LEN as u8;
    let outer = p.header::<Tag>(OUTER);
    let inner = p.header::<Tag>(INNER);
    let one = Tags {
        service: outer.tpid() == eth::SERVICE_VLAN,
        ..Tags::one(outer.vlan())
    };
    let (tags, ethertype) = match inner.tpid() {
        // Within a service tag, and within another, the inner one is of IEEE 802.1Q.
        eth::VLAN => {
            let both = Tags {
                count: 2,
                inner: inner.vlan(),
                ..one
            };
            (both, p.header::<Tag>(THIRD).tpid())
        }
        ethertype => (one, ethertype),
    };
    let further = vlan::is_tag(ethertype);
    (Tags { further, ..tags }, ethertype)
}
