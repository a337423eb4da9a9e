//! A client that sends what it is told, byte by byte.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use serde_json::Value;

/// An answer.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub head: String,
    pub body: String,
}

impl Answer {
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|e| panic!("{e}: {self:?}"))
    }
}

/// Asks with these header lines beside `Host`, and a body.
pub fn ask(address: SocketAddr, request: &str, headers: &[&str], body: &str) -> Answer {
    let host = format!("Host: {address}");
    let length = format!("Content-Length: {}", body.len());
    let close = "Connection: close";
    let mut lines = vec![&*host, &*length, close];
    lines.extend(headers);
    raw(address, request, &lines, body)
}

/// Asks with these header lines only.
pub fn raw(address: SocketAddr, request: &str, headers: &[&str], body: &str) -> Answer {
    let mut stream = TcpStream::connect(address).unwrap();
    stream
        .set_read_timeout(Some(testbed::patience(Duration::from_secs(60))))
        .unwrap();
    let head = format!("{request} HTTP/1.1\r\n{}\r\n\r\n", headers.join("\r\n"));
    stream.write_all(head.as_bytes()).unwrap();
    // A server that refuses may close before it has all.
    let _ = stream.write_all(body.as_bytes());
    let mut text = Vec::new();
    let _ = stream.read_to_end(&mut text);
    let text = String::from_utf8(text).unwrap();
    let (head, body) = text
        .split_once("\r\n\r\n")
        .unwrap_or_else(|| panic!("no answer: {text:?}"));
    Answer {
        status: head[9..12].parse().unwrap(),
        head: head.to_lowercase(),
        body: body.to_owned(),
    }
}

pub fn get(address: SocketAddr, path: &str) -> Answer {
    ask(address, &format!("GET {path}"), &[], "")
}
