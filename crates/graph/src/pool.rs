//! Packet memory: one mapped pool for all ports and workers, shared with the kernel (AF_XDP umem) where a port asks for it.
//!
//! A buffer is `stride` bytes: the metadata (64 bytes, state that few packets have), headroom up to [`DATA`], then the packet.
//! A stride of an odd number of cache lines ([`STRIDE`]) spreads headers over all cache sets; AF_XDP's aligned chunks need
//! [`STRIDE_AF_XDP`].
#![allow(unsafe_code)]

use crate::desc::{Desc, Flag};
use crate::ring::FreeList;
use std::io;
use std::ops::RangeInclusive;
use std::ptr::NonNull;
use std::sync::{Arc, Mutex, PoisonError};

/// Default buffer distance in bytes: 33 cache lines.
pub const STRIDE: usize = 2112;
/// Buffer distance for a pool that is an AF_XDP umem with aligned chunks.
pub const STRIDE_AF_XDP: usize = 2048;
/// Where a received packet starts in its buffer: XDP_PACKET_HEADROOM of the kernel.
pub const DATA: u16 = 256;
/// Bytes that a node may look at from a packet's first byte on, whatever the packet's length.
pub const WINDOW: usize = 320;
/// Longest packet in bytes over all its buffers: 9216 and layer 2 headers.
pub const MAX_PACKET: usize = 9500;

const HUGE: usize = 2 << 20;

/// The pages that a pool (or table) got.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pages {
    /// Reserved huge pages (hugetlbfs).
    Huge,
    /// Ordinary pages that the kernel was asked to make huge (`madvise`).
    Transparent,
}

/// The first 64 bytes of every buffer: what few packets need. Only who builds, cuts and walks chains reads and writes it.
#[derive(Debug, Clone, Copy, Default)]
#[repr(C, align(64))]
pub(crate) struct Meta {
    /// Next segment's buffer, valid if `segments` is more than 1 (in the head) or counted down to it.
    next: u32,
    /// Offset of the next segment's first byte.
    next_off: u16,
    /// Length of the next segment.
    next_len: u16,
    /// Head only: bytes of the whole packet.
    pub(crate) total: u32,
    /// Segments from this one to the end, this one included.
    segments: u16,
    /// Trace handle of a traced packet.
    pub(crate) trace: u16,
}

impl Meta {
    /// The next segment.
    ///
    /// # Safety
    /// There is one, and whoever owns the packet uses it by one descriptor at a time.
    unsafe fn next(&self) -> Desc {
        // SAFETY: `Buffers::chain` wrote what a descriptor said that was given to the chain.
        unsafe { Desc::new(self.next, self.next_off, self.next_len) }
    }
}

/// The packet memory.
///
/// Descriptors carry the number of their pool: whoever looks for a packet in another pool than its own panics.
#[derive(Debug)]
pub struct Pool {
    base: NonNull<u8>,
    bytes: usize,
    stride: usize,
    /// Number of its first buffer: `SLOT` times its place among the pools of the process.
    first: u32,
    /// Where buffer number 0 would be, so that an address takes no more than number and stride.
    origin: *mut u8,
    count: u32,
    pages: Pages,
    free: FreeList,
}

/// Numbers that a pool has. The last of the last pool names no buffer ([`Desc::VACANT`]), so none uses its last.
const SLOT: u32 = 1 << 24;

/// Which of the numbers `0..256 * SLOT` are in use, by pool.
static SLOTS: Mutex<[bool; 256]> = Mutex::new([false; 256]);

/// Takes numbers for a pool.
fn number() -> io::Result<u32> {
    let mut slots = SLOTS.lock().unwrap_or_else(PoisonError::into_inner);
    let free = slots.iter_mut().zip(0..).find(|(used, _)| !**used);
    let (used, place) = free.ok_or_else(|| {
        io::Error::other("pool: the process has 256 pools, or had pools that lost packets")
    })?;
    *used = true;
    Ok(place * SLOT)
}

// SAFETY: the pool hands out each buffer to one owner at a time (FreeList); the mapping lives as long as the pool.
unsafe impl Send for Pool {}
// SAFETY: as above; all methods that reach packet bytes need the descriptor that owns the buffer, and check that it is of this pool.
unsafe impl Sync for Pool {}

