//! IPv6 (RFC 8200; traffic class as of RFC 2474 and RFC 3168, flow label as of RFC 6437).

use zerocopy::byteorder::network_endian::{U16, U32};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::{ip, view};

/// Least MTU, in bytes: every link can carry it (RFC 8200 section 5).
pub const MIN_MTU: u16 = 1280;
/// The bits of the flow label.
pub const FLOW_LABEL: u32 = 0x000f_ffff;

/// The header without its extensions, which follow it.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned,
)]
#[repr(C)]
pub struct Header {
    version_class_flow: U32,
    payload_len: U16,
    /// The next header: an extension or a protocol ([`crate::ip`]).
    pub next_header: u8,
    /// Hops left.
    pub hop_limit: u8,
    /// Source.
    pub src: [u8; 16],
    /// Destination.
    pub dst: [u8; 16],
}

view!(Header, 40);

/// Offsets of the fields, for code that compares or changes single bytes of a packet.
pub mod at {
    use std::mem::offset_of;

    use super::Header;

    /// [`Header::payload_len`].
    pub const PAYLOAD_LEN: usize = offset_of!(Header, payload_len);
    /// [`Header::next_header`].
    pub const NEXT_HEADER: usize = offset_of!(Header, next_header);
    /// [`Header::hop_limit`].
    pub const HOP_LIMIT: usize = offset_of!(Header, hop_limit);
    /// [`Header::src`].
    pub const SRC: usize = offset_of!(Header, src);
    /// [`Header::dst`].
    pub const DST: usize = offset_of!(Header, dst);
}

impl Header {
    /// A header without traffic class and flow label, hop limit 64. `payload` is the length of what
    /// follows, extensions included; above 65535 bytes it does not fit the field and is cut.
    pub fn new(src: [u8; 16], dst: [u8; 16], next_header: u8, payload: usize) -> Self {
        Self {
            version_class_flow: U32::new(6 << 28),
            payload_len: U16::new(u16::try_from(payload).unwrap_or(u16::MAX)),
            next_header,
            hop_limit: 64,
            src,
            dst,
        }
    }

    /// Version, 6 if all is well.
    #[inline(always)]
    pub fn version(&self) -> u8 {
        self.version_class_flow.as_bytes()[0] >> 4
    }

    /// Traffic class: DSCP in the high six bits, ECN in the low two.
    pub fn traffic_class(&self) -> u8 {
        (self.version_class_flow.get() >> 20 & 0xff) as u8
    }

    /// Congestion notification, 0 to 3 ([`crate::ip::ecn`]).
    #[inline(always)]
    pub fn ecn(&self) -> u8 {
        self.traffic_class() & 3
    }

    /// Flow label, 20 bits; 0: none.
    #[inline(always)]
    pub fn flow_label(&self) -> u32 {
        self.version_class_flow.get() & FLOW_LABEL
    }

    /// Length of what follows in bytes, extensions included; 0 in a jumbogram (RFC 2675).
    #[inline(always)]
    pub fn payload_len(&self) -> u16 {
        self.payload_len.get()
    }

    /// Length of the packet, header included, in bytes.
    #[inline(always)]
    pub fn total_len(&self) -> usize {
        LEN + usize::from(self.payload_len())
    }

    /// Sets the traffic class.
    pub fn set_traffic_class(&mut self, class: u8) {
        let rest = self.version_class_flow.get() & !(0xff << 20);
        self.version_class_flow.set(rest | u32::from(class) << 20);
    }

    /// Sets the congestion notification, of which two bits count.
    pub fn set_ecn(&mut self, ecn: u8) {
        self.set_traffic_class(self.traffic_class() & !3 | ecn & 3);
    }

    /// Sets the flow label, of which 20 bits count.
    pub fn set_flow_label(&mut self, label: u32) {
        let rest = self.version_class_flow.get() & !FLOW_LABEL;
        self.version_class_flow.set(rest | label & FLOW_LABEL);
    }

    /// Sets the length of what follows.
    pub fn set_payload_len(&mut self, bytes: u16) {
        self.payload_len.set(bytes);
    }
}

/// Upper-layer header and data of a packet, behind its extension headers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UpperLayer<'a> {
    /// The protocol, or an extension that cannot be read past: it is cut off, or encrypted.
    pub proto: u8,
    /// Its header and data; empty in a later fragment.
    pub content: &'a [u8],
    /// The fragment's offset in its packet, in bytes, and whether more follow. `None` where the
    /// packet is whole.
    pub fragment: Option<(u16, bool)>,
}

