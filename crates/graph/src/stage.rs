//! Stages: the work on one packet, written once. A node runs a stage over a frame;
//! [`Fused`](crate::Fused) makes one node of two stages.

use crate::trace::{Names, Record};
use crate::{Edge, Edges, Packets, Pkt};

/// One stage of a packet's way: a protocol's work on one packet. `C` is the context that the stages
/// of a graph share: tables and the snapshot.
pub trait Stage<C>: Send + 'static {
    /// Name in `show runtime` and `show errors`: `<layer>-<verb>`.
    const NAME: &'static str;
    /// Its edges.
    type Next: Edges;
    /// Its through edge: the one that nearly all packets take.
    const THRU: Self::Next;
    /// Packets ahead whose headers are prefetched; 0 where they have been touched before. Measured
    /// on a model of this engine with cold buffers, 32 costs 6 cycles a packet less than 8, and 64
    /// is no better.
    const HEADERS_AHEAD: usize = 0;
    /// Packets ahead for which [`Stage::hint`] is called; 0 for never. The hint reads the header:
    /// where that has to be prefetched, this is less than [`HEADERS_AHEAD`](Self::HEADERS_AHEAD).
    const HINT_AHEAD: usize = 0;
    /// Packets that [`Stage::prepare`] is given at once, at most; 0 for never.
    const BATCH: usize = 0;

    /// Works on the packet, and says along which edge it goes on.
    fn packet(&mut self, cx: &C, p: &mut Pkt<'_>) -> Self::Next;

    /// Prefetches the table line that [`Stage::packet`] will need.
    #[inline(always)]
    fn hint(&self, _cx: &C, _p: &Pkt<'_>) {}

    /// Does for the next packets what is better done for many at once, before [`Stage::packet`] sees
    /// each: a look-up of several loads, each of which is asked for while those of other packets
    /// are made. One load is better left to [`Stage::hint`]: it costs a packet less than a second
    /// pass.
    ///
    /// In a [`Fused`](crate::Fused) node the stages before have not seen the packets yet: their
    /// headers may be wrong. What is found may be left in a packet's word
    /// ([`Desc::argument`](crate::Desc::argument)).
    #[inline(always)]
    fn prepare(&mut self, _cx: &C, _packets: &mut Packets<'_>) {}

    /// A line in the trace of a packet that came to it, beside the packet's own text: what the
    /// descriptor's word says to this stage.
    fn note(_record: &Record, _names: &dyn Names) -> Option<String> {
        None
    }

    /// The stages that it consists of: itself, unless it is [`Fused`](crate::Fused).
    fn stages() -> Vec<StageInfo> {
        vec![StageInfo {
            name: Self::NAME,
            edges: Self::Next::table(),
            thru: Self::THRU.index() as usize,
            note: Self::note,
        }]
    }
}

/// A stage within a node, as graph, counters and traces see it.
#[derive(Debug, Clone)]
pub struct StageInfo {
    /// The stage's name.
    pub name: &'static str,
    /// Its edges.
    pub edges: Vec<Edge>,
    /// Index of its through edge.
    pub thru: usize,
    /// As [`Stage::note`].
    pub note: fn(&Record, &dyn Names) -> Option<String>,
}
