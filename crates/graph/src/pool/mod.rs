//! Packet memory: one mapped pool for all ports and workers, shared with the kernel (AF_XDP umem)
//! where a port asks for it.
//!
//! A buffer is `stride` bytes: metadata (64 bytes, for what few packets need), headroom up to
//! [`DATA`], then the packet. A stride of an odd number of cache lines ([`STRIDE`]) spreads headers
//! over all sets of a cache; AF_XDP's aligned chunks need [`STRIDE_AF_XDP`].
#![allow(unsafe_code)]

use std::io;
use std::ops::RangeInclusive;
use std::ptr::NonNull;
use std::sync::{Arc, Mutex, PoisonError};

use crate::Desc;
use crate::ring::FreeList;

mod buffers;
mod chain;
mod map;

pub use buffers::Buffers;
use chain::Meta;
pub use map::Pages;
use map::{HUGE, map, unmap};

/// Default buffer distance in bytes: 33 cache lines, an odd number, so that the headers of all
/// buffers spread over all sets of a cache.
pub const STRIDE: usize = 2112;
/// Buffer distance for a pool that is an AF_XDP umem with aligned chunks: powers of two, of which
/// the kernel takes none below this.
pub const STRIDE_AF_XDP: usize = 2048;
/// Offset of a received packet in its buffer, in bytes: the kernel's XDP_PACKET_HEADROOM.
pub const DATA: u16 = 256;
/// Bytes that a node may read from a packet's first byte on, whatever the packet's length: a header
/// of 64 bytes at any offset of 8 bits.
pub const WINDOW: usize = 320;
/// Longest packet in bytes, in all its buffers: an MTU of 9216, and room for layer 2 headers.
pub const MAX_PACKET: usize = 9500;

/// The packet memory.
///
/// Descriptors carry the number of their pool; looking for a packet in another pool panics.
#[derive(Debug)]
pub struct Pool {
    base: NonNull<u8>,
    bytes: usize,
    stride: usize,
    /// Number of its first buffer: its place among the pools of the process, times `SLOT`.
    first: u32,
    /// Address that buffer number 0 would have, so that an address is this, plus number times
    /// stride.
    origin: *mut u8,
    count: u32,
    pages: Pages,
    free: FreeList,
}

/// Numbers per pool. The last number of the last pool stands for no buffer ([`Desc::VACANT`]), so
/// no pool uses its last.
const SLOT: u32 = 1 << 24;

/// Ranges of [`SLOT`] buffer numbers that are in use, one range for each pool.
static SLOTS: Mutex<[bool; 256]> = Mutex::new([false; 256]);

/// Takes numbers for a new pool, and returns the first.
fn number() -> io::Result<u32> {
    let mut slots = SLOTS.lock().unwrap_or_else(PoisonError::into_inner);
    let free = slots.iter_mut().zip(0..).find(|(used, _)| !**used);
    let (used, place) = free.ok_or_else(|| {
        io::Error::other("pool: the process has 256 pools, or had pools that lost packets")
    })?;
    *used = true;
    Ok(place * SLOT)
}

// SAFETY: the pool hands out each buffer to one owner at a time (FreeList); the mapping lives as
// long as the pool.
unsafe impl Send for Pool {}
// SAFETY: all methods that reach packet bytes need the descriptor that owns the buffer, and check
// that it is of this pool; a buffer has one owner at a time, and the free list is of atomics.
unsafe impl Sync for Pool {}

