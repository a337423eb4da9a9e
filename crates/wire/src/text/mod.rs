//! Packets as text: several lines for traces, one line for lists.
//!
//! Any bytes are accepted; the text says what is cut off or makes no sense. A text of several lines
//! has no newline at its end, and its inner lines are indented from the first by two spaces a
//! level.

mod ip4;
mod ip6;
mod transport;

use std::fmt::{self, Display, Formatter};
use std::net::Ipv4Addr;

use zerocopy::FromBytes;

use crate::arp;
use crate::eth::{self, Mac};
use crate::vlan::{self, Tag};

pub use ip4::Ip4;
pub use ip6::Ip6;

/// An Ethernet frame. `{}` gives one line, `{:#}` several.
#[derive(Debug, Clone, Copy)]
pub struct Frame<'a>(pub &'a [u8]);

impl Display for Frame<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Some((header, rest)) = eth::Header::parse(self.0) else {
            return write!(f, "a frame cut off after {} bytes", self.0.len());
        };
        match (header.ethertype(), f.alternate()) {
            (eth::IP4, false) => Ip4(rest).fmt(f),
            (eth::IP4, true) => write!(f, "{}\n{:#}", Link(header), Ip4(rest)),
            (eth::IP6, false) => Ip6(rest).fmt(f),
            (eth::IP6, true) => write!(f, "{}\n{:#}", Link(header), Ip6(rest)),
            (eth::ARP, false) => write!(f, "{}", Arp(rest)),
            (eth::ARP, true) => write!(f, "{}\n{}", Link(header), Arp(rest)),
            _ => {
                let tags = Tags(&self.0[vlan::AT..]);
                write!(f, "{}{tags}, {} bytes", Link(header), self.0.len())
            }
        }
    }
}

/// `IP4: 02:00:00:00:00:01 -> 02:00:00:00:00:02`
struct Link<'a>(&'a eth::Header);

impl Display for Link<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let eth::Header { src, dst, .. } = self.0;
        match self.0.ethertype() {
            eth::IP4 => f.write_str("IP4")?,
            eth::ARP => f.write_str("ARP")?,
            eth::IP6 => f.write_str("IP6")?,
            eth::VLAN => f.write_str("VLAN")?,
            other => write!(f, "{other:#06x}")?,
        }
        write!(f, ": {src} -> {dst}")
    }
}

/// `, 802.1ad vlan 200 priority 7, 802.1q vlan 300`, or nothing where no tag is.
struct Tags<'a>(&'a [u8]);

impl Display for Tags<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let mut rest = self.0;
        while let Ok((tag, behind)) = Tag::ref_from_prefix(rest)
            && tag.is_tag()
        {
            let standard = match tag.tpid() {
                eth::SERVICE_VLAN => "802.1ad",
                _ => "802.1q",
            };
            write!(f, ", {standard} vlan {}", tag.vlan())?;
            if tag.priority() > 0 {
                write!(f, " priority {}", tag.priority())?;
            }
            rest = behind;
        }
        Ok(())
    }
}

/// `ARP request: 02:00:00:00:00:01/10.0.0.1 -> 00:00:00:00:00:00/10.0.0.2`
struct Arp<'a>(&'a [u8]);

