//! One connection: requests and their answers.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};

use super::access::Access;
use super::{Answer, COMMENT, CONFIRM, Handler, LONG_REQUEST, Output, REQUEST, Request};
use crate::cli;
use crate::history::Who;

/// A stream with a deadline for everything done on it. A limit for each read or write would let a
/// peer that sends or takes a byte now and then stay forever.
struct Timely<'a> {
    /// Does not block.
    stream: &'a UnixStream,
    until: Instant,
}

impl Timely<'_> {
    fn wait(&self, flags: PollFlags) -> io::Result<()> {
        let left = self.until.saturating_duration_since(Instant::now());
        let limit = left.try_into().map_err(io::Error::other)?;
        let mut fds = [PollFd::new(self.stream, flags)];
        if left.is_zero() || poll(&mut fds, Some(&limit))? == 0 {
            Err(io::ErrorKind::TimedOut.into())
        } else {
            Ok(())
        }
    }
}

impl Read for Timely<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.wait(PollFlags::IN)?;
        self.stream.read(buffer)
    }
}

impl Write for Timely<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.wait(PollFlags::OUT)?;
        self.stream.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The other end of a connection.
#[derive(Debug)]
pub(super) struct Peer {
    /// The peer's rights.
    pub access: Access,
    /// The peer.
    pub who: Who,
}

/// Answers requests until the peer has no more. Each request must arrive within `patience` of the
/// answer before it, and the peer must take each answer within the same time.
///
/// # Errors
/// The peer is gone or too slow.
pub(super) fn converse(
    stream: &UnixStream,
    peer: &Peer,
    handler: &dyn Handler,
    patience: Duration,
) -> io::Result<()> {
    let limit = match peer.access {
        Access::Change => LONG_REQUEST,
        Access::Show | Access::None => REQUEST,
    };
    stream.set_nonblocking(true)?;
    let until = Instant::now() + patience;
    let mut reader = BufReader::new(Timely { stream, until });
    loop {
        let mut line = Vec::new();
        reader.get_mut().until = Instant::now() + patience;
        reader
            .by_ref()
            .take(limit as u64)
            .read_until(b'\n', &mut line)?;
        if line.is_empty() {
            return Ok(());
        }
        let too_long = line.last() != Some(&b'\n') && line.len() >= limit;
        let answer = if too_long {
            Err(format!("a request has at most {limit} bytes"))
        } else {
            answer(&line, peer, handler)
        };
        reader.get_mut().until = Instant::now() + patience;
        send(reader.get_mut(), answer)?;
        if too_long {
            return Ok(());
        }
    }
}

/// Sends an answer.
///
/// # Errors
/// The peer does not take it.
pub(super) fn send(to: &mut impl Write, answer: Result<Output, String>) -> io::Result<()> {
    let mut line = serde_json::to_vec(&Answer::from(answer))?;
    line.push(b'\n');
    to.write_all(&line)
}

/// The refusal of something that the peer may not do, which `verb` names.
pub(super) fn forbidden(verb: &str) -> String {
    format!(
        "you may not {verb} this; root may, and the groups that the configuration names under `control:`"
    )
}

