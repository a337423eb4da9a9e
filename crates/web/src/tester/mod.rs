//! The load tester of the page: one `parshall loadtest` at a time, as a process of its own.
//!
//! So what the page shows is what the command shows; and neither a crash of one nor the rights of
//! its sockets touch the other.

mod asked;
mod routes;

use std::collections::VecDeque;
use std::io::{self, BufRead, BufReader};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};
use std::thread::JoinHandle;
use std::time::{SystemTime, UNIX_EPOCH};

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use serde::Serialize;
use serde_json::Value;
use tempfile::TempDir;
use utoipa::ToSchema;

pub(crate) use routes::routes;

use asked::Asked;

/// Lines of progress that are kept, the newest: more than an hour of samples.
const KEPT: usize = 4096;
/// Lines for a person that are kept, the newest.
const MESSAGES: usize = 100;

/// How far a load test is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Phase {
    /// There was none since the page was started.
    #[default]
    None,
    Running,
    Ended,
}

/// The latest load test.
#[derive(Debug, Clone, Default, Serialize, ToSchema)]
pub(crate) struct LoadTest {
    state: Phase,
    /// The arguments that `parshall` runs with.
    command: Vec<String>,
    /// When it was started, in seconds since 1970-01-01 UTC.
    started: Option<f64>,
    /// When it ended, in seconds since 1970-01-01 UTC.
    ended: Option<f64>,
    /// Exit code: 0 if all went well. None while it runs, and if a signal ended it.
    exit_code: Option<i32>,
    /// What it told a person, the newest lines.
    messages: Vec<String>,
    /// Number of lines of progress so far.
    progress: u64,
    /// Whether there is a result and a report.
    result: bool,
}

/// Reasons why a load test does not start.
#[derive(Debug, thiserror::Error)]
enum StartError {
    #[error("a load test is running: stop it first, or wait for its end")]
    Running,
    #[error("cannot start a load test: {0}")]
    Io(#[from] io::Error),
}

/// Starts load tests, one at a time, and knows what became of the latest.
pub(crate) struct Tester {
    program: PathBuf,
    state: Arc<Mutex<State>>,
    /// Follows the process.
    thread: Mutex<Option<JoinHandle<()>>>,
}

#[derive(Default)]
struct State {
    test: LoadTest,
    /// The newest lines of progress.
    lines: VecDeque<Value>,
    /// The process while it runs.
    process: Option<OwnedFd>,
    /// The profile, the result and the report; gone when the next test starts.
    files: Option<Arc<TempDir>>,
}

const RESULT: &str = "result.json";
const REPORT: &str = "report.html";
const PROFILE: &str = "profile.yaml";

impl Tester {
    /// With the program whose `loadtest` is run.
    pub fn new(program: PathBuf) -> Tester {
        Tester {
            program,
            state: Arc::default(),
            thread: Mutex::default(),
        }
    }

    /// Starts a load test. What is wrong with its options it says itself, in its messages.
    fn start(&self, asked: &Asked) -> Result<(), StartError> {
        // Whoever starts one at the same time waits here.
        let mut thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner);
        if lock(&self.state).test.state == Phase::Running {
            return Err(StartError::Running);
        }
        let files = tempfile::Builder::new().prefix("parshall-ui-").tempdir()?;
        if let Some(text) = &asked.profile_text {
            std::fs::write(files.path().join(PROFILE), text)?;
        }
        let arguments = asked.arguments(files.path());
        let mut command = Command::new(&self.program);
        command
            .args(&arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped());
        // Ctrl-C at the terminal is for the page, which ends it in good order.
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        kernel::process::ends_with_starter(&mut command);
        let state = self.state.clone();
        let (told, hear) = mpsc::channel();
        // The process ends with the thread that starts it.
        let follow = move || {
            let started = command
                .spawn()
                .and_then(|child| begin(&state, child, files, arguments));
            match started {
                Ok((child, says)) => {
                    let _ = told.send(Ok(()));
                    follow(&state, child, says);
                }
                Err(e) => {
                    let _ = told.send(Err(e));
                }
            }
        };
        *thread = Some(
            std::thread::Builder::new()
                .name("ui-loadtest".into())
                .spawn(follow)?,
        );
        match hear.recv() {
            Ok(started) => Ok(started?),
            Err(_) => Err(io::Error::other("its thread ended").into()),
        }
    }

