//! Memory of the kernel while the tests run.

use std::fs;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// Rows of /proc/meminfo: where maps, programs, devices and shared memory show.
const ROWS: [&str; 4] = ["VmallocUsed", "Slab", "Percpu", "Shmem"];
/// Between two looks.
const EVERY: Duration = Duration::from_secs(1);

/// A row of /proc/meminfo in KiB; 0 on a kernel that does not have it.
pub fn row(name: &str) -> u64 {
    let text = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let rest = text.lines().find_map(|line| line.strip_prefix(name));
    let number = rest.and_then(|rest| rest.strip_prefix(':'));
    number
        .and_then(|text| text.split_whitespace().next()?.parse().ok())
        .unwrap_or(0)
}

/// Looks at the rows once a second until it is asked.
pub struct Sampler {
    shared: Arc<(Mutex<State>, Condvar)>,
    before: [u64; ROWS.len()],
    thread: JoinHandle<()>,
}

#[derive(Default)]
struct State {
    program: String,
    /// The most of each row, and which program ran then.
    peak: [(u64, String); ROWS.len()],
    over: bool,
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Sampler {
    pub fn start() -> Self {
        let shared = Arc::new((Mutex::new(State::default()), Condvar::new()));
        let theirs = shared.clone();
        let thread = std::thread::spawn(move || {
            let (state, wake) = &*theirs;
            let mut state = lock(state);
            while !state.over {
                state.look();
                state = wake
                    .wait_timeout(state, EVERY)
                    .unwrap_or_else(PoisonError::into_inner)
                    .0;
            }
            state.look();
        });
        Self {
            shared,
            before: ROWS.map(row),
            thread,
        }
    }

    /// From now on this program runs.
    pub fn of(&self, program: &str) {
        program.clone_into(&mut lock(&self.shared.0).program);
    }

    /// Ends, with a table: before, peak and in which program, after.
    pub fn end(self) -> String {
        lock(&self.shared.0).over = true;
        self.shared.1.notify_all();
        // It does not panic; if it did, there would be less to say.
        let _ = self.thread.join();
        let mebibytes = |kibibytes: u64| kibibytes as f64 / 1024.0;
        let mut text = "kernel memory, MiB     before      peak     after  peak in".to_owned();
        for ((name, before), (peak, program)) in
            ROWS.iter().zip(self.before).zip(&lock(&self.shared.0).peak)
        {
            text += &format!(
                "\n  {name:<16} {:>10.1}{:>10.1}{:>10.1}  {program}",
                mebibytes(before),
                mebibytes(*peak),
                mebibytes(row(name)),
            );
        }
        text
    }
}

impl State {
    fn look(&mut self) {
        for (peak, name) in self.peak.iter_mut().zip(ROWS) {
            let now = row(name);
            if now > peak.0 {
                *peak = (now, self.program.clone());
            }
        }
    }
}
