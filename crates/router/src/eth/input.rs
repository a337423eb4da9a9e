//! ethernet-input: is the frame for us, and what is in it.

use crate::context::Cx;
use crate::snapshot::Mode;
use graph::{Pkt, Stage, edges};

edges! {
    /// Ways out of ethernet-input.
    pub enum Next {
        /// IPv4 for us.
        Ip4 => Node("ip4-input"),
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

const MAC: u64 = (1 << 48) - 1;
const GROUP: u64 = 1;

impl Stage<Cx> for Input {
    const NAME: &'static str = "ethernet-input";
    type Next = Next;
    const THRU: Next = Next::Ip4;
    const HEADERS_AHEAD: usize = 16;

    #[inline(always)]
    fn packet(&mut self, cx: &Cx, p: &mut Pkt<'_>) -> Next {
        let face = cx.face(p.rx_if);
        let destination = u64::from_le_bytes(*p.at::<8>(0)) & MAC;
        let ethertype = u16::from_be_bytes(*p.at::<2>(12));
        p.set_l3(14);
        if destination == face.mac
            && ethertype == 0x0800
            && face.mode == Mode::Routed
            && p.len() >= 14
        {
            return Next::Ip4;
        }
        if p.len() < 14 {
            return Next::Runt;
        }
        match face.mode {
            Mode::Twin(of) => {
                p.set_adj(u32::from(of));
                Next::Host
            }
            Mode::Down => Next::Down,
            Mode::Unaddressed
                if destination == face.mac
                    && ethertype == 0x0800
                    && !is_dhcp_reply(p, face.mac) =>
            {
                Next::Ip4
            }
            _ if destination == face.mac || destination & GROUP != 0 => Next::Punt,
            _ => Next::NotOurs,
        }
    }
}

/// RFC 2131: UDP to port 68, and the interface's own address as the client's. Its IP destination is an address that nobody has yet.
/// The XDP program asks the same for the ports whose netdev is the host's.
#[cold]
fn is_dhcp_reply(p: &Pkt<'_>, mac: u64) -> bool {
    const UDP: u8 = 14 + 20;
    const CLIENT: u8 = UDP + 8 + 28;
    let client = u64::from_le_bytes(*p.at::<8>(CLIENT)) & MAC;
    p.len() >= usize::from(CLIENT) + 6
        && *p.at::<1>(14) == [0x45]
        && *p.at::<1>(14 + 9) == [wire::ip4::UDP]
        && *p.at::<2>(UDP + 2) == 68u16.to_be_bytes()
        && client == mac
}
