//! Taps that somebody deletes, and names that somebody takes.

use std::time::{Duration, Instant};

use io::memif;

use crate::harness::topology::H1;
use crate::harness::{Directory, Hosts, Netns, Raw, Router, patience, skipped, until};
use crate::life::under_traffic;

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

/// A router with a memif `m0`, to which a client is connected, and with a tap port `t0`.
struct Lab {
    memif: memif::Interface,
    _queues: Vec<memif::Queue>,
    _control: memif::Control,
    router: Router,
    _directory: Directory,
    netns: Netns,
}

impl Lab {
    fn start() -> Self {
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
        let (memif, queues) = control.add(config).unwrap();
        let lab = Self {
            memif,
            _queues: queues,
            _control: control,
            router,
            _directory: directory,
            netns,
        };
        assert!(until(patience(), || lab.memif.status().up));
        lab.assert_host_answers();
        lab
    }

    fn assert_host_answers(&self) {
        let answers = until(patience(), || host_answers(&self.netns));
        assert!(answers, "{}", self.router.process.log());
    }

    /// Fails unless a device is up and has an address, soon.
    fn assert_has_address(&self, device: &str, address: &str) {
        let shown = || self.netns.ip(&format!("-4 address show dev {device} up"));
        let has = until(patience(), || {
            shown().is_ok_and(|shown| shown.contains(address))
        });
        assert!(has, "{}", self.router.process.log());
    }

    /// The port of `m0`, as the router shows it.
    fn port(&self) -> String {
        let hardware = self.router.show(&["hardware", "m0"]);
        hardware["interfaces"][0]["port"].to_string()
    }
}

#[test]
fn a_deleted_host_tap_is_made_again_and_its_port_stays_up() {
    const NAME: &str = "a_deleted_host_tap_is_made_again_and_its_port_stays_up";
    if skipped(NAME, &["ip"]) {
        return;
    }
    let lab = Lab::start();
    let index = |name: &str| {
        let shown = lab.netns.ip(&format!("-o link show dev {name}"));
        shown.unwrap()
    };
    for (name, address) in [("m0", "10.9.0.1/24"), ("t0", "10.9.1.1/24")] {
        let before = index(name);
        lab.netns.ip(&format!("link del {name}")).unwrap();
        lab.assert_has_address(name, address);
        assert_ne!(before, index(name));
    }
    assert!(lab.memif.status().up);
    let log = lab.router.process.log();
    assert!(!log.contains("interface m0: link down"), "{log}");
    lab.assert_host_answers();
}

#[test]
fn a_deleted_port_tap_is_made_again() {
    if skipped("a_deleted_port_tap_is_made_again", &["ip"]) {
        return;
    }
    let lab = Lab::start();
    lab.netns.ip("link del t0-port").unwrap();
    lab.assert_host_answers();
}

#[test]
fn nothing_leaves_by_a_port_tap_that_was_deleted() {
    if skipped("nothing_leaves_by_a_port_tap_that_was_deleted", &["ip"]) {
        return;
    }
    let (hosts, router) = Hosts::on_taps([1500, 1500]);
    let (left, _right) = hosts.raw();
    under_traffic(&left, || {
        hosts.right.ip("link del h1").unwrap();
        // The new one is in the router's namespace.
        for _ in 0..4 {
            let is_renewed = || hosts.router.ip("link del h1").is_ok();
            assert!(until(patience(), is_renewed), "{}", router.process.log());
        }
    });
    let errors = router.show_text(&["errors"]);
    assert!(!errors.contains("no port serves"), "{errors}");
}

#[test]
fn a_port_waits_until_the_name_of_its_tap_is_free() {
    if skipped("a_port_waits_until_the_name_of_its_tap_is_free", &["ip"]) {
        return;
    }
    let lab = Lab::start();
    lab.router.process.signal(rustix::process::Signal::STOP);
    lab.netns.ip("link del m0").unwrap();
    let taken = "link add m0 type veth peer name other";
    lab.netns.ip(taken).unwrap();
    lab.router.process.signal(rustix::process::Signal::CONT);
    let waits = until(patience(), || lab.port().contains("waiting: making tap m0"));
    assert!(waits, "{}", lab.port());
    assert!(until(patience(), || !lab.memif.status().up));
    lab.netns.ip("link del m0").unwrap();
    let up = until(patience(), || lab.memif.status().up);
    assert!(up, "{}", lab.port());
    let connected = until(patience(), || lab.port().contains("connected to theirs"));
    assert!(connected, "{}", lab.port());
    lab.assert_has_address("m0", "10.9.0.1/24");
}

/// Interfaces of a router, none with a route: their taps alone take time.
const MANY: usize = 60;

/// `MANY` loopbacks, each of which is one tap, or so many TAPs, which are two each.
fn many(taps: bool) -> String {
    let named = |form: &dyn Fn(usize) -> String| (0..MANY).map(form).collect::<String>();
    match taps {
        true => {
            let interfaces = named(&|i| format!("  tap{i}: {{ }}\n"));
            let taps = named(&|i| format!("  tap{i}: {{ host: {{ name: h{i} }} }}\n"));
            format!("interfaces:\n{interfaces}taps:\n{taps}")
        }
        false => format!("loopbacks:\n{}", named(&|i| format!("  loop{i}: {{ }}\n"))),
    }
}

/// The kernel takes some 20 ms for each tap that it removes alone.
#[test]
fn many_taps_go_about_as_soon_as_loopbacks() {
    const NAME: &str = "many_taps_go_about_as_soon_as_loopbacks";
    if skipped(NAME, &["ip"]) {
        return;
    }
    let measure = |taps: bool| {
        let netns = Netns::create("router").unwrap();
        let links = || netns.ip("-o link").unwrap().lines().count();
        let none = links();
        let mut router = Router::start(&netns, &many(taps));
        assert_eq!(links(), none + if taps { 2 * MANY } else { MANY });
        let whole = std::fs::read_to_string(router.file()).unwrap();
        let file = router.file().display().to_string();
        let apply = |yaml: &str| {
            std::fs::write(&file, yaml).unwrap();
            let begin = Instant::now();
            router.ask(&["apply", "-c", &file]).unwrap();
            begin.elapsed()
        };
        let removal = apply("interfaces: {}\n");
        assert_eq!(links(), none, "{}", router.process.log());
        apply(&whole);
        assert_eq!(links(), none + if taps { 2 * MANY } else { MANY });
        let begin = Instant::now();
        router.process.stop().unwrap();
        let stop = begin.elapsed();
        assert_eq!(links(), none, "{}", router.process.log());
        println!("taps {taps}: removal {removal:?}, stop {stop:?}");
        [removal, stop]
    };
    let (loopbacks, taps) = (measure(false), measure(true));
    for (what, (taps, loopbacks)) in ["removal", "stop"].iter().zip(taps.iter().zip(loopbacks)) {
        // Twice as many taps.
        let most = 5 * loopbacks + Duration::from_millis(200);
        assert!(*taps < most, "{what}: {taps:?}, of loopbacks {loopbacks:?}");
    }
}
