//! A frame: up to 256 packet descriptors by value.

use crate::{Buffers, Desc, Port};

/// Descriptors in a frame.
pub const FRAME: usize = 256;

/// Up to [`FRAME`] packets on their way from one node to the next.
#[derive(Debug)]
pub struct Frame {
    pub(crate) descs: Box<[Desc; FRAME]>,
    pub(crate) len: usize,
}

impl Default for Frame {
    fn default() -> Self {
        Frame {
            descs: Box::new([const { Desc::EMPTY }; FRAME]),
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
    /// Whether there are none.
    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
    /// How many more fit.
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
    /// Fills it with what `port` has received, for who serves a port without a graph. Its packets of before must have been taken out.
    #[inline]
    pub fn receive(&mut self, port: &mut dyn Port, bufs: &mut Buffers) -> usize {
        self.len = port.rx(bufs, &mut self.descs[..]).min(FRAME);
        self.len
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
    /// Takes the last packet out.
    #[inline]
    pub fn pop(&mut self) -> Option<Desc> {
        self.len = self.len.checked_sub(1)?;
        Some(std::mem::replace(&mut self.descs[self.len], Desc::EMPTY))
    }
    /// Takes packet `i` out and leaves a hole; when all wanted ones are out, [`Frame::clear`] it.
    #[inline]
    pub fn take(&mut self, i: usize) -> Option<Desc> {
        let place = self.descs[..self.len].get_mut(i)?;
        Some(std::mem::replace(place, Desc::EMPTY)).filter(|d| d.buf != u32::MAX)
    }
    /// Forgets its packets: each must have been taken out.
    #[inline]
    pub fn clear(&mut self) {
        self.len = 0;
    }
    /// Appends copies of the descriptors `run` and returns how many fitted.
    ///
    /// # Safety
    /// The originals that were appended must not be used again.
    #[inline]
    pub(crate) unsafe fn append(&mut self, run: &[Desc]) -> usize {
        let n = run.len().min(self.room());
        // SAFETY: n fits behind len; Desc has no drop; the caller gives the originals up.
        unsafe {
            std::ptr::copy_nonoverlapping(run.as_ptr(), self.descs.as_mut_ptr().add(self.len), n)
        };
        self.len += n;
        n
    }
}
