//! Shared memory of a connection.
//!
//! The other side may write to a region at any moment, so no reference to its bytes is ever made: they are
//! copied out by pointer, or read once as an atomic. It must not be able to take pages away (that would be a
//! SIGBUS here), hence regions are sealed against shrinking before they are mapped.

use std::ffi::c_int;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::ptr::{self, NonNull};

/// Largest region taken from a client, in bytes.
const MAX_BYTES: u64 = 64 << 30;

/// Why a client's region is refused.
#[derive(Debug, thiserror::Error)]
pub enum Refused {
    /// It announced more than the file has.
    #[error("region of {announced} bytes in a file of {file} bytes")]
    Short {
        /// As announced.
        announced: u64,
        /// Bytes of the file.
        file: u64,
    },
    /// Empty or beyond all reason.
    #[error("region of {0} bytes")]
    Size(u64),
    /// Not a memfd, or one that may shrink under us.
    #[error(
        "region cannot be sealed against shrinking ({0}): turn zero-copy off or trust its memory"
    )]
    Unsealed(io::Error),
    /// The kernel would not map it.
    #[error("region cannot be mapped ({0})")]
    Map(#[from] io::Error),
}

/// One mapped region.
#[derive(Debug)]
pub struct Region {
    base: NonNull<u8>,
    bytes: usize,
}

// SAFETY: a Region is an address and a length; what it points to is only reached by raw copies and atomics.
unsafe impl Send for Region {}
// SAFETY: as above.
unsafe impl Sync for Region {}

impl Region {
    /// Makes a region of our own: a memfd that can no longer shrink, and its mapping.
    pub fn create(bytes: usize) -> io::Result<(Self, OwnedFd)> {
        let flags = libc::MFD_ALLOW_SEALING | libc::MFD_CLOEXEC;
        // SAFETY: the name is a zero-terminated string.
        let fd = unsafe { libc::memfd_create(c"memif".as_ptr(), flags) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: memfd_create returned a new descriptor.
        let fd = unsafe { OwnedFd::from_raw_fd(fd) };
        // SAFETY: a plain system call on our descriptor.
        if unsafe { libc::ftruncate(fd.as_raw_fd(), bytes as libc::off_t) } < 0 {
            return Err(io::Error::last_os_error());
        }
        seal(&fd)?;
        Ok((Self::mmap(&fd, bytes, libc::MAP_POPULATE)?, fd))
    }

    /// Maps a client's region of `bytes` bytes; with `trusted` even if it cannot be sealed.
    pub fn map(fd: &OwnedFd, bytes: u64, trusted: bool) -> Result<Self, Refused> {
        if bytes == 0 || bytes > MAX_BYTES {
            return Err(Refused::Size(bytes));
        }
        if let Err(e) = seal(fd)
            && !trusted
        {
            return Err(Refused::Unsealed(e));
        }
        // Only now: the size can no longer fall.
        let file = size(fd)?;
        if file < bytes {
            return Err(Refused::Short {
                announced: bytes,
                file,
            });
        }
        Ok(Self::mmap(fd, bytes as usize, 0)?)
    }

    fn mmap(fd: &OwnedFd, bytes: usize, flags: c_int) -> io::Result<Self> {
        // SAFETY: a new mapping at an address of the kernel's choice.
        let base = unsafe {
            libc::mmap(
                ptr::null_mut(),
                bytes,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED | flags,
                fd.as_raw_fd(),
                0,
            )
        };
        if base == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        NonNull::new(base.cast())
            .map(|base| Self { base, bytes })
            .ok_or_else(|| io::ErrorKind::AddrNotAvailable.into())
    }

    /// Address of `len` bytes at `offset`, if they lie within the region.
    #[inline(always)]
    pub fn at(&self, offset: u32, len: u32) -> Option<NonNull<u8>> {
        if u64::from(offset) + u64::from(len) > self.bytes as u64 {
            return None;
        }
        // SAFETY: offset + len is within the mapping, as just checked.
        Some(unsafe { self.base.add(offset as usize) })
    }

    /// Where `offset` would lie; only good for a prefetch.
    #[inline(always)]
    pub fn hint(&self, offset: u32) -> *const u8 {
        self.base.as_ptr().wrapping_add(offset as usize)
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        // SAFETY: mapped by `mmap` with this length; rings and queues hold the region by Arc, so none is left.
        unsafe { libc::munmap(self.base.as_ptr().cast(), self.bytes) };
    }
}

/// Seals a memfd against shrinking, or finds that it is.
fn seal(fd: &OwnedFd) -> io::Result<()> {
    // SAFETY: plain system calls on an open descriptor.
    let seals = unsafe { libc::fcntl(fd.as_raw_fd(), libc::F_GET_SEALS) };
    if seals >= 0 && seals & libc::F_SEAL_SHRINK != 0 {
        return Ok(());
    }
    // SAFETY: as above.
    match unsafe { libc::fcntl(fd.as_raw_fd(), libc::F_ADD_SEALS, libc::F_SEAL_SHRINK) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

fn size(fd: &OwnedFd) -> io::Result<u64> {
    // SAFETY: all-zero is a valid stat; fstat fills it.
    let mut stat: libc::stat = unsafe { std::mem::zeroed() };
    // SAFETY: as above.
    match unsafe { libc::fstat(fd.as_raw_fd(), &mut stat) } {
        0 => Ok(stat.st_size as u64),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Whether a descriptor that came from the peer is an event counter, the one kind that may stand for interrupts.
pub fn is_eventfd(fd: BorrowedFd<'_>) -> bool {
    std::fs::read_link(format!("/proc/self/fd/{}", fd.as_raw_fd())).is_ok_and(|name| {
        name.as_os_str()
            .to_string_lossy()
            .starts_with("anon_inode:[eventfd")
    })
}
