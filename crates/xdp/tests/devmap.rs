//! Packets that the router's program really sends by the map of devices: from a host through two
//! virtual links to another one, and what becomes of them when the device to send by goes down,
//! moves, is deleted, or can send no more.

mod net;
mod shared;
mod wire;

use std::net::Ipv4Addr;
use std::thread;
use std::time::Duration;

use tables::adjacency::{Adjacency, Slab};
use tables::entry::Entry;
use tables::interface::{self, Interface, Interfaces, Lane};
use tables::ip4::Fib;
use tables::nexthop::{Groups, Member};
use testbed::veth::{self, End};
use testbed::{Alone, Netns, alone, patience, until};
use xdp::{DROPS, Device, DeviceCounters, Error, Features, Mode, Receiver, RouterPort};

use net::{index, root, sum, udp};
use shared::Tables;
use wire::{Flood, Wire};

/// Interfaces: where packets come in, and where they go out.
const IN: u16 = 3;
const OUT: u16 = 5;
const IN_MAC: [u8; 6] = [2, 0, 0, 0, 1, 2];
/// The other host, and somebody else on its link.
const FAR_MAC: [u8; 6] = [2, 0, 0, 0, 2, 2];
const OTHER_MAC: [u8; 6] = [2, 0, 0, 0, 2, 3];
/// Behind the one and behind the other.
const FAR: [u8; 4] = [10, 1, 0, 1];
const OTHER: [u8; 4] = [10, 2, 0, 1];
const SRC: [u8; 4] = [192, 0, 2, 1];
/// Packets sent at once: fewer than a virtual link holds (256).
const WINDOW: usize = 200;
/// Far longer than a packet needs.
const LIMIT: Duration = Duration::from_secs(10);

/// Two hosts and a router between them: `a0` - `in`, `out` - `b0`.
struct Line {
    program: Option<RouterPort>,
    /// On `b0`, which can be sent to while it has a program; it gives all to its kernel.
    end: Option<Receiver>,
    tables: Tables,
    /// The device to send by, and what it said that it can do.
    out: Device,
    can: Option<Features>,
    sender: Wire,
    listener: Wire,
    host: Netns,
    router: Netns,
    far: Netns,
    mtu: u16,
    _alone: Alone,
}

