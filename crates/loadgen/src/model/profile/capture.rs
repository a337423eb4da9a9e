//! A capture file as a profile: a burst of one packet after the other, as T-Rex makes of it.

use std::io::BufRead;

use wire::eth;
use wire::pcap::{self, ETHERNET, Packet, Reader};

use super::Tunables;
use super::chain::{MAX_PACKETS, endless};
use crate::model::stream::{Macs, Mode, Stream, StreamRate};
use crate::model::units::{MAX_FRAME, Pps};

const KNOWN: &[&str] = &[
    "ipg_usec",
    "speedup",
    "loop_count",
    "src_mac_pcap",
    "dst_mac_pcap",
];

/// Way in which a capture is played.
struct Play {
    /// Time from packet to packet in microseconds; None: as captured.
    ipg: Option<f64>,
    /// Speed, relative to the captured one.
    speedup: f64,
    /// Number of times it is played; 0: for ever.
    rounds: u32,
    macs: Macs,
}

impl Play {
    fn new(tunables: &Tunables) -> Result<Self, String> {
        if let Some(name) = tunables.unknown(KNOWN) {
            return Err(format!(
                "tunable `{name}` is not one of {}",
                KNOWN.join(", ")
            ));
        }
        let number = |name: &str| -> Result<Option<f64>, String> {
            let Some(text) = tunables.get(name) else {
                return Ok(None);
            };
            let value = text
                .parse()
                .ok()
                .filter(|v| *v > 0.0 && *v < 1e12)
                .ok_or_else(|| format!("{name}={text}: expected a number above 0"))?;
            Ok(Some(value))
        };
        let flag = |name: &str| match tunables.get(name).map(str::to_ascii_lowercase).as_deref() {
            None | Some("false" | "0") => Ok(false),
            Some("true" | "1") => Ok(true),
            Some(text) => Err(format!("{name}={text}: expected true or false")),
        };
        let rounds = tunables.get("loop_count").unwrap_or("1");
        Ok(Self {
            ipg: number("ipg_usec")?,
            speedup: number("speedup")?.unwrap_or(1.0),
            rounds: rounds
                .parse()
                .map_err(|_| format!("loop_count={rounds}: expected a number, 0 for ever"))?,
            macs: Macs {
                keep_source: flag("src_mac_pcap")?,
                keep_destination: flag("dst_mac_pcap")?,
            },
        })
    }
}

/// The packets of a file as a chain of streams.
///
/// # Errors
/// Fault in the file, its packets or the settings.
pub(super) fn read(file: impl BufRead, tunables: &Tunables) -> Result<Vec<Stream>, String> {
    let play = Play::new(tunables)?;
    let reader = Reader::new(file).map_err(|e| e.to_string())?;
    if reader.link_type() != ETHERNET {
        return Err(format!(
            "link type {}: only Ethernet (1) can be sent",
            reader.link_type()
        ));
    }
    // A pipe may have no end.
    let packets = reader
        .take(MAX_PACKETS + 1)
        .collect::<Result<Vec<_>, pcap::Error>>();
    streams(packets.map_err(|e| e.to_string())?, &play)
}

fn streams(packets: Vec<Packet>, play: &Play) -> Result<Vec<Stream>, String> {
    let (Some(first), Some(last)) = (packets.first(), packets.last()) else {
        return Err("there is no packet in it".to_owned());
    };
    let count = packets.len();
    if count > MAX_PACKETS {
        return Err(format!(
            "more than {MAX_PACKETS} packets, which is the most (editcap -r cuts a capture)"
        ));
    }
    let micros = match play.ipg {
        Some(ipg) => ipg * count as f64,
        None => last.nanos.saturating_sub(first.nanos) as f64 / 1e3 / play.speedup,
    };
    // Each burst has one packet, so this only says what the capture comes to.
    let rate = StreamRate::Packets(Pps(count as f64 * 1e6 / micros.max(1.0)));
    let mut before = first.nanos;
    let mut streams = Vec::with_capacity(count);
    for (i, packet) in packets.into_iter().enumerate() {
        let len = packet.bytes.len();
        if !(eth::LEN..=MAX_FRAME).contains(&len) {
            return Err(format!(
                "packet {} of {len} bytes is not between {} and {MAX_FRAME}",
                i + 1,
                eth::LEN
            ));
        }
        let gap = match play.ipg {
            Some(ipg) if i > 0 => ipg,
            Some(_) => 0.0,
            None => packet.nanos.saturating_sub(before) as f64 / 1e3 / play.speedup,
        };
        before = before.max(packet.nanos);
        let is_last = i + 1 == count;
        streams.push(Stream {
            mode: Mode::SingleBurst { packets: 1 },
            isg: gap,
            self_start: i == 0,
            next: Some((i + 1) % count),
            action_count: if is_last { play.rounds } else { 0 },
            macs: play.macs,
            ..Stream::new(&format!("packet {}", i + 1), packet.bytes, rate)
        });
    }
    endless(&streams)?;
    Ok(streams)
}

#[cfg(test)]
mod tests {
    use wire::pcap::Writer;

    use super::*;

    fn file(times: &[u64], len: usize) -> Vec<u8> {
        let mut writer = Writer::new(Vec::new(), ETHERNET).unwrap();
        for (i, &at) in times.iter().enumerate() {
            let bytes = vec![i as u8; len];
            writer.write(at, len as u32, &bytes).unwrap();
        }
        writer.into_inner()
    }

    fn played(tunables: &str) -> Vec<(f64, Option<usize>, u32)> {
        let tunables = Tunables::parse(tunables).unwrap();
        let streams = read(&file(&[5_000, 15_000, 35_000], 60)[..], &tunables).unwrap();
        streams
            .iter()
            .map(|s| (s.isg, s.next, s.action_count))
            .collect()
    }

    #[test]
    fn packets_follow_each_other_as_captured() {
        let all = [(0.0, Some(1), 0), (10.0, Some(2), 0), (20.0, Some(0), 1)];
        assert_eq!(played(""), all);
        let fast = [(0.0, Some(1), 0), (5.0, Some(2), 0), (10.0, Some(0), 3)];
        assert_eq!(played("speedup=2,loop_count=3"), fast);
        let even = [(0.0, Some(1), 0), (7.0, Some(2), 0), (7.0, Some(0), 0)];
        assert_eq!(played("ipg_usec=7,loop_count=0"), even);
    }

    #[test]
    fn wrong_files_and_settings() {
        let good = file(&[0, 1], 60);
        let error = |file: &[u8], tunables: &str| {
            read(file, &Tunables::parse(tunables).unwrap()).unwrap_err()
        };
        assert!(error(&good[..good.len() - 1], "").contains("in the middle of a packet"));
        assert!(error(b"not a capture file at all", "").contains("not a pcap"));
        assert!(error(&file(&[], 60), "").contains("no packet"));
        assert!(error(&file(&[0], 13), "").contains("packet 1 of 13 bytes"));
        assert!(error(&file(&[3, 3], 60), "loop_count=0").contains("takes no time"));
        assert!(error(&good, "speedup=0").contains("speedup=0"));
        assert!(error(&good, "size=64").contains("loop_count"));
    }
}
