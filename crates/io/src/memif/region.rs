//! Shared memory of a connection.
//!
//! The other side may write to a region at any moment, so no reference to its bytes is ever made:
//! they are copied out by pointer, or read once as an atomic. It may also take the pages away, see
//! [`super::lost`].
#![allow(unsafe_code)]

use std::ffi::c_int;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::ptr::{self, NonNull};

use super::lost::Watch;

/// Bytes that descriptors can name: their offsets have 32 bits.
const REACH: u64 = 1 << 32;
/// Bytes that a client may bring in normal pages: whoever touches one first pays for it, and that
/// may be us.
const MAX_NORMAL: u64 = 1 << 30;

/// Reason why a client's region is refused.
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
    /// It has no bytes.
    #[error("region of no bytes")]
    Empty,
    /// It has too many bytes, together with the regions before it.
    #[error("regions of {0} bytes, more than {MAX_NORMAL}: use huge pages or fewer buffers")]
    Large(u64),
    /// Neither a memfd nor on tmpfs or hugetlbfs.
    #[error("region is not shared memory ({0})")]
    NotMemory(io::Error),
    /// The kernel would not map it.
    #[error("region cannot be mapped ({0})")]
    Map(#[from] io::Error),
}

/// One region.
#[derive(Debug)]
pub struct Region {
    /// Goes before the mapping does.
    watch: Watch,
    mapping: Mapping,
    /// Bytes that offsets may name.
    bytes: u64,
    huge: bool,
}

#[derive(Debug)]
struct Mapping {
    base: NonNull<u8>,
    bytes: usize,
}

// SAFETY: an address and a length; what it points to is only reached by raw copies and atomics.
unsafe impl Send for Mapping {}
// SAFETY: it has no state of its own; what it points to is only reached by raw copies and atomics.
unsafe impl Sync for Mapping {}

impl Region {
    /// Makes a region of our own, and its memfd, which the peer may seal.
    pub fn create(bytes: u64) -> io::Result<(Self, OwnedFd)> {
        let flags = libc::MFD_ALLOW_SEALING | libc::MFD_CLOEXEC;
        // SAFETY: the name is a zero-terminated string.
        let fd = unsafe { libc::memfd_create(c"memif".as_ptr(), flags) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: memfd_create returned a new descriptor.
        let fd = unsafe { OwnedFd::from_raw_fd(fd) };
        let length = libc::off_t::try_from(bytes).map_err(io::Error::other)?;
        // SAFETY: a plain system call on our descriptor.
        if unsafe { libc::ftruncate(fd.as_raw_fd(), length) } < 0 {
            return Err(io::Error::last_os_error());
        }
        let region = Self::of(&fd, bytes, libc::MAP_POPULATE)?;
        Ok((region, fd))
    }

    /// Maps a client's region of `bytes` bytes; `before` are those that it brought already.
    pub fn map(fd: &OwnedFd, bytes: u64, before: &[Self]) -> Result<Self, Refused> {
        // Only shared memory has seals (tmpfs and hugetlbfs, memfds are on them). It is asked
        // first, because a call that asks the file's own system may wait for a peer (FUSE).
        // SAFETY: a plain system call on an open descriptor.
        if unsafe { libc::fcntl(fd.as_raw_fd(), libc::F_GET_SEALS) } < 0 {
            return Err(Refused::NotMemory(io::Error::last_os_error()));
        }
        let file = size(fd)?;
        if bytes == 0 {
            return Err(Refused::Empty);
        }
        if file < bytes {
            // If the file is cut short later, the region is lost.
            return Err(Refused::Short {
                announced: bytes,
                file,
            });
        }
        let region = Self::of(fd, bytes.min(REACH), libc::MAP_NORESERVE)?;
        let normal = before.iter().chain([&region]).filter(|r| !r.huge);
        match normal.map(|r| r.bytes).sum() {
            sum if sum > MAX_NORMAL => Err(Refused::Large(sum)),
            _ => Ok(region),
        }
    }

    fn of(fd: &OwnedFd, bytes: u64, flags: c_int) -> io::Result<Self> {
        let huge = huge_page(fd)?;
        // Only whole huge pages can be unmapped and replaced.
        let whole = bytes.next_multiple_of(huge.unwrap_or(1));
        let whole = usize::try_from(whole).map_err(io::Error::other)?;
        let mapping = Mapping::new(fd, whole, flags)?;
        Ok(Self {
            watch: Watch::new(mapping.base.cast(), mapping.bytes)?,
            mapping,
            bytes,
            huge: huge.is_some(),
        })
    }

    /// True if its memory went away: it reads as zeros since.
    pub fn is_lost(&self) -> bool {
        self.watch.is_lost()
    }

    #[cfg(test)]
    pub fn watch(&self) -> &Watch {
        &self.watch
    }

    /// Address of `len` bytes at `offset`, if they lie within the region.
    #[inline(always)]
    pub fn at(&self, offset: u32, len: u32) -> Option<NonNull<u8>> {
        if u64::from(offset) + u64::from(len) > self.bytes {
            return None;
        }
        // SAFETY: offset + len is within the mapping, as just checked.
        Some(unsafe { self.mapping.base.add(offset as usize) })
    }

    /// Address of `offset`, checked by nobody; only good for a prefetch.
    #[inline(always)]
    pub fn hint(&self, offset: u32) -> *const u8 {
        self.mapping.base.as_ptr().wrapping_add(offset as usize)
    }
}

impl Mapping {
    fn new(fd: &OwnedFd, bytes: usize, flags: c_int) -> io::Result<Self> {
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
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: mapped by `new` with this length; rings and queues hold the region by Arc, so
        // none is left.
        unsafe { libc::munmap(self.base.as_ptr().cast(), self.bytes) };
    }
}

/// Bytes of a huge page of a file that is made of them.
fn huge_page(fd: &OwnedFd) -> io::Result<Option<u64>> {
    // SAFETY: all-zero is a valid statfs.
    let mut stat: libc::statfs = unsafe { std::mem::zeroed() };
    // SAFETY: the structure is ours and outlives the call.
    match unsafe { libc::fstatfs(fd.as_raw_fd(), &mut stat) } {
        0 => Ok((stat.f_type == libc::HUGETLBFS_MAGIC).then_some(stat.f_bsize as u64)),
        _ => Err(io::Error::last_os_error()),
    }
}

fn size(fd: &OwnedFd) -> io::Result<u64> {
    // SAFETY: all-zero is a valid stat.
    let mut stat: libc::stat = unsafe { std::mem::zeroed() };
    // SAFETY: the structure is ours and outlives the call.
    match unsafe { libc::fstat(fd.as_raw_fd(), &mut stat) } {
        0 => Ok(stat.st_size as u64),
        _ => Err(io::Error::last_os_error()),
    }
}

/// True if a descriptor that came from the peer is an event counter, the one kind that may stand
/// for interrupts.
pub fn is_eventfd(fd: BorrowedFd<'_>) -> bool {
    std::fs::read_link(format!("/proc/self/fd/{}", fd.as_raw_fd())).is_ok_and(|name| {
        name.as_os_str()
            .to_string_lossy()
            .starts_with("anon_inode:[eventfd")
    })
}
