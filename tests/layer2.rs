//! Layer 2: sub-interfaces, cross connects, bridge domains and their BVIs, from the configuration to the wire.

use std::time::Duration;

use crate::cards::ping;
use crate::harness::craft::Mac;
use crate::harness::{Directory, Netns, Raw, Router, patience, skipped, until};

/// Three taps, and what connects them.
const CROSSED: &str = "interfaces:
  a: { l2xc: b.5 }
  b: { sub-interfaces: { 5: { l2xc: a, encapsulation: { dot1ad: 5, inner-dot1q: 7, exact-match: true } } } }
  c: {}
";
const BRIDGED: &str = "interfaces:
  a: {}
  b: { sub-interfaces: { 5: { state: up } } }
  c: {}
bridgedomains:
  bd1: { interfaces: [ a, b.5, c ] }
";

/// What the ports are.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Ports {
    Taps,
    /// veths: network devices, with their other ends.
    Devices,
}

impl Ports {
    const ALL: [Self; 2] = [Self::Taps, Self::Devices];

    /// The section of the configuration.
    fn section(self) -> &'static str {
        match self {
            Self::Taps => "ports: { a: { tap: {} }, b: { tap: {} }, c: { tap: {} } }\n",
            Self::Devices => "",
        }
    }
}

/// Stations behind the ports.
const STATIONS: [Mac; 3] = [
    [2, 0, 0, 0, 0xa, 1],
    [2, 0, 0, 0, 0xb, 1],
    [2, 0, 0, 0, 0xc, 1],
];
const EVERYBODY: Mac = [0xff; 6];

/// A router, and a socket on the outer side of each of its ports.
struct Lab {
    router: Router,
    wires: [Raw; 3],
    directory: Directory,
    netns: Netns,
    ports: Ports,
}

impl Lab {
    fn start(yaml: &str, ports: Ports) -> Self {
        let netns = Netns::create("router").expect("root may");
        if ports == Ports::Devices {
            for name in ["a", "b", "c"] {
                let made = netns.ip(&format!(
                    "link add name {name} type veth peer name {name}-port"
                ));
                made.expect("a veth");
                let up = netns.ip(&format!("link set {name}-port up"));
                up.expect("its other end");
            }
        }
        let router = Router::start(&netns, &format!("{yaml}{}", ports.section()));
        let wires = [("a", 0), ("b", 1), ("c", 2)].map(|(name, at)| {
            let device = format!("{name}-port");
            let is_up = || netns.ip(&format!("link show dev {device} up"));
            assert!(until(patience(), || is_up()
                .is_ok_and(|text| text.contains(&device))));
            Raw::open(&netns, &device, STATIONS[at])
        });
        Lab {
            router,
            wires,
            directory: Directory::new(),
            netns,
            ports,
        }
    }

    /// Sends a frame in by a port until another one gives out what is wanted.
    fn passes(&self, from: usize, frame: &[u8], to: usize, wanted: &[u8]) {
        let arrives = || {
            self.wires[from].send(frame);
            let wire = &self.wires[to];
            let is_it = |frame: &[u8]| frame.starts_with(wanted);
            wire.expect(Duration::from_millis(200), is_it).is_some()
        };
        let errors = || self.router.show_text(&["errors"]);
        assert!(until(patience(), arrives), "{}", errors());
    }

    /// Of network devices these take in frames to every station, and no others.
    fn listens(&self, wanted: &[&str]) {
        for device in ["a", "b", "c"]
            .into_iter()
            .filter(|_| self.ports == Ports::Devices)
        {
            let shown = self
                .netns
                .ip(&format!("-d link show dev {device}"))
                .expect("it is there");
            let listens = !shown.contains("promiscuity 0 ");
            assert_eq!(listens, wanted.contains(&device), "{shown}");
        }
    }

    fn apply(&self, yaml: &str) -> String {
        let file = self.directory.path().join("next.yaml");
        std::fs::write(&file, format!("{yaml}{}", self.ports.section())).expect("written");
        let said = self
            .router
            .ask(&["apply", "-c", &file.display().to_string()]);
        said.unwrap_or_else(|error| panic!("{error}\n{}", self.router.process.log()))
    }
}

