//! Network namespaces (network_namespaces(7)). Each thread is in one of its own choice.
#![allow(unsafe_code)]

use std::collections::BTreeMap;
use std::fs::{self, DirEntry, File, Metadata};
use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::fs::MetadataExt;
use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::thread;

use rustix::mount::{
    MountPropagationFlags, UnmountFlags, mount_bind, mount_bind_recursive, mount_change, unmount,
};
use rustix::net::{AddressFamily, SocketType, socket};
use rustix::thread::{LinkNameSpaceType, UnshareFlags, move_into_link_name_space, unshare_unsafe};

/// The file of the calling thread's namespace.
pub const OWN: &str = "/proc/thread-self/ns/net";

/// The option of a socket that has the cookie of its namespace (asm-generic/socket.h).
const SO_NETNS_COOKIE: libc::c_int = 71;

/// Runs `work` in the network namespace of the file `path` (as under /run/netns; `None`: the
/// present one), on a thread of its own. A panic continues in the caller.
///
/// # Errors
/// The namespace cannot be opened or entered (which needs CAP_SYS_ADMIN); whatever `work` reports.
pub fn within<T: Send>(
    path: Option<&Path>,
    work: impl FnOnce() -> io::Result<T> + Send,
) -> io::Result<T> {
    let Some(path) = path else { return work() };
    let namespace = File::open(path)?;
    let enter = move || {
        move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network))?;
        work()
    };
    thread::scope(|scope| {
        scope
            .spawn(enter)
            .join()
            .unwrap_or_else(|panic| resume_unwind(panic))
    })
}

/// Moves the calling thread, and no other, into a new network namespace. That has no name, and ends
/// with the last thread and descriptor in it.
///
/// # Errors
/// EPERM: this needs CAP_SYS_ADMIN.
pub fn enter_new() -> io::Result<()> {
    // SAFETY: it would be unsafe to stop sharing descriptors with the other threads, which is not
    // asked for.
    let done = unsafe { unshare_unsafe(UnshareFlags::NEWNET) };
    Ok(done?)
}

/// The cookie of the namespace of the file `path` (`None`: the calling thread's). Until the machine
/// restarts, no other namespace gets it, unlike its inode number.
///
/// # Errors
/// As [`within`]; ENOPROTOOPT: Linux before 5.14.
pub fn cookie(path: Option<&Path>) -> io::Result<u64> {
    within(path, || {
        let socket = socket(AddressFamily::UNIX, SocketType::DGRAM, None)?;
        let mut cookie = 0_u64;
        let mut length = size_of_val(&cookie) as libc::socklen_t;
        // SAFETY: the kernel writes no more than `length` bytes, and that is the room at `cookie`.
        let done = unsafe {
            libc::getsockopt(
                socket.as_raw_fd(),
                libc::SOL_SOCKET,
                SO_NETNS_COOKIE,
                (&raw mut cookie).cast(),
                &raw mut length,
            )
        };
        match done {
            0 => Ok(cookie),
            _ => Err(io::Error::last_os_error()),
        }
    })
}

/// The processes whose first thread is in the namespace of the file `path`, by number. Those that
/// come or go meanwhile may be missing.
///
/// # Errors
/// There is no such file; /proc is not mounted.
pub fn processes(path: &Path) -> io::Result<Vec<i32>> {
    let id = |metadata: Metadata| (metadata.dev(), metadata.ino());
    let wanted = id(fs::metadata(path)?);
    let number = |process: DirEntry| -> Option<i32> {
        let number = process.file_name().to_str()?.parse().ok()?;
        let own = fs::metadata(process.path().join("ns/net")).ok()?;
        (id(own) == wanted).then_some(number)
    };
    Ok(fs::read_dir("/proc")?
        .flatten()
        .filter_map(number)
        .collect())
}

/// The inode number of the process namespace that the machine starts with (linux/proc_ns.h).
const FIRST_PROCESSES: u64 = 0xefff_fffc;

/// All namespaces that threads are in, that have a name, or that a process has open, by inode
/// number, each with a path to it.
///
/// # Errors
/// Unsupported: not all processes are seen from here; PermissionDenied: we may not look into one.
/// /proc is not mounted.
pub fn all() -> io::Result<BTreeMap<u64, PathBuf>> {
    if fs::metadata("/proc/self/ns/pid")?.ino() != FIRST_PROCESSES {
        return Err(io::ErrorKind::Unsupported.into());
    }
    let mut found = BTreeMap::new();
    let list = |path: PathBuf| fs::read_dir(path).into_iter().flatten().flatten();
    for process in list("/proc".into()).map(|entry| entry.path()) {
        // The first one may hide from everybody, and is where the machine began. Others that cannot
        // be read have ended, or are no processes.
        let denied = fs::read_link(process.join("ns/net"))
            .err()
            .filter(|error| error.kind() == io::ErrorKind::PermissionDenied);
        if let Some(denied) = denied.filter(|_| !process.ends_with("1")) {
            return Err(denied);
        }
        let tasks = list(process.join("task")).map(|task| task.path().join("ns/net"));
        let open = list(process.join("fd")).map(|file| file.path());
        for path in tasks.chain(open) {
            if let Some(inode) = fs::read_link(&path).ok().and_then(|link| number(&link)) {
                found.entry(inode).or_insert(path);
            }
        }
    }
    for line in fs::read_to_string("/proc/self/mountinfo")?.lines() {
        let mut fields = line.split(' ').skip(3);
        let (root, place) = (fields.next(), fields.next());
        if let (Some(inode), Some(place)) = (root.and_then(|root| number(root.as_ref())), place) {
            found.entry(inode).or_insert_with(|| place.into());
        }
    }
    Ok(found)
}

