//! The server: a thread that serves HTTP, and one that asks the router.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::{Semaphore, oneshot};

use crate::app::App;
use crate::site;
use crate::tester::Tester;
use crate::token::Token;
use watch::Watch;

/// Connections at a time; further ones wait.
const CONNECTIONS: usize = 64;
/// Requests with a body at a time: each may be a configuration of 16 MiB.
const BODIES: usize = 4;
/// Time limit for the head of a request, and for the next one on a connection.
const HEAD: Duration = Duration::from_secs(15);
/// Time limit for a connection: longer than the router may take to apply a configuration. Who
/// reads an answer slowly gives the place back then.
const CONNECTION: Duration = Duration::from_secs(660);
/// Threads that wait for the router on behalf of requests, at a time.
const ASKING: usize = 8;

/// Samples kept, one a second: ten minutes.
const SAMPLES: usize = 600;

/// What is to be served, and where.
#[derive(Debug, Clone)]
pub struct Options {
    /// Address to listen on; with port 0 any that is free.
    pub listen: SocketAddr,
    /// The router's control socket.
    pub socket: PathBuf,
    /// File for the token that changes need; `None`: `ui-PORT.token` beside the socket.
    pub token_file: Option<PathBuf>,
    /// The program whose `loadtest` a load test of the page is: `parshall`.
    pub program: PathBuf,
}

/// Reasons why there is no page.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The address is taken, or not ours.
    #[error("cannot listen on {0}: {1}; choose another address by --listen")]
    Listen(SocketAddr, io::Error),
    /// The token's file cannot be made.
    #[error("cannot write the token that changes need to {}: {}; choose another file by --token-file", .0.display(), .1)]
    Token(PathBuf, io::Error),
    /// The system has no thread.
    #[error("cannot start the page's threads: {0}")]
    Thread(#[from] io::Error),
}

/// A page that is served until this is dropped.
pub struct Server {
    app: Arc<App>,
    /// Both end their threads when they are dropped.
    _watch: Watch,
    _stop: oneshot::Sender<()>,
}

impl Server {
    /// Listens, and begins to ask the router, which need not run.
    ///
    /// # Errors
    /// The address is taken, the token's file cannot be made, or the system has no threads.
    pub fn start(options: Options) -> Result<Server, StartError> {
        let Options { listen, socket, .. } = options;
        let listener = TcpListener::bind(listen).map_err(|e| StartError::Listen(listen, e))?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let token_file = options
            .token_file
            .unwrap_or_else(|| socket.with_file_name(format!("ui-{}.token", address.port())));
        let token = Token::make(&token_file);
        let token = token.map_err(|e| StartError::Token(token_file.clone(), e))?;
        let watch = Watch::start(socket.clone(), SAMPLES)?;
        let (stop, stopped) = oneshot::channel();
        let app = Arc::new(App {
            socket,
            live: watch.live(),
            tester: Tester::new(options.program),
            token,
            address,
            bodies: Semaphore::new(BODIES),
        });
        let runtime = Builder::new_current_thread()
            .enable_all()
            .max_blocking_threads(ASKING)
            .build()?;
        let site = site::site(&app);
        // From here on a failure removes the token's file.
        let server = Server {
            app,
            _watch: watch,
            _stop: stop,
        };
        thread("ui-http", move || serve(runtime, listener, site, stopped))?;
        Ok(server)
    }

    /// The address that it listens on.
    pub fn address(&self) -> SocketAddr {
        self.app.address
    }

    /// The file of the token that changes need.
    pub fn token_file(&self) -> &Path {
        self.app.token.path()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.app.token.remove();
        self.app.tester.end();
    }
}

fn thread(name: &str, work: impl FnOnce() + Send + 'static) -> io::Result<()> {
    let thread = std::thread::Builder::new().name(name.into());
    thread.spawn(work).map(drop)
}

fn serve(
    runtime: Runtime,
    listener: TcpListener,
    site: axum::Router,
    stopped: oneshot::Receiver<()>,
) {
    runtime.spawn(accept(listener, site));
    // It is dropped, not sent to.
    let _ = runtime.block_on(stopped);
    runtime.shutdown_background();
}

async fn accept(listener: TcpListener, site: axum::Router) {
    let Ok(listener) = tokio::net::TcpListener::from_std(listener) else {
        return;
    };
    let places = Arc::new(Semaphore::new(CONNECTIONS));
    loop {
        let Ok(place) = places.clone().acquire_owned().await else {
            return;
        };
        let Ok((stream, _)) = listener.accept().await else {
            // The peer is gone already, or there is no file descriptor: wait for one.
            tokio::time::sleep(Duration::from_millis(50)).await;
            continue;
        };
        let service = TowerToHyperService::new(site.clone());
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(HEAD)
            .serve_connection(TokioIo::new(stream), service);
        tokio::spawn(async move {
            // Whoever breaks off is told nothing.
            let _ = tokio::time::timeout(CONNECTION, connection).await;
            drop(place);
        });
    }
}
