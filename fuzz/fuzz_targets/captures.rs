//! A capture file, and a port that replays it.
#![cfg_attr(fuzzing, no_main)]

use graph::pool::{MAX_PACKET, STRIDE};
use graph::{Buffers, Frame, Pool, Port};
use io::pcap::Pcap;
use wire::pcap::{ETHERNET, MAX_LEN, Packet, Reader, Writer};

/// What is read stands in the file, is the same when written and read again, and is replayed as it
/// is.
pub fn check(file: &[u8]) {
    let packets = read(file);
    let bytes: usize = packets.iter().map(|packet| 16 + packet.bytes.len()).sum();
    assert!(bytes <= file.len());
    let mut again = Vec::new();
    let mut writer = Writer::new(&mut again, ETHERNET).expect("a header");
    for packet in &packets {
        let written = writer.write(packet.nanos, packet.wire_len, &packet.bytes);
        written.expect("memory takes all");
    }
    // What the writer says it changes: times after 2106 (a second of a file may have more than a
    // million microseconds), packets longer than any.
    let kept = |packet: &Packet| {
        packet.nanos / 1_000_000_000 <= u32::MAX.into() && packet.bytes.len() <= MAX_LEN as usize
    };
    if packets.iter().all(kept) {
        assert_eq!(read(&again), packets);
    }
    replay(packets);
}

/// The packets before the end or the first that is broken.
fn read(file: &[u8]) -> Vec<Packet> {
    let packets = Reader::new(file).into_iter().flatten();
    packets.map_while(Result::ok).collect()
}

fn replay(packets: Vec<Packet>) {
    let mut bufs = Buffers::new(Pool::new(256, STRIDE).expect("memory"));
    let packets: Vec<_> = packets.into_iter().map(|packet| packet.bytes).collect();
    let fits = |packet: &&Vec<u8>| packet.len() <= MAX_PACKET;
    let wanted: Vec<_> = packets.iter().filter(fits).cloned().collect();
    let mut port = Pcap::new("pcap0", packets, false, None);
    let mut replayed = Vec::new();
    while port.left() > 0 {
        let before = port.left();
        let mut frame = Frame::default();
        port.rx(&mut bufs, &mut frame);
        for d in frame.drain() {
            replayed.push(bufs.pool().to_vec(&d));
            bufs.free(d);
        }
        assert!(port.left() < before, "{before} packets left");
    }
    assert_eq!(replayed, wanted);
    assert_eq!(bufs.pool().available() + bufs.cached() as u32, 256);
}

#[cfg(fuzzing)]
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| check(bytes));
