//! A variable in motion.

use crate::model::fields::{Op, Variable};
use crate::model::share::Share;
use crate::source::random::Random;

/// A variable and its value in this packet.
#[derive(Debug, Clone)]
pub struct Running {
    /// Its value in this packet.
    pub value: u64,
    /// The variable that moves when this one wraps.
    pub next: Option<usize>,
    /// True if it moves by itself, not because another one wraps.
    pub leads: bool,
    op: Op,
    /// Width in bytes, which decides how many random bits are drawn.
    size: u8,
    /// True if it has neither list nor limit nor generator of its own.
    is_plain: bool,
    /// Its value, or its place in the list.
    at: u64,
    min: u64,
    max: u64,
    step: u64,
    init: u64,
    list: Box<[u64]>,
    limit: u64,
    left: u64,
    seed: Option<u32>,
    own: Random,
}

/// Effect of a step on the variable that depends on this one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Then {
    /// It stays.
    Stays,
    /// It steps.
    Steps,
    /// It starts again.
    StartsAgain,
}

impl Running {
    /// A variable before its first packet. `leads`: none of the others moves it.
    pub fn new(variable: &Variable, leads: bool) -> Self {
        let (min, max) = (variable.min, variable.max.max(variable.min));
        Self {
            value: variable.init,
            next: variable.next,
            leads,
            op: variable.op,
            size: variable.size,
            is_plain: variable.list.is_empty() && variable.limit == 0 && variable.seed.is_none(),
            at: variable.init,
            min,
            max,
            step: variable.step,
            init: variable.init.clamp(min, max),
            list: variable.list.clone().into(),
            limit: variable.limit,
            left: 0,
            seed: variable.seed,
            own: Random(variable.seed.unwrap_or(0)),
        }
    }

    /// Takes the first value.
    pub fn begin(&mut self, shared: &mut Random) {
        self.left = self.limit.saturating_sub(1);
        self.at = self.init;
        if let Some(seed) = self.seed {
            self.own = Random(seed);
        }
        if self.op == Op::Random {
            self.draw(shared);
        }
        self.show();
    }

    /// Takes the next value.
    #[inline(always)]
    pub fn step(&mut self, shared: &mut Random) -> Then {
        if self.is_plain && self.op == Op::Inc && self.max - self.at >= self.step {
            self.at += self.step;
            self.value = self.at;
            return Then::Stays;
        }
        self.step_slowly(shared)
    }

    /// Makes the present value the first one.
    pub fn start_here(&mut self) {
        if self.op != Op::Random {
            self.init = self.at;
        }
    }

    /// From now on takes only a core's share of the values: those of every `cores`th step, or of a
    /// random variable with a seed another sequence, and as many before it starts again.
    pub fn divide(&mut self, share: Share) {
        let count = u128::from(self.max - self.min) + 1;
        let steps = u128::from(self.step) * u128::from(share.cores);
        // No more than there are values, which fits.
        self.step = u64::try_from((steps - 1) % count + 1).unwrap_or(self.step);
        if self.limit > 0 {
            self.limit = share.of(self.limit).max(1);
        }
        self.seed = self.seed.map(|seed| share.seed(seed));
    }

    fn step_slowly(&mut self, shared: &mut Random) -> Then {
        if self.limit > 0 {
            if self.left == 0 {
                self.begin(shared);
                return match self.op {
                    Op::Random => Then::Steps,
                    Op::Inc | Op::Dec => Then::StartsAgain,
                };
            }
            self.left -= 1;
        }
        let wraps = match self.op {
            Op::Inc => self.rise(),
            Op::Dec => self.fall(),
            Op::Random => {
                self.draw(shared);
                self.limit == 0
            }
        };
        self.show();
        if wraps { Then::Steps } else { Then::Stays }
    }

    /// Returns whether it wrapped.
    fn rise(&mut self) -> bool {
        let left = self.max - self.at;
        if self.step > left {
            self.at = self.min + self.over(left);
            return true;
        }
        self.at += self.step;
        false
    }

    fn fall(&mut self) -> bool {
        let left = self.at - self.min;
        if self.step > left {
            self.at = self.max - self.over(left);
            return true;
        }
        self.at -= self.step;
        false
    }

    /// Distance that a step leads beyond the first value after the wrap.
    fn over(&self, left: u64) -> u64 {
        let over = self.step - left - 1;
        (self.max - self.min)
            .checked_add(1)
            .map_or(over, |count| over % count)
    }

    fn draw(&mut self, shared: &mut Random) {
        let random = match self.seed {
            Some(_) => &mut self.own,
            None => shared,
        };
        self.at = match self.list.len() {
            0 => random.within(self.size, self.min, self.max),
            len => random.draw16() % len as u64,
        };
    }

    fn show(&mut self) {
        let listed = usize::try_from(self.at)
            .ok()
            .and_then(|at| self.list.get(at));
        self.value = listed.copied().unwrap_or(self.at);
    }
}
