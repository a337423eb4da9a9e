//! What a client writes to the control socket.
#![cfg_attr(fuzzing, no_main)]

use std::io::{BufRead, Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::thread;

use control::api::{Answer, COMMENT, CONFIRM, Handler, LONG_REQUEST, Output, Request, Server};
use control::cli::{self, Command};
use control::config::Control;
use control::history::Who;

/// Answers with what it understood.
struct Echo;

impl Handler for Echo {
    fn call(&self, command: &Command, request: &Request, _: &Who) -> Result<Output, String> {
        Ok(match request.json {
            true => Output::Json(command.arguments.clone().into()),
            false => Output::Text(format!("{:?} {:?}", command.verb, command.arguments)),
        })
    }
}

/// Each line is answered: a request as it should be, anything else with what is wrong.
pub fn check(bytes: &[u8]) {
    let directory = tempfile::tempdir().expect("a directory");
    let control = Control {
        socket: directory.path().join("cli.sock"),
        group: None,
        show_group: None,
    };
    let server = Server::start(&control, Arc::new(Echo)).expect("a server");
    let stream = UnixStream::connect(&control.socket).expect("connected");
    let mut heard = Vec::new();
    thread::scope(|scope| {
        scope.spawn(|| {
            // A client that sends too much is not heard out.
            let _ = (&stream).write_all(bytes);
            let _ = stream.shutdown(Shutdown::Write);
        });
        let _ = (&stream).read_to_end(&mut heard);
    });
    drop(server);
    let mut answers = heard.lines().map(|line| {
        let line = line.expect("text");
        serde_json::from_str::<Answer>(&line).expect("an answer")
    });
    let mut rest = bytes;
    while !rest.is_empty() {
        let mut line = Vec::new();
        let mut at_most = rest.take(LONG_REQUEST as u64);
        at_most.read_until(b'\n', &mut line).expect("memory");
        rest = &rest[line.len()..];
        let answer = answers.next().expect("an answer to each line");
        assert!(is_right(&line, &answer), "{answer:?}");
        if line.len() == LONG_REQUEST && !line.ends_with(b"\n") {
            break;
        }
    }
    assert_eq!(answers.next(), None);
}

fn is_right(line: &[u8], answer: &Answer) -> bool {
    let too_long = line.len() == LONG_REQUEST && !line.ends_with(b"\n");
    let request = serde_json::from_slice::<Request>(line);
    let understood = request
        .ok()
        .filter(|_| !too_long)
        .filter(|request| {
            request
                .confirm
                .is_none_or(|time| (1..=CONFIRM).contains(&time))
        })
        .filter(|request| {
            request
                .comment
                .as_ref()
                .is_none_or(|text| text.len() <= COMMENT)
        })
        .and_then(|request| Some((cli::parse(&request.command).ok()?, request)));
    let nobody = Who {
        uid: 0,
        pid: 0,
        name: None,
    };
    match understood {
        Some((command, request)) => *answer == Answer::from(Echo.call(&command, &request, &nobody)),
        None => {
            let said = answer.error.as_ref().is_some_and(|error| !error.is_empty());
            !answer.ok && said && answer.text.is_none() && answer.json.is_none()
        }
    }
}

#[cfg(fuzzing)]
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| check(bytes));
