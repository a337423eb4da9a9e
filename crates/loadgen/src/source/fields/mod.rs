//! Executes a stream: makes one packet after the other, with their fields varied.
//!
//! A stream is compiled once to a flat list of operations, so that a packet costs a copy of the
//! template and a few stores. Where the fields allow it, the IPv4 header is not summed anew: the
//! sum of the constant part is computed once, and what was written is added to it.

use wire::checksum::{self, Sum};
use wire::ip4;

use crate::model::stream::{MAX_VARIABLES, Op, Step, Stream, Variable};

/// A running stream. Cloning it clones its position.
#[derive(Debug, Clone)]
pub struct Fields {
    frame: Vec<u8>,
    variables: Vec<Running>,
    steps: Vec<Compiled>,
    random: Random,
    /// For a stream with a cache: the state at the first packet, and packets until it repeats.
    cache: Option<Box<Cache>>,
}

#[derive(Debug, Clone)]
struct Cache {
    variables: Vec<Running>,
    random: Random,
    size: u32,
    left: u32,
}

/// A variable, with its value in the next packet.
#[derive(Debug, Clone, Copy)]
struct Running {
    value: u64,
    op: Op,
    min: u64,
    max: u64,
    step: u64,
    /// Width in bytes, which decides how many random bits are drawn.
    size: u8,
}

#[derive(Debug, Clone, Copy)]
enum Compiled {
    /// Four bytes in network byte order, the common case.
    Write32 {
        variable: usize,
        offset: usize,
        add: u64,
    },
    Write {
        variable: usize,
        offset: usize,
        add: u64,
        size: usize,
        big_endian: bool,
    },
    /// Sums the whole header.
    Sum { header: usize },
    /// Adds what the `Write32`s stored to `base`, the sum of the rest of the header.
    Delta { header: usize, base: u16 },
}

/// T-Rex's random number generator.
#[derive(Debug, Clone, Copy)]
struct Random(u32);

impl Random {
    /// 15 bits.
    fn draw16(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(214_013).wrapping_add(2_531_011);
        u64::from((self.0 >> 16) & 0x7fff)
    }

    /// The first draw is the high half.
    fn draw32(&mut self) -> u64 {
        (self.draw16() << 16) + self.draw16()
    }

    fn draw64(&mut self) -> u64 {
        (self.draw32() << 32) + self.draw32()
    }

    fn within(&mut self, variable: &Running) -> u64 {
        let drawn = match variable.size {
            1 | 2 => self.draw16(),
            4 => self.draw32(),
            _ => self.draw64(),
        };
        match (variable.max - variable.min).checked_add(1) {
            Some(count) => variable.min + drawn % count,
            None => drawn,
        }
    }
}

impl Running {
    fn new(variable: &Variable) -> Self {
        let Variable {
            op,
            init,
            min,
            max,
            step,
            size,
            ..
        } = *variable;
        let max = max.max(min);
        let step = (max - min)
            .checked_add(1)
            .map_or(step, |count| step % count);
        Self {
            value: init.clamp(min, max),
            op,
            min,
            max,
            step,
            size,
        }
    }

    /// Returns this packet's value and steps to that of the next.
    #[inline]
    fn next(&mut self, random: &mut Random) -> u64 {
        let value = self.value;
        match self.op {
            Op::Inc => {
                let left = self.max - value;
                self.value = if self.step > left {
                    self.min + (self.step - left - 1)
                } else {
                    value + self.step
                };
            }
            Op::Dec => {
                let left = value - self.min;
                self.value = if self.step > left {
                    self.max - (self.step - left - 1)
                } else {
                    value - self.step
                };
            }
            Op::Random => return random.within(self),
        }
        value
    }
}

impl Fields {
    /// Compiles `stream`. `entropy` seeds the random variables of streams that ask for a different
    /// sequence every time (seed 0).
    ///
    /// Steps that do not lie within the frame or name no variable of the stream are left out;
    /// streams from [`crate::model::profile`] have none.
    pub fn new(stream: &Stream, entropy: u32) -> Self {
        let frame = stream.frame();
        let variables: Vec<Running> = stream.variables.iter().map(Running::new).collect();
        let fits: Vec<Step> = stream
            .steps
            .iter()
            .copied()
            .filter(|s| stream.contains(s))
            .collect();
        let steps = (0..fits.len())
            .map(|at| compile(&fits, at, &stream.variables, &frame))
            .collect();
        let random = Random(stream.seed(entropy));
        let cache = (stream.cache > 0).then(|| {
            Box::new(Cache {
                variables: variables.clone(),
                random,
                size: stream.cache,
                left: stream.cache,
            })
        });
        Self {
            frame,
            variables,
            steps,
            random,
            cache,
        }
    }

    /// Frame length in bytes, without frame check sequence.
    #[inline]
    pub fn frame_len(&self) -> usize {
        self.frame.len()
    }

