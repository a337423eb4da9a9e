//! Processes that die with us. Some run beside us and write a log; of others we await the end and
//! take the output.
//!
//! The kernel kills each when the thread that started it ends in any way
//! ([`kernel::process::ends_with_starter`]). Each has a process group of its own, so that Ctrl-C on a terminal
//! reaches only us, and we stop the process in an orderly way. Every wait has a limit, because the
//! kernel may keep a killed process (state D) as long as it likes.

use std::fs::{self, File};
use std::io::Read;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, ChildStdout, Command, ExitStatus, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process, kill_process_group};

use kernel::process::ends_with_starter;

use crate::group::{Ended, end};
use crate::{Error, capture, cleanup, patience, programs, until};

/// A command to start, and its surroundings.
#[derive(Debug)]
pub struct Spawn {
    program: String,
    argv: Vec<String>,
    environment: Vec<(String, String)>,
    input: String,
    piped: bool,
    terminal: Option<OwnedFd>,
}

impl Spawn {
    /// A process of `program`, a path or a name in the search path.
    pub fn new(program: impl Into<String>) -> Self {
        let program = program.into();
        Self {
            argv: vec![program.clone()],
            program,
            environment: Vec::new(),
            input: String::new(),
            piped: false,
            terminal: None,
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

    /// Restricts it to these processors.
    pub fn on(self, cpus: &[usize]) -> Self {
        let list: Vec<String> = cpus.iter().map(usize::to_string).collect();
        self.through(["taskset", "-c", &list.join(",")])
    }

    /// Starts it by another program, which replaces itself by the command in its last arguments.
    pub(crate) fn through<const N: usize>(mut self, prefix: [&str; N]) -> Self {
        self.argv.splice(0..0, prefix.map(str::to_owned));
        self
    }

    /// Gives its standard output and error to the caller ([`Process::take_output`]) instead of the
    /// log.
    pub fn piped(mut self) -> Self {
        self.piped = true;
        self
    }

    /// Gives it a terminal as its standard input, output and error: no log has what it prints. Only
    /// for [`Spawn::start`].
    pub fn on_terminal(mut self, terminal: OwnedFd) -> Self {
        self.terminal = Some(terminal);
        self
    }

    /// Sets a variable of its environment, in addition to ours.
    pub fn env(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.environment.push((name.into(), value.into()));
        self
    }

    /// Sets its standard input, which is empty otherwise. Only for [`Spawn::output`].
    pub fn input(mut self, text: impl Into<String>) -> Self {
        self.input = text.into();
        self
    }

    /// Starts it.
    ///
    /// # Errors
    /// [`Error::Missing`] if it cannot be started, [`Error::File`] if its log cannot be created.
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
            if let Some(terminal) = &self.terminal {
                let terminal = terminal.try_clone().map_err(|e| Error::file(&log, e))?;
                Ok(Stdio::from(terminal))
            } else if self.piped {
                Ok(Stdio::piped())
            } else {
                file.try_clone()
                    .map(Stdio::from)
                    .map_err(|e| Error::file(&log, e))
            }
        };
        let input = match &self.terminal {
            Some(_) => output()?,
            None => Stdio::null(),
        };
        let child = self.spawn(input, output()?, output()?)?;
        Ok(Process {
            child,
            name,
            log,
            _registered: registered,
        })
    }

    /// Starts it, writes its input, and waits for its end. Returns its exit status, whatever it is,
    /// and what it printed. What it leaves in its process group is killed.
    ///
    /// # Errors
    /// [`Error::Missing`] if it cannot be started. [`Error::Timeout`], with the last lines it
    /// printed, if it has not ended within `limit`, lengthened by [`patience`]; then it is killed
    /// with its process group.
    pub fn output(self, limit: Duration) -> Result<Output, Error> {
        self.output_to(limit, Stdio::piped(), Stdio::piped())
    }

