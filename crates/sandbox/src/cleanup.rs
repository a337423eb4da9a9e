//! Leaves nothing behind. A process removes what it made when it ends, also by a signal; if it was
//! killed, the next one that starts does so.
//!
//! The process number of a maker is in the names of everything it makes, and it holds a lock on
//! `/run/parshall/lab-<pid>.lock` as long as it lives. The kernel releases the lock however the
//! process ends, and shows it to all others, also to those that cannot see the process. Everything
//! that carries the number of a maker whose lock is free is a leftover.

use std::collections::BTreeSet;
use std::fs::{self, File, TryLockError};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, Once, PoisonError};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

use kernel::netns;

use crate::{Error, patience, until};

/// First part of the name of every namespace made here; the maker's process number follows.
pub const PREFIX: &str = "parshall-lab-";

const RUN: &str = "/run/parshall";
const NETNS: &str = "/run/netns";

/// True if the process may make namespaces: it runs as root.
pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Directory of this process under `/run/parshall`: logs, sockets, configurations. Removed at the
/// end.
pub fn directory() -> PathBuf {
    directory_of(std::process::id())
}

fn directory_of(pid: u32) -> PathBuf {
    Path::new(RUN).join(format!("lab-{pid}"))
}

/// Says that something of ours exists. When the last one of this process is dropped, [`directory`]
/// is removed.
#[derive(Debug)]
pub struct Registered(());

/// Time to wait for our lock: another process may hold it for a moment to see whether we live.
const LOOKING: Duration = Duration::from_secs(5);

/// The number of [`Registered`], and the lock that says that we live.
static REGISTERED: Mutex<(usize, Option<File>)> = Mutex::new((0, None));

/// Makes [`directory`] and takes our lock. Call it before making something, and keep the result as
/// long as that exists. The first call of a process removes what killed makers left.
///
/// # Errors
/// Needs root; a process of another container has our number.
pub fn register() -> Result<Registered, Error> {
    let mut registered = REGISTERED.lock().unwrap_or_else(PoisonError::into_inner);
    let (count, held) = &mut *registered;
    if held.is_none() {
        let (pid, directory) = (std::process::id(), directory());
        fs::create_dir_all(RUN).map_err(|e| Error::file(RUN, e))?;
        let other = || io::Error::from(io::ErrorKind::ResourceBusy);
        let mut taken = lock(pid);
        until(patience(LOOKING), || {
            let held = matches!(taken, Ok(None));
            if held {
                taken = lock(pid);
            }
            !held
        });
        let lock = taken
            .and_then(|lock| lock.ok_or_else(other))
            .map_err(|e| Error::file(lock_of(pid), e))?;
        fs::create_dir_all(&directory).map_err(|e| Error::file(&directory, e))?;
        *held = Some(lock);
        static FIRST: Once = Once::new();
        FIRST.call_once(|| drop(leftovers()));
    }
    *count += 1;
    Ok(Registered(()))
}

impl Drop for Registered {
    fn drop(&mut self) {
        let mut registered = REGISTERED.lock().unwrap_or_else(PoisonError::into_inner);
        let (count, held) = &mut *registered;
        *count -= 1;
        if *count == 0 {
            let pid = std::process::id();
            let _ = fs::remove_dir_all(directory_of(pid));
            let _ = fs::remove_file(lock_of(pid));
            *held = None;
        }
    }
}

fn lock_of(pid: u32) -> PathBuf {
    Path::new(RUN).join(format!("lab-{pid}.lock"))
}

/// Takes the lock of a maker; `None`: it is held, so the maker lives.
fn lock(pid: u32) -> io::Result<Option<File>> {
    let path = lock_of(pid);
    loop {
        let mut options = File::options();
        let options = options.write(true).create(true).truncate(false);
        let file = options.open(&path)?;
        match file.try_lock() {
            Err(TryLockError::WouldBlock) => return Ok(None),
            Err(TryLockError::Error(error)) => return Err(error),
            Ok(()) => {}
        }
        // The last holder may have removed the file meanwhile, and another process made a new one.
        let inode = |metadata: fs::Metadata| (metadata.dev(), metadata.ino());
        let now = fs::metadata(&path).map(inode).ok();
        if now == Some(inode(file.metadata()?)) {
            return Ok(Some(file));
        }
    }
}

