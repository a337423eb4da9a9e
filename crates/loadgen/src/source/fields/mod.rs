//! Executes a stream: makes one packet after the other, with their fields varied.
//!
//! A stream is compiled once to a flat list of operations, so that a packet costs a copy of the
//! template and a few stores. Where the fields allow it, the IPv4 header is not summed anew: the
//! sum of the constant part is computed once, and what was written is added to it.

use wire::checksum::Sum;
use wire::eth::MIN_FRAME;
use wire::ip4;

use crate::clock::Nanos;
use crate::model::fields::{Step, Variable};
use crate::model::stream::Stream;
use crate::source::mark::{self, FIRST_SEQUENCE, TRAILER, Trailer};
use crate::source::random::Random;
use crate::source::variable::{Running, Then};

use self::operation::{Compiled, Transport};

mod division;
mod operation;

/// A running stream. Cloning it clones its position.
#[derive(Debug, Clone)]
pub struct Fields {
    frame: Vec<u8>,
    variables: Vec<Running>,
    steps: Vec<Compiled>,
    /// The variable that says the length of frames.
    trim: Option<usize>,
    random: Random,
    /// True if the next packet is the first.
    is_new: bool,
    cache: Option<Cache>,
    trailer: Option<Trailer>,
    /// Checksums to compute after everything else.
    last: Vec<Transport>,
}

/// After how many packets they repeat.
#[derive(Debug, Clone, Copy)]
struct Cache {
    size: u32,
    left: u32,
    seed: Random,
}

impl Fields {
    /// Compiles `stream`. `entropy` seeds the random variables of streams that ask for a different
    /// sequence every time (seed 0). `counter` is the receiver's counter of its packets, for a
    /// stream with a mark.
    ///
    /// Steps that do not lie within the frame or name no variable of the stream are left out;
    /// streams from [`crate::model::profile`] have none.
    pub fn new(stream: &Stream, entropy: u32, counter: u16) -> Self {
        let mut frame = stream.frame();
        let latency = stream.mark.map(|mark| mark.latency);
        if let Some(latency) = latency {
            let number = if latency {
                mark::LATENCY
            } else {
                stream.id_base + counter
            };
            mark::write(&mut frame, number);
        }
        let random = Random(stream.seed(entropy));
        let depends = |i: usize| stream.variables.iter().any(|v| v.next == Some(i));
        let variables = stream.variables.iter().enumerate();
        let steps = stream.steps.iter().filter(|s| stream.contains(s));
        let mut this = Self {
            variables: variables
                .map(|(i, v)| Running::new(v, !depends(i)))
                .collect(),
            steps: Vec::new(),
            trim: None,
            random,
            is_new: true,
            cache: (stream.cache > 0 && latency != Some(true)).then_some(Cache {
                size: stream.cache,
                left: stream.cache,
                seed: random,
            }),
            trailer: (latency == Some(true)).then_some(Trailer {
                run: 1,
                counter,
                sequence: FIRST_SEQUENCE,
                nanos: 0,
            }),
            last: Vec::new(),
            frame,
        };
        steps.for_each(|step| this.compile(step, &stream.variables));
        if let Some(share) = stream.share.filter(|share| share.cores > 1) {
            this.divide(share, &stream.variables);
        }
        this
    }

    /// Length of the longest frame, without frame check sequence.
    #[inline]
    pub fn frame_len(&self) -> usize {
        self.frame.len()
    }

    /// Begins a new run: sequence numbers start again, so that packets that were made but never sent
    /// are not missed.
    pub fn new_run(&mut self) {
        if let Some(trailer) = &mut self.trailer {
            trailer.run = trailer.run.wrapping_add(1);
            trailer.sequence = FIRST_SEQUENCE;
        }
    }

    /// Writes the next packet, sent `at`, to the start of `out` and returns its length. Returns 0,
    /// and stays at this packet, if `out` is shorter than [`Self::frame_len`].
    #[inline]
    pub fn write(&mut self, at: Nanos, out: &mut [u8]) -> usize {
        let Some(out) = out.get_mut(..self.frame.len()) else {
            return 0;
        };
        if !self.variables.is_empty() {
            self.advance();
        }
        let out = match self.trim {
            None => {
                out.copy_from_slice(&self.frame);
                out
            }
            Some(variable) => {
                let len = usize::try_from(self.variables[variable].value).unwrap_or(usize::MAX);
                let packet = len.min(out.len());
                let out = &mut out[..packet.max(MIN_FRAME)];
                out[..packet].copy_from_slice(&self.frame[..packet]);
                out[packet..].fill(0);
                out
            }
        };
        let mut sum = Sum::default();
        for step in &self.steps {
            step.run(out, &self.variables, &mut sum);
        }
        self.finish(at, out);
        out.len()
    }

