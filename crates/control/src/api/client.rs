//! The side that asks.

use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::{Answer, Output, Request};
use crate::cli;

/// Time limit for an answer: longer than the 20 s after which the server says that the router is
/// busy, so that the operator reads that.
const PATIENCE: Duration = Duration::from_secs(30);
/// Time limit for an answer to a command that [takes its time](Verb::is_long): longer, for
/// the same reason, than the server's 600 s.
const LONG_PATIENCE: Duration = Duration::from_secs(610);

/// Reasons for having no answer.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// Nobody listens.
    #[error("no router is running (nothing answers at {}); start one with `parshall run -c FILE`", .0.display())]
    NotRunning(PathBuf),
    /// We may not use the socket.
    #[error("you may not use {}; be root, or a member of the group that the configuration names under `control:`", .0.display())]
    Forbidden(PathBuf),
    /// It takes longer than a router that is busy would.
    #[error("the router has not answered at {} in {} s: it hangs or is stopped; `systemctl status parshall` or its log say more", .0.display(), .1.as_secs())]
    Silent(PathBuf, Duration),
    /// The connection failed.
    #[error("the router does not answer at {}: {}", .0.display(), .1)]
    Io(PathBuf, io::Error),
    /// The router refuses.
    #[error("{0}")]
    Refused(String),
}

/// A connection to a router.
#[derive(Debug)]
pub struct Client {
    path: PathBuf,
    reader: BufReader<UnixStream>,
}

impl Client {
    /// Connects to the router that listens at `path`.
    ///
    /// # Errors
    /// There is none, or we may not ask it.
    pub fn connect(path: &Path) -> Result<Client, Failure> {
        let stream = UnixStream::connect(path).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused => {
                Failure::NotRunning(path.to_owned())
            }
            io::ErrorKind::PermissionDenied => Failure::Forbidden(path.to_owned()),
            _ => Failure::Io(path.to_owned(), error),
        })?;
        Client::over(path, stream).map_err(|error| Failure::Io(path.to_owned(), error))
    }

    /// One over the connection that was made to `path`.
    pub(super) fn over(path: &Path, stream: UnixStream) -> io::Result<Client> {
        stream.set_write_timeout(Some(PATIENCE))?;
        Ok(Client {
            path: path.to_owned(),
            reader: BufReader::new(stream),
        })
    }

    /// Asks.
    ///
    /// # Errors
    /// The router refuses, or the connection fails.
    pub fn call(&mut self, command: &[impl AsRef<str>], json: bool) -> Result<Output, Failure> {
        let command = command
            .iter()
            .map(|word| word.as_ref().to_owned())
            .collect();
        self.ask(&Request {
            command,
            json,
            ..Request::default()
        })
    }

    /// Asks something with more to it than words.
    ///
    /// # Errors
    /// As [`Client::call`].
    pub fn ask(&mut self, request: &Request) -> Result<Output, Failure> {
        let long = cli::parse(&request.command).is_ok_and(|command| command.verb.is_long());
        let patience = if long { LONG_PATIENCE } else { PATIENCE };
        let answer = self.exchange(request, patience);
        let path = || self.path.clone();
        let answer = answer.map_err(|error| match error.kind() {
            io::ErrorKind::WouldBlock => Failure::Silent(path(), patience),
            _ => Failure::Io(path(), error),
        })?;
        match answer {
            Answer {
                ok: true,
                json: Some(json),
                ..
            } => Ok(Output::Json(json)),
            Answer { ok: true, text, .. } => Ok(Output::Text(text.unwrap_or_default())),
            Answer { error, .. } => Err(Failure::Refused(
                error.unwrap_or_else(|| "the router refuses".into()),
            )),
        }
    }

    fn exchange(&mut self, request: &Request, patience: Duration) -> io::Result<Answer> {
        self.reader.get_ref().set_read_timeout(Some(patience))?;
        let mut line = serde_json::to_vec(request)?;
        line.push(b'\n');
        match self.reader.get_mut().write_all(&line) {
            // A server that refuses us has said why before it closed.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {}
            written => written?,
        }
        let mut answer = String::new();
        if self.reader.read_line(&mut answer)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(serde_json::from_str(&answer)?)
    }
}
