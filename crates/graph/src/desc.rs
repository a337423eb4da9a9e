//! The packet descriptor: all the metadata a packet has on its way, 16 bytes, moved by value.
#![allow(unsafe_code)]

/// One bit of a packet's state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Flag(u8);

impl Flag {
    /// The packet goes on in further buffers, as its metadata says. Only code that builds and cuts
    /// chains sets this.
    pub(crate) const CHAINED: Flag = Flag(1);
    /// Every node that this packet passes writes a trace record.
    pub(crate) const TRACED: Flag = Flag(1 << 1);
    /// The router made this packet itself (an ICMP error, a TCP reset, the outer packet of a
    /// tunnel): no further error is sent about it, and the firewall does not ask about it. Fragments
    /// of a packet are the router's own if that is.
    pub const OURS: Flag = Flag(1 << 2);
    /// The packet is in a tunnel of the router: it enters no other, nor leaves this one here.
    pub const TUNNELED: Flag = Flag(1 << 3);
    /// The packet's metadata has a word for a later node. Only what writes and copies that sets this.
    pub(crate) const NOTED: Flag = Flag(1 << 4);
}

/// One packet: a buffer of the [`crate::Pool`] and where its bytes lie in it.
///
/// A descriptor owns its buffer. It is not `Clone`: its owner frees it, sends it or hands it on;
/// dropping it loses the buffer until the end of the pool. Buffer, offset, length and chain are
/// private, so that safe code reaches no memory but the packet's.
#[derive(Debug)]
#[repr(C, align(16))]
pub struct Desc {
    /// The pool's first number and the buffer's index in it.
    pub(crate) buf: u32,
    pub(crate) off: u16,
    pub(crate) len: u16,
    /// Interface that received it.
    pub rx_if: u16,
    /// Offset of the network header from the first byte, in bytes.
    pub l3: u8,
    flags: u8,
    /// A word from one node to the next. The two agree on what it is: adjacency, interface or
    /// argument.
    word: u32,
}

const _: () = assert!(size_of::<Desc>() == 16);

impl Desc {
    /// A descriptor of buffer `buf` (the pool's first number and the index) with `len` bytes at
    /// `off`.
    ///
    /// # Safety
    /// The caller owns the buffer; `off` is one of [`crate::Pool::offsets`], and `off + len` at
    /// most the pool's stride.
    #[inline(always)]
    pub(crate) const unsafe fn new(buf: u32, off: u16, len: u16) -> Self {
        Desc {
            buf,
            off,
            len,
            rx_if: 0,
            l3: 0,
            flags: 0,
            word: 0,
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

    /// Its adjacency, behind a look-up.
    #[inline(always)]
    pub const fn adjacency(&self) -> u32 {
        self.word
    }

    /// The interface that it leaves by, on an edge to one.
    #[inline(always)]
    pub const fn tx_if(&self) -> u16 {
        self.word as u16
    }

    /// A word from the node before to the next, such as the error to be sent about the packet.
    #[inline(always)]
    pub const fn argument(&self) -> u32 {
        self.word
    }

    /// Sets the [`adjacency`](Self::adjacency). It takes the place of interface and argument.
    #[inline(always)]
    pub const fn set_adjacency(&mut self, adjacency: u32) {
        self.word = adjacency;
    }

    /// Sets the [`interface to leave by`](Self::tx_if). It takes the place of adjacency and
    /// argument.
    #[inline(always)]
    pub const fn set_tx_if(&mut self, interface: u16) {
        self.word = interface as u32;
    }

    /// Sets the [`argument`](Self::argument). It takes the place of adjacency and interface.
    #[inline(always)]
    pub const fn set_argument(&mut self, argument: u32) {
        self.word = argument;
    }

    /// True if the flag is set.
    #[inline(always)]
    pub const fn has(&self, flag: Flag) -> bool {
        self.flags & flag.0 != 0
    }

    /// Sets the flag.
    #[inline(always)]
    pub const fn mark(&mut self, flag: Flag) {
        self.flags |= flag.0;
    }

    /// True for a copy of [`Desc::VACANT`], which stands for no packet.
    #[inline(always)]
    pub(crate) const fn is_vacant(&self) -> bool {
        self.buf == Desc::VACANT.buf
    }

    /// Clears the flag.
    #[inline(always)]
    pub(crate) const fn unmark(&mut self, flag: Flag) {
        self.flags &= !flag.0;
    }

    /// True if there is a [note](crate::Pkt::note) with the packet.
    #[inline(always)]
    pub const fn is_noted(&self) -> bool {
        self.has(Flag::NOTED)
    }

    /// True if the packet lies in several buffers.
    #[inline(always)]
    pub const fn is_chained(&self) -> bool {
        self.has(Flag::CHAINED)
    }

    /// Takes over what nodes have written into the descriptor of another packet, of which this one
    /// is a copy or a part.
    #[inline]
    pub const fn inherit(&mut self, from: &Desc) {
        const NOT: u8 = Flag::CHAINED.0 | Flag::TRACED.0 | Flag::NOTED.0;
        (self.rx_if, self.l3, self.word) = (from.rx_if, from.l3, from.word);
        self.flags = self.flags & NOT | from.flags & !NOT;
    }

    /// Forgets what nodes have written into it, as if the packet had just been received.
    #[inline(always)]
    pub const fn reset(&mut self) {
        (self.rx_if, self.l3, self.word) = (0, 0, 0);
        self.flags &= Flag::CHAINED.0;
    }

    /// A second descriptor of the same packet, to move it from one place in memory to another.
    ///
    /// # Safety
    /// Only one of the two may be used from here on.
    #[inline(always)]
    pub(crate) const unsafe fn duplicate(&self) -> Self {
        Desc {
            buf: self.buf,
            off: self.off,
            len: self.len,
            rx_if: self.rx_if,
            l3: self.l3,
            flags: self.flags,
            word: self.word,
        }
    }

    /// Stands for no packet. Safe code outside this crate never sees it.
    pub(crate) const VACANT: Desc = Desc {
        buf: u32::MAX,
        off: 0,
        len: 0,
        rx_if: 0,
        l3: 0,
        flags: 0,
        word: 0,
    };
}
