//! Times at which a client tries its server again: at once when the server's socket appears, else
//! after longer and longer pauses.

use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::fs::inotify::{self, CreateFlags, Reader, WatchFlags};
use rustix::io::Result;

/// Pause after a socket has appeared that did not answer yet: its owner makes the file before it
/// listens.
const SOON: Duration = Duration::from_millis(10);
/// Pause after a connection has ended.
const FIRST: Duration = Duration::from_millis(100);
/// Longest pause: how late a server is found whose socket has no file to watch for.
const LONGEST: Duration = Duration::from_secs(2);

/// The next attempt, and the pause if it fails.
#[derive(Clone, Copy, Debug)]
pub struct Retry {
    at: Instant,
    pause: Duration,
}

impl Retry {
    /// At once.
    pub fn new(now: Instant) -> Self {
        Self {
            at: now,
            pause: FIRST,
        }
    }

    /// True if it is time.
    pub fn is_due(&self, now: Instant) -> bool {
        now >= self.at
    }

    /// Time left until then.
    pub fn left(&self, now: Instant) -> Duration {
        self.at.saturating_duration_since(now)
    }

    /// An attempt failed, or a connection ended.
    pub fn failed(&mut self, now: Instant) {
        self.at = now + self.pause;
        self.pause = (self.pause * 2).min(LONGEST);
    }

    /// The connection is up.
    pub fn succeeded(&mut self) {
        self.pause = FIRST;
    }

    /// The server's socket has appeared.
    pub fn arrived(&mut self, now: Instant) {
        *self = Self {
            at: now,
            pause: SOON,
        };
    }
}

/// Tells when files appear in the directories of sockets.
#[derive(Debug)]
pub struct Arrivals(OwnedFd);

impl Arrivals {
    /// Watches nothing yet.
    ///
    /// # Errors
    /// Too many watchers or files are open.
    pub fn new() -> Result<Self> {
        inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK).map(Self)
    }

    /// Watches the directory of a socket. Where that is not possible (it is not there, or the
    /// socket has no file) the pauses alone decide. To watch it
    /// again changes nothing.
    pub fn watch(&self, socket: &str) {
        let directory = Path::new(socket).parent();
        if let Some(directory) = directory.filter(|_| !socket.starts_with('@')) {
            let directory = if directory.as_os_str().is_empty() {
                Path::new(".")
            } else {
                directory
            };
            let appears = WatchFlags::CREATE | WatchFlags::MOVED_TO;
            // Without the watch the pauses decide.
            let _ = inotify::add_watch(&self.0, directory, appears);
        }
    }

    /// The names of the files that have appeared since the last call.
    pub fn names(&self) -> Vec<Vec<u8>> {
        let mut buffer = [MaybeUninit::uninit(); 4096];
        let mut reader = Reader::new(&self.0, &mut buffer);
        let mut names = Vec::new();
        while let Ok(event) = reader.next() {
            names.extend(event.file_name().map(|name| name.to_bytes().to_owned()));
        }
        names
    }
}

/// True if a socket's file may be one of these.
pub fn is_among(socket: &str, names: &[Vec<u8>]) -> bool {
    let file = Path::new(socket).file_name();
    file.is_some_and(|file| names.iter().any(|name| name == file.as_encoded_bytes()))
}

impl AsRawFd for Arrivals {
    fn as_raw_fd(&self) -> RawFd {
        self.0.as_raw_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_and_begin_anew() {
        let now = Instant::now();
        let mut retry = Retry::new(now);
        assert!(retry.is_due(now));
        let pauses = |retry: &mut Retry, count: usize| -> Vec<u128> {
            let mut pause = || {
                retry.failed(now);
                retry.left(now).as_millis()
            };
            (0..count).map(|_| pause()).collect()
        };
        assert_eq!(
            pauses(&mut retry, 7),
            [100, 200, 400, 800, 1600, 2000, 2000]
        );
        retry.arrived(now);
        assert!(retry.is_due(now));
        assert_eq!(pauses(&mut retry, 3), [10, 20, 40]);
        retry.succeeded();
        assert_eq!(pauses(&mut retry, 2), [100, 200]);
    }

    #[test]
    fn only_the_socket_itself_is_an_arrival() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = |name: &str| directory.path().join(name).display().to_string();
        let arrivals = Arrivals::new().expect("inotify");
        arrivals.watch(&path("s"));
        arrivals.watch(&path("s"));
        arrivals.watch("@s");
        for name in ["t", "u"] {
            std::fs::write(path(name), "").expect("writes");
        }
        assert!(!is_among(&path("s"), &arrivals.names()));
        std::fs::rename(path("t"), path("s")).expect("renames");
        let names = arrivals.names();
        assert!(is_among(&path("s"), &names), "{names:?}");
        assert!(arrivals.names().is_empty());
    }
}
