//! `run-tests` on small programs that do what test programs should not do.

use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use sandbox::ends_with_starter;
use testbed::{patience, until};

/// A run must be over after this, whatever its programs do. Far more than it takes.
const OVER: Duration = Duration::from_secs(120);
const PASSED: &str = "test result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out";

/// A run counts what is on the machine before and after: one at a time, so that none counts what
/// another one makes.
static MACHINE: Mutex<()> = Mutex::new(());

/// A run of shell scripts as test programs; killed when dropped.
struct Run {
    directory: TempDir,
    child: Child,
    _machine: MutexGuard<'static, ()>,
}

impl Run {
    /// Starts it; each program may take `limit` seconds.
    fn start(limit: u32, programs: &[(&str, &str)]) -> Self {
        let machine = MACHINE.lock().unwrap_or_else(PoisonError::into_inner);
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name);
        let mut list = String::new();
        for (name, script) in programs {
            let program = path(name);
            fs::write(&program, format!("#!/bin/bash\n{script}\n")).unwrap();
            fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
            let directory = directory.path().display();
            list += &format!("fake/{name}\t{directory}\t{}\n", program.display());
        }
        fs::write(path("list"), list).unwrap();
        let output = File::create(path("output")).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_run-tests"));
        command
            .arg(path("list"))
            .env("PARSHALL_TEST_LIMIT", limit.to_string())
            .env("PARSHALL_TEST_SETTLE", "3")
            .stdin(Stdio::null())
            .stderr(output.try_clone().unwrap())
            .stdout(output);
        let child = ends_with_starter(&mut command).spawn().unwrap();
        Self {
            directory,
            child,
            _machine: machine,
        }
    }

    fn path(&self) -> &Path {
        self.directory.path()
    }

    /// Output so far.
    fn output(&self) -> String {
        fs::read_to_string(self.path().join("output")).unwrap()
    }

    /// Waits until it has printed this.
    fn prints(&self, text: &str) -> bool {
        until(patience(OVER), || self.output().contains(text))
    }

    /// Its exit status and all that it printed.
    fn end(&mut self) -> (ExitStatus, String) {
        let mut status = None;
        until(patience(OVER), || {
            status = self.child.try_wait().unwrap();
            status.is_some()
        });
        let output = self.output();
        let status = status.unwrap_or_else(|| panic!("the run goes on:\n{output}"));
        (status, output)
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Numbers of processes whose command line is this.
fn running(command_line: &str) -> Vec<String> {
    let output = Command::new("pgrep")
        .args(["--full", "--exact", command_line])
        .output()
        .expect("pgrep is there");
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines().map(str::to_owned).collect()
}

#[track_caller]
fn assert_has(output: &str, lines: &[&str]) {
    for line in lines {
        assert!(output.contains(line), "no \"{line}\" in:\n{output}");
    }
}

#[test]
fn a_program_that_does_not_end_is_shown_and_ended() {
    let mut run = Run::start(
        1,
        &[
            // Neither it nor its child wants to end.
            (
                "hangs",
                "trap '' TERM\necho test a ... ok\nsleep 7000.1 &\nwhile true; do wait; done",
            ),
            ("good", &format!("echo '{PASSED}'")),
        ],
    );
    let (status, output) = run.end();
    assert_eq!(status.code(), Some(1), "{output}");
    assert_has(
        &output,
        &[
            "(hangs, state S), child of",
            " sleep: S (sleeping), wchan ",
            "network namespaces:",
            "last lines of its output:\n    test a ... ok\n",
            "== fake/good: 1 passed, 0 failed",
            "\nFAILED fake/hangs: not done after ",
        ],
    );
    // The tests that had passed, the other program's, perhaps the census; the program itself has
    // failed.
    assert!(
        output.trim_end().ends_with(" failed, 0 skipped"),
        "{output}"
    );
    assert!(running("sleep 7000.1").is_empty());
}

#[test]
fn what_a_program_leaves_behind_holds_nobody_up() {
    let script = format!("setsid sleep 7000.2 &\necho '{PASSED}'");
    let mut run = Run::start(600, &[("leaves", &script)]);
    let (status, output) = run.end();
    assert_eq!(status.code(), Some(1), "{output}");
    assert_has(
        &output,
        &[
            "FAILED fake/leaves: it left processes behind: ",
            " (sleep, state S)",
        ],
    );
    assert!(running("sleep 7000.2").is_empty());
}

#[test]
fn a_program_without_a_result_has_failed() {
    let programs = [
        ("dies", "echo test a ... ok; kill -SEGV $$"),
        ("leaves", "exit 0"),
        ("lies", &format!("echo '{PASSED}'; exit 3")),
    ];
    let (status, output) = Run::start(600, &programs).end();
    assert_eq!(status.code(), Some(1), "{output}");
    assert_has(
        &output,
        &[
            "\nFAILED fake/dies: it ended without a result, signal 11 (SIGSEGV)\n",
            "\nFAILED fake/leaves: it ended without a result, exit code 0\n",
            "\nFAILED fake/lies: it ended with exit code 3\n",
            "== fake/dies: 1 passed",
        ],
    );
}

#[test]
fn a_failure_is_seen_when_it_happens() {
    let script = "echo 'it is wrong'; echo 'test a ... FAILED'\nwhile [ -e hold ]; do sleep 0.1; done\n\
        echo 'SKIP b: no such thing'\n\
        echo 'test result: FAILED. 2 passed; 1 failed; 1 ignored; 0 measured; 0 filtered out'; exit 101";
    let mut run = Run::start(600, &[("goes_on", &format!("touch hold\n{script}"))]);
    assert!(run.prints("it is wrong"), "{}", run.output());
    assert!(!run.output().contains("test result"), "{}", run.output());
    fs::remove_file(run.path().join("hold")).unwrap();
    let (status, output) = run.end();
    assert_eq!(status.code(), Some(1), "{output}");
    assert_has(
        &output,
        &["\nSKIP b: no such thing\nFAILED fake/goes_on: a\n"],
    );
    assert!(
        output.trim_end().ends_with(" failed, 2 skipped"),
        "{output}"
    );
}

#[test]
fn an_error_of_the_kernel_is_seen_when_it_happens() {
    if !testbed::root("an_error_of_the_kernel_is_seen_when_it_happens") {
        return;
    }
    let number = std::process::id();
    let script = format!(
        "touch hold; echo '<6>no error {number}' >/dev/kmsg; echo '<3>run-tests: only a test {number}' >/dev/kmsg\n\
        while [ -e hold ]; do sleep 0.1; done\necho '{PASSED}'"
    );
    let mut run = Run::start(600, &[("says", &script)]);
    let line = format!("\nkernel: run-tests: only a test {number}\n");
    assert!(run.prints(&line), "{}", run.output());
    fs::remove_file(run.path().join("hold")).unwrap();
    let (status, output) = run.end();
    assert!(status.success(), "{output}");
    assert!(!output.contains("no error"), "{output}");
}

#[test]
fn a_namespace_that_is_left_is_named() {
    if !testbed::root("a_namespace_that_is_left_is_named") {
        return;
    }
    // No process has the number 4194304.
    let name = format!("left-4194304-{}", std::process::id());
    let script = format!("ip netns add {name}; echo '{PASSED}'");
    let mut run = Run::start(600, &[("leaves", &script)]);
    let (status, output) = run.end();
    testbed::command::run(&["ip", "netns", "del", &name]).unwrap();
    assert_eq!(status.code(), Some(1), "{output}");
    assert_has(
        &output,
        &["== fake/leaves: 1 passed, 0 failed", "\nFAILED census: "],
    );
    assert_has(&output, &[&format!("more: network namespace {name}")]);
}

#[test]
fn an_interrupted_run_ends_all() {
    for signal in [Signal::INT, Signal::KILL] {
        // A number of its own, by which it is found.
        let command_line = format!("sleep 7000.{}{}", signal.as_raw(), std::process::id());
        let script = format!("echo started\nexec {command_line}");
        let mut run = Run::start(600, &[("goes_on", &script)]);
        assert!(run.prints("started\n"), "{}", run.output());
        assert!(until(patience(OVER), || running(&command_line).len() == 1));
        run.signal(signal);
        let (status, output) = run.end();
        let ended = until(patience(OVER), || running(&command_line).is_empty());
        assert!(ended, "{signal:?}: {output}");
        assert_eq!(
            status.code(),
            (signal == Signal::INT).then_some(130),
            "{output}"
        );
    }
}
