//! Requests as T-Rex's clients make them, and a server with ports in this process.
#![allow(dead_code, reason = "not every test uses all of it")]

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;

use graph::{Pool, Port, pool};
use io::ring::Ring;
use loadgen::model::units::Bits;
use miniz_oxide::deflate::compress_to_vec_zlib;
use miniz_oxide::inflate::decompress_to_vec_zlib;
use serde_json::{Value, json};
use session::{Link, Member, Session};
use testbed::{patience, until};
use trex::zmtp::Limits;
use trex::{Addresses, PortFacts, Server};
use wire::eth::Mac;

use crate::client::{Client, LIMIT};

/// Any port of loopback.
pub const ANY: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

const MAGIC: [u8; 4] = [0xab, 0xe8, 0x5c, 0xea];

/// A server of two ports at the ends of a wire of 1 Gbit/s.
pub fn server() -> (Server, Arc<Pool>) {
    server_of(1 << 12)
}

/// One whose wire holds so many packets.
pub fn server_of(packets: usize) -> (Server, Arc<Pool>) {
    server_with(packets, None)
}

/// One whose port 0 has that device.
pub fn server_with(packets: usize, link: Option<Link>) -> (Server, Arc<Pool>) {
    let pool = Pool::new(1 << 14, pool::STRIDE).expect("packet memory");
    let (one, other) = Ring::pair(["a", "b"], packets).expect("a wire");
    let line = Some(Bits(1e9));
    let members = [one, other].into_iter().enumerate();
    let members = members.map(|(number, end)| Member {
        port: Box::new(end) as Box<dyn Port>,
        receiver: number ^ 1,
        line,
    });
    let session = Session::of(members.collect(), &pool).expect("a thread");
    let facts = [0, 1].map(|number| PortFacts {
        driver: "ring".into(),
        description: "a wire".into(),
        receiver: usize::from(number ^ 1),
        line,
        mac: Mac([2, 0, 0, 0, 0, number]),
        destination: Mac([2, 0, 0, 0, 0, number ^ 1]),
        takes_all: true,
        link: link.clone().filter(|_| number == 0),
    });
    let addresses = Addresses {
        requests: ANY,
        events: ANY,
    };
    let server = Server::start(session, facts.to_vec(), addresses, Limits::default());
    (server.expect("ports of loopback"), pool)
}

pub fn pack(bytes: &[u8]) -> Vec<u8> {
    let length = u32::try_from(bytes.len()).expect("short").to_be_bytes();
    [&MAGIC, &length, &compress_to_vec_zlib(bytes, 6)[..]].concat()
}

pub fn unpack(bytes: &[u8]) -> Vec<u8> {
    assert_eq!(bytes[..4], MAGIC);
    decompress_to_vec_zlib(&bytes[8..]).expect("zlib")
}

/// A client of the server, with a session of its own.
pub struct Rpc {
    pub client: Client,
    pub session_id: u64,
    pub api: String,
    pub handlers: [String; 2],
}

impl Rpc {
    pub fn connect(server: &Server, session_id: u64) -> Self {
        let mut this = Self {
            client: Client::greeted(server.addresses().requests, "REQ"),
            session_id,
            api: String::new(),
            handlers: Default::default(),
        };
        let sync = this.call(
            "api_sync_v2",
            json!({"name": "STL", "major": 5, "minor": 1}),
        );
        this.api = sync["api_h"].as_str().expect("a handler").to_owned();
        assert!(this.events().is_empty(), "from now on");
        this
    }

    /// One that has both ports.
    pub fn with_ports(server: &Server) -> Self {
        let mut this = Self::connect(server, 1);
        for port in 0..2 {
            this.acquire(port, "ann", false).expect("nobody has it");
        }
        this
    }

    pub fn acquire(&mut self, port: usize, user: &str, force: bool) -> Result<(), String> {
        let id = self.session_id;
        let handler = self.ask(
            "acquire",
            json!({"port_id": port, "user": user, "session_id": id, "force": force}),
        )?;
        self.handlers[port] = handler.as_str().expect("a handler").to_owned();
        assert_eq!(self.handlers[port].len(), 8);
        Ok(())
    }

    /// The result, or code and text of the error.
    pub fn ask(&mut self, method: &str, mut params: Value) -> Result<Value, String> {
        params["api_h"] = json!(self.api);
        if let Some(port @ 0..2) = params["port_id"].as_u64()
            && params.get("handler").is_none()
        {
            params["handler"] = json!(self.handlers[usize::try_from(port).expect("small")]);
        }
        let request = json!({"jsonrpc": "2.0", "id": "x", "method": method, "params": params});
        let answer = self.client.ask(&pack(request.to_string().as_bytes()));
        let answer: Value = serde_json::from_slice(&unpack(&answer)).expect("JSON");
        assert_eq!(
            (&answer["jsonrpc"], &answer["id"]),
            (&json!("2.0"), &json!("x"))
        );
        match answer.get("error") {
            None => Ok(answer["result"].clone()),
            Some(error) => Err(format!("{} {}", error["code"], error["specific_err"])),
        }
    }

    pub fn call(&mut self, method: &str, params: Value) -> Value {
        let asked = params.to_string();
        self.ask(method, params)
            .unwrap_or_else(|why| panic!("{method} {asked}: {why}"))
    }

    pub fn refused(&mut self, method: &str, params: Value) -> String {
        let asked = params.to_string();
        let result = self.ask(method, params);
        result.expect_err(&format!("{method} {asked} is refused"))
    }

    /// Numbers and types of the events since the last call.
    pub fn events(&mut self) -> Vec<(u64, u64)> {
        let params = json!({"user": "ann", "session_id": self.session_id});
        let events = self.call("get_async_events", params);
        let events = events["data"].as_array().expect("a list").iter();
        let number = |event: &Value, name: &str| event[name].as_u64().expect("a number");
        events
            .map(|event| (number(event, "seq"), number(event, "type")))
            .collect()
    }

    /// Awaits an event of a type, and returns the types up to it.
    pub fn await_event(&mut self, kind: u64) -> Vec<u64> {
        let mut kinds = Vec::new();
        let came = until(patience(LIMIT), || {
            kinds.extend(self.events().into_iter().map(|(_, kind)| kind));
            kinds.contains(&kind)
        });
        assert!(came, "{kind} in {kinds:?}");
        kinds
    }

    pub fn state(&mut self, port: usize) -> String {
        let status = self.call(
            "get_port_status",
            json!({"port_id": port, "profile_id": "*"}),
        );
        status["state"].as_str().expect("a state").to_owned()
    }

    pub fn port_counter(&mut self, port: usize, name: &str) -> u64 {
        let counters = self.call("get_port_stats", json!({"port_id": port}));
        counters[name].as_u64().expect("a number")
    }
}
