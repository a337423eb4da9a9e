//! Rates as types, and the arithmetic between packets and bits.
//!
//! A frame's size counts its frame check sequence: 64 is the smallest. On the wire (layer 1) a
//! frame takes [`WIRE_OVERHEAD`] bytes more.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Bytes that each frame takes on the wire besides its own: preamble (7), start of frame (1) and
/// inter-frame gap (12), IEEE 802.3.
pub const WIRE_OVERHEAD: f64 = 20.0;

/// Length of the frame check sequence in bytes. No port has it in memory.
pub const FCS: usize = 4;

/// Largest frame of a profile in bytes, without frame check sequence: T-Rex's.
pub const MAX_FRAME: usize = 9 * 1024 + 22;

/// Packets a second, zero or more.
#[derive(Debug, Clone, Copy, Default, PartialEq, PartialOrd, Serialize, Deserialize)]
pub struct Pps(pub f64);

impl Pps {
    /// As fast as the port takes packets.
    pub const UNLIMITED: Self = Self(f64::INFINITY);

    /// False for [`Pps::UNLIMITED`].
    pub fn is_limited(self) -> bool {
        self.0.is_finite()
    }

    /// Layer 1 bits a second of frames of `size` bytes (with frame check sequence).
    pub fn l1(self, size: f64) -> Bits {
        Bits(self.0 * (size + WIRE_OVERHEAD) * 8.0)
    }
}

impl fmt::Display for Pps {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        scaled(f, self.0, "pps")
    }
}

/// Bits a second, zero or more.
#[derive(Debug, Clone, Copy, Default, PartialEq, PartialOrd, Serialize, Deserialize)]
pub struct Bits(pub f64);

impl Bits {
    /// Packets a second, if these are layer 2 bits of frames of `size` bytes.
    pub fn l2_pps(self, size: f64) -> Pps {
        Pps(self.0 / (size * 8.0))
    }

    /// Packets a second, if these are layer 1 bits of frames of `size` bytes.
    pub fn l1_pps(self, size: f64) -> Pps {
        Pps(self.0 / ((size + WIRE_OVERHEAD) * 8.0))
    }
}

impl fmt::Display for Bits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        scaled(f, self.0, "bit/s")
    }
}

/// Writes `value` with a decimal prefix and one to three digits before the point.
fn scaled(f: &mut fmt::Formatter<'_>, value: f64, unit: &str) -> fmt::Result {
    if !value.is_finite() {
        return write!(f, "unlimited");
    }
    let (value, prefix) = match value {
        v if v >= 999.5e6 => (v / 1e9, "G"),
        v if v >= 999.5e3 => (v / 1e6, "M"),
        v if v >= 999.5 => (v / 1e3, "k"),
        v => (v, ""),
    };
    let digits = f.precision().unwrap_or(2);
    write!(f, "{value:.digits$} {prefix}{unit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The well-known line rates.
    #[test]
    fn line_rates() {
        for (line, size, pps) in [
            (1e9, 64.0, 1_488_095.0),
            (1e10, 64.0, 14_880_952.0),
            (1e11, 64.0, 148_809_523.0),
            (1e9, 1518.0, 81_274.0),
            (1e10, 1518.0, 812_743.0),
        ] {
            assert_eq!(
                Bits(line).l1_pps(size).0.floor(),
                pps,
                "{line} bit/s at {size} B"
            );
        }
    }

    #[test]
    fn bits_and_packets_are_inverse() {
        assert_eq!(Pps(1e6).l1(64.0), Bits(672e6));
        assert_eq!(Pps(1e6).l1(64.0).l1_pps(64.0), Pps(1e6));
        assert_eq!(Bits(512e6).l2_pps(64.0), Pps(1e6));
    }

    #[test]
    fn printed_with_a_prefix() {
        assert_eq!(Pps(1_488_095.0).to_string(), "1.49 Mpps");
        assert_eq!(Pps(12.0).to_string(), "12.00 pps");
        assert_eq!(format!("{:.0}", Bits(999_999_999.0)), "1 Gbit/s");
        assert_eq!(Pps::UNLIMITED.to_string(), "unlimited");
    }
}
