//! Packets and times of compiled profiles: computed by hand, and read back by another parser.

use std::path::Path;
use std::time::Duration;

use loadgen::clock::Nanos;
use loadgen::dry::Dry;
use loadgen::model::load::Load;
use loadgen::model::profile::{self, Tunables, Way};
use loadgen::model::rate::Rate;
use loadgen::model::stream::{Mode, Stream};
use loadgen::model::units::{Bits, Pps};
use testbed::{Directory, PYTHON, Spawn, has_scapy};
use wire::pcap::{ETHERNET, Writer};

const PROFILES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/profiles");

fn streams(name: &str) -> Vec<(Stream, Pps)> {
    let file = format!("{PROFILES}/{name}.json");
    let streams = profile::open(&file, Way::Out, &Tunables::default()).unwrap();
    let rated = streams.into_iter().map(|mut stream| {
        stream.address([2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2]);
        let rate = stream.rate.pps(stream.size(), Some(Bits(1e10))).unwrap();
        (stream, rate)
    });
    rated.collect()
}

/// The first packets at `multiplier`: time in nanoseconds, stream, bytes.
fn packets(name: &str, multiplier: f64, count: usize) -> Vec<(u64, usize, Vec<u8>)> {
    packets_of(&streams(name), multiplier, count)
}

fn packets_of(
    streams: &[(Stream, Pps)],
    multiplier: f64,
    count: usize,
) -> Vec<(u64, usize, Vec<u8>)> {
    let base = Load::of(streams).unwrap().base;
    let mut dry = Dry::new(streams, Pps(base.0 * multiplier));
    let next = std::iter::from_fn(|| {
        let (at, stream, frame) = dry.next(Nanos(u64::MAX))?;
        Some((at.0, stream, frame.to_vec()))
    });
    next.take(count).collect()
}

fn times(name: &str, multiplier: f64, count: usize) -> Vec<(u64, usize)> {
    let packets = packets(name, multiplier, count);
    packets.iter().map(|(at, s, _)| (at / 1000, *s)).collect()
}

#[test]
fn a_chain_of_bursts_goes_round_twice() {
    let round = [
        (10, 0),
        (10, 1),
        (100_010, 1),
        (100_010, 2),
        (200_010, 2),
        (300_010, 2),
    ];
    // The first packet of the second round: the last one of the first, and the gap of 10 us.
    let second = round.map(|(at, s)| (at + 300_010, s));
    let all = [round, second].concat();
    assert_eq!(times("burst_3st_loop_x_times", 1.0, 99), all);
}

/// Bursts get shorter at a higher rate; gaps between streams do not.
#[test]
fn a_multiplier_leaves_gaps_between_streams() {
    let all = times("burst_3st_loop_x_times", 10.0, 99);
    let round = [
        (10, 0),
        (10, 1),
        (10_010, 1),
        (10_010, 2),
        (20_010, 2),
        (30_010, 2),
    ];
    assert_eq!(all[..6], round);
    assert_eq!(all[6], (30_020, 0));
}

/// Packet k of a stream is due at its gap plus k / pps.
#[test]
fn rates_mix() {
    let mut all = Vec::new();
    for (stream, pps, isg) in [(0, 28.0, 0.0), (1, 16.0, 100.0), (2, 4.0, 200.0)] {
        all.extend((0..48).map(|k| ((isg + f64::from(k) * 1e9 / pps).round() as u64, stream)));
    }
    all.sort_unstable();
    let sent = packets("imix", 1.0, 48);
    let sent: Vec<_> = sent.iter().map(|(at, s, _)| (*at, *s)).collect();
    assert_eq!(sent, all[..48]);
}

#[test]
fn addresses_count_up() {
    for (n, (at, _, frame)) in packets("bench@size-64,vm-var2", 1.0, 600)
        .iter()
        .enumerate()
    {
        let last = 4 + (n % 251) as u8;
        assert_eq!(*at, n as u64 * 1_000_000_000);
        assert_eq!(frame.len(), 60);
        assert_eq!(frame[..14], [2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0]);
        assert_eq!(frame[26..34], [16, 0, 0, last, 48, 0, 0, last]);
        assert_eq!(wire::checksum::of(&frame[14..34]), 0);
    }
}

#[test]
fn lengths_count_up() {
    let packets = packets("udp_inc_len_9k", 1.0, 9200);
    for (n, (_, _, frame)) in packets.iter().enumerate() {
        let len = 64 + n % (9230 - 64 + 1);
        assert_eq!(frame.len(), len);
        assert_eq!(frame[16..18], ((len - 14) as u16).to_be_bytes());
        assert_eq!(frame[38..40], ((len - 34) as u16).to_be_bytes());
        assert_eq!(wire::checksum::of(&frame[14..34]), 0);
    }
}

/// 5 added, the lowest 8 bits kept, into byte 10: 5 to 15, and again.
#[test]
fn a_mask_leaves_the_rest() {
    for (n, (_, _, frame)) in packets("udp_1pkt_mac_mask5", 1.0, 30).iter().enumerate() {
        assert_eq!(frame[6..12], [2, 0, 0, 0, 5 + (n % 11) as u8, 1]);
    }
}