impl Line {
    fn new(test: &str, mtu: u16, mode: Mode) -> Option<Self> {
        if !root(test) {
            return None;
        }
        let alone = alone();
        let netns = |label| Netns::create(label).expect("root makes it");
        let (host, router, far) = (netns("host"), netns("router"), netns("far"));
        let a = end(&host, "a0", "02:00:00:00:01:01");
        let r#in = end(&router, "in", "02:00:00:00:01:02");
        veth::pair(a, r#in, mtu).expect("root makes it");
        let tables = Tables::take();
        let program = router.inside(|| tables.attach(index("in"), IN, &[mode]));
        let (end, out, can) = connect(&router, &far, &tables, mtu);
        let line = Self {
            program: Some(program.expect("attaches")),
            end: Some(end),
            tables,
            out,
            can,
            sender: host.inside(|| Wire::sending(index("a0"))),
            listener: far.inside(|| Wire::listening(patience(LIMIT))),
            host,
            router,
            far,
            mtu,
            _alone: alone,
        };
        line.lanes(false);
        line.routes();
        Some(line)
    }

    fn lanes(&self, send_long: bool) {
        let memory = self.tables.memory().clone();
        let mut interfaces = Interfaces::new(memory.interfaces, memory.outer_tags);
        let up = |mac, forward| Interface {
            mac,
            mode: interface::Mode::Routed,
            lane: Lane {
                forward,
                send: !forward,
                send_long: !forward && send_long,
            },
            ..Interface::default()
        };
        interfaces.set(IN, &up(IN_MAC, true));
        interfaces.set(OUT, &up([2, 0, 0, 0, 2, 1], false));
    }

    fn routes(&self) {
        let memory = self.tables.memory().clone();
        let mut fib = Fib::new(memory.ip4_first, memory.ip4_second);
        let mut groups = Groups::new(memory.nexthop_groups);
        let mut slab = Slab::new(memory.adjacencies);
        for (prefix, mac) in [("10.1.0.0/16", FAR_MAC), ("10.2.0.0/16", OTHER_MAC)] {
            let adjacency =
                Adjacency::rewrite(OUT, self.mtu, &header(mac), Ipv4Addr::LOCALHOST.into());
            let member = Member {
                adjacency: slab.alloc(&adjacency).expect("room"),
                weight: 1,
            };
            let group = groups.alloc(&[member]).expect("room");
            let prefix = prefix.parse().expect("a prefix");
            fib.insert(prefix, Entry::new(group, false)).expect("room");
        }
    }

    /// Sends the packets, a few at a time, and takes them at the other end: all of them, each once,
    /// as they should be, and nothing else.
    fn cross(&self, packets: &[Vec<u8>], at_once: usize) {
        for packets in packets.chunks(at_once) {
            for packet in packets {
                assert!(self.sender.send(packet), "there is room");
            }
            let mut expected: Vec<_> = packets.iter().map(|packet| routed(packet)).collect();
            let next = || self.listener.next(&FAR_MAC);
            let mut arrived: Vec<_> = packets.iter().map_while(|_| next()).collect();
            expected.sort();
            arrived.sort();
            let bytes = |packets: &[Vec<u8>]| packets.iter().map(Vec::len).collect::<Vec<_>>();
            let (sent, got) = (bytes(&expected), bytes(&arrived));
            assert!(arrived == expected, "of {sent:?} bytes: {got:?}");
        }
    }

    /// Counters of the drivers: of the way in, and of the way out.
    fn devices(&self) -> [DeviceCounters; 2] {
        self.router.inside(|| {
            ["in", "out"].map(|name| xdp::device_counters(index(name)).unwrap_or_default())
        })
    }

    /// Packets that the program found no device for.
    fn gone(&self) -> u64 {
        let at = DROPS.iter().position(|(_, reason)| *reason == "Gone");
        self.tables.counted(IN).drops[at.expect("a reason")]
    }

    /// Sends packets, and waits until the program has had them all.
    fn send(&self, packets: &[Vec<u8>]) {
        let had = || self.tables.counted(IN).rx_packets;
        let end = had() + packets.len() as u64;
        for packet in packets {
            assert!(self.sender.send(packet), "there is room");
        }
        assert!(until(patience(LIMIT), || had() == end), "{} {end}", had());
    }

    /// Makes trouble.
    fn make(&mut self, trouble: Trouble) {
        let router = |command| self.router.ip(command).map(drop);
        let done = match trouble {
            Trouble::ShortEnd => self.far.ip("link set b0 mtu 500").map(drop),
            Trouble::Down => router("link set out down"),
            Trouble::NoProgram => {
                self.end = None;
                Ok(())
            }
            Trouble::Moved => router(&format!("link set out netns {}", self.host.name())),
            Trouble::Deleted => {
                // The other end goes with it, and its program.
                router("link del out")
            }
        };
        done.expect("ip does it");
    }

    /// Mends it.
    fn mend(&mut self, trouble: Trouble) {
        let mtu = format!("link set b0 mtu {}", self.mtu);
        let back = format!("link set out netns {}", self.router.name());
        let done = match trouble {
            Trouble::ShortEnd => self.far.ip(&mtu).map(drop),
            Trouble::Down => self.router.ip("link set out up").map(drop),
            Trouble::NoProgram => {
                self.end = Some(program_of(&self.far));
                Ok(())
            }
            Trouble::Moved => {
                self.host.ip(&back).expect("ip does it");
                self.router.ip("link set out up").map(drop)
            }
            Trouble::Deleted => {
                self.end = None;
                let (router, far) = (&self.router, &self.far);
                let (end, out, can) = connect(router, far, &self.tables, self.mtu);
                (self.end, self.out, self.can) = (Some(end), out, can);
                Ok(())
            }
        };
        done.expect("ip does it");
        if !self.tables.has_egress(OUT).expect("asks") {
            let set = || self.tables.set_egress(OUT, &self.out);
            self.router.inside(set).expect("is as it was");
        }
    }
}

/// Events that befall a device to send by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Trouble {
    /// Its other end takes only shorter packets.
    ShortEnd,
    Down,
    /// Its other end has lost its program: it cannot take what is redirected.
    NoProgram,
    /// To another namespace.
    Moved,
    Deleted,
}

impl Trouble {
    const ALL: [Self; 5] = [
        Self::ShortEnd,
        Self::Down,
        Self::NoProgram,
        Self::Moved,
        Self::Deleted,
    ];
}

fn end<'a>(netns: &'a Netns, name: &'a str, mac: &'a str) -> End<'a> {
    let address = None;
    End {
        netns,
        name,
        mac,
        address,
    }
}

/// Makes `out` and `b0`, and `out` the device to send by.
fn connect(
    router: &Netns,
    far: &Netns,
    tables: &Tables,
    mtu: u16,
) -> (Receiver, Device, Option<Features>) {
    let out = end(router, "out", "02:00:00:00:02:01");
    veth::pair(out, end(far, "b0", "02:00:00:00:02:02"), mtu).expect("root makes it");
    let program = program_of(far);
    let (out, can) = router.inside(|| {
        let out = Device::here(index("out")).expect("is there");
        (out, tables.set_egress(OUT, &out).expect("is sent by"))
    });
    (program, out, can)
}

