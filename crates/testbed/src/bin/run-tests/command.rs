//! Runs a command of which we only want to know what it prints.

use std::fs::File;
use std::io::{Read, Seek};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, WaitStatus, kill_process};

use sandbox::ends_with_starter;

use crate::tasks::{self, TICK};

/// Starts `command` in a process group of its own, so that Ctrl-C reaches only us; it ends with us.
/// Its number.
///
/// # Errors
/// It is not there, or cannot be started.
pub fn start(words: &[&str], prepare: impl FnOnce(&mut Command)) -> Result<u32, String> {
    let mut command = Command::new(words[0]);
    command
        .args(&words[1..])
        .stdin(Stdio::null())
        .process_group(0);
    prepare(&mut command);
    let child = ends_with_starter(&mut command)
        .spawn()
        .map_err(|e| format!("{}: {e}", words[0]))?;
    Ok(child.id())
}

/// A command's standard output, if it succeeds. One that is not done after `limit` is killed, and
/// not waited for if that does not end it.
///
/// # Errors
/// It cannot be started, fails (with what it says), or takes too long.
pub fn output(words: &[&str], limit: Duration) -> Result<String, String> {
    let file = || tempfile::tempfile().map_err(|e| e.to_string());
    let (mut output, mut errors) = (file()?, file()?);
    let handle = |file: &File| file.try_clone().map_err(|e| e.to_string());
    let (to_output, to_errors) = (handle(&output)?, handle(&errors)?);
    let pid = start(words, |command| {
        command.stdout(to_output).stderr(to_errors);
    })?;
    let end = Instant::now() + limit;
    let status = loop {
        match tasks::ended(pid) {
            Some(status) => break Some(status),
            None if Instant::now() < end => sleep(Duration::from_millis(5).min(TICK)),
            None => break None,
        }
    };
    if status.is_none() {
        kill(pid);
    }
    match status.and_then(WaitStatus::exit_status) {
        Some(0) => Ok(text(&mut output)),
        _ => Err(failure(words, status, limit, text(&mut errors).trim())),
    }
}

fn failure(words: &[&str], status: Option<WaitStatus>, limit: Duration, said: &str) -> String {
    let words = words.join(" ");
    match status {
        None => format!("{words}: not done after {} s", limit.as_secs()),
        Some(_) if !said.is_empty() => format!("{words}: {said}"),
        Some(status) => format!("{words}: {}", how(status)),
    }
}

/// End of a process, in words.
pub fn how(status: WaitStatus) -> String {
    match (status.exit_status(), status.terminating_signal()) {
        (Some(code), _) => format!("exit code {code}"),
        (None, Some(number)) => match signal_hook::low_level::signal_name(number) {
            Some(name) => format!("signal {number} ({name})"),
            None => format!("signal {number}"),
        },
        (None, None) => "an unknown end".to_owned(),
    }
}

fn kill(pid: u32) {
    if let Some(pid) = pid.try_into().ok().and_then(Pid::from_raw) {
        let _ = kill_process(pid, Signal::KILL);
    }
}

fn text(file: &mut File) -> String {
    let mut bytes = Vec::new();
    let _ = file.rewind().and_then(|()| file.read_to_end(&mut bytes));
    String::from_utf8_lossy(&bytes).into_owned()
}
