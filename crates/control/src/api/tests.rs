use std::fs::{self, File, Permissions};
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustix::thread::{Gid, Uid, set_thread_gid, set_thread_uid};

use testbed::{only, patience, until};

use super::connection_limit::ALL;
use super::*;
use crate::cli::{Command, Verb};
use crate::config::Control;

pub(super) struct Echo;

impl Handler for Echo {
    fn call(&self, command: &Command, request: &Request, who: &Who) -> Result<Output, String> {
        match command.verb {
            Verb::ShowTrace => Err("no packets were traced".into()),
            Verb::Apply => Ok(Output::Text(format!("{request:?} {who}"))),
            verb if request.json => Ok(Output::Json(
                serde_json::json!({ "verb": verb, "arguments": command.arguments }),
            )),
            verb => Ok(Output::Text(format!("{verb:?}\n{:?}", command.arguments))),
        }
    }
}

fn server() -> (tempfile::TempDir, Control, Server) {
    let directory = tempfile::tempdir().expect("a directory");
    let control = Control {
        socket: directory.path().join("cli.sock"),
        group: None,
        show_group: None,
    };
    let server = Server::start(&control, Arc::new(Echo)).expect("a server");
    (directory, control, server)
}

#[test]
fn a_client_is_answered() {
    let (_directory, control, _server) = server();
    let mut client = Client::connect(&control.socket).expect("connected");
    let text = client
        .call(&["sh", "int", "eth0"], false)
        .expect("an answer");
    assert_eq!(text, Output::Text("ShowInterface\n[\"eth0\"]".into()));
    let json = client.call(&["show", "runtime"], true).expect("an answer");
    assert_eq!(
        json,
        Output::Json(serde_json::json!({ "verb": "show-runtime", "arguments": [] }))
    );
    let refused = |words: &[&str], client: &mut Client| {
        client.call(words, false).expect_err("refused").to_string()
    };
    assert_eq!(
        refused(&["show", "trace"], &mut client),
        "no packets were traced"
    );
    let unknown = refused(&["bogus", "command"], &mut client);
    let known = "unknown input `bogus command`; known here: show, ";
    assert!(unknown.starts_with(known), "{unknown}");
    let unknown = refused(&["show", "interface", "e0", "bogus"], &mut client);
    assert_eq!(unknown, "show interface: unknown input `bogus`");
}

/// The data and the sender of a command reach its handler.
#[test]
fn a_configuration_is_sent() {
    let (_directory, control, _server) = server();
    let mut client = Client::connect(&control.socket).expect("connected");
    let request = Request {
        command: vec!["apply".into()],
        text: Some("interfaces: {}\n".repeat(100_000)),
        name: Some("router.yaml".into()),
        confirm: Some(60),
        comment: Some("hello".into()),
        ..Request::default()
    };
    let Ok(Output::Text(text)) = client.ask(&request) else {
        panic!("no answer");
    };
    assert!(text.starts_with(&format!("{request:?} ")));
    let pid = std::process::id();
    assert!(
        text.ends_with(&format!("pid {pid})")),
        "{}",
        &text[text.len() - 80..]
    );
}

#[test]
fn what_is_not_a_request_is_answered_too() {
    let (_directory, control, _server) = server();
    let stream = UnixStream::connect(&control.socket).expect("connected");
    let limit = Some(patience(Duration::from_secs(30)));
    stream.set_read_timeout(limit).expect("set");
    stream.set_write_timeout(limit).expect("set");
    let mut answers = BufReader::new(&stream);
    for junk in [
        "\n",
        "{}\n",
        "[1,2\n",
        "\u{0}\u{1}\n",
        "{\"command\":[\"show\"],\"more\":1}\n",
        "{\"command\":[]}\n",
    ] {
        (&stream).write_all(junk.as_bytes()).expect("written");
        let mut line = String::new();
        answers.read_line(&mut line).expect("answered");
        let answer: Answer = serde_json::from_str(&line).expect("an answer");
        assert!(!answer.ok && answer.error.is_some(), "{junk:?} {line}");
    }
    (&stream)
        .write_all(&vec![b'x'; LONG_REQUEST])
        .expect("written");
    let mut line = String::new();
    answers.read_line(&mut line).expect("answered");
    assert!(line.contains("at most"), "{line}");
}