/// The lock of a dead maker. One without a lock file counts as alive if its process number is in
/// use.
fn of_the_dead(pid: u32) -> Option<File> {
    let alive = !lock_of(pid).exists() && Path::new(&format!("/proc/{pid}")).exists();
    if alive {
        None
    } else {
        lock(pid).ok().flatten()
    }
}

/// Process number of the maker in a name that begins with `prefix`.
fn maker(name: &str, prefix: &str) -> Option<u32> {
    let rest = name.strip_prefix(prefix)?;
    rest.split(['-', '.']).next()?.parse().ok()
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

/// Ends every process inside the namespace and deletes it; its links go with it. One that is
/// already gone is no error.
pub fn delete_netns(name: &str) {
    let path = Path::new(NETNS).join(name);
    for process in netns::processes(&path).unwrap_or_default() {
        if let Some(process) = Pid::from_raw(process) {
            let _ = kill_process(process, Signal::KILL);
        }
    }
    let _ = netns::delete(&path);
}

/// Removes what killed makers left: their namespaces with all processes and links in them, and
/// their directories. Returns a line for each thing removed.
pub fn leftovers() -> Vec<String> {
    let all = [made(NETNS, PREFIX), made(RUN, "lab-")].concat();
    let makers: BTreeSet<u32> = all.into_iter().map(|(_, pid)| pid).collect();
    let mut removed = Vec::new();
    for pid in makers {
        if let Some(_lock) = of_the_dead(pid) {
            removed.extend(remove(pid));
        }
    }
    removed
}

/// Removes everything that this process made.
pub fn own() -> Vec<String> {
    remove(std::process::id())
}

/// Removes what a maker made, its lock last.
fn remove(pid: u32) -> Vec<String> {
    let mut removed = Vec::new();
    let of = |(name, maker)| (maker == pid).then_some(name);
    for name in made(NETNS, PREFIX).into_iter().filter_map(of) {
        delete_netns(&name);
        removed.push(format!("namespace {name}"));
    }
    let directory = directory_of(pid);
    if fs::remove_dir_all(&directory).is_ok() {
        removed.push(format!("directory {}", directory.display()));
    }
    let _ = fs::remove_file(lock_of(pid));
    removed
}

/// From now on SIGINT, SIGTERM and SIGHUP remove everything that this process made, and end it with
/// the exit code that a shell gives for the signal (128 + its number).
///
/// # Errors
/// If the handler cannot be installed.
pub fn on_signal() -> Result<(), Error> {
    on_signal_after(|| ())
}

/// As [`on_signal`]; `first` is done before.
///
/// # Errors
/// If the handler cannot be installed.
pub fn on_signal_after(first: impl FnOnce() + Send + 'static) -> Result<(), Error> {
    use signal_hook::{consts, iterator::Signals};
    let mut signals = Signals::new([consts::SIGINT, consts::SIGTERM, consts::SIGHUP])
        .map_err(|e| Error::file("signals", e))?;
    std::thread::spawn(move || {
        if let Some(signal) = signals.forever().next() {
            first();
            own();
            std::process::exit(128 + signal);
        }
    });
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// These tests would remove each other's leftovers.
    static ONE: Mutex<()> = Mutex::new(());

    /// Removes leftovers until this is so: another process may be at it, and holds the lock
    /// meanwhile.
    #[track_caller]
    fn clear(done: impl Fn() -> bool) {
        let cleared = until(patience(Duration::from_secs(30)), || {
            leftovers();
            done()
        });
        assert!(cleared);
    }

    #[test]
    fn maker_is_in_the_name() {
        assert_eq!(maker("parshall-lab-77-3-dut", PREFIX), Some(77));
        assert_eq!(maker("lab-78", "lab-"), Some(78));
        assert_eq!(maker("lab-78.lock", "lab-"), Some(78));
        assert_eq!(maker("parshall-lab-x", PREFIX), None);
        assert_eq!(maker("other", PREFIX), None);
    }

    #[test]
    fn the_living_hold_their_lock() {
        if !is_root() {
            println!("SKIP the_living_hold_their_lock: needs root");
            return;
        }
        let pid = std::process::id();
        let registered = register().unwrap();
        assert!(of_the_dead(pid).is_none());
        assert!(directory().exists() && lock_of(pid).exists());
        drop(registered);
    }

    /// The process number says nothing where the process cannot be seen, or is another one by now.
    #[test]
    fn the_lock_counts_and_not_the_number() {
        if !is_root() {
            println!("SKIP the_lock_counts_and_not_the_number: needs root");
            return;
        }
        let _one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
        // No process has a number above 2^22; that of process 1 is surely in use.
        for (pid, held) in [(4_194_310, true), (1, false)] {
            fs::create_dir_all(directory_of(pid)).unwrap();
            let file = lock(pid).unwrap().unwrap();
            if !held {
                file.unlock().unwrap();
            }
            clear(|| directory_of(pid).exists() == held);
            remove(pid);
            assert!(!lock_of(pid).exists());
        }
    }

    #[test]
    fn namespace_of_a_dead_maker_goes() {
        if !is_root() {
            println!("SKIP namespace_of_a_dead_maker_goes: needs root");
            return;
        }
        let _one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
        // No process has the highest number: pid_max is at most 2^22.
        let name = format!("{PREFIX}4194304-0-left");
        // Whoever cleans up beside us may take its file away before it is bound.
        let add = || crate::command::run(&["ip", "netns", "add", &name]).is_ok();
        assert!(until(patience(Duration::from_secs(30)), add));
        clear(|| !Path::new(NETNS).join(&name).exists());
    }

    /// Makes the other process of the next test a maker.
    const MAKE: &str = "PARSHALL_TEST_MAKE_NETNS";

    /// A process that makes a namespace, a file and a child, says so, and stays.
    fn make() -> ! {
        let netns = crate::Netns::create("made").unwrap();
        fs::write(directory().join("file"), "").unwrap();
        let child = crate::Spawn::new("sleep")
            .args(["1000"])
            .inside(&netns)
            .start()
            .unwrap();
        println!("made {} {}", netns.name(), child.pid());
        loop {
            std::thread::park();
        }
    }

    /// Starts one; returns it with the name of its namespace and the number of its child.
    fn maker_process() -> (crate::Process, String, u32) {
        let this = std::env::current_exe().unwrap().display().to_string();
        let name = "cleanup::tests::what_the_killed_left_goes_and_the_living_keep_theirs";
        let process = crate::Spawn::new(this)
            .args(["--exact", name, "--nocapture"])
            .env(MAKE, "1");
        let process = process.start().unwrap();
        let mut made = None;
        let done = until(patience(Duration::from_secs(30)), || {
            let log = process.log();
            let rest = log.split_once("made ").map(|(_, rest)| rest);
            let line = rest.and_then(|rest| Some(rest.split_once('\n')?.0));
            made = line
                .and_then(|line| line.split_once(' '))
                .map(|(name, pid)| (name.to_owned(), pid.parse().unwrap()));
            made.is_some()
        });
        assert!(done, "{}", process.log());
        let (name, child) = made.unwrap();
        (process, name, child)
    }

    #[test]
    fn what_the_killed_left_goes_and_the_living_keep_theirs() {
        if std::env::var_os(MAKE).is_some() {
            make();
        }
        if !is_root() {
            println!("SKIP what_the_killed_left_goes_and_the_living_keep_theirs: needs root");
            return;
        }
        let _one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
        let (mut killed, left, child) = maker_process();
        let (living, kept, _) = maker_process();
        let there = |name: &str| Path::new(NETNS).join(name).exists();
        assert!(there(&left) && there(&kept));
        killed.kill();
        leftovers();
        assert!(!there(&left) && !directory_of(killed.pid()).exists());
        assert!(!lock_of(killed.pid()).exists());
        let gone = || {
            !fs::read_to_string(format!("/proc/{child}/stat")).is_ok_and(|s| !s.contains(") Z "))
        };
        assert!(until(patience(Duration::from_secs(10)), gone));
        assert!(there(&kept) && directory_of(living.pid()).join("file").exists());
        drop(living);
        leftovers();
        assert!(!there(&kept));
    }
}
