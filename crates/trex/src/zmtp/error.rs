//! Why a connection is over.

use std::io;

/// Why a connection is over.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The system says so, or the peer has gone.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The server stops.
    #[error("the server stops")]
    Stopped,
    /// The peer took too long.
    #[error("the peer was silent for too long")]
    Late,
    /// The peer announces more than it may send.
    #[error("a frame of {announced} bytes where at most {most} may come")]
    TooLong {
        /// Its length.
        announced: u64,
        /// The most.
        most: usize,
    },
    /// The peer does not speak the protocol, or speaks what is not spoken here.
    #[error("{0}")]
    Malformed(&'static str),
}