#[test]
fn a_second_server_is_refused_and_a_dead_ones_socket_replaced() {
    let (_directory, control, running) = server();
    let error = Server::start(&control, Arc::new(Echo))
        .expect_err("one is running")
        .to_string();
    assert!(
        error.contains(&format!("already running (pid {})", std::process::id())),
        "{error}"
    );
    assert!(Client::connect(&control.socket).is_ok());
    drop(running);
    assert!(matches!(
        Client::connect(&control.socket),
        Err(Failure::NotRunning(_))
    ));
    // A socket whose owner was killed stays behind.
    leave_socket(&control.socket);
    assert!(matches!(
        Client::connect(&control.socket),
        Err(Failure::NotRunning(_))
    ));
    let _again = Server::start(&control, Arc::new(Echo)).expect("it is replaced");
    assert!(Client::connect(&control.socket).is_ok());
}

#[test]
fn a_file_in_the_way_is_left_alone() {
    let directory = tempfile::tempdir().expect("a directory");
    let control = Control {
        socket: directory.path().join("cli.sock"),
        group: None,
        show_group: None,
    };
    fs::write(&control.socket, "precious").expect("written");
    assert!(matches!(
        Server::start(&control, Arc::new(Echo)),
        Err(StartError::NotASocket(_))
    ));
    assert_eq!(
        fs::read_to_string(&control.socket).expect("there"),
        "precious"
    );
}

#[test]
fn the_mode_says_who_may_connect() {
    let mode = |control: &Control| {
        fs::metadata(&control.socket)
            .expect("there")
            .permissions()
            .mode()
            & 0o777
    };
    let (_directory, control, server) = server();
    assert_eq!(mode(&control), 0o600);
    drop(server);
    let control = Control {
        show_group: Some("users".into()),
        ..control
    };
    let _server = Server::start(&control, Arc::new(Echo)).expect("a server");
    assert_eq!(mode(&control), 0o666);
}

/// The group nogroup of Debian, and the user nobody.
const NOBODY: u32 = 65534;
/// The group users of Debian.
const USERS: u32 = 100;

/// A server that the group users may ask.
fn shown() -> (tempfile::TempDir, Control, Server) {
    let (directory, control, server) = server();
    drop(server);
    let open = Permissions::from_mode(0o755);
    fs::set_permissions(directory.path(), open).expect("set");
    let control = Control {
        show_group: Some("users".into()),
        ..control
    };
    let server = Server::start(&control, Arc::new(Echo)).expect("a server");
    (directory, control, server)
}

/// As many connections as the server has, of a user who is in one group.
fn connections(control: &Control, gid: u32) -> Vec<UnixStream> {
    let (nobody, gid) = (Uid::from_raw(NOBODY), Gid::from_raw(gid));
    let connect = || {
        // Of this thread only.
        set_thread_gid(gid).expect("root may");
        set_thread_uid(nobody).expect("root may");
        let one = |_| UnixStream::connect(&control.socket).expect("everyone may connect");
        (0..ALL).map(one).collect()
    };
    thread::scope(|scope| scope.spawn(connect).join().expect("connected"))
}

fn skipped(name: &str) -> bool {
    !testbed::root(name)
}

#[test]
fn those_who_may_only_ask_do_not_keep_root_out() {
    if skipped("those_who_may_only_ask_do_not_keep_root_out") {
        return;
    }
    let (_directory, control, _server) = shown();
    let _held = connections(&control, USERS);
    let mut client = Client::connect(&control.socket).expect("connected");
    client.call(&["show", "errors"], false).expect("an answer");
}

#[test]
fn those_who_may_do_nothing_are_sent_away_at_once() {
    if skipped("those_who_may_do_nothing_are_sent_away_at_once") {
        return;
    }
    let (_directory, control, _server) = shown();
    for mut stream in connections(&control, NOBODY) {
        let limit = Some(patience(Duration::from_secs(10)));
        stream.set_read_timeout(limit).expect("set");
        let mut said = String::new();
        stream.read_to_string(&mut said).expect("and closed");
        assert!(said.contains("you may not see this"), "{said}");
    }
}

#[test]
fn a_panic_costs_no_place() {
    struct Panics;
    impl Handler for Panics {
        fn call(&self, _: &Command, _: &Request, _: &Who) -> Result<Output, String> {
            panic!("this is what the test is about");
        }
    }
    let (_directory, control, server) = server();
    drop(server);
    let _server = Server::start(&control, Arc::new(Panics)).expect("a server");
    for _ in 0..=ALL {
        let mut client = Client::connect(&control.socket).expect("connected");
        let said = client.call(&["show", "errors"], false);
        assert!(matches!(said, Err(Failure::Io(..))), "{said:?}");
    }
}

