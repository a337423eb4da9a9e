//! What strangers send to T-Rex's RPC server: frames of ZeroMQ, and requests in them.
#![cfg_attr(fuzzing, no_main)]

use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpStream};
use std::panic;
use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use graph::{Pool, Port, pool};
use io::ring::Ring;
use serde_json::{Value, json};
use session::{Member, Session};
use trex::zmtp::Limits;
use trex::{Addresses, PortFacts, Server};
use wire::eth::Mac;

/// What the server says of all answers together, at most.
const LONGEST_ANSWER: usize = 64 << 20;
/// How what is compressed begins.
const PACKED: [u8; 4] = 0xABE8_5CEA_u32.to_be_bytes();

/// Whether a thread of a server has panicked: to a client, that only ends a connection.
static PANICKED: AtomicBool = AtomicBool::new(false);

/// Notes panics of servers' threads, beside what is done about panics anyway.
fn note_panics() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let before = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            let thread = thread::current();
            let is_server = thread.name().is_some_and(|name| name.starts_with("trex-"));
            PANICKED.fetch_or(is_server, Ordering::Relaxed);
            before(info);
        }));
    });
}

/// Whatever comes as a greeting, as frames or as a request, the server goes on, and a request has
/// an answer. `{API}` and `{0}` stand for what the server gave before.
pub fn check(bytes: &[u8]) {
    note_panics();
    let server = server();
    let Addresses { requests, events } = server.addresses();
    talk(requests, bytes);
    talk(requests, &[&shake("REQ"), bytes].concat());
    talk(events, &[&shake("SUB"), bytes].concat());
    let given = |method: &str, params: Value| {
        let request = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        let answer = ask(requests, request.to_string().as_bytes());
        let answer: Value = serde_json::from_slice(&answer).expect("JSON");
        answer["result"].clone()
    };
    let sync = given(
        "api_sync_v2",
        json!({"name": "STL", "major": 5, "minor": 1}),
    );
    let api = sync["api_h"].as_str().expect("text");
    let handler = given("acquire", json!({"api_h": api, "port_id": 0, "user": "x"}));
    let handler = handler.as_str().expect("text");
    let body = match std::str::from_utf8(bytes) {
        Ok(text) => text.replace("{API}", api).replace("{0}", handler).into(),
        Err(_) => bytes.to_vec(),
    };
    let answer = ask(requests, &body);
    assert!(
        answer.starts_with(&PACKED) || is_whole(&answer),
        "{answer:?}"
    );
    assert!(given("ping", json!({}))["ts"].is_number());
    drop(server);
    assert!(!PANICKED.load(Ordering::Relaxed), "a server's thread has");
}

/// Whether an answer, or each of several, is one of JSON-RPC.
fn is_whole(answer: &[u8]) -> bool {
    let is_one = |answer: &Value| {
        let (result, error) = (answer.get("result"), answer.get("error"));
        answer["jsonrpc"] == "2.0" && result.is_some() != error.is_some()
    };
    match serde_json::from_slice(answer) {
        Ok(Value::Array(answers)) => answers.len() > 1 && answers.iter().all(is_one),
        Ok(answer) => is_one(&answer),
        Err(_) => false,
    }
}

/// Two ports at the ends of a wire.
fn server() -> Server {
    let pool = Pool::new(256, pool::STRIDE).expect("packet memory");
    let (one, other) = Ring::pair(["a", "b"], 64).expect("a wire");
    let members = [one, other].into_iter().enumerate();
    let members = members.map(|(number, end)| Member {
        port: Box::new(end) as Box<dyn Port>,
        receiver: number ^ 1,
        line: None,
    });
    let session = Session::of(members.collect(), &pool).expect("a thread");
    let facts = [0, 1].map(|number| PortFacts {
        driver: "ring".into(),
        description: "a wire".into(),
        receiver: usize::from(number ^ 1),
        line: None,
        mac: Mac([2, 0, 0, 0, 0, number]),
        destination: Mac([2, 0, 0, 0, 0, number ^ 1]),
        takes_all: true,
        link: None,
    });
    let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let addresses = Addresses {
        requests: any,
        events: any,
    };
    Server::start(session, facts.to_vec(), addresses, Limits::default()).expect("ports of loopback")
}

/// A greeting of version 3.0, and READY as a socket of that type.
fn shake(kind: &str) -> Vec<u8> {
    let mut bytes = vec![0; 64];
    (bytes[0], bytes[9], bytes[10]) = (0xff, 0x7f, 3);
    bytes[12..16].copy_from_slice(b"NULL");
    let body = [b"\x05READY\x0bSocket-Type\0\0\0\x03", kind.as_bytes()].concat();
    bytes.extend([4, body.len() as u8]);
    bytes.extend(body);
    bytes
}

/// The body of the answer to a request.
fn ask(server: SocketAddr, body: &[u8]) -> Vec<u8> {
    let length = (body.len() as u64).to_be_bytes();
    let heard = talk(
        server,
        &[&shake("REQ"), &[1, 0, 2][..], &length, body].concat(),
    );
    // After a greeting, READY and an empty frame.
    let ready = 64 + 2 + usize::from(heard[65]);
    let answer = heard[ready..].strip_prefix(&[1, 0]).expect("an envelope");
    let (length, body) = match answer {
        [0, length, body @ ..] => (usize::from(*length), body),
        [2, rest @ ..] => {
            let (length, body) = rest.split_first_chunk().expect("a length");
            (u64::from_be_bytes(*length) as usize, body)
        }
        _ => panic!("{answer:?} is no frame"),
    };
    assert_eq!(body.len(), length, "one frame");
    body.to_vec()
}

/// Says this on a connection; what the server says until it ends.
fn talk(server: SocketAddr, bytes: &[u8]) -> Vec<u8> {
    let stream = TcpStream::connect(server).expect("it listens");
    let mut heard = Vec::new();
    thread::scope(|scope| {
        scope.spawn(|| {
            // A server that has heard enough does not hear the rest.
            let _ = (&stream).write_all(bytes);
            let _ = stream.shutdown(Shutdown::Write);
        });
        let _ = (&stream)
            .take(LONGEST_ANSWER as u64 + 1)
            .read_to_end(&mut heard);
    });
    assert!(heard.len() <= LONGEST_ANSWER, "{} bytes", heard.len());
    heard
}

#[cfg(fuzzing)]
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| check(bytes));
