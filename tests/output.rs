//! What is printed where nobody reads any more (`| head`), or where there is no room.

use std::fs::File;
use std::io::pipe;
use std::process::{Command, Output, Stdio};
use std::sync::Arc;

use control::api::{Client, Handler, Output as Answer, Server};
use control::config::Control;

use rustix::process::{Pid, Signal, kill_process};

use crate::harness::{Netns, PARSHALL, PATIENCE, inside, skipped, until};

/// Answers at length.
struct Long;

impl Handler for Long {
    fn call(&self, _: &control::cli::Command, json: bool) -> Result<Answer, String> {
        let text = "a line\n".repeat(100_000);
        Ok(match json {
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
    let mut command = Command::new(PARSHALL);
    let command = command.args(args).stdout(stdout).stderr(stderr);
    let child = command.spawn().expect("the binary starts");
    child.wait_with_output().expect("it ends")
}

#[test]
fn a_closed_pipe_ends_it_quietly() {
    let directory = tempfile::tempdir().expect("a directory");
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
    // A disk that is full is no pipe.
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
fn the_router_outlives_who_reads_its_log() {
    if skipped("the_router_outlives_who_reads_its_log", &["ip"]) {
        return;
    }
    let netns = Netns::create("unread").expect("root may");
    let directory = tempfile::tempdir().expect("a directory");
    let [file, socket] = ["router.yaml", "cli.sock"].map(|name| directory.path().join(name));
    std::fs::write(&file, "interfaces: {}\n").expect("written");
    let mut command = Command::new(PARSHALL);
    command.args(["run", "-c"]).arg(&file);
    command.arg("--socket").arg(&socket).stderr(closed());
    let mut child = inside(&netns, || command.spawn().expect("the binary starts"));
    let answers = || Client::connect(&socket)?.call(&["show", "version"], false);
    let answered = until(PATIENCE, || {
        answers().is_ok() || !matches!(child.try_wait(), Ok(None))
    });
    let _ = kill_process(Pid::from_child(&child), Signal::TERM);
    let status = child.wait().expect("it ends");
    assert!(answered && status.success(), "{status}");
}