    /// Has the load test end as by Ctrl-C. Returns false if none runs.
    fn stop(&self) -> bool {
        let state = lock(&self.state);
        // One that has ended a moment ago needs no signal.
        let sent = |process: &OwnedFd| pidfd_send_signal(process, Signal::INT);
        state.process.as_ref().map(sent).is_some()
    }

    /// Ends the load test, and waits for it.
    pub fn end(&self) {
        self.stop();
        let thread = self
            .thread
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        if let Some(thread) = thread {
            // One that panicked has ended, too.
            let _ = thread.join();
        }
        lock(&self.state).files = None;
    }

    fn now(&self) -> LoadTest {
        lock(&self.state).test.clone()
    }

    /// The latest sample of a ramp.
    pub fn sample(&self) -> Option<Value> {
        let state = lock(&self.state);
        let sample = state
            .lines
            .iter()
            .rev()
            .find(|line| line["ways"].is_array());
        sample.cloned()
    }

    pub fn is_running(&self) -> bool {
        lock(&self.state).test.state == Phase::Running
    }

    /// Lines of progress from number `from` on, and the number of the first that is returned:
    /// those that are no longer kept are left out.
    fn progress(&self, from: u64) -> (u64, Vec<Value>) {
        let state = lock(&self.state);
        let first = state.test.progress - state.lines.len() as u64;
        let from = from.clamp(first, state.test.progress);
        let lines = state.lines.iter().skip((from - first) as usize);
        (from, lines.cloned().collect())
    }

    /// The text of one of the files that a test has written.
    fn file(&self, name: &str) -> Option<io::Result<String>> {
        let files = {
            let state = lock(&self.state);
            state.files.clone().filter(|_| state.test.result)?
        };
        Some(std::fs::read_to_string(files.path().join(name)))
    }
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

fn seconds() -> Option<f64> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.ok().map(|now| now.as_secs_f64())
}

/// Notes that a process has started. On failure it is ended.
fn begin(
    state: &Mutex<State>,
    mut child: Child,
    files: TempDir,
    command: Vec<String>,
) -> io::Result<(Child, ChildStderr)> {
    let process = pidfd_open(Pid::from_child(&child), PidfdFlags::empty());
    let (Ok(process), Some(says)) = (process, child.stderr.take()) else {
        child.kill()?;
        child.wait()?;
        return Err(io::Error::other(
            "the kernel gives no descriptor of its process",
        ));
    };
    *lock(state) = State {
        test: LoadTest {
            state: Phase::Running,
            command,
            started: seconds(),
            ..LoadTest::default()
        },
        lines: VecDeque::new(),
        process: Some(process),
        files: Some(Arc::new(files)),
    };
    Ok((child, says))
}

/// Notes what a process says, until it ends.
fn follow(state: &Mutex<State>, mut child: Child, says: ChildStderr) {
    let lines = BufReader::new(says).split(b'\n');
    for line in lines.map_while(Result::ok) {
        let line = String::from_utf8_lossy(&line);
        let mut state = lock(state);
        match serde_json::from_str(&line) {
            Ok(json @ Value::Object(_)) => {
                if state.lines.len() == KEPT {
                    state.lines.pop_front();
                }
                state.lines.push_back(json);
                state.test.progress += 1;
            }
            _ => {
                let messages = &mut state.test.messages;
                if messages.len() == MESSAGES {
                    messages.remove(0);
                }
                messages.push(line.into_owned());
            }
        }
    }
    let status = child.wait().as_ref().ok().and_then(ExitStatus::code);
    let mut state = lock(state);
    let written = |files: &Arc<TempDir>| [RESULT, REPORT].iter().all(|name| is_file(files, name));
    let result = state.files.as_ref().is_some_and(written);
    state.process = None;
    state.test = LoadTest {
        state: Phase::Ended,
        ended: seconds(),
        exit_code: status,
        result,
        ..std::mem::take(&mut state.test)
    };
}

fn is_file(files: &TempDir, name: &str) -> bool {
    Path::is_file(&files.path().join(name))
}
