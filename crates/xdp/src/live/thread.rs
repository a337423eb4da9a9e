//! The generator's thread: sits in a run of the program, which a signal ends.
#![allow(unsafe_code)]

use std::io;
use std::os::fd::AsFd;
use std::os::unix::thread::JoinHandleExt;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use kernel::cpu::pin;

use crate::object::Loaded;
use crate::sys;

/// Frames that the kernel runs the program over before it sends them off; its default.
const BATCH: u32 = 64;
/// Between two attempts to interrupt the run: the signal is lost if it comes just before the system
/// call.
const RETRY: Duration = Duration::from_millis(1);

/// The thread's task, and its state.
#[derive(Debug)]
struct Phase {
    wanted: Wanted,
    running: bool,
    failure: Option<io::Error>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wanted {
    Run,
    Pause,
    Stop,
}

#[derive(Debug)]
struct Gate {
    phase: Mutex<Phase>,
    changed: Condvar,
}

impl Gate {
    fn lock(&self) -> MutexGuard<'_, Phase> {
        self.phase.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits while paused. False: stop.
    fn enter(&self) -> bool {
        let mut phase = self.lock();
        while phase.wanted == Wanted::Pause {
            phase.running = false;
            self.changed.notify_all();
            phase = self
                .changed
                .wait(phase)
                .unwrap_or_else(PoisonError::into_inner);
        }
        phase.running = phase.wanted == Wanted::Run;
        phase.running
    }

    fn leave(&self, failure: Option<io::Error>) {
        let mut phase = self.lock();
        phase.running = false;
        phase.failure = failure;
        self.changed.notify_all();
    }
}

/// The running generator.
#[derive(Debug)]
pub(super) struct Generator {
    gate: Arc<Gate>,
    thread: Option<JoinHandle<()>>,
}

impl Generator {
    /// Starts running `program` over `frame` in the calling thread's namespace, in runs of `slots`.
    pub fn start(
        program: Arc<Loaded>,
        frame: Vec<u8>,
        slots: u32,
        cpu: Option<usize>,
    ) -> io::Result<Self> {
        install_handler()?;
        let phase = Phase {
            wanted: Wanted::Run,
            running: true,
            failure: None,
        };
        let gate = Arc::new(Gate {
            phase: Mutex::new(phase),
            changed: Condvar::new(),
        });
        let inside = Arc::clone(&gate);
        let thread = std::thread::Builder::new()
            .name("live".to_owned())
            .spawn(move || {
                let ready = only_our_signal().and_then(|()| cpu.map_or(Ok(()), pin));
                if let Err(e) = ready {
                    return inside.leave(Some(e));
                }
                while inside.enter() {
                    let end = sys::run_live(program.as_fd(), &frame, BATCH, slots);
                    let failure = end.err().filter(|e| e.kind() != io::ErrorKind::Interrupted);
                    let failed = failure.is_some();
                    inside.leave(failure);
                    if failed {
                        return;
                    }
                }
            })?;
        Ok(Self {
            gate,
            thread: Some(thread),
        })
    }

    /// Error that ended the run, if it was not us.
    pub fn failure(&self) -> Option<io::Error> {
        let phase = self.gate.lock();
        let failure = phase.failure.as_ref()?;
        let copy = || io::Error::other(failure.to_string());
        Some(
            failure
                .raw_os_error()
                .map_or_else(copy, io::Error::from_raw_os_error),
        )
    }

    /// Ends the run and waits until the program no longer runs; the thread stays.
    pub fn pause(&self) {
        self.want(Wanted::Pause);
        let mut phase = self.gate.lock();
        while phase.running {
            self.interrupt();
            phase = match self.gate.changed.wait_timeout(phase, RETRY) {
                Ok((phase, _)) => phase,
                Err(poisoned) => poisoned.into_inner().0,
            };
        }
    }

    /// Goes on after a pause.
    pub fn resume(&self) {
        self.want(Wanted::Run);
    }

    fn want(&self, wanted: Wanted) {
        self.gate.lock().wanted = wanted;
        self.gate.changed.notify_all();
    }

    fn interrupt(&self) {
        if let Some(thread) = &self.thread {
            // SAFETY: the thread is not joined, so its handle is valid; the signal's handler does
            // nothing.
            unsafe { libc::pthread_kill(thread.as_pthread_t(), signal()) };
        }
    }
}

impl Drop for Generator {
    fn drop(&mut self) {
        self.pause();
        self.want(Wanted::Stop);
        if let Some(thread) = self.thread.take() {
            // It cannot panic; and if it did, it has ended.
            drop(thread.join());
        }
    }
}

/// A real-time signal that the C library and the usual signal crates leave alone.
fn signal() -> libc::c_int {
    libc::SIGRTMAX() - 3
}

extern "C" fn nothing(_: libc::c_int) {}

/// Gives our signal a handler, once in the process: without one it would end the process, ignored
/// it would end no system call.
fn install_handler() -> io::Result<()> {
    static INSTALLED: Handler = Handler(OnceLock::new());
    INSTALLED.install(signal())
}

/// The signal's handler: there (or the number of the error).
struct Handler(OnceLock<Result<(), i32>>);

impl Handler {
    /// Every call gives what came of the first.
    fn install(&self, signal: libc::c_int) -> io::Result<()> {
        let result = self.0.get_or_init(|| {
            let handler = nothing as extern "C" fn(libc::c_int);
            // SAFETY: an all-zero sigaction is valid: no flags, empty mask.
            let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
            action.sa_sigaction = handler as libc::sighandler_t;
            // SAFETY: the handler is async-signal-safe, as it does nothing.
            match unsafe { libc::sigaction(signal, &action, std::ptr::null_mut()) } {
                0 => Ok(()),
                _ => Err(io::Error::last_os_error().raw_os_error().unwrap_or(0)),
            }
        });
        result.map_err(io::Error::from_raw_os_error)
    }
}

/// Leaves all other signals to the other threads, so that none ends the run.
fn only_our_signal() -> io::Result<()> {
    // SAFETY: an all-zero set is a valid one, the empty set.
    let mut set: libc::sigset_t = unsafe { std::mem::zeroed() };
    // SAFETY: the set is ours.
    unsafe { libc::sigfillset(&mut set) };
    // SAFETY: the set is ours.
    unsafe { libc::sigdelset(&mut set, signal()) };
    // SAFETY: the set outlives the call, which may have no use for the old one.
    let code = unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &set, std::ptr::null_mut()) };
    if code == 0 {
        Ok(())
    } else {
        Err(io::Error::from_raw_os_error(code))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_handler_that_cannot_be_installed_is_told_each_time() {
        let handler = Handler(OnceLock::new());
        for _ in 0..2 {
            // Nobody can handle this one.
            let refused = handler.install(libc::SIGKILL).expect_err("is refused");
            assert_eq!(refused.raw_os_error(), Some(libc::EINVAL));
        }
    }
}
