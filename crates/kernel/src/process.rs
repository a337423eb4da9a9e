//! Processes that end with the thread that started them (prctl(2), `PR_SET_PDEATHSIG`), and those
//! that are ending.
#![allow(unsafe_code)]

use std::fs;
use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;

use rustix::process::{Signal, getpid, getppid, set_parent_process_death_signal};

/// Has the kernel kill the process of this command, and whatever program it becomes, when the
/// thread that starts it ends in any way. Its own children are not killed with it, nor is a program
/// that gains privilege (execve(2)).
pub fn ends_with_starter(command: &mut Command) -> &mut Command {
    let starter = getpid();
    let tie = move || {
        set_parent_process_death_signal(Some(Signal::KILL))?;
        // The starter may have ended before it was tied.
        if getppid() == Some(starter) {
            Ok(())
        } else {
            Err(io::ErrorKind::NotFound.into())
        }
    };
    // SAFETY: two system calls, which may be made between fork and exec; nothing is allocated or
    // locked there.
    unsafe { command.pre_exec(tie) }
}

/// Returns true if a process of our process namespace has begun to end, or has ended: it will do
/// nothing more, though the kernel may still be busy with what it had open (proc_pid_stat(5)).
pub fn is_ending(pid: u32) -> bool {
    match fs::read_to_string(format!("/proc/{pid}/stat")) {
        Ok(stat) => ends(&stat),
        Err(error) => error.kind() == io::ErrorKind::NotFound,
    }
}

fn ends(stat: &str) -> bool {
    /// `PF_EXITING` of the field `flags`.
    const EXITING: u32 = 4;
    // The name before may have blanks and brackets in it.
    let mut fields = stat.rsplit(')').next().unwrap_or("").split_whitespace();
    let is_dead = fields.next().is_some_and(|state| "ZX".contains(state));
    let flags = fields.nth(5).and_then(|flags| flags.parse::<u32>().ok());
    is_dead || flags.is_some_and(|flags| flags & EXITING != 0)
}

#[cfg(test)]
mod tests {
    use std::thread;
    use std::time::{Duration, Instant};

    use super::*;

    #[test]
    fn it_ends_with_the_thread_that_started_it() {
        let start = || {
            let mut command = Command::new("sleep");
            let mut child = ends_with_starter(command.arg("60"))
                .spawn()
                .expect("is started");
            assert!(child.try_wait().expect("is ours").is_none());
            child
        };
        let mut child = thread::spawn(start).join().expect("no panic");
        let begun = Instant::now();
        let status = loop {
            if let Some(status) = child.try_wait().expect("is ours") {
                break status;
            }
            assert!(begun.elapsed() < Duration::from_secs(50), "it lives");
            thread::sleep(Duration::from_millis(5));
        };
        assert_eq!(
            std::os::unix::process::ExitStatusExt::signal(&status),
            Some(9)
        );
    }

    #[test]
    fn it_lives_as_long_as_its_starter() {
        let mut command = Command::new("sleep");
        let mut child = ends_with_starter(command.arg("60"))
            .spawn()
            .expect("is started");
        thread::sleep(Duration::from_millis(50));
        assert!(child.try_wait().expect("is ours").is_none());
        let name = fs::read_to_string(format!("/proc/{}/comm", child.id()));
        assert_eq!(name.expect("it lives"), "sleep\n");
        child.kill().and_then(|()| child.wait()).expect("is ours");
    }
    #[test]
    fn a_process_ends_until_it_is_waited_for() {
        let mut child = Command::new("sleep").arg("60").spawn().expect("is started");
        assert!(!is_ending(std::process::id()) && !is_ending(child.id()));
        child.kill().expect("is ours");
        let begun = Instant::now();
        while !is_ending(child.id()) {
            assert!(begun.elapsed() < Duration::from_secs(50), "it lives");
            thread::sleep(Duration::from_millis(1));
        }
        child.wait().expect("is ours");
        assert!(is_ending(child.id()));
    }

    #[test]
    fn the_kernel_may_be_busy_with_a_process_that_ends() {
        let stat = |state, flags: u32| format!("7 (a ) Z) {state} 1 7 7 0 -1 {flags} 0 0\n");
        assert!(!ends(&stat("S", 0x40_0100)) && !ends("") && !ends("7 (a"));
        assert!(ends(&stat("D", 0x40_0104)) && ends(&stat("Z", 0)) && ends(&stat("X", 0)));
    }
}
