//! Processes with a log, that die with us.
//!
//! Each is started by `setpriv --pdeathsig KILL`, so that the kernel ends it when the thread that started it ends in
//! whatever way, and in a process group of its own, so that Ctrl-C on a terminal reaches only us: we stop it in order.

use std::{
    fs::{self, File},
    io::Read,
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::{Child, ChildStderr, ChildStdout, Command, ExitStatus, Stdio},
    sync::atomic::{AtomicU32, Ordering},
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, kill_process};

use crate::{Error, Netns, cleanup, command};

/// How often a condition is looked at while waiting.
const TICK: Duration = Duration::from_millis(10);

/// What to start and where.
#[derive(Debug)]
pub struct Spawn {
    program: String,
    argv: Vec<String>,
    piped: bool,
}

impl Spawn {
    /// A process of `program`, which is a path or found in the search path.
    pub fn new(program: impl Into<String>) -> Self {
        let program = program.into();
        Self {
            argv: vec![program.clone()],
            program,
            piped: false,
        }
    }

    /// Adds arguments.
    pub fn args<S: AsRef<str>>(mut self, arguments: impl IntoIterator<Item = S>) -> Self {
        self.argv.extend(
            arguments
                .into_iter()
                .map(|argument| argument.as_ref().to_owned()),
        );
        self
    }

    /// Lets it run on these processors only.
    pub fn on(mut self, cpus: &[usize]) -> Self {
        let list: Vec<String> = cpus.iter().map(usize::to_string).collect();
        self.argv.splice(
            0..0,
            ["taskset".to_owned(), "-c".to_owned(), list.join(",")],
        );
        self
    }

    /// Starts it inside a namespace.
    pub fn inside(mut self, netns: &Netns) -> Self {
        let prefix = ["ip", "netns", "exec", netns.name()];
        self.argv.splice(0..0, prefix.map(str::to_owned));
        self
    }

    /// Hands its standard output and error to the caller ([`Process::take_output`]) instead of the log.
    pub fn piped(mut self) -> Self {
        self.piped = true;
        self
    }

    /// Starts it.
    ///
    /// # Errors
    /// [`Error::Missing`] if it cannot be started, [`Error::File`] if its log cannot be made.
    pub fn start(self) -> Result<Process, Error> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let registered = cleanup::register()?;
        let name = Path::new(&self.program)
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        let log = cleanup::directory().join(format!(
            "{}-{name}.log",
            NEXT.fetch_add(1, Ordering::Relaxed)
        ));
        let file = File::create(&log).map_err(|e| Error::file(&log, e))?;
        let output = || -> Result<Stdio, Error> {
            if self.piped {
                Ok(Stdio::piped())
            } else {
                file.try_clone()
                    .map(Stdio::from)
                    .map_err(|e| Error::file(&log, e))
            }
        };
        let child = Command::new("setpriv")
            .args(["--pdeathsig", "KILL", "--"])
            .args(&self.argv)
            .stdin(Stdio::null())
            .stdout(output()?)
            .stderr(output()?)
            .process_group(0)
            .spawn()
            .map_err(|e| command::missing("setpriv", e))?;
        Ok(Process {
            child,
            name,
            log,
            _registered: registered,
        })
    }
}

/// A running process. Dropped, it is killed and reaped.
#[derive(Debug)]
pub struct Process {
    child: Child,
    name: String,
    log: PathBuf,
    _registered: cleanup::Registered,
}

impl Process {
    /// Process number. `setpriv`, `ip netns exec` and `taskset` replace themselves, so this is the program's own.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// The file that it prints to.
    pub fn log_path(&self) -> &Path {
        &self.log
    }

    /// What it has printed so far (nothing if it is piped).
    pub fn log(&self) -> String {
        let mut text = Vec::new();
        if let Ok(mut file) = File::open(&self.log) {
            let _ = file.read_to_end(&mut text);
        }
        String::from_utf8_lossy(&text).into_owned()
    }

    /// Its standard output and error; only once, and only of one started [`Spawn::piped`].
    pub fn take_output(&mut self) -> Option<(ChildStdout, ChildStderr)> {
        Some((self.child.stdout.take()?, self.child.stderr.take()?))
    }

