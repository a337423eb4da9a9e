//! The state of a program that does not end: states and stacks of all its tasks, network
//! namespaces, its last lines.

use std::collections::VecDeque;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::time::{Duration, Instant};

use crate::command;
use crate::report::say;
use crate::tasks::{self, Process};

/// The debugger's time for a process.
const DEBUGGER: Duration = Duration::from_secs(30);
/// Its time for all.
const DEBUGGERS: Duration = Duration::from_secs(120);

/// Prints all that can be found out about the processes that come from this one, then the last
/// lines of their output.
pub fn print(last: &VecDeque<String>) {
    let processes = tasks::descendants();
    for process in &processes {
        say(&format!("process {process}, child of {}", process.parent));
        say(&tasks_of(process.pid));
    }
    say(&namespaces());
    let end = Instant::now() + sandbox::patience(DEBUGGERS);
    for process in &processes {
        // One that waits in the kernel without an end would keep the debugger waiting, too.
        if process.state != 'D' && Instant::now() < end {
            say(&stacks(process));
        }
    }
    say("last lines of its output:");
    last.iter().for_each(|line| say(&format!("    {line}")));
}

/// Each task of a process: what it is called, its state, where in the kernel it waits and how it
/// came there.
fn tasks_of(pid: u32) -> String {
    let directory = format!("/proc/{pid}/task");
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let task = |path: std::path::PathBuf| {
        let read = |file: &str| fs::read_to_string(path.join(file)).unwrap_or_default();
        let status = read("status");
        let state = status
            .lines()
            .find_map(|line| line.strip_prefix("State:\t"));
        let stack: String = read("stack")
            .lines()
            .map(|line| format!("        {line}\n"))
            .collect();
        format!(
            "    task {} {}: {}, wchan {}, system call {}\n{stack}",
            path.file_name().unwrap_or_default().display(),
            read("comm").trim(),
            state.unwrap_or("gone"),
            read("wchan"),
            read("syscall").trim(),
        )
    };
    entries.map(|entry| task(entry.path())).collect()
}

/// Network namespaces that have a name or a process that comes from here, each with its processes.
fn namespaces() -> String {
    let inode = |path: String| fs::metadata(path).ok().map(|metadata| metadata.ino());
    let named = fs::read_dir("/run/netns")
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| entry.file_name().into_string().ok());
    let all: Vec<(u32, Option<u64>)> = tasks::numbers()
        .into_iter()
        .map(|pid| (pid, inode(format!("/proc/{pid}/ns/net"))))
        .collect();
    let inside = |namespace: Option<u64>| -> Vec<String> {
        let inside = all
            .iter()
            .filter(|(_, of)| namespace.is_some() && *of == namespace);
        inside.map(|(pid, _)| pid.to_string()).collect()
    };
    let mut lines = "network namespaces:\n".to_owned();
    let mut seen = vec![inode("/proc/self/ns/net".to_owned())];
    for name in named {
        let namespace = inode(format!("/run/netns/{name}"));
        lines += &format!("    {name}: processes {}\n", inside(namespace).join(" "));
        seen.push(namespace);
    }
    for Process { pid, .. } in tasks::descendants() {
        let namespace = inode(format!("/proc/{pid}/ns/net"));
        if !seen.contains(&namespace) {
            lines += &format!(
                "    without a name: processes {}\n",
                inside(namespace).join(" ")
            );
            seen.push(namespace);
        }
    }
    lines
}

/// The stacks of a process in its own code, by a debugger.
fn stacks(process: &Process) -> String {
    let pid = process.pid.to_string();
    let gdb = [
        "gdb",
        "-nx",
        "-batch",
        "-p",
        &pid,
        "-iex",
        "set debuginfod enabled off",
        "-iex",
        "set auto-load off",
        "-ex",
        "thread apply all backtrace 40",
    ];
    let text = command::output(&gdb, sandbox::patience(DEBUGGER)).unwrap_or_else(|e| e);
    let told = |line: &&str| line.starts_with(['#', 'T']) || !line.contains('[');
    let lines = text.lines().filter(told).filter(|line| !line.is_empty());
    let lines: String = lines.map(|line| format!("    {line}\n")).collect();
    format!("stacks of process {process}:\n{lines}")
}
