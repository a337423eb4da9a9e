//! `parshall cleanup`: removes what killed predecessors left, and leaves alone what belongs to the
//! living.

use std::path::Path;
use std::{fs, io, iter};

use control::netdev::{self, Cleaned, Devices, Kept, Places};
use control::netlink;

use crate::output;

/// Directory of all our sockets and notes.
const RUN: &str = "/run/parshall";

/// Removes namespaces, directories and processes of laboratories, puts network devices back,
/// removes addresses and routes that routers have left, notes of namespaces that are gone, and
/// sockets that nobody listens on. Prints what it did. It does not look for XDP programs: the
/// kernel takes a program off when the process that holds it ends, so one that is there belongs to
/// a living process.
///
/// # Errors
/// Not root; something could not be removed, which does not keep the rest from being removed.
pub fn run() -> crate::Outcome {
    if !sandbox::cleanup::is_root() {
        return Err("cleanup: needs root; run it with sudo".into());
    }
    let mut done = Done::default();
    done.removed.extend(sandbox::cleanup::leftovers());
    devices(&mut done);
    notes(&mut done);
    places(&mut done);
    sockets(&mut done, Path::new(RUN));
    // It is done, whether anybody reads this or not.
    let _ = output::say(None, &done.text());
    if done.failed.is_empty() {
        Ok(())
    } else {
        Err(format!("cleanup: {}", done.failed.join("; ")).into())
    }
}

/// The results of a cleanup, a line each.
#[derive(Default)]
struct Done {
    removed: Vec<String>,
    put_back: Vec<String>,
    kept: Vec<String>,
    failed: Vec<String>,
}

impl Done {
    fn count(&mut self, removed: usize, what: &str) {
        if removed > 0 {
            self.removed.push(format!("{removed} {what}"));
        }
    }

    fn text(&self) -> String {
        let lines = |word: &str, what: &[String]| -> String {
            what.iter().map(|line| format!("{word} {line}\n")).collect()
        };
        let done = lines("removed", &self.removed) + &lines("put back", &self.put_back);
        let done = match done.as_str() {
            "" => "nothing to clean up\n".to_owned(),
            _ => done,
        };
        done + &lines("left alone:", &self.kept)
    }
}

/// Names, namespaces and settings of devices that routers had changed.
fn devices(done: &mut Done) {
    let mut devices = Devices::new(None, None, netdev::NOTES.as_ref());
    for (_, error) in devices.take_over() {
        match error.kind() {
            io::ErrorKind::ResourceBusy => done.kept.push(error.to_string()),
            _ => done.failed.push(error.to_string()),
        }
    }
    for (device, restored) in devices.restore(Kept::Nothing) {
        let (name, original) = (device.name, device.original);
        match restored {
            Ok(()) if name == original => done.put_back.push(format!("device {name}")),
            Ok(()) => done
                .put_back
                .push(format!("device {original}, which was called {name}")),
            Err(e) => done
                .failed
                .push(format!("device {name} could not be restored: {e}")),
        }
    }
}

/// Addresses and routes that routers have left which ended suddenly, and the notes of network
/// namespaces that are gone.
fn notes(done: &mut Done) {
    // Where not all can be seen, none is surely gone.
    let living = kernel::netns::all().ok();
    match netdev::clean(netdev::LOCKS.as_ref(), living.as_ref()) {
        Ok(Cleaned { marks, locks }) => {
            done.removed.extend(marks);
            done.count(locks, "locks of network namespaces that are gone or unused");
        }
        Err(e) => done.failed.push(format!("addresses and routes: {e}")),
    }
    let Some(living) = living else { return };
    match netdev::forget_gone(netdev::NOTES.as_ref(), &living) {
        Ok(devices) => done.count(
            devices,
            "notes of devices of network namespaces that are gone",
        ),
        Err(e) => done.failed.push(format!("notes of devices: {e}")),
    }
}

/// Bridges and network namespaces that routers have made for taps.
fn places(done: &mut Done) {
    let mut places = Places::new(netlink::namespaces(), netdev::PLACES.as_ref());
    match places.take_over(iter::empty()) {
        Ok(removed) => done.count(removed, "bridges and namespaces that were made for taps"),
        Err(e) => done.failed.push(format!("what was made for taps: {e}")),
    }
}

/// Sockets that nobody listens on, each with its lock.
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

#[cfg(test)]
mod tests {
    use std::os::unix::net::{UnixListener, UnixStream};
    use std::time::Duration;

    use testbed::{patience, until};

    use super::*;

    #[test]
    fn what_is_done_is_said_in_plain_words() {
        let mut done = Done::default();
        assert_eq!(done.text(), "nothing to clean up\n");
        done.kept.push("device e0".to_owned());
        assert_eq!(done.text(), "nothing to clean up\nleft alone: device e0\n");
        done.put_back.push("device e1".to_owned());
        assert_eq!(done.text(), "put back device e1\nleft alone: device e0\n");
        done.removed.push("socket s".to_owned());
        assert_eq!(
            done.text(),
            "removed socket s\nput back device e1\nleft alone: device e0\n"
        );
    }

    #[test]
    fn what_belongs_to_a_start_is_left_alone() {
        let directory = tempfile::tempdir().unwrap();
        let [socket, lock] = ["s", "s.lock"].map(|name| directory.path().join(name));
        drop(UnixListener::bind(&socket).unwrap());
        // A process that another test starts shares the listener until it becomes its program.
        let nobody = || UnixStream::connect(&socket).is_err();
        assert!(until(patience(Duration::from_secs(30)), nobody));
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
        assert!(!socket.exists() && !lock.exists());
    }
}
