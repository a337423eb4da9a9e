//! The four rings of an AF_XDP socket, mapped from the kernel (linux/if_xdp.h).
//!
//! Producer and consumer count entries without end, modulo 2^32; one of them is ours. Entries go
//! over with the counters: each side writes its counter behind the entries (Release) and reads the
//! other's before it touches them (Acquire). The kernel is trusted not to be malicious, still a
//! count that cannot be is cut to the ring's size.
#![allow(unsafe_code)]

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicU32, Ordering, fence};

use rustix::net::xdp::XdpRingOffset;

/// One ring, seen from our side. Entries are plain values.
#[derive(Debug)]
pub struct Cursor<T: Copy> {
    map: NonNull<u8>,
    bytes: usize,
    /// Offsets of the counters in the mapping.
    producer: usize,
    consumer: usize,
    /// Offset of the flags, which tell whether the kernel sleeps.
    flags: usize,
    size: u32,
    /// Next entry that we write or read.
    pub ours: u32,
    /// The kernel's counter as last read.
    theirs: u32,
    entries: NonNull<T>,
}

// SAFETY: the mapping belongs to this cursor; the kernel's half is reached by atomics.
unsafe impl<T: Copy + Send> Send for Cursor<T> {}

impl<T: Copy> Cursor<T> {
    /// Maps the ring at page offset `at` of a socket, `size` entries (a power of two).
    pub fn map(fd: &OwnedFd, at: u64, offsets: XdpRingOffset, size: u32) -> io::Result<Self> {
        // Linux 5.4 and later have it.
        let flags = offsets.flags.ok_or(io::ErrorKind::Unsupported)?;
        let [producer, consumer, flags, first] =
            [offsets.producer, offsets.consumer, flags, offsets.desc]
                .map(|offset| usize::try_from(offset).map_err(io::Error::other));
        let first = first?;
        let bytes = first + size as usize * size_of::<T>();
        // SAFETY: a new mapping of a ring of the socket, at an address of the kernel's choice.
        let map = unsafe {
            libc::mmap(
                ptr::null_mut(),
                bytes,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED | libc::MAP_POPULATE,
                fd.as_raw_fd(),
                at as libc::off_t,
            )
        };
        if map == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let map = NonNull::new(map.cast::<u8>()).ok_or(io::ErrorKind::AddrNotAvailable)?;
        // SAFETY: the kernel's offset lies within the mapping.
        let entries = unsafe { map.add(first) }.cast();
        Ok(Self {
            map,
            bytes,
            producer: producer?,
            consumer: consumer?,
            flags: flags?,
            size,
            ours: 0,
            theirs: 0,
            entries,
        })
    }

    fn word(&self, offset: usize) -> &AtomicU32 {
        // SAFETY: the kernel's offsets lie within the mapping.
        let word = unsafe { self.map.add(offset) };
        // SAFETY: they are aligned to 4 bytes; all access is atomic.
        unsafe { word.cast().as_ref() }
    }

    /// True if the kernel wants a system call to go on with what was submitted.
    ///
    /// It sets the flag, then looks at the producer once more: the fence keeps our store before our
    /// look at the flag, so that one of the two is seen.
    #[inline(always)]
    pub fn needs_wakeup(&self) -> bool {
        fence(Ordering::SeqCst);
        self.word(self.flags).load(Ordering::Relaxed) & libc::XDP_RING_NEED_WAKEUP != 0
    }

    /// As the producer: places that are free. Looks at the kernel's counter only if fewer than
    /// `want` are known of.
    #[inline(always)]
    pub fn free(&mut self, want: u32) -> u32 {
        let free = |theirs: u32, ours: u32| self.size - ours.wrapping_sub(theirs).min(self.size);
        if free(self.theirs, self.ours) < want {
            self.theirs = self.word(self.consumer).load(Ordering::Acquire);
        }
        free(self.theirs, self.ours)
    }

    /// As the consumer: all entries that wait, as far as is known; the kernel is asked where those
    /// are fewer than `want`.
    #[inline(always)]
    pub fn filled(&mut self, want: u32) -> u32 {
        let filled = |theirs: u32, ours: u32| theirs.wrapping_sub(ours).min(self.size);
        if filled(self.theirs, self.ours) < want {
            self.theirs = self.word(self.producer).load(Ordering::Acquire);
        }
        filled(self.theirs, self.ours)
    }

    /// The place of the next entry.
    #[inline(always)]
    fn next(&self) -> NonNull<T> {
        let index = (self.ours & (self.size - 1)) as usize;
        // SAFETY: the index is masked to the ring's size.
        unsafe { self.entries.add(index) }
    }

    /// As the producer: writes the next entry; there must be a free place.
    #[inline(always)]
    pub fn push(&mut self, entry: T) {
        // SAFETY: the place is in the ring, and the kernel does not look at it yet.
        unsafe { self.next().write(entry) };
        self.ours = self.ours.wrapping_add(1);
    }

    /// As the consumer: reads the next entry; there must be one.
    #[inline(always)]
    pub fn pop(&mut self) -> T {
        // SAFETY: the place is in the ring, and the kernel has written it.
        let entry = unsafe { self.next().read() };
        self.ours = self.ours.wrapping_add(1);
        entry
    }

    /// As the producer: shows the kernel what was pushed.
    #[inline(always)]
    pub fn submit(&self) {
        self.word(self.producer).store(self.ours, Ordering::Release);
    }

    /// As the consumer: gives the kernel back the places that were popped.
    #[inline(always)]
    pub fn release(&self) {
        self.word(self.consumer).store(self.ours, Ordering::Release);
    }

    /// As the producer: entries that the kernel has not taken yet.
    pub fn pending(&mut self) -> u32 {
        self.size - self.free(u32::MAX)
    }
}

impl<T: Copy> Drop for Cursor<T> {
    fn drop(&mut self) {
        // SAFETY: mapped by `map` with this length.
        unsafe { libc::munmap(self.map.as_ptr().cast(), self.bytes) };
    }
}