impl Pool {
    /// Maps `count` buffers, `stride` bytes apart. Huge pages where some are reserved, else transparent ones are asked for.
    ///
    /// # Errors
    /// The operating system's, when the memory is not there; `InvalidInput` for no buffers or 2^24 and more, or a stride that
    /// is not a multiple of 64 in 2048..=16384; `Other` when the process has 256 pools already. One that was dropped counts while packets of it are left.
    pub fn new(count: u32, stride: usize) -> io::Result<Arc<Self>> {
        if !(2048..=16384).contains(&stride)
            || !stride.is_multiple_of(64)
            || count == 0
            || count >= SLOT
        {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "pool: 1 to 2^24 - 1 buffers of 2048 to 16384 bytes in steps of 64",
            ));
        }
        // The window of the last buffer may reach beyond it.
        let bytes = (count as usize * stride + WINDOW).next_multiple_of(HUGE);
        let (base, pages) = map(bytes)?;
        let first = number().inspect_err(|_| unmap(base, bytes))?;
        Ok(Arc::new(Pool {
            base,
            bytes,
            stride,
            first,
            origin: base.as_ptr().wrapping_sub(first as usize * stride),
            count,
            pages,
            free: FreeList::full(first, count),
        }))
    }

    /// First byte of the mapping (for a umem registration).
    pub fn base(&self) -> NonNull<u8> {
        self.base
    }
    /// Bytes mapped.
    pub fn bytes(&self) -> usize {
        self.bytes
    }
    /// Distance of two buffers in bytes.
    #[inline(always)]
    pub fn stride(&self) -> usize {
        self.stride
    }
    /// Number of buffers.
    pub fn count(&self) -> u32 {
        self.count
    }
    /// Buffers in the shared free list now; workers' and ports' buffers are not among them.
    pub fn available(&self) -> u32 {
        self.free.len()
    }
    /// Which pages it lies in.
    pub fn pages(&self) -> Pages {
        self.pages
    }
    /// Offsets that a packet may start at: behind the metadata, and so that its [`WINDOW`] stays inside of the buffer.
    #[inline(always)]
    pub fn offsets(&self) -> RangeInclusive<u16> {
        size_of::<Meta>() as u16..=(self.stride - WINDOW) as u16
    }
    /// Bytes of packet data that one buffer holds from [`DATA`] on.
    pub fn room(&self) -> u16 {
        (self.stride - DATA as usize) as u16
    }

    /// A packet of `len` bytes at `off` of a buffer that a port's ring owned, whose index [`Buffers::alloc_index`] gave.
    ///
    /// # Safety
    /// The caller owns the buffer and gives it up to the packet; `off` is one of [`Pool::offsets`], and `off + len` at most the
    /// stride.
    #[inline(always)]
    pub unsafe fn packet(&self, index: u32, off: u16, len: u16) -> Desc {
        debug_assert!(index < self.count);
        // SAFETY: as required of the caller.
        unsafe { Desc::new(self.first + index, off, len) }
    }

    /// Whether packets are this pool's whose buffers' numbers are `any` by OR and `all` by AND.
    #[inline(always)]
    pub(crate) fn owns(&self, any: u32, all: u32) -> bool {
        (any ^ self.first) < SLOT && (all ^ self.first) < SLOT
    }

    /// Index of a packet's first buffer.
    ///
    /// # Panics
    /// On a packet of another pool.
    #[inline(always)]
    pub fn index(&self, d: &Desc) -> u32 {
        let index = d.buf.wrapping_sub(self.first);
        if index >= self.count {
            foreign();
        }
        index
    }

    /// Address of a packet's first buffer.
    #[inline(always)]
    fn buffer(&self, d: &Desc) -> NonNull<u8> {
        // SAFETY: the index is below the count, so the address lies within the mapping.
        unsafe { self.base.add(self.index(d) as usize * self.stride) }
    }

    /// Address of a packet's first byte.
    #[inline(always)]
    pub fn data(&self, d: &Desc) -> NonNull<u8> {
        // SAFETY: off lies within the stride (`Desc` invariant).
        unsafe { self.buffer(d).add(d.off as usize) }
    }

    /// Address of a packet's first byte; of a packet of another pool, any.
    #[inline(always)]
    pub(crate) fn address(&self, d: &Desc) -> *mut u8 {
        self.origin
            .wrapping_add(d.buf as usize * self.stride + d.off as usize)
    }

    /// Asks for the packet's first cache line, to write.
    #[inline(always)]
    pub(crate) fn prefetch(&self, d: &Desc) {
        let at = self.address(d);
        #[cfg(target_arch = "x86_64")]
        // SAFETY: a prefetch touches nothing, whatever the address.
        unsafe {
            std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T0 }>(
                at.cast_const().cast(),
            );
        }
        #[cfg(not(target_arch = "x86_64"))]
        let _ = at;
    }

    /// The packet's first segment.
    #[inline]
    pub fn bytes_of<'a>(&'a self, d: &'a Desc) -> &'a [u8] {
        // SAFETY: off + len within the stride; the descriptor owns the buffer and is borrowed as long as the slice.
        unsafe { std::slice::from_raw_parts(self.data(d).as_ptr(), d.len as usize) }
    }

    /// The packet's first segment, to change.
    #[inline]
    pub fn bytes_of_mut<'a>(&'a self, d: &'a mut Desc) -> &'a mut [u8] {
        // SAFETY: as `bytes_of`, and the descriptor is borrowed mutably.
        unsafe { std::slice::from_raw_parts_mut(self.data(d).as_ptr(), d.len as usize) }
    }

    /// The metadata of a packet's first buffer.
    #[inline]
    pub(crate) fn meta<'a>(&'a self, d: &'a Desc) -> &'a Meta {
        // SAFETY: the first 64 bytes of a buffer are its metadata, any bit pattern is a valid one; the descriptor owns the buffer.
        unsafe { self.buffer(d).cast::<Meta>().as_ref() }
    }

    /// The metadata of a packet's first buffer, to change.
    #[inline]
    #[allow(clippy::mut_from_ref)]
    pub(crate) fn meta_mut<'a>(&'a self, d: &'a mut Desc) -> &'a mut Meta {
        // SAFETY: as `meta`, and the descriptor is borrowed mutably.
        unsafe { self.buffer(d).cast::<Meta>().as_mut() }
    }

    /// Buffers that a packet lies in.
    #[inline]
    pub fn buffers(&self, d: &Desc) -> u16 {
        if d.is_chained() {
            self.meta(d).segments
        } else {
            1
        }
    }

    /// Bytes of the whole packet, all its segments.
    #[inline(always)]
    pub fn total(&self, d: &Desc) -> usize {
        if d.is_chained() {
            self.meta(d).total as usize
        } else {
            d.len as usize
        }
    }

    /// Cuts a chained packet to its first `len` bytes (at least 1) and frees the buffers behind them. One that is not
    /// longer stays as it is.
    #[cold]
    pub(crate) fn shorten(&self, d: &mut Desc, len: usize) {
        let (mut kept, mut held) = (1, d.len as usize);
        let mut meta = *self.meta(d);
        let count = meta.segments;
        let next = |meta: &Meta| {
            // SAFETY: there is a next segment; the head, borrowed mutably, is its owner.
            unsafe { meta.next() }
        };
        while held < len && meta.segments > 1 {
            held += meta.next_len as usize;
            kept += 1;
            meta = *self.meta(&next(&meta));
        }
        let Some(over) = held.checked_sub(len) else {
            return;
        };
        // SAFETY: used only to reach the metadata, while the head is borrowed.
        let mut segment = unsafe { d.duplicate() };
        for left in (1..=kept).rev() {
            let meta = self.meta_mut(&mut segment);
            meta.segments = left;
            if left == 2 {
                meta.next_len -= over as u16;
            }
            segment = next(&*meta);
        }
        for _ in kept..count {
            let after = next(self.meta(&segment));
            self.free.give(&[segment.buf]);
            segment = after;
        }
        if kept == 1 {
            d.len -= over as u16;
            d.unmark(Flag::CHAINED);
        } else {
            self.meta_mut(d).total = len as u32;
        }
    }

    /// A copy of the whole packet, for tests and tools: it allocates.
    pub fn to_vec(&self, d: &Desc) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(self.total(d));
        self.segments(d, |s| bytes.extend_from_slice(s));
        bytes
    }

    /// Calls `f` with every segment in order.
    pub fn segments(&self, d: &Desc, mut f: impl FnMut(&[u8])) {
        f(self.bytes_of(d));
        if !d.is_chained() {
            return;
        }
        let mut meta = *self.meta(d);
        while meta.segments > 1 {
            // SAFETY: there is a next segment; the head, borrowed as long, is its owner.
            let seg = unsafe { meta.next() };
            f(self.bytes_of(&seg));
            meta = *self.meta(&seg);
        }
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        unmap(self.base, self.bytes);
        // While a packet of it is left its numbers may not come again.
        if self.free.len() == self.count {
            let mut slots = SLOTS.lock().unwrap_or_else(PoisonError::into_inner);
            slots[(self.first / SLOT) as usize] = false;
        }
    }
}

