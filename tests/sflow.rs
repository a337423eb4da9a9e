//! sFlow: what a collector hears of a router, read by a decoder written from sflow_version_5.txt.

use std::collections::BTreeMap;
use std::net::UdpSocket;
use std::time::{Duration, Instant};

use crate::harness::craft::Ip4;
use crate::harness::topology::H1;
use crate::harness::{Directory, Netns, Raw, Router, patience, skipped, until};

/// The Ethernet address of the router's ports.
const OWN: [u8; 6] = [2, 0, 0, 0, 9, 1];

fn configuration(collector: &str, sampled: [bool; 2], more: &str) -> String {
    let [a, b] = sampled;
    format!(
        "sflow: {{ collector: '{collector}', polling-interval: 5, header-bytes: 40{more} }}
interfaces:
  t0: {{ lcp: t0, mac: 02:00:00:00:09:01, addresses: [ 10.9.0.1/24 ], sflow: {a} }}
  t1: {{ lcp: t1, mac: 02:00:00:00:09:01, addresses: [ 10.9.1.1/24 ], sflow: {b} }}
ports:
  t0: {{ tap: {{ name: t0-port }} }}
  t1: {{ tap: {{ name: t1-port }} }}
"
    )
}

/// A sample of a packet.
#[derive(Debug)]
struct Flow {
    sequence: u32,
    rate: u32,
    pool: u32,
    length: u32,
    header: Vec<u8>,
}

/// What a collector has heard, by ifIndex.
#[derive(Default)]
struct Heard {
    flows: BTreeMap<u32, Vec<Flow>>,
    /// State and packets that came in, as the last counters say.
    counted: BTreeMap<u32, (u32, u32)>,
    datagrams: Vec<u32>,
}

/// Takes a word in network byte order.
fn word(from: &mut &[u8]) -> u32 {
    let (word, rest) = from.split_first_chunk().expect("a word");
    *from = rest;
    u32::from_be_bytes(*word)
}

/// Takes bytes, whose number stands before them, and what fills the last word up.
fn opaque<'a>(from: &mut &'a [u8]) -> &'a [u8] {
    let length = word(from) as usize;
    let (bytes, rest) = from.split_at(length.next_multiple_of(4));
    *from = rest;
    &bytes[..length]
}

impl Heard {
    /// Listens for some time.
    fn listen(&mut self, collector: &UdpSocket, time: Duration) {
        let end = Instant::now() + time;
        let mut bytes = [0; 2000];
        while Instant::now() < end {
            if let Ok(n) = collector.recv(&mut bytes) {
                self.datagram(&bytes[..n]);
            }
        }
    }

    fn datagram(&mut self, bytes: &[u8]) {
        assert!(bytes.len() <= 1400);
        let rest = &mut &bytes[..];
        // version, type and bytes of the agent's address, sub-agent
        assert_eq!([5, 1, 0x0a09_0001, 0], [(); 4].map(|()| word(rest)));
        self.datagrams.push(word(rest));
        let _uptime = word(rest);
        for _ in 0..word(rest) {
            let kind = word(rest);
            let sample = &mut opaque(rest);
            match kind {
                1 => self.flow(sample),
                2 => self.counters(sample),
                other => panic!("a sample of format {other}"),
            }
        }
        assert!(rest.is_empty());
    }

    fn flow(&mut self, sample: &mut &[u8]) {
        let [sequence, source, rate, pool] = [(); 4].map(|()| word(sample));
        let [drops, input, output, records] = [(); 4].map(|()| word(sample));
        assert_eq!([drops, input, output, records], [0, source, 0, 1]);
        assert_eq!(word(sample), 1, "sampled_header");
        let record = &mut opaque(sample);
        let [protocol, length, stripped] = [(); 3].map(|()| word(record));
        assert_eq!((protocol, stripped), (1, 4), "Ethernet, without FCS");
        let header = opaque(record).to_vec();
        self.flows.entry(source).or_default().push(Flow {
            sequence,
            rate,
            pool,
            length,
            header,
        });
    }

    fn counters(&mut self, sample: &mut &[u8]) {
        let [_sequence, source, records, kind] = [(); 4].map(|()| word(sample));
        assert_eq!((records, kind), (1, 1), "if_counters");
        let record = &mut opaque(sample);
        assert_eq!((record.len(), word(record)), (88, source));
        // ifType, ifSpeed, ifDirection, ifStatus, ifInOctets
        let before = [(); 7].map(|()| word(record));
        self.counted.insert(source, (before[4], word(record)));
    }
}

struct Lab {
    netns: Netns,
    router: Router,
    collector: UdpSocket,
    /// Its address.
    to: String,
    directory: Directory,
}

impl Lab {
    fn start() -> Self {
        let netns = Netns::create("router").expect("root may");
        netns.ip("link set lo up").expect("loopback");
        let collector = netns.inside(|| UdpSocket::bind("0.0.0.0:0").expect("a socket"));
        let wait = Some(Duration::from_millis(100));
        collector.set_read_timeout(wait).expect("a timeout");
        let port = collector.local_addr().expect("bound").port();
        let to = format!("10.9.0.1:{port}");
        let yaml = configuration(&to, [true, false], ", sampling-rate: 100");
        let router = Router::start(&netns, &yaml);
        Lab {
            netns,
            router,
            collector,
            to,
            directory: Directory::new(),
        }
    }

