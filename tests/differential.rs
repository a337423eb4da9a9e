//! The same packets through the Linux kernel and through the router; what comes out is compared
//! byte for byte.
//!
//! Not compared are the padding of short frames, and identification, header checksum and flow label
//! of packets that the device itself made. Packets that are known to differ (docs/differences.md) are left
//! out; [`known_differences`] shows that they still do.

mod device;
mod frames;
mod packets;
mod packets6;

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr};
use std::time::{Duration, Instant};

use crate::harness::craft::{ICMP, ICMP6, Ip4, Ip6, Mac};
use crate::harness::random::Random;
use crate::harness::router::is_to;
use crate::harness::topology::{self, H0, H1, HOST, R0, ROUTER, text};
use crate::harness::{Raw, lacks_multi_buffer, patience, skipped, until};

use self::device::{Device, Kind, NARROW, OWN, Output, Outputs, SENDS6, count};

/// Packets in all, and how many are under way at a time.
const PACKETS: usize = 4000;
const BATCH: usize = 40;

/// Batches that are sent while the kernel beside the router does not forward: it makes no error
/// that could pass for the router's.
const ALONE: usize = PACKETS / BATCH / 2;

/// MTU on the left.
const NORMAL: u16 = 1500;
const JUMBO: u16 = 9000;

/// Least time for an error, and for what a batch has beside: the router sends at most a thousand
/// ICMP errors a second.
const PACE: Duration = Duration::from_millis(1);
/// The errors that mark the end of a batch: one, and one more if it is asked for again.
const MARK: u32 = 2;

/// What is sent, and what must come back for it.
struct Traffic {
    frame: fn(&mut Random, u16, u16) -> Vec<u8>,
    /// MTUs that senders must be told.
    mtus: [u16; 3],
    /// Addresses that errors must come from.
    own: Vec<IpAddr>,
}

fn ip4() -> Traffic {
    Traffic {
        frame: frames::frame::<Ip4>,
        mtus: [1200, 1300, NARROW],
        own: OWN.map(IpAddr::from).to_vec(),
    }
}

fn ip6() -> Traffic {
    Traffic {
        frame: frames::frame::<Ip6>,
        mtus: [1280, 1300, NARROW],
        own: SENDS6.map(IpAddr::from).to_vec(),
    }
}

/// The ICMP error that an output is: type, code, MTU and where it comes from.
fn error((_, frame): &Output) -> Option<((u8, u8), u16, IpAddr)> {
    match frame[12..14] {
        [8, 0] => {
            let icmp = frame.get(14 + usize::from(frame[14] & 15) * 4..)?;
            let kind = (*icmp.first()?, *icmp.get(1)?);
            let mtu = u16::from_be_bytes([*icmp.get(6)?, *icmp.get(7)?]);
            let source: [u8; 4] = frame[26..30].try_into().ok()?;
            (frame[23] == ICMP && [3, 11, 12].contains(&kind.0)).then(|| (kind, mtu, source.into()))
        }
        _ => {
            let icmp = frame.get(54..62)?;
            let source: [u8; 16] = frame[22..38].try_into().ok()?;
            let mtu = u16::from_be_bytes([icmp[6], icmp[7]]);
            let is_error = frame[20] == ICMP6 && (1..=4).contains(&icmp[0]);
            is_error.then(|| ((icmp[0], icmp[1]), mtu, source.into()))
        }
    }
}

/// "Fragmentation needed", or "packet too big".
fn is_too_big(kind: (u8, u8)) -> bool {
    [(3, 4), (2, 0)].contains(&kind)
}

/// Whether a packet is one for a kernel that forwards: it has options, or it is for all routers of
/// an IPv6 network (RFC 4291 section 2.6.1).
fn is_for_forwarding_kernel(frame: &[u8]) -> bool {
    match frame[12..14] {
        [8, 0] => frame.get(14).is_some_and(|first| first & 15 > 5),
        _ => frame.get(20) == Some(&0) || frame.get(46..54) == Some(&[0; 8]),
    }
}

/// Outputs that one device has more often than the other, as text.
fn unlike(names: [&str; 2], outputs: [&Outputs; 2]) -> Vec<String> {
    let mut wrong = Vec::new();
    for (side, other) in [(0, 1), (1, 0)] {
        for (output, count) in outputs[side] {
            let missing = count.saturating_sub(*outputs[other].get(output).unwrap_or(&0));
            if missing > 0 {
                wrong.push(describe(names[side], output, missing));
            }
        }
    }
    wrong
}

