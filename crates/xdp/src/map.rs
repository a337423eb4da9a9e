//! Maps, and their memory as ours.
#![allow(unsafe_code)]

use std::any::Any;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::ptr::{self, NonNull};
use std::sync::Arc;

use tables::mem::Cells;

use crate::error::Error;
use crate::sys::{self, MapSpec};

/// `enum bpf_map_type`.
pub(crate) const ARRAY: u32 = 2;
pub(crate) const PERCPU_ARRAY: u32 = 6;
pub(crate) const ARRAY_OF_MAPS: u32 = 12;
pub(crate) const DEVMAP: u32 = 14;
/// `BPF_F_MMAPABLE`.
pub(crate) const MMAPABLE: u32 = 1 << 10;

/// A map with keys of 32 bits.
#[derive(Debug)]
pub(crate) struct Map {
    fd: OwnedFd,
    spec: MapSpec,
}

impl Map {
    /// A new map; `name` is seen in `bpftool map`.
    pub fn new(spec: MapSpec, name: &str) -> Result<Self, Error> {
        Self::make(spec, None, name)
    }

    /// A new map whose values are maps like `inner`.
    pub fn of_maps(spec: MapSpec, inner: &Self, name: &str) -> Result<Self, Error> {
        Self::make(spec, Some(inner.fd.as_fd()), name)
    }

    fn make(spec: MapSpec, inner: Option<BorrowedFd<'_>>, name: &str) -> Result<Self, Error> {
        assert_eq!(spec.key, 4, "keys are 32 bits");
        let fd = sys::map_create(&spec, inner, name).map_err(Error::doing("making a BPF map"))?;
        Ok(Self { fd, spec })
    }

    /// Puts a descriptor (a socket, a map) or the index of a device at `key`.
    pub fn set(&self, key: u32, value: u32) -> io::Result<()> {
        assert_eq!(self.spec.value, 4, "the map holds 32-bit values");
        // SAFETY: key and value are both 4 bytes, which is what the map has.
        unsafe { sys::map_update(self.fd.as_fd(), &key.to_ne_bytes(), &value.to_ne_bytes()) }
    }

    /// Empties `key`, if there is anything.
    pub fn unset(&self, key: u32) -> io::Result<()> {
        // SAFETY: the key is 4 bytes, which is what the map has.
        match unsafe { sys::map_delete(self.fd.as_fd(), &key.to_ne_bytes()) } {
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(()),
            done => done,
        }
    }

    /// True if there is anything at `key`.
    pub fn has(&self, key: u32) -> io::Result<bool> {
        assert_eq!(self.spec.value, 4, "the map holds 32-bit values");
        let mut value = [0; 4];
        // SAFETY: key and value are both 4 bytes, which is what the map has.
        match unsafe { sys::map_lookup(self.fd.as_fd(), &key.to_ne_bytes(), &mut value) } {
            Ok(()) => Ok(true),
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(e) => Err(e),
        }
    }

    /// The 64-bit words of a per-CPU element, summed over all CPUs.
    pub fn sum<const N: usize>(&self, key: u32) -> io::Result<[u64; N]> {
        assert!(self.spec.kind == PERCPU_ARRAY && self.spec.value as usize == N * 8);
        let mut words = vec![0u8; possible_cpus()? * N * 8];
        // SAFETY: the key is 4 bytes; the value has room for `N` words for each possible CPU.
        unsafe { sys::map_lookup(self.fd.as_fd(), &key.to_ne_bytes(), &mut words)? };
        let mut sum = [0; N];
        for (i, word) in words.as_chunks().0.iter().enumerate() {
            sum[i % N] += u64::from_ne_bytes(*word);
        }
        Ok(sum)
    }

    /// Maps the array's memory into the process.
    pub fn mapping(&self) -> Result<Mapping, Error> {
        assert!(self.spec.kind == ARRAY && self.spec.flags & MMAPABLE != 0);
        let len = (self.spec.value as usize).next_multiple_of(8) * self.spec.entries as usize;
        Mapping::new(self.fd.as_fd(), len).map_err(Error::doing("mapping a BPF array"))
    }