impl Display for Arp<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Some((packet, _)) = arp::Header::parse(self.0) else {
            return write!(f, "an ARP packet cut off after {} bytes", self.0.len());
        };
        if !packet.is_ip4_over_ethernet() {
            return f.write_str("ARP of other than IPv4 over Ethernet");
        }
        match packet.operation() {
            arp::REQUEST => f.write_str("ARP request: ")?,
            arp::REPLY => f.write_str("ARP reply: ")?,
            other => write!(f, "ARP operation {other}: ")?,
        }
        let end = |mac: Mac, address| format!("{mac}/{}", Ipv4Addr::from_bits(address));
        let target = end(packet.target_mac, packet.target());
        write!(f, "{} -> {target}", end(packet.sender_mac, packet.sender()))
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv6Addr;

    use proptest::prelude::*;

    use super::transport::Dscp;
    use super::*;
    use crate::craft::{self, Packet};
    use crate::{icmp6, ip, tcp};

    const A: u32 = 0x1000_0001;
    const B: u32 = 0x3000_0001;

    #[test]
    fn a_udp_packet() {
        let frame = Packet::udp((A, 1025), (B, 12))
            .without_udp_checksum()
            .frame_len(60)
            .frame();
        let expected = "\
IP4: 02:00:00:00:00:01 -> 02:00:00:00:00:02
UDP: 16.0.0.1 -> 48.0.0.1
  tos 0x00, ttl 64, length 46, checksum 0x3abe dscp CS0 ecn NON_ECN
  fragment id 0x0000
UDP: 1025 -> 12
  length 26, checksum 0x0000";
        assert_eq!(format!("{:#}", Frame(&frame)), expected);
        assert_eq!(
            Frame(&frame).to_string(),
            "UDP 16.0.0.1:1025 -> 48.0.0.1:12, length 46, ttl 64"
        );
    }

    #[test]
    fn a_tcp_fragment_with_a_wrong_checksum() {
        let packet = Packet::tcp((A, 1), (B, 2), tcp::SYN | tcp::ACK, 7, 8)
            .fragment(0x6000)
            .id(9)
            .tos(0xb9);
        let mut bytes = packet.options(&[1; 4]).packet();
        let right = u16::from_be_bytes([bytes[10], bytes[11]]);
        bytes[10] ^= 0xff;
        let text = format!("{:#}", Ip4(&bytes));
        assert!(
            text.contains(&format!("(should be {right:#06x}) dscp EF ecn ECT_1")),
            "{text}"
        );
        assert!(text.contains("id 0x0009 offset 0, flags DONT_FRAGMENT MORE_FRAGMENTS, header 24 bytes\nTCP: 1 -> 2"), "{text}");
        assert!(
            text.contains("seq. 0x00000007 ack 0x00000008\n  flags 0x12 ACK SYN, header: 20 bytes"),
            "{text}"
        );
        assert!(
            Ip4(&bytes)
                .to_string()
                .starts_with("TCP 16.0.0.1:1 -> 48.0.0.1:2, fragment 0x0009 at 0")
        );
    }

    #[test]
    fn ip6_packets() {
        let (a, b) = (
            Ipv6Addr::from_bits(0x2001_0db8 << 96 | 1),
            Ipv6Addr::from_bits(0x2001_0db8 << 96 | 2),
        );
        let udp = Packet::udp6((a, 1025), (b, 12)).without_udp_checksum();
        let frame = udp.clone().flow_label(0x12345).tos(0xb8).frame();
        let expected = "\
IP6: 02:00:00:00:00:01 -> 02:00:00:00:00:02
UDP: 2001:db8::1 -> 2001:db8::2
  tos 0xb8, flow label 0x12345, hop limit 64, payload length 8 dscp EF ecn NON_ECN
UDP: 1025 -> 12
  length 8, checksum 0x0000";
        assert_eq!(format!("{:#}", Frame(&frame)), expected);
        let later = udp.extension(ip::FRAGMENT, &[0, 5, 1, 0, 0, 0, 9]).frame();
        assert_eq!(
            Frame(&later).to_string(),
            "UDP 2001:db8::1 -> 2001:db8::2, fragment at 1280, more follow, length 56, hop limit 64"
        );
        let text = format!("{:#}", Frame(&later));
        assert!(
            text.ends_with("\n  next header FRAGMENT, fragment at 1280, more follow"),
            "{text}"
        );
        let big = Packet::icmp6(a, b, icmp6::TOO_BIG, 0, 1400).frame();
        assert_eq!(
            Frame(&big).to_string(),
            "ICMP6 2001:db8::1 -> 2001:db8::2 packet_too_big mtu 1400, length 48, hop limit 64"
        );
        let frame = Packet::udp6((a, 1025), (b, 12)).frame();
        assert!(
            Frame(&frame)
                .to_string()
                .starts_with("UDP [2001:db8::1]:1025 -> [2001:db8::2]:12, length 48")
        );
        assert_eq!(
            format!("{:#}", Frame(&frame[..20])).lines().last(),
            Some("an IPv6 header cut off after 6 bytes")
        );
    }

    #[test]
    fn others() {
        let ping = Packet::echo_request(A, B, 3, 4).frame();
        assert_eq!(
            Frame(&ping).to_string(),
            "ICMP 16.0.0.1 -> 48.0.0.1 echo_request id 3 seq 4, length 28, ttl 64"
        );
        let mut tagged = ping.clone();
        tagged.splice(12..12, [0x88, 0xa8, 0xe0, 200, 0x81, 0, 1, 44]);
        let text = Frame(&tagged).to_string();
        let ending = ", 802.1ad vlan 200 priority 7, 802.1q vlan 300, 68 bytes";
        assert!(text.ends_with(ending), "{text}");
        assert!(
            Frame(&tagged[..19])
                .to_string()
                .ends_with("priority 7, 19 bytes")
        );
        let asker = (Mac([2, 0, 0, 0, 0, 1]), A);
        let request = craft::arp(&arp::Header::request(asker, B), Mac::BROADCAST);
        let text = Frame(&request).to_string();
        assert_eq!(
            text,
            "ARP request: 02:00:00:00:00:01/16.0.0.1 -> 00:00:00:00:00:00/48.0.0.1"
        );
        assert_eq!(
            Frame(&[0; 20]).to_string(),
            "0x0000: 00:00:00:00:00:00 -> 00:00:00:00:00:00, 20 bytes"
        );
        assert_eq!(
            Frame(&ping[..5]).to_string(),
            "a frame cut off after 5 bytes"
        );
        assert_eq!(
            format!("{:#}", Frame(&ping[..20])).lines().last(),
            Some("an IPv4 header cut off after 6 bytes")
        );
        let names: Vec<_> = [0, 10, 14, 38, 40, 46, 3]
            .map(|code| Dscp(code).to_string())
            .into();
        assert_eq!(names.join(" "), "CS0 AF11 AF13 AF43 CS5 EF 3");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(5_000))]

        /// Any bytes, and packets damaged in a few places, which get further in.
        #[test]
        fn any_bytes(
            bytes in prop::collection::vec(any::<u8>(), 0..100),
            damage in prop::collection::vec((0usize..80, any::<u8>()), 0..4),
            cut in 0usize..100,
            kind in 0u32..7,
        ) {
            let mut frame = match kind {
                0 => Packet::udp((A, 1), (B, 2)),
                1 => Packet::tcp((A, 1), (B, 2), 0xff, 0, 0),
                2 => Packet::icmp(A, B, bytes.len() as u8, 0, 0),
                3 => Packet::tcp6((u128::from(A), 1), (u128::from(B), 2), 0xff, 0, 0),
                4 => Packet::icmp6(0u128, 1u128, bytes.len() as u8, 0, 0),
                5 => Packet::raw6(0u128, 1u128, ip::UDP).extension(bytes.len() as u8 % 61, &bytes),
                _ => Packet::raw(A, B, bytes.len() as u8),
            }.payload(&bytes).options(&bytes).frame();
            damage.iter().for_each(|&(at, byte)| if let Some(old) = frame.get_mut(at) { *old = byte });
            frame.truncate(cut);
            for bytes in [&frame, &bytes] {
                for text in [format!("{0}\n{0:#}", Frame(bytes)), format!("{0}\n{0:#}", Ip4(bytes)), format!("{0}\n{0:#}", Ip6(bytes))] {
                    prop_assert!(text.lines().all(|line| !line.is_empty()), "{text:?}");
                    prop_assert!(text.chars().all(|c| c == '\n' || !c.is_control()), "{text:?}");
                }
            }
        }
    }
}
