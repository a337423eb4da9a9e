//! The side that answers.

use std::fs::{self, File, Permissions, TryLockError};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{FileTypeExt, PermissionsExt, chown};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd, poll};

use super::access::{self, Access};
use super::{Answer, Handler, Output, REQUEST, Request};
use crate::cli;
use crate::config::Control;

/// Connections at a time.
const CONNECTIONS: usize = 32;
/// A connection without a request for this long is closed.
const IDLE: Duration = Duration::from_secs(60);

/// Why a server could not be started.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// Another one holds the lock.
    #[error(
        "parshall is already running (pid {0}); stop it first, or give this one another control socket"
    )]
    Running(String),
    /// Something that is not a socket is in the way.
    #[error("{} is not a socket; remove it, or choose another path", .0.display())]
    NotASocket(PathBuf),
    /// A group that may ask does not exist.
    #[error("there is no group {0}; make it (`groupadd --system {0}`) or correct `control:`")]
    NoGroup(String),
    /// The file system refuses.
    #[error("cannot make the control socket {}: {}", .0.display(), .1)]
    Io(PathBuf, io::Error),
}

/// A running server; dropping it removes the socket.
#[derive(Debug)]
pub struct Server {
    path: PathBuf,
    lock_path: PathBuf,
    /// Held for as long as the server runs; the kernel lets go of it whatever becomes of the process.
    _lock: File,
    stop: Arc<OwnedFd>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    /// Opens the socket and answers from threads of its own. What a dead predecessor left is replaced.
    ///
    /// # Errors
    /// Another one is running; a group is not there; the socket cannot be made.
    pub fn start(control: &Control, handler: Arc<dyn Handler>) -> Result<Server, StartError> {
        if let Some(group) = missing_group(control) {
            return Err(StartError::NoGroup(group.clone()));
        }
        let path = control.socket.clone();
        let failed = |error| StartError::Io(path.clone(), error);
        if let Some(directory) = path.parent() {
            fs::create_dir_all(directory).map_err(failed)?;
        }
        let lock_path = path.with_added_extension("lock");
        let lock = lock(&lock_path, &path)?;
        let listener = match fs::symlink_metadata(&path) {
            Ok(found) if !found.file_type().is_socket() => {
                Err(StartError::NotASocket(path.clone()))
            }
            _ => listen(&path, control).map_err(failed),
        };
        let listener = listener.inspect_err(|_| {
            let _ = fs::remove_file(&lock_path);
        })?;
        let stop =
            Arc::new(eventfd(0, EventfdFlags::CLOEXEC).map_err(|error| failed(error.into()))?);
        let (control, stopped) = (control.clone(), stop.clone());
        let serve = move || accept_all(&listener, &stopped, &Arc::new(control), &handler);
        let thread = thread::Builder::new()
            .name("api".into())
            .spawn(serve)
            .map_err(failed)?;
        Ok(Server {
            path: path.clone(),
            lock_path,
            _lock: lock,
            stop,
            thread: Some(thread),
        })
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = rustix::io::write(&*self.stop, &1u64.to_ne_bytes());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
        let _ = fs::remove_file(&self.path);
        let _ = fs::remove_file(&self.lock_path);
    }
}

/// A group that is named and does not exist. The usual one need not.
fn missing_group(control: &Control) -> Option<&String> {
    let usual = Control::default().group;
    let group = control
        .group
        .as_ref()
        .filter(|group| usual.as_ref() != Some(group));
    let named = [group, control.show_group.as_ref()].into_iter().flatten();
    named
        .into_iter()
        .find(|group| access::group_id(group).is_none())
}

/// Takes the lock that only one server of this socket can have, and leaves our process number in it.
fn lock(lock_path: &Path, path: &Path) -> Result<File, StartError> {
    let failed = |error| StartError::Io(path.to_owned(), error);
    let mut file = File::options()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .open(lock_path)
        .map_err(failed)?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            let mut pid = String::new();
            let _ = file.take(20).read_to_string(&mut pid);
            return Err(StartError::Running(pid.trim().to_owned()));
        }
        Err(TryLockError::Error(error)) => return Err(failed(error)),
    }
    file.set_len(0)
        .and_then(|()| writeln!(file, "{}", std::process::id()))
        .map_err(failed)?;
    Ok(file)
}

