use super::super::{Client, Failure};
use super::*;
use crate::cli::{Command, Verb};

struct Echo;

impl Handler for Echo {
    fn call(&self, command: &Command, json: bool) -> Result<Output, String> {
        match command.verb {
            Verb::ShowTrace => Err("no packets were traced".into()),
            verb if json => Ok(Output::Json(
                serde_json::json!({ "verb": verb, "arguments": command.arguments }),
            )),
            verb => Ok(Output::Text(format!("{verb:?}\n{:?}", command.arguments))),
        }
    }
}

fn server() -> (tempfile::TempDir, Control, Server) {
    let directory = tempfile::tempdir().expect("a directory");
    let control = Control {
        socket: directory.path().join("deep/cli.sock"),
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
    assert_eq!(
        refused(&["bogus", "command"], &mut client),
        "unknown input `bogus command'"
    );
}

#[test]
fn what_is_not_a_request_is_answered_too() {
    let (_directory, control, _server) = server();
    let stream = UnixStream::connect(&control.socket).expect("connected");
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
    (&stream).write_all(&vec![b'x'; REQUEST]).expect("written");
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
    drop(UnixListener::bind(&control.socket).expect("bound"));
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

#[test]
fn who_may_only_ask_may_not_change() {
    let line = br#"{"command":["clear","errors"]}"#;
    assert!(answer(line, Access::Show, &Echo).is_err());
    assert!(answer(line, Access::Change, &Echo).is_ok());
    assert!(answer(br#"{"command":["show","errors"]}"#, Access::Show, &Echo).is_ok());
    assert!(answer(br#"{"command":["show","errors"]}"#, Access::None, &Echo).is_err());
}
