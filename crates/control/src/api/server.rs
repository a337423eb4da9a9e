//! The side that answers.

use std::fs::{self, DirBuilder, File, Permissions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, OpenOptionsExt, PermissionsExt, chown};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use kernel::event::{EventFd, poll, pollfd};

use super::Handler;
use super::access::{self, Access};
use super::connection::{Peer, converse, forbidden, send};
use super::connection_limit::ConnectionLimit;
use super::error::StartError;
use crate::config::Control;
use crate::lock::{Lock, LockError};

/// Longest time that a connection may be idle, or that a request or its answer may take to arrive.
/// A person may think for less than that between two commands; a peer that is stuck holds one of
/// few connections.
const PATIENCE: Duration = Duration::from_secs(60);
/// Pause before accepting again after the system had no room for another connection: the waiting
/// connection would wake the thread again at once.
const REST: Duration = Duration::from_millis(200);

/// A running server; dropping it removes the socket and its lock.
#[derive(Debug)]
pub struct Server {
    path: PathBuf,
    /// Held for as long as the server runs.
    _lock: Lock,
    stop: Arc<EventFd>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    /// Opens the socket and answers from threads of its own. It replaces what a dead predecessor
    /// left.
    ///
    /// # Errors
    /// Another one is running; a group or the socket's directory does not exist, unless it is the
    /// default one; the socket cannot be made.
    pub fn start(control: &Control, handler: Arc<dyn Handler>) -> Result<Server, StartError> {
        if let Some(group) = missing_group(control) {
            return Err(StartError::NoGroup(group.clone()));
        }
        let path = control.socket.clone();
        let failed = |error| StartError::Io(path.clone(), error);
        directory(&path)?;
        let mut lock = Lock::take(&path)?;
        lock.sign().map_err(failed)?;
        if fs::symlink_metadata(&path).is_ok_and(|found| !found.file_type().is_socket()) {
            return Err(StartError::NotASocket(path));
        }
        let listener = listen(&path, control).map_err(failed)?;
        let stop = Arc::new(EventFd::new().map_err(failed)?);
        let (control, stopped) = (control.clone(), stop.clone());
        let serve = move || accept_all(&listener, &stopped, &control, &handler);
        let thread = thread::Builder::new()
            .name("api".into())
            .spawn(serve)
            .map_err(failed)?;
        Ok(Server {
            path,
            _lock: lock,
            stop,
            thread: Some(thread),
        })
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop.signal();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
        let _ = fs::remove_file(&self.path);
    }
}

/// Sees to it that there is a directory for a socket: the default one is made.
fn directory(socket: &Path) -> Result<(), StartError> {
    let Some(directory) = socket.parent().filter(|path| !path.as_os_str().is_empty()) else {
        return Ok(());
    };
    if Some(directory) == Control::default().socket.parent() {
        // Whatever our umask is, nobody else may put files there.
        let mut builder = DirBuilder::new();
        let made = builder.recursive(true).mode(0o755).create(directory);
        return made.map_err(|error| StartError::Io(socket.to_owned(), error));
    }
    if directory.is_dir() {
        Ok(())
    } else {
        Err(StartError::NoDirectory(directory.to_owned()))
    }
}

/// A group that is named but does not exist. The default one need not exist.
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

/// Removes the socket that a killed server has left at `path`. False if there is none, or if a
/// server listens there or is about to.
///
/// # Errors
/// As [`Server::start`], for what is in the way.
pub fn remove_dead(path: &Path) -> Result<bool, StartError> {
    // A server that is alive is not disturbed by our taking its lock.
    if !is_dead(path) {
        return Ok(false);
    }
    let _lock = match Lock::take(path) {
        Err(LockError::Held(_)) => return Ok(false),
        taken => taken?,
    };
    // A server may have started before we had the lock; now none can.
    if !is_dead(path) {
        return Ok(false);
    }
    fs::remove_file(path).map_err(|error| StartError::Io(path.to_owned(), error))?;
    Ok(true)
}

/// Returns true if this is a socket whose owner is gone. A socket of another type than ours counts
/// as alive.
fn is_dead(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|found| found.file_type().is_socket())
        && UnixStream::connect(path)
            .is_err_and(|error| error.kind() == io::ErrorKind::ConnectionRefused)
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
    // By a descriptor: somebody else who may write to the directory could put a link to another
    // file there.
    let flags = libc::O_PATH | libc::O_NOFOLLOW;
    let made = File::options()
        .read(true)
        .custom_flags(flags)
        .open(&fresh)?;
    if !made.metadata()?.file_type().is_socket() {
        return Err(io::ErrorKind::AlreadyExists.into());
    }
    let made_path = format!("/proc/self/fd/{}", made.as_raw_fd());
    if let Some(group) = group {
        chown(&made_path, None, Some(group))?;
    }
    fs::set_permissions(&made_path, Permissions::from_mode(mode))?;
    fs::rename(&fresh, path)?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}

fn accept_all(
    listener: &UnixListener,
    stop: &EventFd,
    control: &Control,
    handler: &Arc<dyn Handler>,
) {
    let seats = Arc::new(ConnectionLimit::default());
    let mut resting = false;
    loop {
        let mut fds = [pollfd(stop, libc::POLLIN), pollfd(listener, libc::POLLIN)];
        if resting {
            poll(&mut fds[..1], Some(REST))
        } else {
            poll(&mut fds, None)
        };
        if fds[0].revents != 0 {
            return;
        }
        resting = match listener.accept() {
            Ok((stream, _)) => {
                // A connection that fails is simply over.
                let _ = admit(stream, &seats, control, handler);
                false
            }
            Err(error) => !matches!(
                error.kind(),
                io::ErrorKind::WouldBlock
                    | io::ErrorKind::Interrupted
                    | io::ErrorKind::ConnectionAborted
            ),
        };
    }
}

/// Gives a connection a thread, or says why not.
fn admit(
    mut stream: UnixStream,
    seats: &Arc<ConnectionLimit>,
    control: &Control,
    handler: &Arc<dyn Handler>,
) -> io::Result<()> {
    // A refusal fits into a new connection's buffer; nobody waits for peers here.
    stream.set_nonblocking(true)?;
    let peer = rustix::net::sockopt::socket_peercred(&stream)?;
    let who = access::who(&peer);
    let access = access::of(&peer, &who, control);
    if access == Access::None {
        return send(&mut stream, Err(forbidden("see")));
    }
    let Some(seat) = seats.take(peer.uid.as_raw(), access) else {
        return send(&mut stream, Err("too many connections; try again".into()));
    };
    let handler = handler.clone();
    let peer = Peer { access, who };
    let serve = move || {
        let _seat = seat;
        let _ = converse(&stream, &peer, handler.as_ref(), PATIENCE);
    };
    thread::Builder::new()
        .name("api-client".into())
        .spawn(serve)?;
    Ok(())
}
