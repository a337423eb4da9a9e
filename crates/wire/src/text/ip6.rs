//! IPv6 packets as text.

use std::fmt::{self, Display, Formatter};
use std::net::Ipv6Addr;

use super::transport::{self, Dscp, ECN, Proto};
use crate::ip6::{Header, UpperLayer, upper_layer};

/// An IPv6 packet. `{}` gives one line, `{:#}` several.
#[derive(Debug, Clone, Copy)]
pub struct Ip6<'a>(pub &'a [u8]);

impl Display for Ip6<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Some((header, content)) = Header::parse(self.0) else {
            return write!(f, "an IPv6 header cut off after {} bytes", self.0.len());
        };
        // Without link padding; a jumbogram has its length elsewhere.
        let content = match usize::from(header.payload_len()) {
            0 => content,
            length => content.get(..length).unwrap_or(content),
        };
        let upper = upper_layer(header.next_header, content);
        if f.alternate() {
            details(f, header, upper)
        } else {
            line(f, header, upper)
        }
    }
}

/// `UDP: 2001:db8::1 -> 2001:db8::2` and, below, what else is in the headers.
fn details(f: &mut Formatter<'_>, header: &Header, upper: UpperLayer<'_>) -> fmt::Result {
    let (src, dst) = (Ipv6Addr::from(header.src), Ipv6Addr::from(header.dst));
    let class = header.traffic_class();
    writeln!(f, "{}: {src} -> {dst}", Proto(upper.proto))?;
    write!(
        f,
        "  tos {class:#04x}, flow label {:#x}",
        header.flow_label()
    )?;
    write!(f, ", hop limit {}", header.hop_limit)?;
    write!(f, ", payload length {}", header.payload_len())?;
    write!(f, " dscp {}", Dscp(class >> 2))?;
    write!(f, " ecn {}", ECN[usize::from(class & 3)])?;
    if header.version() != 6 {
        write!(f, ", version {}", header.version())?;
    }
    if upper.proto != header.next_header {
        write!(f, "\n  next header {}", Proto(header.next_header))?;
        fragment(f, upper)?;
    }
    transport::lines(f, upper.proto, upper.content)
}

/// `UDP [2001:db8::1]:1025 -> [2001:db8::2]:12, length 66, hop limit 64`
fn line(f: &mut Formatter<'_>, header: &Header, upper: UpperLayer<'_>) -> fmt::Result {
    let ends = [header.src, header.dst].map(|end| Ipv6Addr::from(end).into());
    transport::line(f, upper.proto, ends, upper.content)?;
    fragment(f, upper)?;
    let (length, hops) = (header.total_len(), header.hop_limit);
    write!(f, ", length {length}, hop limit {hops}")
}

fn fragment(f: &mut Formatter<'_>, upper: UpperLayer<'_>) -> fmt::Result {
    match upper.fragment {
        Some((offset, true)) => write!(f, ", fragment at {offset}, more follow"),
        Some((offset, false)) => write!(f, ", last fragment at {offset}"),
        None => Ok(()),
    }
}
