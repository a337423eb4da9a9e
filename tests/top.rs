//! `parshall top` on a terminal, beside a real router with traffic, and beside the load tester.

use std::process::ExitStatus;
use std::time::Duration;

use rustix::process::Signal;

use crate::harness::{
    Directory, Netns, PARSHALL, Process, PseudoTerminal, Router, Spawn, patience, skipped, until,
};

/// A router whose memif gets 2000 packets a second for an address that it has no route to.
struct Lab {
    netns: Netns,
    router: Router,
    _directory: Directory,
    _send: Process,
}

fn lab() -> Lab {
    let netns = Netns::create("router").expect("root may make namespaces");
    let directory = Directory::new();
    let socket = directory.path().join("m0.sock").display().to_string();
    let yaml = format!(
        "interfaces:\n  m0: {{ lcp: m0, mac: 02:00:00:00:00:01, addresses: [ 10.9.0.1/24 ] }}\n\
         ports:\n  m0: {{ memif: {{ socket: {socket}, role: server }} }}\n"
    );
    let router = Router::start(&netns, &yaml);
    let port = format!("memif:{socket}");
    let words = [
        "send",
        &port,
        "--dst-mac",
        "02:00:00:00:00:01",
        "-m",
        "2kpps",
    ];
    let send = Spawn::new(PARSHALL)
        .args(words)
        .args(["--duration", "600s"]);
    let send = send.start().expect("the binary starts");
    Lab {
        netns,
        router,
        _directory: directory,
        _send: send,
    }
}

fn top(terminal: &PseudoTerminal, netns: &Netns, words: &[&str], env: &[(&str, &str)]) -> Process {
    let mut spawn = Spawn::new(PARSHALL).args(["top"]).args(words);
    for (name, value) in env {
        spawn = spawn.env(*name, *value);
    }
    let spawn = spawn.inside(netns).on_terminal(terminal.for_program());
    spawn.start().expect("the binary starts")
}

/// Awaits its end, and that the terminal is as it was.
fn ends(terminal: &PseudoTerminal, mut top: Process, modes: &str) -> ExitStatus {
    let ended = top.wait(patience()).expect("it ends");
    assert_eq!(terminal.modes(), modes);
    assert!(until(patience(), || !terminal.is_alternate()));
    ended
}

#[test]
fn top_shows_a_router_with_traffic() {
    if skipped("top_shows_a_router_with_traffic", &["ip"]) {
        return;
    }
    let mut lab = lab();
    let terminal = PseudoTerminal::open(24, 80);
    let before = terminal.modes();
    let socket = lab.router.socket();
    let words = ["--socket", &socket];
    let top_of = |env: &[(&str, &str)]| top(&terminal, &lab.netns, &words, env);
    let shown = top_of(&[("TERM", "xterm"), ("LANG", "C.UTF-8"), ("NO_COLOR", "")]);
    let has_rate = |screen: &str| {
        let row = screen
            .lines()
            .find(|line| line.starts_with("m0 "))
            .unwrap_or_default();
        let rate = row.split_whitespace().nth(2).unwrap_or_default();
        ["k", "M"].iter().any(|unit| rate.ends_with(unit))
    };
    terminal.await_that("a rate of m0", has_rate);
    assert!(terminal.is_alternate() && terminal.has_color());
    assert_ne!(terminal.modes(), before, "raw");
    assert!(terminal.text().contains(" 1 Interfaces  2 Drops "));
    terminal.enter("2");
    let no_route = |screen: &str| {
        let line = screen
            .lines()
            .find(|line| line.contains("lost"))
            .unwrap_or_default();
        line.contains("icmp4-error") && line.contains('k')
    };
    terminal.await_that("a reason for drops, with its rate", no_route);
    terminal.enter("3");
    terminal.await_that("a worker's load", |screen| {
        let line = screen
            .lines()
            .find(|line| line.starts_with("parshall_wk") || line.contains('%'));
        line.is_some()
    });
    terminal.enter("4");
    terminal.await_text("ip4-lookup");

    // A new size, of which the program is told.
    terminal.resize(50, 200);
    shown.signal(Signal::WINCH);
    terminal.enter("1");
    terminal.await_text("rx packets");

    // Its few bytes go over any line.
    std::thread::sleep(Duration::from_secs(1));
    let from = terminal.written();
    std::thread::sleep(Duration::from_secs(2));
    let bytes = terminal.written() - from;
    assert!(bytes < 8000, "{bytes} bytes in 2 s");

    // The router goes and comes.
    lab.router.process.stop().expect("it ends");
    terminal.await_text("no router is running");
    lab.router.relaunch(&lab.netns);
    lab.router.wait();
    terminal.await_that("it is back", |screen| {
        !screen.contains("no router is running")
    });
    terminal.enter("q");
    assert!(ends(&terminal, shown, &before).success());

    // Without colour, and ended by a signal.
    let shown = top(
        &terminal,
        &lab.netns,
        &words,
        &[("TERM", "screen"), ("NO_COLOR", "1")],
    );
    terminal.await_text("m0 ");
    assert!(!terminal.has_color());
    shown.signal(Signal::TERM);
    assert!(ends(&terminal, shown, &before).success());
    let shown = top(&terminal, &lab.netns, &words, &[("TERM", "linux")]);
    terminal.await_text("m0 ");
    terminal.enter("\x03");
    assert!(ends(&terminal, shown, &before).success());
}

