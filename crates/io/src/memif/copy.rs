//! Copies between shared memory and packet buffers.
#![allow(unsafe_code)]

use std::ptr::NonNull;

/// Longest packet that is copied in blocks; beyond it the library's copy is as good.
const BLOCKS: usize = 512;

/// Copies `len` bytes, and never looks at or touches more than those. Blocks of fixed size compile
/// to a few vector moves; the last one overlaps the one before where `len` is not a multiple.
///
/// # Safety
/// `len` bytes are readable at `from` and writable at `to`; they do not overlap.
#[inline(always)]
pub unsafe fn copy_packet(from: NonNull<u8>, to: NonNull<u8>, len: usize) {
    match len {
        // Blocks of a cache line, and of half of one: two loads that overlap are cheaper than a
        // branch for each length.
        64..=BLOCKS => {
            let last = len - 64;
            let mut at = 0;
            while at < last {
                // SAFETY: at + 64 is below `len`.
                unsafe { copy_block::<64>(from, to, at) };
                at += 64;
            }
            // SAFETY: the last 64 of `len` bytes.
            unsafe { copy_block::<64>(from, to, last) };
        }
        32..64 => {
            // SAFETY: the first 32 of `len` bytes.
            unsafe { copy_block::<32>(from, to, 0) };
            // SAFETY: the last 32 of `len` bytes.
            unsafe { copy_block::<32>(from, to, len - 32) };
        }
        // SAFETY: `len` bytes at both, apart from each other: `transfer` has checked them against
        // the peer's region and the pool's buffer.
        _ => unsafe { to.copy_from_nonoverlapping(from, len) },
    }
}

/// # Safety
/// As [`copy_packet`], for `N` bytes from `at` on.
#[inline(always)]
unsafe fn copy_block<const N: usize>(from: NonNull<u8>, to: NonNull<u8>, at: usize) {
    // SAFETY: `copy_packet` takes only blocks that end within its `len` bytes.
    let from = unsafe { from.add(at) };
    // SAFETY: as for `from`.
    let to = unsafe { to.add(at) };
    // SAFETY: N bytes at both, as above; a pool and a peer's region are separate mappings.
    unsafe { to.copy_from_nonoverlapping(from, N) };
}

/// Fetches a cache line to be read.
#[inline(always)]
pub fn prefetch_read(address: *const u8) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch has no effect but on caches, whatever the address.
    unsafe {
        std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T0 }>(address.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = address;
}

/// Fetches a cache line to be written.
#[inline(always)]
pub fn prefetch_write(address: *const u8) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch has no effect but on caches, whatever the address.
    unsafe {
        std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_ET0 }>(address.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = address;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_length_is_copied_exactly() {
        let from: Vec<u8> = (0..2000).map(|i| (i % 251) as u8).collect();
        for len in (0..700).chain([1500, 1999]) {
            let mut to = vec![0xAA; 2000];
            let (a, b) = (
                NonNull::from(&from[..]).cast(),
                NonNull::from(&mut to[..]).cast(),
            );
            // SAFETY: both hold 2000 bytes.
            unsafe { copy_packet(a, b, len) };
            assert_eq!(to[..len], from[..len], "{len}");
            assert!(to[len..].iter().all(|&b| b == 0xAA), "{len}");
        }
    }
}