/// Two addresses, then the next port; all again after 10,000 flows or when the ports are over.
#[test]
fn tuples() {
    for (n, (_, _, frame)) in packets("udp_1pkt_tuple_gen", 1.0, 5000).iter().enumerate() {
        assert_eq!(frame[26..30], [16, 0, 0, 1 + (n % 2) as u8]);
        let port = 1025 + (n / 2 % 1024) as u16;
        assert_eq!(frame[34..36], port.to_be_bytes());
    }
}

#[test]
fn latency_packets_say_when_and_which() {
    for (n, (at, _, frame)) in packets("flow_stats_latency", 1.0, 9).iter().enumerate() {
        assert_eq!(*at, n as u64 * 1_000_000);
        assert_eq!(frame[18..20], [0xff, 0xff]);
        assert_eq!(wire::checksum::of(&frame[14..34]), 0);
        let sequence = (u32::MAX - 1).wrapping_add(n as u32).to_le_bytes();
        let trailer = [&[0xab, 1, 0, 0], &sequence[..], &at.to_le_bytes()].concat();
        assert_eq!(frame[44..], trailer);
    }
}

/// Reads capture files and prints times in microseconds and frames, a packet a line; checks that
/// the headers' checksums are what it would compute itself.
const SCAPY: &str = "
import sys
from scapy.all import IP, rdpcap
for packet in (packet for file in sys.argv[1:] for packet in rdpcap(file)):
    header = packet[IP]
    copy = header.copy()
    del copy.chksum
    assert IP(bytes(copy)).chksum == header.chksum, packet
    print(int(packet.time * 1000000), bytes(packet).hex())
";

#[test]
fn another_parser_reads_the_same() {
    if !has_scapy("another_parser_reads_the_same") {
        return;
    }
    let directory = Directory::new();
    let mut names: Vec<String> = std::fs::read_dir(PROFILES)
        .unwrap()
        .map(|entry| {
            Path::new(&entry.unwrap().file_name())
                .file_stem()
                .unwrap()
                .to_string_lossy()
                .into()
        })
        .collect();
    names.sort();
    assert!(names.len() > 20, "{names:?}");
    let (mut files, mut expected) = (Vec::new(), String::new());
    for name in names {
        let file = directory.path().join(&name).display().to_string();
        let mut writer = Writer::with_micros(Vec::new(), ETHERNET).unwrap();
        for (at, _, frame) in packets(&name, 1.0, 100) {
            writer.write(at, frame.len() as u32, &frame).unwrap();
            let hex: String = frame.iter().map(|byte| format!("{byte:02x}")).collect();
            expected += &format!("{} {hex}\n", at / 1000);
        }
        std::fs::write(&file, writer.into_inner()).unwrap();
        files.push(file);
    }
    let output = Spawn::new(PYTHON)
        .args(["-c", SCAPY])
        .args(files)
        .output(Duration::from_secs(120))
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{output:?}");
    assert!(text == expected, "read differently");
}

/// Prints length, addresses and ports of IPv6 packets, a packet a line; checks that the lengths in
/// the headers and the UDP checksum are what it would compute itself.
const SCAPY6: &str = "
import sys
from scapy.all import IPv6, UDP, rdpcap
for packet in rdpcap(sys.argv[1]):
    network, udp = packet[IPv6], packet[UDP]
    copy = network.copy()
    del copy.plen, copy[UDP].len, copy[UDP].chksum
    again = IPv6(bytes(copy))
    assert (again.plen, again[UDP].len) == (network.plen, udp.len), packet
    assert again[UDP].chksum == udp.chksum, packet
    print(len(packet) + 4, network.src, network.dst, udp.sport, udp.dport)
";

/// Lines that scapy reads of a built-in profile's first packets.
fn read_by_scapy(profile: &str, settings: &str, way: Way, count: usize) -> Vec<String> {
    let streams = profile::open(profile, way, &Tunables::parse(settings).unwrap()).unwrap();
    let rates = streams.into_iter().map(|s| {
        let rate = s.rate.pps(s.size(), None).unwrap();
        (s, rate)
    });
    let mut writer = Writer::new(Vec::new(), ETHERNET).unwrap();
    for (at, _, frame) in packets_of(&rates.collect::<Vec<_>>(), 1.0, count) {
        writer.write(at, frame.len() as u32, &frame).unwrap();
    }
    let directory = Directory::new();
    let file = directory.path().join("out.pcap");
    std::fs::write(&file, writer.into_inner()).unwrap();
    let output = Spawn::new(PYTHON)
        .args(["-c", SCAPY6])
        .args([file.display().to_string()])
        .output(Duration::from_secs(60))
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8_lossy(&output.stdout);
    text.lines().map(str::to_owned).collect()
}

