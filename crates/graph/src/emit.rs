//! The engine as a node sees it.

use std::marker::PhantomData;

use crate::out::Out;
use crate::{Buffers, Desc, Edges, Pool};

/// The tools of an [`Each`](crate::Each) node, besides its own state: its edges `E`, and the
/// worker's buffers and clock.
///
/// A node pushes packets along its own edges only:
/// ```
/// use graph::{Desc, Each, Emit, edges};
///
/// edges! { enum Mine { On => Node("next"), Bad => Drop("bad") } }
///
/// struct Holder;
/// impl Each<()> for Holder {
///     const NAME: &'static str = "holder";
///     type Next = Mine;
///     fn packet(&mut self, (): &(), out: &mut Emit<'_, Mine>, d: Desc) {
///         out.push(Mine::On, d);
///     }
/// }
/// ```
/// Another node's edge does not compile:
/// ```compile_fail,E0308
/// use graph::{Desc, Each, Emit, edges};
///
/// edges! { enum Mine { On => Node("next"), Bad => Drop("bad") } }
/// edges! { enum Foreign { On => Node("next"), Bad => Drop("bad") } }
///
/// struct Holder;
/// impl Each<()> for Holder {
///     const NAME: &'static str = "holder";
///     type Next = Mine;
///     fn packet(&mut self, (): &(), out: &mut Emit<'_, Mine>, d: Desc) {
///         out.push(Foreign::On, d);
///     }
/// }
/// ```
pub struct Emit<'a, E> {
    out: &'a mut Out,
    _edges: PhantomData<fn(E)>,
}

impl<'a, E: Edges> Emit<'a, E> {
    /// For the current node of `out`, whose edges must be `E`.
    pub(crate) fn new(out: &'a mut Out) -> Self {
        Emit {
            out,
            _edges: PhantomData,
        }
    }

    /// Sends a packet along an edge.
    ///
    /// # Panics
    /// Panics if it is of another pool than the graph's.
    #[inline]
    pub fn push(&mut self, edge: E, d: Desc) {
        self.out.push(edge.index(), d);
    }

    /// Sends a packet along an edge at worker `worker`, 0 to [`workers`](Self::workers) - 1: for
    /// nodes whose state is spread over the workers. It counts under the edge here; `handoffs`
    /// counts it as handed over, `handoff_full` as lost when the ring to that worker is full. At
    /// this worker itself, and along an edge that leads to no node, it goes as by
    /// [`push`](Self::push).
    ///
    /// # Panics
    /// Panics if it is of another pool than the graph's, or there is no such worker.
    #[inline]
    pub fn hand_over(&mut self, worker: usize, edge: E, d: Desc) {
        self.out.hand_over(worker, edge.index(), d);
    }

    /// Workers that packets may be handed to, this one included.
    pub fn workers(&mut self) -> usize {
        self.out.transmit().handoff().workers()
    }

    /// Counts a packet under a drop edge without dropping it: for nodes that free it themselves.
    pub fn count(&mut self, edge: E) {
        self.out.count(edge.index(), 1);
    }

    /// TSC at the start of this round.
    #[inline]
    pub fn now(&self) -> u64 {
        self.out.now()
    }

    /// Milliseconds at the start of this round, since some time before the router's start: the time
    /// of [`Timers`](crate::Timers).
    #[inline]
    pub fn tick(&self) -> u64 {
        self.out.now() / self.out.millisecond()
    }

    /// The packet memory.
    #[inline]
    pub fn pool(&self) -> &Pool {
        self.out.pool()
    }

    /// The worker's buffers.
    #[inline]
    pub fn bufs(&mut self) -> &mut Buffers {
        self.out.bufs_mut()
    }
}