/// The inode number in what the kernel calls a namespace: `net:[4026531840]`.
fn number(name: &Path) -> Option<u64> {
    let number = name.to_str()?.strip_prefix("net:[")?.strip_suffix(']')?;
    number.parse().ok()
}

/// Makes a namespace with a name, the file `path`, as `ip netns add` does. It ends with that name.
/// The inode number of the file, which is seen where the namespace is not mounted on it.
///
/// # Errors
/// AlreadyExists: there is such a file; EPERM: this needs CAP_SYS_ADMIN.
pub fn create(path: &Path) -> io::Result<u64> {
    if let Some(directory) = path.parent() {
        fs::create_dir_all(directory)?;
        share(directory)?;
    }
    let inode = File::create_new(path)?.metadata()?.ino();
    let name = || {
        enter_new()?;
        Ok(mount_bind(OWN, path)?)
    };
    let named = thread::scope(|scope| {
        let named = scope.spawn(name).join();
        named.unwrap_or_else(|panic| resume_unwind(panic))
    });
    named.map(|()| inode).inspect_err(|_| {
        let _ = fs::remove_file(path);
    })
}

/// What is mounted in a directory appears in all places where that directory is seen, as `ip netns`
/// has it: a process with mounts of its own sees names that come later, and no name is busy there
/// once it is removed here.
fn share(directory: &Path) -> io::Result<()> {
    let all = MountPropagationFlags::SHARED | MountPropagationFlags::REC;
    if mount_change(directory, all).is_err() {
        // It must be a mount of its own for that.
        mount_bind_recursive(directory, directory)?;
        mount_change(directory, all)?;
    }
    Ok(())
}

/// Removes a namespace's name, the file `path` that `ip netns add` made. The namespace ends with
/// the last process in it.
///
/// # Errors
/// There is no such file; EPERM: this needs CAP_SYS_ADMIN.
pub fn delete(path: &Path) -> io::Result<()> {
    // A file that is not mounted was left behind.
    let _ = unmount(path, UnmountFlags::DETACH);
    fs::remove_file(path)
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsRawFd;

    use super::*;

    fn own() -> u64 {
        fs::metadata(OWN).expect("a thread has one").ino()
    }

    #[test]
    fn another_namespace_is_entered_and_left() {
        if !rustix::process::geteuid().is_root() {
            println!("SKIP another_namespace_is_entered_and_left: needs root");
            return;
        }
        let other = || {
            enter_new().expect("root may");
            (own(), File::open(OWN).expect("is there"))
        };
        let (there, file) = thread::spawn(other).join().expect("no panic");
        let here = own();
        assert_ne!(here, there);
        let path = format!("/proc/self/fd/{}", file.as_raw_fd());
        let inside = within(Some(path.as_ref()), || Ok(own()));
        assert_eq!(inside.expect("is entered"), there);
        let cookies = [None, Some(path.as_ref())].map(|path| cookie(path).expect("has one"));
        assert_ne!(cookies[0], cookies[1]);
        assert_eq!(cookies[0], cookie(Some(OWN.as_ref())).expect("has one"));
        assert_eq!(own(), here);
        let missing = within(Some("/run/netns/no-such".as_ref()), || Ok(()));
        assert_eq!(
            missing.expect_err("is not there").kind(),
            io::ErrorKind::NotFound
        );
        let same = within(None, || Ok(own()));
        assert_eq!(same.expect("no need to enter"), here);
    }

    #[test]
    fn all_namespaces_are_seen_while_they_live() {
        if !rustix::process::geteuid().is_root() {
            println!("SKIP all_namespaces_are_seen_while_they_live: needs root");
            return;
        }
        let Ok(seen) = all() else {
            println!("SKIP all_namespaces_are_seen_while_they_live: in a process namespace");
            return;
        };
        assert!(seen.contains_key(&own()));
        let sees = |inode: u64| all().expect("as before").contains_key(&inode);
        let other = move || {
            enter_new().expect("root may");
            assert!(sees(own()), "a thread is in it");
            (own(), File::open(OWN).expect("is there"))
        };
        let (there, file) = thread::spawn(other).join().expect("no panic");
        assert!(sees(there), "it is open");
        assert_eq!(file.metadata().expect("it is open").ino(), there);
    }

    #[test]
    fn a_namespace_has_its_name_until_that_is_deleted() {
        let test = "a_namespace_has_its_name_until_that_is_deleted";
        if !rustix::process::geteuid().is_root() {
            println!("SKIP {test}: needs root");
            return;
        }
        let name = format!("parshall-lab-{}-0-made", std::process::id());
        let path = Path::new("/run/netns").join(name);
        create(&path).expect("root may");
        let there = within(Some(&path), || Ok(own())).expect("is entered");
        assert_ne!(there, own());
        let again = create(&path).expect_err("it has a name");
        assert_eq!(again.kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(within(Some(&path), || Ok(own())).expect("it stays"), there);
        delete(&path).expect("is there");
        assert!(!path.exists());
    }

    #[test]
    fn the_processes_of_a_namespace_are_found() {
        let ours = processes(OWN.as_ref()).expect("is there");
        assert!(ours.contains(&(std::process::id() as i32)), "{ours:?}");
        let missing: &Path = "/run/netns/no-such".as_ref();
        for refused in [processes(missing).map(drop), delete(missing)] {
            let refused = refused.expect_err("is not there");
            assert_eq!(refused.kind(), io::ErrorKind::NotFound);
        }
    }
}
