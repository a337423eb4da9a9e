//! `parshall cleanup`: removes what killed predecessors left. What belongs to the living is left alone.

use std::fs;
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
    sockets(&mut done, Path::new(RUN));
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

/// Sockets that nobody listens on. Their locks stay: somebody may be about to take one.
fn sockets(done: &mut Done, directory: &Path) {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    for path in entries.map(|entry| entry.path()) {
        match control::api::remove_dead(&path) {
            Ok(true) => done.removed.push(format!("socket {}", path.display())),
            Ok(false) => {}
            Err(e) => done.failed.push(format!("{}: {e}", path.display())),
        }
    }
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
    processes()
        .find(|(_, directory)| is_router(directory) && here(directory))
        .map(|(pid, _)| pid)
}

/// Whether a process, by its directory in /proc, is a router: root's, and called like one.
fn is_router(process: &Path) -> bool {
    let read = |name| fs::read_to_string(process.join(name)).unwrap_or_default();
    let (line, status) = (read("cmdline"), read("status"));
    let mut words = line.split('\0');
    let program = words.next().unwrap_or_default();
    let command = words.next().unwrap_or_default();
    // Real, effective, saved and of the file system; the second is who it is.
    let uids = status.lines().find_map(|line| line.strip_prefix("Uid:"));
    let is_root = uids.and_then(|uids| uids.split_whitespace().nth(1)) == Some("0");
    let runs = !command.is_empty() && "run".starts_with(command);
    is_root && program.ends_with("parshall") && runs
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
    use std::io::Read;
    use std::os::unix::fs::PermissionsExt;
    use std::os::unix::net::{UnixListener, UnixStream};
    use std::os::unix::process::CommandExt;
    use std::process::{Command, Stdio};

    #[test]
    fn what_belongs_to_a_start_is_left_alone() {
        let directory = tempfile::tempdir().unwrap();
        let [socket, lock] = ["s", "s.lock"].map(|name| directory.path().join(name));
        drop(UnixListener::bind(&socket).unwrap());
        // A process that another test starts shares the listener until it becomes its program.
        while UnixStream::connect(&socket).is_ok() {
            std::thread::yield_now();
        }
        let starting = fs::File::create(&lock).unwrap();
        starting.try_lock().unwrap();
        let removed = || {
            let mut done = Done::default();
            sockets(&mut done, directory.path());
            assert!(done.failed.is_empty(), "{:?}", done.failed);
            done.removed.len()
        };
        assert_eq!(removed(), 0);
        assert!(socket.exists() && lock.exists());
        starting.unlock().unwrap();
        assert_eq!(removed(), 1);
        assert!(!socket.exists() && lock.exists());
    }

    /// Whoever calls his program parshall could keep devices from being put back.
    #[test]
    fn only_roots_processes_are_routers() {
        if !lab::cleanup::is_root() {
            println!("SKIP only_roots_processes_are_routers: needs root to be another user");
            return;
        }
        let directory = tempfile::tempdir().unwrap();
        let open = fs::Permissions::from_mode(0o755);
        fs::set_permissions(directory.path(), open).unwrap();
        fs::write(directory.path().join("run"), "echo; read end").unwrap();
        let found = |uid| {
            let mut child = Command::new("sh")
                .arg0("parshall")
                .arg("run")
                .current_dir(&directory)
                .uid(uid)
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .spawn()
                .unwrap();
            // It speaks when it is what it looks like.
            let mut said = [0];
            child.stdout.take().unwrap().read_exact(&mut said).unwrap();
            let found = is_router(&PathBuf::from(format!("/proc/{}", child.id())));
            drop(child.stdin.take());
            child.wait().unwrap();
            found
        };
        assert!(found(0));
        assert!(!found(65534));
    }

    #[test]
    fn nobody_holds_a_link_that_is_not_there() {
        assert_eq!(holder(u32::MAX), None);
    }
}
