//! What a child prints, read while it is given its input, with a limit.
//!
//! One thread does both by poll(2), and a pipe that a grandchild holds open keeps nobody waiting: what counts is the end
//! of the child, seen by its pidfd.

use std::{
    io::{self, ErrorKind, Read, Write},
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    process::{Child, ExitStatus, Output},
    time::{Duration, Instant},
};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use crate::group::{Ended, end, kill_group};

/// Most that a pipe holds where nobody asked for more (pipe(7)), in bytes.
const PIPE: usize = 64 << 10;

/// How a child ended, and what it has printed until then.
#[derive(Debug)]
pub(crate) struct Captured {
    /// Its exit status, or that it had to be killed.
    pub status: Result<ExitStatus, Ended>,
    pub stdout: Vec<u8>,
    pub stderr: Vec<u8>,
}

impl Captured {
    /// As the standard library has it; none of a child that did not end by itself.
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

/// Gives the child its input and takes what it prints, until it ends or `limit` is over; then its process group is
/// killed. What it leaves of its process group is killed in any case. The child must lead a process group.
pub(crate) fn capture(child: &mut Child, input: &[u8], limit: Duration) -> io::Result<Captured> {
    let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
    let carried = carry(child, input, limit, &mut stdout, &mut stderr);
    // Whatever has gone wrong, no child is left; and none of its own.
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

/// Carries between the pipes and the buffers until the child has ended, which it tells, or `limit` is over. The child is
/// not reaped.
fn carry(
    child: &mut Child,
    mut input: &[u8],
    limit: Duration,
    stdout: &mut Vec<u8>,
    stderr: &mut Vec<u8>,
) -> io::Result<bool> {
    let deadline = Instant::now() + limit;
    let pidfd = pidfd(child)?;
    let mut stdin = child.stdin.take();
    let (mut out, mut err) = (child.stdout.take(), child.stderr.take());
    for pipe in [fd(&stdin), fd(&out), fd(&err)].into_iter().flatten() {
        rustix::io::ioctl_fionbio(pipe, true)?;
    }
    loop {
        if !give(&mut stdin, &mut input) {
            // Closed, so that the child sees the end of its input.
            stdin = None;
        }
        let left = deadline.saturating_duration_since(Instant::now());
        let read = [fd(&out), fd(&err)].into_iter().flatten();
        let polled = [pidfd.as_fd()].into_iter().chain(read);
        let mut polled: Vec<PollFd> = polled
            .map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN))
            .collect();
        polled.extend(fd(&stdin).map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::OUT)));
        let timeout = Timespec::try_from(left).expect("limits are minutes");
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

fn pidfd(child: &Child) -> io::Result<OwnedFd> {
    let pid = Pid::from_raw(child.id() as i32).expect("a process has a number");
    Ok(pidfd_open(pid, PidfdFlags::empty())?)
}

fn fd<T: AsFd>(pipe: &Option<T>) -> Option<BorrowedFd<'_>> {
    pipe.as_ref().map(AsFd::as_fd)
}

/// Writes what there is room for; false if there is nothing more to write, or nobody who reads it: a program that ends
/// without reading its input says why by its exit code.
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

/// Reads what is there, as much as a pipe can hold: whoever never stops printing does not keep us. At its end the pipe
/// is closed.
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
