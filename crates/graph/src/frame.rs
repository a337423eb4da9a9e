//! A frame: up to 256 packet descriptors by value, and the two ways to take packets out of it.
#![allow(unsafe_code)]

use crate::Desc;

/// Descriptors in a frame. Measured on a model of this engine, a frame of 64 costs 2 cycles a
/// packet more, one of 32 costs 5.5.
pub const FRAME: usize = 256;

/// Up to [`FRAME`] packets on their way from one node to the next.
#[derive(Debug)]
pub struct Frame {
    /// Those before `len` are the frame's; the rest belong to somebody else or to nobody.
    descs: Box<[Desc; FRAME]>,
    /// At most [`FRAME`].
    len: usize,
}

impl Default for Frame {
    fn default() -> Self {
        Frame {
            descs: Box::new([const { Desc::VACANT }; FRAME]),
            len: 0,
        }
    }
}

impl Frame {
    /// Packets in it.
    #[inline(always)]
    pub fn len(&self) -> usize {
        self.len
    }
    /// True if the frame has no packets.
    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
    /// Number of packets that still fit.
    #[inline(always)]
    pub fn room(&self) -> usize {
        FRAME - self.len
    }
    /// Its packets.
    #[inline(always)]
    pub fn packets(&self) -> &[Desc] {
        &self.descs[..self.len.min(FRAME)]
    }
    /// Its packets, to change.
    #[inline(always)]
    pub fn packets_mut(&mut self) -> &mut [Desc] {
        &mut self.descs[..self.len.min(FRAME)]
    }
    /// Appends a packet, or gives it back if the frame is full.
    #[inline]
    pub fn push(&mut self, d: Desc) -> Result<(), Desc> {
        match self.descs.get_mut(self.len) {
            Some(place) => {
                *place = d;
                self.len += 1;
                Ok(())
            }
            None => Err(d),
        }
    }
    /// Appends a packet for which there is [`room`](Self::room). Without room the packet is lost to
    /// the pool, and with debug assertions this panics.
    #[inline]
    pub fn put(&mut self, d: Desc) {
        let full = self.push(d).is_err();
        debug_assert!(!full, "a packet for a frame that is full");
    }
    /// Takes all its packets out, in order. Packets that the caller leaves in the iterator are lost
    /// to the pool.
    #[inline]
    pub fn drain(&mut self) -> impl Iterator<Item = Desc> {
        let len = std::mem::take(&mut self.len).min(FRAME);
        // SAFETY: the frame counts them as gone already, and each is read once.
        self.descs[..len].iter().map(|d| unsafe { d.duplicate() })
    }
    /// Lets `take` have the first `at_most` packets; the others move to the front. Returns how many
    /// it took.
    #[inline]
    pub fn offer(&mut self, at_most: usize, take: impl FnOnce(&mut Batch<'_>)) -> usize {
        // Nobody owns them twice, even if `take` panics.
        let len = std::mem::take(&mut self.len).min(FRAME);
        let mut batch = Batch {
            packets: &self.descs[..len.min(at_most)],
            taken: 0,
        };
        take(&mut batch);
        let taken = batch.taken;
        if taken < len && taken > 0 {
            let descs = self.descs.as_mut_ptr();
            // SAFETY: within the frame.
            let left = unsafe { descs.add(taken) };
            // SAFETY: both ranges lie within the frame; Desc has no drop, and the packets that were
            // taken are overwritten or forgotten.
            unsafe { std::ptr::copy(left, descs, len - taken) };
        }
        self.len = len - taken;
        taken
    }
    /// Forgets its packets.
    #[inline(always)]
    pub(crate) fn clear(&mut self) {
        self.len = 0;
    }
    /// Appends a run of packets by copying their descriptors, and returns how many fit.
    ///
    /// # Safety
    /// The caller owns the packets, and no longer uses the originals of those that were appended.
    #[inline]
    pub unsafe fn append(&mut self, run: &[Desc]) -> usize {
        let n = run.len().min(self.room());
        // SAFETY: n fits behind len.
        let end = unsafe { self.descs.as_mut_ptr().add(self.len) };
        // SAFETY: n places from there are the frame's and hold nobody's packets, so that the two do
        // not overlap; Desc has no drop, and the queues' contracts give the originals up.
        unsafe { std::ptr::copy_nonoverlapping(run.as_ptr(), end, n) };
        self.len += n;
        n
    }
}

/// A run of packets on offer: an iterator that takes them one by one, in order. The others stay
/// their owner's.
#[derive(Debug)]
pub struct Batch<'a> {
    packets: &'a [Desc],
    /// Number of packets given away.
    taken: usize,
}

impl Batch<'_> {
    /// Packets that are left.
    #[inline(always)]
    pub fn len(&self) -> usize {
        self.packets.len() - self.taken
    }
    /// True if no packet is left.
    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// The next packet, to look at it before taking it.
    #[inline(always)]
    pub fn peek(&self) -> Option<&Desc> {
        self.packets.get(self.taken)
    }
    /// Those that are left.
    #[inline(always)]
    pub fn packets(&self) -> &[Desc] {
        self.packets.get(self.taken..).unwrap_or_default()
    }
    /// Lets `take` have the first `at_most` of those that are left.
    #[inline]
    pub fn offer(&mut self, at_most: usize, take: impl FnOnce(&mut Batch<'_>)) {
        let from = self.taken;
        let to = from.saturating_add(at_most).min(self.packets.len());
        let mut part = Batch {
            packets: &self.packets[from..to],
            taken: 0,
        };
        // Nobody owns them twice, even if `take` panics.
        self.taken = to;
        take(&mut part);
        self.taken = from + part.taken;
    }
    /// Skips the first `n` of those that are left: the caller takes them.
    ///
    /// # Safety
    /// `n` is at most [`len`](Self::len), and the caller has copied their descriptors.
    #[inline(always)]
    pub unsafe fn advance(&mut self, n: usize) {
        debug_assert!(n <= self.len());
        self.taken += n;
    }
}

impl Iterator for Batch<'_> {
    type Item = Desc;

    #[inline(always)]
    fn next(&mut self) -> Option<Desc> {
        let d = self.packets.get(self.taken)?;
        self.taken += 1;
        // SAFETY: each is read once, and its owner counts it as taken.
        Some(unsafe { d.duplicate() })
    }
}
