//! The set of buffers that are in the kernel's hands.

/// A set of buffers, by their indices in the pool: a bit each.
#[derive(Debug)]
pub struct Owned(Box<[u64]>);

impl Owned {
    /// None of a pool's `count` buffers.
    pub fn new(count: u32) -> Self {
        Self(vec![0; count.div_ceil(64) as usize].into())
    }

    /// Adds a buffer of the pool.
    #[inline(always)]
    pub fn insert(&mut self, buf: u32) {
        if let Some(word) = self.0.get_mut(buf as usize / 64) {
            *word |= 1 << (buf % 64);
        }
    }

    /// Takes a buffer out. False if it was not in, or is none of the pool.
    #[inline(always)]
    pub fn remove(&mut self, buf: u32) -> bool {
        let Some(word) = self.0.get_mut(buf as usize / 64) else {
            return false;
        };
        let bit = 1 << (buf % 64);
        let was = *word & bit != 0;
        *word &= !bit;
        was
    }

    /// Takes all out, and gives `f` each.
    pub fn drain(&mut self, mut f: impl FnMut(u32)) {
        for (first, word) in (0..).step_by(64).zip(&mut self.0) {
            while *word != 0 {
                f(first + word.trailing_zeros());
                *word &= *word - 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_is_owned_once() {
        let mut owned = Owned::new(128);
        for buf in [0, 63, 64, 127] {
            assert!(!owned.remove(buf));
            owned.insert(buf);
            assert!(owned.remove(buf));
            assert!(!owned.remove(buf));
        }
        owned.insert(128);
        assert!(!owned.remove(128), "beyond the pool");
        owned.insert(63);
        owned.insert(64);
        let mut left = Vec::new();
        owned.drain(|buf| left.push(buf));
        assert_eq!(left, [63, 64]);
        owned.drain(|buf| panic!("{buf} is still in"));
    }
}
