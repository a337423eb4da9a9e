//! Ports over capture files.

use std::fs::File;
use std::io::BufReader;
use std::path::Path;
use std::time::SystemTime;

use io::pcap::{Pcap, Sink};
use wire::pcap::{ETHERNET, Error, Reader, Writer};

use crate::open::Kind;
use crate::{Open, OpenError};

/// A port that receives what is in the file `rx` and writes what it sends to the file `tx`.
///
/// # Errors
/// A file cannot be opened, or is no capture file.
pub fn pcap(name: &str, rx: Option<&Path>, tx: Option<&Path>) -> Result<Open, OpenError> {
    let packets = rx.map_or(Ok(Vec::new()), |path| read(path).map_err(failed(path)))?;
    let sink = tx
        .map(|path| sink(path).map_err(failed(path)))
        .transpose()?;
    let port = Pcap::new(name, packets, false, sink);
    Ok(Open::new(Kind::Pcap, vec![port]))
}

fn failed(path: &Path) -> impl FnOnce(Error) -> OpenError {
    let path = path.to_owned();
    |source| OpenError::Pcap { path, source }
}

fn read(path: &Path) -> Result<Vec<Vec<u8>>, Error> {
    let reader = Reader::new(BufReader::new(File::open(path)?))?;
    reader.map(|packet| packet.map(|p| p.bytes)).collect()
}

fn sink(path: &Path) -> Result<Sink, Error> {
    let mut writer = Writer::new(File::create(path)?, ETHERNET)?;
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    let origin = now.unwrap_or_default();
    Ok(Box::new(move |bytes, time| {
        // A full disk ends the capture, not the router.
        let _ = writer.write((origin + time).as_nanos() as u64, bytes.len() as u32, bytes);
    }))
}
