//! Snapshots: the control thread publishes a value, every worker sees it in its next round, nobody
//! waits.
//!
//! A worker says once a round which generation it has seen ([`Reader::refresh`]). The control
//! thread drops a value when every worker has seen a later one. The same generations are the
//! workers' grace period for tables: see [`Publisher::mark`]. A sleeping worker is offline and
//! holds nobody up.
//!
//! Orderings: a reader that finds a generation (Acquire) also finds the pointer of that generation
//! or a later one. It says that it has seen it (Release) when it is done with the value before. A
//! reader that goes online says so, then loads the pointer; the publisher swaps the pointer, then
//! looks at who is online. All four are sequentially consistent, so one of the two sees what the
//! other did.
#![allow(unsafe_code)]

use std::sync::Arc;

use crate::ring::Padded;
use crate::sync::{AtomicPtr, AtomicU64, Ordering, fence};

/// Generation that a reader has seen while it holds nothing: later than all others.
const OFFLINE: u64 = u64::MAX;

#[derive(Debug)]
struct Shared<T> {
    current: AtomicPtr<T>,
    generation: Padded<AtomicU64>,
    /// The generation that each reader has seen; [`OFFLINE`] if it holds nothing.
    seen: Box<[Padded<AtomicU64>]>,
}

/// The writing side, owned by the control thread.
#[derive(Debug)]
pub struct Publisher<T> {
    shared: Arc<Shared<T>>,
    /// Replaced values and the generation that replaced them.
    retired: Vec<(u64, *mut T)>,
    readers: usize,
}

// SAFETY: it owns the values as a Box would; readers see them by shared reference only.
unsafe impl<T: Send + Sync> Send for Publisher<T> {}

/// A worker's side.
#[derive(Debug)]
pub struct Reader<T> {
    shared: Arc<Shared<T>>,
    slot: usize,
    seen: u64,
    current: *const T,
}

// SAFETY: it is a shared reference to a T that stays alive while the reader says that it uses it.
unsafe impl<T: Send + Sync> Send for Reader<T> {}

impl<T: Send + Sync> Publisher<T> {
    /// Publishes a first value, for up to `readers` workers.
    pub fn new(value: T, readers: usize) -> Self {
        let shared = Arc::new(Shared {
            current: AtomicPtr::new(Box::into_raw(Box::new(value))),
            generation: Padded(AtomicU64::new(1)),
            seen: (0..readers)
                .map(|_| Padded(AtomicU64::new(OFFLINE)))
                .collect(),
        });
        Publisher {
            shared,
            retired: Vec::new(),
            readers: 0,
        }
    }

    /// A reader, for one more worker.
    ///
    /// # Panics
    /// Panics if there are as many readers already as [`Publisher::new`] was told.
    pub fn reader(&mut self) -> Reader<T> {
        assert!(
            self.readers < self.shared.seen.len(),
            "one reader for each announced worker"
        );
        let mut reader = Reader {
            shared: self.shared.clone(),
            slot: self.readers,
            seen: OFFLINE,
            current: std::ptr::null(),
        };
        self.readers += 1;
        reader.online();
        reader
    }

    /// The value that is published now.
    pub fn current(&self) -> &T {
        // SAFETY: only this publisher replaces it, and needs &mut self for that.
        unsafe { &*self.shared.current.load(Ordering::Relaxed) }
    }

    /// Publishes `value`; drops older ones that no worker uses any more.
    pub fn publish(&mut self, value: T) {
        let old = self
            .shared
            .current
            .swap(Box::into_raw(Box::new(value)), Ordering::SeqCst);
        let generation = self.mark();
        self.retired.push((generation, old));
        self.reclaim();
    }

    /// Starts a new generation and returns it: when [`Publisher::passed`] is true for it, no worker
    /// holds anything that it read from a table or snapshot before this call.
    pub fn mark(&mut self) -> u64 {
        let generation = self.shared.generation.0.load(Ordering::Relaxed) + 1;
        self.shared.generation.0.store(generation, Ordering::SeqCst);
        generation
    }

    /// True once every worker has begun a round since `generation` was marked, or sleeps.
    pub fn passed(&self, generation: u64) -> bool {
        fence(Ordering::SeqCst);
        self.shared
            .seen
            .iter()
            .all(|s| s.0.load(Ordering::SeqCst) >= generation)
    }

    /// Drops replaced values that no worker uses any more.
    pub fn reclaim(&mut self) {
        let mut kept = Vec::new();
        for (generation, old) in std::mem::take(&mut self.retired) {
            if self.passed(generation) {
                // SAFETY: made by Box::into_raw; every reader has since loaded a newer pointer.
                drop(unsafe { Box::from_raw(old) });
            } else {
                kept.push((generation, old));
            }
        }
        self.retired = kept;
    }
}

impl<T> Drop for Shared<T> {
    fn drop(&mut self) {
        // SAFETY: made by Box::into_raw; publisher and readers are gone.
        drop(unsafe { Box::from_raw(self.current.load(Ordering::Relaxed)) });
    }
}