fn describe(device: &str, (side, frame): &Output, count: usize) -> String {
    format!(
        "{device}: {count} x out on the {side}, {} bytes: {:02x?}",
        frame.len(),
        &frame[..frame.len().min(110)]
    )
}

/// Compares router and kernel; returns the kinds of ICMP errors seen.
fn compare(name: &str, traffic: &Traffic, kind: Kind, mtu: u16) -> BTreeSet<(u8, u8)> {
    let mut random = Random::new(name);
    let (mut kernel, mut parshall) = (Device::new(Kind::Kernel, mtu), Device::new(kind, mtu));
    let (mut kinds, mut wrong, mut through) = (BTreeSet::new(), Vec::new(), 0);
    let (mut mtus, mut senders) = (BTreeSet::new(), BTreeSet::new());
    let before = parshall.sent_by("r1");
    parshall.hosts.router.set_forwarding(false).unwrap();
    for batch in 0..PACKETS / BATCH {
        let start = Instant::now();
        let number = |i| (batch * BATCH + i + 1) as u16;
        let mut frames: Vec<Vec<u8>> = (0..BATCH)
            .map(|i| (traffic.frame)(&mut random, number(i), mtu))
            .collect();
        if batch < ALONE {
            frames.retain(|frame| !is_for_forwarding_kernel(frame));
        } else if batch == ALONE {
            parshall.hosts.router.set_forwarding(true).unwrap();
        }
        let (expected, got) = (kernel.run(&frames), parshall.run(&frames));
        for (kind, mtu, source) in expected.keys().filter_map(error) {
            kinds.insert(kind);
            senders.insert(source);
            // Others only pass through.
            let own = traffic.own.contains(&source);
            mtus.extend((own && is_too_big(kind)).then_some(mtu));
        }
        let right = expected.iter().filter(|((side, _), _)| *side == "right");
        through += right.map(|(_, n)| *n as u64).sum::<u64>();
        let found = unlike(["kernel", "parshall"], [&expected, &got]);
        if !found.is_empty() {
            wrong.push(format!("batch {batch}:\n{}", found.join("\n")));
        }
        assert!(wrong.len() < 5, "only one of them, {}", wrong.join("\n"));
        let errors = got.iter().filter(|(output, _)| error(output).is_some());
        let errors: usize = errors.map(|(_, count)| count).sum();
        let due = start + PACE * (errors as u32 + MARK);
        std::thread::sleep(due.saturating_duration_since(Instant::now()));
    }
    assert!(wrong.is_empty(), "only one of them, {}", wrong.join("\n"));
    assert_eq!(parshall.errors("rate limit"), 0, "errors were held back");
    assert_eq!(mtus, BTreeSet::from(traffic.mtus));
    let missing: Vec<_> = traffic
        .own
        .iter()
        .filter(|own| !senders.contains(own))
        .collect();
    assert!(missing.is_empty(), "no errors from {missing:?}");
    // If the kernel had forwarded them, it would have been compared with itself.
    let forwarded = parshall.sent_by("r1") - before;
    assert!(
        forwarded * 10 > through * 8,
        "{forwarded} of {through} packets forwarded by the router"
    );
    kinds
}

/// Kinds of ICMP errors that must have been seen: network, host, port unreachable, fragmentation
/// needed, prohibited, time exceeded, wrong options.
const ERRORS: [(u8, u8); 7] = [(3, 0), (3, 1), (3, 3), (3, 4), (3, 13), (11, 0), (12, 0)];

#[test]
fn kernel_and_router_do_the_same() {
    if skipped("kernel_and_router_do_the_same", &["ip", "ethtool"]) {
        return;
    }
    let errors = compare("kernel_and_router_do_the_same", &ip4(), Kind::Veth, NORMAL);
    let missing: Vec<_> = ERRORS.iter().filter(|e| !errors.contains(e)).collect();
    assert!(missing.is_empty(), "never seen: {missing:?}");
}

#[test]
fn kernel_and_router_do_the_same_to_ip6() {
    let name = "kernel_and_router_do_the_same_to_ip6";
    if skipped(name, &["ip", "ethtool"]) {
        return;
    }
    let errors = compare(name, &ip6(), Kind::Veth, NORMAL);
    let missing: Vec<_> = packets6::ERRORS
        .iter()
        .filter(|e| !errors.contains(e))
        .collect();
    assert!(missing.is_empty(), "never seen: {missing:?}");
}

#[test]
fn kernel_and_router_with_taps_do_the_same() {
    if skipped(
        "kernel_and_router_with_taps_do_the_same",
        &["ip", "ethtool"],
    ) {
        return;
    }
    let name = "kernel_and_router_with_taps_do_the_same";
    compare(name, &ip4(), Kind::Tap, NORMAL);
    compare(name, &ip6(), Kind::Tap, NORMAL);
}

