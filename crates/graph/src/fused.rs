//! Two stages in one node.

use crate::stage::StageInfo;
use crate::{Edge, Edges, Packets, Pkt, Stage};

/// Two stages as one: packets that take the first one's through edge go on in the second at once.
///
/// Its edges are the first stage's, then the second's. The first one's through edge is never
/// counted: readers subtract the other edges from the packets of the stage.
pub struct Fused<A, B>(pub A, pub B);

/// The edges of [`Fused`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Either<A, B> {
    /// An edge of the first stage.
    First(A),
    /// An edge of the second stage.
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

const fn max(a: usize, b: usize) -> usize {
    if a > b { a } else { b }
}

impl<C, A: Stage<C>, B: Stage<C>> Stage<C> for Fused<A, B> {
    const NAME: &'static str = A::NAME;
    type Next = Either<A::Next, B::Next>;
    const THRU: Self::Next = Either::Second(B::THRU);
    const HEADERS_AHEAD: usize = max(A::HEADERS_AHEAD, B::HEADERS_AHEAD);
    const HINT_AHEAD: usize = max(A::HINT_AHEAD, B::HINT_AHEAD);
    const BATCH: usize = max(A::BATCH, B::BATCH);

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

    #[inline(always)]
    fn prepare(&mut self, cx: &C, packets: &mut Packets<'_>) {
        self.0.prepare(cx, packets);
        self.1.prepare(cx, packets);
    }

    fn stages() -> Vec<StageInfo> {
        let mut stages = A::stages();
        stages.extend(B::stages());
        stages
    }
}
