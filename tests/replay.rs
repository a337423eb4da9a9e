//! A router whose ports are capture files.

use std::fs::File;
use std::path::PathBuf;

use serde_json::Value;
use wire::pcap::{ETHERNET, Writer};

use crate::harness::craft::Ip4;
use crate::harness::topology::{H0, H1, R0, text};
use crate::harness::{Directory, Netns, Router, patience, skipped, until};

const PACKETS: u16 = 2000;

/// A count of interface `name`, as `show interface` has it.
fn count(router: &Router, name: &str, counter: &str) -> u64 {
    let shown = router.show(&["interface", name]);
    let count = shown["interfaces"][0][counter].as_u64();
    count.expect("it is shown")
}

/// A file in a directory with packets from 10.1.0.2 to 48.0.0.1.
fn write(directory: &Directory) -> PathBuf {
    let file = directory.path().join("in.pcap");
    let mut writer = Writer::new(File::create(&file).unwrap(), ETHERNET).unwrap();
    for id in 0..PACKETS {
        let (from, to) = ([10, 1, 0, 2].into(), [48, 0, 0, 1].into());
        let frame = Ip4::udp(from, to, id, 26).frame(H0, R0);
        let length = frame.len() as u32;
        writer.write(u64::from(id), length, &frame).unwrap();
    }
    file
}

/// Every packet of it finds the route of the configuration, which the kernel gets last.
#[test]
fn a_file_is_read_once_all_of_the_start_is_known() {
    const NAME: &str = "a_file_is_read_once_all_of_the_start_is_known";
    if skipped(NAME, &["ip"]) {
        return;
    }
    let directory = Directory::new();
    let file = write(&directory);
    let netns = Netns::create("router").unwrap();
    let mac = text(R0);
    let yaml = format!(
        "interfaces:\n  in0: {{ lcp: in0, mac: \"{mac}\", addresses: [ 10.1.0.1/24 ] }}\n\
         ports:\n  in0: {{ pcap: {{ rx: {} }} }}\n\
         routes: [ {{ prefix: 48.0.0.0/8, blackhole: true }} ]\n",
        file.display()
    );
    let router = Router::start(&netns, &yaml);
    let ended = || {
        let shown = router.show(&["errors"]);
        shown["errors"].as_array().unwrap().clone()
    };
    let all = |errors: &[Value]| {
        let counts = errors.iter().map(|error| error["count"].as_u64().unwrap());
        counts.sum::<u64>() >= PACKETS.into()
    };
    assert!(until(patience(), || all(&ended())), "{:?}", ended());
    let errors = ended();
    let blackholed = errors
        .iter()
        .find(|error| error["reason"].as_str().unwrap().contains("blackhole"));
    let count = blackholed.map(|error| error["count"].as_u64().unwrap());
    assert_eq!(count, Some(PACKETS.into()), "{errors:?}");
}

#[test]
fn a_file_is_read_when_its_interface_comes_up() {
    const NAME: &str = "a_file_is_read_when_its_interface_comes_up";
    if skipped(NAME, &["ip"]) {
        return;
    }
    let directory = Directory::new();
    let file = write(&directory);
    let netns = Netns::create("router").unwrap();
    let mac = text(R0);
    let yaml = format!(
        "interfaces:\n  in0: {{ lcp: in0, mac: \"{mac}\", addresses: [ 10.1.0.1/24 ], state: down }}\n  \
         out0: {{ lcp: out0, addresses: [ 10.2.0.1/24 ] }}\n\
         ports:\n  in0: {{ pcap: {{ rx: {} }} }}\n  out0: {{ pcap: {{}} }}\n\
         routes: [ {{ prefix: 48.0.0.0/8, via: 10.2.0.2 }} ]\n",
        file.display()
    );
    let router = Router::start(&netns, &yaml);
    let neighbor = text(H1);
    netns
        .ip(&format!("neigh add 10.2.0.2 lladdr {neighbor} dev out0"))
        .unwrap();
    let resolved = || router.show_text(&["neighbors"]).contains(&neighbor);
    assert!(until(patience(), resolved));
    assert_eq!(count(&router, "in0", "rx_packets"), 0);
    netns.ip("link set dev in0 up").unwrap();
    let received = || count(&router, "in0", "rx_packets") >= PACKETS.into();
    assert!(
        until(patience(), received),
        "{}",
        router.show_text(&["errors"])
    );
    let sent = || count(&router, "out0", "tx_packets") >= PACKETS.into();
    assert!(until(patience(), sent), "{}", router.show_text(&["errors"]));
}
