//! A stream: a packet template, what varies in it from packet to packet, and when it is sent.
//!
//! This is plain data in the terms of a compiled T-Rex profile. [`crate::schedule`] says when its
//! packets are due, [`crate::source`] makes them.

use wire::eth::MIN_FRAME;
use wire::{ip, ip4, ip6, tcp, udp};

use crate::model::fields::{MAX_VARIABLES, Op, Step, Variable};
use crate::model::share::Share;
use crate::model::units::{Bits, FCS, Pps};

/// Identification of the first counter, unless another one is asked for; those of all counters
/// follow.
pub const ID_BASE: u16 = 0xfc00;

/// A stream of one port.
#[derive(Debug, Clone, PartialEq)]
pub struct Stream {
    /// Name in messages and counters.
    pub name: String,
    /// The packet without frame check sequence, as the profile has it; see [`Stream::frame`].
    pub packet: Vec<u8>,
    /// Rate at which it is sent, at multiplier 1.
    pub rate: StreamRate,
    /// Number of packets that are sent, and their bursts.
    pub mode: Mode,
    /// Time from the start to the first packet, in microseconds (T-Rex: inter-stream gap). If
    /// another stream starts this one, from that one's last packet.
    pub isg: f64,
    /// True if it starts with the profile. If not, another stream starts it.
    pub self_start: bool,
    /// The stream that starts when the last burst of this one is over, as an index into the
    /// profile.
    pub next: Option<usize>,
    /// Number of times that this one starts the next; 0: always.
    pub action_count: u32,
    /// Takes its time but sends nothing.
    pub dummy: bool,
    /// Ethernet addresses of the template that are kept; the port's own replace the others.
    pub macs: Macs,
    /// Variables, in the order in which they step.
    pub variables: Vec<Variable>,
    /// Writes into every packet, in order.
    pub steps: Vec<Step>,
    /// Seed of the random variables; 0 gives a different sequence every time.
    pub random_seed: u32,
    /// Number of packets after which they repeat; 0: never.
    pub cache: u32,
    /// Marking of its packets, if they are marked.
    pub mark: Option<Mark>,
    /// Identification of the first counter, where packets are marked without latency; the same for
    /// all streams of a port.
    pub id_base: u16,
    /// The core that sends it where there are several; None: all of them.
    pub core: Option<u32>,
    /// Part of its packets that is sent here; None: none. Rate and bursts are those of all packets.
    pub share: Option<Share>,
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

/// Ethernet addresses of the template that are kept.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Macs {
    /// The source address is the template's, not the port's.
    pub keep_source: bool,
    /// The destination address is the template's, not the next hop's.
    pub keep_destination: bool,
}

/// Pattern of a stream's sending, in packets of its rate.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Mode {
    /// Without an end.
    Continuous,
    /// A number of packets, 1 or more.
    SingleBurst {
        /// Packets.
        packets: u64,
    },
    /// Several bursts.
    MultiBurst {
        /// Packets of a burst, 1 or more.
        packets: u64,
        /// Bursts, 1 or more.
        bursts: u64,
        /// Time from the last packet of a burst to the first of the next, in microseconds.
        ibg: f64,
    },
}

