//! Nodes: what a graph is made of. Most run a [`Stage`] over a frame; those that make, free or hold
//! packets are an [`Each`].
#![allow(unsafe_code)]

use std::marker::PhantomData;

use crate::out::Out;
use crate::stage::StageInfo;
use crate::trace::{Names, Record};
use crate::{Desc, Edges, Emit, FRAME, Frame, Packets, Pkt, Stage};

/// A node of the graph, made by [`node`] or [`each`].
pub trait Node<C>: Send {
    /// The stages that it consists of (most nodes: one) with their edges. The first one's name is
    /// the node's.
    fn stages(&self) -> Vec<StageInfo>;
    /// Takes every packet out of the frame and sends it along an edge, or keeps it.
    ///
    /// # Safety
    /// The packets are of `out`'s pool.
    unsafe fn frame(&mut self, cx: &C, out: &mut Out, frame: &mut Frame);
    /// As [`Each::polls`].
    fn polls(&self) -> bool {
        false
    }
    /// As [`Each::poll`].
    fn poll(&mut self, _cx: &C, _out: &mut Out) {}
}

/// A node that runs `stage` on every packet, under the stage's name.
pub fn node<C: 'static, S: Stage<C>>(stage: S) -> Box<dyn Node<C>> {
    Box::new(Staged::<C, S> {
        stage,
        _context: PhantomData,
    })
}

/// A node that gives `each` its packets.
pub fn each<C: 'static, E: Each<C> + 'static>(each: E) -> Box<dyn Node<C>> {
    Box::new(OneByOne(each))
}

/// A node that owns the packets it is given, one at a time and in order, and may make, free or hold
/// packets.
pub trait Each<C>: Send {
    /// Name in `show runtime` and `show errors`: `<layer>-<verb>`.
    const NAME: &'static str;
    /// Its edges; the first is the one that most packets take.
    type Next: Edges;

    /// Takes the packet and pushes it along an edge, or keeps it.
    fn packet(&mut self, cx: &C, out: &mut Emit<'_, Self::Next>, d: Desc);

    /// As [`Stage::note`].
    fn note(_record: &Record, _names: &dyn Names) -> Option<String> {
        None
    }

    /// True if [`Each::poll`] is to be called.
    fn polls(&self) -> bool {
        false
    }
    /// For nodes that hold packets: called about once a millisecond (every 100 ms while the worker
    /// sleeps), and after every new snapshot.
    fn poll(&mut self, _cx: &C, _out: &mut Emit<'_, Self::Next>) {}
}

struct OneByOne<E>(E);

impl<C, E: Each<C>> Node<C> for OneByOne<E> {
    fn stages(&self) -> Vec<StageInfo> {
        vec![StageInfo {
            name: E::NAME,
            edges: E::Next::table(),
            thru: 0,
            note: E::note,
        }]
    }
    unsafe fn frame(&mut self, cx: &C, out: &mut Out, frame: &mut Frame) {
        let mut out = Emit::new(out);
        for d in frame.drain() {
            self.0.packet(cx, &mut out, d);
        }
    }
    fn polls(&self) -> bool {
        self.0.polls()
    }
    fn poll(&mut self, cx: &C, out: &mut Out) {
        self.0.poll(cx, &mut Emit::new(out));
    }
}

struct Staged<C, S> {
    stage: S,
    _context: PhantomData<fn(&C)>,
}

impl<C, S: Stage<C>> Node<C> for Staged<C, S> {
    fn stages(&self) -> Vec<StageInfo> {
        S::stages()
    }
    unsafe fn frame(&mut self, cx: &C, out: &mut Out, frame: &mut Frame) {
        let mut nexts = [0u8; FRAME];
        let pool = &**out.pool();
        let packets = frame.packets_mut();
        let mut differs = 0;
        packets
            .iter()
            .take(S::HEADERS_AHEAD)
            .for_each(|d| pool.prefetch(d));
        let batch = if S::BATCH > 0 { S::BATCH } else { FRAME };
        for begin in (0..packets.len()).step_by(batch) {
            let end = packets.len().min(begin + batch);
            if S::BATCH > 0 {
                // SAFETY: they are of this pool, as the graph checks where packets come in:
                // `Out::receive`, `Out::push`.
                let mut batch = unsafe { Packets::known(pool, &mut packets[begin..end]) };
                self.stage.prepare(cx, &mut batch);
            }
            for i in begin..end {
                if S::HEADERS_AHEAD > 0
                    && let Some(d) = packets.get(i + S::HEADERS_AHEAD)
                {
                    pool.prefetch(d);
                }
                if S::HINT_AHEAD > 0
                    && let Some(d) = packets.get_mut(i + S::HINT_AHEAD)
                {
                    // SAFETY: as for the batch.
                    let ahead = unsafe { Pkt::known(pool, d) };
                    self.stage.hint(cx, &ahead);
                }
                // SAFETY: of this pool by the contract of `frame`, which the graph keeps.
                let mut packet = unsafe { Pkt::known(pool, &mut packets[i]) };
                let next = self.stage.packet(cx, &mut packet).index();
                nexts[i] = next;
                differs |= next ^ nexts[0];
            }
        }
        if differs == 0 {
            out.all(nexts[0], frame);
        } else {
            out.scatter(&nexts, frame);
        }
    }
}
