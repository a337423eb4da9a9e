//! Layer 2: sub-interfaces, cross connects and bridge domains, from the configuration to the wire.

use std::time::Duration;

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
const PORTS: &str = "ports: { a: { tap: {} }, b: { tap: {} }, c: { tap: {} } }\n";

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
    _netns: Netns,
}

impl Lab {
    fn start(yaml: &str) -> Self {
        let netns = Netns::create("router").expect("root may");
        let router = Router::start(&netns, &format!("{yaml}{PORTS}"));
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
            _netns: netns,
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

    fn apply(&self, yaml: &str) -> String {
        let file = self.directory.path().join("next.yaml");
        std::fs::write(&file, format!("{yaml}{PORTS}")).expect("written");
        let said = self
            .router
            .ask(&["apply", "-c", &file.display().to_string()]);
        said.unwrap_or_else(|error| panic!("{error}\n{}", self.router.process.log()))
    }
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
        // Flooded until it is learned; then the other one sees nothing of a whole round.
        let more = of("more");
        lab.wires[2].drain(Duration::from_millis(50));
        lab.passes(1, &frame(a, b, &VLAN, &more), 0, &seen(a, b, &[], &more));
        let others = lab.wires[2].drain(Duration::from_millis(50));
        !others
            .iter()
            .any(|frame| frame.starts_with(&seen(a, b, &[], &more)))
    };
    assert!(
        until(patience(), learned),
        "b's frames to a are flooded for ever"
    );
    lab.passes(2, &frame(a, c, &[], &hello), 0, &seen(a, c, &[], &hello));
}

#[test]
fn frames_cross_and_are_bridged_and_a_change_leads_from_one_to_the_other() {
    const NAME: &str = "frames_cross_and_are_bridged_and_a_change_leads_from_one_to_the_other";
    if skipped(NAME, &["ip"]) {
        return;
    }
    let lab = Lab::start(CROSSED);
    crosses(&lab, b"one");
    let said = lab.apply(BRIDGED);
    assert!(said.ends_with("\nconfiguration 2 is in force\n"), "{said}");
    bridges(&lab, b"two");
    lab.router.ask(&["rollback"]).expect("it goes back");
    crosses(&lab, b"three");
    lab.apply("interfaces: { a: {}, b: {}, c: {} }\n");
    lab.apply(BRIDGED);
    bridges(&lab, b"four");
}
