//! Packets that lie in several buffers: the metadata in front of each buffer says where the packet
//! goes on.
#![allow(unsafe_code)]

use super::{Buffers, MAX_PACKET, Pool};
use crate::{Desc, Flag};

/// The first 64 bytes of every buffer: what few packets need. What builds, cuts and walks
/// chains, the trace, and notes use it.
#[derive(Debug, Clone, Copy, Default)]
#[repr(C, align(64))]
pub(crate) struct Meta {
    /// Buffer of the next segment, if there is one: `segments` is more than 1.
    next: u32,
    /// Offset of the next segment's first byte.
    next_off: u16,
    /// Length of the next segment.
    next_len: u16,
    /// Head only: bytes of the whole packet.
    pub(crate) total: u32,
    /// Segments from this one on, itself included.
    segments: u16,
    /// Trace handle of a traced packet.
    pub(crate) trace: u16,
    /// Of a noted packet: what one node has to say to a later one.
    pub(crate) note: u64,
}

impl Meta {
    /// The next segment.
    ///
    /// # Safety
    /// There is one, and the owner of the packet uses one descriptor of it at a time.
    unsafe fn next(&self) -> Desc {
        // SAFETY: `Buffers::chain` wrote this from the descriptor that it appended.
        unsafe { Desc::new(self.next, self.next_off, self.next_len) }
    }
}

impl Pool {
    /// Number of buffers that a packet lies in.
    #[inline]
    pub fn buffers(&self, d: &Desc) -> u16 {
        if d.is_chained() {
            self.meta(d).segments
        } else {
            1
        }
    }

    /// Bytes of the whole packet, in all its buffers.
    #[inline(always)]
    pub fn total(&self, d: &Desc) -> usize {
        if d.is_chained() {
            self.meta(d).total as usize
        } else {
            d.len as usize
        }
    }

    /// Cuts a chained packet to its first `len` bytes (at least 1) and frees the buffers behind
    /// them. Does nothing if it is not longer.
    #[cold]
    pub(crate) fn shorten(&self, d: &mut Desc, len: usize) {
        let (mut kept, mut held) = (1, d.len as usize);
        let mut meta = *self.meta(d);
        let count = meta.segments;
        let next = |meta: &Meta| {
            // SAFETY: there is a next segment; the head, borrowed mutably, is its owner.
            unsafe { meta.next() }
        };
        while held < len && meta.segments > 1 {
            held += meta.next_len as usize;
            kept += 1;
            meta = *self.meta(&next(&meta));
        }
        let Some(over) = held.checked_sub(len) else {
            return;
        };
        // SAFETY: it only reaches the metadata, while the head is borrowed.
        let mut segment = unsafe { d.duplicate() };
        for left in (1..=kept).rev() {
            let meta = self.meta_mut(&mut segment);
            meta.segments = left;
            if left == 2 {
                meta.next_len -= over as u16;
            }
            segment = next(&*meta);
        }
        for _ in kept..count {
            let after = next(self.meta(&segment));
            self.free.give(&[segment.buf]);
            segment = after;
        }
        if kept == 1 {
            d.len -= over as u16;
            d.unmark(Flag::CHAINED);
        } else {
            self.meta_mut(d).total = len as u32;
        }
    }

    /// Gives a copy or a part of a packet its [note](crate::Pkt::note).
    #[inline]
    pub fn copy_note(&self, from: &Desc, to: &mut Desc) {
        if from.is_noted() {
            to.mark(Flag::NOTED);
            self.meta_mut(to).note = self.meta(from).note;
        }
    }

    /// The bytes of the whole packet, for tests and tools: it allocates.
    pub fn to_vec(&self, d: &Desc) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(self.total(d));
        self.segments(d, |s| bytes.extend_from_slice(s));
        bytes
    }

    /// Calls `f` with every segment in order.
    pub fn segments(&self, d: &Desc, mut f: impl FnMut(&[u8])) {
        f(self.bytes_of(d));
        if !d.is_chained() {
            return;
        }
        let mut meta = *self.meta(d);
        while meta.segments > 1 {
            // SAFETY: there is a next segment; the head, borrowed as long, is its owner.
            let seg = unsafe { meta.next() };
            f(self.bytes_of(&seg));
            meta = *self.meta(&seg);
        }
    }
}