/// Makes the socket beside its place with the right owner and mode, then moves it there.
fn listen(path: &Path, control: &Control) -> io::Result<UnixListener> {
    let fresh = path.with_added_extension("new");
    let _ = fs::remove_file(&fresh);
    let listener = UnixListener::bind(&fresh)?;
    let group = control.group.as_deref().and_then(access::group_id);
    let mode = match (&control.show_group, group) {
        (Some(_), _) => 0o666,
        (None, Some(_)) => 0o660,
        (None, None) => 0o600,
    };
    if let Some(group) = group {
        chown(&fresh, None, Some(group))?;
    }
    fs::set_permissions(&fresh, Permissions::from_mode(mode))?;
    fs::rename(&fresh, path)?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}

fn accept_all(
    listener: &UnixListener,
    stop: &OwnedFd,
    control: &Arc<Control>,
    handler: &Arc<dyn Handler>,
) {
    let open = Arc::new(AtomicUsize::new(0));
    loop {
        let mut fds = [
            PollFd::new(listener, PollFlags::IN),
            PollFd::new(stop, PollFlags::IN),
        ];
        let _ = poll(&mut fds, None);
        if !fds[1].revents().is_empty() {
            return;
        }
        let Ok((stream, _)) = listener.accept() else {
            continue;
        };
        if open.fetch_add(1, Ordering::Relaxed) >= CONNECTIONS {
            open.fetch_sub(1, Ordering::Relaxed);
            let _ = send(
                &stream,
                &Err("too many connections; try again".into()).into(),
            );
            continue;
        }
        let (control, handler, count) = (control.clone(), handler.clone(), open.clone());
        let serve = move || {
            // A connection that fails is simply over.
            let _ = converse(&stream, &control, handler.as_ref());
            count.fetch_sub(1, Ordering::Relaxed);
        };
        if thread::Builder::new()
            .name("api-client".into())
            .spawn(serve)
            .is_err()
        {
            open.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

fn converse(stream: &UnixStream, control: &Control, handler: &dyn Handler) -> io::Result<()> {
    stream.set_nonblocking(false)?;
    stream.set_read_timeout(Some(IDLE))?;
    stream.set_write_timeout(Some(IDLE))?;
    let access = access::of(&rustix::net::sockopt::socket_peercred(stream)?, control);
    let mut reader = BufReader::new(stream);
    loop {
        let mut line = Vec::new();
        reader
            .by_ref()
            .take(REQUEST as u64)
            .read_until(b'\n', &mut line)?;
        if line.is_empty() {
            return Ok(());
        }
        if line.last() != Some(&b'\n') && line.len() >= REQUEST {
            return send(
                stream,
                &Err(format!("a request has at most {REQUEST} bytes")).into(),
            );
        }
        send(stream, &answer(&line, access, handler).into())?;
    }
}

fn answer(line: &[u8], access: Access, handler: &dyn Handler) -> Result<Output, String> {
    let request: Request =
        serde_json::from_slice(line).map_err(|error| format!("this is not a request: {error}"))?;
    let command = cli::parse(&request.command).map_err(|error| error.to_string())?;
    let needed = if command.spec.write {
        Access::Change
    } else {
        Access::Show
    };
    if access < needed {
        let verb = if command.spec.write { "change" } else { "see" };
        return Err(format!(
            "you may not {verb} this; root may, and the groups that the configuration names in control"
        ));
    }
    handler.call(&command, request.json)
}

fn send(mut stream: &UnixStream, answer: &Answer) -> io::Result<()> {
    let mut line = serde_json::to_vec(answer)?;
    line.push(b'\n');
    stream.write_all(&line)
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
