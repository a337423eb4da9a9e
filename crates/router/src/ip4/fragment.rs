//! ip4-fragment: cuts packets that are larger than the link's MTU (RFC 791 section 3.2).

use graph::trace::{Names, Record};
use graph::{Desc, Each, Emit, edges};
use wire::ip4::{FRAGMENT_OFFSET, Header, LEN, MORE_FRAGMENTS};

use crate::context::Cx;

edges! {
    /// Ways out of ip4-fragment.
    pub enum Next {
        /// A fragment on its way.
        Rewrite => Node("ip4-rewrite"),
        /// The packet that has been cut.
        Cut => Drop("ip4 packet was sent in fragments") as Done,
        /// There were no buffers for its fragments.
        NoBuffer => Drop("no buffers for ip4 fragments"),
    }
}

/// The node.
#[derive(Default)]
pub struct Fragment {
    /// The packet being cut, in one piece.
    whole: Vec<u8>,
    /// The fragment being made.
    piece: Vec<u8>,
    parts: Vec<Desc>,
}

impl Each<Cx> for Fragment {
    const NAME: &'static str = "ip4-fragment";
    type Next = Next;

    fn packet(&mut self, cx: &Cx, out: &mut Emit<'_, Next>, d: Desc) {
        self.whole.clear();
        out.pool()
            .segments(&d, |segment| self.whole.extend_from_slice(segment));
        let l3 = d.l3 as usize;
        let mtu = cx.adjacencies.load(d.adjacency()).mtu() as usize;
        if !self.make(out, &d, l3, mtu) {
            self.parts.drain(..).for_each(|part| out.bufs().free(part));
            out.push(Next::NoBuffer, d);
            return;
        }
        for part in self.parts.drain(..) {
            out.push(Next::Rewrite, part);
        }
        out.count(Next::Cut);
        out.bufs().free(d);
    }

    fn note(record: &Record, names: &dyn Names) -> Option<String> {
        names.adjacency(record.adjacency())
    }
}

impl Fragment {
    /// Makes all fragments. False when buffers are short.
    fn make(&mut self, out: &mut Emit<'_, Next>, d: &Desc, l3: usize, mtu: usize) -> bool {
        let packet = &self.whole[l3..];
        let Some((whole, _)) = Header::parse(packet) else {
            return false;
        };
        let total = usize::from(whole.total_len()).min(packet.len());
        // The last fragment may have any length that fits, the others only multiples of 8.
        let room = mtu.saturating_sub(LEN);
        if room < 8 {
            return false;
        }
        let mut to = LEN;
        while to < total {
            let from = to;
            to = if total - from <= room {
                total
            } else {
                from + (room & !7)
            };
            let offset = (whole.fragment() & FRAGMENT_OFFSET) + ((from - LEN) / 8) as u16;
            let more = if to < total {
                MORE_FRAGMENTS
            } else {
                whole.fragment() & MORE_FRAGMENTS
            };
            let mut header = *whole;
            header.set_total_len((LEN + to - from) as u16);
            header.set_fragment(more | offset);
            header.seal();
            self.piece.clear();
            self.piece.extend_from_slice(&self.whole[..l3]);
            self.piece.extend_from_slice(header.bytes());
            self.piece.extend_from_slice(&packet[from..to]);
            let Some(mut part) = out.bufs().copy_in(&self.piece) else {
                return false;
            };
            part.inherit(d);
            out.pool().copy_note(d, &mut part);
            self.parts.push(part);
        }
        true
    }
}
