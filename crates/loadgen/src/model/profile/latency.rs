//! A stream that measures latency beside those of a profile.

use wire::{checksum, eth, ip, ip4, ip6, udp};

use super::marks;
use crate::model::stream::{Mark, Mode, Stream, StreamRate};
use crate::model::units::Pps;
use crate::source::mark::{self, TRAILER};

/// Adds a stream at `rate` that measures latency. Its packets are those of the first stream with
/// another source port, by which receivers tell them apart that see no marks, and with room for the
/// time of sending.
///
/// # Errors
/// The first stream's packets are not UDP, or no mark fits.
pub fn with_latency(mut streams: Vec<Stream>, rate: Pps) -> Result<Vec<Stream>, String> {
    let first = streams.first().ok_or("it has nothing to send")?;
    let groups = streams.iter().filter_map(|s| s.mark).map(|m| m.group);
    let group = groups.max().map_or(0, |most| most.saturating_add(1));
    let stream = Stream {
        name: "latency".to_owned(),
        packet: packet(first.packet.clone())
            .ok_or_else(|| format!("stream `{}`: its packets are not UDP", first.name))?,
        rate: StreamRate::Packets(rate),
        mode: Mode::Continuous,
        isg: 0.0,
        self_start: true,
        next: None,
        action_count: 0,
        mark: Some(Mark {
            group,
            latency: true,
        }),
        ..first.clone()
    };
    streams.push(stream);
    marks::check(&streams)?;
    Ok(streams)
}

/// The packet with another source port, and room for the trailer behind its UDP header; None if it
/// is not UDP in IPv4 without options or in IPv6.
fn packet(mut packet: Vec<u8>) -> Option<Vec<u8>> {
    packet.resize(packet.len().max(eth::MIN_FRAME), 0);
    let (at, version) = mark::network(&packet)?;
    let (header, protocol) = match version {
        4 if packet[at] == ip4::PLAIN => (ip4::LEN, packet[at + ip4::at::PROTO]),
        6 => (ip6::LEN, *packet.get(at + ip6::at::NEXT_HEADER)?),
        _ => return None,
    };
    let transport = at + header;
    if protocol != ip::UDP || packet.len() < transport + udp::LEN {
        return None;
    }
    let port = u16::from_be_bytes([packet[transport], packet[transport + 1]]) ^ 1;
    packet[transport..transport + 2].copy_from_slice(&port.to_be_bytes());
    let needed = transport + udp::LEN + TRAILER;
    if packet.len() < needed {
        packet.resize(needed, 0);
        let mut set = |offset: usize, length: usize| {
            let length = u16::try_from(length).unwrap_or(u16::MAX).to_be_bytes();
            packet[offset..offset + 2].copy_from_slice(&length);
        };
        match version {
            4 => set(at + ip4::at::TOTAL_LEN, needed - at),
            _ => set(at + ip6::at::PAYLOAD_LEN, needed - transport),
        }
        set(transport + 4, needed - transport);
    }
    if version == 4 {
        const CHECKSUM_AT: usize = 10;
        packet[at + CHECKSUM_AT..at + CHECKSUM_AT + 2].fill(0);
        let sum = checksum::ip4(packet[at..].first_chunk()?);
        packet[at + CHECKSUM_AT..at + CHECKSUM_AT + 2].copy_from_slice(&sum.to_be_bytes());
    }
    Some(packet)
}

#[cfg(test)]
mod tests {
    use super::super::{Tunables, Way, open};
    use super::*;
    use crate::receive::{Knows, together};

    fn bench(tunables: &str) -> Vec<Stream> {
        open("bench", Way::Out, &Tunables::parse(tunables).unwrap()).unwrap()
    }

    /// Whatever the size and the family, there is room for the trailer behind the ports, and a
    /// receiver that sees headers only tells it from the others.
    #[test]
    fn a_stream_that_measures_latency_is_told_apart() {
        for tunables in [
            "size=64,vm=var2",
            "size=imix",
            "ipv6=1",
            "size=1514,flow=fs",
        ] {
            let before = bench(tunables);
            let streams = with_latency(before.clone(), Pps(100.0)).unwrap();
            let (latency, others) = streams.split_last().unwrap();
            assert_eq!(others, before, "{tunables}");
            assert!(latency.is_fixed() && latency.rate == StreamRate::Packets(Pps(100.0)));
            let parts = together(&streams.iter().collect::<Vec<_>>(), Knows::Headers);
            assert!(parts.contains(&vec![streams.len() - 1]), "{parts:?}");
        }
        assert_eq!(
            with_latency(bench("ipv6=1"), Pps(1.0)).unwrap()[1].frame_len(),
            eth::LEN + ip6::LEN + udp::LEN + TRAILER
        );
    }

    #[test]
    fn packets_without_ports_are_refused() {
        let mut streams = bench("size=64");
        streams[0].packet[eth::LEN + ip4::at::PROTO] = ip::TCP;
        let why = with_latency(streams, Pps(1.0)).unwrap_err();
        assert!(why.contains("not UDP"), "{why}");
        let latency = bench("flow=fsl");
        let both = with_latency(latency, Pps(1.0)).unwrap();
        assert_ne!(both[0].mark, both[1].mark);
    }
}