/// Most extension headers that are read past. RFC 8200 section 4.1 has each once, destination
/// options twice.
const MOST_EXTENSIONS: usize = 8;

/// Finds what follows the extension headers, of which `first` is the first and `content` all bytes
/// from there on.
pub fn upper_layer(first: u8, content: &[u8]) -> UpperLayer<'_> {
    let mut found = UpperLayer {
        proto: first,
        content,
        fragment: None,
    };
    for _ in 0..MOST_EXTENSIONS {
        let (Some(&next), Some(&length)) = (found.content.first(), found.content.get(1)) else {
            break;
        };
        let length = match found.proto {
            ip::HOP_BY_HOP | ip::ROUTING | ip::DESTINATION_OPTIONS => usize::from(length) * 8 + 8,
            ip::AH => usize::from(length) * 4 + 8,
            ip::FRAGMENT => 8,
            _ => break,
        };
        let Some((extension, rest)) = found.content.split_at_checked(length) else {
            break;
        };
        if found.proto == ip::FRAGMENT {
            let word = u16::from_be_bytes([extension[2], extension[3]]);
            found.fragment = Some((word & !7, word & 1 != 0));
        }
        found.proto = next;
        found.content = rest;
        if matches!(found.fragment, Some((1.., _))) {
            found.content = &[];
            break;
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn round_trip(src: [u8; 16], dst: [u8; 16], next: u8, payload in 0usize..65_536, class: u8, label: u32) {
            let mut header = Header::new(src, dst, next, payload);
            header.set_traffic_class(class);
            header.set_flow_label(label);
            header.set_ecn(!class);
            prop_assert_eq!(header.ecn(), !class & 3);
            header.set_ecn(class);
            let bytes = *header.bytes();
            let read = Header::parse(&bytes).unwrap().0;
            prop_assert_eq!((read.src, read.dst, read.next_header, read.hop_limit), (src, dst, next, 64));
            prop_assert_eq!((read.version(), read.traffic_class()), (6, class));
            prop_assert_eq!(read.flow_label(), label & FLOW_LABEL);
            prop_assert_eq!((read.total_len(), usize::from(read.payload_len())), (payload + LEN, payload));
        }

        #[test]
        fn any_bytes_can_be_read(bytes in prop::collection::vec(any::<u8>(), 0..100), first: u8) {
            let found = upper_layer(first, &bytes);
            prop_assert!(bytes.ends_with(found.content));
        }
    }

    #[test]
    fn a_known_header() {
        let mut header = Header::new([0x20; 16], [0x30; 16], ip::UDP, 70_000);
        header.set_traffic_class(0xb8);
        header.set_flow_label(0x12345);
        assert_eq!(
            header.bytes()[..8],
            [0x6b, 0x81, 0x23, 0x45, 0xff, 0xff, 17, 64]
        );
    }

    #[test]
    fn extensions_are_read_past() {
        let hop_by_hop = [ip::DESTINATION_OPTIONS, 0, 5, 2, 0, 0, 1, 0];
        let mut options = [0; 16];
        options[..2].copy_from_slice(&[ip::AH, 1]);
        let mut authentication = [0; 12];
        authentication[..2].copy_from_slice(&[ip::FRAGMENT, 1]);
        let fragment = |offset: u16| {
            let [high, low] = (offset | 1).to_be_bytes();
            [ip::UDP, 0, high, low, 0, 0, 0, 9]
        };
        let all = |offset| {
            [
                &hop_by_hop[..],
                &options,
                &authentication,
                &fragment(offset),
                b"data",
            ]
            .concat()
        };
        let first = all(0);
        let found = upper_layer(ip::HOP_BY_HOP, &first);
        assert_eq!((found.proto, found.content), (ip::UDP, &b"data"[..]));
        assert_eq!(found.fragment, Some((0, true)));
        let later = all(1280);
        let found = upper_layer(ip::HOP_BY_HOP, &later);
        assert_eq!((found.proto, found.content), (ip::UDP, &[][..]));
        assert_eq!(found.fragment, Some((1280, true)));
    }

    #[test]
    fn an_extension_that_is_cut_off_is_as_far_as_it_goes() {
        let cut = [ip::UDP, 1, 0, 0, 0, 0, 0, 0];
        let found = upper_layer(ip::ROUTING, &cut);
        assert_eq!((found.proto, found.content), (ip::ROUTING, &cut[..]));
        let endless = [ip::HOP_BY_HOP, 0, 0, 0, 0, 0, 0, 0].repeat(20);
        assert_eq!(upper_layer(ip::HOP_BY_HOP, &endless).proto, ip::HOP_BY_HOP);
    }
}
