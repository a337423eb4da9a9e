//! A worker's cache of free buffers.
#![allow(unsafe_code)]

use std::ptr::NonNull;
use std::sync::Arc;

use super::{DATA, Pool};
use crate::Desc;

/// Most buffers in a worker's cache: four frames. A worker that takes a frame of buffers and frees
/// one, by turns, stays between empty and full, away from the shared list.
const CACHE: usize = 1024;
/// Buffers that it takes from the pool or gives back at a time: a frame, so that packets share the
/// cost of a shared write.
const BULK: usize = 256;

/// One worker's side of the pool: a cache that is filled and emptied in bulk.
#[derive(Debug)]
pub struct Buffers {
    pub(super) pool: Arc<Pool>,
    cache: Vec<u32>,
}

impl Buffers {
    /// A cache over `pool`, empty at first.
    pub fn new(pool: Arc<Pool>) -> Self {
        Buffers {
            pool,
            cache: Vec::with_capacity(CACHE + BULK),
        }
    }

    /// The pool.
    #[inline(always)]
    pub fn pool(&self) -> &Pool {
        &self.pool
    }
    /// The pool, shared.
    pub fn share(&self) -> Arc<Pool> {
        self.pool.clone()
    }

    /// A free buffer as an empty packet at [`DATA`]; `None` when the pool is used up.
    #[inline]
    pub fn alloc(&mut self) -> Option<Desc> {
        let buf = match self.cache.pop() {
            Some(buf) => buf,
            None => self.refill()?,
        };
        // SAFETY: the free list gave this buffer to us alone.
        Some(unsafe { Desc::new(buf, DATA, 0) })
    }

    /// A free buffer as a packet of `len` bytes, whatever is in them, and the address of the first
    /// one. `None` when the pool is used up, or `len` is more than [`Pool::room`].
    #[inline(always)]
    pub fn alloc_len(&mut self, len: usize) -> Option<(Desc, NonNull<u8>)> {
        if len > usize::from(self.pool.room()) {
            return None;
        }
        let mut d = self.alloc()?;
        d.len = len as u16;
        // SAFETY: all that the cache holds is of its pool, so the address lies within the mapping.
        let first = unsafe { NonNull::new_unchecked(self.pool.address(&d)) };
        Some((d, first))
    }

    /// A free buffer's index for a port's receive ring, which owns it until the packet comes back.
    #[inline]
    pub fn alloc_index(&mut self) -> Option<u32> {
        self.alloc().map(|d| d.buf - self.pool.first)
    }

    /// Gives back one buffer that a port's ring owned.
    ///
    /// # Safety
    /// The index is that of a buffer of this pool that the caller owned and no longer uses.
    #[inline]
    pub unsafe fn free_index(&mut self, index: u32) {
        self.give(self.pool.first + index);
    }

    /// Puts a buffer without an owner into the cache.
    #[inline(always)]
    fn give(&mut self, buf: u32) {
        self.cache.push(buf);
        if self.cache.len() >= CACHE {
            self.spill();
        }
    }

    /// Cuts or extends a packet of one buffer to `len` bytes. False, with nothing changed, if that
    /// does not fit into the buffer or the packet has several.
    pub fn resize(&self, d: &mut Desc, len: usize) -> bool {
        // Another pool may have another stride.
        self.pool.index(d);
        if d.is_chained() || len > self.pool.stride - d.off as usize {
            return false;
        }
        d.len = len as u16;
        true
    }

    /// Frees all buffers of a packet.
    #[inline]
    pub fn free(&mut self, d: Desc) {
        if d.is_chained() {
            return self.free_chain(d);
        }
        self.pool.index(&d);
        self.give(d.buf);
    }

    /// Buffers in this cache.
    pub fn cached(&self) -> usize {
        self.cache.len()
    }

    #[cold]
    fn refill(&mut self) -> Option<u32> {
        self.pool.free.take(&mut self.cache, BULK);
        self.cache.pop()
    }

    #[cold]
    fn spill(&mut self) {
        let from = self.cache.len() - BULK;
        self.pool.free.give(&self.cache[from..]);
        self.cache.truncate(from);
    }
}

impl Drop for Buffers {
    fn drop(&mut self) {
        self.pool.free.give(&self.cache);
    }
}
