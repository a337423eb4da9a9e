//! The memory of a flow table.

use std::io;

use super::bucket::{Bucket, SLOTS};
use super::queue::Queue;
use super::{Flow, Second};
use crate::mem::Array;

/// Sizes of a flow table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sizes {
    /// Flows: 1 to [`MOST`](Self::MOST).
    pub flows: u32,
    /// Keys: as many as flows, or up to twice as many where flows have second ones.
    pub keys: u32,
    /// Flows that may be embryonic at the same time: 1 to `flows`.
    pub embryonic: u32,
}

impl Default for Sizes {
    /// Room for a million flows with a key each, a quarter of them embryonic.
    fn default() -> Self {
        Sizes::of(1_000_000)
    }
}

impl Sizes {
    /// Room for so many flows with a key each, a quarter of them embryonic.
    pub const fn of(flows: u32) -> Self {
        let embryonic = flows.div_ceil(4);
        Sizes {
            flows,
            keys: flows,
            embryonic,
        }
    }

    /// Most flows of a table.
    pub const MOST: u32 = (1 << 24) - 2;

    /// Bytes that the table takes when it is full: 4 for each slot of the index, of which there are
    /// twice the next power of two of the keys, 128 for each flow and 64 for each that has a second
    /// key, 8 for each embryonic flow. Before that, pages that were never used take none.
    pub const fn bytes(self) -> u64 {
        let seconds = self.keys.saturating_sub(self.flows) as u64;
        let lines = self.buckets() as u64 + 2 * self.flows as u64 + seconds;
        64 * lines + 8 * self.embryonic as u64
    }

    /// Buckets of the index: at least a pair. Full, half of the slots are in use.
    const fn buckets(self) -> usize {
        let slots = 2 * (self.keys as usize).next_power_of_two();
        let buckets = slots / SLOTS;
        if buckets < 2 { 2 } else { buckets }
    }

    /// # Errors
    /// The first size that is out of its range, and what that is.
    fn check(self) -> Result<(), String> {
        let within = |name, number, least, most| {
            let fits = (least..=most).contains(&number);
            fits.then_some(())
                .ok_or_else(|| format!("flow table: {number} {name}: must be {least} to {most}"))
        };
        within("flows", self.flows, 1, Self::MOST)?;
        within("keys", self.keys, self.flows, 2 * self.flows)?;
        within("embryonic flows", self.embryonic, 1, self.flows)
    }
}

/// Memory for a table, zeroed.
#[derive(Debug)]
pub struct Memory {
    pub(super) sizes: Sizes,
    pub(super) buckets: Array<Bucket>,
    pub(super) flows: Array<Flow>,
    pub(super) seconds: Array<Second>,
    pub(super) queue: Queue,
}

impl Memory {
    /// Memory of the process's own, in huge pages where there are some; [`Sizes::bytes`] at most.
    ///
    /// # Errors
    /// `InvalidInput` if a size is out of its range; or the error of mmap(2), usually `ENOMEM`.
    pub fn mapped(sizes: Sizes) -> io::Result<Self> {
        let wrong = |what| io::Error::new(io::ErrorKind::InvalidInput, what);
        sizes.check().map_err(wrong)?;
        let flows = sizes.flows as usize;
        Ok(Memory {
            sizes,
            buckets: Array::mapped(sizes.buckets())?,
            flows: Array::mapped(flows)?,
            seconds: Array::mapped(flows)?,
            queue: Queue::new(Array::mapped(sizes.embryonic as usize)?),
        })
    }
}
