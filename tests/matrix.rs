//! `parshall matrix` with devices of commands: its results, and what a signal and a sudden end leave.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::harness::{PARSHALL, patience, until};

const FILE: &str = "title: A count
axes: { n: [1, 2] }
device: command
rounds: 3
warm-up: 0
prepare: touch device
measure: >
  echo $n >> runs;
  if [ -e hang ]; then sleep 1000 & echo $! > sleeping; wait; fi;
  echo $n
teardown: rm device; echo x >> torn
";

fn parshall(directory: &Path) -> Child {
    let mut command = Command::new(PARSHALL);
    command.args(["matrix", "m.yaml", "-o", "m.html", "--seed", "5"]);
    let command = command.current_dir(directory).stdin(Stdio::null());
    let command = command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().unwrap()
}

fn lives(pid: &str) -> bool {
    let stat = fs::read_to_string(format!("/proc/{}/stat", pid.trim()));
    stat.is_ok_and(|stat| !stat.contains(") Z "))
}

/// Starts one whose first measurement hangs, and ends it by a signal.
fn ended_by(signal: Signal, directory: &Path) -> (std::process::Output, String) {
    fs::write(directory.join("m.yaml"), FILE).unwrap();
    fs::write(directory.join("hang"), "").unwrap();
    let child = parshall(directory);
    let sleeping = directory.join("sleeping");
    let hangs = || fs::read_to_string(&sleeping).is_ok_and(|pid| pid.ends_with('\n'));
    assert!(until(patience(), hangs));
    kill_process(Pid::from_child(&child), signal).unwrap();
    let output = child.wait_with_output().unwrap();
    fs::remove_file(directory.join("hang")).unwrap();
    (output, fs::read_to_string(sleeping).unwrap())
}

/// The next start puts the device away, goes on, and writes the result.
fn goes_on(directory: &Path) {
    let output = parshall(directory).wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{output:?}");
    assert!(
        said.contains("Runs of each: 3, in random order (seed 5)"),
        "{said}"
    );
    assert!(!directory.join("device").exists());
    assert!(!directory.join("m.json.journal").exists());
    let json = fs::read_to_string(directory.join("m.json")).unwrap();
    let json: Value = serde_json::from_str(&json).unwrap();
    assert!(json["runs"].as_array().unwrap().len() >= 6, "{json}");
    assert!(
        fs::read_to_string(directory.join("m.html"))
            .unwrap()
            .contains("A count")
    );
}

#[test]
fn a_signal_ends_the_command_and_puts_its_device_away() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    let (output, sleeping) = ended_by(Signal::INT, directory);
    assert_eq!(output.status.code(), Some(130), "{output:?}");
    assert!(!directory.join("device").exists());
    assert_eq!(fs::read_to_string(directory.join("torn")).unwrap(), "x\n");
    assert!(until(patience(), || !lives(&sleeping)));
    goes_on(directory);
}

#[test]
fn after_a_sudden_end_the_device_is_put_away_first() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    let (_, sleeping) = ended_by(Signal::KILL, directory);
    assert!(directory.join("device").exists());
    goes_on(directory);
    // Nobody could end what the command had started.
    if let Some(pid) = sleeping.trim().parse().ok().and_then(Pid::from_raw) {
        let _ = kill_process(pid, Signal::KILL);
    }
}

#[test]
fn another_file_does_not_go_on() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    ended_by(Signal::INT, directory);
    fs::write(directory.join("m.yaml"), FILE.replace("[1, 2]", "[1, 3]")).unwrap();
    let output = parshall(directory).wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        !output.status.success()
            && said.contains("m.json.journal: the matrix file has changed since"),
        "{said}"
    );
}
