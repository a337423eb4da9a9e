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
//!
//! Programs that were attached before have places of their own, which are free when they go. So
//! these are written down, and if one is gone the dispatcher is filled anew.

use std::fs::{self, File, TryLockError};
use std::io::{Read, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;
use std::sync::{Mutex, PoisonError};
use std::thread::sleep;
use std::time::{Duration, Instant};

use sandbox::Alone;

use crate::bpf;

/// Shared by the runs.
const RUNS: &str = "/run/parshall/tests.lock";
/// Held by the process that keeps the dispatcher full. It has the numbers of the programs that were
/// attached before.
const HOLDER: &str = "/run/parshall/dispatcher.lock";
/// Places of the dispatcher: BPF_DISPATCHER_MAX in include/linux/bpf.h.
pub const PLACES: usize = 48;
/// Time to fill it, and to empty it.
const LIMIT: Duration = Duration::from_secs(30);
/// Between two looks whether that is done.
const EVERY: Duration = Duration::from_millis(100);

/// The program that takes a place.
const OBJECT: &[u8] = include_bytes!("../../xdp/bpf/pass.bpf.o");

/// `$1` is the object file, `$2` the lock of the runs. The holder's own lock is its standard input.
const HOLD: &str = r#"
for i in $(seq 24); do
    echo "link add a$i type veth peer name b$i"
    for end in a b; do echo "link set $end$i xdpgeneric obj $1 sec xdp"; done
done | ip -batch - && echo full && exec flock --exclusive "$2" true
"#;

/// The dispatcher is full as long as this is held.
#[derive(Debug)]
pub struct Full {
    /// Its lock is shared by us until it is closed.
    runs: File,
    holder: Option<u32>,
}

/// Token that keeps it full for as long as this process lives.
static FULL: Mutex<Option<Full>> = Mutex::new(None);

/// Makes sure that it is full, and stays so as long as this process lives.
///
/// # Errors
/// As [`fill`]; other runs keep it filled in such a way that places are free.
pub fn keep_full(alone: &Alone) -> Result<(), String> {
    let mut full = FULL.lock().unwrap_or_else(PoisonError::into_inner);
    match full.take() {
        Some(still) if lost()?.is_empty() => *full = Some(still),
        Some(not_quite) => {
            not_quite.end(alone)?;
            *full = Some(fill(alone)?);
        }
        None => *full = Some(fill(alone)?),
    }
    Ok(())
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
/// A device or a program cannot be made; something is in the way for half a minute; another run
/// keeps it filled, but programs are gone that were attached before that.
pub fn fill(_alone: &Alone) -> Result<Full, String> {
    let end = Instant::now() + sandbox::patience(LIMIT);
    let mut full = Full {
        runs: open(RUNS)?,
        holder: None,
    };
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
            full.holder = Some(hold(lock, end)?);
            return Ok(full);
        }
        // Twice, because the last one's holder may just be ending.
        let now_full = bpf::filling()?.len() >= PLACES;
        if seen_full && now_full {
            let lost = lost()?;
            let full = lost.is_empty().then_some(full);
            return full.ok_or_else(|| {
                format!(
                    "it has free places since these XDP programs are gone: {lost:?}; end all runs \
                     that keep it so (`fuser {RUNS}` names them) and start again"
                )
            });
        }
        seen_full = now_full;
        sleep(EVERY);
    }
    Err(format!("{HOLDER} is held by what does not fill it"))
}

/// The programs that were attached when it was filled, and are no more.
fn lost() -> Result<Vec<u64>, String> {
    let mut before = String::new();
    let read = open(HOLDER)?.read_to_string(&mut before);
    read.map_err(|e| format!("{HOLDER}: {e}"))?;
    let before = before.split_whitespace().filter_map(|id| id.parse().ok());
    let mut before: Vec<u64> = before.collect();
    if !before.is_empty() {
        let now = bpf::attached()?;
        before.retain(|id| !now.contains(id));
    }
    Ok(before)
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

/// Starts the holder and waits until all places are taken. The holder's number.
fn hold(mut lock: File, end: Instant) -> Result<u32, String> {
    let before = bpf::attached()?.into_iter();
    let before: String = before.map(|id| format!("{id}\n")).collect();
    let written = lock
        .set_len(0)
        .and_then(|()| lock.write_all(before.as_bytes()));
    written.map_err(|e| format!("{HOLDER}: {e}"))?;
    let file = || tempfile::NamedTempFile::new().map_err(|e| e.to_string());
    let (mut object, said) = (file()?, file()?);
    object.write_all(OBJECT).map_err(|e| e.to_string())?;
    let append = || {
        let file = File::options().append(true).open(said.path());
        file.map_err(|e| e.to_string())
    };
    let read = || fs::read_to_string(said.path()).map_err(|e| e.to_string());
    let mut holder = Command::new("unshare")
        // ip(8) mounts a BPF file system, which goes too.
        .args(["--net", "--mount", "--", "sh", "-c", HOLD, "sh"])
        .args([object.path(), Path::new(RUNS)])
        .stdin(lock)
        .stdout(append()?)
        .stderr(append()?)
        .process_group(0)
        .spawn()
        .map_err(|e| format!("unshare: {e}"))?;
    while !read()?.ends_with("full\n") {
        let ended = holder.try_wait().map_err(|e| e.to_string())?.is_some();
        if ended || Instant::now() >= end {
            return Err(read()?.trim().to_owned());
        }
        sleep(EVERY / 4);
    }
    match bpf::filling()?.len() {
        PLACES => Ok(holder.id()),
        taken => Err(format!("{taken} of {PLACES} programs are attached")),
    }
}

impl Full {
    /// The process that keeps it full, if it was started for this.
    pub fn holder(&self) -> Option<u32> {
        self.holder
    }

    /// Lets go of it and waits until the last holder's programs are gone. True: no other run goes
    /// on.
    ///
    /// # Errors
    /// They do not go although nobody needs them.
    pub fn end(self, _alone: &Alone) -> Result<bool, String> {
        drop(self);
        let end = Instant::now() + sandbox::patience(LIMIT);
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

#[cfg(test)]
mod tests {
    use super::*;

    /// A program that was attached before leaves its place free when it goes.
    #[test]
    fn a_place_that_becomes_free_is_taken() {
        if !crate::root_with("a_place_that_becomes_free_is_taken", &["bpftool"]) {
            return;
        }
        let _alone = crate::alone();
        let before = fs::read_to_string(HOLDER).expect("it is there");
        // As if there had been one with a number that no program has.
        let gone = u64::from(u32::MAX);
        fs::write(HOLDER, format!("{before}{gone}\n")).expect("root may");
        let seen = lost();
        fs::write(HOLDER, before).expect("root may");
        assert_eq!(seen, Ok(vec![gone]));
        assert_eq!(lost(), Ok(vec![]));
    }
}
