//! A client: asks a server of T-Rex's RPC, this one or another.

use std::io;
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::sync::Arc;
use std::time::{Duration, Instant};

use kernel::event::EventFd;
use serde_json::{Value, json};

use crate::rpc::Params;
use crate::zmtp::{self, Limits, Requester};

/// Time for a connection and for an answer.
const PATIENCE: Duration = Duration::from_secs(5);
/// Bytes of an answer at most: streams of a port have 16 MiB of text.
const ANSWER: usize = 64 << 20;

/// Reasons for having no answer.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// Nobody listens.
    #[error(
        "nothing answers at {0}: {1}; start `parshall trex-server` there, or name another address"
    )]
    NotRunning(String, io::Error),
    /// The connection failed, or the peer speaks something else.
    #[error("{0}: {1}")]
    Connection(String, zmtp::Error),
    /// What came is no answer.
    #[error("{0}: no answer of T-Rex's RPC: {1}")]
    Strange(String, String),
    /// The server refuses.
    #[error("{0}")]
    Refused(String),
}

/// A connection to a server.
pub struct Client {
    /// HOST:PORT, as given.
    name: String,
    requester: Requester,
    /// What `api_sync_v2` gave.
    api: String,
}

impl Client {
    /// Connects to HOST:PORT.
    ///
    /// # Errors
    /// Nobody listens, or what does speaks another protocol or version.
    pub fn connect(name: &str) -> Result<Self, Failure> {
        let not_running = |error| Failure::NotRunning(name.to_owned(), error);
        let addresses: Vec<SocketAddr> = name.to_socket_addrs().map_err(not_running)?.collect();
        let mut connected = Err(io::ErrorKind::AddrNotAvailable.into());
        for address in addresses {
            connected = TcpStream::connect_timeout(&address, PATIENCE);
            if connected.is_ok() {
                break;
            }
        }
        let limits = Limits {
            message: ANSWER,
            patience: PATIENCE,
            ..Limits::default()
        };
        let stop = Arc::new(EventFd::new().map_err(not_running)?);
        let requester = Requester::over(connected.map_err(not_running)?, stop, limits)
            .map_err(|error| Failure::Connection(name.to_owned(), error))?;
        let mut this = Self {
            name: name.to_owned(),
            requester,
            api: String::new(),
        };
        let version = json!({"name": "STL", "major": 5, "minor": 1});
        let answer = this.ask("api_sync_v2", version)?;
        this.api = answer["api_h"].as_str().unwrap_or_default().to_owned();
        Ok(this)
    }

    /// The result of a method.
    ///
    /// # Errors
    /// The server refuses, or the connection fails: then connect anew.
    pub fn ask(&mut self, method: &str, params: Value) -> Result<Value, Failure> {
        let mut params: Params = match params {
            Value::Object(params) => params,
            _ => Params::new(),
        };
        params.insert("api_h".to_owned(), json!(self.api));
        let request = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        let until = Instant::now() + PATIENCE;
        let answer = self.requester.ask(request.to_string().as_bytes(), until);
        let answer = answer.map_err(|error| Failure::Connection(self.name.clone(), error))?;
        let strange = |why: String| Failure::Strange(self.name.clone(), why);
        let mut answer: Value =
            serde_json::from_slice(&answer).map_err(|why| strange(why.to_string()))?;
        match (answer.get("error"), answer.get("result")) {
            (Some(error), _) => {
                let why = error["specific_err"].as_str().or(error["message"].as_str());
                Err(Failure::Refused(why.unwrap_or("it is refused").to_owned()))
            }
            (None, Some(_)) => Ok(answer["result"].take()),
            (None, None) => Err(strange("neither result nor error".to_owned())),
        }
    }
}