/// Marking of a stream's packets for the receiver.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mark {
    /// Number of the packet group, given by the user.
    pub group: u32,
    /// True if packets also carry a sequence number and their time of sending.
    pub latency: bool,
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
    /// A continuous stream that starts by itself at once, and in whose packets nothing varies.
    pub fn new(name: &str, packet: Vec<u8>, rate: StreamRate) -> Self {
        Self {
            name: name.to_owned(),
            packet,
            rate,
            mode: Mode::Continuous,
            isg: 0.0,
            self_start: true,
            next: None,
            action_count: 0,
            dummy: false,
            macs: Macs::default(),
            variables: Vec::new(),
            steps: Vec::new(),
            random_seed: 0,
            cache: 0,
            mark: None,
            id_base: ID_BASE,
            core: None,
            share: Some(Share::WHOLE),
        }
    }

    /// The frame as it is sent: the packet, padded with zeros to the smallest frame; no frame check
    /// sequence.
    pub fn frame(&self) -> Vec<u8> {
        let mut frame = self.packet.clone();
        frame.resize(self.frame_len(), 0);
        frame
    }

    /// Length of [`Stream::frame`] in bytes; no frame of the stream is longer.
    pub fn frame_len(&self) -> usize {
        self.packet.len().max(MIN_FRAME)
    }

    /// Length in bytes of the shortest frame of the stream, without frame check sequence.
    pub fn least_frame_len(&self) -> usize {
        let longest = self.frame_len();
        let least = self.trim().map(|variable| variable.bounds().0);
        let least = least.and_then(|least| usize::try_from(least).ok());
        least.map_or(longest, |least| least.clamp(MIN_FRAME, longest))
    }

    /// The variable that says the length of frames, if that varies.
    fn trim(&self) -> Option<&Variable> {
        self.steps.iter().rev().find_map(|step| match step {
            Step::Trim { variable } => self.variables.get(*variable),
            _ => None,
        })
    }

    /// Mean frame size in bytes with frame check sequence, as rates and reports count it.
    pub fn size(&self) -> f64 {
        self.trim().map_or(self.frame_len() as f64, Variable::mean) + FCS as f64
    }

    /// True if the rate of the port leaves this stream's own rate as it is: T-Rex does not scale
    /// streams that measure latency.
    pub fn is_fixed(&self) -> bool {
        self.mark.is_some_and(|mark| mark.latency)
    }

    /// The stream that starts when this one has ended; counts `left` down, which is
    /// [`Self::action_count`] at first.
    pub(crate) fn follower(&self, left: &mut u32) -> Option<usize> {
        if self.action_count > 0 {
            *left = left.saturating_sub(1);
            if *left == 0 {
                return None;
            }
        }
        self.next
    }

    /// True if its pace follows the rate of the port. What is fixed does not, nor does a burst of
    /// one packet, which is over before there is a pace: only gaps, which no rate changes, are
    /// left.
    pub fn is_scalable(&self) -> bool {
        let has_pace = match self.mode {
            Mode::Continuous => true,
            Mode::SingleBurst { packets } | Mode::MultiBurst { packets, .. } => packets > 1,
        };
        has_pace && !self.dummy && !self.is_fixed()
    }

    /// True if it sends at one rate from beginning to end.
    pub fn is_steady(&self) -> bool {
        self.mode == Mode::Continuous && self.self_start
    }

    /// True if `step` names a variable of the stream and lies within its frame.
    pub fn contains(&self, step: &Step) -> bool {
        let within = |offset: usize, len: usize| {
            offset
                .checked_add(len)
                .is_some_and(|end| end <= self.frame_len())
        };
        let variable = match step.variable() {
            Some(index) if index >= MAX_VARIABLES => return false,
            Some(index) => match self.variables.get(index) {
                Some(variable) => usize::from(variable.size),
                None => return false,
            },
            None => 0,
        };
        match *step {
            Step::Write { offset, .. } => within(offset, variable),
            Step::WriteMasked { offset, size, .. } => within(offset, size.into()),
            Step::Trim { .. } => true,
            Step::Checksum4 { offset } => within(offset, ip4::LEN),
            Step::ChecksumTransport {
                network,
                transport,
                protocol,
            } => {
                let header = match protocol {
                    Some(ip::TCP) => tcp::LEN,
                    Some(_) => udp::LEN,
                    None => 0,
                };
                within(network, ip4::LEN) && within(transport, header)
            }
            Step::ChecksumIcmp6 { network, transport } => {
                within(network, ip6::LEN) && within(transport, 4)
            }
        }
    }

    /// Start of T-Rex's random number generator, each core at another place. `entropy` is the seed
    /// if the profile asks for a different sequence every time.
    pub fn seed(&self, entropy: u32) -> u32 {
        let seed = match self.random_seed {
            0 => entropy,
            seed => seed,
        };
        self.share.unwrap_or(Share::WHOLE).seed(seed)
    }

    /// True if its packets differ from run to run: it draws random numbers and has no seed.
    pub fn is_unseeded(&self) -> bool {
        let draws = |v: &Variable| v.op == Op::Random && v.seed.is_none();
        self.random_seed == 0 && self.variables.iter().any(draws)
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
    streams.iter().map(|s| s.rate.pps(s.size(), line)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_a_pace_follows_the_rate_of_the_port() {
        let multi = |packets| Mode::MultiBurst {
            packets,
            bursts: 9,
            ibg: 5.0,
        };
        let single = |packets| Mode::SingleBurst { packets };
        let mark = |latency| Some(Mark { group: 1, latency });
        for (mode, dummy, mark, is_scalable) in [
            (Mode::Continuous, false, None, true),
            (Mode::Continuous, false, mark(false), true),
            (Mode::Continuous, false, mark(true), false),
            (Mode::Continuous, true, None, false),
            (single(1), false, None, false),
            (single(2), false, None, true),
            (single(2), false, mark(true), false),
            (multi(1), false, None, false),
            (multi(2), false, None, true),
        ] {
            let stream = Stream {
                mode,
                dummy,
                mark,
                ..Stream::new("s", vec![0; 60], StreamRate::Packets(Pps(1.0)))
            };
            assert_eq!(stream.is_scalable(), is_scalable, "{stream:?}");
        }
    }
}
