//! A router behind a control socket of its own: the socket is the real one, the answers are made up.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use control::api::{self, Handler, Output, Request};
use control::cli::{Command, Verb};
use control::config::Control;
use control::history::Who;
use serde_json::{Value, json};
use web::{Options, Server};

/// A name as no sane operator gives it.
pub const HOSTILE: &str = "<img src=x onerror=\"document.title='owned'\">";

/// The router's side.
#[derive(Default)]
pub struct Fake {
    /// Looks at the interfaces so far: the counters follow from it.
    looks: AtomicU64,
    /// Requests that change something, as they came.
    pub changes: Mutex<Vec<Request>>,
    /// The number of the configuration that waits for confirmation.
    pending: Mutex<Option<u32>>,
}

impl Handler for Fake {
    fn call(&self, command: &Command, request: &Request, _: &Who) -> Result<Output, String> {
        if command.spec.write {
            self.changes.lock().unwrap().push(request.clone());
        }
        let json = match command.verb {
            Verb::ShowInterface => self.interfaces(),
            Verb::ShowRuntime => {
                json!({"threads": [{"id": 1, "name": "worker-0", "cpu": 1, "vector_rate": 2.5, "nodes": [
                {"name": "ip4-input", "calls": 10, "vectors": 30, "clocks": 41.5},
                {"name": "ip4-lookup", "calls": 10, "vectors": 30, "clocks": null}]}]})
            }
            Verb::ShowThreads => {
                json!({"threads": [{"name": "worker-0", "alive": true, "loops": 100, "busy_loops": 50, "sleeps": 3}]})
            }
            Verb::ShowErrors => {
                json!({"errors": [{"count": 5, "node": "ip4-input", "reason": "ip4 header \"checksum\" is\nwrong", "severity": "error"}]})
            }
            Verb::ShowFlowsCounters => {
                json!({"workers": [{"worker": "worker-0", "flows": 7, "room": 1000, "embryonic": 2, "memory_bytes": 1,
                "begun": 20, "refused": 3, "displaced": 4, "expired": 9, "states": null}]})
            }
            Verb::ShowBridgeDomain => {
                json!({"bridge_domains": [{"name": "bd10", "learned": 12, "members": [], "counters":
                {"flooded_broadcast": 31, "flooded_multicast": 32, "flooded_unknown": 33, "moves": 34, "not_learned": 35, "learns_lost": 36}}]})
            }
            Verb::ShowGraph => self.graph(),
            Verb::ShowHardware => json!({"interfaces": []}),
            Verb::ShowVersion => json!({"version": "0.1.0", "build": "debug", "kernel": "6.18"}),
            Verb::ShowWarnings => json!({"warnings": [HOSTILE]}),
            Verb::Dump => json!({"yaml": "interfaces: {}\n"}),
            Verb::History => {
                json!({"configurations": [{"number": 1, "time": "2026-01-01T00:00:00Z", "who": null,
                "comment": HOSTILE, "state": "applied", "confirmed": null, "why": null, }],
                "changes": [], "seconds_left": self.pending.lock().unwrap().map(|_| 59)})
            }
            Verb::Plan | Verb::Apply | Verb::Rollback => self.change(request)?,
            Verb::Confirm => {
                self.pending.lock().unwrap().take();
                json!({"done": true})
            }
            other => return Err(format!("{other:?} is not asked for")),
        };
        Ok(Output::Json(json))
    }
}

impl Fake {
    fn interfaces(&self) -> Value {
        let looks = 1000 * (1 + self.looks.fetch_add(1, Ordering::Relaxed));
        let row = |name: &str, packets: Option<u64>| {
            json!({"name": name, "index": 1, "up": true, "mtu": 1500, "mac": null, "host_of": null, "absent": null,
                "rx_packets": packets, "rx_bytes": packets.map(|n| 100 * n), "tx_packets": packets, "tx_bytes": packets,
                "drops": packets.map(|_| 0), "tx_errors": packets.map(|_| 0)})
        };
        json!({"interfaces": [row("e0", Some(looks)), row(HOSTILE, Some(7)), row("loop0", None)]})
    }

    fn graph(&self) -> Value {
        let packets = 1000 * self.looks.load(Ordering::Relaxed);
        let edge = |name: &str, packets, next: &[&str], drop: Option<&str>| json!({"stage": "s", "name": name, "packets": packets, "next": next, "drop": drop});
        json!({"nodes": [
            {"name": "ethernet-input", "edges": [edge("Ip4", packets, &["ip4-input"], None), edge("Ip6", 0, &["ip6-input"], None)]},
            {"name": "ip4-input", "edges": [edge("Lookup", packets, &["ip4-lookup"], None), edge("Bad", 5, &[], Some("bad header"))]},
            {"name": "ip4-lookup", "edges": [edge("Out", packets, &["interface-output"], None)]},
        ]})
    }

    fn change(&self, request: &Request) -> Result<Value, String> {
        if request
            .text
            .as_deref()
            .is_some_and(|text| text.contains("bogus"))
        {
            return Err("configuration:1: `bogus` is not known here".into());
        }
        let waits = request.confirm.filter(|_| request.command[0] != "plan");
        *self.pending.lock().unwrap() = waits.map(|_| 2);
        let changes = json!([{"object": HOSTILE, "action": "change", "fields": [{"field": "mtu", "before": "1500", "after": "9000"}]}]);
        Ok(
            json!({"changes": changes, "steps": [{}], "notes": [], "foreign": [], "refused": [], "number": 2, "seconds_left": waits}),
        )
    }
}

/// A load tester that sends nothing: it tells progress as the real one does until it is to end, and
/// writes what it is asked to.
fn program(directory: &Path) -> PathBuf {
    let path = directory.join("tester");
    std::fs::write(&path, include_str!("tester.sh")).unwrap();
    std::fs::set_permissions(&path, Permissions::from_mode(0o700)).unwrap();
    path
}

/// A page, and the router that it looks at.
pub struct Site {
    pub fake: Arc<Fake>,
    pub server: Server,
    control: Control,
    router: Option<api::Server>,
    directory: tempfile::TempDir,
}

impl Site {
    /// Starts both.
    pub fn start() -> Site {
        let mut site = Site::without_router();
        site.start_router();
        site
    }

    /// Starts a page whose router does not run.
    pub fn without_router() -> Site {
        let directory = tempfile::tempdir().unwrap();
        let socket = directory.path().join("cli.sock");
        let server = Server::start(Options {
            listen: "127.0.0.1:0".parse().unwrap(),
            socket: socket.clone(),
            token_file: None,
            program: program(directory.path()),
        });
        Site {
            fake: Arc::default(),
            server: server.unwrap(),
            control: Control {
                socket,
                ..Control::default()
            },
            router: None,
            directory,
        }
    }

    pub fn start_router(&mut self) {
        let server = api::Server::start(&self.control, self.fake.clone());
        self.router = Some(server.unwrap());
    }

    pub fn token(&self) -> String {
        let text = std::fs::read_to_string(self.server.token_file()).unwrap();
        text.trim().to_owned()
    }

    pub fn directory(&self) -> PathBuf {
        self.directory.path().to_owned()
    }
}
