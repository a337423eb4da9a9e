//! Memory of the tables: an array of atomic 32-bit words, whoever owns it; and arrays that one
//! thread has for itself.
//!
//! The only file of this crate with unsafe code, but for what asks for instructions of the
//! processor: the comparison of a leaf's ranges (`ip6`), of a block's rules (`acl`) and of a
//! bucket's slots (`flow`), and the hash of flows.
#![allow(unsafe_code)]

use std::any::Any;
use std::io;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::ptr::{self, NonNull};
use std::sync::Arc;
use std::sync::atomic::AtomicU32;

/// Words of one 64-byte line.
pub const LINE: usize = 16;

/// A line: what one next-hop group or one adjacency takes.
pub type Line = [AtomicU32; LINE];

/// A shared array of 32-bit words; its length is a power of two and at least [`LINE`]. Cloning
/// shares the memory.
///
/// An index is masked, never checked: the table code keeps numbers in range, and a wrong one reads
/// another word of the same array.
#[derive(Clone)]
pub struct Cells {
    words: NonNull<AtomicU32>,
    /// Length minus one.
    mask: usize,
    _owner: Arc<dyn Any + Send + Sync>,
}

// SAFETY: `words` points to `mask + 1` atomics, which may be used by any thread, and `_owner`,
// which is Send and Sync, keeps them in place.
unsafe impl Send for Cells {}
// SAFETY: as above.
unsafe impl Sync for Cells {}

impl Cells {
    /// Zeroed words on the heap; touches all of them.
    ///
    /// # Panics
    /// If `words` is not a power of two of at least [`LINE`].
    pub fn boxed(words: usize) -> Self {
        #[repr(align(64))]
        struct Aligned {
            _line: Line,
        }
        check(words);
        // SAFETY: all zero bytes are a valid `[AtomicU32; 16]`.
        let lines = unsafe { Arc::<[Aligned]>::new_zeroed_slice(words / LINE).assume_init() };
        let ptr = lines.as_ptr().cast_mut().cast();
        // SAFETY: `words / LINE` lines of LINE words lie at `ptr`; the Arc, moved into the owner,
        // keeps them there.
        unsafe { Self::from_raw(ptr, words, Arc::new(lines)) }
    }

    /// Zeroed words in a private mapping that asks for huge pages; pages are allocated when they
    /// are first written.
    ///
    /// # Errors
    /// The error of mmap(2), usually `ENOMEM`.
    ///
    /// # Panics
    /// If `words` is not a power of two of at least [`LINE`].
    pub fn mapped(words: usize) -> io::Result<Self> {
        check(words);
        let map = Mapping::anonymous(words * size_of::<u32>())?;
        let ptr = map.addr.as_ptr().cast();
        // SAFETY: the mapping has room for `words` words, is readable and writable, and lives as
        // long as its owner.
        Ok(unsafe { Self::from_raw(ptr, words, Arc::new(map)) })
    }

    /// Words that something else holds, such as a mapped BPF array.
    ///
    /// # Panics
    /// If `words` is not a power of two of at least [`LINE`], or `ptr` is null or not aligned to 4
    /// bytes.
    ///
    /// # Safety
    /// `ptr` must be valid for reads and writes of `words` 32-bit words until `owner` is dropped,
    /// and until then they must be written by nothing but atomic stores (or by the kernel).
    pub unsafe fn from_raw(ptr: *mut u32, words: usize, owner: Arc<dyn Any + Send + Sync>) -> Self {
        check(words);
        let words_ptr = NonNull::new(ptr.cast::<AtomicU32>()).expect("table memory is not null");
        assert!(
            words_ptr.is_aligned(),
            "table memory is aligned to its words"
        );
        Self {
            words: words_ptr,
            mask: words - 1,
            _owner: owner,
        }
    }

    /// The word at `index` modulo the length.
    #[inline(always)]
    pub fn at(&self, index: usize) -> &AtomicU32 {
        // SAFETY: the masked index is below the length.
        let word = unsafe { self.words.add(index & self.mask) };
        // SAFETY: a word of the table, which lives as long as its owner.
        unsafe { word.as_ref() }
    }

    /// The line at `index` modulo the number of lines.
    #[inline(always)]
    pub fn line(&self, index: usize) -> &Line {
        let first = index.wrapping_mul(LINE) & self.mask;
        // SAFETY: `first` is below the length.
        let line = unsafe { self.words.add(first) };
        // SAFETY: the length and `first` are multiples of LINE: a line follows, which lives as long
        // as its owner.
        unsafe { line.cast::<Line>().as_ref() }
    }

    /// Asks the processor for the cache line of the word at `index` modulo the length.
    #[inline(always)]
    pub fn prefetch(&self, index: usize) {
        prefetch(self.at(index));
    }
}

