//! Accepts connections, a thread each.

use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use kernel::event::{EventFd, poll, pollfd};

use super::socket::Socket;
use super::{Error, Limits};

/// Serves one connection to its end.
pub type Serve = Arc<dyn Fn(Socket) -> Result<(), Error> + Send + Sync>;

/// How long to accept nobody after the system had no room for another connection.
const REST: Duration = Duration::from_millis(200);

/// A listening socket; dropping it ends all its connections.
#[derive(Debug)]
pub struct Listener {
    address: SocketAddr,
    stop: Arc<EventFd>,
    thread: Option<JoinHandle<()>>,
}

impl Listener {
    /// Listens, and serves by threads of its own.
    ///
    /// # Errors
    /// The address cannot be had.
    pub fn start(address: SocketAddr, limits: Limits, serve: Serve) -> io::Result<Self> {
        let listener = TcpListener::bind(address)?;
        let address = listener.local_addr()?;
        listener.set_nonblocking(true)?;
        let stop = Arc::new(EventFd::new()?);
        let stopped = stop.clone();
        let accept = move || accept_all(&listener, &stopped, limits, &serve);
        let thread = thread::Builder::new().name("trex-accept".into());
        Ok(Self {
            address,
            stop,
            thread: Some(thread.spawn(accept)?),
        })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.stop.signal();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn accept_all(listener: &TcpListener, stop: &Arc<EventFd>, limits: Limits, serve: &Serve) {
    let mut connections: Vec<JoinHandle<()>> = Vec::new();
    let mut resting = false;
    loop {
        let mut fds = [
            pollfd(&**stop, libc::POLLIN),
            pollfd(listener, libc::POLLIN),
        ];
        match resting {
            true => poll(&mut fds[..1], Some(REST)),
            false => poll(&mut fds, None),
        };
        if fds[0].revents != 0 {
            break;
        }
        connections.retain(|connection| !connection.is_finished());
        let stream = match listener.accept() {
            Ok((stream, _)) => stream,
            Err(error) => {
                let passes = [io::ErrorKind::WouldBlock, io::ErrorKind::ConnectionAborted];
                resting = !passes.contains(&error.kind());
                continue;
            }
        };
        // Whoever finds no room is sent away: a ZeroMQ client comes again by itself.
        if connections.len() < limits.connections {
            let begun = begin(stream, stop.clone(), limits, serve.clone());
            resting = begun.is_err();
            connections.extend(begun);
        }
    }
    for connection in connections {
        let _ = connection.join();
    }
}

fn begin(
    stream: TcpStream,
    stop: Arc<EventFd>,
    limits: Limits,
    serve: Serve,
) -> Result<JoinHandle<()>, Error> {
    let socket = Socket::new(stream, stop, limits)?;
    // How a connection ends is its peer's affair.
    let serve = move || drop(serve(socket));
    Ok(thread::Builder::new()
        .name("trex-client".into())
        .spawn(serve)?)
}
