//! The traffic of IPv6, as a compiled profile: the smallest frames of UDP, whose addresses vary.

use std::net::Ipv6Addr;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::routes::{BLOCK, LONGEST};

/// Offset of a frame's addresses (RFC 8200 section 3).
const SOURCE: usize = 14 + 8;
const DESTINATION: usize = 14 + 24;
/// The hosts of both networks, by the last 32 bits of their addresses: those of the profile
/// `bench`.
const HOSTS: (u32, u32) = (4, 254);

/// The profile of the first direction. From packet to packet both addresses rise by one; with
/// routes, destinations are random within [`BLOCK`] instead. The UDP checksum stays that of the
/// first packet, as in T-Rex's profiles: no router looks at it.
pub fn profile(routes: u32) -> String {
    let source = Ipv6Addr::new(0x2001, 2, 0, 0x10, 0, 0, 0, 4);
    let (destination, varied) = if routes == 0 {
        let destination = Ipv6Addr::new(0x2001, 2, 0, 0x30, 0, 0, 0, 4);
        let varied = variable("destination", "inc", HOSTS, DESTINATION + 12);
        (destination, varied)
    } else {
        // What is left of the fourth byte, and the three behind it.
        let within = (0, (1 << (LONGEST - BLOCK.1)) - 1);
        let varied = variable("destination", "random", within, DESTINATION + 3);
        (BLOCK.0, varied)
    };
    let instructions = [variable("source", "inc", HOSTS, SOURCE + 12), varied].concat();
    let profile = json!([{
        "mode": { "type": "continuous", "rate": { "type": "pps", "value": 1.0 } },
        "packet": { "binary": STANDARD.encode(frame(source, destination)) },
        "vm": { "instructions": instructions },
    }]);
    profile.to_string()
}

/// A variable of 32 bits, and where it is written.
fn variable(name: &str, op: &str, (min, max): (u32, u32), at: usize) -> Vec<Value> {
    vec![
        json!({
            "type": "flow_var", "name": name, "size": 4, "op": op,
            "init_value": min, "min_value": min, "max_value": max, "step": 1,
        }),
        json!({ "type": "write_flow_var", "name": name, "pkt_offset": at }),
    ]
}

/// A frame without payload; the load tester writes the Ethernet addresses.
fn frame(source: Ipv6Addr, destination: Ipv6Addr) -> Vec<u8> {
    const UDP: u16 = 17;
    // Ports, and length.
    let udp: [u16; 3] = [1025, 12, 8];
    let addresses = [source.segments(), destination.segments()].concat();
    let covered = addresses.iter().chain(&[8, UDP]).chain(&udp);
    let sum: u32 = covered.map(|word| u32::from(*word)).sum();
    let checksum = !((sum & 0xffff) + (sum >> 16)) as u16;
    let header = [0x6000, 0, 8, UDP << 8 | 64];
    let words = [
        &[0; 6][..],
        &[0x86dd],
        &header[..],
        &addresses,
        &udp,
        &[checksum],
    ]
    .concat();
    words.iter().flat_map(|word| word.to_be_bytes()).collect()
}

#[cfg(test)]
mod tests {
    use loadgen::model::profile;
    use loadgen::receive::{Match, Version};

    use super::super::plan::IP6_SIZE;
    use super::*;

    #[test]
    fn the_load_tester_takes_the_profiles() {
        for (routes, first, last) in [
            (0, "2001:2:0:30::4", "2001:2:0:30::fe"),
            (250_000, "3fff::", "3fff:3:ffff:ff00::"),
        ] {
            let streams = profile::parse("ip6.json", &profile(routes)).unwrap();
            let [stream] = &streams[..] else {
                panic!("{streams:?}")
            };
            assert_eq!(stream.size(), f64::from(IP6_SIZE));
            let found = Match::of(stream).unwrap();
            let address = |text: &str| text.parse::<Ipv6Addr>().unwrap().to_bits();
            assert_eq!((found.version, found.protocol), (Version::Ip6, 17));
            assert_eq!(found.destination, (address(first), address(last)));
            let hosts = ["2001:2:0:10::4", "2001:2:0:10::fe"].map(address);
            assert_eq!(found.source, (hosts[0], hosts[1]));
            // As RFC 768 has it: all that is covered sums to ones.
            let words = stream.packet[SOURCE..].chunks(2);
            let sum: u32 = words
                .map(|w| u32::from(u16::from_be_bytes([w[0], w[1]])))
                .sum();
            let sum = sum + 8 + 17;
            assert_eq!((sum & 0xffff) + (sum >> 16), 0xffff);
        }
    }
}
