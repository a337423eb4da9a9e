//! The same packets through the Linux kernel and through the router; what comes out is compared
//! byte for byte.
//!
//! Made equal before: padding of short frames, and the identification and header checksum of
//! packets that the device itself made. Where the router differs knowingly (docs/differences.md),
//! the packets are left out, and that they still differ is shown by [`known_differences`].

mod packets;

use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;
use std::time::{Duration, Instant};

use crate::harness::{
    Hosts, Raw, Router,
    craft::{ICMP, Ip4, Mac, checksum},
    lacks_multi_buffer, patience,
    random::Random,
    router::{forwards, is_to},
    skipped,
    topology::{CONFIGURATION, H0, H1, HOST, R0, ROUTER, text},
    until,
};

/// Packets in all, and how many are under way at a time.
const PACKETS: usize = 4000;
const BATCH: usize = 40;

/// MTU on the left, twice, and on the right.
const NORMAL: u16 = 1500;
const JUMBO: u16 = 9000;
const NARROW: u16 = 1400;

/// Further addresses on the left: one of the same network as the first, one of another with a
/// neighbor in it.
const SECONDARY: Ipv4Addr = Ipv4Addr::new(198, 18, 0, 77);
const OTHER: Ipv4Addr = Ipv4Addr::new(198, 18, 10, 1);
const NEAR_OTHER: Ipv4Addr = Ipv4Addr::new(198, 18, 10, 2);
/// All that the device may send from.
const OWN: [Ipv4Addr; 4] = [ROUTER[0], ROUTER[1], SECONDARY, OTHER];

/// The router may send a thousand ICMP errors a second; a batch has no more than this time is
/// worth.
const PACE: Duration = Duration::from_millis(40);

/// Where a packet came out, and what it was, with everything that may differ made equal.
type Output = (&'static str, Vec<u8>);
type Outputs = BTreeMap<Output, usize>;

/// What forwards.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Kernel,
    /// The router on veth, by AF_XDP: the netdev itself is the host's.
    Veth,
    /// The router on ports without a netdev: a tap is the host's.
    Tap,
}

/// A device with a socket on each side.
struct Device {
    hosts: Hosts,
    left: Raw,
    right: Raw,
    router: Option<Router>,
    markers: u16,
}

impl Device {
    /// A new one with an MTU of `mtu` on the left and [`NARROW`] on the right.
    fn new(kind: Kind, mtu: u16) -> Self {
        let (hosts, router) = if kind == Kind::Tap {
            let (hosts, router) = Hosts::on_taps([mtu, NARROW]);
            (hosts, Some(router))
        } else {
            let hosts = Hosts::new(mtu, false);
            let narrow = format!("link set r1 mtu {NARROW}");
            hosts.router.ip(&narrow).unwrap();
            (hosts, None)
        };
        let h1 = HOST[1];
        hosts
            .router
            .ip_batch(&format!(
                "route add blackhole 60.0.0.0/8\nroute add unreachable 61.0.0.0/8\nroute add prohibit 62.0.0.0/8\n\
                 route add 49.0.0.0/8 via {h1} dev r1 mtu 1300\n\
                 route add 50.0.0.1/32 nexthop dev r1 nexthop dev r1 weight 2\n\
                 route add 51.0.0.1/32 mtu 1200 dev r1\n\
                 neigh replace 50.0.0.1 lladdr {mac} dev r1 nud permanent\n\
                 neigh replace 51.0.0.1 lladdr {mac} dev r1 nud permanent\n\
                 address add {SECONDARY}/24 dev r0\naddress add {OTHER}/24 dev r0\n\
                 neigh replace {NEAR_OTHER} lladdr {left} dev r0 nud permanent\n\
                 route add 17.0.0.0/8 via {NEAR_OTHER} dev r0\nroute add 18.0.0.0/8 via {h0} dev r0 src {SECONDARY}\n",
                mac = text(H1),
                left = text(H0),
                h0 = HOST[0]
            ))
            .unwrap();
        // Packets with options are the kernel's also where the router forwards.
        hosts.router.set_forwarding(true).unwrap();
        let router = router
            .or_else(|| (kind == Kind::Veth).then(|| Router::start(&hosts.router, CONFIGURATION)));
        let (left, right) = hosts.raw();
        assert!(forwards(&left, &right), "it does not forward");
        Self {
            hosts,
            left,
            right,
            router,
            markers: 0,
        }
    }

    /// Sends a batch from the left and returns what comes out.
    fn run(&mut self, frames: &[Vec<u8>]) -> Outputs {
        for frame in frames {
            self.left.send(frame);
        }
        let mut outputs = Outputs::new();
        self.mark(&mut outputs);
        outputs
    }

