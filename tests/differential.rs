//! The same packets through the Linux kernel and through the router; what comes out is compared field by field.
//!
//! Left aside: rate limits of ICMP errors (an error may be missing on either side, but every kind of it must be seen
//! on both), and the identification and checksum of packets that the device makes itself.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::Ipv4Addr,
    time::Duration,
};

use crate::harness::{
    Hosts, Raw, Router,
    craft::{DF, ICMP, Ip4, MF, Mac, checksum},
    random::Random,
    router::forwards,
    skipped,
    topology::{CONFIGURATION, H0, HOST, R0, ROUTER},
};

/// Packets in all, and how many are under way at a time.
const PACKETS: usize = 3000;
const BATCH: usize = 50;

/// It is over when nothing came for this long.
const QUIET: Duration = Duration::from_millis(25);

/// Where a packet came out, and what it was, with everything that may differ made equal.
type Output = (&'static str, Vec<u8>);

/// A device with a socket on each side.
struct Device {
    hosts: Hosts,
    left: Raw,
    right: Raw,
    router: Option<Router>,
}

impl Device {
    fn new(parshall: bool) -> Self {
        let hosts = Hosts::new(1500, false);
        hosts.router.ip("link set r1 mtu 1400").unwrap();
        hosts
            .router
            .ip_batch("route add blackhole 60.0.0.0/8\nroute add unreachable 61.0.0.0/8\nroute add prohibit 62.0.0.0/8\n")
            .unwrap();
        // Beside the router too: packets with options are the kernel's, out of the router's fast path.
        hosts.router.set_forwarding(true).unwrap();
        let router = parshall.then(|| Router::start(&hosts.router, CONFIGURATION));
        let (left, right) = hosts.raw();
        assert!(forwards(&left, &right), "it does not forward");
        Self {
            hosts,
            left,
            right,
            router,
        }
    }

    /// Sends a batch from the left and returns what comes out.
    fn run(&self, frames: &[Vec<u8>]) -> BTreeMap<Output, usize> {
        self.left.drain(Duration::from_millis(1));
        self.right.drain(Duration::from_millis(1));
        for frame in frames {
            self.left.send(frame);
        }
        let mut outputs = BTreeMap::new();
        let right = self
            .right
            .drain(QUIET)
            .into_iter()
            .map(|frame| ("right", frame));
        for (side, frame) in right.chain(
            self.left
                .drain(QUIET)
                .into_iter()
                .map(|frame| ("left", frame)),
        ) {
            if frame[12..14] == [8, 0] {
                *outputs.entry((side, normal(frame))).or_default() += 1;
            }
        }
        outputs
    }
}

/// Makes equal what may differ: the padding behind the packet, and fields of packets that the device itself made.
fn normal(mut frame: Vec<u8>) -> Vec<u8> {
    let length = usize::from(u16::from_be_bytes([frame[16], frame[17]]));
    frame.truncate(14 + length);
    let src: [u8; 4] = frame[26..30].try_into().unwrap();
    if ROUTER.iter().any(|own| own.octets() == src) {
        let header = usize::from(frame[14] & 15) * 4;
        assert_eq!(
            checksum(&frame[14..14 + header]),
            0,
            "header checksum of {frame:02x?}"
        );
        frame[18..20].fill(0);
        frame[24..26].fill(0);
    }
    frame
}

/// The ICMP error that an output is, as type and code.
fn error_kind((_, frame): &Output) -> Option<(u8, u8)> {
    let icmp = 14 + usize::from(frame[14] & 15) * 4;
    (frame[23] == ICMP && [3, 11, 12].contains(&frame[icmp]))
        .then(|| (frame[icmp], frame[icmp + 1]))
}

/// The packet that an ICMP error quotes: its header and eight bytes.
fn quoted((_, frame): &Output) -> &[u8] {
    let quote = 14 + usize::from(frame[14] & 15) * 4 + 8;
    &frame[quote..frame.len().min(quote + 28)]
}

/// Errors that both sent about the same packet must be the same: pairs that are not.
fn unlike(outputs: &[BTreeMap<Output, usize>; 2]) -> Vec<String> {
    let errors = |side: usize| {
        outputs[side]
            .keys()
            .filter(|output| error_kind(output).is_some())
    };
    let of_router: BTreeMap<&[u8], &Output> =
        errors(1).map(|output| (quoted(output), output)).collect();
    let pairs = errors(0).filter_map(|output| Some((output, *of_router.get(quoted(output))?)));
    let different = pairs.filter(|(kernel, router)| kernel != router);
    different
        .map(|(a, b)| {
            format!(
                "{}\n{}",
                describe("kernel", a, 1),
                describe("parshall", b, 1)
            )
        })
        .collect()
}

/// How many of the outputs left by the right as forwarded packets without options: the fast path's.
fn fast(outputs: &BTreeMap<Output, usize>) -> usize {
    let own = |frame: &[u8]| ROUTER.iter().any(|own| own.octets() == frame[26..30]);
    let fast = |(side, frame): &Output| *side == "right" && frame[14] == 0x45 && !own(frame);
    outputs
        .iter()
        .filter(|(output, _)| fast(output))
        .map(|(_, count)| count)
        .sum()
}

/// Packets that the router itself sent by `r1`.
fn sent_by(router: &Router) -> u64 {
    let shown = router.show(&["interface"]);
    let interfaces = shown["interfaces"].as_array().expect("interfaces");
    let right = interfaces
        .iter()
        .find(|interface| interface["name"] == "r1");
    right
        .and_then(|right| right["tx_packets"].as_u64())
        .expect("a count of r1")
}

/// An address behind the right host.
fn behind(random: &mut Random) -> Ipv4Addr {
    let bits = random.bits();
    Ipv4Addr::new(48, bits as u8, (bits >> 8) as u8, (bits >> 16) as u8)
}

/// A packet that is right.
fn plain(random: &mut Random, id: u16) -> Ip4 {
    let src = Ipv4Addr::new(16, 0, random.below(256) as u8, random.below(254) as u8 + 1);
    let dst = behind(random);
    let length = random.one_of(&[8, 26, 27, 200, 1000, 1371, 1372]);
    Ip4 {
        tos: random.one_of(&[0, 0, 0xb8, 3]),
        ttl: random.one_of(&[2, 3, 64, 255]),
        ..Ip4::udp(src, dst, id, length)
    }
}

/// A packet of any kind, with where its frame goes.
fn packet(random: &mut Random, id: u16) -> (Ip4, Mac) {
    let mut packet = plain(random, id);
    let mut mac = R0;
    match random.below(20) {
        0 => packet.ttl = random.one_of(&[0, 1]),
        1 => packet.version = random.one_of(&[0, 3, 5, 6, 15]),
        2 => packet.header_words = Some(random.one_of(&[0, 1, 4, 6, 15])),
        3 => packet.total_length = Some(random.one_of(&[0, 19, 20, 27, 28, 1500, 65535])),
        4 => packet.checksum = Some(random.bits() as u16),
        5 => packet.options = options(random),
        6 => packet.fragment = random.one_of(&[MF, MF | 1, 100, 0x1fff, DF | MF]),
        7 => {
            packet.fragment = DF;
            packet
                .payload
                .resize(random.one_of(&[1380, 1381, 1400, 1480]), 1);
        }
        8 => packet
            .payload
            .resize(random.one_of(&[1381, 1388, 1400, 1480]), 2),
        9 => {
            packet.dst = random
                .one_of(&[
                    [198, 18, 1, 255],
                    [198, 18, 0, 255],
                    [255; 4],
                    [198, 18, 1, 0],
                ])
                .into()
        }
        10 => {
            packet.dst = random
                .one_of(&[
                    [127, 0, 0, 1],
                    [0; 4],
                    [224, 0, 0, 5],
                    [239, 1, 2, 3],
                    [240, 0, 0, 1],
                ])
                .into()
        }
        11 => {
            packet.src = random
                .one_of(&[
                    [127, 0, 0, 1],
                    [0; 4],
                    [224, 0, 0, 1],
                    [255; 4],
                    [240, 1, 1, 1],
                ])
                .into()
        }
        12 => packet.src = random.one_of(&ROUTER),
        13 => packet = Ip4::echo(HOST[0], random.one_of(&ROUTER), id),
        14 => packet.dst = random.one_of(&ROUTER),
        15 => {
            packet.dst = random
                .one_of(&[[60, 0, 0, 1], [61, 0, 0, 1], [62, 0, 0, 1], [99, 9, 9, 9]])
                .into()
        }
        16 => mac = random.one_of(&[[2, 0, 0, 0, 0, 9], [0xff; 6], [1, 0, 0x5e, 0, 0, 5]]),
        _ => {}
    }
    (packet, mac)
}

/// Options: none that matters, record route, time stamp (full: only its overflow counts up, the time is nobody's to
/// compare), router alert, a list that is wrong.
fn options(random: &mut Random) -> Vec<u8> {
    let lists: [&[u8]; 5] = [
        &[1, 1, 1, 0],
        &[7, 7, 4, 0, 0, 0, 0, 0],
        &[68, 8, 9, 0, 0, 0, 0, 0],
        &[148, 4, 0, 0],
        &[7, 200, 4, 0],
    ];
    random.one_of(&lists).to_vec()
}

#[test]
fn kernel_and_router_do_the_same() {
    if skipped("kernel_and_router_do_the_same", &["ip", "ethtool"]) {
        return;
    }
    let mut random = Random::new("kernel_and_router_do_the_same");
    let (kernel, parshall) = (Device::new(false), Device::new(true));
    let (mut errors, mut wrong, mut forwarded) =
        ([BTreeSet::new(), BTreeSet::new()], Vec::new(), 0);
    for batch in 0..PACKETS / BATCH {
        let packets: Vec<(Ip4, Mac)> = (0..BATCH)
            .map(|i| packet(&mut random, (batch * BATCH + i + 1) as u16))
            .collect();
        let frames: Vec<Vec<u8>> = packets
            .iter()
            .map(|(packet, mac)| packet.frame(H0, *mac))
            .collect();
        let outputs = [kernel.run(&frames), parshall.run(&frames)];
        wrong.extend(unlike(&outputs));
        forwarded += fast(&outputs[1]);
        for (side, other) in [(0, 1), (1, 0)] {
            for (output, count) in &outputs[side] {
                match error_kind(output) {
                    Some(kind) => drop(errors[side].insert(kind)),
                    None if outputs[other].get(output) != Some(count) => {
                        wrong.push(describe(["kernel", "parshall"][side], output, *count));
                    }
                    None => {}
                }
            }
        }
        assert!(
            wrong.len() < 20,
            "batch {batch}, only one of them:\n{}",
            wrong.join("\n")
        );
    }
    assert!(wrong.is_empty(), "only one of them:\n{}", wrong.join("\n"));
    assert_eq!(
        errors[0], errors[1],
        "kinds of ICMP errors (type, code) of kernel and router"
    );
    let sent = parshall.router.as_ref().map_or(0, sent_by);
    assert!(
        sent >= forwarded as u64,
        "the router sent {sent} of {forwarded}: the kernel forwarded the rest"
    );
    drop((kernel.hosts, parshall.hosts));
}

fn describe(device: &str, (side, frame): &Output, count: usize) -> String {
    format!(
        "{device}: {count} x out on the {side}, {} bytes: {:02x?}",
        frame.len(),
        &frame[..frame.len().min(70)]
    )
}
