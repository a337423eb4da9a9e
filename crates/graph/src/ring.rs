//! Queues between threads: a ring with one producer and one consumer, and the free list of the
//! pool.
#![allow(unsafe_code)]

use std::mem::MaybeUninit;
use std::sync::Arc;

use crate::sync::{AtomicU32, AtomicUsize, Ordering, UnsafeCell};

/// Keeps what two threads write on separate pairs of cache lines: processors prefetch the adjacent
/// line, too.
#[derive(Debug, Default)]
#[repr(align(128))]
pub struct Padded<T>(pub T);

struct Shared<T> {
    /// Written by the consumer: next place to read.
    head: Padded<AtomicUsize>,
    /// Written by the producer: next place to write.
    tail: Padded<AtomicUsize>,
    slots: Box<[UnsafeCell<MaybeUninit<T>>]>,
}

// SAFETY: a slot is reached by the producer or the consumer, never both: head and tail hand it over
// (Release/Acquire).
unsafe impl<T: Send> Sync for Shared<T> {}
// SAFETY: it owns its values.
unsafe impl<T: Send> Send for Shared<T> {}

impl<T> Drop for Shared<T> {
    fn drop(&mut self) {
        // Relaxed: the drop of the last `Arc` comes after all that both ends have stored.
        let (mut head, tail) = (
            self.head.0.load(Ordering::Relaxed),
            self.tail.0.load(Ordering::Relaxed),
        );
        while head != tail {
            let mask = self.slots.len() - 1;
            self.slots[head & mask].with_mut(|p| {
                // SAFETY: nobody else is left.
                let slot = unsafe { &mut *p };
                // SAFETY: places between head and tail are written.
                unsafe { slot.assume_init_drop() };
            });
            head = head.wrapping_add(1);
        }
    }
}

/// The writing end of a ring.
pub struct Producer<T> {
    ring: Arc<Shared<T>>,
    tail: usize,
    head: usize,
}

/// The reading end of a ring.
pub struct Consumer<T> {
    ring: Arc<Shared<T>>,
    head: usize,
    tail: usize,
}

/// A bounded ring for one producer and one consumer; `size` is rounded up to a power of two.
pub fn ring<T: Send>(size: usize) -> (Producer<T>, Consumer<T>) {
    let slots = (0..size.max(2).next_power_of_two())
        .map(|_| UnsafeCell::new(MaybeUninit::uninit()))
        .collect();
    let ring = Arc::new(Shared {
        head: Padded(AtomicUsize::new(0)),
        tail: Padded(AtomicUsize::new(0)),
        slots,
    });
    (
        Producer {
            ring: ring.clone(),
            tail: 0,
            head: 0,
        },
        Consumer {
            ring,
            head: 0,
            tail: 0,
        },
    )
}

impl<T> Producer<T> {
    /// Appends a value, or gives it back when the ring is full.
    #[inline]
    pub fn push(&mut self, value: T) -> Result<(), T> {
        let size = self.ring.slots.len();
        if self.tail.wrapping_sub(self.head) == size {
            // The consumer's cache line is fetched only when the ring seems full. Acquire: the
            // value has been moved out before its place is written again.
            self.head = self.ring.head.0.load(Ordering::Acquire);
            if self.tail.wrapping_sub(self.head) == size {
                return Err(value);
            }
        }
        // SAFETY: the place at tail is free: the consumer has passed it (Acquire above) and sees it
        // only after the store below.
        self.ring.slots[self.tail & (size - 1)].with_mut(|p| unsafe { (*p).write(value) });
        self.tail = self.tail.wrapping_add(1);
        // Release: whoever sees the new tail sees the value.
        self.ring.tail.0.store(self.tail, Ordering::Release);
        Ok(())
    }

    /// True if the consumer has taken everything.
    pub fn is_empty(&self) -> bool {
        self.ring.head.0.load(Ordering::Acquire) == self.tail
    }

    /// Takes as many values as there is room for, and leaves the others in the iterator. Returns
    /// how many it took.
    #[inline]
    pub fn fill(&mut self, values: impl Iterator<Item = T>) -> usize {
        // One look at the consumer's cache line for all of them.
        self.head = self.ring.head.0.load(Ordering::Acquire);
        let room = self.ring.slots.len() - self.tail.wrapping_sub(self.head);
        // There is room for each: nobody else writes.
        values.take(room).map_while(|v| self.push(v).ok()).count()
    }
}

