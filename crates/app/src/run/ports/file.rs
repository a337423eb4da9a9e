//! Ports over capture files.

use io::pcap;
use std::fs::File;
use std::io::BufReader;
use std::path::Path;
use std::time::SystemTime;

/// A port that receives what is in the file `rx` and writes what it sends to the file `tx`.
pub fn open(name: &str, rx: Option<&Path>, tx: Option<&Path>) -> Result<pcap::Pcap, String> {
    let failed = |path: &Path, e: &dyn std::fmt::Display| format!("{}: {e}", path.display());
    let packets = match rx {
        None => Vec::new(),
        Some(path) => {
            let file = File::open(path).map_err(|e| failed(path, &e))?;
            let reader =
                wire::pcap::Reader::new(BufReader::new(file)).map_err(|e| failed(path, &e))?;
            let packets: Result<_, _> = reader.map(|packet| packet.map(|p| p.bytes)).collect();
            packets.map_err(|e| failed(path, &e))?
        }
    };
    let sink: Option<pcap::Sink> = match tx {
        None => None,
        Some(path) => {
            let file = File::create(path).map_err(|e| failed(path, &e))?;
            let mut writer = wire::pcap::Writer::new(file, wire::pcap::ETHERNET)
                .map_err(|e| failed(path, &e))?;
            let origin = SystemTime::now()
                .duration_since(SystemTime::UNIX_EPOCH)
                .unwrap_or_default();
            Some(Box::new(move |bytes, time| {
                // A full disk ends the capture, not the router.
                let _ = writer.write((origin + time).as_nanos() as u64, bytes.len() as u32, bytes);
            }))
        }
    };
    Ok(pcap::Pcap::new(name, packets, false, sink))
}