/// ARP of IPv4 (RFC 826): a request or reply, from and to these.
fn arp(to: Mac, operation: u8, sender: (Mac, u8), target: (Mac, u8)) -> Vec<u8> {
    let address = |n| [10, 9, 0, n];
    let kind = [8, 6, 0, 1, 8, 0, 6, 4, 0, operation];
    let ends = [(sender.0, address(sender.1)), (target.0, address(target.1))];
    let ends = ends.map(|(mac, address)| [&mac[..], &address].concat());
    let mut frame = [&to[..], &sender.0, &kind, &ends.concat()].concat();
    frame.resize(60, 0);
    frame
}

/// A frame with these tags and this word in it.
fn frame(to: Mac, from: Mac, tags: &[[u8; 4]], word: &[u8]) -> Vec<u8> {
    let tags = tags.concat();
    let mut frame = [&to[..], &from, &tags, &[0x88, 0xb5], word].concat();
    frame.resize(64, 0);
    frame
}

/// What a socket sees of a frame: the kernel has taken its first tag.
fn seen(to: Mac, from: Mac, tags: &[[u8; 4]], word: &[u8]) -> Vec<u8> {
    let all = frame(to, from, tags.get(1..).unwrap_or_default(), word);
    let length = all
        .iter()
        .rposition(|byte| *byte != 0)
        .map_or(0, |last| last + 1);
    all[..length].to_vec()
}

const SERVICE: [[u8; 4]; 2] = [[0x88, 0xa8, 0, 5], [0x81, 0, 0, 7]];
const VLAN: [[u8; 4]; 1] = [[0x81, 0, 0, 5]];

/// Between `a` and the tags of `b.5`.
fn crosses(lab: &Lab, word: &[u8]) {
    let [a, b, _] = STATIONS;
    // Wherever it is addressed to.
    let wanted = seen(EVERYBODY, a, &SERVICE, word);
    lab.passes(0, &frame(EVERYBODY, a, &[], word), 1, &wanted);
    lab.passes(1, &frame(a, b, &SERVICE, word), 0, &seen(a, b, &[], word));
}

/// Between all three, and to the right one alone as soon as it is known.
fn bridges(lab: &Lab, word: &[u8]) {
    let [a, b, c] = STATIONS;
    let of = |text: &str| [word, text.as_bytes()].concat();
    let hello = of("hello");
    lab.passes(
        1,
        &frame(EVERYBODY, b, &VLAN, &hello),
        0,
        &seen(EVERYBODY, b, &[], &hello),
    );
    lab.passes(
        1,
        &frame(EVERYBODY, b, &VLAN, &hello),
        2,
        &seen(EVERYBODY, b, &[], &hello),
    );
    lab.passes(
        0,
        &frame(EVERYBODY, a, &[], &hello),
        2,
        &seen(EVERYBODY, a, &[], &hello),
    );
    let learned = || {
        // Flooded until it is learned, which its own frames do; then the other one sees nothing.
        let more = of("more");
        lab.wires[0].send(&frame(b, a, &[], &more));
        lab.wires[2].drain(Duration::from_millis(50));
        lab.passes(1, &frame(a, b, &VLAN, &more), 0, &seen(a, b, &[], &more));
        let others = lab.wires[2].drain(Duration::from_millis(50));
        !others
            .iter()
            .any(|frame| frame.starts_with(&seen(a, b, &[], &more)))
    };
    let so = until(patience(), learned);
    assert!(
        so,
        "{word:?}: b's frames to a are flooded for ever\n{}",
        lab.router.process.log()
    );
    lab.passes(2, &frame(a, c, &[], &hello), 0, &seen(a, c, &[], &hello));
}

#[test]
fn frames_cross_and_are_bridged_and_a_change_leads_from_one_to_the_other() {
    const NAME: &str = "frames_cross_and_are_bridged_and_a_change_leads_from_one_to_the_other";
    if skipped(NAME, &["ip"]) {
        return;
    }
    for ports in Ports::ALL {
        let lab = Lab::start(CROSSED, ports);
        crosses(&lab, b"one");
        let said = lab.apply(BRIDGED);
        assert!(said.ends_with("\nconfiguration 2 is in force\n"), "{said}");
        bridges(&lab, b"two");
        lab.router.ask(&["rollback"]).expect("it goes back");
        crosses(&lab, b"three");
        lab.listens(["a", "b"].as_slice());
        lab.apply("interfaces: { a: {}, b: {}, c: {} }\n");
        lab.listens(&[]);
        lab.apply(BRIDGED);
        bridges(&lab, b"four");
        lab.listens(&["a", "b", "c"]);
    }
}

