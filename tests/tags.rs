//! VLAN tags as others write and read them: frames made by scapy, and what tcpdump saw of them.

use std::time::Duration;

use testbed::{PYTHON, has_scapy};

use crate::harness::{Directory, Netns, Router, Spawn, patience, skipped, until};

/// Three ways through the trunk: one tag, a service tag and one inside it, and two of the same kind
/// of which one is exchanged for another.
const TRUNK: &str = "interfaces:
  a: { l2xc: trunk.10 }
  b: { l2xc: trunk.20 }
  c: { sub-interfaces: { 31: { l2xc: trunk.30 } } }
  trunk:
    sub-interfaces:
      10: { l2xc: a }
      20: { l2xc: b, encapsulation: { dot1ad: 20, inner-dot1q: 7, exact-match: true } }
      30: { l2xc: c.31, encapsulation: { dot1q: 30, inner-dot1q: 8, exact-match: true } }
ports: { a: { tap: {} }, b: { tap: {} }, c: { tap: {} }, trunk: { tap: {} } }
";

/// Sends all frames, in at their port.
const SEND: &str = "
from scapy.all import Dot1AD, Dot1Q, Ether, Raw, conf, sendp
conf.verb = 0
tag = {
    'a-port': [Ether()],
    'b-port': [Ether()],
    'c-port': [Ether()/Dot1Q(vlan=31, prio=3)],
    'trunk-port': [Ether()/Dot1Q(vlan=10), Ether()/Dot1AD(vlan=20)/Dot1Q(vlan=7),
                   Ether()/Dot1Q(vlan=30)/Dot1Q(vlan=8), Ether()/Dot1Q(vlan=11),
                   Ether()/Dot1AD(vlan=20)/Dot1Q(vlan=6), Ether()/Dot1Q(vlan=20)/Dot1Q(vlan=7)],
}
for port, heads in tag.items():
    for number, head in enumerate(heads):
        head[Ether].src, head[Ether].dst = '02:00:00:00:00:%02x' % (number + 1), 'ff:ff:ff:ff:ff:ff'
        head.lastlayer().type = 0x88b5
        sendp(head/Raw(('from %s %d ' % (port, number)).ljust(80, '.')), iface=port)
";

/// Prints what frames of ours are in captures: tags, and the words inside.
const READ: &str = "
import re, sys
from scapy.all import Dot1AD, Dot1Q, rdpcap
for file in sys.argv[1:]:
    for packet in rdpcap(file):
        said = re.search(rb'from \\S+ \\d+', bytes(packet))
        if not said:
            continue
        tags, layer = [], packet.payload
        while isinstance(layer, Dot1Q):
            tags.append('%s %d' % (type(layer).__name__, layer.vlan))
            layer = layer.payload
        print(file.split('/')[-1], tags, said.group().decode())
";

/// What is to be seen, where it left.
const WANTED: [&str; 6] = [
    "a-port [] from trunk-port 0",
    "b-port [] from trunk-port 1",
    "c-port ['Dot1Q 31'] from trunk-port 2",
    "trunk-port ['Dot1AD 20', 'Dot1Q 7'] from b-port 0",
    "trunk-port ['Dot1Q 10'] from a-port 0",
    "trunk-port ['Dot1Q 30', 'Dot1Q 8'] from c-port 0",
];

#[test]
fn tags_are_as_others_write_and_read_them() {
    const NAME: &str = "tags_are_as_others_write_and_read_them";
    if skipped(NAME, &["ip", "tcpdump", PYTHON]) {
        return;
    }
    if !has_scapy(NAME) {
        return;
    }
    let (netns, directory) = (Netns::create("tags").expect("root may"), Directory::new());
    let router = Router::start(&netns, TRUNK);
    let ports = ["a-port", "b-port", "c-port", "trunk-port"];
    let files = ports.map(|port| directory.path().join(port).display().to_string());
    let captures = [0, 1, 2, 3].map(|at| {
        let is_up = || netns.ip(&format!("link show dev {} up", ports[at]));
        let so = until(patience(), || {
            is_up().is_ok_and(|text| text.contains(ports[at]))
        });
        assert!(so, "{}", router.process.log());
        // Frames that the socket itself puts in are not those that leave.
        let tcpdump = Spawn::new("tcpdump")
            .args([
                "-i", ports[at], "-Q", "in", "-U", "-Z", "root", "-w", &files[at],
            ])
            .inside(&netns)
            .start()
            .expect("it starts");
        assert!(
            until(patience(), || tcpdump.log().contains("listening")),
            "{}",
            tcpdump.log()
        );
        tcpdump
    });
    let python = |script: &str, arguments: &[String]| {
        let output = Spawn::new(PYTHON)
            .args(["-c", script])
            .args(arguments)
            .inside(&netns)
            .output(patience() + Duration::from_secs(10))
            .expect("it ends");
        assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    python(SEND, &[]);
    let seen = || {
        let said = python(READ, &files);
        let mut lines: Vec<String> = said.lines().map(str::to_owned).collect();
        lines.sort();
        lines
    };
    let all = || seen().len() >= WANTED.len();
    let so = until(patience(), all);
    assert!(so, "{:#?}\n{}", seen(), router.show_text(&["errors"]));
    // Those of tags that no sub-interface has are nowhere.
    assert_eq!(seen(), WANTED, "{}", router.show_text(&["errors"]));
    drop(captures);
}