    /// Its exit status if it has ended.
    pub fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().ok().flatten()
    }

    /// Sends a signal. One to a process that has ended is not an error.
    pub fn signal(&self, signal: Signal) {
        if let Some(pid) = Pid::from_raw(self.child.id() as i32) {
            let _ = kill_process(pid, signal);
        }
    }

    /// Ends it at once, as `kill -9` does.
    pub fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Asks it to end (SIGTERM) and waits.
    ///
    /// # Errors
    /// [`Error::Timeout`] if it has not ended within 10 s; it is killed then.
    pub fn stop(&mut self) -> Result<ExitStatus, Error> {
        if self.ended().is_none() {
            self.signal(Signal::TERM);
        }
        self.wait(Duration::from_secs(10))
    }

    /// Waits for its end.
    ///
    /// # Errors
    /// [`Error::Timeout`] if it has not ended within `limit`; it is killed then.
    pub fn wait(&mut self, limit: Duration) -> Result<ExitStatus, Error> {
        let mut status = None;
        let ended = until(limit, || {
            status = self.ended();
            status.is_some()
        });
        if !ended {
            self.kill();
        }
        status.ok_or_else(|| self.late("did not end", limit))
    }

    /// Waits until `ready` says so.
    ///
    /// # Errors
    /// [`Error::Failed`] with its last line if it ends before that, [`Error::Timeout`] after `limit`.
    pub fn ready(&mut self, limit: Duration, mut ready: impl FnMut() -> bool) -> Result<(), Error> {
        let mut ended = None;
        let done = until(limit, || {
            ended = self.ended();
            ended.is_some() || ready()
        });
        match (ended, done) {
            (Some(status), _) => Err(Error::Failed {
                command: self.name.clone(),
                message: format!("it ended ({status}): {}", self.last_words()),
            }),
            (None, true) => Ok(()),
            (None, false) => Err(self.late("was not ready", limit)),
        }
    }

    fn late(&self, what: &str, limit: Duration) -> Error {
        Error::Timeout {
            what: format!("{} {what}", self.name),
            seconds: limit.as_secs(),
            log: self.last_words(),
        }
    }

    fn last_words(&self) -> String {
        let log = self.log();
        let lines: Vec<&str> = log
            .lines()
            .rev()
            .filter(|line| !line.trim().is_empty())
            .take(3)
            .collect();
        lines.into_iter().rev().collect::<Vec<_>>().join(" | ")
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
        let _ = fs::remove_file(&self.log);
    }
}

/// Looks at `condition` every 10 ms until it is true or `limit` has passed; returns whether it became true.
pub fn until(limit: Duration, mut condition: impl FnMut() -> bool) -> bool {
    let end = Instant::now() + limit;
    loop {
        if condition() {
            return true;
        }
        if Instant::now() >= end {
            return false;
        }
        std::thread::sleep(TICK);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cleanup::is_root;

    fn skipped(name: &str) -> bool {
        if !is_root() {
            println!("SKIP {name}: needs root for /run/parshall");
        }
        !is_root()
    }

    #[test]
    fn log_is_kept_and_end_is_seen() {
        if skipped("log_is_kept_and_end_is_seen") {
            return;
        }
        let mut process = Spawn::new("sh")
            .args(["-c", "echo hello; exit 7"])
            .start()
            .unwrap();
        assert_eq!(
            process.wait(Duration::from_secs(10)).unwrap().code(),
            Some(7)
        );
        assert_eq!(process.log(), "hello\n");
    }

    #[test]
    fn early_end_is_reported_with_last_words() {
        if skipped("early_end_is_reported_with_last_words") {
            return;
        }
        let mut process = Spawn::new("sh")
            .args(["-c", "echo cannot >&2; exit 1"])
            .start()
            .unwrap();
        let error = process
            .ready(Duration::from_secs(10), || false)
            .unwrap_err();
        assert!(error.to_string().contains("cannot"), "{error}");
    }

    #[test]
    fn child_dies_with_its_starter() {
        if skipped("child_dies_with_its_starter") {
            return;
        }
        // The thread that starts it ends without dropping the handle, once `setpriv` has become the program.
        let start = || {
            let process = Spawn::new("sleep").args(["60"]).start().unwrap();
            let comm = format!("/proc/{}/comm", process.pid());
            assert!(until(Duration::from_secs(10), || fs::read_to_string(&comm)
                .is_ok_and(|name| name == "sleep\n")));
            process
        };
        let process = std::thread::spawn(start).join().unwrap();
        let pid = process.pid();
        let gone = || {
            fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| stat.contains(") Z "))
        };
        assert!(until(Duration::from_secs(10), gone));
    }

    #[test]
    fn inside_and_on() {
        if skipped("inside_and_on") {
            return;
        }
        let netns = Netns::create("process").unwrap();
        let mut process = Spawn::new("ip")
            .args(["netns", "identify"])
            .on(&[0])
            .inside(&netns)
            .start()
            .unwrap();
        assert!(process.wait(Duration::from_secs(10)).unwrap().success());
        assert_eq!(process.log().trim(), netns.name());
    }
}
