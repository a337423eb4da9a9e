//! `parshall console` from a pipe and on a terminal: what it says it sent is in the capture.

use std::path::Path;
use std::time::Duration;

use crate::harness::{Directory, PARSHALL, PseudoTerminal, Spawn, patience, skipped, until};

/// Packets sent, by the rows of port 0 in what `stats` printed.
fn sent(said: &str) -> Vec<u64> {
    let rows = said.lines().filter(|line| line.starts_with("0  "));
    let counts = rows.filter_map(|row| row.split_whitespace().nth(6)?.parse().ok());
    counts.collect()
}

/// Packets in a capture of packets of 60 bytes.
fn captured(file: &Path) -> u64 {
    let bytes = std::fs::metadata(file).expect("it was written").len();
    assert_eq!((bytes - 24) % 76, 0, "{bytes} bytes");
    (bytes - 24) / 76
}

#[test]
fn a_script_ends_at_its_first_error() {
    if skipped("a_script_ends_at_its_first_error", &[]) {
        return;
    }
    let directory = Directory::new();
    let file = directory.path().join("out.pcap");
    let port = format!("pcap:{}", file.display());
    let run = |script: &str| {
        let console = Spawn::new(PARSHALL).args(["console", "--port", &port, "--speed", "1gbps"]);
        let output = console.input(script).output(Duration::from_secs(60));
        let output = output.expect("it ends");
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let (said, why) = (text(&output.stdout), text(&output.stderr));
        (output.status.code(), said, why)
    };
    let (code, said, why) = run("start -f udp_1pkt_simple -m 1kpps -d 0.3\n");
    assert_eq!(
        (code, said.as_str()),
        (Some(0), "started: port 0\n"),
        "{why}"
    );
    assert!((1..=301).contains(&captured(&file)), "the end waits for it");
    let (code, said, why) = run("ports\n\npush -f a.pcap\nports\n");
    assert_eq!((code, said.lines().count()), (Some(1), 2), "{said}");
    assert!(
        why.contains("line 3: `push`: a capture is a profile"),
        "{why}"
    );
}

#[test]
fn a_session_on_a_terminal_leaves_it_as_it_was() {
    if skipped("a_session_on_a_terminal_leaves_it_as_it_was", &[]) {
        return;
    }
    let directory = Directory::new();
    let file = directory.path().join("out.pcap");
    let terminal = PseudoTerminal::open(24, 160);
    let modes = terminal.modes();
    let port = format!("pcap:{}", file.display());
    let state = directory.path().display().to_string();
    let console = Spawn::new(PARSHALL)
        .args(["console", "--port", &port, "--speed", "1gbps"])
        .env("XDG_STATE_HOME", &state)
        .env("TERM", "xterm")
        .on_terminal(terminal.for_program());
    let mut console = console.start().expect("the binary starts");
    terminal.await_text("parshall");
    terminal.enter("start -f udp_1pkt_simple -m 1kpps\r");
    terminal.await_text("started: port 0");
    terminal.enter("service\r");
    terminal.await_text("there is no service mode");
    terminal.enter("\x03");
    terminal.await_text("stopped; Ctrl-C again leaves");
    terminal.enter("stats\r");
    terminal.await_that("counts of port 0", |said| !sent(said).is_empty());
    let counted = sent(&terminal.text());
    terminal.enter("\x03");
    terminal.await_that("one after a line does not leave", |said| {
        said.matches("Ctrl-C again leaves").count() == 2
    });
    terminal.enter("\x03");
    let ended = console.wait(patience()).expect("it ends");
    assert!(ended.success(), "{}", terminal.text());
    assert_eq!(counted, [captured(&file)]);
    assert!(until(patience(), || terminal.modes() == modes));
    let history = directory.path().join("parshall/console-history");
    let history = std::fs::read_to_string(history).expect("lines typed");
    assert!(history.starts_with("start -f udp_1pkt_simple"), "{history}");
}

#[test]
fn a_terminal_that_is_closed_ends_the_console() {
    if skipped("a_terminal_that_is_closed_ends_the_console", &[]) {
        return;
    }
    let directory = Directory::new();
    let file = directory.path().join("out.pcap");
    let terminal = PseudoTerminal::open(24, 160);
    let port = format!("pcap:{}", file.display());
    let console = Spawn::new(PARSHALL)
        .args(["console", "--port", &port, "--speed", "1gbps"])
        .env("XDG_STATE_HOME", directory.path().display().to_string())
        .env("TERM", "xterm")
        .on_terminal(terminal.for_program());
    let mut console = console.start().expect("the binary starts");
    terminal.await_text("parshall");
    terminal.enter("start -f udp_1pkt_simple -m 1kpps\r");
    terminal.await_text("started: port 0");
    let history = directory.path().join("parshall/console-history");
    let kept = || std::fs::read_to_string(&history).unwrap_or_default();
    assert!(until(patience(), || kept().contains("udp_1pkt_simple")));
    terminal.close();
    console.wait(patience()).expect("it ends");
    assert!(captured(&file) > 0, "the port is closed");
}
