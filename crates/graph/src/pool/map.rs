//! Memory from the operating system, in huge pages where it has some.
#![allow(unsafe_code)]

use std::io;
use std::ptr::NonNull;

/// The kind of pages that a pool or table lies in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pages {
    /// Reserved huge pages (hugetlbfs).
    Huge,
    /// Ordinary pages that the kernel was asked to make huge (madvise(2)).
    Transparent,
}

/// Size of a huge page in bytes, the smaller of the two that x86-64 has; [`map`] takes multiples of
/// it.
pub(super) const HUGE: usize = 2 << 20;

/// Ends a mapping of `map`.
pub(super) fn unmap(base: NonNull<u8>, bytes: usize) {
    // SAFETY: the owner of a mapping of `map` calls this once, with its length.
    unsafe { libc::munmap(base.as_ptr().cast(), bytes) };
}

/// Maps `bytes` bytes of zeroes, a multiple of [`HUGE`].
///
/// # Errors
/// The operating system's, when memory is short.
pub(super) fn map(bytes: usize) -> io::Result<(NonNull<u8>, Pages)> {
    let try_map = |extra: i32| {
        // SAFETY: a fresh anonymous mapping.
        let p = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                bytes,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | extra,
                -1,
                0,
            )
        };
        if p == libc::MAP_FAILED {
            None
        } else {
            NonNull::new(p.cast::<u8>())
        }
    };
    // Miri knows no huge pages.
    if !cfg!(miri)
        && let Some(p) = try_map(libc::MAP_HUGETLB | libc::MAP_POPULATE)
    {
        return Ok((p, Pages::Huge));
    }
    let p = try_map(0).ok_or_else(io::Error::last_os_error)?;
    if !cfg!(miri) {
        // SAFETY: advice on our own mapping.
        unsafe { libc::madvise(p.as_ptr().cast(), bytes, libc::MADV_HUGEPAGE) };
    }
    Ok((p, Pages::Transparent))
}
