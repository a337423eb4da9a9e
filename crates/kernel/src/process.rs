//! Processes that end with the thread that started them (prctl(2), `PR_SET_PDEATHSIG`).
#![allow(unsafe_code)]

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

#[cfg(test)]
mod tests {
    use std::fs;
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
}
