//! The Internet checksum: RFC 1071, updated by RFC 1624.
//!
//! A checksum is the number in the header, read in network order.

/// A ones' complement sum that has not been folded yet.
///
/// Pieces are added in any order; each starts at an even offset of the whole.
#[derive(Debug, Clone, Copy, Default)]
pub struct Sum {
    /// At most 33 bits: sum of the pieces in native byte order, which makes no difference until it
    /// is read (RFC 1071, section 2B).
    native: u64,
}

impl Sum {
    /// With more bytes; an odd last one counts as followed by a zero.
    #[inline]
    pub fn with(self, bytes: &[u8]) -> Self {
        let (chunks, rest) = bytes.as_chunks::<8>();
        let mut last = [0; 8];
        last[..rest.len()].copy_from_slice(rest);
        // The halves of a chunk are added up apart, in 64 bits, which no slice in memory can
        // overflow.
        let halves = |chunk: &[u8; 8]| {
            let word = u64::from_ne_bytes(*chunk);
            (word & 0xffff_ffff, word >> 32)
        };
        let mut sums = halves(&last);
        for chunk in chunks {
            let (low, high) = halves(chunk);
            sums = (sums.0 + low, sums.1 + high);
        }
        self.plus(fold32(sums.0) + fold32(sums.1))
    }

    /// With bytes that begin at this offset of the whole, even or odd.
    #[inline]
    pub fn with_at(self, offset: usize, bytes: &[u8]) -> Self {
        if offset.is_multiple_of(2) {
            return self.with(bytes);
        }
        // Each byte stands in the other half of its word.
        self.with_u16(Self::default().with(bytes).fold().swap_bytes())
    }

    /// With a 16-bit number in host order.
    #[inline]
    pub fn with_u16(self, number: u16) -> Self {
        self.plus(number.to_be().into())
    }

    /// With a 32-bit number in host order.
    #[inline]
    pub fn with_u32(self, number: u32) -> Self {
        self.plus(number.to_be().into())
    }

    /// With a number of at most 48 bits.
    fn plus(self, native: u64) -> Self {
        Self {
            native: fold32(self.native + native),
        }
    }

    /// Folds the sum to 16 bits, without the complement.
    #[inline]
    pub fn fold(self) -> u16 {
        u16::from_be(fold(self.native))
    }

    /// The checksum: the complement of the folded sum.
    #[inline]
    pub fn checksum(self) -> u16 {
        !self.fold()
    }
}

/// The checksum of some bytes whose checksum field is 0; 0 if the field is set and right.
#[inline]
pub fn of(bytes: &[u8]) -> u16 {
    Sum::default().with(bytes).checksum()
}

/// An address of either family, as a pseudo-header has it.
pub trait Address: Copy {
    /// The sum with the address.
    fn add_to(self, sum: Sum) -> Sum;
}

impl Address for u32 {
    #[inline]
    fn add_to(self, sum: Sum) -> Sum {
        sum.with_u32(self)
    }
}

impl Address for [u8; 16] {
    #[inline]
    fn add_to(self, sum: Sum) -> Sum {
        sum.with(&self)
    }
}

/// The sum of the pseudo-header, which TCP, UDP and ICMP for IPv6 checksum beside their segment (RFC
/// 9293 section 3.1, RFC 768, RFC 8200 section 8.1). `length` is the segment's in bytes, of which no
/// more than 65535 count, as in the headers.
#[inline]
pub fn pseudo_header<A: Address>(src: A, dst: A, proto: u8, length: usize) -> Sum {
    dst.add_to(src.add_to(Sum::default()))
        .with_u16(proto.into())
        .with_u16(u16::try_from(length).unwrap_or(u16::MAX))
}

/// The checksum of a segment with a pseudo-header whose checksum field is 0; 0 if the field is set
/// and right.
#[inline]
pub fn transport<A: Address>(src: A, dst: A, proto: u8, segment: &[u8]) -> u16 {
    pseudo_header(src, dst, proto, segment.len())
        .with(segment)
        .checksum()
}

/// The checksum of an IPv4 header without options: as [`of`].
#[inline(always)]
pub fn ip4(header: &[u8; 20]) -> u16 {
    let ([first, second], last) = header.as_chunks::<8>() else {
        return !0;
    };
    let (first, second) = (u64::from_ne_bytes(*first), u64::from_ne_bytes(*second));
    let last = last
        .first_chunk()
        .map_or(0, |last| u32::from_ne_bytes(*last));
    let (sum, carry) = first.overflowing_add(second);
    let (sum, carry) = sum.overflowing_add(u64::from(last) + u64::from(carry));
    let sum = sum + u64::from(carry);
    !u16::from_be(fold(sum))
}

/// The checksum after a 16-bit word of what it covers went from `old` to `new` (RFC 1624, equation
/// 3).
#[inline(always)]
pub const fn update(checksum: u16, old: u16, new: u16) -> u16 {
    Changed::word(old, new).update(checksum)
}

/// What a change of words does to a checksum of them: the ones' complement sum of all that has gone,
/// complemented, and of all that has come.
#[derive(Debug, Clone, Copy, Default)]
pub struct Changed(u32);

impl Changed {
    /// A word went from `old` to `new`.
    #[inline(always)]
    pub const fn word(old: u16, new: u16) -> Self {
        Changed(!old as u32 + new as u32)
    }

