//! A stream: a packet template, what varies in it from packet to packet, and how often it is sent.
//!
//! This is plain data in the terms of a compiled T-Rex profile. [`crate::source::fields`] executes
//! it.

use wire::eth::MIN_FRAME;
use wire::ip4;

use crate::model::rate::Load;
use crate::model::units::{Bits, FCS, Pps};

/// Most variables of a stream.
pub const MAX_VARIABLES: usize = 16;

/// A continuous stream of one port.
#[derive(Debug, Clone, PartialEq)]
pub struct Stream {
    /// Name in messages and counters.
    pub name: String,
    /// The packet without frame check sequence, as the profile has it; see [`Stream::frame`].
    pub packet: Vec<u8>,
    /// How often it is sent, at multiplier 1.
    pub rate: StreamRate,
    /// Time from the start to the first packet, in microseconds (T-Rex: inter-stream gap).
    pub isg: f64,
    /// Which of the template's Ethernet addresses are kept; the port's own replace the others.
    pub macs: Macs,
    /// Variables, in the order in which they step.
    pub variables: Vec<Variable>,
    /// Writes into every packet, in order.
    pub steps: Vec<Step>,
    /// Seed of the random variables; 0 gives a different sequence every time.
    pub random_seed: u32,
    /// Number of packets after which they repeat; 0: never.
    pub cache: u32,
}

/// A stream's own rate.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum StreamRate {
    /// Packets a second.
    Packets(Pps),
    /// Layer 2 bits a second.
    L2(Bits),
    /// Layer 1 bits a second.
    L1(Bits),
    /// Percent of the line rate on layer 1.
    Percent(f64),
}

/// Which Ethernet addresses of the template are kept.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Macs {
    /// The source address is the template's, not the port's.
    pub keep_source: bool,
    /// The destination address is the template's, not the next hop's.
    pub keep_destination: bool,
}

/// How a variable changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Op {
    /// Upwards by the step.
    Inc,
    /// Downwards by the step.
    Dec,
    /// Drawn from the stream's generator.
    Random,
}

/// A number that takes a new value with every packet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Variable {
    /// Name in the profile.
    pub name: String,
    /// Width in bytes: 1, 2, 4 or 8.
    pub size: u8,
    /// How it changes.
    pub op: Op,
    /// Value in the first packet; ignored if random.
    pub init: u64,
    /// Smallest value.
    pub min: u64,
    /// Largest value; of inc and dec variables the range is a whole number of steps.
    pub max: u64,
    /// Step of inc and dec, 1 or more.
    pub step: u64,
}

/// One write into the packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Stores a variable plus a constant, in the variable's width.
    Write {
        /// Index into [`Stream::variables`].
        variable: usize,
        /// First byte in the packet.
        offset: usize,
        /// Added to the variable, modulo its width.
        add: i64,
        /// Whether in network byte order; if not, little-endian.
        big_endian: bool,
    },
    /// Computes the IPv4 header checksum.
    Checksum4 {
        /// First byte of the IPv4 header.
        offset: usize,
    },
}

impl StreamRate {
    /// Packets a second, for frames of `size` bytes with frame check sequence. None for a
    /// percentage of an unknown line.
    pub fn pps(self, size: f64, line: Option<Bits>) -> Option<Pps> {
        match self {
            Self::Packets(pps) => Some(pps),
            Self::L2(bits) => Some(bits.l2_pps(size)),
            Self::L1(bits) => Some(bits.l1_pps(size)),
            Self::Percent(v) => line.map(|line| Bits(line.0 * v / 100.0).l1_pps(size)),
        }
    }
}

impl Stream {
    /// The frame as it is sent: the packet, padded with zeros to the smallest frame; no frame check
    /// sequence.
    pub fn frame(&self) -> Vec<u8> {
        let mut frame = self.packet.clone();
        frame.resize(self.frame_len(), 0);
        frame
    }

    /// Length of [`Stream::frame`] in bytes.
    pub fn frame_len(&self) -> usize {
        self.packet.len().max(MIN_FRAME)
    }

    /// Frame size in bytes with frame check sequence, as rates and reports count it.
    pub fn size(&self) -> usize {
        self.frame_len() + FCS
    }

    /// Whether `step` names a variable of the stream and lies within its frame.
    pub fn contains(&self, step: &Step) -> bool {
        let within = |offset: usize, len: usize| {
            offset
                .checked_add(len)
                .is_some_and(|end| end <= self.frame_len())
        };
        match *step {
            Step::Write {
                variable, offset, ..
            } => {
                variable < MAX_VARIABLES
                    && self
                        .variables
                        .get(variable)
                        .is_some_and(|v| within(offset, v.size.into()))
            }
            Step::Checksum4 { offset } => within(offset, ip4::LEN),
        }
    }

    /// Seed of T-Rex's random number generator; `entropy` if the profile asks for a different
    /// sequence every time.
    pub fn seed(&self, entropy: u32) -> u32 {
        match self.random_seed {
            0 => entropy,
            seed => seed.wrapping_mul(514_229),
        }
    }

    /// Writes the port's and the next hop's Ethernet addresses into the template, except those that
    /// the profile keeps.
    pub fn address(&mut self, source: [u8; 6], destination: [u8; 6]) {
        if !self.macs.keep_destination && self.packet.len() >= 6 {
            self.packet[..6].copy_from_slice(&destination);
        }
        if !self.macs.keep_source && self.packet.len() >= 12 {
            self.packet[6..12].copy_from_slice(&source);
        }
    }
}

/// Packets a second of each stream at multiplier 1. None if one is a share of an unknown line.
pub fn base_rates(streams: &[Stream], line: Option<Bits>) -> Option<Vec<Pps>> {
    streams
        .iter()
        .map(|s| s.rate.pps(s.size() as f64, line))
        .collect()
}

/// The load of all streams together at multiplier 1. None if one is a share of an unknown line, or
/// if nothing is offered.
pub fn load(streams: &[Stream], line: Option<Bits>) -> Option<Load> {
    let rates = base_rates(streams, line)?;
    let base: f64 = rates.iter().map(|r| r.0).sum();
    let bytes: f64 = rates
        .iter()
        .zip(streams)
        .map(|(r, s)| r.0 * s.size() as f64)
        .sum();
    (base > 0.0 && base.is_finite()).then(|| Load {
        base: Pps(base),
        size: bytes / base,
    })
}
