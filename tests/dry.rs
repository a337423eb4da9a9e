//! `send --dry-run`, as a user runs it: what it writes, and what it refuses.

use std::fs::File;
use std::io::BufReader;

use wire::pcap::{Packet, Reader};

use crate::harness::{Directory, PARSHALL, Spawn, patience};

/// Runs the binary with these words and `-o` a file of its own; whether it ended well, what it
/// said, and the packets of the file.
fn dry(words: &str) -> (bool, String, Vec<Packet>) {
    let directory = Directory::new();
    let file = directory.path().join("out.pcap");
    let output = Spawn::new(PARSHALL)
        .args(["send", "--dry-run", "-o", &file.display().to_string()])
        .args(words.split_whitespace())
        .output(patience())
        .expect("it runs");
    let said = [output.stdout, output.stderr].concat();
    let packets = match File::open(&file) {
        Ok(file) => {
            let reader = Reader::new(BufReader::new(file)).expect("a capture");
            reader.map(|packet| packet.expect("whole")).collect()
        }
        Err(_) => Vec::new(),
    };
    let said = String::from_utf8_lossy(&said).into_owned();
    (output.status.success(), said, packets)
}

fn packets(words: &str) -> Vec<Packet> {
    let (is_well, said, packets) = dry(words);
    assert!(is_well, "{words}: {said}");
    packets
}

fn times(words: &str) -> Vec<u64> {
    packets(words).iter().map(|packet| packet.nanos).collect()
}

#[test]
fn a_dry_run_ends_at_the_limit_or_the_time() {
    let millis = |count: u64| -> Vec<u64> { (0..count).map(|n| n * 1_000_000).collect() };
    assert_eq!(times("-m 1kpps --limit 3"), millis(3));
    assert_eq!(times("-m 1kpps --duration 9ms"), millis(10));
    assert_eq!(times("-m 1kpps --duration 9ms --limit 4"), millis(4));
    assert_eq!(times("-m 1kpps --duration 2ms --limit 90"), millis(3));
    let (is_well, said, none) = dry("-m 1kpps");
    assert!(!is_well && none.is_empty());
    assert!(said.contains("--limit or --duration"), "{said}");
    let (is_well, said, none) = dry("-m max --limit 3");
    assert!(!is_well && none.is_empty());
    assert!(said.contains("a rate other than max"), "{said}");
}

/// The rate in each of its units, and where it cannot be had.
#[test]
fn a_dry_run_has_the_rate_that_is_asked_for() {
    let second = |words: &str| times(&format!("-t size=64 --limit 2 {words}"))[1];
    assert_eq!(second("-m 4"), 250_000_000);
    assert_eq!(second("-m 512kbps"), 1_000_000);
    assert_eq!(second("-m 672kbpsl1"), 1_000_000);
    assert_eq!(second("-m 100% --line-rate 672kbps"), 1_000_000);
    for (words, why) in [
        ("-m 1%", "--line-rate"),
        ("-m 2mpps --line-rate 1gbps", "exceeds the port's line rate"),
        ("-t flow=fsl -m 2mpps", "no rate changes what this profile"),
    ] {
        let (is_well, said, none) = dry(&format!("--limit 1 {words}"));
        assert!(!is_well && none.is_empty(), "{words}");
        assert!(said.contains(why), "{words}: {said}");
    }
}

/// A setting reaches the frames, and one that is not there is refused.
#[test]
fn a_dry_run_has_the_settings() {
    let sizes = |words: &str| -> Vec<usize> {
        let packets = packets(words);
        packets.iter().map(|packet| packet.bytes.len()).collect()
    };
    assert_eq!(sizes("-t size=128 --limit 2"), [124, 124]);
    let sent = packets("-t size=64,vm=var2 --limit 2 --src-mac 02:00:00:00:00:11");
    assert_eq!(sent[0].bytes[6..12], [2, 0, 0, 0, 0, 0x11]);
    assert_ne!(sent[0].bytes[26..34], sent[1].bytes[26..34]);
    let (is_well, said, none) = dry("-t length=1 --limit 1");
    assert!(!is_well && none.is_empty());
    assert!(said.contains("length"), "{said}");
}

/// What has no seed is written down as others can repeat it, and that is said; only then.
#[test]
fn a_dry_run_says_whose_random_numbers_it_has() {
    let words = "-t vm=random --limit 50 -m 1kpps";
    let (is_well, said, one) = dry(words);
    assert!(is_well && said.contains("they use seed 1"), "{said}");
    assert_eq!(one, packets(words));
    let (is_well, said, _) = dry("-t vm=var2 --limit 50");
    assert!(is_well && !said.contains("seed"), "{said}");
}

/// The identifications of flow statistics begin where they are to; those of latency stay.
#[test]
fn a_dry_run_has_the_flow_ids_that_are_asked_for() {
    let id = |words: &str| {
        let packet = packets(&format!("--limit 1 {words}")).remove(0);
        let at = if words.contains("ipv6") { 16 } else { 18 };
        u16::from_be_bytes([packet.bytes[at], packet.bytes[at + 1]])
    };
    for (words, number) in [
        ("-t flow=fs", 0xfc00),
        ("-t flow=fs --flow-id-base 0xff00", 0xff00),
        ("-t flow=fs -t ipv6=1 --flow-id-base 65280", 0xff00),
        ("-t flow=fsl --flow-id-base 0xff00", 0xffff),
    ] {
        assert_eq!(id(words), number, "{words}");
    }
    for (base, why) in [
        ("0xffff", "group 7 would be 0xffff + 0"),
        ("0x10000", "a number of 16 bits"),
    ] {
        let (is_well, said, none) = dry(&format!("-t flow=fs --limit 1 --flow-id-base {base}"));
        assert!(!is_well && none.is_empty(), "{base}");
        assert!(said.contains(why), "{base}: {said}");
    }
}