    /// The index of a port's device.
    fn index(&self, name: &str) -> u32 {
        let path = format!("cat /sys/class/net/{name}/ifindex");
        let index = self.netns.sh(&path).expect("it is there");
        index.trim().parse().expect("a number")
    }

    /// Sends packets in by both ports, until the router has got as many.
    fn send(&self, count: u64) {
        let frame = Ip4::udp([10, 9, 0, 2].into(), [48, 0, 0, 1].into(), 7, 100).frame(H1, OWN);
        for name in ["t0", "t1"] {
            let device = format!("{name}-port");
            let up = || self.netns.ip(&format!("link set {device} up")).is_ok();
            assert!(until(patience(), up), "{}", self.said());
            let port = Raw::open(&self.netns, &device, H1);
            let wanted = self.received(name) + count;
            // A tap's queue holds fewer.
            while self.received(name) < wanted {
                (0..200).for_each(|_| port.send(&frame));
            }
        }
    }

    fn received(&self, name: &str) -> u64 {
        let shown = self.router.show(&["interface", name]);
        shown["interfaces"][0]["rx_packets"]
            .as_u64()
            .expect("a count")
    }

    fn said(&self) -> String {
        self.router.said(&[&["sflow"], &["interface"], &["errors"]])
    }

    fn heard(&self, time: Duration) -> Heard {
        let mut heard = Heard::default();
        heard.listen(&self.collector, time);
        heard
    }

    fn ask(&self, words: &[&str]) -> String {
        let said = self.router.ask(words);
        said.unwrap_or_else(|error| panic!("{error}\n{}", self.said()))
    }

    fn write(&self, yaml: &str) -> String {
        let file = self.directory.path().join("next.yaml");
        std::fs::write(&file, yaml).expect("written");
        file.display().to_string()
    }
}

#[test]
fn a_collector_hears_of_packets_and_counters() {
    const NAME: &str = "a_collector_hears_of_packets_and_counters";
    if skipped(NAME, &["ip"]) {
        return;
    }
    let mut lab = Lab::start();
    lab.send(3000);
    let heard = lab.heard(Duration::from_secs(7));
    let (t0, t1) = (lab.index("t0"), lab.index("t1"));
    assert_eq!(
        heard.flows.keys().collect::<Vec<_>>(),
        [&t0],
        "{}",
        lab.said()
    );
    let flows = &heard.flows[&t0];
    let received = lab.received("t0");
    let mean = received as usize / 100;
    assert!(
        (mean / 2..mean * 2).contains(&flows.len()),
        "{} of {received}",
        flows.len()
    );
    for (flow, sequence) in flows.iter().zip(1..) {
        assert_eq!((flow.sequence, flow.rate), (sequence, 100));
        assert!(u64::from(flow.pool) <= received && flow.pool > 0);
        // The host end of the tap speaks, too.
        if flow.length == 14 + 20 + 8 + 100 + 4 {
            assert_eq!(flow.header[..6], OWN);
            assert_eq!(flow.header[30..34], [48, 0, 0, 1]);
            assert_eq!(flow.header.len(), 40);
        }
    }
    let (status, counted) = heard.counted[&t0];
    assert_eq!(status, 3, "it is up");
    assert!(
        u64::from(counted) <= received && counted >= 3000,
        "{counted}"
    );
    assert!(!heard.counted.contains_key(&t1));
    let numbers = heard.datagrams.windows(2);
    assert!(numbers.into_iter().all(|pair| pair[1] == pair[0] + 1));
    let shown = lab.router.show(&["sflow"]);
    assert_eq!(shown["interfaces"][0]["samples"], flows.len(), "{shown}");
    assert_eq!(shown["sampling"]["collector"], lab.to.as_str());
    assert_eq!(shown["failed"], 0);

    // The other port, at another rate, while packets flow; undone, and as it was.
    let file = lab.write(&configuration(
        &lab.to,
        [false, true],
        ", sampling-rate: 200",
    ));
    let plan = lab.ask(&["plan", "-c", &file]);
    assert!(plan.contains("sampling-rate"), "{plan}");
    assert!(!plan.contains("interrupts"), "{plan}");
    lab.ask(&["apply", "-c", &file]);
    drop(lab.heard(Duration::from_secs(2)));
    lab.send(3000);
    let heard = lab.heard(Duration::from_secs(2));
    assert_eq!(
        heard.flows.keys().collect::<Vec<_>>(),
        [&t1],
        "{}",
        lab.said()
    );
    assert!(heard.flows[&t1].iter().all(|flow| flow.rate == 200));
    let dumped = lab.ask(&["dump"]);
    let file = lab.write(&dumped);
    let again = lab.ask(&["plan", "-c", &file]);
    assert!(!again.contains("sflow"), "{again}");
    lab.ask(&["rollback"]);
    let shown = lab.router.show(&["sflow"]);
    assert_eq!(shown["interfaces"][0]["name"], "t0", "{shown}");
    assert_eq!(shown["sampling"]["sampling_rate"], 100);

    // Started again, it samples as its file says.
    lab.router.process.kill();
    lab.router.relaunch(&lab.netns);
    lab.router.wait();
    lab.send(3000);
    let heard = lab.heard(Duration::from_secs(2));
    let t0 = lab.index("t0");
    assert_eq!(
        heard.flows.keys().collect::<Vec<_>>(),
        [&t0],
        "{}",
        lab.said()
    );
}
