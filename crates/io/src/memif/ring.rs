//! A ring of descriptors in shared memory (layout: `memif_ring_t`, `memif_desc_t`).
//!
//! ```text
//! byte 0    u32 cookie, u16 flags, u16 head       written by the client (flags: by the receiver)
//! byte 64   u16 tail                              written by the server
//! byte 128  16 bytes a descriptor: u16 flags, u16 region, u32 length, u32 offset, u32 metadata
//! ```
//! Head and tail count without end, modulo 2^16. Towards the server the client fills descriptors
//! and moves the head, the server empties them and moves the tail. Back, the client offers buffers
//! and moves the head, the server fills them and moves the tail.
#![allow(unsafe_code)]

use std::ptr::NonNull;
use std::sync::atomic::{AtomicU16, AtomicU32, AtomicU64, Ordering};

/// Marks a ring.
pub const COOKIE: u32 = 0x03E3_1F20;
/// Largest ring, as a power of two.
pub const MAX_LOG2: u8 = 14;
/// Ring flag: the receiver polls, do not signal it.
pub const NO_INTERRUPT: u16 = 1;
/// Descriptor flag: the packet goes on in the next descriptor.
pub const NEXT: u16 = 1;

// The tail has a cache line of its own, since the head's is written by the other side; the
// descriptors follow.
const TAIL: usize = 64;
const DESCRIPTORS: u32 = 128;

/// Bytes of a ring of `1 << log2` descriptors.
pub const fn bytes(log2: u8) -> u32 {
    DESCRIPTORS + (16 << log2)
}

/// A descriptor as it was when it was read.
#[derive(Clone, Copy, Debug)]
pub struct Slot {
    /// [`NEXT`].
    pub flags: u16,
    /// Region of the buffer.
    pub region: u16,
    /// Bytes of data, or of room.
    pub length: u32,
    /// Start of the buffer in its region.
    pub offset: u32,
}

/// A ring; it holds addresses only, the region must outlive it.
#[derive(Debug)]
pub struct Ring {
    base: NonNull<u8>,
    size: u16,
}

// SAFETY: all access is by atomics on memory that both sides share anyway.
unsafe impl Send for Ring {}
// SAFETY: all access is by atomics, and a ring has no other state.
unsafe impl Sync for Ring {}

impl Ring {
    /// A ring at `base`.
    ///
    /// # Safety
    /// `bytes(log2)` bytes from `base` on are mapped for as long as the ring is used, `base` is
    /// aligned to 16 bytes, and `log2` is at most [`MAX_LOG2`].
    pub unsafe fn new(base: NonNull<u8>, log2: u8) -> Self {
        Self {
            base,
            size: 1 << log2,
        }
    }

    /// Number of descriptors.
    #[inline(always)]
    pub fn size(&self) -> u16 {
        self.size
    }

    /// Puts a new ring in order (client), before the message that tells the server of it.
    pub fn init(&self) {
        self.cookie().store(COOKIE, Ordering::Relaxed);
        self.flags().store(NO_INTERRUPT, Ordering::Relaxed);
        self.head().store(0, Ordering::Relaxed);
        self.tail().store(0, Ordering::Release);
    }

    /// Marks the ring as one.
    pub fn cookie(&self) -> &AtomicU32 {
        // SAFETY: within the ring and aligned (see `new`).
        unsafe { self.base.cast().as_ref() }
    }

    /// Ring flags.
    #[inline(always)]
    pub fn flags(&self) -> &AtomicU16 {
        self.word16(4)
    }

    /// The client's counter.
    #[inline(always)]
    pub fn head(&self) -> &AtomicU16 {
        self.word16(6)
    }

    /// The server's counter.
    #[inline(always)]
    pub fn tail(&self) -> &AtomicU16 {
        self.word16(TAIL)
    }

    /// The 16-bit word `at` bytes from the start, one of the ring's head.
    #[inline(always)]
    fn word16(&self, at: usize) -> &AtomicU16 {
        // SAFETY: within the ring (see `new`).
        let word = unsafe { self.base.add(at) };
        // SAFETY: mapped and aligned (see `new`); all access is atomic.
        unsafe { word.cast().as_ref() }
    }

    #[inline(always)]
    fn words(&self, at: u16) -> (&AtomicU64, &AtomicU64) {
        let index = (at & (self.size - 1)) as usize;
        // SAFETY: the index is masked to the ring's size.
        let words = unsafe { self.base.add(DESCRIPTORS as usize + index * 16) };
        // SAFETY: mapped and aligned to 16 bytes (see `new`); all access is atomic.
        let [first, second]: &[AtomicU64; 2] = unsafe { words.cast().as_ref() };
        (first, second)
    }

    /// Reads the descriptor at a counter's value, once. The counters order this, not the words.
    #[inline(always)]
    #[expect(
        clippy::cast_possible_truncation,
        reason = "fields are cut out of words"
    )]
    pub fn read(&self, at: u16) -> Slot {
        let (first, second) = self.words(at);
        let (first, second) = (
            first.load(Ordering::Relaxed),
            second.load(Ordering::Relaxed),
        );
        Slot {
            flags: first as u16,
            region: (first >> 16) as u16,
            length: (first >> 32) as u32,
            offset: second as u32,
        }
    }

    /// Writes the descriptor at a counter's value.
    #[inline(always)]
    pub fn write(&self, at: u16, slot: Slot) {
        let (first, second) = self.words(at);
        let low =
            u64::from(slot.flags) | u64::from(slot.region) << 16 | u64::from(slot.length) << 32;
        first.store(low, Ordering::Relaxed);
        second.store(u64::from(slot.offset), Ordering::Relaxed);
    }
}