fn program_of(far: &Netns) -> Receiver {
    far.inside(|| Receiver::attach(index("b0"), &[Mode::Native]).expect("attaches"))
}

fn header(to: [u8; 6]) -> [u8; 14] {
    let mut header = [2, 0, 0, 0, 0, 0, 2, 0, 0, 0, 2, 1, 8, 0];
    header[..6].copy_from_slice(&to);
    header
}

/// Packets of `len` bytes, each of its own contents.
fn packets(to: [u8; 4], count: u16, len: usize) -> Vec<Vec<u8>> {
    let packet = |id: u16| {
        let mut packet = udp(IN_MAC, SRC, to, len);
        packet[18..20].copy_from_slice(&id.to_be_bytes());
        for (at, byte) in packet.iter_mut().enumerate().skip(42) {
            *byte =
                (at as u16).wrapping_mul(31).wrapping_add(id).to_be_bytes()[1] ^ (at >> 8) as u8;
        }
        finish(packet)
    };
    (0..count).map(packet).collect()
}

/// The packet with the right checksum of its header.
fn finish(mut packet: Vec<u8>) -> Vec<u8> {
    packet[24..26].fill(0);
    let checksum = !sum(&packet[14..34]);
    packet[24..26].copy_from_slice(&checksum.to_be_bytes());
    packet
}

/// The packet as the far host is to get it.
fn routed(packet: &[u8]) -> Vec<u8> {
    let mut packet = packet.to_vec();
    packet[..14].copy_from_slice(&header(FAR_MAC));
    packet[22] -= 1;
    finish(packet)
}

/// One by one, and as many as the program takes in one go, which leave together.
#[test]
fn packets_cross_by_the_program_alone() {
    let test = "packets_cross_by_the_program_alone";
    let Some(line) = Line::new(test, 1500, Mode::Native) else {
        return;
    };
    let [_, before] = line.devices();
    let mut bytes = 0;
    for len in [42, 60, 61, 590, 1500, 1514] {
        let packets = packets(FAR, 10, len);
        line.cross(&packets, 1);
        bytes += 10 * len as u64;
    }
    // A thread of its own lets packets wait until there are several.
    veth::thread_on(&line.router, "in", 0).expect("the kernel has such threads");
    for len in [60, 1514] {
        line.cross(&packets(FAR, 5_000, len), WINDOW);
        bytes += 5_000 * len as u64;
    }
    let (received, sent) = (line.tables.counted(IN), line.tables.counted(OUT));
    assert_eq!((received.rx_packets, received.rx_bytes), (10_060, bytes));
    assert_eq!((sent.tx_packets, sent.tx_bytes), (10_060, bytes));
    assert_eq!(received.drops, [0; DROPS.len()]);
    assert_eq!((received.passed, received.redirected), (0, 0));
    let [_, after] = line.devices();
    assert_eq!(after.tx_packets - before.tx_packets, 10_060);
    assert_eq!(after.tx_dropped, before.tx_dropped);
}

/// The program runs in the stack: devices need not know anything of redirected frames.
#[test]
fn packets_cross_in_generic_mode() {
    let test = "packets_cross_in_generic_mode";
    let Some(line) = Line::new(test, 1500, Mode::Generic) else {
        return;
    };
    for len in [60, 1514] {
        line.cross(&packets(FAR, 1_000, len), WINDOW);
    }
    assert_eq!(line.tables.counted(OUT).tx_packets, 2_000);
}

/// Frames of several buffers cross where the kernel says that the device takes them. Where they are
/// sent nevertheless, they are lost.
#[test]
fn long_packets_cross_in_several_buffers() {
    let test = "long_packets_cross_in_several_buffers";
    let Some(line) = Line::new(test, 9000, Mode::Native) else {
        return;
    };
    let long = |count| [4_096, 5_000, 8_192, 9_014].map(|len| packets(FAR, count, len));
    let short = packets(FAR, 100, 1_514);
    line.cross(&short, WINDOW);
    // They are not the program's to send: the graph's, and there is none here, so the kernel's.
    for packets in long(1) {
        line.cross(&short[..1], 1);
        for packet in &packets {
            assert!(line.sender.send(packet));
        }
    }
    let kernel = || line.tables.counted(IN).passed;
    assert!(until(patience(LIMIT), || kernel() == 4), "{}", kernel());
    line.lanes(true);
    if line.can.is_some_and(Features::transmit_long) {
        for packets in long(100) {
            line.cross(&packets[..5], 1);
            line.cross(&packets[5..], 40);
        }
        veth::thread_on(&line.router, "in", 0).expect("the kernel has such threads");
        line.cross(&packets(FAR, 1_000, 9_014), 40);
    } else {
        let [before, _] = line.devices();
        let lost = packets(FAR, 20, 9_014);
        line.send(&lost);
        let [after, _] = line.devices();
        assert_eq!(after.rx_dropped - before.rx_dropped, 20);
    }
    line.cross(&short, WINDOW);
}