    /// Writes the next packet to the start of `out` and returns its length. Returns 0, and stays at
    /// this packet, if `out` is too short.
    #[inline]
    pub fn write(&mut self, out: &mut [u8]) -> usize {
        let Some(out) = out.get_mut(..self.frame.len()) else {
            return 0;
        };
        out.copy_from_slice(&self.frame);
        self.vary(out);
        out.len()
    }

    /// Appends the next packet to `out`, for frames that do not fit into one buffer.
    pub fn append(&mut self, out: &mut Vec<u8>) {
        let start = out.len();
        out.extend_from_slice(&self.frame);
        self.vary(&mut out[start..]);
    }

    /// Turns `out`, a copy of the template, into the next packet.
    #[inline]
    fn vary(&mut self, out: &mut [u8]) {
        if self.steps.is_empty() {
            return;
        }
        let mut values = [0u64; MAX_VARIABLES];
        for (value, variable) in values.iter_mut().zip(&mut self.variables) {
            *value = variable.next(&mut self.random);
        }
        let mut sum = Sum::default();
        for step in &self.steps {
            match *step {
                Compiled::Write32 {
                    variable,
                    offset,
                    add,
                } => {
                    let value = (values[variable].wrapping_add(add) & 0xffff_ffff) as u32;
                    out[offset..offset + 4].copy_from_slice(&value.to_be_bytes());
                    sum = sum.with_u32(value);
                }
                Compiled::Write {
                    variable,
                    offset,
                    add,
                    size,
                    big_endian,
                } => {
                    let value = values[variable].wrapping_add(add);
                    let field = &mut out[offset..offset + size];
                    if big_endian {
                        field.copy_from_slice(&value.to_be_bytes()[8 - size..]);
                    } else {
                        field.copy_from_slice(&value.to_le_bytes()[..size]);
                    }
                }
                Compiled::Delta { header, base } => {
                    out[header + 10..header + 12]
                        .copy_from_slice(&sum.with_u16(base).checksum().to_be_bytes());
                    sum = Sum::default();
                }
                Compiled::Sum { header } => {
                    checksum4(&mut out[header..]);
                    sum = Sum::default();
                }
            }
        }
        self.repeat();
    }

    /// Starts again with the first packet when the whole cache has been sent.
    #[inline]
    fn repeat(&mut self) {
        if let Some(cache) = &mut self.cache {
            cache.left -= 1;
            if cache.left == 0 {
                cache.left = cache.size;
                self.variables.clone_from(&cache.variables);
                self.random = cache.random;
            }
        }
    }
}

/// Compiles step `at`.
fn compile(steps: &[Step], at: usize, variables: &[Variable], frame: &[u8]) -> Compiled {
    match steps[at] {
        Step::Write {
            variable,
            offset,
            add,
            big_endian: true,
        } if variables[variable].size == 4 => Compiled::Write32 {
            variable,
            offset,
            add: add.cast_unsigned(),
        },
        Step::Write {
            variable,
            offset,
            add,
            big_endian,
        } => Compiled::Write {
            variable,
            offset,
            add: add.cast_unsigned(),
            size: variables[variable].size.into(),
            big_endian,
        },
        Step::Checksum4 { offset } => match prepared_sum(steps, at, variables, frame, offset) {
            Some(base) => Compiled::Delta {
                header: offset,
                base,
            },
            None => Compiled::Sum { header: offset },
        },
    }
}

/// Sum of the constant part of the header, if all steps before are 32-bit writes to its addresses
/// that do not overlap.
fn prepared_sum(
    steps: &[Step],
    at: usize,
    variables: &[Variable],
    frame: &[u8],
    header: usize,
) -> Option<u16> {
    let mut bytes = frame.get(header..header + ip4::LEN)?.to_vec();
    if bytes[0] & 0xf != 5 {
        return None;
    }
    let mut written = Vec::new();
    for step in &steps[..at] {
        let Step::Write {
            variable,
            offset,
            big_endian: true,
            ..
        } = *step
        else {
            return None;
        };
        if variables[variable].size != 4 || written.contains(&offset) {
            return None;
        }
        let place = offset.checked_sub(header).filter(|&p| p == 12 || p == 16)?;
        bytes[place..place + 4].fill(0);
        written.push(offset);
    }
    bytes[10..12].fill(0);
    Some(Sum::default().with(&bytes).fold())
}

/// Sets the checksum of the IPv4 header at the start of `packet`. A header length beyond the packet
/// is cut to it.
fn checksum4(packet: &mut [u8]) {
    let len = (usize::from(packet[0] & 0xf) * 4).clamp(ip4::LEN, packet.len());
    packet[10..12].fill(0);
    let checksum = checksum::of(&packet[..len]);
    packet[10..12].copy_from_slice(&checksum.to_be_bytes());
}

#[cfg(test)]
mod tests;
