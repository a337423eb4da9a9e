//! `parshall cleanup`: removes what killed predecessors left. What belongs to the living is left alone.

use std::fs;
use std::io;
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use control::netdev::{self, Devices};
use control::netlink::Requests;

use crate::output;

/// Where all our sockets and notes are.
const RUN: &str = "/run/parshall";

/// Removes namespaces, directories and processes of laboratories, gives network devices their names back, takes XDP
/// programs that nobody holds off the interfaces, and removes sockets that nobody listens on. Prints what it did.
///
/// # Errors
/// Not root; something that could not be removed, which does not keep the rest from being removed.
pub fn run() -> crate::Outcome {
    if !lab::cleanup::is_root() {
        return Err("cleanup: needs root; run it with sudo".into());
    }
    let mut done = Done::default();
    done.removed.extend(lab::cleanup::leftovers());
    devices(&mut done);
    programs(&mut done)?;
    sockets(&mut done);
    // Whether anybody reads it or not, it is done.
    let _ = output::say(None, &done.text());
    match done.failed.is_empty() {
        true => Ok(()),
        false => Err(format!("cleanup: {}", done.failed.join("; ")).into()),
    }
}

/// What a cleanup did, a line each.
#[derive(Default)]
struct Done {
    removed: Vec<String>,
    kept: Vec<String>,
    failed: Vec<String>,
}

impl Done {
    fn text(&self) -> String {
        let lines = |word: &str, what: &[String]| -> String {
            what.iter().map(|line| format!("{word} {line}\n")).collect()
        };
        match self.removed.is_empty() {
            true => "nothing to clean up\n".to_owned() + &lines("left alone:", &self.kept),
            false => lines("removed", &self.removed) + &lines("left alone:", &self.kept),
        }
    }
}

/// Names and namespaces of devices that a router had changed.
fn devices(done: &mut Done) {
    let mut devices = Devices::new(None, None, netdev::STATE.as_ref());
    let changed: Vec<String> = devices
        .records()
        .iter()
        .map(|record| format!("{} (was {})", record.name, record.original))
        .collect();
    if changed.is_empty() {
        return;
    }
    if let Some(pid) = router() {
        let names = changed.join(", ");
        return done.kept.push(format!(
            "devices {names}: the router with process number {pid} uses them"
        ));
    }
    let failures = devices.restore();
    for change in &changed {
        if !failures
            .iter()
            .any(|(record, _)| change.ends_with(&format!("(was {})", record.original)))
        {
            done.removed.push(format!("change of device {change}"));
        }
    }
    done.failed.extend(
        failures
            .iter()
            .map(|(record, e)| format!("device {} could not be put back: {e}", record.name)),
    );
}

/// Programs of ours on interfaces of this namespace.
fn programs(done: &mut Done) -> crate::Outcome {
    let held = xdp::links().unwrap_or_default();
    for link in Requests::open(None)?.links()? {
        let Some(id) = link.xdp_program else { continue };
        let by = held
            .iter()
            .find(|l| l.program == id && l.ifindex == link.index);
        if let Some((by, pid)) = by.and_then(|by| Some((by, holder(by.id)?))) {
            done.kept.push(format!(
                "XDP program {} on {}: process {pid} holds it",
                by.name, link.name
            ));
            continue;
        }
        match xdp::cleanup(link.index) {
            Ok(true) => done.removed.push(format!("XDP program on {}", link.name)),
            Ok(false) => {}
            Err(e) => done
                .failed
                .push(format!("XDP program on {}: {e}", link.name)),
        }
    }
    Ok(())
}

/// Sockets that nobody listens on, with the locks beside them.
fn sockets(done: &mut Done) {
    let entries = fs::read_dir(RUN).into_iter().flatten().flatten();
    for path in entries.map(|entry| entry.path()) {
        let is_socket = fs::symlink_metadata(&path).is_ok_and(|m| m.file_type().is_socket());
        if !is_socket || !is_dead(&path) {
            continue;
        }
        match fs::remove_file(&path) {
            Ok(()) => done.removed.push(format!("socket {}", path.display())),
            Err(e) => done.failed.push(format!("{}: {e}", path.display())),
        }
        // Its owner is gone, so nobody holds the lock; without the socket it means nothing.
        let _ = fs::remove_file(path.with_added_extension("lock"));
    }
}

/// Whether a socket's owner is gone. One of another kind than we ask for is alive.
fn is_dead(path: &Path) -> bool {
    UnixStream::connect(path).is_err_and(|e| e.kind() == io::ErrorKind::ConnectionRefused)
}

/// All processes: number and directory.
fn processes() -> impl Iterator<Item = (u32, PathBuf)> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| Some((entry.file_name().to_str()?.parse().ok()?, entry.path())))
}

/// Process number of a running router of this namespace.
fn router() -> Option<u32> {
    let ours = fs::read_link("/proc/self/ns/net").ok();
    let here = |directory: &Path| fs::read_link(directory.join("ns/net")).ok() == ours;
    let runs = |directory: &Path| {
        let line = fs::read_to_string(directory.join("cmdline")).unwrap_or_default();
        let mut words = line.split('\0');
        words
            .next()
            .is_some_and(|program| program.ends_with("parshall"))
            && words
                .next()
                .is_some_and(|word| !word.is_empty() && "run".starts_with(word))
    };
    processes()
        .find(|(_, directory)| runs(directory) && here(directory))
        .map(|(pid, _)| pid)
}

/// Process number of one that holds a BPF link.
fn holder(link: u32) -> Option<u32> {
    let line = format!("link_id:\t{link}");
    let holds = |directory: &Path| {
        let entries = fs::read_dir(directory.join("fdinfo"))
            .into_iter()
            .flatten()
            .flatten();
        entries
            .filter_map(|entry| fs::read_to_string(entry.path()).ok())
            .any(|info| info.lines().any(|l| l == line))
    };
    processes()
        .find(|(_, directory)| holds(directory))
        .map(|(pid, _)| pid)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixListener;

    #[test]
    fn a_socket_is_dead_when_nobody_listens() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("s");
        let listener = UnixListener::bind(&path).unwrap();
        assert!(!is_dead(&path));
        drop(listener);
        assert!(is_dead(&path));
        assert!(!is_dead(&directory.path().join("none")));
    }

    #[test]
    fn nobody_holds_a_link_that_is_not_there() {
        assert_eq!(holder(u32::MAX), None);
    }
}
