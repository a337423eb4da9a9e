//! Classes of frames for the host, by how urgent they are.

use wire::{eth, icmp6, ip, ip4, ip6, port, vlan};

use crate::bucket::Allowance;

/// The class of a frame for the host. Each class has an allowance of its own, so that a flood in
/// one does not starve another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Class {
    /// ARP and IPv6 neighbor discovery: without them nothing is reachable.
    Neighbors,
    /// Protocols that keep links, addresses and routes alive: BGP, BFD, OSPF, IS-IS, LACP, DHCP and
    /// the like.
    Control,
    /// All others.
    Rest,
}

impl Class {
    pub(crate) const COUNT: usize = 3;

    /// The class of an Ethernet frame, tagged or not. If it is cut off or unknown, [`Class::Rest`].
    pub(super) fn of(frame: &[u8]) -> Class {
        ethernet(frame).unwrap_or(Class::Rest)
    }
}

/// Most packets to the host from each interface, by class: a second, and at once. All interfaces
/// together may send twice as many, so that a flood on one leaves something to the others.
///
/// A packet to the host takes a system call that runs the kernel's receive path: 1 to 3 us, where
/// forwarding takes 40 ns. At its limit, [`Class::Rest`] takes 5 to 15 % of a worker. A BGP peer
/// that sends whole tables as fast as FRR takes them stays far below the limit of its class.
const ALLOWANCES: [(u64, u64); Class::COUNT] = [(10_000, 1000), (20_000, 1000), (50_000, 1000)];

/// The allowances of all workers together, by class.
pub(crate) fn allowances(interfaces: usize) -> [Allowance; Class::COUNT] {
    ALLOWANCES.map(|(rate, burst)| Allowance::new(interfaces, (rate, burst), (2 * rate, 2 * burst)))
}

const LINK_PROTOCOLS: [u16; 3] = [eth::SLOW, eth::EAPOL, eth::LLDP];
const PROTOCOLS: [u8; 6] = [ip::IGMP, ip::RSVP, ip::EIGRP, ip::OSPF, ip::PIM, ip::VRRP];
const TCP_PORTS: [u16; 2] = [port::BGP, port::LDP];
const UDP_PORTS: [u16; 12] = [
    port::DHCP_SERVER,
    port::DHCP_CLIENT,
    port::RIP,
    port::RIPNG,
    port::DHCP6_CLIENT,
    port::DHCP6_SERVER,
    port::LDP,
    port::BFD,
    port::BFD_ECHO,
    port::BFD_MULTIHOP,
    port::BFD_LAG,
    port::BABEL,
];

fn ethernet(frame: &[u8]) -> Option<Class> {
    let (header, payload) = eth::Header::parse(frame)?;
    let (ethertype, payload) = vlan::behind_tags(header.ethertype(), payload)?;
    match ethertype {
        eth::ARP => Some(Class::Neighbors),
        eth::IP4 => {
            let (header, _) = ip4::Header::parse(payload)?;
            // A later fragment has no ports.
            let later = header.fragment_offset() != 0;
            let content = if later {
                &[]
            } else {
                payload.get(header.header_len()..)?
            };
            protocol(header.proto, content)
        }
        eth::IP6 => {
            let (header, content) = ip6::Header::parse(payload)?;
            protocol(header.next_header, content)
        }
        other if other <= eth::MAX_LLC_LEN || LINK_PROTOCOLS.contains(&other) => {
            Some(Class::Control)
        }
        _ => None,
    }
}

fn protocol(number: u8, content: &[u8]) -> Option<Class> {
    match number {
        ip::TCP => {
            let ports = [word(content, 0)?, word(content, 2)?];
            let known = ports.iter().any(|port| TCP_PORTS.contains(port));
            known.then_some(Class::Control)
        }
        ip::UDP => UDP_PORTS
            .contains(&word(content, 2)?)
            .then_some(Class::Control),
        ip::ICMP6 => match *content.first()? {
            kind if icmp6::is_neighbor_discovery(kind) => Some(Class::Neighbors),
            kind if icmp6::is_listener_discovery(kind) => Some(Class::Control),
            _ => None,
        },
        ip::HOP_BY_HOP => {
            let length = (usize::from(*content.get(1)?) + 1) * 8;
            match *content.first()? {
                ip::HOP_BY_HOP => None,
                next => protocol(next, content.get(length..)?),
            }
        }
        _ => PROTOCOLS.contains(&number).then_some(Class::Control),
    }
}