    /// And what another change does: a few thousand in all.
    #[inline(always)]
    #[must_use]
    pub const fn and(self, other: Changed) -> Self {
        Changed(self.0 + other.0)
    }

    /// The checksum afterwards (RFC 1624, equation 3).
    #[inline(always)]
    pub const fn update(self, checksum: u16) -> u16 {
        let sum = !checksum as u32 + self.0;
        let sum = (sum & 0xffff) + (sum >> 16);
        (!((sum & 0xffff) + (sum >> 16)) & 0xffff) as u16
    }
}

/// The checksum of an IPv4 header whose TTL is one less. Where the sum comes to 0xffff the result
/// is 0, as in Linux: the two stand for the same sum, and [`update`] gives the same.
#[inline(always)]
pub const fn decrement_ttl(checksum: u16) -> u16 {
    let sum = checksum as u32 + 0x0100;
    ((sum + (sum >= 0xffff) as u32) & 0xffff) as u16
}

/// A number of at most 33 bits with the same ones' complement sum.
#[inline(always)]
fn fold32(sum: u64) -> u64 {
    (sum >> 32) + (sum & 0xffff_ffff)
}

/// Adds the halves of the number, then the halves of that: the upper half of a number plus itself
/// with its halves swapped holds the sum of the halves and the carry from below.
#[inline(always)]
fn fold(sum: u64) -> u16 {
    let sum = (sum.wrapping_add(sum.rotate_right(32)) >> 32) as u32;
    (sum.wrapping_add(sum.rotate_right(16)) >> 16) as u16
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// RFC 1071 section 4.1, word by word.
    fn oracle(bytes: &[u8]) -> u16 {
        let mut sum = 0u32;
        for pair in bytes.chunks(2) {
            sum += u32::from(pair[0]) << 8 | u32::from(*pair.get(1).unwrap_or(&0));
            sum = (sum & 0xffff) + (sum >> 16);
        }
        !(sum as u16)
    }

    #[test]
    fn ttl_agrees_with_recomputation_for_every_checksum() {
        for ttl in [1u8, 2, 64, 255] {
            for free in 0..=u16::MAX {
                let mut header = [
                    0x45, 0, 0, 20, 0, 0, 0, 0, ttl, 17, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
                ];
                header[4..6].copy_from_slice(&free.to_be_bytes());
                let before = ip4(&header);
                header[8] -= 1;
                let after = ip4(&header);
                assert_eq!(decrement_ttl(before), after, "{before:#06x}");
                let (old, new) = (
                    u16::from_be_bytes([ttl, 17]),
                    u16::from_be_bytes([ttl - 1, 17]),
                );
                assert_eq!(update(before, old, new), after);
            }
        }
        assert_eq!(decrement_ttl(0xfeff), 0);
        assert_eq!(update(0xfeff, 0x4011, 0x3f11), 0);
    }

    #[test]
    fn a_known_segment_between_ip6_addresses() {
        // UDP 2001:db8::1 port 1 to 2001:db8::2 port 2 without data: 2 * (2001+0db8) + 1 + 2 +
        // 0011+0008+0001+0002+0008.
        let address = |last| {
            let mut address = [0; 16];
            address[..4].copy_from_slice(&[0x20, 1, 0x0d, 0xb8]);
            address[15] = last;
            address
        };
        let sum = transport(address(1), address(2), 17, &[0, 1, 0, 2, 0, 8, 0, 0]);
        assert_eq!(sum, !0x5b99);
    }

    #[test]
    fn a_known_segment() {
        // UDP 10.0.0.1:1 to 10.0.0.2:2 without data: 0a00+0001+0a00+0002+0011+0008+0001+0002+0008 =
        // 1427.
        assert_eq!(
            transport(0x0a00_0001, 0x0a00_0002, 17, &[0, 1, 0, 2, 0, 8, 0, 0]),
            !0x1427
        );
        // A segment too long for a length field counts as the longest.
        assert_eq!(transport(0u32, 0, 17, &[0; 70_000]), !17);
    }

    proptest! {
        #[test]
        fn agrees_with_oracle(bytes in prop::collection::vec(prop_oneof![Just(0xff), any::<u8>()], 0..200)) {
            prop_assert_eq!(of(&bytes), oracle(&bytes));
            if let Some(header) = bytes.first_chunk() {
                prop_assert_eq!(ip4(header), oracle(header));
            }
            let (even, rest) = bytes.split_at(bytes.len() / 4 * 2);
            prop_assert_eq!(Sum::default().with(rest).with(even).checksum(), oracle(&bytes));
            let third = bytes.len() / 3;
            let parts = [0, third, 2 * third, bytes.len()];
            let pieces = parts.windows(2).map(|part| (part[0], &bytes[part[0]..part[1]]));
            let sum = pieces.fold(Sum::default(), |sum, (at, piece)| sum.with_at(at, piece));
            prop_assert_eq!(sum.checksum(), oracle(&bytes));
        }

        #[test]
        fn update_is_recomputation(mut words in prop::collection::vec(any::<[u8; 2]>(), 10), new: [u8; 2]) {
            words[0] = [0x45, 0];
            let before = oracle(words.as_flattened());
            let old = std::mem::replace(&mut words[4], new);
            let after = update(before, u16::from_be_bytes(old), u16::from_be_bytes(new));
            prop_assert_eq!(after, oracle(words.as_flattened()));
        }
    }
}