#[test]
fn top_without_a_terminal_says_what_to_use() {
    for (term, on_terminal, why) in [("xterm", false, "this is none"), ("dumb", true, "dumb")] {
        let terminal = PseudoTerminal::open(24, 200);
        let mut spawn = Spawn::new(PARSHALL).args(["top"]).env("TERM", term);
        if on_terminal {
            spawn = spawn.on_terminal(terminal.for_program());
        }
        let mut top = spawn.start().expect("the binary starts");
        let ended = top.wait(patience()).expect("it ends");
        assert_eq!(ended.code(), Some(1));
        if on_terminal {
            terminal.await_text(why);
        }
        let said = top.log() + &terminal.text();
        assert!(
            said.contains(why) && said.contains("`parshall show interface`"),
            "{said}"
        );
    }
}

#[test]
fn top_shows_a_load_tester() {
    if skipped("top_shows_a_load_tester", &["ip"]) {
        return;
    }
    let netns = Netns::create("tester").expect("root may make namespaces");
    netns.ip("link set lo up").expect("it is there");
    let directory = Directory::new();
    let pcap = directory.path().join("out.pcap").display().to_string();
    let terminal = PseudoTerminal::open(24, 80);
    let before = terminal.modes();
    let words = ["--trex", "127.0.0.1:4501"];
    let shown = top(&terminal, &netns, &words, &[("TERM", "xterm")]);
    terminal.await_text("nothing answers at 127.0.0.1:4501");
    let serve = |port: &str| {
        let server = Spawn::new(PARSHALL).args(["trex-server", "--port", port]);
        server
            .args(["--speed", "1gbps"])
            .inside(&netns)
            .start()
            .expect("it starts")
    };
    let server = serve(&format!("pcap:{pcap}"));
    terminal.await_text("IDLE");
    terminal.enter("\t");
    terminal.await_text("streams of a packet group");
    drop(server);
    terminal.await_text("127.0.0.1:4501:");
    terminal.enter("q");
    assert!(ends(&terminal, shown, &before).success());
}

#[test]
fn a_terminal_that_is_closed_ends_top() {
    if skipped("a_terminal_that_is_closed_ends_top", &[]) {
        return;
    }
    let directory = Directory::new();
    let terminal = PseudoTerminal::open(24, 80);
    let top = Spawn::new(PARSHALL)
        .args(["top", "--socket"])
        .args([directory.path().join("no.sock").display().to_string()])
        .env("TERM", "xterm")
        .on_terminal(terminal.for_program());
    let mut top = top.start().expect("the binary starts");
    assert!(until(patience(), || terminal.is_alternate()));
    terminal.close();
    top.wait(patience()).expect("it ends");
}