    /// As [`Spawn::output`], with its standard output and error sent elsewhere. Only what is sent
    /// to a pipe is returned.
    ///
    /// # Errors
    /// As [`Spawn::output`].
    pub fn output_to(
        self,
        limit: Duration,
        stdout: impl Into<Stdio>,
        stderr: impl Into<Stdio>,
    ) -> Result<Output, Error> {
        let limit = patience(limit);
        let mut child = self.spawn(Stdio::piped(), stdout.into(), stderr.into())?;
        let captured = capture::capture(&mut child, self.input.as_bytes(), limit)
            .map_err(|e| Error::file(&self.program, e))?;
        captured.output().map_err(|late| {
            let command = self.argv.join(" ");
            let what = match late.status {
                Err(Ended::Left) => format!("`{command}` (process {}) did not end, even when killed, because the kernel keeps it,", child.id()),
                _ => format!("`{command}` did not end"),
            };
            let printed = [late.stdout, late.stderr].concat();
            Error::Timeout {
                what,
                seconds: limit.as_secs(),
                log: last_lines(&String::from_utf8_lossy(&printed)),
            }
        })
    }

    fn spawn(&self, stdin: Stdio, stdout: Stdio, stderr: Stdio) -> Result<Child, Error> {
        // The outer one would only say on the child's standard error that there is no program.
        let outer = &self.argv[0];
        for program in [outer, &self.program] {
            if !programs::exists(program) {
                let none = std::io::ErrorKind::NotFound.into();
                return Err(programs::missing(program, none));
            }
        }
        let mut command = Command::new(outer);
        command
            .args(&self.argv[1..])
            .envs(self.environment.iter().map(|(name, value)| (name, value)))
            .stdin(stdin)
            .stdout(stdout)
            .stderr(stderr)
            .process_group(0);
        ends_with_starter(&mut command)
            .spawn()
            .map_err(|e| programs::missing(outer, e))
    }
}

/// A running process. When dropped, it is killed with its process group and reaped. If the kernel
/// keeps it, a message on standard error says so.
#[derive(Debug)]
pub struct Process {
    child: Child,
    name: String,
    log: PathBuf,
    _registered: cleanup::Registered,
}

impl Process {
    /// Its process number: `ip netns exec` and `taskset` replace themselves by the program.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// The file that it prints to.
    pub fn log_path(&self) -> &Path {
        &self.log
    }

    /// Its output so far; nothing if it is piped.
    pub fn log(&self) -> String {
        let mut text = Vec::new();
        if let Ok(mut file) = File::open(&self.log) {
            let _ = file.read_to_end(&mut text);
        }
        String::from_utf8_lossy(&text).into_owned()
    }

    /// Its standard output and error; only once, and only after [`Spawn::piped`].
    pub fn take_output(&mut self) -> Option<(ChildStdout, ChildStderr)> {
        Some((self.child.stdout.take()?, self.child.stderr.take()?))
    }

    /// Its exit status if it has ended.
    pub fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().ok().flatten()
    }

    /// Sends a signal. It is not an error if the process has ended.
    pub fn signal(&self, signal: Signal) {
        let _ = kill_process(Pid::from_child(&self.child), signal);
    }

    /// Kills it and its process group, and waits for up to 10 s until it is gone.
    pub fn kill(&mut self) {
        if end(&mut self.child) == Ended::Left {
            let (name, pid) = (&self.name, self.pid());
            eprintln!("{name} (process {pid}) was killed, but the kernel keeps it");
        }
    }

    /// Asks it to end (SIGTERM) and waits.
    ///
    /// # Errors
    /// [`Error::Timeout`] if it has not ended within 10 s, lengthened by [`patience`]; then it is
    /// killed.
    pub fn stop(&mut self) -> Result<ExitStatus, Error> {
        if self.ended().is_none() {
            self.signal(Signal::TERM);
        }
        self.wait(patience(Duration::from_secs(10)))
    }

    /// Waits for its end.
    ///
    /// # Errors
    /// [`Error::Timeout`] if it has not ended within `limit`; then it is killed.
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

    /// Waits until `ready` returns true.
    ///
    /// # Errors
    /// [`Error::Failed`] with its last line if it ends first, [`Error::Timeout`] after `limit`.
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
        last_lines(&self.log())
    }
}