/// Asks the processor for the cache line at `at`, which need not be a good address.
#[inline(always)]
pub(crate) fn prefetch<T>(at: *const T) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch reads nothing and cannot fault.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(at.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = at;
}

impl Deref for Cells {
    type Target = [AtomicU32];

    fn deref(&self) -> &[AtomicU32] {
        // SAFETY: `mask + 1` words lie there as long as the owner lives, which is as long as
        // `self`.
        unsafe { std::slice::from_raw_parts(self.words.as_ptr(), self.mask + 1) }
    }
}

impl std::fmt::Debug for Cells {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Cells({} words)", self.len())
    }
}

/// What an [`Array`] may hold.
///
/// # Safety
/// All zero bytes are a valid value, which need not be dropped.
pub(crate) unsafe trait Zeroed: Copy + Send + Sync {}

// SAFETY: zero is a number.
unsafe impl Zeroed for u64 {}

/// An array that nobody shares, in a private mapping that asks for huge pages; it is zeroed, and
/// pages are allocated when they are first written.
pub(crate) struct Array<T> {
    map: Mapping,
    len: usize,
    of: PhantomData<T>,
}

impl<T: Zeroed> Array<T> {
    /// An array of so many; aligned to a page.
    ///
    /// # Errors
    /// The error of mmap(2): `ENOMEM`, or `EINVAL` for a length of 0.
    pub fn mapped(len: usize) -> io::Result<Self> {
        let bytes = len.checked_mul(size_of::<T>());
        let map = Mapping::anonymous(bytes.ok_or(io::ErrorKind::OutOfMemory)?)?;
        let of = PhantomData;
        Ok(Self { map, len, of })
    }
}

impl<T: Zeroed> Deref for Array<T> {
    type Target = [T];

    #[inline(always)]
    fn deref(&self) -> &[T] {
        // SAFETY: the mapping, which is ours, has room for `len` values, which began as zeros.
        unsafe { std::slice::from_raw_parts(self.map.addr.as_ptr().cast(), self.len) }
    }
}

impl<T: Zeroed> DerefMut for Array<T> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: as above; nobody else has the mapping.
        unsafe { std::slice::from_raw_parts_mut(self.map.addr.as_ptr().cast(), self.len) }
    }
}

impl<T> std::fmt::Debug for Array<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Array({})", self.len)
    }
}

fn check(words: usize) {
    assert!(
        words.is_power_of_two() && words >= LINE,
        "table memory of {words} words: must be a power of two, 16 or more"
    );
}

/// An anonymous mapping, unmapped when dropped.
struct Mapping {
    addr: NonNull<libc::c_void>,
    bytes: usize,
}

// SAFETY: the mapping is memory of the process; only its address is kept here.
unsafe impl Send for Mapping {}
// SAFETY: as above.
unsafe impl Sync for Mapping {}

impl Mapping {
    fn anonymous(bytes: usize) -> io::Result<Self> {
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        // Tables are large and mostly never written: no memory is set aside for them.
        // Miri knows neither of what is left out.
        let sparse = if cfg!(miri) { 0 } else { libc::MAP_NORESERVE };
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | sparse;
        // SAFETY: a new anonymous mapping at an address of the kernel's choice touches nothing of
        // ours.
        let addr = unsafe { libc::mmap(ptr::null_mut(), bytes, protection, flags, -1, 0) };
        if addr == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        if !cfg!(miri) {
            // SAFETY: advice on the mapping just made. Without huge pages it fails and the table is
            // a little slower.
            unsafe { libc::madvise(addr, bytes, libc::MADV_HUGEPAGE) };
        }
        let addr = NonNull::new(addr).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Self { addr, bytes })
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours, and all that lies in it is gone when its owner is dropped.
        unsafe { libc::munmap(self.addr.as_ptr(), self.bytes) };
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering::Relaxed;

    use super::*;

    #[test]
    fn words_are_zero_shared_and_masked() {
        for cells in [Cells::boxed(64), Cells::mapped(64).unwrap()] {
            assert!(cells.iter().all(|word| word.load(Relaxed) == 0));
            let other = cells.clone();
            other.at(17).store(7, Relaxed);
            drop(other);
            assert_eq!(cells.at(64 + 17).load(Relaxed), 7);
            assert_eq!(cells.line(1)[1].load(Relaxed), 7);
            assert_eq!(cells.line(5)[1].load(Relaxed), 7);
            assert_eq!(cells.as_ptr().addr() % 64, 0);
            cells.prefetch(usize::MAX);
        }
    }

    #[test]
    #[should_panic(expected = "power of two")]
    fn odd_lengths_are_refused() {
        Cells::boxed(48);
    }
}
