//! The queues in front of the nodes: one frame each, and spare frames for those whose frame is
//! full.
#![allow(unsafe_code)]

use crate::{Desc, FRAME, Frame};

/// Frames kept for nodes whose own frame is full. With its own frame a node has room for 17: what a
/// frame of 9,216-byte packets becomes when it is cut for a link of 576 bytes.
const SPARE: usize = 16;

/// Packets on their way to nodes.
pub(crate) struct Queues {
    /// By node.
    pending: Vec<Frame>,
    /// Bit n: node n has packets.
    ready: u64,
    spare: Vec<Frame>,
    /// Frames that wait until their node's own frame is empty, oldest first.
    spilled: Vec<(u16, Frame)>,
}

impl Queues {
    /// Empty queues in front of `nodes` nodes, at most 64.
    pub(crate) fn new(nodes: usize) -> Self {
        assert!(nodes <= 64, "a graph has at most 64 nodes");
        Queues {
            pending: (0..nodes).map(|_| Frame::default()).collect(),
            ready: 0,
            spare: (0..SPARE).map(|_| Frame::default()).collect(),
            spilled: Vec::with_capacity(SPARE),
        }
    }

    /// Moves the packets of the first node that has any into `work`, which is empty, and returns
    /// the node.
    #[inline]
    pub(crate) fn take(&mut self, work: &mut Frame) -> Option<usize> {
        if self.ready == 0 {
            return None;
        }
        let node = self.ready.trailing_zeros() as usize;
        self.ready &= self.ready - 1;
        std::mem::swap(work, &mut self.pending[node]);
        self.unspill(node);
        Some(node)
    }

    /// True if no node has packets.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.ready == 0
    }

    /// Tries to queue the whole frame for node `to` by exchanging frames. False, with the frame as
    /// it was, if the node has packets already.
    #[inline]
    pub(crate) fn swap(&mut self, to: u16, frame: &mut Frame) -> bool {
        let pending = &mut self.pending[to as usize];
        if !pending.is_empty() {
            return false;
        }
        std::mem::swap(pending, frame);
        self.ready |= 1 << to;
        true
    }

    /// Queues a run of at most [`FRAME`] packets for node `to`. Returns how many were taken: the
    /// first ones.
    ///
    /// # Safety
    /// The caller owns the packets, and no longer uses the originals of those that were taken.
    #[inline]
    pub(crate) unsafe fn append(&mut self, to: u16, run: &[Desc]) -> usize {
        self.ready |= 1 << to;
        // SAFETY: `Out::enqueue_run` owns the packets, and uses none again that this takes.
        let n = unsafe { self.pending[to as usize].append(run) };
        if n == run.len() {
            return n;
        }
        // SAFETY: as above; these were not appended, so their originals are still good.
        n + unsafe { self.spill(to, &run[n..]) }
    }

    /// Keeps packets that found the node's frame full. Returns how many.
    ///
    /// # Safety
    /// As [`Queues::append`].
    #[cold]
    unsafe fn spill(&mut self, to: u16, run: &[Desc]) -> usize {
        debug_assert!(run.len() <= FRAME);
        let mut taken = 0;
        // Nodes that make packets push them one by one: fill the last frame before taking another.
        if let Some((_, frame)) = self.spilled.iter_mut().rev().find(|(t, _)| *t == to) {
            // SAFETY: as in `append`, whose caller's packets these are.
            taken = unsafe { frame.append(run) };
        }
        if taken < run.len()
            && let Some(mut frame) = self.spare.pop()
        {
            // SAFETY: as above; these were not appended, so their originals are still good.
            taken += unsafe { frame.append(&run[taken..]) };
            self.spilled.push((to, frame));
        }
        taken
    }

    /// Brings packets that waited for room into the node's frame, which has just been emptied.
    #[inline]
    fn unspill(&mut self, node: usize) {
        if self.spilled.is_empty() {
            return;
        }
        if let Some(i) = self.spilled.iter().position(|(to, _)| *to as usize == node) {
            let (_, mut frame) = self.spilled.remove(i);
            std::mem::swap(&mut self.pending[node], &mut frame);
            self.ready |= 1 << node;
            self.spare.push(frame);
        }
    }
}
