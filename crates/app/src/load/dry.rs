//! A dry run: packets are written to a capture file and not sent.

use std::error::Error;
use std::fs::File;
use std::io::BufWriter;
use std::path::Path;
use std::time::Duration;

use loadgen::clock::Nanos;
use loadgen::dry::Dry;
use loadgen::model::stream::Stream;
use loadgen::model::units::Pps;
use wire::pcap::{ETHERNET, Writer};

/// The traffic of a port that does not exist.
pub struct Unbound {
    /// Streams, each with its rate at multiplier 1.
    pub streams: Vec<(Stream, Pps)>,
    /// The rate of all of them.
    pub rate: Pps,
    /// Streams that are not sent with the given addresses, if there are any.
    pub address_note: Option<String>,
}

/// The end of a file, by the bound that is reached first.
#[derive(Debug, Clone, Copy)]
pub struct Bounds {
    /// Packets.
    pub packets: u64,
    /// Time of the last packet.
    pub duration: Duration,
}

/// Writes what `cores` (1 or more) would send to `file`, with times from 0 on. Returns the number
/// of packets.
///
/// # Errors
/// The file cannot be written.
pub fn write(
    unbound: &Unbound,
    cores: u32,
    file: &Path,
    bounds: Bounds,
    micros: bool,
) -> Result<u64, Box<dyn Error>> {
    let failed = |e: std::io::Error| format!("{}: {e}", file.display());
    let to = BufWriter::new(File::create(file).map_err(failed)?);
    let mut writer = if micros {
        Writer::with_micros(to, ETHERNET)
    } else {
        Writer::new(to, ETHERNET)
    }
    .map_err(failed)?;
    let mut dry = Dry::divided(&unbound.streams, cores, unbound.rate);
    let until = Nanos(0).after(bounds.duration);
    let mut sent = 0;
    while sent < bounds.packets
        && let Some((at, _, frame)) = dry.next(until)
    {
        let len = u32::try_from(frame.len()).unwrap_or(u32::MAX);
        writer.write(at.0, len, frame).map_err(failed)?;
        sent += 1;
    }
    writer.flush().map_err(failed)?;
    Ok(sent)
}