/// Kills all children of this process with their process groups: before it ends itself, so that
/// what they started ends with them.
pub fn kill_children() {
    let threads = fs::read_dir("/proc/self/task")
        .into_iter()
        .flatten()
        .flatten();
    for thread in threads {
        let children = fs::read_to_string(thread.path().join("children")).unwrap_or_default();
        for child in children
            .split_whitespace()
            .filter_map(|pid| pid.parse().ok())
        {
            if let Some(child) = Pid::from_raw(child) {
                let _ = kill_process_group(child, Signal::KILL);
            }
        }
    }
}

/// The last three lines that are not empty.
fn last_lines(text: &str) -> String {
    let lines = text
        .lines()
        .rev()
        .filter(|line| !line.trim().is_empty())
        .take(3);
    let lines: Vec<&str> = lines.collect();
    lines.into_iter().rev().collect::<Vec<_>>().join(" | ")
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
        let _ = fs::remove_file(&self.log);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cleanup::is_root;

    const LIMIT: Duration = Duration::from_secs(10);

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
        assert_eq!(process.wait(patience(LIMIT)).unwrap().code(), Some(7));
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
        let error = process.ready(patience(LIMIT), || false).unwrap_err();
        assert!(error.to_string().contains("cannot"), "{error}");
    }

    #[test]
    fn child_dies_with_its_starter() {
        if skipped("child_dies_with_its_starter") {
            return;
        }
        // The thread that starts it ends without dropping the handle, after `taskset` has become
        // the program.
        let start = || {
            let process = Spawn::new("sleep").args(["60"]).on(&[0]).start().unwrap();
            let comm = format!("/proc/{}/comm", process.pid());
            assert!(until(patience(LIMIT), || fs::read_to_string(&comm)
                .is_ok_and(|name| name == "sleep\n")));
            process
        };
        let process = std::thread::spawn(start).join().unwrap();
        let pid = process.pid();
        let gone = || {
            fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| stat.contains(") Z "))
        };
        assert!(until(patience(LIMIT), gone));
    }

    /// Its children are killed with it.
    #[test]
    fn a_dropped_process_leaves_no_child() {
        if skipped("a_dropped_process_leaves_no_child") {
            return;
        }
        let script = "sleep 1000 & echo child $!; wait";
        let process = Spawn::new("sh").args(["-c", script]).start().unwrap();
        let child = || {
            process
                .log()
                .strip_prefix("child ")?
                .trim()
                .parse::<u32>()
                .ok()
        };
        assert!(until(patience(LIMIT), || child().is_some()));
        let stat = format!("/proc/{}/stat", child().unwrap());
        drop(process);
        let gone = || !fs::read_to_string(&stat).is_ok_and(|stat| !stat.contains(") Z "));
        assert!(until(patience(LIMIT), gone));
    }

    #[test]
    fn environment_and_exit_code() {
        let spawn = Spawn::new("sh").args(["-c", "echo $GIVEN; exit 7"]);
        let output = spawn
            .env("GIVEN", "so")
            .output(Duration::from_secs(60))
            .unwrap();
        assert_eq!(
            (output.status.code(), &output.stdout[..]),
            (Some(7), &b"so\n"[..])
        );
    }

    #[test]
    fn inside_and_on() {
        if skipped("inside_and_on") {
            return;
        }
        let netns = crate::Netns::create("process").unwrap();
        let mut process = Spawn::new("ip")
            .args(["netns", "identify"])
            .on(&[0])
            .inside(&netns)
            .start()
            .unwrap();
        assert!(process.wait(patience(LIMIT)).unwrap().success());
        assert_eq!(process.log().trim(), netns.name());
    }
}
