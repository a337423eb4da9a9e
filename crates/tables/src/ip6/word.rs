//! The words of the table: an entry, or the name of a node; and where in a node they stand.

use crate::entry::EXT;
use crate::mem::LINE;

/// The node is a leaf, not a page.
pub(crate) const LEAF: u32 = 1 << 30;
/// The byte of the address that the node begins with: four bits.
pub(crate) const BYTE_SHIFT: u32 = 26;
/// Number of the node among those of its kind.
pub(crate) const INDEX: u32 = (1 << BYTE_SHIFT) - 1;

/// Words of the first level: one for every /16.
pub const FIRST_WORDS: usize = 1 << 16;

/// Words of one page: one for every value of a byte.
pub const PAGE_WORDS: usize = 256;

/// Nodes of one kind: what the index in a word can count.
pub(super) const MOST: usize = 1 << BYTE_SHIFT;
/// Ranges of a leaf. Its line holds where each but the first begins, from word 0 on, and their
/// words, from [`WORDS`] on.
pub(crate) const RANGES: usize = 8;
pub(super) const WORDS: usize = LINE - RANGES;

/// A node: its kind, where in the address it begins, its number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Node {
    Leaf { byte: u8, index: u32 },
    Page { byte: u8, index: u32 },
}

impl Node {
    /// The node that a word names, if it is not an entry.
    #[inline(always)]
    pub fn of(word: u32) -> Option<Self> {
        if word & EXT == 0 {
            return None;
        }
        let (byte, index) = ((word >> BYTE_SHIFT & 15) as u8, word & INDEX);
        Some(match word & LEAF {
            0 => Node::Page { byte, index },
            _ => Node::Leaf { byte, index },
        })
    }

    /// The word that names it.
    pub const fn word(self) -> u32 {
        match self {
            Node::Page { byte, index } => EXT | (byte as u32) << BYTE_SHIFT | index,
            Node::Leaf { byte, index } => EXT | LEAF | (byte as u32) << BYTE_SHIFT | index,
        }
    }

    /// Bits of the address before it.
    pub const fn depth(self) -> u8 {
        match self {
            Node::Page { byte, .. } | Node::Leaf { byte, .. } => byte * 8,
        }
    }
}