impl<T> Consumer<T> {
    /// Takes the oldest value.
    #[inline]
    pub fn pop(&mut self) -> Option<T> {
        if self.is_empty() {
            return None;
        }
        let mask = self.ring.slots.len() - 1;
        let value = self.ring.slots[self.head & mask].with(|p| {
            // SAFETY: the producer is past the place at head (Acquire in `is_empty`).
            let slot = unsafe { &*p };
            // SAFETY: it was written before, and is read once.
            unsafe { slot.assume_init_read() }
        });
        self.head = self.head.wrapping_add(1);
        // Release: the value is out before the producer may write over it.
        self.ring.head.0.store(self.head, Ordering::Release);
        Some(value)
    }

    /// True if there is nothing to take.
    #[inline]
    pub fn is_empty(&mut self) -> bool {
        if self.head == self.tail {
            // The producer's cache line is fetched only when all that was known of is taken.
            // Acquire: the values below its tail are seen.
            self.tail = self.ring.tail.0.load(Ordering::Acquire);
        }
        self.head == self.tail
    }
}

struct Cell {
    /// Position for which the cell is next written (`p`) or read (`p + 1`).
    turn: AtomicU32,
    value: AtomicU32,
}

/// The free buffers of a pool: a bounded queue for many producers and consumers, without locks.
///
/// Each cell carries the position it is good for (the bounded queue of D. Vyukov, 2010), so that
/// one store publishes an index. The value goes over with it: a thread that finds its turn there
/// (Acquire) sees what was stored before the turn was set (Release). The two positions order
/// nothing.
pub(crate) struct FreeList {
    take: Padded<AtomicU32>,
    give: Padded<AtomicU32>,
    cells: Box<[Cell]>,
}

impl std::fmt::Debug for FreeList {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "FreeList({} free)", self.len())
    }
}

impl FreeList {
    /// A list of the `count` numbers from `first` on.
    pub(crate) fn full(first: u32, count: u32) -> Self {
        let size = count.next_power_of_two().max(2);
        let cells = (0..size)
            .map(|i| Cell {
                // A cell with a number is to be read first, one without is to be written first.
                turn: AtomicU32::new(if i < count { i + 1 } else { i }),
                value: AtomicU32::new(first.wrapping_add(i)),
            })
            .collect();
        FreeList {
            take: Padded(AtomicU32::new(0)),
            give: Padded(AtomicU32::new(count)),
            cells,
        }
    }

    /// Number of indices that it holds; roughly, while others work on it.
    pub(crate) fn len(&self) -> u32 {
        self.give
            .0
            .load(Ordering::Relaxed)
            .wrapping_sub(self.take.0.load(Ordering::Relaxed))
            .min(self.cells.len() as u32)
    }

    /// Moves up to `n` numbers to the end of `into`.
    pub(crate) fn take(&self, into: &mut Vec<u32>, n: usize) {
        let mask = self.cells.len() as u32 - 1;
        let mut at = self.take.0.load(Ordering::Relaxed);
        let mut got = 0;
        while got < n {
            let cell = &self.cells[(at & mask) as usize];
            let ahead = cell
                .turn
                .load(Ordering::Acquire)
                .wrapping_sub(at.wrapping_add(1)) as i32;
            // Nobody has given a number for this position yet: the list is empty.
            if ahead < 0 {
                return;
            }
            // Another thread has taken this position since `at` was loaded.
            if ahead > 0 {
                at = self.take.0.load(Ordering::Relaxed);
                continue;
            }
            match self.take.0.compare_exchange_weak(
                at,
                at.wrapping_add(1),
                Ordering::Relaxed,
                Ordering::Relaxed,
            ) {
                Ok(_) => {
                    into.push(cell.value.load(Ordering::Relaxed));
                    cell.turn
                        // To be written next one lap later.
                        .store(at.wrapping_add(mask + 1), Ordering::Release);
                    at = at.wrapping_add(1);
                    got += 1;
                }
                Err(now) => at = now,
            }
        }
    }

