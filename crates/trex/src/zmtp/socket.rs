//! A TCP connection all of whose waiting has an end.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::{Duration, Instant};

use kernel::event::{EventFd, poll, pollfd};

use super::{Error, Limits};

/// A connection. It ends when the server stops.
pub struct Socket {
    stream: TcpStream,
    stop: Arc<EventFd>,
    pub limits: Limits,
}

impl Socket {
    pub fn new(stream: TcpStream, stop: Arc<EventFd>, limits: Limits) -> Result<Self, Error> {
        stream.set_nonblocking(true)?;
        stream.set_nodelay(true)?;
        Ok(Self {
            stream,
            stop,
            limits,
        })
    }

    /// When what begins now has to be done.
    pub fn deadline(&self) -> Instant {
        Instant::now() + self.limits.patience
    }

    /// Waits until something is there to read; with `wake`, or until that is signalled. Returns
    /// whether there is something to read.
    pub fn readable(&self, wake: Option<&EventFd>, until: Option<Instant>) -> Result<bool, Error> {
        self.wait(libc::POLLIN, wake, until)
    }

    fn wait(
        &self,
        events: i16,
        wake: Option<&EventFd>,
        until: Option<Instant>,
    ) -> Result<bool, Error> {
        loop {
            let mut fds = vec![
                pollfd(&*self.stop, libc::POLLIN),
                pollfd(&self.stream, events),
            ];
            fds.extend(wake.map(|wake| pollfd(wake, libc::POLLIN)));
            let left = until.map(|until| until.saturating_duration_since(Instant::now()));
            let any = poll(&mut fds, left);
            if any && fds[0].revents != 0 {
                return Err(Error::Stopped);
            }
            if any {
                return Ok(fds[1].revents != 0);
            }
            // A signal may have come before its time.
            if left == Some(Duration::ZERO) {
                return Err(Error::Late);
            }
        }
    }

    /// Fills `into` by then.
    pub fn read(&mut self, mut into: &mut [u8], until: Instant) -> Result<(), Error> {
        while !into.is_empty() {
            match self.stream.read(into) {
                Ok(0) => return Err(std::io::Error::from(ErrorKind::UnexpectedEof).into()),
                Ok(read) => into = &mut into[read..],
                Err(error) => self.again(error, libc::POLLIN, until)?,
            }
            // One that always has another byte to give is late, too.
            if !into.is_empty() && Instant::now() >= until {
                return Err(Error::Late);
            }
        }
        Ok(())
    }

    /// Writes all of it by then.
    pub fn write(&mut self, mut bytes: &[u8], until: Instant) -> Result<(), Error> {
        while !bytes.is_empty() {
            match self.stream.write(bytes) {
                Ok(written) => bytes = &bytes[written..],
                Err(error) => self.again(error, libc::POLLOUT, until)?,
            }
            if !bytes.is_empty() && Instant::now() >= until {
                return Err(Error::Late);
            }
        }
        Ok(())
    }

    fn again(&self, error: std::io::Error, events: i16, until: Instant) -> Result<(), Error> {
        match error.kind() {
            ErrorKind::WouldBlock => self.wait(events, None, Some(until)).map(drop),
            ErrorKind::Interrupted => Ok(()),
            _ => Err(error.into()),
        }
    }
}
