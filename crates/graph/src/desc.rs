//! The packet descriptor: all the metadata a packet has on its way, 16 bytes, moved by value.
#![allow(unsafe_code)]

/// One bit of a descriptor's state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Flag(u8);

impl Flag {
    /// The packet goes on in further buffers, as its metadata says. Only who builds and cuts chains sets it.
    pub(crate) const CHAINED: Flag = Flag(1);
    /// Every node that this packet passes writes a trace record.
    pub(crate) const TRACED: Flag = Flag(1 << 1);
    /// The router made this packet itself (an ICMP error, a fragment): no further error is sent about it.
    pub const OURS: Flag = Flag(1 << 2);
}

/// One packet: a buffer of the [`crate::Pool`] and where its bytes lie in it.
///
/// A descriptor owns its buffer. It is not `Clone`: who takes it frees it, sends it or hands it on; who drops it loses the
/// buffer until the end of the pool. Buffer, offset, length and chain are private, so that safe code names no memory that
/// is not the packet's.
#[derive(Debug)]
#[repr(C, align(16))]
pub struct Desc {
    /// The pool's first number and the buffer's index in it.
    pub(crate) buf: u32,
    pub(crate) off: u16,
    pub(crate) len: u16,
    /// Interface that it was received on.
    pub rx_if: u16,
    /// Offset of the network header from the first byte, in bytes.
    pub l3: u8,
    flags: u8,
    /// Before the look-up: free for the nodes' use. After it: the adjacency. At interface output: the interface to leave by.
    pub adj: u32,
}

const _: () = assert!(size_of::<Desc>() == 16);

impl Desc {
    /// A descriptor of buffer `buf` (the pool's first number and the index) with `len` bytes at `off`.
    ///
    /// # Safety
    /// The caller owns the buffer; `off` is one of [`crate::Pool::offsets`], and `off + len` at most the pool's stride.
    #[inline(always)]
    pub(crate) const unsafe fn new(buf: u32, off: u16, len: u16) -> Self {
        Desc {
            buf,
            off,
            len,
            rx_if: 0,
            l3: 0,
            flags: 0,
            adj: 0,
        }
    }

    /// Offset of the first byte in the buffer.
    #[inline(always)]
    pub const fn off(&self) -> u16 {
        self.off
    }

    /// Bytes in the first buffer.
    #[inline(always)]
    #[allow(clippy::len_without_is_empty)]
    pub const fn len(&self) -> u16 {
        self.len
    }

    /// Whether it is marked so.
    #[inline(always)]
    pub const fn has(&self, flag: Flag) -> bool {
        self.flags & flag.0 != 0
    }

    /// Marks it.
    #[inline(always)]
    pub const fn mark(&mut self, flag: Flag) {
        self.flags |= flag.0;
    }

    /// Takes the mark away.
    #[inline(always)]
    pub(crate) const fn unmark(&mut self, flag: Flag) {
        self.flags &= !flag.0;
    }

    /// Whether the packet lies in several buffers.
    #[inline(always)]
    pub const fn is_chained(&self) -> bool {
        self.has(Flag::CHAINED)
    }

    /// Forgets what the nodes wrote into it: a packet as just received.
    #[inline(always)]
    pub const fn reset(&mut self) {
        (self.rx_if, self.l3, self.adj) = (0, 0, 0);
        self.flags &= Flag::CHAINED.0;
    }

    /// A second descriptor of the same packet, for who moves descriptors between memories.
    ///
    /// # Safety
    /// Exactly one of the two may be used from here on.
    #[inline(always)]
    pub(crate) const unsafe fn duplicate(&self) -> Self {
        Desc {
            buf: self.buf,
            off: self.off,
            len: self.len,
            rx_if: self.rx_if,
            l3: self.l3,
            flags: self.flags,
            adj: self.adj,
        }
    }

    /// What a place holds that has never been filled. Nobody is shown it.
    pub(crate) const VACANT: Desc = Desc {
        buf: u32::MAX,
        off: 0,
        len: 0,
        rx_if: 0,
        l3: 0,
        flags: 0,
        adj: 0,
    };
}
