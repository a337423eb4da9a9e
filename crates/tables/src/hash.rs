//! Hashes: of flows, by which they are spread over next hops, and of keys of tables.

// 2^64 by the golden ratio: multiples of it lie apart as evenly as can be (Fibonacci hashing).
const K1: u64 = 0x9e37_79b9_7f4a_7c15;
// Odd, so that multiplying loses nothing, and with its bits all over the word.
const K2: u64 = 0xd6e8_feb8_6659_fd93;

/// A hash of a number; its upper half is well mixed, the lower bits less and less.
#[inline(always)]
pub(crate) const fn mixed(number: u64) -> u64 {
    let h = number.wrapping_mul(K1);
    (h ^ (h >> 32)).wrapping_mul(K2)
}

/// A hash of a flow; its top bits are the best mixed, and the next hop is chosen by the top four.
///
/// Addresses and ports are in host byte order; ports are 0 where a packet has none (and in every
/// fragment, so that all fragments of a packet take one way). Defined in unsigned 64-bit arithmetic
/// that wraps, which C and BPF have too:
///
/// ```text
/// a = src << 32 | dst
/// b = proto << 32 | sport << 16 | dport
/// h = (a ^ b * 0xd6e8feb86659fd93) * 0x9e3779b97f4a7c15
/// h = (h ^ h >> 32) * 0xd6e8feb86659fd93
/// result = h >> 32
/// ```
#[inline(always)]
pub const fn flow5(src: u32, dst: u32, proto: u8, sport: u16, dport: u16) -> u32 {
    let a = (src as u64) << 32 | dst as u64;
    let b = (proto as u64) << 32 | (sport as u64) << 16 | dport as u64;
    (mixed(a ^ b.wrapping_mul(K2)) >> 32) as u32
}

/// The same for IPv6, with the flow label (RFC 6437, RFC 6438), of which 20 bits count:
///
/// ```text
/// a = src's last 8 bytes ^ dst's last 8 bytes, halves swapped
/// b = src's first 8 bytes ^ dst's first 8 bytes, halves swapped
/// c = label << 40 | proto << 32 | sport << 16 | dport
/// h = (a ^ c * 0xd6e8feb86659fd93) * 0x9e3779b97f4a7c15
/// h = (h ^ h >> 32 ^ b) * 0xd6e8feb86659fd93
/// h = (h ^ h >> 32) * 0x9e3779b97f4a7c15
/// result = h >> 32
/// ```
#[inline(always)]
pub const fn flow6(
    src: &[u8; 16],
    dst: &[u8; 16],
    label: u32,
    proto: u8,
    sport: u16,
    dport: u16,
) -> u32 {
    let (src, dst) = (u128::from_be_bytes(*src), u128::from_be_bytes(*dst));
    let a = src as u64 ^ (dst as u64).rotate_left(32);
    let b = (src >> 64) as u64 ^ ((dst >> 64) as u64).rotate_left(32);
    let ports = (sport as u64) << 16 | dport as u64;
    let c = ((label & 0xf_ffff) as u64) << 40 | (proto as u64) << 32 | ports;
    let h = (a ^ c.wrapping_mul(K2)).wrapping_mul(K1);
    let h = (h ^ (h >> 32) ^ b).wrapping_mul(K2);
    let h = (h ^ (h >> 32)).wrapping_mul(K1);
    (h >> 32) as u32
}

/// The share of a hash among so many, from 0: of what the top bits of the same hash have led to one
/// place already, too.
#[inline(always)]
pub const fn share(hash: u32, of: usize) -> usize {
    // These have the top bits in common.
    let mixed = hash.wrapping_mul(0x9e37_79b1);
    ((mixed as u64 * of as u64) >> 32) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Largest deviation from an even spread over 16 buckets, in percent.
    fn imbalance(flows: impl Iterator<Item = u32>) -> f64 {
        let mut counts = [0u32; 16];
        flows.for_each(|hash| counts[(hash >> 28) as usize] += 1);
        let even = f64::from(counts.iter().sum::<u32>()) / 16.0;
        counts
            .iter()
            .map(|&count| (f64::from(count) - even).abs() / even * 100.0)
            .fold(0.0, f64::max)
    }

    fn pairs() -> impl Iterator<Item = (u32, u32)> {
        (0..251).flat_map(|a| (0..251).map(move |b| (a, b)))
    }

    #[test]
    fn flows_of_a_load_test_spread_evenly() {
        let (src, dst) = (0x1000_0001, 0x3000_0001);
        let by_address = imbalance(pairs().map(|(a, b)| flow5(src + a, dst + b, 17, 1025, 12)));
        let by_port =
            imbalance(pairs().map(|(a, b)| flow5(src, dst, 17, 1024 + a as u16, 53 + b as u16)));
        let by_source =
            imbalance(pairs().map(|(a, b)| flow5(src + a, dst, 6, 1024 + b as u16, 443)));
        let by_high_bits = imbalance(pairs().map(|(a, b)| flow5(a << 24, b << 24, 6, 80, 80)));
        let one_way = imbalance((0..63_001).map(|a| flow5(src + a, dst, 6, 80, 80)));
        let all = [by_address, by_port, by_source, by_high_bits, one_way];
        println!("largest deviations from even in percent: {all:.1?}");
        assert!(all.iter().all(|&percent| percent < 8.0), "{all:.1?}");
    }

    #[test]
    fn flows_of_ip6_spread_evenly() {
        let net: u128 = 0x2001_0db8 << 96;
        let address =
            |low: u32, high: u32| (net | u128::from(high) << 64 | u128::from(low)).to_be_bytes();
        let (src, dst) = (address(1, 1), address(1, 2));
        let by_address =
            imbalance(pairs().map(|(a, b)| flow6(&address(a, 1), &address(b, 2), 0, 17, 1025, 12)));
        let by_network = imbalance(
            pairs().map(|(a, b)| flow6(&address(1, a), &address(1, 1000 + b), 0, 6, 80, 80)),
        );
        let by_port = imbalance(
            pairs().map(|(a, b)| flow6(&src, &dst, 0, 17, 1024 + a as u16, 53 + b as u16)),
        );
        let by_label = imbalance((0..63_001).map(|label| flow6(&src, &dst, label, 44, 0, 0)));
        let all = [by_address, by_network, by_port, by_label];
        println!("largest deviations from even in percent: {all:.1?}");
        assert!(all.iter().all(|&percent| percent < 8.0), "{all:.1?}");
    }

    #[test]
    fn known_values() {
        assert_eq!(flow5(0, 0, 0, 0, 0), 0);
        let (src, dst) = (
            0x2001_0db8_0000_0000_0000_0000_0000_0001u128.to_be_bytes(),
            0x2001_0db8_0001_0000_0000_0000_0000_0002u128.to_be_bytes(),
        );
        assert_eq!(flow6(&[0; 16], &[0; 16], 0, 0, 0, 0), 0);
        assert_eq!(flow6(&src, &dst, 0x12345, 17, 1025, 12), 0xe742_b2f6);
        assert_eq!(
            flow6(&src, &dst, 0xfff1_2345, 17, 1025, 12),
            0xe742_b2f6,
            "20 bits"
        );
        // Computed apart, with numbers of any size.
        assert_eq!(flow5(0x1000_0001, 0x3000_0001, 17, 1025, 12), 0x492a_2b03);
        assert_eq!(flow5(0xc000_0201, 0xc633_6401, 6, 443, 65535), 0x7959_37be);
    }
}
