//! Memif peers that are refused, that connect, and that come and go.

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use io::memif;
use rustix::process::Signal;

use crate::harness::{
    Directory, Netns, PARSHALL, Process, Router, SetOnDrop, Spawn, patience, skipped, until,
};

/// A router with a memif server `m0`, which asks for a secret.
fn with_secret() -> (Netns, Directory, String, Router) {
    let netns = Netns::create("router").unwrap();
    let directory = Directory::new();
    let socket = directory.path().join("m0.sock").display().to_string();
    let yaml = format!(
        "interfaces:\n  m0: {{ lcp: m0 }}\n\
         ports:\n  m0: {{ memif: {{ socket: {socket}, role: server, secret: sesame }} }}\n"
    );
    let router = Router::start(&netns, &yaml);
    (netns, directory, socket, router)
}

#[test]
fn a_refused_client_is_logged_once() {
    if skipped("a_refused_client_is_logged_once", &["ip"]) {
        return;
    }
    let (_netns, _directory, socket, router) = with_secret();
    let control = memif::Control::start().unwrap();
    let client = |secret: &str| {
        let config = memif::Config {
            secret: Some(secret.to_owned()),
            queues: 4,
            ..memif::Config::new("theirs", &socket, memif::Role::Client)
        };
        control.add(config).unwrap()
    };
    let port = || {
        let hardware = router.show(&["hardware", "m0"]);
        hardware["interfaces"][0]["port"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    let stranger = client("open");
    assert!(
        until(patience(), || port().contains("wrong secret")),
        "{}",
        port()
    );
    // Its client comes back several times a second.
    std::thread::sleep(Duration::from_secs(1));
    let log = router.process.log();
    assert_eq!(log.matches("wrong secret").count(), 1, "{log}");
    assert!(log.contains("interface m0: memif: parshall"), "{log}");
    let warnings = || router.show(&["warnings"]).to_string();
    assert!(warnings().contains("wrong secret"), "{}", warnings());
    drop(stranger);
    let (interface, _queues) = client("sesame");
    assert!(until(patience(), || interface.status().up));
    assert!(until(patience(), || !warnings().contains("memif")));
    assert!(until(patience(), || port().contains("connected to theirs")));
    assert!(port().contains("rings: rx 1, tx 1"), "{}", port());
}

#[test]
fn port_and_tap_have_names_and_the_secret_is_hidden() {
    const NAME: &str = "port_and_tap_have_names_and_the_secret_is_hidden";
    if skipped(NAME, &["ip"]) {
        return;
    }
    let (_netns, _directory, _, router) = with_secret();
    let names = || -> Vec<String> {
        let shown = router.show(&["interface"]);
        let names = shown["interfaces"].as_array().unwrap().iter();
        names
            .map(|i| i["name"].as_str().unwrap().to_owned())
            .collect()
    };
    let named = until(patience(), || names() == ["m0", "m0-host"]);
    assert!(named, "{:?}", names());
    for config in [
        router.show_text(&["config"]),
        router.show(&["config"]).to_string(),
    ] {
        assert!(config.contains("hidden") && !config.contains("sesame"));
    }
}

/// A peer comes and goes all the time while routes pour in and the port is queried: the router
/// answers, and ends when asked to.
#[test]
fn a_peer_that_comes_and_goes_holds_nobody_up() {
    if skipped("a_peer_that_comes_and_goes_holds_nobody_up", &["ip"]) {
        return;
    }
    let netns = Netns::create("router").unwrap();
    let directory = Directory::new();
    let socket = directory.path().join("m0.sock").display().to_string();
    let yaml = format!(
        "interfaces:\n  m0: {{ lcp: m0, addresses: [ 10.9.0.1/24 ] }}\n\
         ports:\n  m0: {{ memif: {{ socket: {socket}, role: server }} }}\n"
    );
    let mut router = Router::start(&netns, &yaml);
    assert!(until(patience(), || netns.ip("link set m0 up").is_ok()));
    let routes = |verb: &str| -> String {
        let line = |i| {
            format!(
                "route {verb} 20.{}.{}.0/24 via 10.9.0.2\n",
                i / 256,
                i % 256
            )
        };
        (0..10_000).map(line).collect()
    };
    let (over, changes) = (AtomicBool::new(false), AtomicU32::new(0));
    std::thread::scope(|scope| {
        let _over = SetOnDrop(&over);
        scope.spawn(|| {
            while !over.load(Ordering::Acquire) {
                let control = memif::Control::start().unwrap();
                let config = memif::Config::new("theirs", &socket, memif::Role::Client);
                let (interface, _queues) = control.add(config).unwrap();
                until(Duration::from_millis(500), || interface.status().up);
                changes.fetch_add(u32::from(interface.status().up), Ordering::Relaxed);
            }
        });
        for _ in 0..4 {
            netns.ip_batch(&routes("replace")).unwrap();
            for _ in 0..10 {
                router.show(&["hardware", "m0"]);
            }
            netns.ip_batch(&routes("delete")).unwrap();
        }
        netns.ip_batch(&routes("replace")).unwrap();
        let status = router.process.stop().expect("it ends");
        assert!(status.success(), "{status}");
    });
    let changes = changes.into_inner();
    assert!(changes > 10, "the peer came {changes} times only");
}

/// What a port counts itself is shown as an error, and cleared with the others.
#[test]
fn what_a_port_counts_is_cleared() {
    if skipped("what_a_port_counts_is_cleared", &["ip", "ping"]) {
        return;
    }
    let (netns, _directory, _, router) = with_secret();
    netns.ip("address add 10.9.0.1/24 dev m0").unwrap();
    let counted = || {
        let shown = router.show(&["errors"]);
        let errors = shown["errors"].as_array().unwrap().iter();
        let nodes = errors.map(|e| e["node"].as_str().unwrap().to_owned());
        nodes.filter(|node| node.starts_with("m0/")).count()
    };
    // Without a peer nothing is sent.
    let lost = until(patience(), || {
        let _ = netns.exec(&["ping", "-c1", "-W1", "10.9.0.2"]);
        counted() > 0
    });
    assert!(lost, "{}", router.show_text(&["errors"]));
    netns.ip("link set m0 down").unwrap();
    let cleared = until(patience(), || {
        router.ask(&["clear", "errors"]).unwrap();
        counted() == 0
    });
    assert!(cleared, "{}", router.show_text(&["errors"]));
}

/// The load tester at the server's end of a memif, whose client never comes.
fn tester(command: &str, socket: &Path) -> Process {
    let port = format!("memif:{},id=0,role=server", socket.display());
    let ports = match command {
        "send" => vec![port],
        _ => vec!["--tx".into(), port.clone(), "--rx".into(), port],
    };
    let tester = Spawn::new(PARSHALL).args([command]).args(ports);
    let tester = tester.args(["--dst-mac", "02:00:00:00:00:01", "-m", "1kpps"]);
    let mut tester = tester.start().expect("the binary starts");
    let listens = tester.ready(patience(), || socket.exists());
    listens.expect("it listens");
    tester
}

#[test]
fn a_tester_that_waits_for_its_peer_ends_when_told_and_leaves_nothing() {
    const NAME: &str = "a_tester_that_waits_for_its_peer_ends_when_told_and_leaves_nothing";
    if skipped(NAME, &[]) {
        return;
    }
    let directory = Directory::new();
    let left = directory.path().join("left.sock");
    let mut left_alone = tester("loadtest", &left);
    for command in ["loadtest", "send"] {
        for signal in [Signal::INT, Signal::TERM, Signal::HUP] {
            let socket = directory.path().join("told.sock");
            let mut told = tester(command, &socket);
            told.signal(signal);
            let status = told.wait(patience()).expect("it ends");
            let log = told.log();
            assert_eq!(status.code(), Some(1), "{command}, {signal:?}: {log}");
            assert!(log.contains("interrupted before"), "{command}: {log}");
            assert!(!socket.exists(), "{command}, {signal:?}");
        }
    }
    let status = left_alone.wait(patience()).expect("it gives up");
    let log = left_alone.log();
    assert!(!status.success() && log.contains("no connection"), "{log}");
    assert!(!left.exists());
}

/// The rate of a load test is what a trial flat out shows, and nothing of that trial is in its
/// result.
#[test]
fn a_load_test_holds_what_the_port_takes() {
    if skipped("a_load_test_holds_what_the_port_takes", &[]) {
        return;
    }
    let directory = Directory::new();
    let socket = directory.path().join("line.sock");
    let port = |role: &str| format!("memif:{},id=0,role={role}", socket.display());
    let output = Spawn::new(PARSHALL)
        .args(["loadtest", "--tx", &port("server"), "--rx", &port("client")])
        .args([
            "--src-mac",
            "02:00:00:00:00:02",
            "--dst-mac",
            "02:00:00:00:00:01",
        ])
        .args([
            "-m",
            "max",
            "--duration",
            "1s",
            "--progress",
            "none",
            "--json",
            "-",
        ])
        .output(patience())
        .expect("it ends");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    assert!(said.contains("-m max: "), "{said}");
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let result = &json["parshall"];
    let target = result["target_pps"].as_f64();
    assert!(target.is_some_and(|pps| pps > 1000.0), "{result}");
    let sent = &result["whole"]["ways"][0]["sent"]["packets"];
    assert_eq!(&result["streams"][0]["sent"]["packets"], sent, "{result}");
}
