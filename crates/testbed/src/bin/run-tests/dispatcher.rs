//! Keeps the kernel's XDP dispatcher full.
//!
//! The kernel calls XDP programs by a piece of code that it rewrites with each attach and detach,
//! while other processors run through it; kernels on emulated processors die of that. The code has
//! places for 48 programs, and nothing is written while all are taken. So 24 veth pairs, which are
//! down, in a network namespace without a name carry a program each on both ends.
//!
//! They belong to all runs on the machine that go on at the same time: each run shares a lock, and
//! the process in that namespace waits until it can have this lock alone, then ends. The kernel
//! lets go of a run's lock whatever becomes of it.

use std::fs::{self, File, TryLockError};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::report::say;
use crate::{bpf, tasks};

/// Shared by the runs.
const RUNS: &str = "/run/parshall/tests.lock";
/// Held by the process that keeps the dispatcher full.
const HOLDER: &str = "/run/parshall/dispatcher.lock";
/// Places of the dispatcher: BPF_DISPATCHER_MAX in include/linux/bpf.h.
const PLACES: usize = 48;
/// Time to fill it, and to empty it.
const LIMIT: Duration = Duration::from_secs(30);
/// Between two looks whether that is done.
const EVERY: Duration = Duration::from_millis(100);

/// `$1` is the object file, `$2` the lock of the runs. The holder's own lock is its standard input.
const HOLD: &str = r#"
for i in $(seq 24); do
    echo "link add a$i type veth peer name b$i"
    for end in a b; do echo "link set $end$i xdpgeneric obj $1 sec xdp"; done
done | ip -batch - && echo full && exec flock --exclusive "$2" true
"#;

/// The dispatcher is full as long as this is held, if all places were free before.
pub struct Full {
    /// Its lock is shared by us until it is closed.
    runs: File,
}

fn open(path: &str) -> Result<File, String> {
    let directory = Path::new(path).parent().expect("it is in a directory");
    let mut options = File::options();
    let options = options.read(true).write(true).create(true).truncate(false);
    let file = fs::create_dir_all(directory).and_then(|()| options.open(path));
    file.map_err(|e| format!("{path}: {e}"))
}

/// Fills it, or finds it full by another run.
///
/// # Errors
/// A device or a program cannot be made; something is in the way for half a minute.
pub fn fill(object: &Path) -> Result<Full, String> {
    let end = Instant::now() + lab::patience(LIMIT);
    let full = Full { runs: open(RUNS)? };
    loop {
        match full.runs.try_lock_shared() {
            Ok(()) => break,
            Err(TryLockError::Error(e)) => return Err(format!("{RUNS}: {e}")),
            // The last one's holder is about to end.
            Err(TryLockError::WouldBlock) if Instant::now() < end => sleep(EVERY),
            Err(TryLockError::WouldBlock) => return Err(format!("{RUNS} is held")),
        }
    }
    let mut seen_full = false;
    while Instant::now() < end {
        let lock = open(HOLDER)?;
        if lock.try_lock().is_ok() {
            wait_until_empty(end)?;
            hold(object, lock, end)?;
            return Ok(full);
        }
        // Twice, because the last one's holder may just be ending.
        let now_full = bpf::filling()?.len() >= PLACES;
        if seen_full && now_full {
            return Ok(full);
        }
        seen_full = now_full;
        sleep(EVERY);
    }
    Err(format!("{HOLDER} is held by what does not fill it"))
}

/// Waits until the kernel has freed the programs of a holder that ended.
fn wait_until_empty(end: Instant) -> Result<(), String> {
    while !bpf::filling()?.is_empty() {
        if Instant::now() >= end {
            return Err("programs of an earlier run do not go".to_owned());
        }
        sleep(EVERY);
    }
    Ok(())
}

/// Starts the holder and waits until all places are taken.
fn hold(object: &Path, lock: File, end: Instant) -> Result<(), String> {
    let said = tempfile::NamedTempFile::new().map_err(|e| e.to_string())?;
    let append = || {
        let file = File::options().append(true).open(said.path());
        file.map_err(|e| e.to_string())
    };
    let object = fs::canonicalize(object).map_err(|e| format!("{}: {e}", object.display()))?;
    let read = || fs::read_to_string(said.path()).map_err(|e| e.to_string());
    let start = Instant::now();
    let holder = Command::new("unshare")
        // ip(8) mounts a BPF file system, which goes too.
        .args(["--net", "--mount", "--", "sh", "-c", HOLD, "sh"])
        .args([object.as_path(), Path::new(RUNS)])
        .stdin(lock)
        .stdout(append()?)
        .stderr(append()?)
        .process_group(0)
        .spawn()
        .map_err(|e| format!("unshare: {e}"))?;
    tasks::except(holder.id());
    while !read()?.ends_with("full\n") {
        if tasks::ended(holder.id()).is_some() || Instant::now() >= end {
            return Err(read()?.trim().to_owned());
        }
        sleep(EVERY / 4);
    }
    let took = start.elapsed().as_secs_f64();
    say(&format!(
        "dispatcher: full, by {PLACES} programs, in {took:.1} s"
    ));
    Ok(())
}

impl Full {
    /// Lets go of it and waits until the last holder's programs are gone. True: no other run goes
    /// on.
    ///
    /// # Errors
    /// They do not go although nobody needs them.
    pub fn end(self) -> Result<bool, String> {
        drop(self);
        let end = Instant::now() + lab::patience(LIMIT);
        let mut held = 0;
        while Instant::now() < end {
            if open(HOLDER)?.try_lock().is_ok() && bpf::filling()?.is_empty() {
                return Ok(true);
            }
            // The holder has this lock for a moment before it ends.
            held = if open(RUNS)?.try_lock().is_ok() {
                0
            } else {
                held + 1
            };
            if held > 10 {
                return Ok(false);
            }
            sleep(EVERY);
        }
        Err("it is still full".to_owned())
    }
}
