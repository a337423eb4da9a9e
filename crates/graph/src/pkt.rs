//! A packet in a stage's hands.
#![allow(unsafe_code)]

use std::ptr::NonNull;

use zerocopy::{FromBytes, Immutable, IntoBytes, Unaligned};

use crate::{Desc, Flag, Pool, pool::WINDOW};

/// A packet in a stage's hands: its descriptor, and a window of [`WINDOW`] bytes from its first
/// byte on.
///
/// The window is always readable. [`Pkt::len`] says how many of its bytes belong to the packet;
/// check that once, as part of the protocol.
///
/// It dereferences to its descriptor, which cannot be replaced, so that the window is always the
/// packet's.
pub struct Pkt<'a> {
    d: &'a mut Desc,
    window: NonNull<[u8; WINDOW]>,
    pool: &'a Pool,
}

impl<'a> Pkt<'a> {
    /// The packet that `d` owns.
    ///
    /// # Panics
    /// Panics if it is of another pool.
    #[inline(always)]
    pub fn new(pool: &'a Pool, d: &'a mut Desc) -> Self {
        pool.index(d);
        // SAFETY: it is of this pool, or the line above has panicked.
        unsafe { Pkt::known(pool, d) }
    }

    /// As [`Pkt::new`], without a check.
    ///
    /// # Safety
    /// The packet is of this pool.
    #[inline(always)]
    pub(crate) unsafe fn known(pool: &'a Pool, d: &'a mut Desc) -> Self {
        Pkt {
            // SAFETY: the address of a packet of this pool lies within its mapping.
            window: unsafe { NonNull::new_unchecked(pool.address(d)) }.cast(),
            d,
            pool,
        }
    }

    /// As [`Desc::set_adjacency`].
    #[inline(always)]
    pub fn set_adjacency(&mut self, adjacency: u32) {
        self.d.set_adjacency(adjacency);
    }

    /// Sets the interface that it came in by, as for what a sub-interface receives.
    #[inline(always)]
    pub fn set_rx_if(&mut self, interface: u16) {
        self.d.rx_if = interface;
    }

    /// As [`Desc::set_tx_if`].
    #[inline(always)]
    pub fn set_tx_if(&mut self, interface: u16) {
        self.d.set_tx_if(interface);
    }

    /// As [`Desc::set_argument`].
    #[inline(always)]
    pub fn set_argument(&mut self, argument: u32) {
        self.d.set_argument(argument);
    }

    /// Sets the offset of the network header.
    #[inline(always)]
    pub fn set_l3(&mut self, offset: u8) {
        self.d.l3 = offset;
    }

    /// What an earlier node has written beside the packet, which costs a line of memory: for what
    /// few packets need.
    #[inline(always)]
    pub fn note(&self) -> Option<u64> {
        self.d.is_noted().then(|| self.pool.meta(self.d).note)
    }

    /// Sets the [note](Self::note).
    #[inline(always)]
    pub fn set_note(&mut self, note: u64) {
        self.d.mark(Flag::NOTED);
        self.pool.meta_mut(self.d).note = note;
    }

    /// Sets the flag.
    #[inline(always)]
    pub fn mark(&mut self, flag: Flag) {
        self.d.mark(flag);
    }

    /// Calls `f` with the bytes of each segment, in order.
    pub fn segments(&self, f: impl FnMut(&[u8])) {
        self.pool.segments(self.d, f);
    }

    /// Bytes in the first segment.
    #[inline(always)]
    #[allow(clippy::len_without_is_empty)]
    pub fn len(&self) -> usize {
        self.d.len as usize
    }

    /// Bytes of the whole packet.
    #[inline(always)]
    pub fn total(&self) -> usize {
        self.pool.total(self.d)
    }

    /// The header at offset `at` of the window, whether or not the packet is that long. It has 64
    /// bytes at most; any bytes are a header, and an array of bytes is one too.
    #[inline(always)]
    pub fn header<H: FromBytes + Immutable + Unaligned>(&self, at: u8) -> &H {
        const { assert!(size_of::<H>() <= WINDOW - 256) };
        // SAFETY: at + size <= 255 + 64 < WINDOW bytes, which the buffer has from the first byte on
        // (`Pool::offsets`); H may lie anywhere, have any bytes, and has no interior mutability.
        unsafe { self.byte(at).cast().as_ref() }
    }

    /// As [`Pkt::header`], to change.
    #[inline(always)]
    pub fn header_mut<H: FromBytes + IntoBytes + Unaligned>(&mut self, at: u8) -> &mut H {
        const { assert!(size_of::<H>() <= WINDOW - 256) };
        // SAFETY: at + size <= 255 + 64 < WINDOW bytes, which the buffer has from the first byte on
        // (`Pool::offsets`); H may lie anywhere and have any bytes, and leaves none uninitialized;
        // the packet is borrowed mutably.
        unsafe { self.byte(at).cast().as_mut() }
    }

    /// The byte at offset `at` of the window.
    #[inline(always)]
    fn byte(&self, at: u8) -> NonNull<u8> {
        // SAFETY: 255 < WINDOW bytes, which the buffer has from the first byte on
        // (`Pool::offsets`).
        unsafe { self.window.cast::<u8>().add(at as usize) }
    }

    /// The first segment.
    #[inline(always)]
    pub fn bytes(&self) -> &[u8] {
        self.pool.bytes_of(self.d)
    }

    /// The first segment, to change.
    #[inline(always)]
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        self.pool.bytes_of_mut(self.d)
    }

    /// Moves the packet's first byte by `by` bytes; a negative number adds bytes in front. False,
    /// with nothing changed, if that does not fit.
    #[inline]
    pub fn shift(&mut self, by: i32) -> bool {
        let off = i64::from(self.d.off) + i64::from(by);
        let len = i64::from(self.d.len) - i64::from(by);
        let fits = u16::try_from(off).is_ok_and(|off| self.pool.offsets().contains(&off));
        if !fits || len < 0 {
            return false;
        }
        if self.d.is_chained() {
            let meta = self.pool.meta_mut(self.d);
            meta.total = (meta.total as i32 - by) as u32;
        }
        self.d.off = off as u16;
        self.d.len = len as u16;
        // SAFETY: within the same buffer, as compared above.
        self.window = unsafe { self.window.byte_offset(by as isize) };
        true
    }

    /// Cuts the packet to its first `len` bytes, at least 1. Does nothing if it is not longer.
    #[inline]
    pub fn truncate(&mut self, len: usize) {
        if self.d.is_chained() {
            self.pool.shorten(self.d, len);
        } else if len < self.d.len as usize {
            self.d.len = len as u16;
        }
    }
}

/// Packets in a stage's hands, all at once: see [`Stage::prepare`](crate::Stage::prepare).
pub struct Packets<'a> {
    pool: &'a Pool,
    descs: &'a mut [Desc],
}

impl<'a> Packets<'a> {
    /// # Safety
    /// The packets are of this pool.
    #[inline(always)]
    pub(crate) unsafe fn known(pool: &'a Pool, descs: &'a mut [Desc]) -> Self {
        Packets { pool, descs }
    }

    /// Calls `each` with every packet, in order.
    #[inline(always)]
    pub fn for_each(&mut self, mut each: impl FnMut(&mut Pkt<'_>)) {
        for d in self.descs.iter_mut() {
            // SAFETY: the packets are of this pool (`Packets::known`).
            each(&mut unsafe { Pkt::known(self.pool, d) });
        }
    }
}

impl std::ops::Deref for Pkt<'_> {
    type Target = Desc;

    #[inline(always)]
    fn deref(&self) -> &Desc {
        self.d
    }
}