    /// Gives numbers back. They came from this list, so there is always room.
    pub(crate) fn give(&self, bufs: &[u32]) {
        let mask = self.cells.len() as u32 - 1;
        let mut at = self.give.0.load(Ordering::Relaxed);
        let mut given = 0;
        while given < bufs.len() {
            let cell = &self.cells[(at & mask) as usize];
            if cell.turn.load(Ordering::Acquire) != at {
                // Another thread gave here meanwhile, or the one that takes the number of a lap ago
                // has not freed the cell yet: it is about to, so spinning is short.
                at = self.give.0.load(Ordering::Relaxed);
                crate::sync::spin_loop();
                continue;
            }
            match self.give.0.compare_exchange_weak(
                at,
                at.wrapping_add(1),
                Ordering::Relaxed,
                Ordering::Relaxed,
            ) {
                Ok(_) => {
                    cell.value.store(bufs[given], Ordering::Relaxed);
                    cell.turn.store(at.wrapping_add(1), Ordering::Release);
                    at = at.wrapping_add(1);
                    given += 1;
                }
                Err(now) => at = now,
            }
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_ring_keeps_order_and_bounds() {
        let (mut p, mut c) = ring(4);
        for round in 0..1000 {
            for i in 0..4 {
                p.push(round * 4 + i).unwrap();
            }
            assert_eq!(p.push(0), Err(0));
            for i in 0..4 {
                assert!(!p.is_empty());
                assert_eq!(c.pop(), Some(round * 4 + i));
            }
            assert_eq!((c.pop(), p.is_empty()), (None, true));
        }
    }

    #[test]
    fn values_left_in_a_ring_are_dropped() {
        let value = Arc::new(());
        let (mut p, c) = ring(8);
        p.push(value.clone()).unwrap();
        p.push(value.clone()).unwrap();
        drop((p, c));
        assert_eq!(Arc::strong_count(&value), 1);
    }

    #[test]
    fn the_free_list_never_gives_one_twice() {
        const N: u32 = 300;
        const ROUNDS: usize = if cfg!(miri) { 30 } else { 3000 };
        let list = FreeList::full(0, N);
        let owned: Vec<AtomicU32> = (0..N).map(|_| AtomicU32::new(0)).collect();
        std::thread::scope(|s| {
            for t in 0..4 {
                let (list, owned) = (&list, &owned);
                s.spawn(move || {
                    let mut have = Vec::new();
                    for round in 0..ROUNDS {
                        let from = have.len();
                        list.take(&mut have, 1 + (round + t) % 64);
                        for b in &have[from..] {
                            assert_eq!(
                                owned[*b as usize].swap(1, Ordering::Relaxed),
                                0,
                                "buffer {b} has two owners"
                            );
                        }
                        let keep = have.len() / 3;
                        for b in &have[keep..] {
                            owned[*b as usize].store(0, Ordering::Relaxed);
                        }
                        list.give(&have[keep..]);
                        have.truncate(keep);
                    }
                    for b in &have {
                        owned[*b as usize].store(0, Ordering::Relaxed);
                    }
                    list.give(&have);
                });
            }
        });
        assert_eq!(list.len(), N);
        let mut all = Vec::new();
        list.take(&mut all, N as usize + 1);
        all.sort_unstable();
        assert_eq!(all, (0..N).collect::<Vec<_>>());
    }
}

#[cfg(all(test, loom))]
mod loom_tests {
    use super::*;

    #[test]
    fn a_ring_hands_over_every_value_in_order() {
        loom::model(|| {
            let (mut p, mut c) = ring::<u32>(2);
            let t = loom::thread::spawn(move || {
                let mut sent = 0;
                while sent < 3 {
                    match p.push(sent) {
                        Ok(()) => sent += 1,
                        Err(_) => loom::thread::yield_now(),
                    }
                }
            });
            let mut want = 0;
            while want < 3 {
                match c.pop() {
                    Some(v) => {
                        assert_eq!(v, want);
                        want += 1;
                    }
                    None => loom::thread::yield_now(),
                }
            }
            t.join().unwrap();
        });
    }

    #[test]
    fn the_free_list_gives_each_buffer_to_one() {
        loom::model(|| {
            let list = Arc::new(FreeList::full(0, 2));
            let other = list.clone();
            let t = loom::thread::spawn(move || {
                let mut have = Vec::new();
                other.take(&mut have, 1);
                other.give(&have);
                have.len()
            });
            let mut have = Vec::new();
            list.take(&mut have, 2);
            let mut distinct = have.clone();
            distinct.dedup();
            assert_eq!(distinct.len(), have.len());
            list.give(&have);
            t.join().unwrap();
            let mut all = Vec::new();
            list.take(&mut all, 3);
            all.sort_unstable();
            assert_eq!(all, [0, 1]);
        });
    }
}
