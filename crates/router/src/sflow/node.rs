//! sflow: takes a sample of one packet in N (sflow.org/sflow_version_5.txt, section 3.1).

use graph::{Pkt, Stage, edges};

use super::Sample;
use crate::arc::SAMPLED;
use crate::context::Cx;

edges! {
    /// Ways out of sflow.
    pub enum Next {
        /// As if nobody had looked.
        Input => Node("ethernet-input"),
    }
}

/// One sample, in the unit of the way to the next one.
const WHOLE: u64 = 1 << 32;

/// The stage. Its state is the worker's, for all interfaces together.
#[derive(Default)]
pub struct Input {
    /// Way to the next sample: each packet goes an N-th of [`WHOLE`].
    way: u64,
    /// N, and what a packet goes with it.
    rate: u32,
    step: u64,
    /// State of the generator of random numbers; 0 at first.
    random: u64,
}

impl Stage<Cx> for Input {
    const NAME: &'static str = "sflow";
    type Next = Next;
    const THRU: Next = Next::Input;

    #[inline(always)]
    fn packet(&mut self, cx: &Cx, p: &mut Pkt<'_>) -> Next {
        let rate = cx.interfaces.argument(p.rx_if, SAMPLED);
        if rate != self.rate {
            self.rate = rate;
            self.step = WHOLE / u64::from(rate.max(1));
        }
        if self.step < self.way {
            self.way -= self.step;
        } else {
            self.sample(cx, p);
        }
        Next::Input
    }
}

impl Input {
    /// Takes a sample, unless it is the first packet of all, and draws the way to the next one:
    /// evenly from none to twice the mean. A fixed way would see always the same of traffic that comes
    /// in step with it.
    #[cold]
    fn sample(&mut self, cx: &Cx, p: &Pkt<'_>) {
        match self.random {
            // Any that differs from worker to worker, with many bits: the golden ratio's.
            0 => self.random = (cx.worker as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15),
            _ => cx.samples.send(Sample::of(p)),
        }
        let drawn = self.draw() >> 31;
        self.way = (self.way + drawn).saturating_sub(self.step);
    }

    /// Numbers of 64 bits, never 0 (Marsaglia, Xorshift RNGs, 2003).
    fn draw(&mut self) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.random
    }
}
