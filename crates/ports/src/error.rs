//! Reasons why a port cannot be opened.

use std::io;
use std::path::PathBuf;

use ::io::{af_xdp, memif};

/// The reason, with the name of what is wrong and what to do about it.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The device is not there: the port can be opened when it is.
    #[error("{0}")]
    NotThere(String),
    /// The device, or what the port needs beside it, cannot be as it is wanted.
    #[error("{0}")]
    Setup(#[from] io::Error),
    /// The XDP program cannot be on the device.
    #[error(transparent)]
    Program(#[from] xdp::Error),
    /// There can be no AF_XDP sockets on the device.
    #[error(transparent)]
    AfXdp(#[from] af_xdp::Error),
    /// There can be no such memif.
    #[error(transparent)]
    Memif(#[from] memif::Error),
    /// The tap cannot be made.
    #[error("making tap {name}: {source}{}", advice(.source))]
    Tap {
        /// Its name.
        name: String,
        /// Error of the kernel.
        source: io::Error,
    },
    /// A capture file cannot be read or written.
    #[error("{}: {source}", .path.display())]
    Pcap {
        /// The file.
        path: PathBuf,
        /// Fault in the file.
        source: wire::pcap::Error,
    },
}

fn advice(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::ResourceBusy => ": a device has that name; choose another",
        _ => "",
    }
}