impl Pool {
    /// Maps `count` buffers, `stride` bytes apart. Huge pages where some are reserved, else
    /// transparent ones are asked for.
    ///
    /// # Errors
    /// The operating system's, when memory is short; `InvalidInput` for no buffers or 2^24 and
    /// more, or a stride that is not a multiple of 64 in 2048..=16384; `Other` when the process has
    /// 256 pools already, those included that were dropped before all their packets were freed.
    pub fn new(count: u32, stride: usize) -> io::Result<Arc<Self>> {
        if !(2048..=16384).contains(&stride)
            || !stride.is_multiple_of(64)
            || count == 0
            || count >= SLOT
        {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "pool: 1 to 2^24 - 1 buffers of 2048 to 16384 bytes in steps of 64",
            ));
        }
        // The window of the last buffer may reach beyond it.
        let bytes = (count as usize * stride + WINDOW).next_multiple_of(HUGE);
        let (base, pages) = map(bytes)?;
        let first = number().inspect_err(|_| unmap(base, bytes))?;
        Ok(Arc::new(Pool {
            base,
            bytes,
            stride,
            first,
            origin: base.as_ptr().wrapping_sub(first as usize * stride),
            count,
            pages,
            free: FreeList::full(first, count),
        }))
    }

    /// First byte of the mapping (for a umem registration).
    pub fn base(&self) -> NonNull<u8> {
        self.base
    }
    /// Bytes mapped.
    pub fn bytes(&self) -> usize {
        self.bytes
    }
    /// Distance of two buffers in bytes.
    #[inline(always)]
    pub fn stride(&self) -> usize {
        self.stride
    }
    /// Number of buffers.
    pub fn count(&self) -> u32 {
        self.count
    }
    /// Buffers in the shared free list, not counting those that workers and ports have.
    pub fn available(&self) -> u32 {
        self.free.len()
    }
    /// The kind of pages it lies in.
    pub fn pages(&self) -> Pages {
        self.pages
    }
    /// Offsets that a packet may start at: behind the metadata, and where its [`WINDOW`] is within
    /// the buffer.
    #[inline(always)]
    pub fn offsets(&self) -> RangeInclusive<u16> {
        size_of::<Meta>() as u16..=(self.stride - WINDOW) as u16
    }
    /// Bytes of packet data that one buffer holds from [`DATA`] on.
    pub fn room(&self) -> u16 {
        (self.stride - DATA as usize) as u16
    }

    /// A packet of `len` bytes at `off` of a buffer that a port's ring owned, whose index
    /// [`Buffers::alloc_index`] gave.
    ///
    /// # Safety
    /// The caller owns the buffer and gives it up to the packet; `off` is one of [`Pool::offsets`],
    /// and `off + len` at most the stride.
    #[inline(always)]
    pub unsafe fn packet(&self, index: u32, off: u16, len: u16) -> Desc {
        debug_assert!(index < self.count);
        // SAFETY: the buffer is a ring's of the port that calls this, which no longer counts it as
        // its own; offset and length are within what Desc asks for.
        unsafe { Desc::new(self.first + index, off, len) }
    }

    /// True if packets are all of this pool, given their buffers' numbers combined by OR (`any`)
    /// and by AND (`all`).
    #[inline(always)]
    pub(crate) fn owns(&self, any: u32, all: u32) -> bool {
        (any ^ self.first) < SLOT && (all ^ self.first) < SLOT
    }

    /// Index of a packet's first buffer.
    ///
    /// # Panics
    /// On a packet of another pool.
    #[inline(always)]
    pub fn index(&self, d: &Desc) -> u32 {
        let index = d.buf.wrapping_sub(self.first);
        if index >= self.count {
            foreign();
        }
        index
    }

    /// Address of a packet's first buffer.
    #[inline(always)]
    fn buffer(&self, d: &Desc) -> NonNull<u8> {
        // SAFETY: the index is below the count, so the address lies within the mapping.
        unsafe { self.base.add(self.index(d) as usize * self.stride) }
    }

    /// Address of a packet's first byte.
    #[inline(always)]
    pub fn data(&self, d: &Desc) -> NonNull<u8> {
        // SAFETY: off lies within the stride (`Desc` invariant).
        unsafe { self.buffer(d).add(d.off as usize) }
    }

    /// Address of a packet's first byte; meaningless for a packet of another pool.
    #[inline(always)]
    pub(crate) fn address(&self, d: &Desc) -> *mut u8 {
        self.origin
            .wrapping_add(d.buf as usize * self.stride + d.off as usize)
    }

    /// Prefetches the packet's first cache line, to write.
    #[inline(always)]
    pub(crate) fn prefetch(&self, d: &Desc) {
        let at = self.address(d);
        #[cfg(target_arch = "x86_64")]
        // SAFETY: a prefetch touches nothing, whatever the address.
        unsafe {
            std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T0 }>(
                at.cast_const().cast(),
            );
        }
        #[cfg(not(target_arch = "x86_64"))]
        let _ = at;
    }

    /// The packet's first segment.
    #[inline]
    pub fn bytes_of<'a>(&'a self, d: &'a Desc) -> &'a [u8] {
        // SAFETY: off + len within the stride; the descriptor owns the buffer and is borrowed as
        // long as the slice.
        unsafe { std::slice::from_raw_parts(self.data(d).as_ptr(), d.len as usize) }
    }

    /// The packet's first segment, to change.
    #[inline]
    pub fn bytes_of_mut<'a>(&'a self, d: &'a mut Desc) -> &'a mut [u8] {
        // SAFETY: off + len within the stride; the descriptor owns the buffer and is borrowed
        // mutably as long as the slice.
        unsafe { std::slice::from_raw_parts_mut(self.data(d).as_ptr(), d.len as usize) }
    }

    /// The metadata of a packet's first buffer.
    #[inline]
    pub(crate) fn meta<'a>(&'a self, d: &'a Desc) -> &'a Meta {
        // SAFETY: the first 64 bytes of a buffer are its metadata, any bit pattern is a valid one;
        // the descriptor owns the buffer.
        unsafe { self.buffer(d).cast::<Meta>().as_ref() }
    }

    /// The metadata of a packet's first buffer, to change.
    #[inline]
    #[allow(clippy::mut_from_ref)]
    pub(crate) fn meta_mut<'a>(&'a self, d: &'a mut Desc) -> &'a mut Meta {
        // SAFETY: the first 64 bytes of a buffer are its metadata, any bit pattern is a valid one;
        // the descriptor owns the buffer and is borrowed mutably.
        unsafe { self.buffer(d).cast::<Meta>().as_mut() }
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        unmap(self.base, self.bytes);
        // Its numbers are not used again while one of its packets is left.
        if self.free.len() == self.count {
            let mut slots = SLOTS.lock().unwrap_or_else(PoisonError::into_inner);
            slots[(self.first / SLOT) as usize] = false;
        }
    }
}

/// Panics: a packet has come to another pool.
#[cold]
#[inline(never)]
pub(crate) fn foreign() -> ! {
    panic!("a packet of another pool")
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn no_buffer_has_the_number_of_a_vacant_place() {
        let refused = Pool::new(SLOT, STRIDE).expect_err("its last number is no buffer's");
        assert_eq!(refused.kind(), io::ErrorKind::InvalidInput);
        assert_eq!(Desc::VACANT.buf, 255 * SLOT + (SLOT - 1));
    }

    #[test]
    fn numbers_come_again_when_no_packet_carries_them() {
        let pool = Pool::new(4, STRIDE).unwrap();
        let (first, left) = (pool.first, Buffers::new(pool.clone()).alloc().unwrap());
        drop(pool);
        for _ in 0..600 {
            let pool = Pool::new(4, STRIDE).unwrap();
            assert_ne!(pool.first, first, "a packet of an earlier pool is left");
            assert!(!pool.owns(left.buf, left.buf));
        }
    }
}