fn answer(line: &[u8], peer: &Peer, handler: &dyn Handler) -> Result<Output, String> {
    let request: Request =
        serde_json::from_slice(line).map_err(|error| format!("this is not a request: {error}"))?;
    let command = cli::parse(&request.command).map_err(|error| error.to_string())?;
    let (needed, verb) = if command.spec.write {
        (Access::Change, "change")
    } else {
        (Access::Show, "see")
    };
    if peer.access < needed {
        return Err(forbidden(verb));
    }
    if let Some(seconds) = request.confirm.filter(|time| !(1..=CONFIRM).contains(time)) {
        return Err(format!(
            "a change can wait 1 to {CONFIRM} s for confirmation, not {seconds}"
        ));
    }
    if request
        .comment
        .as_ref()
        .is_some_and(|text| text.len() > COMMENT)
    {
        return Err(format!("a comment has at most {COMMENT} bytes"));
    }
    handler.call(&command, &request, &peer.who)
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::super::tests::Echo;
    use super::*;

    const PATIENCE: Duration = Duration::from_millis(300);

    fn peer(access: Access) -> Peer {
        let who = Who {
            uid: 7,
            pid: 1,
            name: None,
        };
        Peer { access, who }
    }

    /// Answers at length.
    struct Long;

    impl Handler for Long {
        fn call(&self, _: &cli::Command, _: &Request, _: &Who) -> Result<Output, String> {
            Ok(Output::Text("x".repeat(16 << 20)))
        }
    }

    /// The time that a connection lasts if its peer says `first`, then does `more` every now and
    /// then.
    fn lasts(
        first: &str,
        mut more: impl FnMut(&mut UnixStream) -> io::Result<()> + Send,
    ) -> Duration {
        let (ours, mut theirs) = UnixStream::pair().expect("a pair");
        theirs.write_all(first.as_bytes()).expect("there is room");
        thread::scope(|scope| {
            scope.spawn(move || {
                let end = Instant::now() + 20 * PATIENCE;
                while Instant::now() < end && more(&mut theirs).is_ok() {
                    thread::sleep(PATIENCE / 10);
                }
            });
            let begin = Instant::now();
            let _ = converse(&ours, &peer(Access::Show), &Long, PATIENCE);
            drop(ours);
            begin.elapsed()
        })
    }

    #[test]
    fn a_peer_that_sends_or_takes_a_little_now_and_then_does_not_stay() {
        let sender = lasts("", |peer| peer.write_all(b" "));
        assert!(sender < 5 * PATIENCE, "{sender:?}");
        let question = "{\"command\":[\"show\",\"errors\"]}\n";
        let taker = lasts(question, |peer| peer.read_exact(&mut [0; 16 << 10]));
        assert!(taker < 5 * PATIENCE, "{taker:?}");
    }

    #[test]
    fn a_peer_that_may_only_ask_may_not_change() {
        let line = br#"{"command":["clear","errors"]}"#;
        assert!(answer(line, &peer(Access::Show), &Echo).is_err());
        assert!(answer(line, &peer(Access::Change), &Echo).is_ok());
        let line = br#"{"command":["show","errors"]}"#;
        assert!(answer(line, &peer(Access::Show), &Echo).is_ok());
        assert!(answer(line, &peer(Access::None), &Echo).is_err());
    }

    #[test]
    fn a_change_waits_a_day_at_most() {
        for (seconds, right) in [(0, false), (1, true), (CONFIRM, true), (CONFIRM + 1, false)] {
            let line = format!("{{\"command\":[\"apply\"],\"confirm\":{seconds}}}");
            let answer = answer(line.as_bytes(), &peer(Access::Change), &Echo);
            assert_eq!(answer.is_ok(), right, "{answer:?}");
        }
    }

    #[test]
    fn a_comment_has_an_end() {
        for (length, right) in [(COMMENT, true), (COMMENT + 1, false)] {
            let text = "x".repeat(length);
            let line = format!("{{\"command\":[\"apply\"],\"comment\":\"{text}\"}}");
            let answer = answer(line.as_bytes(), &peer(Access::Change), &Echo);
            assert_eq!(answer.is_ok(), right, "{answer:?}");
        }
    }

    /// A configuration has room in what those send who may apply it.
    #[test]
    fn those_who_may_only_ask_may_send_less() {
        for (access, right) in [(Access::Show, false), (Access::Change, true)] {
            let (ours, theirs) = UnixStream::pair().expect("a pair");
            let text = "#".repeat(REQUEST);
            let said = thread::scope(|scope| {
                scope.spawn(|| converse(&ours, &peer(access), &Echo, PATIENCE * 10));
                let line = format!("{{\"command\":[\"plan\"],\"text\":\"{text}\"}}\n");
                let _ = (&theirs).write_all(line.as_bytes());
                let mut said = String::new();
                let _ = BufReader::new(&theirs).read_line(&mut said);
                drop(theirs);
                said
            });
            assert_eq!(said.contains("\"ok\":true"), right, "{said}");
        }
    }
}
