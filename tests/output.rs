//! Output that nobody reads any more (`| head`), or that there is no room for.

use std::fs::File;
use std::io::pipe;
use std::process::{Output, Stdio};
use std::sync::Arc;
use std::time::Duration;

use control::api::{Client, Handler, Output as Answer, Request, Server};
use control::cli::Command;
use control::config::Control;
use control::history::Who;

use crate::harness::{Directory, Netns, PARSHALL, Spawn, patience, skipped, until};

/// Answers at length.
struct Long;

impl Handler for Long {
    fn call(&self, _: &Command, request: &Request, _: &Who) -> Result<Answer, String> {
        let text = "a line\n".repeat(100_000);
        Ok(match request.json {
            true => Answer::Json(text.into()),
            false => Answer::Text(text),
        })
    }
}

/// The write end of a pipe that has no other.
fn closed() -> Stdio {
    pipe().expect("a pipe").1.into()
}

fn run(args: &[&str], stdout: impl Into<Stdio>, stderr: impl Into<Stdio>) -> Output {
    let spawn = Spawn::new(PARSHALL).args(args);
    let output = spawn.output_to(Duration::from_secs(60), stdout, stderr);
    output.expect("it ends")
}

#[test]
fn a_closed_pipe_ends_it_quietly() {
    let directory = Directory::new();
    let control = Control {
        socket: directory.path().join("cli.sock"),
        group: None,
        show_group: None,
    };
    let _server = Server::start(&control, Arc::new(Long)).expect("a server");
    let socket = control.socket.display().to_string();
    let show = ["show", "version", "--socket", &socket];
    let bench = ["bench", "dataplane", "--rounds", "1", "--only", "ip4-hot"];
    for args in [&show[..], &bench] {
        for args in [args, &[args, &["--json"]].concat()] {
            let output = run(args, closed(), Stdio::piped());
            let said = String::from_utf8_lossy(&output.stderr);
            assert!(
                output.status.success() && said.is_empty(),
                "{args:?}: {said}"
            );
        }
    }
    // A full disk is an error.
    let full = File::options()
        .write(true)
        .open("/dev/full")
        .expect("there");
    let output = run(&show, full, Stdio::piped());
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1));
    assert!(said.starts_with("parshall: standard output: "), "{said}");
}

#[test]
fn nobody_has_to_read_its_errors() {
    let nowhere = ["show", "version", "--socket", "/nonexistent/cli.sock"];
    let output = run(&nowhere, Stdio::null(), closed());
    assert_eq!(output.status.code(), Some(1));
}

#[test]
fn the_router_outlives_the_reader_of_its_log() {
    if skipped("the_router_outlives_the_reader_of_its_log", &["ip"]) {
        return;
    }
    let netns = Netns::create("unread").expect("root may");
    let directory = Directory::new();
    let [file, socket] = ["router.yaml", "cli.sock"].map(|name| directory.path().join(name));
    std::fs::write(&file, "interfaces: {}\n").expect("written");
    let state = directory.path().join("state");
    let [file, cli, state] = [&file, &socket, &state].map(|path| path.display().to_string());
    let router = Spawn::new(PARSHALL);
    let router = router.args(["run", "-c", &file, "--socket", &cli, "--state", &state]);
    let mut router = router
        .inside(&netns)
        .piped()
        .start()
        .expect("the binary starts");
    drop(router.take_output());
    let answers = || Client::connect(&socket)?.call(&["show", "version"], false);
    let answered = until(patience(), || answers().is_ok() || router.ended().is_some());
    let status = router.stop().expect("it ends");
    assert!(answered && status.success(), "{status}");
}