/// Ends a thread that took a packet of one pool to another.
#[cold]
#[inline(never)]
pub(crate) fn foreign() -> ! {
    panic!("a packet of another pool")
}

/// Ends a mapping of `map`.
fn unmap(base: NonNull<u8>, bytes: usize) {
    // SAFETY: called once for a mapping of `map`, with its length, by who owns it.
    unsafe { libc::munmap(base.as_ptr().cast(), bytes) };
}

fn map(bytes: usize) -> io::Result<(NonNull<u8>, Pages)> {
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

/// Buffers that a worker keeps before it turns to the shared list, at most.
const CACHE: usize = 1024;
/// How many it takes or gives back at a time.
const BULK: usize = 256;

/// One worker's way to the pool: takes and frees buffers in bulk, without a shared write for most.
#[derive(Debug)]
pub struct Buffers {
    pool: Arc<Pool>,
    cache: Vec<u32>,
}

impl Buffers {
    /// A cache over `pool`, empty at first.
    pub fn new(pool: Arc<Pool>) -> Self {
        Buffers {
            pool,
            cache: Vec::with_capacity(CACHE + BULK),
        }
    }

    /// The pool.
    #[inline(always)]
    pub fn pool(&self) -> &Pool {
        &self.pool
    }
    /// The pool, shared.
    pub fn share(&self) -> Arc<Pool> {
        self.pool.clone()
    }

    /// A free buffer as an empty packet at [`DATA`]; `None` when the pool is used up.
    #[inline]
    pub fn alloc(&mut self) -> Option<Desc> {
        let buf = match self.cache.pop() {
            Some(buf) => buf,
            None => self.refill()?,
        };
        // SAFETY: the free list gave this buffer to us alone.
        Some(unsafe { Desc::new(buf, DATA, 0) })
    }

    /// A free buffer as a packet of `len` bytes, whatever is in them, and the address of the first one. `None` when the pool is
    /// used up, or `len` is more than [`Pool::room`].
    #[inline(always)]
    pub fn alloc_len(&mut self, len: usize) -> Option<(Desc, NonNull<u8>)> {
        if len > usize::from(self.pool.room()) {
            return None;
        }
        let mut d = self.alloc()?;
        d.len = len as u16;
        // SAFETY: all that the cache holds is of its pool, so the address lies within the mapping.
        let first = unsafe { NonNull::new_unchecked(self.pool.address(&d)) };
        Some((d, first))
    }

    /// A free buffer's index for a port's receive ring, which owns it until the packet comes back.
    #[inline]
    pub fn alloc_index(&mut self) -> Option<u32> {
        self.alloc().map(|d| d.buf - self.pool.first)
    }

    /// Gives back one buffer that a port's ring owned.
    ///
    /// # Safety
    /// The index is of a buffer of this pool that the caller owned and uses no more.
    #[inline]
    pub unsafe fn free_index(&mut self, index: u32) {
        self.give(self.pool.first + index);
    }

    /// Puts a buffer that nobody owns any more into the cache.
    #[inline(always)]
    fn give(&mut self, buf: u32) {
        self.cache.push(buf);
        if self.cache.len() >= CACHE {
            self.spill();
        }
    }

    /// A packet with these bytes, over several buffers if it must; `None` when buffers are short or it is longer than [`MAX_PACKET`].
    pub fn copy_in(&mut self, bytes: &[u8]) -> Option<Desc> {
        if bytes.len() > MAX_PACKET {
            return None;
        }
        let room = self.pool.room() as usize;
        let mut head: Option<Desc> = None;
        let mut rest = bytes;
        loop {
            let part = &rest[..rest.len().min(room)];
            rest = &rest[part.len()..];
            let Some(mut seg) = self.alloc() else {
                if let Some(h) = head {
                    self.free(h);
                }
                return None;
            };
            seg.len = part.len() as u16;
            self.pool.bytes_of_mut(&mut seg).copy_from_slice(part);
            match head.as_mut() {
                None => head = Some(seg),
                Some(h) => self.chain(h, seg),
            }
            if rest.is_empty() {
                return head;
            }
        }
    }

    /// Appends `seg` (one buffer) to the packet `head`.
    ///
    /// # Panics
    /// When the packet has 65,535 buffers already: no port takes one of more than [`MAX_PACKET`] bytes.
    pub fn chain(&mut self, head: &mut Desc, mut seg: Desc) {
        let pool = &self.pool;
        *pool.meta_mut(&mut seg) = Meta {
            segments: 1,
            ..Meta::default()
        };
        if !head.is_chained() {
            let total = u32::from(head.len);
            *pool.meta_mut(head) = Meta {
                total,
                segments: 1,
                ..*pool.meta(head)
            };
            head.mark(Flag::CHAINED);
        }
        assert!(pool.buffers(head) < u16::MAX, "a packet of 65,536 buffers");
        // SAFETY: duplicates are used only to reach the metadata of buffers that `head` owns, one at a time.
        let mut last = unsafe { head.duplicate() };
        loop {
            let meta = pool.meta_mut(&mut last);
            meta.segments += 1;
            if meta.segments == 2 {
                (meta.next, meta.next_off, meta.next_len) = (seg.buf, seg.off, seg.len);
                break;
            }
            // SAFETY: a later segment of the same chain.
            last = unsafe { meta.next() };
        }
        pool.meta_mut(head).total += u32::from(seg.len);
    }

    /// Takes a packet apart: calls `f` with every buffer as a packet of its own, in order.
    pub fn unchain(&mut self, mut d: Desc, mut f: impl FnMut(&mut Self, Desc)) {
        let mut left = if d.is_chained() {
            self.pool.meta(&d).segments
        } else {
            1
        };
        loop {
            let meta = *self.pool.meta(&d);
            d.unmark(Flag::CHAINED);
            f(self, d);
            left -= 1;
            if left == 0 {
                return;
            }
            // SAFETY: the next segment; the head that owned it was just taken apart.
            d = unsafe { meta.next() };
        }
    }

    /// Cuts or extends the first segment to `len` bytes from its first byte on.
    ///
    /// Returns false (and leaves it alone) if that does not fit into the buffer or the packet is chained.
    pub fn resize(&self, d: &mut Desc, len: usize) -> bool {
        // The stride of another pool would be another.
        self.pool.index(d);
        if d.is_chained() || len > self.pool.stride - d.off as usize {
            return false;
        }
        d.len = len as u16;
        true
    }

    /// Frees all segments of a packet but the first.
    pub fn cut_chain(&mut self, d: &mut Desc) {
        if d.is_chained() {
            let meta = *self.pool.meta(d);
            // SAFETY: the second segment, whose metadata counts the rest; the head gives it up here.
            let mut rest = unsafe { meta.next() };
            rest.mark(Flag::CHAINED);
            self.free(rest);
            d.unmark(Flag::CHAINED);
        }
    }

    /// Frees a packet, all its buffers.
    #[inline]
    pub fn free(&mut self, d: Desc) {
        if d.is_chained() {
            return self.free_chain(d);
        }
        self.pool.index(&d);
        self.give(d.buf);
    }

    #[cold]
    fn free_chain(&mut self, d: Desc) {
        self.unchain(d, |bufs, seg| bufs.free(seg));
    }

    /// Buffers in this cache.
    pub fn cached(&self) -> usize {
        self.cache.len()
    }

    #[cold]
    fn refill(&mut self) -> Option<u32> {
        self.pool.free.take(&mut self.cache, BULK);
        self.cache.pop()
    }

    #[cold]
    fn spill(&mut self) {
        let from = self.cache.len() - BULK;
        self.pool.free.give(&self.cache[from..]);
        self.cache.truncate(from);
    }
}

impl Drop for Buffers {
    fn drop(&mut self) {
        self.pool.free.give(&self.cache);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn no_buffer_has_the_number_of_a_vacant_place() {
        let refused = Pool::new(SLOT, STRIDE).expect_err("its last number is no buffer's");
        assert_eq!(refused.kind(), io::ErrorKind::InvalidInput);
        assert_eq!(Desc::VACANT.buf, 255 * SLOT + (SLOT - 1));
    }

    #[test]
    fn numbers_come_again_when_no_packet_carries_them() {
        let pool = Pool::new(4, STRIDE).unwrap();
        let (first, left) = (pool.first, Buffers::new(pool.clone()).alloc().unwrap());
        drop(pool);
        for _ in 0..600 {
            let pool = Pool::new(4, STRIDE).unwrap();
            assert_ne!(pool.first, first, "a packet of an earlier pool is left");
            assert!(!pool.owns(left.buf, left.buf));
        }
    }
}