impl Buffers {
    /// A packet with these bytes, in several buffers if need be; `None` when buffers are short or
    /// it would be longer than [`MAX_PACKET`].
    pub fn copy_in(&mut self, bytes: &[u8]) -> Option<Desc> {
        if bytes.len() > MAX_PACKET {
            return None;
        }
        let room = self.pool.room() as usize;
        let mut head: Option<Desc> = None;
        let mut rest = bytes;
        loop {
            let part = &rest[..rest.len().min(room)];
            rest = &rest[part.len()..];
            let Some(mut seg) = self.alloc() else {
                if let Some(h) = head {
                    self.free(h);
                }
                return None;
            };
            seg.len = part.len() as u16;
            self.pool.bytes_of_mut(&mut seg).copy_from_slice(part);
            match head.as_mut() {
                None => head = Some(seg),
                Some(h) => self.chain(h, seg),
            }
            if rest.is_empty() {
                return head;
            }
        }
    }

    /// A second packet like `d`, in as many buffers: the same bytes in the same places, and the
    /// same descriptor but for the buffer, all flags included. The copy of a traced packet is
    /// traced under the same number. `None` when buffers are short.
    ///
    /// # Panics
    /// Panics if `d` is of another pool.
    pub fn copy(&mut self, d: &Desc) -> Option<Desc> {
        let mut copy = self.copy_buffer(d)?;
        if d.is_chained() {
            let mut meta = *self.pool.meta(d);
            while meta.segments > 1 {
                // SAFETY: there is a next segment; the head, borrowed as long, is its owner.
                let segment = unsafe { meta.next() };
                let Some(more) = self.copy_buffer(&segment) else {
                    self.free(copy);
                    return None;
                };
                self.chain(&mut copy, more);
                meta = *self.pool.meta(&segment);
            }
        }
        copy.inherit(d);
        if d.has(Flag::TRACED) {
            copy.mark(Flag::TRACED);
            self.pool.meta_mut(&mut copy).trace = self.pool.meta(d).trace;
        }
        self.pool.copy_note(d, &mut copy);
        Some(copy)
    }

    /// A packet of one buffer with the bytes of a packet's first one, in the same place.
    fn copy_buffer(&mut self, d: &Desc) -> Option<Desc> {
        self.pool.index(d);
        let mut copy = self.alloc()?;
        (copy.off, copy.len) = (d.off, d.len);
        let bytes = self.pool.bytes_of(d);
        self.pool.bytes_of_mut(&mut copy).copy_from_slice(bytes);
        Some(copy)
    }

    /// Appends `seg` (one buffer) to the packet `head`.
    ///
    /// # Panics
    /// Panics if the packet has 65,535 buffers already. (No port takes a packet of more than
    /// [`MAX_PACKET`] bytes.)
    pub fn chain(&mut self, head: &mut Desc, mut seg: Desc) {
        let pool = &self.pool;
        *pool.meta_mut(&mut seg) = Meta {
            segments: 1,
            ..Meta::default()
        };
        if !head.is_chained() {
            let total = u32::from(head.len);
            *pool.meta_mut(head) = Meta {
                total,
                segments: 1,
                ..*pool.meta(head)
            };
            head.mark(Flag::CHAINED);
        }
        assert!(pool.buffers(head) < u16::MAX, "a packet of 65,536 buffers");
        // SAFETY: the duplicates only reach the metadata of buffers that `head` owns, one at a
        // time.
        let mut last = unsafe { head.duplicate() };
        loop {
            let meta = pool.meta_mut(&mut last);
            meta.segments += 1;
            if meta.segments == 2 {
                (meta.next, meta.next_off, meta.next_len) = (seg.buf, seg.off, seg.len);
                break;
            }
            // SAFETY: a later segment of the same chain.
            last = unsafe { meta.next() };
        }
        pool.meta_mut(head).total += u32::from(seg.len);
    }

    /// Takes a packet apart: calls `f` with every buffer as a packet of its own, in order.
    pub fn unchain(&mut self, mut d: Desc, mut f: impl FnMut(&mut Self, Desc)) {
        let mut left = if d.is_chained() {
            self.pool.meta(&d).segments
        } else {
            1
        };
        loop {
            let meta = *self.pool.meta(&d);
            d.unmark(Flag::CHAINED);
            f(self, d);
            left -= 1;
            if left == 0 {
                return;
            }
            // SAFETY: the next segment; the head that owned it has been taken apart.
            d = unsafe { meta.next() };
        }
    }

    /// Frees all segments of a packet but the first.
    pub fn cut_chain(&mut self, d: &mut Desc) {
        if d.is_chained() {
            let meta = *self.pool.meta(d);
            // SAFETY: the second segment, whose metadata counts the rest; the head gives it up
            // here.
            let mut rest = unsafe { meta.next() };
            rest.mark(Flag::CHAINED);
            self.free(rest);
            d.unmark(Flag::CHAINED);
        }
    }

    #[cold]
    pub(super) fn free_chain(&mut self, d: Desc) {
        self.unchain(d, |bufs, seg| bufs.free(seg));
    }
}
