//! Packets in, packets out, counters and trace: compared with files that are kept beside the tests.
//!
//! `PARSHALL_GOLDEN=write cargo test -p router golden` writes them anew; look at the difference
//! before you commit it.

use std::path::{Path, PathBuf};

use router::{Change, Route};
use wire::craft::Packet;
use wire::{ip, pcap};

use crate::harness::*;
use crate::ip6_nodes::{self, NEAR, address, between, good};
use crate::{cross_connect, fuzz, sound};

fn directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/router/golden")
}

pub fn writes() -> bool {
    std::env::var_os("PARSHALL_GOLDEN").is_some_and(|v| v == "write")
}

/// Compares with a file, or writes it.
pub fn compare(name: &str, content: &[u8]) {
    let path = directory().join(name);
    if writes() {
        std::fs::create_dir_all(directory()).unwrap();
        std::fs::write(&path, content).unwrap();
        return;
    }
    let want = std::fs::read(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    if name.ends_with(".txt") {
        assert_eq!(
            String::from_utf8_lossy(content),
            String::from_utf8_lossy(&want),
            "{name}"
        );
    } else {
        assert!(content == want, "{name} differs");
    }
}

fn capture(frames: &[Vec<u8>]) -> Vec<u8> {
    let mut file = Vec::new();
    let mut writer = pcap::Writer::new(&mut file, pcap::ETHERNET).unwrap();
    for (i, frame) in frames.iter().enumerate() {
        writer
            .write(i as u64 * 1000, frame.len() as u32, frame)
            .unwrap();
    }
    file
}

/// One packet of each kind that the router treats in its own way.
fn packets() -> Vec<Vec<u8>> {
    let mut broken = udp(FAR).frame();
    broken[24] ^= 1;
    let mut stranger = udp(FAR).frame();
    stranger[5] ^= 1;
    let mut arp = udp(FAR).frame();
    (arp[12], arp[13]) = (8, 6);
    let from = addr(1, 2);
    let to_us = |p: Packet| p.macs(host_mac(1, 2), own_mac(1)).frame();
    vec![
        udp(FAR).frame(),
        to_us(Packet::tcp((from, 40000), (FAR, 80), 2, 7, 0)),
        to_us(Packet::echo_request(from, FAR, 1, 2)),
        udp(FAR).ttl(1).frame(),
        udp(0x4600_0001).frame(),
        udp(0x3c00_0001).frame(),
        udp(0x3d00_0001).frame(),
        udp(FAR).fragment(0x4000).frame_len(1600).frame(),
        udp(FAR).id(9).frame_len(1600).frame(),
        udp(addr(1, 1)).frame(),
        udp(FAR).options(&[1, 1, 1, 0]).frame(),
        udp(0x7f00_0001).frame(),
        broken,
        stranger,
        arp,
        udp(FAR).frame()[..10].to_vec(),
        udp(addr(2, 9)).frame(),
    ]
}

fn lab() -> Lab {
    let mut lab = Lab::with_host();
    lab.apply(vec![
        route("60.0.0.0/8", Route::Blackhole),
        route("61.0.0.0/8", Route::Prohibit),
    ]);
    lab
}

/// Text without its times.
fn timeless(text: &str) -> String {
    let line = |l: &str| match l.split_once(": ") {
        Some((time, rest)) if time.len() == 15 && time.as_bytes()[2] == b':' => {
            format!("00:00:00:000000: {rest}\n")
        }
        _ => format!("{l}\n"),
    };
    text.lines().map(line).collect()
}

/// Lets interface 1 receive the packets of a capture, applies `then`, and compares what comes of
/// it; the files' names begin with `of`. `packets` are what the capture has.
fn replay(of: &str, lab: &mut Lab, packets: &[Vec<u8>], then: Change) {
    let name = |rest: &str| format!("{of}{rest}");
    if writes() {
        compare(&name("in.pcap"), &capture(packets));
    }
    let file = std::fs::read(directory().join(name("in.pcap"))).unwrap();
    let reader = pcap::Reader::new(&file[..]).unwrap();
    let frames: Vec<_> = reader.map(|p| p.unwrap().bytes).collect();
    lab.router.trace_add("eth1-rx", 100).unwrap();
    lab.run();
    lab.receive(1, frames);
    lab.apply(vec![then]);
    for id in 1..=4 {
        let out = name(&format!("out-eth{id}.pcap"));
        compare(&out, &capture(&lab.sent(id)));
    }
    let mut counters = String::new();
    for (node, edge, n) in lab.edges() {
        if n > 0 {
            counters += &format!("{node} {edge} {n}\n");
        }
    }
    compare(&name("counters.txt"), counters.as_bytes());
    let errors = router::show::errors(&lab.router, &[]).to_string();
    compare(&name("errors.txt"), errors.as_bytes());
    let trace = router::show::trace(&lab.router).to_string();
    compare(&name("trace.txt"), timeless(&trace).as_bytes());
    lab.check_buffers(0);
}

#[test]
fn golden() {
    let mut lab = lab();
    replay("", &mut lab, &packets(), neighbor(2, 9));
    let interfaces = router::show::interfaces(&lab.router, None, &[]).unwrap();
    compare("interfaces.txt", interfaces.to_string().as_bytes());
    let graph = router::show::graph(&lab.router).to_string();
    compare("graph.txt", graph.as_bytes());
}

/// As [`packets`], of IPv6.
fn packets6() -> Vec<Vec<u8>> {
    let (near, far) = (address(NEAR), address(ip6_nodes::FAR));
    let to_us = |p: Packet| p.macs(host_mac(1, 2), own_mac(1)).frame();
    let with = |at: usize, byte: u8| {
        let mut frame = good().frame();
        frame[14 + at] = byte;
        frame
    };
    vec![
        good().flow_label(0x12345).tos(0xb8).frame(),
        to_us(Packet::tcp6((near, 40000), (far, 80), 2, 7, 0)),
        to_us(Packet::echo_request6(near, far, 1, 2)),
        good().ttl(1).frame(),
        between(NEAR, "2001:db8:9900::1").frame(),
        between(NEAR, "2001:db8:6000::1").frame(),
        between(NEAR, "2001:db8:6100::1").frame(),
        between(NEAR, "2001:db8:6200::1").frame(),
        good().frame_len(1600).frame(),
        good()
            .extension(ip::DESTINATION_OPTIONS, &[0, 1, 4, 0, 0, 0, 0])
            .frame(),
        good()
            .extension(ip::FRAGMENT, &[0, 5, 1, 0, 0, 0, 9])
            .frame(),
        good()
            .extension(ip::HOP_BY_HOP, &[0, 1, 4, 0, 0, 0, 0])
            .frame(),
        between(NEAR, "2001:db8:1::1").frame(),
        between("fe80::2", "fe80::1").frame(),
        between(NEAR, "ff02::1").frame(),
        between("::1", ip6_nodes::FAR).frame(),
        between(NEAR, "::1").frame(),
        with(0, 0x40),
        with(4, 0xff),
        good().frame()[..53].to_vec(),
        between(NEAR, "2001:db8:2::9").frame(),
    ]
}

#[test]
fn golden_ip6() {
    let mut lab = ip6_nodes::lab().add_host();
    lab.apply(vec![
        route("2001:db8:6000::/40", Route::Blackhole),
        route("2001:db8:6100::/40", Route::Unreachable),
        route("2001:db8:6200::/40", Route::Prohibit),
    ]);
    replay("ip6-", &mut lab, &packets6(), neighbor6(2, "2001:db8:2::9"));
}

/// Packets into tunnels, out of them, and what is wrong with these.
#[test]
fn golden_vxlan() {
    let into = |net: u32| udp(net << 24 | 1).tos(2).frame();
    let mut frames = vec![into(63), into(64), into(65), into(66)];
    frames.push(udp(0x3f00_0001).fragment(0x4000).frame_len(1500).frame());
    frames.extend(fuzz::tunneled());
    let mut short = frames[5].clone();
    short.truncate(45);
    short[17] = 31;
    seal(&mut short);
    let with = |at: usize, byte: u8| {
        let mut frame = fuzz::tunneled()[0].clone();
        frame[at] = byte;
        frame
    };
    frames.extend([short, with(42, 0), with(48, 9), with(41, 1), with(39, 0)]);
    let then = neighbor6(2, sound::WAITING);
    replay("vxlan-", &mut sound::lab(), &frames, then);
}

/// Frames of each kind at cross connects of interface 1 and of its sub-interfaces.
#[test]
fn golden_cross_connect() {
    let mut lab = cross_connect::golden();
    let then = Change::InterfaceDelete(14);
    replay("l2-", &mut lab, &cross_connect::frames(), then);
}