/// Packets that come in several buffers.
#[test]
fn kernel_and_router_do_the_same_to_jumbo_packets() {
    let name = "kernel_and_router_do_the_same_to_jumbo_packets";
    if !skipped(name, &["ip", "ethtool"]) && !lacks_multi_buffer(name) {
        compare(name, &ip4(), Kind::Veth, JUMBO);
        compare(name, &ip6(), Kind::Veth, JUMBO);
    }
}

/// Kernel and router, each with a packet that waits for a neighbor: both wait at the same time.
fn both_get(frame: &[u8]) -> [Device; 2] {
    let devices = [Kind::Kernel, Kind::Veth].map(|kind| Device::new(kind, NORMAL));
    for device in &devices {
        device.left.send(frame);
    }
    devices
}

/// A neighbor that does not answer: both ask for it, and tell the sender after a while.
#[test]
fn a_silent_neighbor_is_reported_to_the_sender() {
    if skipped(
        "a_silent_neighbor_is_reported_to_the_sender",
        &["ip", "ethtool"],
    ) {
        return;
    }
    let dst = Ipv4Addr::new(198, 18, 1, 77);
    let packet = Ip4::udp([16, 0, 0, 1].into(), dst, 7, 100);
    let devices = both_get(&packet.frame(H0, R0));
    let errors = devices.each_ref().map(|device| {
        let asked = device.right.expect(patience(), |frame| {
            frame[12..14] == [8, 6] && frame[38..42] == dst.octets()
        });
        assert!(asked.is_some(), "nobody asked for the neighbor");
        let frame = device
            .left
            .expect(patience(), |frame| is_to(frame, packet.src))
            .expect("the sender gets an error");
        let mut outputs = Outputs::new();
        count("left", frame, &mut outputs);
        let (output, _) = outputs.pop_first().expect("it is there");
        assert_eq!(error(&output).map(|(kind, ..)| kind), Some((3, 1)));
        output.1
    });
    // The kernel quotes the packet as it would have gone out, the router as it came: time to live
    // and checksum differ.
    let same = |frame: &[u8]| {
        let mut frame = frame.to_vec();
        frame[42 + 8] = 0;
        frame[42 + 10..42 + 12].fill(0);
        frame
    };
    assert_eq!(same(&errors[0]), same(&errors[1]));
}

/// The same over IPv6.
#[test]
fn a_silent_ip6_neighbor_is_reported_to_the_sender() {
    let name = "a_silent_ip6_neighbor_is_reported_to_the_sender";
    if skipped(name, &["ip", "ethtool"]) {
        return;
    }
    let dst = topology::ip6(1, 0x77);
    let packet = Ip6::udp(topology::ip6(0x1600, 1), dst, 7, 100);
    let devices = both_get(&packet.frame(H0, R0));
    let errors = devices.each_ref().map(|device| {
        let asked = device.right.expect(patience(), |frame| {
            frame[12..14] == [0x86, 0xdd] && frame[54] == 135 && frame[62..78] == dst.octets()
        });
        assert!(asked.is_some(), "nobody asked for the neighbor");
        let to_sender =
            |frame: &[u8]| frame[12..14] == [0x86, 0xdd] && frame[38..54] == packet.src.octets();
        let frame = device
            .left
            .expect(patience(), to_sender)
            .expect("the sender gets an error");
        let mut outputs = Outputs::new();
        count("left", frame, &mut outputs);
        let (output, _) = outputs.pop_first().expect("it is there");
        assert_eq!(error(&output).map(|(kind, ..)| kind), Some((1, 3)));
        output.1
    });
    // The kernel quotes the packet as it would have gone out, the router as it came: hop limit and
    // so the checksum differ.
    let same = |frame: &[u8]| {
        let mut frame = frame.to_vec();
        frame[56..58].fill(0);
        frame[62 + 7] = 0;
        frame
    };
    assert_eq!(same(&errors[0]), same(&errors[1]));
}

/// Packets from an address that is good on its link only do not leave it: the kernel says so, and
/// on a port that is not its own it gets them, too.
#[test]
fn packets_from_a_link_local_address_stay_on_their_link() {
    let name = "packets_from_a_link_local_address_stay_on_their_link";
    if skipped(name, &["ip", "ethtool"]) {
        return;
    }
    for kind in [Kind::Kernel, Kind::Veth, Kind::Tap] {
        let device = Device::new(kind, NORMAL);
        let is_told = |frame: &[u8]| {
            let error = error(&("left", frame.to_vec()));
            error.is_some_and(|(kind, ..)| kind == (1, 2)) && frame[22..24] == [0xfe, 0x80]
        };
        let told = until(patience(), || {
            device.left.send(&packets6::beyond_scope(1));
            let answer = device.left.expect(Duration::from_millis(200), is_told);
            answer.is_some()
        });
        assert!(told, "the sender is not told");
        let through = device.right.drain(Duration::from_millis(1));
        assert!(
            through
                .iter()
                .all(|frame| frame[22..24] != [0xfe, 0x80] || frame[20] != 17),
            "it left its link"
        );
    }
}

