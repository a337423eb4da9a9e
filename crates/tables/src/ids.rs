//! Numbers of things that readers may still hold after the writer has let go of them.
//!
//! A number goes from free to live, from live to retired and back to free only when it is
//! reclaimed, after a grace period that the caller waits for in between:
//!
//! 1. take the [`Retired`] numbers (whatever pointed to them has been overwritten by now);
//! 2. wait until every worker has begun another loop and, if XDP programs read the table, for an
//!    RCU grace period (milliseconds, so collect many numbers first);
//! 3. hand them back with `reclaim`.
//!
//! Nothing but the reuse of a number waits: changes themselves are visible at once.

use std::fmt;
use std::marker::PhantomData;

/// No number is free (though some may be waiting to be reclaimed).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Full;

impl fmt::Display for Full {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the table is full")
    }
}

impl std::error::Error for Full {}

/// Numbers of a `T` waiting for the end of a grace period. Dropping them loses the numbers.
#[derive(Debug)]
#[must_use = "retired numbers are lost unless they are reclaimed"]
pub struct Retired<T> {
    numbers: Vec<u32>,
    of: PhantomData<fn() -> T>,
}

impl<T> Retired<T> {
    pub(crate) const fn of(numbers: Vec<u32>) -> Self {
        Self {
            numbers,
            of: PhantomData,
        }
    }

    /// Number of retired numbers.
    pub fn len(&self) -> usize {
        self.numbers.len()
    }

    /// Nothing to wait for.
    pub fn is_empty(&self) -> bool {
        self.numbers.is_empty()
    }

    pub(crate) fn numbers(&self) -> &[u32] {
        &self.numbers
    }
}

/// The numbers from `first` up to `limit` and who holds them.
#[derive(Debug)]
pub(crate) struct Ids<T> {
    /// By number: held by the writer's structures.
    live: Vec<bool>,
    free: Vec<u32>,
    retired: Vec<u32>,
    first: u32,
    limit: u32,
    of: PhantomData<fn() -> T>,
}

impl<T> Ids<T> {
    pub fn new(first: u32, limit: u32) -> Self {
        let live = vec![false; first as usize];
        Self {
            live,
            free: Vec::new(),
            retired: Vec::new(),
            first,
            limit,
            of: PhantomData,
        }
    }

    /// A number that no reader holds.
    pub fn alloc(&mut self) -> Result<u32, Full> {
        let number = match self.free.pop() {
            Some(number) => number,
            None if self.live.len() < self.limit as usize => {
                self.live.push(false);
                self.live.len() as u32 - 1
            }
            None => return Err(Full),
        };
        self.live[number as usize] = true;
        Ok(number)
    }

    pub fn is_live(&self, number: u32) -> bool {
        self.live.get(number as usize).copied().unwrap_or(false)
    }

    /// All live numbers, in order.
    pub fn live(&self) -> impl Iterator<Item = u32> {
        (0..)
            .zip(&self.live)
            .filter_map(|(number, &live)| live.then_some(number))
    }

    /// Lets go of a live number; false if it is not live.
    pub fn retire(&mut self, number: u32) -> bool {
        let live = self.is_live(number);
        if live {
            self.live[number as usize] = false;
            self.retired.push(number);
        }
        live
    }

    pub fn take_retired(&mut self) -> Retired<T> {
        Retired::of(std::mem::take(&mut self.retired))
    }

    pub fn reclaim(&mut self, retired: Retired<T>) {
        self.free.extend(retired.numbers);
    }

    pub fn usage(&self) -> Usage {
        let never_used = self.limit as usize - self.live.len();
        let free = never_used + self.free.len();
        let total = (self.limit - self.first) as usize;
        Usage {
            total,
            free,
            retired: self.retired.len(),
        }
    }
}

/// Counts of a table's entries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Usage {
    /// All there are.
    pub total: usize,
    /// Ready to be used.
    pub free: usize,
    /// Retired and not yet taken for reclaiming.
    pub retired: usize,
}

impl Usage {
    /// Those that are held.
    pub fn used(&self) -> usize {
        self.total.saturating_sub(self.free + self.retired)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_reused_only_after_reclaim() {
        let mut ids = Ids::<()>::new(16, 18);
        assert_eq!(
            (ids.alloc(), ids.alloc(), ids.alloc()),
            (Ok(16), Ok(17), Err(Full))
        );
        assert!(ids.retire(16) && !ids.retire(16) && !ids.retire(3) && !ids.retire(99));
        assert_eq!(
            ids.usage(),
            Usage {
                total: 2,
                free: 0,
                retired: 1
            }
        );
        let retired = ids.take_retired();
        assert_eq!(
            (retired.len(), retired.is_empty(), ids.alloc()),
            (1, false, Err(Full))
        );
        ids.reclaim(retired);
        assert_eq!(ids.usage().free, 1);
        assert_eq!((ids.alloc(), ids.alloc()), (Ok(16), Err(Full)));
    }
}
