//! Leaves nothing behind: what was made is removed at the end, on a signal, and, if the maker was killed, by the next
//! one that starts.
//!
//! A maker is known by its process number and by when it started, because numbers are used again. It writes the time
//! to `/run/parshall/lab-<pid>/started`, beside the logs of its processes. Whatever carries the number of a
//! process that is gone, or is another one by now, is a leftover.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
};

use rustix::process::{Pid, Signal, kill_process};

use crate::{Error, command, netns::PREFIX};

const RUN: &str = "/run/parshall";
const NETNS: &str = "/run/netns";

/// True if the process may make namespaces: it runs as root.
pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Directory of this process under `/run/parshall`: logs, sockets, configurations. Removed at the end.
pub fn directory() -> PathBuf {
    directory_of(std::process::id())
}

fn directory_of(pid: u32) -> PathBuf {
    Path::new(RUN).join(format!("lab-{pid}"))
}

/// Something of ours is there. Dropped with the last one of this process, [`directory`] goes.
#[derive(Debug)]
pub struct Registered(());

/// How many there are.
static REGISTERED: Mutex<usize> = Mutex::new(0);

/// Makes [`directory`] and notes there who we are. Called by whatever makes something, and held as long as that is there.
///
/// # Errors
/// Needs root.
pub fn register() -> Result<Registered, Error> {
    let mut count = REGISTERED.lock().unwrap_or_else(PoisonError::into_inner);
    if *count == 0 {
        let directory = directory();
        let file = directory.join("started");
        let started = started(std::process::id()).unwrap_or_default();
        fs::create_dir_all(&directory).map_err(|e| Error::file(&directory, e))?;
        fs::write(&file, started).map_err(|e| Error::file(&file, e))?;
    }
    *count += 1;
    Ok(Registered(()))
}

impl Drop for Registered {
    fn drop(&mut self) {
        let mut count = REGISTERED.lock().unwrap_or_else(PoisonError::into_inner);
        *count -= 1;
        if *count == 0 {
            let _ = fs::remove_dir_all(directory());
        }
    }
}

/// When a process started, in clock ticks since boot (field 22 of `/proc/<pid>/stat`); `None` if there is none.
fn started(pid: u32) -> Option<String> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The second field is the name in parentheses and may hold blanks itself.
    stat.rsplit_once(')')?
        .1
        .split_whitespace()
        .nth(19)
        .map(str::to_owned)
}

/// Whether the maker with this number still runs. One that left no note is believed to be alive if its number is.
fn alive(pid: u32) -> bool {
    match (
        started(pid),
        fs::read_to_string(directory_of(pid).join("started")),
    ) {
        (None, _) => false,
        (Some(now), Ok(then)) => now == then,
        (Some(_), Err(_)) => true,
    }
}

/// Process number of the maker in a name that begins with `prefix`.
fn maker(name: &str, prefix: &str) -> Option<u32> {
    let rest = name.strip_prefix(prefix)?;
    rest.split('-').next()?.parse().ok()
}

/// Names in a directory that begin with `prefix`, each with its maker.
fn made(directory: &str, prefix: &str) -> Vec<(String, u32)> {
    let Ok(entries) = fs::read_dir(directory) else {
        return Vec::new();
    };
    let names = entries
        .flatten()
        .filter_map(|entry| entry.file_name().into_string().ok());
    names
        .filter_map(|name| maker(&name, prefix).map(|pid| (name, pid)))
        .collect()
}

/// Ends every process inside the namespace and deletes it; its links go with it. One that is gone already is fine.
pub fn delete_netns(name: &str) {
    if let Ok(pids) = command::run(&["ip", "netns", "pids", name]) {
        for pid in pids
            .split_whitespace()
            .filter_map(|pid| pid.parse().ok())
            .filter_map(Pid::from_raw)
        {
            let _ = kill_process(pid, Signal::KILL);
        }
    }
    let _ = command::run(&["ip", "netns", "del", name]);
}

/// Removes what makers left that were killed: their namespaces with all processes and links in them, and their
/// directories. Returns a line for each thing removed.
pub fn leftovers() -> Vec<String> {
    remove(|pid| !alive(pid))
}

/// Removes everything that this process made.
pub fn own() -> Vec<String> {
    remove(|pid| pid == std::process::id())
}

fn remove(condemned: impl Fn(u32) -> bool) -> Vec<String> {
    let mut removed = Vec::new();
    for (name, _) in made(NETNS, PREFIX)
        .into_iter()
        .filter(|(_, pid)| condemned(*pid))
    {
        delete_netns(&name);
        removed.push(format!("namespace {name}"));
    }
    for (name, _) in made(RUN, "lab-")
        .into_iter()
        .filter(|(_, pid)| condemned(*pid))
    {
        let path = Path::new(RUN).join(name);
        let _ = fs::remove_dir_all(&path);
        removed.push(format!("directory {}", path.display()));
    }
    removed
}

/// From now on SIGINT, SIGTERM and SIGHUP remove everything that this process made, and end it with the exit code
/// that a shell gives for the signal (128 + its number).
///
/// # Errors
/// If the handler cannot be installed.
pub fn on_signal() -> Result<(), Error> {
    use signal_hook::{consts, iterator::Signals};
    let mut signals = Signals::new([consts::SIGINT, consts::SIGTERM, consts::SIGHUP])
        .map_err(|e| Error::file("signals", e))?;
    std::thread::spawn(move || {
        if let Some(signal) = signals.forever().next() {
            own();
            std::process::exit(128 + signal);
        }
    });
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn maker_is_in_the_name() {
        assert_eq!(maker("parshall-lab-77-3-dut", PREFIX), Some(77));
        assert_eq!(maker("lab-78", "lab-"), Some(78));
        assert_eq!(maker("parshall-lab-x", PREFIX), None);
        assert_eq!(maker("other", PREFIX), None);
    }

    #[test]
    fn we_are_alive() {
        assert!(started(std::process::id()).is_some_and(|ticks| ticks.parse::<u64>().is_ok()));
        assert!(!alive(u32::MAX));
    }

    #[test]
    fn namespace_of_a_dead_maker_goes() {
        if !is_root() {
            println!("SKIP namespace_of_a_dead_maker_goes: needs root");
            return;
        }
        // No process has the highest number: pid_max is at most 2^22.
        let name = format!("{PREFIX}4194304-0-left");
        command::run(&["ip", "netns", "add", &name]).unwrap();
        let removed = leftovers();
        assert!(
            removed.contains(&format!("namespace {name}")),
            "{removed:?}"
        );
        assert!(!Path::new(NETNS).join(&name).exists());
    }
}
