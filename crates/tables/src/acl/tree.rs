//! The tree of a large list: a node cuts up to eight bits of one word of the key, and each value of
//! them has its own rules. Rules are in four groups, each with a tree, by whether they say much of
//! the source and of the destination: a rule that says little would be in too many leaves of a tree
//! of rules that say much.
#![allow(unsafe_code)]

use super::block::Block;
use super::{Key, NONE};
use crate::mem::prefetch;

/// Keys that go down the tree together: while one waits for memory, the others go on.
const TOGETHER: usize = 64;

/// Where a key goes on: to a node, or to a leaf, whose blocks are compared with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Slot(u64);

impl Slot {
    /// The leaf of this many blocks, at least one, from the block at `base` on.
    pub const fn leaf(base: u32, blocks: u32) -> Self {
        Slot((blocks as u64) << 32 | base as u64)
    }

    /// The node that goes by the `bits` bits of a word above its lowest `shift`; its slots are from
    /// `base` on. The word after the last is the ports.
    pub const fn node(word: usize, shift: u32, bits: u32, base: u32) -> Self {
        Slot(
            1 << 63
                | (word as u64) << 48
                | (shift as u64) << 40
                | (bits as u64) << 32
                | base as u64,
        )
    }

    #[inline(always)]
    const fn is_node(self) -> bool {
        self.0 >> 63 != 0
    }

    #[inline(always)]
    const fn base(self) -> usize {
        self.0 as u32 as usize
    }

    #[inline(always)]
    const fn blocks(self) -> usize {
        (self.0 >> 32) as u32 as usize
    }

    /// The slot of a node that a key goes to.
    #[inline(always)]
    fn next<const W: usize>(self, key: &Key<W>) -> usize {
        let [shift, bits] = [40, 32].map(|at| (self.0 >> at) as u8 as u32);
        let word = (self.0 >> 48) as u8 as usize;
        let word = key.words.get(word).copied().unwrap_or(key.ports);
        self.base() + ((word >> (shift & 31)) & ((1 << (bits & 31)) - 1)) as usize
    }
}

/// Rules of one family, compiled.
#[derive(Debug)]
pub struct Acl<const W: usize> {
    /// The root of each group.
    pub(super) roots: Vec<Slot>,
    /// Those of all nodes.
    pub(super) slots: Vec<Slot>,
    pub(super) blocks: Vec<Block<W>>,
}

impl<const W: usize> Acl<W> {
    /// Bytes that it takes.
    pub fn memory(&self) -> usize {
        size_of_val(&self.slots[..]) + size_of_val(&self.blocks[..])
    }

    /// The number of the first rule that matches each key, or [`NONE`]. As many are found as there
    /// are both keys and places.
    pub fn find(&self, keys: &[Key<W>], found: &mut [u32]) {
        #[cfg(target_arch = "x86_64")]
        if is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512bw") {
            // SAFETY: the processor has what is asked for.
            return unsafe { self.find_avx512(keys, found) };
        }
        #[cfg(target_arch = "x86_64")]
        if is_x86_feature_detected!("avx2") {
            // SAFETY: the processor has what is asked for.
            return unsafe { self.find_avx2(keys, found) };
        }
        self.find_by(keys, found, Block::lanes);
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx512f,avx512bw")]
    fn find_avx512(&self, keys: &[Key<W>], found: &mut [u32]) {
        self.find_by(keys, found, |block, key| block.lanes_avx512(key));
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2")]
    fn find_avx2(&self, keys: &[Key<W>], found: &mut [u32]) {
        self.find_by(keys, found, |block, key| block.lanes_avx2(key));
    }

    /// As [`Acl::find`], where `lanes` compares a key with a block.
    #[inline(always)]
    pub(super) fn find_by(
        &self,
        keys: &[Key<W>],
        found: &mut [u32],
        lanes: impl Fn(&Block<W>, &Key<W>) -> u16,
    ) {
        for (keys, found) in keys.chunks(TOGETHER).zip(found.chunks_mut(TOGETHER)) {
            found.fill(NONE);
            for root in &self.roots {
                if root.is_node() {
                    self.compare(keys, self.descend(*root, keys), found, &lanes);
                } else {
                    self.compare(keys, std::iter::repeat(*root), found, &lanes);
                }
            }
        }
    }

    /// Compares each key with the blocks of its leaf.
    #[inline(always)]
    fn compare(
        &self,
        keys: &[Key<W>],
        leaves: impl IntoIterator<Item = Slot>,
        found: &mut [u32],
        lanes: impl Fn(&Block<W>, &Key<W>) -> u16,
    ) {
        for ((key, leaf), found) in keys.iter().zip(leaves).zip(found) {
            let blocks = &self.blocks[leaf.base()..][..leaf.blocks()];
            let [first, rest @ ..] = blocks else { continue };
            let mut rule = first.first(lanes(first, key));
            for block in rest {
                if rule != NONE {
                    break;
                }
                rule = block.first(lanes(block, key));
            }
            *found = rule.min(*found);
        }
    }

    /// The leaf of each key.
    #[inline(always)]
    fn descend(&self, root: Slot, keys: &[Key<W>]) -> [Slot; TOGETHER] {
        let mut at = [root; TOGETHER];
        let mut is_under_way = root.is_node();
        while is_under_way {
            is_under_way = false;
            for (at, key) in at.iter_mut().zip(keys) {
                // Keys come to their leaves at random moments: to look one up for nothing costs
                // less than a wrong guess.
                let index = if at.is_node() { at.next(key) } else { 0 };
                let next = self.slots[index];
                *at = if at.is_node() { next } else { *at };
                is_under_way |= at.is_node();
                if at.is_node() {
                    prefetch(self.slots.as_ptr().wrapping_add(at.next(key)));
                } else {
                    let block = self.blocks.as_ptr().wrapping_add(at.base());
                    let lines = size_of::<Block<W>>() / 64;
                    (0..lines)
                        .for_each(|line| prefetch(block.cast::<[u8; 64]>().wrapping_add(line)));
                }
            }
        }
        at
    }
}