#[test]
fn a_client_that_is_sent_away_knows_why() {
    let (theirs, ours) = UnixStream::pair().expect("a pair");
    connection::send(&mut &theirs, Err("too many".into())).expect("there is room");
    drop(theirs);
    let mut client = Client::over("a pair".as_ref(), ours).expect("a client");
    let said = client.call(&["show", "errors"], false);
    assert_eq!(said.expect_err("refused").to_string(), "too many");
}

/// A directory that is not there is not made, and a server leaves nothing in one that is.
#[test]
fn a_server_leaves_nothing_behind() {
    let (directory, control, server) = server();
    let left = || fs::read_dir(directory.path()).expect("there").count();
    assert_eq!(left(), 2, "the socket and its lock");
    drop(server);
    assert_eq!(left(), 0);
    let deep = Control {
        socket: directory.path().join("deep/er/cli.sock"),
        ..control
    };
    let error = Server::start(&deep, Arc::new(Echo)).expect_err("there is no directory");
    assert!(matches!(error, StartError::NoDirectory(_)), "{error}");
    assert!(error.to_string().contains("deep/er"), "{error}");
    assert_eq!(left(), 0);
}

/// Leaves a socket as a killed listener does. A process that another test starts shares the
/// listener until it becomes its program.
fn leave_socket(path: &Path) {
    drop(UnixListener::bind(path).expect("bound"));
    let nobody = until(patience(Duration::from_secs(30)), || {
        UnixStream::connect(path).is_err()
    });
    assert!(nobody, "somebody listens on {}", path.display());
}

#[test]
fn only_what_the_dead_have_left_is_removed() {
    let (_directory, control, running) = server();
    let removed = || remove_dead(&control.socket).expect("it can be seen");
    assert!(!removed() && control.socket.exists());
    drop(running);
    assert!(!removed());
    leave_socket(&control.socket);
    // Somebody starts and has not come to the socket yet.
    let starting = crate::lock::Lock::take(&control.socket).expect("it is free");
    assert!(!removed() && control.socket.exists());
    drop(starting);
    assert!(removed() && !control.socket.exists());
    assert!(!control.socket.with_added_extension("lock").exists());
    fs::write(&control.socket, "precious").expect("written");
    assert!(!removed() && control.socket.exists());
}

/// Clock ticks of the processor that the process has used, by its open /proc/self/stat.
fn ticks(stat: &File) -> u64 {
    let mut text = [0; 1024];
    let length = stat.read_at(&mut text, 0).expect("it is ours");
    let text = String::from_utf8_lossy(&text[..length]);
    let fields = text.rsplit(')').next().expect("fields after the name");
    let times = fields.split_whitespace().skip(11).take(2);
    times
        .map(|time| time.parse::<u64>().expect("a number"))
        .sum()
}

/// The limit is of the process: this one runs in one of its own.
#[test]
fn without_file_descriptors_it_rests() {
    const ALONE: &str = "PARSHALL_TEST_NO_DESCRIPTORS";
    if std::env::var_os(ALONE).is_none() {
        let output = only("api::tests::without_file_descriptors_it_rests")
            .env(ALONE, "1")
            .output(Duration::from_secs(120))
            .expect("run it");
        assert!(output.status.success(), "{output:?}");
        return;
    }
    let (_directory, control, _server) = server();
    let mut early = Client::connect(&control.socket).expect("connected");
    let mut asks = || early.call(&["show", "errors"], false).expect("an answer");
    asks();
    let stat = File::open("/proc/self/stat").expect("there");
    let limit = Rlimit {
        current: Some(64),
        ..getrlimit(Resource::Nofile)
    };
    setrlimit(Resource::Nofile, limit).expect("less is allowed");
    let mut others: Vec<File> = std::iter::from_fn(|| File::open("/dev/null").ok()).collect();
    others.pop();
    let mut late = Client::connect(&control.socket).expect("one is left");
    let before = ticks(&stat);
    for _ in 0..10 {
        asks();
        thread::sleep(Duration::from_millis(50));
    }
    let used = ticks(&stat) - before;
    // Of about 50 in that time.
    assert!(used < 20, "{used} ticks");
    drop(others);
    late.call(&["show", "errors"], false).expect("an answer");
}