fn word(bytes: &[u8], at: usize) -> Option<u16> {
    let word = bytes.get(at..at + 2)?;
    Some(u16::from_be_bytes([word[0], word[1]]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::craft::Packet;

    fn tagged(frame: &[u8], tags: &[u16]) -> Vec<u8> {
        let mut tagged = frame[..12].to_vec();
        for tag in tags {
            tagged.extend([tag.to_be_bytes(), [0, 5]].concat());
        }
        tagged.extend(&frame[12..]);
        tagged
    }

    fn ip6(next: u8, content: &[u8]) -> Vec<u8> {
        let mut frame = vec![2; 12];
        frame.extend(eth::IP6.to_be_bytes());
        frame.extend([0x60, 0, 0, 0, 0, content.len() as u8, next, 255]);
        frame.extend([0x20; 32]);
        frame.extend(content);
        frame
    }

    fn ethertype(number: u16) -> Vec<u8> {
        let mut frame = vec![0; 60];
        frame[12..14].copy_from_slice(&number.to_be_bytes());
        frame
    }

    #[test]
    fn protocols_have_their_classes() {
        let udp = |port| Packet::udp((1, port), (2, port)).frame();
        let udp_to = |port| Packet::udp((1, 4321), (2, port)).frame();
        let tcp = |from, to| Packet::tcp((1, from), (2, to), 2, 0, 0).frame();
        let raw = |number| Packet::raw(1, 2, number).frame();
        let bgp = tcp(1025, 179);
        let with_options = Packet::tcp((1, 1025), (2, 179), 2, 0, 0).options(&[1, 1, 1, 0]);
        let later = Packet::tcp((1, 1025), (2, 179), 2, 0, 0).fragment(100);
        let cases = [
            ("ARP", ethertype(eth::ARP), Class::Neighbors),
            (
                "neighbor solicitation",
                ip6(ip::ICMP6, &[135; 24]),
                Class::Neighbors,
            ),
            (
                "router advertisement",
                ip6(ip::ICMP6, &[134; 16]),
                Class::Neighbors,
            ),
            ("echo over IPv6", ip6(ip::ICMP6, &[128; 16]), Class::Rest),
            (
                "multicast listener report",
                ip6(
                    0,
                    &[&[ip::ICMP6, 0, 5, 2, 0, 0, 1, 0][..], &[143; 16]].concat(),
                ),
                Class::Control,
            ),
            (
                "hop-by-hop twice",
                ip6(0, &[&[0; 8][..], &[89; 16]].concat()),
                Class::Rest,
            ),
            ("OSPFv3", ip6(89, &[0; 16]), Class::Control),
            (
                "BGP over IPv6",
                ip6(6, &[0, 179, 4, 1, 0, 0, 0, 0]),
                Class::Control,
            ),
            ("to BGP", bgp.clone(), Class::Control),
            ("from BGP", tcp(179, 1025), Class::Control),
            ("BGP with IP options", with_options.frame(), Class::Control),
            ("a later fragment", later.frame(), Class::Rest),
            ("LDP", tcp(646, 2000), Class::Control),
            ("SSH", tcp(179 + 1, 22), Class::Rest),
            ("BFD", udp_to(3784), Class::Control),
            ("BFD over several hops", udp_to(4784), Class::Control),
            ("DHCP", udp(68), Class::Control),
            (
                "from port 3784",
                Packet::udp((1, 3784), (2, 9)).frame(),
                Class::Rest,
            ),
            ("OSPF", raw(89), Class::Control),
            ("VRRP", raw(112), Class::Control),
            ("IGMP", raw(2), Class::Control),
            ("GRE", raw(47), Class::Rest),
            (
                "echo",
                Packet::echo_request(1, 2, 3, 4).frame(),
                Class::Rest,
            ),
            ("IS-IS", ethertype(1497), Class::Control),
            ("LACP", ethertype(0x8809), Class::Control),
            ("LLDP", ethertype(0x88cc), Class::Control),
            ("BGP with a tag", tagged(&bgp, &[eth::VLAN]), Class::Control),
            (
                "BGP with two tags",
                tagged(&bgp, &[eth::SERVICE_VLAN, eth::VLAN]),
                Class::Control,
            ),
            (
                "three tags",
                tagged(&bgp, &[eth::SERVICE_VLAN, eth::VLAN, eth::VLAN]),
                Class::Rest,
            ),
            ("unknown", ethertype(0x1234), Class::Rest),
        ];
        for (what, frame, class) in &cases {
            assert_eq!(Class::of(frame), *class, "{what}");
            for length in 0..frame.len() {
                let _ = Class::of(&frame[..length]);
            }
        }
    }
}
