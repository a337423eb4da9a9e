//! The packet descriptor: all the metadata a packet has on its way, 16 bytes, moved by value.

/// Bits of [`Desc::flags`].
pub mod flags {
    /// The packet goes on in further buffers: see [`crate::pool::Annex`].
    pub const CHAINED: u8 = 1;
    /// Every node that this packet passes writes a trace record.
    pub const TRACED: u8 = 1 << 1;
    /// The router made this packet itself (an ICMP error, a fragment): no further error is sent about it.
    pub const OURS: u8 = 1 << 2;
}

/// One packet: a buffer of the [`crate::Pool`] and where its bytes lie in it.
///
/// A descriptor owns its buffer. It is not `Clone`: who takes it frees it, sends it or hands it on.
/// `buf` and `off` are private so that safe code can never name memory outside of the pool.
#[derive(Debug)]
#[repr(C, align(16))]
pub struct Desc {
    pub(crate) buf: u32,
    pub(crate) off: u16,
    pub(crate) len: u16,
    /// Interface that it was received on.
    pub rx_if: u16,
    /// Offset of the network header from the first byte, in bytes.
    pub l3: u8,
    /// [`flags`].
    pub flags: u8,
    /// Before the look-up: free for the nodes' use. After it: the adjacency. At interface output: the interface to leave by.
    pub adj: u32,
}

const _: () = assert!(size_of::<Desc>() == 16);

impl Desc {
    /// A descriptor of buffer `buf` with `len` bytes at `off`.
    ///
    /// # Safety
    /// The caller owns the buffer (from [`crate::Buffers::alloc`] or a port's ring), `off + len` lies within the pool's stride and
    /// `off` at most [`crate::Pool::max_offset`].
    #[inline(always)]
    pub const unsafe fn new(buf: u32, off: u16, len: u16) -> Self {
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

    /// Index of its (first) buffer.
    #[inline(always)]
    pub const fn buf(&self) -> u32 {
        self.buf
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

    /// Whether any of the bits is set.
    #[inline(always)]
    pub const fn has(&self, bits: u8) -> bool {
        self.flags & bits != 0
    }

    /// A second descriptor of the same packet, for who moves descriptors between memories.
    ///
    /// # Safety
    /// Exactly one of the two may be used from here on.
    #[inline(always)]
    pub const unsafe fn duplicate(&self) -> Self {
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

    /// An empty place in a frame or ring. It owns nothing.
    pub(crate) const EMPTY: Desc = Desc {
        buf: u32::MAX,
        off: 0,
        len: 0,
        rx_if: 0,
        l3: 0,
        flags: 0,
        adj: 0,
    };
}
