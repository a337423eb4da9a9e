//! The router's process.

use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use serde_json::Value;

use super::craft::{Ip4, Ip6};
use super::topology::{self, H0, R0};
use super::{Netns, PARSHALL, Process, Raw, Spawn, cleanup, command, patience};

/// A running `parshall run`, with a configuration and a socket of its own.
pub struct Router {
    pub process: Process,
    socket: PathBuf,
    _registered: cleanup::Registered,
}

impl Router {
    /// Starts one and waits until it answers.
    pub fn start(netns: &Netns, yaml: &str) -> Self {
        Self::start_with(netns, yaml, &[])
    }

    /// As [`start`](Self::start), with more options of `parshall run`.
    pub fn start_with(netns: &Netns, yaml: &str, options: &[&str]) -> Self {
        let mut router = Self::launch_with(netns, yaml, options);
        router.wait();
        router
    }

    /// Starts one and does not wait.
    pub fn launch(netns: &Netns, yaml: &str) -> Self {
        Self::launch_with(netns, yaml, &[])
    }

    fn launch_with(netns: &Netns, yaml: &str, options: &[&str]) -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let registered = cleanup::register().expect("root may write to /run");
        let base =
            cleanup::directory().join(format!("router-{}", NEXT.fetch_add(1, Ordering::Relaxed)));
        let (file, socket) = (base.with_extension("yaml"), base.with_extension("sock"));
        std::fs::write(&file, yaml).expect("root may write to /run");
        let process = spawn(netns, &file, &socket, options);
        Self {
            process,
            socket,
            _registered: registered,
        }
    }

    /// Starts another one with the same configuration and socket, and does not wait. The old one
    /// must have ended.
    pub fn relaunch(&mut self, netns: &Netns) {
        self.relaunch_with(netns, &[]);
    }

    /// As [`relaunch`](Self::relaunch), with more options of `parshall run`.
    pub fn relaunch_with(&mut self, netns: &Netns, options: &[&str]) {
        self.process = spawn(netns, &self.file(), &self.socket, options);
    }

    /// Waits until it answers and has opened the interfaces that are there.
    pub fn wait(&mut self) {
        let socket = self.socket.clone();
        let log = self.process.log_path().to_owned();
        let opened = || std::fs::read_to_string(&log).is_ok_and(|log| log.contains(" ready"));
        let ready = self.process.ready(patience(), || {
            opened() && show(&socket, &["interface"]).is_ok()
        });
        assert!(
            ready.is_ok(),
            "{}\n{}",
            ready.unwrap_err(),
            self.process.log()
        );
    }

    /// The output of `parshall show WORDS --json`.
    pub fn show(&self, words: &[&str]) -> Value {
        let words = [&["show"], words, &["--json"]].concat();
        let text = self.ask(&words).expect("the router answers");
        serde_json::from_str(&text).expect("what it prints is JSON")
    }

    /// The output of `parshall show WORDS`.
    pub fn show_text(&self, words: &[&str]) -> String {
        show(&self.socket, words).expect("the router answers")
    }

    /// The output of some of `parshall show`, and the log.
    pub fn said(&self, shown: &[&[&str]]) -> String {
        let shown: Vec<String> = shown.iter().map(|words| self.show_text(words)).collect();
        shown.join("\n") + &self.process.log()
    }

    /// The output of `parshall WORDS`; the first word is the subcommand.
    pub fn ask(&self, words: &[&str]) -> Result<String, sandbox::Error> {
        ask(&self.socket, words)
    }

    /// Its configuration file.
    pub fn file(&self) -> PathBuf {
        self.socket.with_extension("yaml")
    }

    /// Its control socket.
    pub fn socket(&self) -> String {
        self.socket.display().to_string()
    }
}

fn spawn(netns: &Netns, file: &Path, socket: &Path, options: &[&str]) -> Process {
    let state = file.with_extension("state").display().to_string();
    let (file, socket) = (file.display().to_string(), socket.display().to_string());
    Spawn::new(PARSHALL)
        .args(["run", "-c", &file, "--socket", &socket, "--state", &state])
        .args(options)
        .inside(netns)
        .start()
        .expect("the binary starts")
}

fn show(socket: &Path, words: &[&str]) -> Result<String, sandbox::Error> {
    ask(socket, &[&["show"], words].concat())
}

fn ask(socket: &Path, words: &[&str]) -> Result<String, sandbox::Error> {
    let socket = socket.display().to_string();
    command::run(&[&[PARSHALL], words, &["--socket", &socket]].concat())
}

/// Sends packets from the left to 48.0.0.1 until one arrives on the right; true if one did.
pub fn forwards(left: &Raw, right: &Raw) -> bool {
    forwards_to(left, right, [48, 0, 0, 1].into())
}

/// Sends packets from the left to `dst` until one arrives on the right; true if one did.
pub fn forwards_to(left: &Raw, right: &Raw, dst: IpAddr) -> bool {
    let frame = match dst {
        IpAddr::V4(dst) => Ip4::udp([16, 0, 0, 1].into(), dst, 0x7777, 26).frame(H0, R0),
        IpAddr::V6(dst) => Ip6::udp(topology::ip6(0x1600, 1), dst, 0x7777, 26).frame(H0, R0),
    };
    let end = std::time::Instant::now() + patience();
    while std::time::Instant::now() < end {
        left.send(&frame);
        if right
            .expect(Duration::from_millis(200), |frame| is_to(frame, dst))
            .is_some()
        {
            return true;
        }
    }
    false
}

/// Whether a frame is a packet to `dst`.
pub fn is_to(frame: &[u8], dst: impl Into<IpAddr>) -> bool {
    let has = |at: usize, bytes: &[u8]| frame.get(at..).is_some_and(|f| f.starts_with(bytes));
    match dst.into() {
        IpAddr::V4(dst) => has(12, &[8, 0]) && has(30, &dst.octets()),
        IpAddr::V6(dst) => has(12, &[0x86, 0xdd]) && has(38, &dst.octets()),
    }
}
