//! Variables in a stream's packets, and the steps that write them.
//!
//! The terms and the sequences of values are those of a compiled T-Rex profile.
//! [`crate::source::fields`] executes them.

/// Most variables of a stream.
pub const MAX_VARIABLES: usize = 32;

/// Kind of change of a variable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Op {
    /// Upwards by the step.
    Inc,
    /// Downwards by the step.
    Dec,
    /// Drawn from a random number generator.
    Random,
}

/// A number that takes a new value with every packet, or whenever the variable before it wraps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Variable {
    /// Name in the profile.
    pub name: String,
    /// Width in bytes: 1, 2, 4 or 8.
    pub size: u8,
    /// Kind of change.
    pub op: Op,
    /// Value in the first packet; ignored if random.
    pub init: u64,
    /// Smallest value.
    pub min: u64,
    /// Largest value. Past it, inc goes on from `min`, and dec the other way round.
    pub max: u64,
    /// Step of inc and dec, 1 or more.
    pub step: u64,
    /// The values that it takes, if they are listed; `init`, `min`, `max` and `step` then count
    /// places in the list.
    pub list: Vec<u64>,
    /// Number of values after which it starts again with the first; 0: never.
    pub limit: u64,
    /// Seed of a random number generator of its own; without one it draws from the stream's.
    pub seed: Option<u32>,
    /// The variable that steps only when this one wraps or starts again, and with every value of a
    /// random one that never does. If this one is not random and starts again, that one does too.
    pub next: Option<usize>,
    /// True if each core takes only its share of the values; if not, every core goes through all.
    pub is_shared: bool,
}

/// A change of the packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Stores a variable plus a constant, in the variable's width.
    Write {
        /// Index into [`crate::model::stream::Stream::variables`].
        variable: usize,
        /// First byte in the packet.
        offset: usize,
        /// Added to the variable, modulo its width.
        add: i64,
        /// True for network byte order; if not, little-endian.
        big_endian: bool,
    },
    /// Replaces some bits of a field by those of a variable: adds the constant, shifts, and keeps
    /// the bits of the field outside of the mask.
    WriteMasked {
        /// Index into [`crate::model::stream::Stream::variables`].
        variable: usize,
        /// First byte in the packet.
        offset: usize,
        /// Width of the field in bytes: 1, 2 or 4.
        size: u8,
        /// The bits that are written.
        mask: u32,
        /// Bits to shift by, to the left; to the right if negative.
        shift: i8,
        /// Added to the variable, modulo 2^32.
        add: i32,
        /// True if the field is in network byte order; if not, little-endian.
        big_endian: bool,
    },
    /// Cuts the frame to the length that the variable says, no shorter than the smallest frame.
    Trim {
        /// Index into [`crate::model::stream::Stream::variables`].
        variable: usize,
    },
    /// Computes the IPv4 header checksum.
    Checksum4 {
        /// First byte of the IPv4 header.
        offset: usize,
    },
    /// Computes, after all other steps, the IPv4 header checksum and that of the TCP or UDP segment
    /// in it, or that of the segment in an IPv6 packet: what T-Rex leaves to the hardware.
    ChecksumTransport {
        /// First byte of the IPv4 or IPv6 header.
        network: usize,
        /// First byte of the segment.
        transport: usize,
        /// Protocol of the segment; None: only the IPv4 header is summed.
        protocol: Option<u8>,
    },
    /// Computes the checksum of an ICMPv6 message.
    ChecksumIcmp6 {
        /// First byte of the IPv6 header.
        network: usize,
        /// First byte of the message.
        transport: usize,
    },
}

impl Variable {
    /// A variable of `size` bytes that goes through a range, upwards in steps of 1.
    pub fn range(name: &str, size: u8, min: u64, max: u64) -> Self {
        Self {
            name: name.to_owned(),
            size,
            op: Op::Inc,
            init: min,
            min,
            max,
            step: 1,
            list: Vec::new(),
            limit: 0,
            seed: None,
            next: None,
            is_shared: true,
        }
    }

    /// The smallest and the largest value that it takes.
    pub fn bounds(&self) -> (u64, u64) {
        match (self.list.iter().min(), self.list.iter().max()) {
            (Some(&min), Some(&max)) => (min, max),
            _ => (self.min, self.max),
        }
    }

    /// The mean of the values that it goes through.
    pub fn mean(&self) -> f64 {
        match self.list.as_slice() {
            [] => (self.min as f64 + self.max as f64) / 2.0,
            list => list.iter().map(|&v| v as f64).sum::<f64>() / list.len() as f64,
        }
    }
}

impl Step {
    /// The variable that it needs.
    pub fn variable(&self) -> Option<usize> {
        match *self {
            Self::Write { variable, .. }
            | Self::WriteMasked { variable, .. }
            | Self::Trim { variable } => Some(variable),
            Self::Checksum4 { .. }
            | Self::ChecksumTransport { .. }
            | Self::ChecksumIcmp6 { .. } => None,
        }
    }
}