    #[inline(always)]
    fn finish(&mut self, at: Nanos, out: &mut [u8]) {
        if let Some(trailer) = &mut self.trailer {
            trailer.nanos = at.0;
            let place = out.len().saturating_sub(TRAILER);
            out[place..].copy_from_slice(&trailer.bytes());
            trailer.sequence = trailer.sequence.wrapping_add(1);
        }
        for segment in &self.last {
            segment.run(out);
        }
    }

    /// Gives all variables their values in the next packet.
    #[inline(always)]
    fn advance(&mut self) {
        if let Some(cache) = &mut self.cache {
            if cache.left == 0 {
                cache.left = cache.size;
                self.random = cache.seed;
                self.is_new = true;
            }
            cache.left -= 1;
        }
        if self.is_new {
            self.is_new = false;
            for variable in &mut self.variables {
                variable.begin(&mut self.random);
            }
            return;
        }
        for lead in 0..self.variables.len() {
            if self.variables[lead].leads {
                self.step(lead);
            }
        }
    }

    /// Steps a variable, and those that depend on it.
    #[inline(always)]
    fn step(&mut self, lead: usize) {
        let variable = &mut self.variables[lead];
        let then = variable.step(&mut self.random);
        if then != Then::Stays
            && let Some(next) = variable.next
        {
            self.pass_on(then, next);
        }
    }

    /// A variable has wrapped or started again: those that depend on it follow.
    fn pass_on(&mut self, mut then: Then, mut next: usize) {
        // A chain of variables may not be a circle, but a bound costs nothing.
        for _ in 0..self.variables.len() {
            let Some(variable) = self.variables.get_mut(next) else {
                return;
            };
            match then {
                Then::Stays => return,
                Then::Steps => then = variable.step(&mut self.random),
                Then::StartsAgain => variable.begin(&mut self.random),
            }
            match variable.next {
                Some(after) => next = after,
                None => return,
            }
        }
    }

    /// Appends a step.
    fn compile(&mut self, step: &Step, variables: &[Variable]) {
        let step = match *step {
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
            Step::WriteMasked {
                variable,
                offset,
                size,
                mask,
                shift,
                add,
                big_endian,
            } => Compiled::Masked {
                variable,
                offset,
                size: size.into(),
                mask,
                shift,
                add,
                big_endian,
            },
            Step::Trim { variable } => {
                self.trim = Some(variable);
                return;
            }
            Step::Checksum4 { offset } => {
                return self.checksum4(offset);
            }
            Step::ChecksumTransport {
                network,
                transport,
                protocol,
            } => {
                self.last.push(Transport {
                    network,
                    transport,
                    protocol,
                });
                return;
            }
            Step::ChecksumIcmp6 { network, transport } => Compiled::Icmp6(Transport {
                network,
                transport,
                protocol: Some(wire::ip::ICMP6),
            }),
        };
        self.steps.push(step);
    }

    /// Appends the checksum of the IPv4 header. If all that was written to it since the last
    /// checksum are whole addresses, each once, the rest of it is summed now.
    fn checksum4(&mut self, header: usize) {
        let begin = self
            .steps
            .iter()
            .rposition(|s| matches!(s, Compiled::Delta { .. } | Compiled::Sum { .. }));
        let begin = begin.map_or(0, |at| at + 1);
        match prepared_sum(&self.steps[begin..], &self.frame, header).filter(|_| begin == 0) {
            Some(base) => {
                for step in &mut self.steps[begin..] {
                    if let Compiled::Write {
                        variable,
                        offset,
                        add,
                        ..
                    } = *step
                        && (header..header + ip4::LEN).contains(&offset)
                    {
                        *step = Compiled::Summed {
                            variable,
                            offset,
                            add,
                        };
                    }
                }
                self.steps.push(Compiled::Delta { header, base });
            }
            None => self.steps.push(Compiled::Sum { header }),
        }
    }
}

/// Sum of the constant part of the header, if `steps` write nothing to it but whole addresses, each
/// once, and nothing that is not the same in the same place every time.
fn prepared_sum(steps: &[Compiled], frame: &[u8], header: usize) -> Option<u16> {
    let end = header.checked_add(ip4::LEN)?;
    let mut bytes = frame.get(header..end)?.to_vec();
    if bytes[0] & 0xf != 5 {
        return None;
    }
    let mut written = Vec::new();
    for step in steps {
        let Compiled::Write {
            offset,
            size,
            big_endian,
            ..
        } = *step
        else {
            return None;
        };
        if offset >= end || offset + size <= header {
            continue;
        }
        if size != 4 || !big_endian || written.contains(&offset) {
            return None;
        }
        let place = offset.checked_sub(header).filter(|&p| p == 12 || p == 16)?;
        bytes[place..place + 4].fill(0);
        written.push(offset);
    }
    bytes[10..12].fill(0);
    Some(Sum::default().with(&bytes).fold())
}

#[cfg(test)]
mod tests;
