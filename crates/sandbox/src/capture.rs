//! Reads what a child prints while writing its input, within a time limit.
//!
//! One thread does both with poll(2). A pipe that a grandchild holds open keeps nobody waiting:
//! reading stops when the child ends, which its pidfd shows.

use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::process::{Child, ExitStatus, Output};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use crate::group::{Ended, end, kill_group};

/// Default capacity of a pipe in bytes (pipe(7)).
const PIPE: usize = 64 << 10;

/// End of a child, and what it printed.
#[derive(Debug)]
pub(crate) struct Captured {
    /// Its exit status, or that it had to be killed.
    pub status: Result<ExitStatus, Ended>,
    pub stdout: Vec<u8>,
    pub stderr: Vec<u8>,
}

impl Captured {
    /// The standard library's output; an error if the child did not end by itself.
    pub(crate) fn output(self) -> Result<Output, Self> {
        match self.status {
            Ok(status) => Ok(Output {
                status,
                stdout: self.stdout,
                stderr: self.stderr,
            }),
            Err(_) => Err(self),
        }
    }
}

/// Writes the child's input and reads what it prints until it ends or `limit` has passed. Then its
/// process group, which the child must lead, is killed in either case.
pub(crate) fn capture(child: &mut Child, input: &[u8], limit: Duration) -> io::Result<Captured> {
    let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
    let carried = carry(child, input, limit, &mut stdout, &mut stderr);
    // Neither the child nor its children may be left, whatever went wrong.
    let status = match carried {
        Ok(true) => {
            kill_group(child);
            Ok(child.wait()?)
        }
        Ok(false) => Err(end(child)),
        Err(error) => {
            end(child);
            return Err(error);
        }
    };
    Ok(Captured {
        status,
        stdout,
        stderr,
    })
}

/// Copies between pipes and buffers until the child has ended or `limit` has passed. Returns
/// whether it has ended; it is not reaped.
fn carry(
    child: &mut Child,
    mut input: &[u8],
    limit: Duration,
    stdout: &mut Vec<u8>,
    stderr: &mut Vec<u8>,
) -> io::Result<bool> {
    let deadline = Instant::now() + limit;
    let pidfd = pidfd_open(Pid::from_child(child), PidfdFlags::empty())?;
    let mut stdin = child.stdin.take();
    let (mut out, mut err) = (child.stdout.take(), child.stderr.take());
    for pipe in [fd(&stdin), fd(&out), fd(&err)].into_iter().flatten() {
        rustix::io::ioctl_fionbio(pipe, true)?;
    }
    loop {
        if !give(&mut stdin, &mut input) {
            // Closing it shows the child the end of its input.
            stdin = None;
        }
        let left = deadline.saturating_duration_since(Instant::now());
        let read = [fd(&out), fd(&err)].into_iter().flatten();
        let polled = [pidfd.as_fd()].into_iter().chain(read);
        let mut polled: Vec<PollFd> = polled
            .map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN))
            .collect();
        polled.extend(fd(&stdin).map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::OUT)));
        let timeout = Timespec::try_from(left).map_err(io::Error::other)?;
        match poll(&mut polled, Some(&timeout)) {
            Err(Errno::INTR) | Ok(_) => {}
            Err(error) => return Err(error.into()),
        }
        let ended = polled[0].revents().contains(PollFlags::IN);
        take(&mut out, stdout);
        take(&mut err, stderr);
        if ended || left.is_zero() {
            return Ok(ended);
        }
    }
}

fn fd<T: AsFd>(pipe: &Option<T>) -> Option<BorrowedFd<'_>> {
    pipe.as_ref().map(AsFd::as_fd)
}

/// Writes as much as there is room for. Returns false if there is nothing more to write, or if
/// nobody reads it: a program that ends without reading its input says why by its exit code.
fn give(pipe: &mut Option<impl Write>, input: &mut &[u8]) -> bool {
    let Some(pipe) = pipe else { return false };
    while !input.is_empty() {
        match pipe.write(input) {
            Ok(written) => *input = &input[written..],
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return error.kind() == ErrorKind::WouldBlock,
        }
    }
    false
}

/// Reads what is there, but no more than a pipe can hold, so that a child that never stops printing
/// cannot keep us here. Closes the pipe at its end.
fn take(pipe: &mut Option<impl Read>, into: &mut Vec<u8>) {
    let mut buffer = [0; 16 << 10];
    for _ in 0..PIPE.div_ceil(buffer.len()) {
        let Some(open) = pipe else { return };
        match open.read(&mut buffer) {
            Ok(length) if length > 0 => into.extend_from_slice(&buffer[..length]),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) if error.kind() == ErrorKind::WouldBlock => return,
            _ => *pipe = None,
        }
    }
}