    /// Collects what comes out until it has all come: behind it go a packet to the right and then
    /// one that brings an ICMP error back, each until it is seen.
    fn mark(&mut self, outputs: &mut Outputs) {
        self.markers += 1;
        let src = Ipv4Addr::from(0x10ff_0000 | u32::from(self.markers));
        let through = Ip4::udp(src, [48, 255, 255, 255].into(), 0, 8);
        let back = Ip4 {
            ttl: 1,
            ..through.clone()
        };
        let seen = |frame: &[u8]| is_to(frame, through.dst) && frame[26..30] == src.octets();
        let answered = |frame: &[u8]| is_to(frame, src) && frame[23] == ICMP;
        collect(&self.left, "right", &self.right, &through, seen, outputs);
        collect(&self.left, "left", &self.left, &back, answered, outputs);
        for (side, socket) in [("left", &self.left), ("right", &self.right)] {
            for frame in socket.drain(Duration::from_millis(1)) {
                if !seen(&frame) && !answered(&frame) {
                    count(side, frame, outputs);
                }
            }
        }
    }

    /// How often the router's error of this reason was counted.
    fn errors(&self, reason: &str) -> u64 {
        let Some(router) = &self.router else { return 0 };
        let shown = router.show(&["errors"]);
        let rows = shown["errors"].as_array().expect("a list");
        rows.iter()
            .filter(|row| row["reason"].as_str().is_some_and(|r| r.contains(reason)))
            .filter_map(|row| row["count"].as_u64())
            .sum()
    }

    /// Packets that the router itself has sent by an interface.
    fn sent_by(&self, interface: &str) -> u64 {
        let Some(router) = &self.router else { return 0 };
        let shown = router.show(&["interface", interface]);
        shown["interfaces"][0]["tx_packets"]
            .as_u64()
            .expect("a number")
    }
}

/// Sends `packet` from `left` until `wanted` comes out at `at`; what comes out before is counted.
fn collect(
    left: &Raw,
    side: &'static str,
    at: &Raw,
    packet: &Ip4,
    wanted: impl Fn(&[u8]) -> bool,
    outputs: &mut Outputs,
) {
    let end = Instant::now() + patience();
    while Instant::now() < end {
        left.send(&packet.frame(H0, R0));
        while let Some(frame) = at.receive(Duration::from_millis(500)) {
            if wanted(&frame) {
                return;
            }
            count(side, frame, outputs);
            assert!(
                Instant::now() < end,
                "what comes out on the {side} has no end"
            );
        }
    }
    panic!("nothing comes out on the {side} any more");
}

/// Counts an IPv4 packet, made equal.
fn count(side: &'static str, mut frame: Vec<u8>, outputs: &mut Outputs) {
    if frame[12..14] != [8, 0] || frame.len() < 34 {
        return;
    }
    let total = usize::from(u16::from_be_bytes([frame[16], frame[17]]));
    frame.truncate(14 + total);
    let src: [u8; 4] = frame[26..30].try_into().unwrap();
    if OWN.iter().any(|own| own.octets() == src) {
        let header = usize::from(frame[14] & 15) * 4;
        assert_eq!(
            checksum(&frame[14..14 + header]),
            0,
            "header checksum of {frame:02x?}"
        );
        frame[18..20].fill(0);
        frame[24..26].fill(0);
    }
    *outputs.entry((side, frame)).or_default() += 1;
}

/// The ICMP error that an output is, as type and code.
fn error_kind((_, frame): &Output) -> Option<(u8, u8)> {
    let icmp = 14 + usize::from(frame[14] & 15) * 4;
    let kind = frame.get(icmp..icmp + 2)?;
    (frame[23] == ICMP && [3, 11, 12].contains(&kind[0])).then_some((kind[0], kind[1]))
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
        &frame[..frame.len().min(70)]
    )
}

/// The MTUs that senders were told of.
fn mtus(outputs: &Outputs) -> impl Iterator<Item = u16> {
    let needed = outputs.keys().filter(|o| error_kind(o) == Some((3, 4)));
    needed.map(|(_, frame)| u16::from_be_bytes([frame[40], frame[41]]))
}