const ROUTED: &str = "interfaces:
  a: {}
  b: {}
  c: { addresses: [ 10.9.0.1/24 ] }
bridgedomains:
  bd1: { bvi: loop1, interfaces: [ a, b ] }
loopbacks:
  loop1: { addresses: [ 10.0.0.1/24 ] }
";

/// A namespace with a port's outer end, which has this address and routes by that router.
fn station(router: &Netns, port: &str, own: &str, by: &str) -> Netns {
    let netns = Netns::create(port).expect("root may");
    let device = format!("{port}-port");
    let moved = || router.ip(&format!("link set {device} netns {}", netns.name()));
    assert!(until(patience(), || moved().is_ok()));
    for words in [
        format!("addr add {own}/24 dev {device}"),
        format!("link set {device} up"),
        format!("route add default via {by}"),
    ] {
        netns.ip(&words).expect("a device");
    }
    netns
}

#[test]
fn stations_of_a_bridge_reach_the_host_and_other_networks_through_its_bvi() {
    const NAME: &str = "stations_of_a_bridge_reach_the_host_and_other_networks_through_its_bvi";
    if skipped(NAME, &["ip", "ping"]) {
        return;
    }
    let lab = Lab::start(ROUTED, Ports::Taps);
    let bridged = station(&lab.netns, "a", "10.0.0.2", "10.0.0.1");
    let beside = station(&lab.netns, "b", "10.0.0.3", "10.0.0.1");
    let routed = station(&lab.netns, "c", "10.9.0.2", "10.9.0.1");
    let answers = |from: &Netns, to: &str| {
        let answer = || ping(from, to.parse().expect("an address"), 1472);
        let so = until(patience(), || answer().is_ok());
        assert!(
            so,
            "{to}: {:?}\n{}",
            answer(),
            lab.router.show_text(&["errors"])
        );
    };
    for (from, to) in [
        (&bridged, "10.0.0.1"),
        (&bridged, "10.0.0.3"),
        (&bridged, "10.9.0.2"),
        (&routed, "10.0.0.3"),
        (&beside, "10.0.0.1"),
    ] {
        answers(from, to);
    }
    // Without it the loopback is there for the host alone, and the bridge goes on.
    lab.apply(&ROUTED.replace("bvi: loop1, ", ""));
    answers(&bridged, "10.0.0.3");
    assert!(ping(&bridged, [10, 0, 0, 1].into(), 100).is_err());
    lab.router.ask(&["rollback"]).expect("it goes back");
    answers(&beside, "10.0.0.1");
    answers(&bridged, "10.9.0.2");
}

/// A request for a station that has spoken is answered in its place, or goes to it alone.
#[test]
fn a_bridge_answers_arp_for_its_stations() {
    const NAME: &str = "a_bridge_answers_arp_for_its_stations";
    if skipped(NAME, &["ip"]) {
        return;
    }
    let yaml = |setting: &str| {
        format!(
            "interfaces: {{ a: {{}}, b: {{}}, c: {{}} }}
bridgedomains: {{ bd1: {{ interfaces: [ a, b, c ], settings: {{ {setting}: true }} }} }}
"
        )
    };
    let lab = Lab::start(&yaml("arp-termination"), Ports::Taps);
    let [a, b, _] = STATIONS;
    let nobody = [0; 6];
    let announcement = arp(EVERYBODY, 1, (a, 1), (nobody, 1));
    lab.passes(0, &announcement, 1, &announcement);
    let request = arp(EVERYBODY, 1, (b, 2), (nobody, 1));
    lab.passes(1, &request, 1, &arp(b, 2, (a, 1), (b, 2)));
    // The others have heard of it at most before the bridge knew.
    lab.wires[2].drain(Duration::from_millis(100));
    lab.passes(1, &request, 1, &arp(b, 2, (a, 1), (b, 2)));
    let heard = lab.wires[2].drain(Duration::from_millis(100));
    assert!(!heard.contains(&request), "{heard:?}");
    let shown = lab.router.show(&["bridge-domain", "1"]);
    let owners = &shown["bridge_domains"][0]["owners"];
    assert_eq!(owners[0]["address"], "10.9.0.1", "{shown}");

    lab.apply(&yaml("arp-unicast-forward"));
    lab.passes(1, &request, 0, &arp(a, 1, (b, 2), (nobody, 1)));
}
