//! ethernet-input: whether a frame is for us, and what is in it.

use graph::{Pkt, Stage, edges};
use tables::interface::{Hot, Mode, Tags};
use wire::{dhcp, eth, ip, ip4, port, udp, vlan};

use super::address::{GROUP, mac};
use crate::context::Cx;
use crate::l2::{Fate, cross};
use crate::vlan::push;

edges! {
    /// Ways out of ethernet-input.
    pub enum Next {
        /// IPv4 for us.
        Ip4 => Node("ip4-input"),
        /// IPv4 for us, at an interface with features.
        Ip4Features => Node("ip4-input-features"),
        /// IPv6 for us.
        Ip6 => Node("ip6-input"),
        /// IPv6 for us, at an interface with features.
        Ip6Features => Node("ip6-input-features"),
        /// Has VLAN tags.
        Vlan => Node("vlan-input"),
        /// For the host: ARP, broadcast and multicast, answers to its DHCP client, and all
        /// else that is not routed here.
        Punt => Node("punt") as Punted,
        /// From a host interface: the host sends it out of the routed one.
        Host => Interface,
        /// Out by the other end of a cross connect.
        CrossConnect => Interface,
        /// At a member of a bridge domain.
        Bridge => Node("l2-forward"),
        /// At a member of a bond.
        Bond => Node("bond-input"),
        /// Somebody else's unicast.
        NotOurs => Drop("destination MAC is not ours"),
        /// Shorter than an Ethernet header.
        Runt => Drop("frame is shorter than an ethernet header"),
        /// The interface is down.
        Down => Drop("interface is down"),
        /// It claims to come from many (IEEE 802.3 clause 3.2.3: the source is an individual address).
        BadSource => Drop("source MAC is multicast"),
        /// At layer 2, and without a cross connect.
        Unconnected => Drop("interface has no cross connect"),
        /// The other end of the cross connect is down or gone.
        OtherDown => Drop("cross-connected interface is down"),
        /// Longer than that interface's link allows.
        TooLong => Drop("frame is longer than MTU of cross-connected interface"),
        /// There is no room in front of the frame for the tags of the interface that it leaves by.
        NoRoom => Drop("no room for VLAN tags"),
    }
}

/// The stage.
pub struct Input;

/// Where the IP header of a frame without tags is.
const IP_AT: u8 = eth::LEN as u8;

impl Stage<Cx> for Input {
    const NAME: &'static str = "ethernet-input";
    type Next = Next;
    const THRU: Next = Next::Ip4;
    /// Measured with cold buffers, a pass over headers takes 41 cycles a packet with 8, 33 with 32,
    /// and vectorized 26 with 16; 64 is no better. A core has 10 to 16 loads under way: 16 keeps it
    /// busy, and more would wait for those at the begin of every frame.
    const HEADERS_AHEAD: usize = 16;

    #[inline(always)]
    fn packet(&mut self, cx: &Cx, p: &mut Pkt<'_>) -> Next {
        let interface = cx.interfaces.load(p.rx_if);
        let destination = mac(p, 0);
        let ethertype = p.header::<eth::Header>(0).ethertype();
        p.set_l3(IP_AT);
        if interface.is(destination, Mode::Routed) && p.len() >= eth::LEN {
            match ethertype {
                eth::IP4 => return Next::Ip4,
                eth::IP6 => return Next::Ip6,
                eth::VLAN | eth::SERVICE_VLAN => {
                    p.set_l3(0);
                    return Next::Vlan;
                }
                _ => {}
            }
        }
        if p.len() < eth::LEN {
            return Next::Runt;
        }
        let mode = interface.mode();
        let tagged = vlan::is_tag(ethertype);
        if mode == Mode::L2 && !(tagged && cx.interfaces.has_subs(p.rx_if)) {
            return cross(cx, p, interface, Tags::NONE).into();
        }
        let ours = interface.is_mac(destination);
        match mode {
            Mode::Host => {
                let of = interface.peer();
                p.set_tx_if(of);
                let tags = cx.interfaces.load(of).tags();
                if !push(p, tags) {
                    return Next::NoRoom;
                }
                if !tags.is_empty() {
                    cx.sent(of, p.total());
                }
                Next::Host
            }
            Mode::Down => Next::Down,
            // A sub-interface may have an address of its own.
            _ if tagged => {
                // Where it is depends on the tags.
                p.set_l3(0);
                Next::Vlan
            }
            Mode::Routed | Mode::Unaddressed
                if ours
                    && ethertype == eth::IP4
                    && (mode == Mode::Routed || !is_dhcp_reply(p, IP_AT, interface)) =>
            {
                match interface.is_featured() {
                    true => Next::Ip4Features,
                    false => Next::Ip4,
                }
            }
            // No host waits for an answer to an address that it has not got: DHCPv6 and neighbor
            // discovery use link-local addresses.
            Mode::Routed | Mode::Unaddressed if ours && ethertype == eth::IP6 => {
                match interface.is_featured() {
                    true => Next::Ip6Features,
                    false => Next::Ip6,
                }
            }
            _ if ours || destination & GROUP != 0 => Next::Punt,
            _ => Next::NotOurs,
        }
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

/// Whether the packet at `at` is an answer to the host's DHCP client (RFC 2131): UDP to port 68,
/// with the interface's own address as the client's. Its IP destination is an address that nobody
/// has yet. For ports whose netdev is the host's, the XDP program does the same.
#[inline(always)]
pub(crate) fn is_dhcp_reply(p: &Pkt<'_>, at: u8, interface: Hot<'_>) -> bool {
    let udp_at = at + ip4::LEN as u8;
    let client_at = udp_at + (udp::LEN + dhcp::CLIENT_MAC_AT) as u8;
    let header = p.header::<ip4::Header>(at);
    p.len() >= usize::from(client_at) + size_of::<eth::Mac>()
        && header.is_plain()
        && header.proto == ip::UDP
        && p.header::<udp::Header>(udp_at).dst_port() == port::DHCP_CLIENT
        && interface.is_mac(mac(p, client_at))
}
