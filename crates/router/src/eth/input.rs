//! ethernet-input: is the frame for us, and what is in it.

use crate::context::Cx;
use graph::{Pkt, Stage, edges};
use tables::interface::{Hot, Mode};

edges! {
    /// Ways out of ethernet-input.
    pub enum Next {
        /// IPv4 for us.
        Ip4 => Node("ip4-input"),
        /// IPv4 for us, by an interface with features.
        Features => Node("ip4-input-features"),
        /// For the host: ARP, IPv6, broadcast and multicast, its DHCP server's answer, whatever is not routed here.
        Punt => Node("punt"),
        /// From a twin: the host sends it by the interface.
        Host => Interface,
        /// Somebody else's unicast.
        NotOurs => Drop("destination MAC is not ours"),
        /// Shorter than an Ethernet header.
        Runt => Drop("frame is shorter than an ethernet header"),
        /// The interface is down.
        Down => Drop("interface is down"),
    }
}

/// The stage.
pub struct Input;

const GROUP: u64 = 1;

impl Stage<Cx> for Input {
    const NAME: &'static str = "ethernet-input";
    type Next = Next;
    const THRU: Next = Next::Ip4;
    const HEADERS_AHEAD: usize = 16;

    #[inline(always)]
    fn packet(&mut self, cx: &Cx, p: &mut Pkt<'_>) -> Next {
        let interface = cx.interfaces.load(p.rx_if);
        let destination = u64::from_le_bytes(*p.at::<8>(0));
        let ethertype = u16::from_be_bytes(*p.at::<2>(12));
        p.set_l3(14);
        if interface.is(destination, Mode::Routed) && ethertype == 0x0800 && p.len() >= 14 {
            return Next::Ip4;
        }
        if p.len() < 14 {
            return Next::Runt;
        }
        let ours = interface.is_mac(destination);
        let mode = interface.mode();
        match mode {
            Mode::Twin => {
                p.set_tx_if(interface.twin());
                Next::Host
            }
            Mode::Down | Mode::L2 => Next::Down,
            Mode::Routed | Mode::Unaddressed
                if ours
                    && ethertype == 0x0800
                    && (mode == Mode::Routed || !is_dhcp_reply(p, interface)) =>
            {
                match interface.is_featured() {
                    true => Next::Features,
                    false => Next::Ip4,
                }
            }
            _ if ours || destination & GROUP != 0 => Next::Punt,
            _ => Next::NotOurs,
        }
    }
}

/// RFC 2131: UDP to port 68, and the interface's own address as the client's. Its IP destination is an address that nobody has yet.
/// The XDP program asks the same for the ports whose netdev is the host's.
#[inline(always)]
fn is_dhcp_reply(p: &Pkt<'_>, interface: Hot<'_>) -> bool {
    const UDP: u8 = 14 + 20;
    const CLIENT: u8 = UDP + 8 + 28;
    p.len() >= usize::from(CLIENT) + 6
        && *p.at::<1>(14) == [0x45]
        && *p.at::<1>(14 + 9) == [wire::ip4::UDP]
        && *p.at::<2>(UDP + 2) == 68u16.to_be_bytes()
        && interface.is_mac(u64::from_le_bytes(*p.at::<8>(CLIENT)))
}
