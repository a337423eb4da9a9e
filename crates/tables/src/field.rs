//! A field of a line of a table: some bits of one of its words.

/// Some bits of one word of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Field {
    pub(crate) name: &'static str,
    /// The word of the line.
    pub word: usize,
    pub(crate) shift: u32,
    pub(crate) bits: u32,
}

impl Field {
    /// A whole word.
    pub(crate) const fn word(name: &'static str, word: usize) -> Self {
        Self::bits(name, word, 0, 32)
    }

    /// The lower half of a word.
    pub(crate) const fn low(name: &'static str, word: usize) -> Self {
        Self::bits(name, word, 0, 16)
    }

    /// The upper half of a word.
    pub(crate) const fn high(name: &'static str, word: usize) -> Self {
        Self::bits(name, word, 16, 16)
    }

    /// Some bits of a word.
    pub(crate) const fn bits(name: &'static str, word: usize, shift: u32, bits: u32) -> Self {
        Self {
            name,
            word,
            shift,
            bits,
        }
    }

    /// Its value in its word.
    #[inline(always)]
    pub const fn of(self, word: u32) -> u32 {
        word >> self.shift & u32::MAX >> (32 - self.bits)
    }

    /// The bits of its word that hold `value`, which must fit.
    #[inline(always)]
    pub const fn put(self, value: u32) -> u32 {
        value << self.shift
    }
}
