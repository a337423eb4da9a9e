//! Processes that come from this one: which there are, how each ended, and how to end them.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::process::{
    Pid, Signal, WaitOptions, WaitStatus, getpid, kill_process, set_child_subreaper, wait,
};

/// Time between two looks at something that is waited for.
pub const TICK: Duration = Duration::from_millis(25);

/// Becomes the parent of all orphans below this process, so that none escapes by starting another
/// one and ending.
pub fn adopt_orphans() {
    set_child_subreaper(Some(getpid())).expect("any process may adopt its orphans");
}

thread_local! {
    /// Ends of processes that nobody has asked about yet. Only the thread that starts processes
    /// takes note of their ends.
    static ENDED: RefCell<BTreeMap<u32, WaitStatus>> = const { RefCell::new(BTreeMap::new()) };
    /// Processes that are not to be ended: they and what comes from them are not among the
    /// [`descendants`].
    static EXCEPT: RefCell<BTreeSet<u32>> = const { RefCell::new(BTreeSet::new()) };
}

/// Takes note of all children that have ended, own ones and adopted ones.
fn reap() {
    while let Ok(Some((pid, status))) = wait(WaitOptions::NOHANG) {
        let pid = pid.as_raw_nonzero().get().unsigned_abs();
        ENDED.with_borrow_mut(|ended| ended.insert(pid, status));
    }
}

/// Takes the end of a child, if it has ended. Said once.
pub fn ended(pid: u32) -> Option<WaitStatus> {
    reap();
    ENDED.with_borrow_mut(|ended| ended.remove(&pid))
}

/// From now on this child is not among the [`descendants`].
pub fn except(pid: u32) {
    EXCEPT.with_borrow_mut(|except| except.insert(pid));
}

/// A process as `/proc` shows it.
#[derive(Clone, Debug, PartialEq)]
pub struct Process {
    pub pid: u32,
    pub parent: u32,
    /// As in ps(1): R, S, D, Z and so on.
    pub state: char,
    pub name: String,
}

impl Process {
    fn of(pid: u32) -> Option<Self> {
        Self::parse(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
    }

    /// From a line of `/proc/PID/stat`; a name may contain blanks and brackets.
    fn parse(stat: &str) -> Option<Self> {
        let (head, tail) = stat.rsplit_once(") ")?;
        let (pid, name) = head.split_once(" (")?;
        let mut words = tail.split(' ');
        Some(Self {
            pid: pid.parse().ok()?,
            state: words.next()?.chars().next()?,
            parent: words.next()?.parse().ok()?,
            name: name.to_owned(),
        })
    }
}

impl std::fmt::Display for Process {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} ({}, state {})", self.pid, self.name, self.state)
    }
}

/// Numbers of all processes.
pub fn numbers() -> Vec<u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    names.filter_map(|name| name.parse().ok()).collect()
}

/// All processes that come from this one and run, parents before their children.
pub fn descendants() -> Vec<Process> {
    reap();
    let all: Vec<Process> = numbers().into_iter().filter_map(Process::of).collect();
    let except = EXCEPT.with_borrow(BTreeSet::clone);
    let mut found: Vec<Process> = Vec::new();
    let mut parents = vec![std::process::id()];
    while let Some(parent) = parents.pop() {
        let children = all.iter().filter(|process| process.parent == parent);
        for child in children.filter(|child| !except.contains(&child.pid)) {
            parents.push(child.pid);
            found.push(child.clone());
        }
    }
    found.retain(|process| process.state != 'Z');
    found
}

/// Waits until no process comes from this one, at most `limit`; those that there are then.
pub fn wait_for_all(limit: Duration) -> Vec<Process> {
    let end = Instant::now() + limit;
    let mut pause = Duration::from_millis(5);
    loop {
        let left = descendants();
        if left.is_empty() || Instant::now() >= end {
            return left;
        }
        // To look at all processes takes a while where time is slow.
        sleep(pause);
        pause = (2 * pause).min(10 * TICK);
    }
}

/// Ends all processes that come from this one; returns those that cannot be ended.
pub fn end_all() -> Vec<Process> {
    signal(&descendants(), Signal::TERM);
    if wait_for_all(Duration::from_secs(2)).is_empty() {
        return Vec::new();
    }
    let end = Instant::now() + sandbox::patience(Duration::from_secs(10));
    loop {
        // A new one may have been started meanwhile.
        signal(&descendants(), Signal::KILL);
        let left = wait_for_all(TICK);
        if left.is_empty() || Instant::now() >= end {
            return left;
        }
    }
}

fn signal(processes: &[Process], signal: Signal) {
    let numbers = processes.iter().filter_map(|p| p.pid.try_into().ok());
    for pid in numbers.filter_map(Pid::from_raw) {
        // It may have ended by itself.
        let _ = kill_process(pid, signal);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_may_contain_anything() {
        let process = Process::parse("12 (a) (b c) S 7 12 12 0 -1").unwrap();
        assert_eq!((process.pid, process.parent, process.state), (12, 7, 'S'));
        assert_eq!(process.name, "a) (b c");
        assert_eq!(Process::parse("12 (a"), None);
    }
}