/// A link without addresses of its own: errors come from the router's only one, on its loopback
/// device.
#[test]
fn errors_by_an_unnumbered_link_come_from_the_loopback_address() {
    let name = "errors_by_an_unnumbered_link_come_from_the_loopback_address";
    if skipped(name, &["ip", "ethtool"]) {
        return;
    }
    let own = Ipv4Addr::new(10, 255, 0, 1);
    let packet = Ip4 {
        ttl: 1,
        ..Ip4::udp([16, 0, 0, 1].into(), [48, 0, 0, 1].into(), 7, 100)
    };
    for kind in [Kind::Kernel, Kind::Veth] {
        let device = Device::new(kind, NORMAL);
        let h0 = HOST[0];
        let unnumber = format!(
            "address flush dev r0\naddress add {own}/32 dev lo\n\
             neigh replace {h0} lladdr {} dev r0 nud permanent\nroute add 16.0.0.0/8 via {h0} dev r0 onlink\n",
            text(H0)
        );
        device.hosts.router.ip_batch(&unnumber).unwrap();
        let answered = until(patience(), || {
            device.left.send(&packet.frame(H0, R0));
            let back = |frame: &[u8]| is_to(frame, packet.src) && frame[26..30] == own.octets();
            device
                .left
                .expect(Duration::from_millis(50), back)
                .is_some()
        });
        assert!(answered, "no error from {own}");
        assert!(
            device.router.is_none() || device.sent_by("r0") > 0,
            "the kernel sent it"
        );
    }
}

/// A DHCP client on the router's device has no address yet when the server answers to the one that
/// it offers.
#[test]
fn dhcp_client_gets_its_answer() {
    if skipped("dhcp_client_gets_its_answer", &["ip", "ethtool"]) {
        return;
    }
    let offer = |client: Mac, id| {
        let mut message = vec![2, 1, 6, 0];
        message.resize(28, 0);
        message.extend(client);
        let mut packet = Ip4::udp(HOST[0], [48, 1, 2, 3].into(), id, 8 + 240);
        packet.payload[..4].copy_from_slice(&[0, 67, 0, 68]);
        packet.payload[8..8 + message.len()].copy_from_slice(&message);
        packet.frame(H0, R0)
    };
    for kind in [Kind::Veth, Kind::Tap] {
        let device = Device::new(kind, NORMAL);
        device.hosts.router.ip("addr flush dev r0").unwrap();
        let client = Raw::open(&device.hosts.router, "r0", R0);
        let (ours, other) = (offer(R0, 1), offer(H1, 2));
        let came = until(patience(), || {
            device.left.send(&ours);
            client
                .expect(Duration::from_millis(50), |frame| frame == ours)
                .is_some()
        });
        assert!(came, "the client never saw the offer");
        // Somebody else's goes through, as on a relay's way back.
        device.left.send(&other);
        let forwarded = device
            .right
            .expect(patience(), |frame| frame[14 + 4..14 + 6] == [0, 2]);
        assert!(forwarded.is_some(), "another client's offer is lost");
    }
}

/// As docs/differences.md says, the kernel drops packets that claim to come from its own addresses.
#[test]
fn known_differences() {
    if skipped("known_differences", &["ip", "ethtool"]) {
        return;
    }
    let spoofed = Ip4::udp(ROUTER[0], [48, 1, 2, 3].into(), 7, 100).frame(H0, R0);
    let [mut kernel, mut parshall] =
        [Kind::Kernel, Kind::Veth].map(|kind| Device::new(kind, NORMAL));
    assert_eq!(kernel.run(std::slice::from_ref(&spoofed)).len(), 0);
    assert_eq!(parshall.run(&[spoofed]).len(), 1);
    // No redirects: a packet goes back to where it came from, without a word to its sender.
    for device in [&mut kernel, &mut parshall] {
        let back = Ip4::udp(HOST[0], [16, 1, 2, 3].into(), 8, 100).frame(H0, R0);
        assert_eq!(device.run(&[back]).len(), 1);
    }
    drop((kernel.hosts, parshall.hosts));
}