impl<T> Drop for Publisher<T> {
    fn drop(&mut self) {
        // A retired value that a reader may still use is leaked rather than pulled away. Workers
        // end before the publisher.
        for (generation, old) in self.retired.drain(..) {
            if self
                .shared
                .seen
                .iter()
                .all(|s| s.0.load(Ordering::SeqCst) >= generation)
            {
                // SAFETY: made by Box::into_raw; every reader has since loaded a newer pointer.
                drop(unsafe { Box::from_raw(old) });
            }
        }
    }
}

impl<T> Reader<T> {
    /// Takes over what was published since the last call. True if the generation changed.
    #[inline]
    pub fn refresh(&mut self) -> bool {
        let generation = self.shared.generation.0.load(Ordering::Acquire);
        if generation == self.seen {
            return false;
        }
        self.current = self.shared.current.load(Ordering::Acquire);
        self.seen = generation;
        self.shared.seen[self.slot]
            .0
            .store(generation, Ordering::Release);
        true
    }

    /// True if something was published that [`Reader::refresh`] has not taken over yet. It is the
    /// sleeper's last look for work, see [`Waker`](crate::waker::Waker).
    pub fn is_stale(&self) -> bool {
        self.shared.generation.0.load(Ordering::SeqCst) != self.seen
    }

    /// The value.
    #[inline(always)]
    pub fn get(&self) -> &T {
        // SAFETY: loaded at the last refresh; the publisher keeps it until this reader's slot shows
        // a later generation. Offline readers hold no dangling pointer either: `offline` takes &mut
        // self and `online` reloads before anything can be read.
        unsafe { &*self.current }
    }

    /// Runs `sleep` while this reader holds nobody up. Even if `sleep` panics, the reader is back
    /// before anything can be read.
    pub fn offline<R>(&mut self, sleep: impl FnOnce() -> R) -> R {
        struct Away<'a, T>(&'a mut Reader<T>);
        impl<T> Drop for Away<'_, T> {
            fn drop(&mut self) {
                self.0.online();
            }
        }
        self.shared.seen[self.slot]
            .0
            .store(OFFLINE, Ordering::SeqCst);
        let _away = Away(self);
        sleep()
    }

    fn online(&mut self) {
        // 0 holds everything; only after it is visible may the pointer be loaded (the publisher
        // swaps, then looks).
        self.shared.seen[self.slot].0.store(0, Ordering::SeqCst);
        fence(Ordering::SeqCst);
        self.current = self.shared.current.load(Ordering::SeqCst);
        self.seen = 0;
        self.refresh();
    }
}

impl<T> Drop for Reader<T> {
    fn drop(&mut self) {
        self.shared.seen[self.slot]
            .0
            .store(OFFLINE, Ordering::SeqCst);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_value_lives_until_every_reader_has_seen_a_later_one() {
        let value = Arc::new(());
        let mut p = Publisher::new(Some(value.clone()), 2);
        let (mut a, mut b) = (p.reader(), p.reader());
        p.publish(None);
        a.refresh();
        p.reclaim();
        assert_eq!(Arc::strong_count(&value), 2, "b may still look at it");
        assert!(b.get().is_some());
        b.refresh();
        p.reclaim();
        assert_eq!(Arc::strong_count(&value), 1);
    }

    #[test]
    fn a_sleeping_reader_holds_nobody_up() {
        let mut p = Publisher::new(1, 1);
        let mut r = p.reader();
        let g = p.mark();
        assert!(!p.passed(g));
        r.offline(|| assert!(p.passed(g)));
        p.publish(2);
        r.refresh();
        assert_eq!(*r.get(), 2);
    }

    #[test]
    fn a_reader_whose_sleep_panics_is_back() {
        let mut p = Publisher::new(1, 1);
        let mut r = p.reader();
        let asleep = std::panic::AssertUnwindSafe(|| {
            r.offline(|| {
                p.publish(2);
                p.reclaim();
                std::panic::resume_unwind(Box::new("asleep"));
            });
        });
        std::panic::catch_unwind(asleep).expect_err("it panics");
        // Compared before anything is read: the earlier value is gone.
        assert!(!r.is_stale(), "it would read what is gone");
        assert_eq!(*r.get(), 2);
        let g = p.mark();
        assert!(!p.passed(g), "it holds up whoever waits for readers");
    }
}

#[cfg(all(test, loom))]
mod loom_tests {
    use loom::sync::atomic::AtomicUsize;

    use super::*;

    /// A value that knows whether it was dropped, without touching freed memory.
    struct Tracked(loom::sync::Arc<AtomicUsize>);
    impl Drop for Tracked {
        fn drop(&mut self) {
            self.0.store(1, Ordering::SeqCst);
        }
    }

    #[test]
    fn no_reader_sees_a_dropped_value() {
        loom::model(|| {
            let flags: Vec<_> = (0..2)
                .map(|_| loom::sync::Arc::new(AtomicUsize::new(0)))
                .collect();
            let mut p = Publisher::new(Tracked(flags[0].clone()), 1);
            let mut r = p.reader();
            let t = loom::thread::spawn(move || {
                r.refresh();
                assert_eq!(r.get().0.load(Ordering::SeqCst), 0);
                r.offline(|| ());
                assert_eq!(r.get().0.load(Ordering::SeqCst), 0);
            });
            p.publish(Tracked(flags[1].clone()));
            p.reclaim();
            t.join().unwrap();
        });
    }
}
