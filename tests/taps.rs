//! Taps that somebody deletes, and names that somebody takes.

use std::time::Duration;

use io::memif;

use crate::harness::topology::H1;
use crate::harness::{Directory, Netns, Raw, Router, patience, skipped, until};

/// Whether the host answers an ARP request that comes in by the tap port `t0-port`, within a
/// second.
fn host_answers(netns: &Netns) -> bool {
    let shown = netns.ip("link show dev t0-port up");
    if !shown.is_ok_and(|shown| shown.contains("t0-port")) {
        return false;
    }
    let port = Raw::open(netns, "t0-port", H1);
    let (asker, own) = ([10, 9, 1, 2], [10, 9, 1, 1]);
    let mut request = [&[0xff; 6][..], &H1, &[8, 6, 0, 1, 8, 0, 6, 4, 0, 1], &H1].concat();
    request.extend([&asker[..], &[0; 6], &own].concat());
    request.resize(60, 0);
    port.send(&request);
    port.expect(Duration::from_secs(1), |frame| {
        frame[12..14] == [8, 6] && frame[20..22] == [0, 2] && frame[28..32] == own
    })
    .is_some()
}

#[test]
fn a_tap_that_somebody_deletes_is_made_again() {
    if skipped("a_tap_that_somebody_deletes_is_made_again", &["ip"]) {
        return;
    }
    let netns = Netns::create("router").unwrap();
    let directory = Directory::new();
    let socket = directory.path().join("m0.sock").display().to_string();
    let yaml = format!(
        "interfaces:\n  m0: {{ lcp: m0, addresses: [ 10.9.0.1/24 ] }}\n  t0: {{ lcp: t0, addresses: [ 10.9.1.1/24 ] }}\n\
         ports:\n  m0: {{ memif: {{ socket: {socket}, role: server }} }}\n  t0: {{ tap: {{ name: t0-port }} }}\n"
    );
    let router = Router::start(&netns, &yaml);
    let control = memif::Control::start().unwrap();
    let config = memif::Config::new("theirs", &socket, memif::Role::Client);
    let (interface, _queues) = control.add(config).unwrap();
    assert!(until(patience(), || interface.status().up));
    assert!(until(patience(), || host_answers(&netns)));

    // The host's end of a port: the port itself stays as it is.
    let index = |name: &str| netns.ip(&format!("-o link show dev {name}")).unwrap();
    let has_address = |name: &str, address: &str| {
        until(patience(), || {
            let shown = netns.ip(&format!("-4 address show dev {name} up"));
            shown.is_ok_and(|shown| shown.contains(address))
        })
    };
    for (name, address) in [("m0", "10.9.0.1/24"), ("t0", "10.9.1.1/24")] {
        let before = index(name);
        netns.ip(&format!("link del {name}")).unwrap();
        assert!(has_address(name, address), "{}", router.process.log());
        assert_ne!(before, index(name));
    }
    assert!(interface.status().up);
    assert!(!router.process.log().contains("interface m0: link down"));
    assert!(
        until(patience(), || host_answers(&netns)),
        "{}",
        router.process.log()
    );

    // The tap that is the port.
    netns.ip("link del t0-port").unwrap();
    assert!(
        until(patience(), || host_answers(&netns)),
        "{}",
        router.process.log()
    );

    // Another device takes the name: the port waits until it is free.
    router.process.signal(rustix::process::Signal::STOP);
    netns.ip("link del m0").unwrap();
    netns.ip("link add m0 type veth peer name other").unwrap();
    router.process.signal(rustix::process::Signal::CONT);
    let port = || {
        let hardware = router.show(&["hardware", "m0"]);
        hardware["interfaces"][0]["port"].to_string()
    };
    assert!(
        until(patience(), || port().contains("waiting: making tap m0")),
        "{}",
        port()
    );
    assert!(until(patience(), || !interface.status().up));
    netns.ip("link del m0").unwrap();
    assert!(until(patience(), || interface.status().up), "{}", port());
    assert!(
        until(patience(), || port().contains("connected to theirs")),
        "{}",
        port()
    );
    assert!(has_address("m0", "10.9.0.1/24"));
}