/// Nothing is lost without a trace but what this says: it works again as soon as the trouble is
/// over, and until then every packet is counted, by the program or by the device that lost it.
#[test]
fn what_is_lost_behind_the_program_is_counted_by_the_devices() {
    let test = "what_is_lost_behind_the_program_is_counted_by_the_devices";
    let Some(mut line) = Line::new(test, 1500, Mode::Native) else {
        return;
    };
    for trouble in Trouble::ALL {
        line.cross(&packets(FAR, 20, 1_000), 1);
        line.make(trouble);
        let (sent, gone) = (line.tables.counted(OUT).tx_packets, line.gone());
        let before = line.devices();
        // None of them comes late: what crosses next is compared with what was sent next.
        line.send(&packets(FAR, 10, 1_000));
        let after = line.devices();
        let lost = [
            line.gone() - gone,
            after[0].rx_dropped - before[0].rx_dropped,
            after[1].tx_dropped - before[1].tx_dropped,
        ];
        let expected = match trouble {
            Trouble::ShortEnd => [0, 0, 10],
            Trouble::Down => [0, 10, 0],
            // Where the kernel knows what a device can do, the frames do not even come to it.
            Trouble::NoProgram if line.can.is_some() => [0, 10, 0],
            Trouble::NoProgram => [0, 0, 10],
            Trouble::Moved | Trouble::Deleted => [10, 0, 0],
        };
        assert_eq!(lost, expected, "{trouble:?}");
        let sent = line.tables.counted(OUT).tx_packets - sent;
        assert_eq!(sent, 10 - expected[0], "{trouble:?}");
        let set = || line.tables.set_egress(OUT, &line.out);
        match (trouble, line.router.inside(set)) {
            (Trouble::ShortEnd | Trouble::Down, Ok(can)) => assert_eq!(can, line.can),
            (Trouble::NoProgram, Err(Error::NoTransmit { interface })) => {
                assert_eq!(interface, "out");
            }
            (Trouble::NoProgram, Ok(None)) => {}
            (Trouble::Moved | Trouble::Deleted, Err(Error::NoInterface(_))) => {}
            (trouble, got) => panic!("{trouble:?}: {got:?}"),
        }
        line.mend(trouble);
    }
    line.cross(&packets(FAR, 100, 1_000), WINDOW);
}

/// The same while packets are on their way without a break: the kernel lives, the program's counts
/// add up, and what is sent after it crosses.
#[test]
fn trouble_under_traffic_is_survived() {
    let test = "trouble_under_traffic_is_survived";
    let Some(mut line) = Line::new(test, 1500, Mode::Native) else {
        return;
    };
    veth::thread_on(&line.router, "in", 0).expect("the kernel has such threads");
    let refused = |line: &Line| {
        let a = line.host.inside(|| xdp::device_counters(index("a0")));
        a.expect("is there").tx_dropped
    };
    let flood = Flood::new(line.host.inside(|| Wire::sending(index("a0"))));
    let packet = &packets(OTHER, 1, 1_000)[0];
    let mut crossed = 0;
    for trouble in Trouble::ALL.repeat(3) {
        thread::scope(|scope| {
            let _over = flood.start(scope, packet);
            flood.goes_on(1_000);
            line.make(trouble);
            flood.goes_on(1_000);
            line.mend(trouble);
            flood.goes_on(500);
        });
        let had = || line.tables.counted(IN).rx_packets + refused(&line);
        let sent = flood.sent() + crossed;
        assert!(
            until(patience(LIMIT), || had() == sent),
            "{trouble:?}: {} of {sent}",
            had()
        );
        let (received, sent) = (line.tables.counted(IN), line.tables.counted(OUT));
        assert_eq!(received.rx_packets, sent.tx_packets + line.gone());
        line.cross(&packets(FAR, 200, 1_000), WINDOW);
        crossed += 200;
    }
    assert!(line.gone() > 0, "some were sent while there was no device");
    // The program goes first, then what it sends by.
    drop(line.program.take());
}