    /// The array's memory as the words of a table.
    pub fn cells(&self) -> Result<Cells, Error> {
        let mapping = self.mapping()?;
        let (words, at) = (mapping.len / 4, mapping.at.as_ptr().cast());
        let owner: Arc<dyn Any + Send + Sync> = Arc::new(mapping);
        // SAFETY: the mapping has `words` words, is writable, page-aligned, and lives as long as
        // its owner, which this hands over; nobody else writes it from userspace.
        Ok(unsafe { Cells::from_raw(at, words, owner) })
    }
}

impl AsFd for Map {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// The number of CPUs that per-CPU values have slots for: the end of
/// `/sys/devices/system/cpu/possible`.
fn possible_cpus() -> io::Result<usize> {
    let text = std::fs::read_to_string("/sys/devices/system/cpu/possible")?;
    let last = text
        .trim()
        .rsplit([',', '-'])
        .next()
        .and_then(|last| last.parse::<usize>().ok());
    last.map(|last| last + 1)
        .ok_or_else(|| io::Error::other(format!("not a list of CPUs: {text:?}")))
}

/// A type that may lie in memory shared with a program: made of atomics only, so that any bytes are
/// valid and any thread or program may change them.
///
/// # Safety
/// The type must be `repr(C)` and consist of atomic integers and arrays of them.
pub(crate) unsafe trait Shared: Sync {}

/// An array's memory, with an inaccessible page before and after it: a wrong index faults instead
/// of writing into another map.
#[derive(Debug)]
pub(crate) struct Mapping {
    /// Start and length of the whole reservation.
    reserved: (NonNull<libc::c_void>, usize),
    at: NonNull<libc::c_void>,
    len: usize,
}

// SAFETY: the memory is plain shared memory that no thread owns; access goes through atomics.
unsafe impl Send for Mapping {}
// SAFETY: shared references give addresses and atomics only.
unsafe impl Sync for Mapping {}

impl Mapping {
    fn new(fd: BorrowedFd<'_>, len: usize) -> io::Result<Self> {
        // SAFETY: sysconf has no preconditions.
        let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
        let page = usize::try_from(page).map_err(io::Error::other)?;
        let inner = len.next_multiple_of(page);
        let reserved = inner + 2 * page;
        let none = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        // SAFETY: a new mapping wherever the kernel likes; nothing is replaced.
        let start =
            check(unsafe { libc::mmap(ptr::null_mut(), reserved, libc::PROT_NONE, none, -1, 0) })?;
        let mut mapping = Self {
            reserved: (start, reserved),
            at: start,
            len,
        };
        let (access, shared) = (
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_SHARED | libc::MAP_FIXED,
        );
        // SAFETY: one page into the reservation.
        let inside = unsafe { start.as_ptr().byte_add(page) };
        // SAFETY: the reservation has `inner` bytes there, so the range is ours to replace.
        mapping.at =
            check(unsafe { libc::mmap(inside, inner, access, shared, fd.as_raw_fd(), 0) })?;
        Ok(mapping)
    }

    /// The memory as a structure.
    ///
    /// # Panics
    /// If the structure's size is not the map's: the program's source and ours disagree.
    pub fn view<T: Shared>(&self) -> &T {
        assert_eq!(size_of::<T>(), self.len, "size of the shared structure");
        // SAFETY: page-aligned memory of exactly this size, which lives as long as the borrow;
        // `Shared` says that any bytes are valid and that changes by others are expected.
        unsafe { self.at.cast::<T>().as_ref() }
    }
}

fn check(got: *mut libc::c_void) -> io::Result<NonNull<libc::c_void>> {
    if got == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    NonNull::new(got).ok_or_else(|| io::Error::other("mapped at address zero"))
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the reservation is ours, and whoever could still use it would hold us.
        unsafe { libc::munmap(self.reserved.0.as_ptr(), self.reserved.1) };
    }
}
