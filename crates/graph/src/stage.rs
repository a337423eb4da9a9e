//! Stages: what is done to one packet, written once. A node runs a stage over a frame; [`Fused`] fuses two stages into one node.
#![allow(unsafe_code)]

use crate::desc::Desc;
use crate::pool::{Pool, WINDOW};
use std::ptr::NonNull;

/// Where an edge leads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum To {
    /// To the node of this name.
    Node(&'static str),
    /// To the interface in the descriptor's `adj`.
    Interface,
    /// The packet ends here, for this reason.
    Drop(&'static str),
}

/// One way out of a stage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Edge {
    /// Name of the variant.
    pub name: &'static str,
    /// Where it leads.
    pub to: To,
}

/// The ways out of a stage; an enum made by [`crate::edges!`].
pub trait Edges: Copy + Send + 'static {
    /// Number of ways.
    const COUNT: usize;
    /// All of them, in order of [`Edges::index`].
    fn table() -> Vec<Edge>;
    /// Position in [`Edges::table`].
    fn index(self) -> u8;
}

/// Declares the edges of a stage: a variant, and where it leads. Errors are edges that end in `Drop`, with their reason.
#[macro_export]
macro_rules! edges {
    ($(#[$meta:meta])* $vis:vis enum $name:ident { $($(#[$vmeta:meta])* $variant:ident => $kind:ident $(($arg:expr))?),+ $(,)? }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        #[repr(u8)]
        $vis enum $name { $($(#[$vmeta])* $variant),+ }
        impl $crate::Edges for $name {
            const COUNT: usize = [$(stringify!($variant)),+].len();
            fn table() -> Vec<$crate::Edge> {
                vec![$($crate::Edge { name: stringify!($variant), to: $crate::To::$kind $(($arg))? }),+]
            }
            #[inline(always)]
            fn index(self) -> u8 {
                self as u8
            }
        }
    };
}

/// A packet in a node's hands: its descriptor and a window of [`WINDOW`] bytes from its first byte on.
///
/// The window is always readable; how many of its bytes belong to the packet is [`Pkt::len`], to be checked once, as protocol.
///
/// It reads as its descriptor; that itself stays where it is, so that the window is always the packet's.
pub struct Pkt<'a> {
    d: &'a mut Desc,
    window: NonNull<[u8; WINDOW]>,
    pool: &'a Pool,
}

impl<'a> Pkt<'a> {
    /// The packet that `d` owns.
    ///
    /// # Panics
    /// When it is of another pool.
    #[inline(always)]
    pub fn new(pool: &'a Pool, d: &'a mut Desc) -> Self {
        pool.index(d);
        // SAFETY: it is of this pool, or else the line before has panicked.
        unsafe { Pkt::known(pool, d) }
    }

    /// As [`Pkt::new`], without a check.
    ///
    /// # Safety
    /// The packet is of this pool.
    #[inline(always)]
    pub(crate) unsafe fn known(pool: &'a Pool, d: &'a mut Desc) -> Self {
        Pkt {
            // SAFETY: the address of a packet of this pool lies within its mapping.
            window: unsafe { NonNull::new_unchecked(pool.address(d)) }.cast(),
            d,
            pool,
        }
    }

    /// Sets the descriptor's `adj`.
    #[inline(always)]
    pub fn set_adj(&mut self, adj: u32) {
        self.d.adj = adj;
    }

    /// Sets the offset of the network header.
    #[inline(always)]
    pub fn set_l3(&mut self, offset: u8) {
        self.d.l3 = offset;
    }

    /// Bytes in the first segment.
    #[inline(always)]
    #[allow(clippy::len_without_is_empty)]
    pub fn len(&self) -> usize {
        self.d.len as usize
    }

    /// Bytes of the whole packet.
    #[inline(always)]
    pub fn total(&self) -> usize {
        self.pool.total(self.d)
    }

    /// `N` bytes at offset `at` of the window, whether or not the packet is that long. `N` is at most 64.
    #[inline(always)]
    pub fn at<const N: usize>(&self, at: u8) -> &[u8; N] {
        const { assert!(N <= WINDOW - 256) };
        // SAFETY: at + N <= 255 + 64 < WINDOW bytes, which the buffer has from the first byte on (`Pool::offsets`).
        unsafe {
            self.window
                .cast::<u8>()
                .add(at as usize)
                .cast::<[u8; N]>()
                .as_ref()
        }
    }

    /// The same, to change.
    #[inline(always)]
    pub fn at_mut<const N: usize>(&mut self, at: u8) -> &mut [u8; N] {
        const { assert!(N <= WINDOW - 256) };
        // SAFETY: as `at`, and the packet is borrowed mutably.
        unsafe {
            self.window
                .cast::<u8>()
                .add(at as usize)
                .cast::<[u8; N]>()
                .as_mut()
        }
    }

    /// The first segment.
    #[inline(always)]
    pub fn bytes(&self) -> &[u8] {
        self.pool.bytes_of(self.d)
    }

    /// The first segment, to change.
    #[inline(always)]
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        self.pool.bytes_of_mut(self.d)
    }

    /// Moves the first byte by `by`: negative grows into the headroom. False, and nothing changed, if that does not fit.
    #[inline]
    pub fn shift(&mut self, by: i32) -> bool {
        let off = i64::from(self.d.off) + i64::from(by);
        let len = i64::from(self.d.len) - i64::from(by);
        let fits = u16::try_from(off).is_ok_and(|off| self.pool.offsets().contains(&off));
        if !fits || len < 0 {
            return false;
        }
        if self.d.is_chained() {
            let meta = self.pool.meta_mut(self.d);
            meta.total = (meta.total as i32 - by) as u32;
        }
        self.d.off = off as u16;
        self.d.len = len as u16;
        // SAFETY: within the same buffer, as was just compared.
        self.window = unsafe { self.window.byte_offset(by as isize) };
        true
    }

    /// Cuts the packet to its first `len` bytes, at least 1 (what is behind is padding). Does nothing if it is not longer.
    #[inline]
    pub fn truncate(&mut self, len: usize) {
        if self.d.is_chained() {
            self.pool.shorten(self.d, len);
        } else if len < self.d.len as usize {
            self.d.len = len as u16;
        }
    }
}

impl std::ops::Deref for Pkt<'_> {
    type Target = Desc;

    #[inline(always)]
    fn deref(&self) -> &Desc {
        self.d
    }
}

/// One stage of the packet's way: a protocol's work on one packet. `C` is what the stages of a graph share: tables, snapshot.
pub trait Stage<C>: Send + 'static {
    /// Name in `show runtime` and `show errors`: `<layer>-<verb>`.
    const NAME: &'static str;
    /// Its ways out.
    type Next: Edges;
    /// The way that nearly all packets take.
    const THRU: Self::Next;
    /// Packets ahead whose headers are prefetched; 0 where they have been touched before.
    const HEADERS_AHEAD: usize = 0;
    /// Packets ahead for which [`Stage::hint`] is called; 0 for never.
    const HINT_AHEAD: usize = 0;

    /// The protocol, once.
    fn packet(&mut self, cx: &C, p: &mut Pkt<'_>) -> Self::Next;

    /// Which table line will be needed: prefetch it.
    #[inline(always)]
    fn hint(&self, _cx: &C, _p: &Pkt<'_>) {}

    /// The stages that it is made of, for counters.
    fn stages() -> Vec<StageInfo> {
        vec![StageInfo {
            name: Self::NAME,
            edges: Self::Next::table(),
            thru: Self::THRU.index() as usize,
        }]
    }
}

/// A stage inside a node, as counters see it.
#[derive(Debug, Clone)]
pub struct StageInfo {
    /// The stage's name.
    pub name: &'static str,
    /// Its edges.
    pub edges: Vec<Edge>,
    /// Index of its through edge.
    pub thru: usize,
}

/// Two stages as one: what takes the first one's through edge goes on in the second at once.
///
/// Edges are the first stage's, then the second's. The first one's through edge is never counted: its count is a difference.
pub struct Fused<A, B>(pub A, pub B);

/// The ways out of [`Fused`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Either<A, B> {
    /// Left at the first stage.
    First(A),
    /// Left at the second stage.
    Second(B),
}

impl<A: Edges, B: Edges> Edges for Either<A, B> {
    const COUNT: usize = A::COUNT + B::COUNT;
    fn table() -> Vec<Edge> {
        let mut table = A::table();
        table.extend(B::table());
        table
    }
    #[inline(always)]
    fn index(self) -> u8 {
        match self {
            Either::First(a) => a.index(),
            Either::Second(b) => A::COUNT as u8 + b.index(),
        }
    }
}

impl<C, A: Stage<C>, B: Stage<C>> Stage<C> for Fused<A, B> {
    const NAME: &'static str = A::NAME;
    type Next = Either<A::Next, B::Next>;
    const THRU: Self::Next = Either::Second(B::THRU);
    const HEADERS_AHEAD: usize = if A::HEADERS_AHEAD > B::HEADERS_AHEAD {
        A::HEADERS_AHEAD
    } else {
        B::HEADERS_AHEAD
    };
    const HINT_AHEAD: usize = if A::HINT_AHEAD > B::HINT_AHEAD {
        A::HINT_AHEAD
    } else {
        B::HINT_AHEAD
    };

    #[inline(always)]
    fn packet(&mut self, cx: &C, p: &mut Pkt<'_>) -> Self::Next {
        let next = self.0.packet(cx, p);
        if next.index() == A::THRU.index() {
            Either::Second(self.1.packet(cx, p))
        } else {
            Either::First(next)
        }
    }

    #[inline(always)]
    fn hint(&self, cx: &C, p: &Pkt<'_>) {
        self.0.hint(cx, p);
        self.1.hint(cx, p);
    }

    fn stages() -> Vec<StageInfo> {
        let mut stages = A::stages();
        stages.extend(B::stages());
        stages
    }
}
