//! What all requests share.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use tokio::sync::Semaphore;

use crate::tester::Tester;
use crate::token::Token;
use watch::Live;

/// The router, the load tester, the rights, the limits.
pub(crate) struct App {
    /// The router's control socket.
    pub socket: PathBuf,
    pub live: Arc<Live>,
    pub tester: Tester,
    pub token: Token,
    /// The address that is listened on.
    pub address: SocketAddr,
    /// Places for requests that have a body, which may be large.
    pub bodies: Semaphore,
}
