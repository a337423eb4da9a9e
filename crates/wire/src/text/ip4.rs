//! IPv4 packets as text.

use std::fmt::{self, Display, Formatter};
use std::net::Ipv4Addr;

use super::transport::{self, Dscp, ECN, Proto, names};
use crate::checksum;
use crate::ip4::{self, Header};

/// An IPv4 packet. `{}` gives one line, `{:#}` several.
#[derive(Debug, Clone, Copy)]
pub struct Ip4<'a>(pub &'a [u8]);

impl Display for Ip4<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Some((header, _)) = Header::parse(self.0) else {
            return write!(f, "an IPv4 header cut off after {} bytes", self.0.len());
        };
        if f.alternate() {
            details(f, header, self.0)
        } else {
            line(f, header, self.segment(header))
        }
    }
}

impl Ip4<'_> {
    /// The payload after header and options, without link padding; empty in all fragments but the
    /// first.
    fn segment(&self, header: &Header) -> &[u8] {
        let end = self.0.len().min(usize::from(header.total_len()));
        if header.fragment_offset() > 0 {
            return &[];
        }
        self.0
            .get(header.header_len().max(ip4::LEN)..end)
            .unwrap_or_default()
    }
}

/// `UDP: 16.0.0.1 -> 48.0.0.1` and, below, what else is in the headers.
fn details(f: &mut Formatter<'_>, header: &Header, packet: &[u8]) -> fmt::Result {
    let (src, dst) = (
        Ipv4Addr::from_bits(header.src()),
        Ipv4Addr::from_bits(header.dst()),
    );
    writeln!(f, "{}: {src} -> {dst}", Proto(header.proto))?;
    let (tos, ttl, length) = (header.tos, header.ttl, header.total_len());
    write!(
        f,
        "  tos {tos:#04x}, ttl {ttl}, length {length}, checksum {:#06x}",
        header.checksum()
    )?;
    if let Some(right) = corrected(header, packet) {
        write!(f, " (should be {right:#06x})")?;
    }
    writeln!(
        f,
        " dscp {} ecn {}",
        Dscp(header.dscp()),
        ECN[usize::from(header.ecn())]
    )?;
    write!(f, "  fragment id {:#06x}", header.id())?;
    if header.is_fragment() {
        write!(f, " offset {}", header.fragment_offset())?;
    }
    let flags = names(header.fragment(), &FRAGMENT_FLAGS);
    if !flags.is_empty() {
        write!(f, ", flags {flags}")?;
    }
    if header.version() != 4 {
        write!(f, ", version {}", header.version())?;
    }
    if header.header_len() != ip4::LEN {
        write!(f, ", header {} bytes", header.header_len())?;
    }
    transport::lines(f, header.proto, Ip4(packet).segment(header))
}

/// `UDP 16.0.0.1:1025 -> 48.0.0.1:12, length 46, ttl 64`
fn line(f: &mut Formatter<'_>, header: &Header, segment: &[u8]) -> fmt::Result {
    let ends = [header.src(), header.dst()].map(|end| Ipv4Addr::from_bits(end).into());
    transport::line(f, header.proto, ends, segment)?;
    if header.is_fragment() {
        write!(
            f,
            ", fragment {:#06x} at {}",
            header.id(),
            header.fragment_offset()
        )?;
    }
    write!(f, ", length {}, ttl {}", header.total_len(), header.ttl)
}

/// The checksum that a header should have, if it has another. One that is cut off is not judged.
fn corrected(header: &Header, packet: &[u8]) -> Option<u16> {
    let covered = packet.get(..header.header_len().max(ip4::LEN))?;
    // The sum without the field's own share.
    let right = checksum::Sum::default()
        .with(covered)
        .with_u16(!header.checksum())
        .checksum();
    (checksum::of(covered) != 0).then_some(right)
}

const FRAGMENT_FLAGS: [(u16, &str); 3] = [
    (0x8000, "RESERVED"),
    (ip4::DONT_FRAGMENT, "DONT_FRAGMENT"),
    (ip4::MORE_FRAGMENTS, "MORE_FRAGMENTS"),
];
