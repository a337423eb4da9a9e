//! Each kind of port, opened in a network namespace, and what cannot be.

use std::fs;
use std::sync::Arc;

use graph::pool::{STRIDE, STRIDE_AF_XDP};
use graph::{Buffers, Frame, Pool};
use io::{af_xdp, memif, tap};
use ports::{Device, Open, OpenError, Opener, Receive, null, pcap};
use tables::Sizes;
use testbed::veth::{self, End};
use testbed::{Directory, Netns, root_with};

/// The error of what must not be open.
fn refused(opened: Result<Open, OpenError>) -> String {
    opened.err().expect("is refused").to_string()
}

#[test]
fn what_only_swallows_receives_nothing() {
    let directory = Directory::new();
    let writer = pcap("p0", None, Some(&directory.path().join("out"))).expect("a port");
    let pool = Pool::new(64, STRIDE).expect("memory");
    let mut buffers = Buffers::new(pool.clone());
    for mut open in [null(), writer] {
        let port = &mut open.queues[0];
        let mut frame = Frame::default();
        for _ in 0..3 {
            frame.put(buffers.copy_in(&[1; 60]).expect("a buffer"));
            assert_eq!(frame.send(&mut **port, &mut buffers), 1);
            port.rx(&mut buffers, &mut frame);
            assert!(frame.is_empty(), "{}", port.name());
        }
    }
    drop(buffers);
    assert_eq!(pool.available(), 64);
}

#[test]
fn a_capture_file_is_named_where_it_is_wrong() {
    let directory = Directory::new();
    let [missing, text, out] = ["missing", "text", "out"].map(|name| directory.path().join(name));
    fs::write(&text, "no packets").expect("a file");
    let error = refused(pcap("p0", Some(&missing), None));
    assert!(
        error.starts_with(&format!("{}: ", missing.display())),
        "{error}"
    );
    let error = refused(pcap("p0", Some(&text), None));
    assert!(
        error.starts_with(&format!("{}: not a pcap file", text.display())),
        "{error}"
    );
    let open = pcap("p0", None, Some(&out)).expect("is made");
    assert_eq!((open.queues.len(), open.describe().as_str()), (1, "pcap"));
    assert!(out.exists());
}

#[test]
fn nothing_is_a_port_too() {
    let open = null();
    assert_eq!(
        (open.queues.len(), open.mode(), open.program()),
        (1, "null", None)
    );
}

#[test]
fn a_memif_waits_for_its_peer() {
    let (directory, mut opener) = (Directory::new(), Opener::default());
    let socket = directory.path().join("socket").display().to_string();
    let config = memif::Config::new("m0", &socket, memif::Role::Server);
    let open = opener.memif(config.clone()).expect("is open");
    assert_eq!(open.describe(), "memif not connected, waits for its peer");
    assert_eq!(open.memif().map(|status| status.up), Some(false));
    let error = refused(opener.memif(config));
    assert_eq!(
        error,
        format!("memif id 0 on socket {socket} is already configured")
    );
}

#[test]
fn a_tap_is_made_where_it_is_wanted() {
    if !root_with("a_tap_is_made_where_it_is_wanted", &["ip"]) {
        return;
    }
    let netns = Netns::create("tap").expect("root makes namespaces");
    let make = |config| ports::tap(Some(&netns.path()), config);
    let config = tap::Config {
        name: "t0".into(),
        up: true,
        ..tap::Config::default()
    };
    let open = make(&config).expect("is made");
    assert_eq!(
        (open.describe().as_str(), open.is_deleted_tap()),
        ("tap", false)
    );
    assert!(netns.ip("link show t0").expect("is there").contains("UP"));
    let error = refused(make(&config));
    let advice = ": a device has that name; choose another";
    assert!(
        error.starts_with("making tap t0: ") && error.ends_with(advice),
        "{error}"
    );
}

/// Two ends of a veth pair with two queues each.
fn pair() -> [Netns; 2] {
    let netns = ["left", "right"].map(|end| Netns::create(end).expect("root makes namespaces"));
    let end = |i: usize| End {
        netns: &netns[i],
        name: ["left", "right"][i],
        mac: ["02:00:00:00:00:01", "02:00:00:00:00:02"][i],
        address: None,
    };
    veth::pair(end(0), end(1), 1500).expect("a pair");
    for (netns, name) in netns.iter().zip(["left", "right"]) {
        let queues = ["ethtool", "-L", name, "rx", "2", "tx", "2"];
        netns.exec(&queues).expect("a veth has them");
    }
    netns
}

#[test]
fn a_device_has_the_program_that_it_needs() {
    if !root_with("a_device_has_the_program_that_it_needs", &["ip", "ethtool"]) {
        return;
    }
    let _alone = testbed::alone();
    let ends = pair();
    let pool: Arc<Pool> = Pool::new(1 << 16, STRIDE_AF_XDP).expect("memory");
    let programs = xdp::Router::new(Sizes::default()).expect("loads");
    let device = |end: usize, receive| {
        let device = Device {
            name: ["left", "right"][end],
            queues: None,
            mode: af_xdp::Mode::Copy,
            receive,
        };
        Opener::new(Some(&ends[end].path())).device(&device, &pool)
    };
    let router = device(0, Receive::Router(&programs, 1)).expect("is open");
    let expected = "af_xdp on left, copy, native program, queues: 2";
    assert!(
        router.describe().starts_with(expected),
        "{}",
        router.describe()
    );
    // Each queue counts what is wrong with it, and what its looks have found.
    assert_eq!((router.queues.len(), router.counters.len()), (2, 4));
    assert!(!router.has_unfinished());
    let receiver = device(1, Receive::Everything).expect("is open");
    assert_eq!(
        (receiver.program(), receiver.mode()),
        (Some(xdp::Mode::Native), "copy")
    );
    drop(receiver);
    let sender = device(1, Receive::Nothing).expect("is open, once the kernel has let go");
    assert_eq!(sender.program(), None);
    assert!(sender.describe().contains("no program"));
    let error = refused(device(0, Receive::Everything));
    assert!(error.contains("left already has an XDP program"), "{error}");
}

#[test]
fn a_device_that_is_not_there_is_named() {
    let pool: Arc<Pool> = Pool::new(64, STRIDE_AF_XDP).expect("memory");
    let device = Device {
        name: "nowhere0",
        queues: Some(1),
        mode: af_xdp::Mode::Auto,
        receive: Receive::Nothing,
    };
    let error = refused(Opener::default().device(&device, &pool));
    assert_eq!(error, "nowhere0: no such interface");
}
