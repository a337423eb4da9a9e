//! Two stages in one node.

use crate::stage::StageInfo;
use crate::{Edge, Edges, Pkt, Stage};

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