#[test]
fn another_parser_reads_ipv6() {
    if !has_scapy("another_parser_reads_ipv6") {
        return;
    }
    assert_eq!(
        read_by_scapy("bench", "ipv6=1,vm=var2", Way::Out, 252)[250..],
        [
            "66 2001:db8::1000:fe 2001:db8::3000:fe 1025 12",
            "66 2001:db8::1000:4 2001:db8::3000:4 1025 12"
        ]
    );
    assert_eq!(
        read_by_scapy("bench", "ipv6=1,vm=tuple,size=1514", Way::Back, 1),
        ["1514 2001:db8::3000:4 2001:db8::1000:4 1234 12"]
    );
    for settings in [
        "vm=size",
        "flow=fsl",
        "flow=fsl,vm=random",
        "size=imix,vm=var1",
    ] {
        let lines = read_by_scapy("bench", &format!("ipv6=1,{settings}"), Way::Out, 100);
        assert_eq!(lines.len(), 100);
    }
    let lines = read_by_scapy("imix_ipv6", "", Way::Out, 48);
    assert_eq!(lines[0], "66 ff80::1000:1 ff80::3000:1 12345 12345");
    for (size, count) in [("66 ", 28), ("594 ", 16), ("1518 ", 4)] {
        let of_size = lines.iter().filter(|line| line.starts_with(size));
        assert_eq!(of_size.count(), count);
    }
}

/// Several cores together send what one does: the same packets, at the same time, in the same
/// order, whatever the profile does but draw random numbers or repeat what it has made.
#[test]
fn cores_together_send_what_one_does() {
    for file in std::fs::read_dir(PROFILES).unwrap() {
        let path = file.unwrap().path();
        let name = path.file_stem().unwrap().to_str().unwrap();
        if ["bench@vm-random", "bench@vm-size", "bench@vm-cached"].contains(&name) {
            continue;
        }
        let streams = streams(name);
        let rate = Pps(Load::of(&streams).unwrap().base.0 * 3.0);
        for cores in 2..=5 {
            let mut whole = Dry::new(&streams, rate);
            let mut divided = Dry::divided(&streams, cores, rate);
            for packet in 0..3000 {
                let (one, all) = (whole.next(Nanos(u64::MAX)), divided.next(Nanos(u64::MAX)));
                assert_eq!(one, all, "{name} on {cores} cores, packet {packet}");
                if one.is_none() {
                    break;
                }
            }
        }
    }
}

/// Bursts whose packets do not divide by the number of cores, one after the other.
#[test]
fn bursts_and_chains_keep_their_times_on_several_cores() {
    let mut streams = streams("multi_burst_2st_1000pkt");
    for ((stream, rate), packets) in streams.iter_mut().zip([7, 5]) {
        stream.mode = match stream.mode {
            Mode::MultiBurst { ibg, .. } => Mode::MultiBurst {
                packets,
                bursts: 3,
                ibg,
            },
            _ => Mode::SingleBurst { packets },
        };
        *rate = Pps(rate.0 * 0.3);
    }
    let rate = Load::of(&streams).unwrap().base;
    for cores in 2..=5 {
        let mut whole = Dry::new(&streams, rate);
        let mut divided = Dry::divided(&streams, cores, rate);
        let mut sent = 0;
        while let Some(one) = whole.next(Nanos(u64::MAX)) {
            assert_eq!(
                divided.next(Nanos(u64::MAX)),
                Some(one),
                "{sent} on {cores}"
            );
            sent += 1;
        }
        assert_eq!((divided.next(Nanos(u64::MAX)), sent), (None, 7 + 3 * 5));
    }
}

/// Shows that what has no seed is written down as others can repeat it: as with the seed 1, on one
/// core and divided.
#[test]
fn a_stream_without_a_seed_has_the_seed_that_is_said() {
    let without = streams("bench@vm-random");
    assert!(without.iter().all(|(stream, _)| stream.is_unseeded()));
    let mut with = without.clone();
    for (stream, _) in &mut with {
        stream.random_seed = 1;
        assert!(!stream.is_unseeded());
    }
    for cores in 1..=5 {
        let [mut one, mut other] =
            [&without, &with].map(|streams| Dry::divided(streams, cores, Pps(1000.0)));
        for packet in 0..1000 {
            let until = Nanos(u64::MAX);
            let (one, other) = (one.next(until), other.next(until));
            assert!(one.is_some() && one == other, "{packet} on {cores} cores");
        }
    }
}

/// Stream 3 may start the first one once; at 100 % each, they fill the line, as never two are
/// active at once.
#[test]
fn a_chain_named_by_numbers_is_sent_at_line_rate() {
    let all = times("names_are_numbers", 1.0, 99);
    let right = [(25, 0), (50, 1), (75, 2), (100, 0), (125, 1), (150, 2)];
    assert_eq!(all, right);
    let load = Load::of(&streams("names_are_numbers")).unwrap();
    let own: Rate = "1".parse().unwrap();
    assert_eq!(own.resolve(&load, Some(Bits(1e10))), Ok(load.base));
    let line: Rate = "100%".parse().unwrap();
    assert!(line.resolve(&load, Some(Bits(1e10))).is_ok());
}