/// Compares router and kernel; returns the kinds of ICMP errors seen.
fn compare(name: &str, kind: Kind, mtu: u16) -> BTreeSet<(u8, u8)> {
    let mut random = Random::new(name);
    let (mut kernel, mut parshall) = (Device::new(Kind::Kernel, mtu), Device::new(kind, mtu));
    let (mut errors, mut wrong, mut through) = (BTreeSet::new(), Vec::new(), 0);
    let (mut mtus_seen, mut senders) = (BTreeSet::new(), BTreeSet::new());
    let before = parshall.sent_by("r1");
    for batch in 0..PACKETS / BATCH {
        let due = Instant::now() + PACE;
        let frames: Vec<Vec<u8>> = (0..BATCH)
            .map(|i| packets::frame(&mut random, (batch * BATCH + i + 1) as u16, mtu))
            .collect();
        let (expected, got) = (kernel.run(&frames), parshall.run(&frames));
        errors.extend(expected.keys().filter_map(error_kind));
        mtus_seen.extend(mtus(&expected));
        let errors = expected
            .keys()
            .filter(|output| error_kind(output).is_some());
        senders.extend(errors.filter_map(|(_, frame)| frame[26..].first_chunk::<4>().copied()));
        through += expected
            .iter()
            .filter(|((side, _), _)| *side == "right")
            .map(|(_, n)| *n as u64)
            .sum::<u64>();
        let found = unlike(["kernel", "parshall"], [&expected, &got]);
        if !found.is_empty() {
            wrong.push(format!("batch {batch}:\n{}", found.join("\n")));
        }
        assert!(wrong.len() < 5, "only one of them, {}", wrong.join("\n"));
        std::thread::sleep(due.saturating_duration_since(Instant::now()));
    }
    assert!(wrong.is_empty(), "only one of them, {}", wrong.join("\n"));
    assert_eq!(parshall.errors("rate limit"), 0, "errors were held back");
    assert_eq!(mtus_seen, BTreeSet::from([1200, 1300, NARROW]));
    let sends = |own: &Ipv4Addr| senders.contains(&own.octets());
    assert!(OWN.iter().all(sends), "errors from {senders:?}");
    // Or the kernel had done it all, and the comparison were one with itself.
    let forwarded = parshall.sent_by("r1") - before;
    assert!(
        forwarded * 10 > through * 8,
        "{forwarded} of {through} packets forwarded by the router"
    );
    errors
}

/// Kinds of ICMP errors that must have been seen: network, host, port unreachable, fragmentation
/// needed, prohibited, time exceeded, wrong options.
const ERRORS: [(u8, u8); 7] = [(3, 0), (3, 1), (3, 3), (3, 4), (3, 13), (11, 0), (12, 0)];

#[test]
fn kernel_and_router_do_the_same() {
    if skipped("kernel_and_router_do_the_same", &["ip", "ethtool"]) {
        return;
    }
    let errors = compare("kernel_and_router_do_the_same", Kind::Veth, NORMAL);
    let missing: Vec<_> = ERRORS.iter().filter(|e| !errors.contains(e)).collect();
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
    compare("kernel_and_router_with_taps_do_the_same", Kind::Tap, NORMAL);
}

/// Packets that come in several buffers.
#[test]
fn kernel_and_router_do_the_same_to_jumbo_packets() {
    let name = "kernel_and_router_do_the_same_to_jumbo_packets";
    if !skipped(name, &["ip", "ethtool"]) && !lacks_multi_buffer(name) {
        compare(name, Kind::Veth, JUMBO);
    }
}

/// A neighbor that does not answer: both ask for it, and tell the sender after a while.
#[test]
fn sender_is_told_of_a_silent_neighbor() {
    if skipped("sender_is_told_of_a_silent_neighbor", &["ip", "ethtool"]) {
        return;
    }
    let dst = Ipv4Addr::new(198, 18, 1, 77);
    let packet = Ip4::udp([16, 0, 0, 1].into(), dst, 7, 100);
    let told = [Kind::Kernel, Kind::Veth].map(|kind| {
        let device = Device::new(kind, NORMAL);
        device.left.send(&packet.frame(H0, R0));
        let asked = device.right.expect(patience(), |frame| {
            frame[12..14] == [8, 6] && frame[38..42] == dst.octets()
        });
        assert!(asked.is_some(), "nobody asked for the neighbor");
        let frame = device
            .left
            .expect(patience(), |frame| is_to(frame, packet.src))
            .expect("the sender is told");
        let mut outputs = Outputs::new();
        count("left", frame, &mut outputs);
        let (output, _) = outputs.pop_first().expect("it is there");
        assert_eq!(error_kind(&output), Some((3, 1)));
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
    assert_eq!(same(&told[0]), same(&told[1]));
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

/// What docs/differences.md says: the kernel drops packets that claim to come from its own
/// addresses.
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
    // No redirects: a packet goes back to where it came from, and nothing is said.
    for device in [&mut kernel, &mut parshall] {
        let back = Ip4::udp(HOST[0], [16, 1, 2, 3].into(), 8, 100).frame(H0, R0);
        assert_eq!(device.run(&[back]).len(), 1);
    }
    drop((kernel.hosts, parshall.hosts));
}
