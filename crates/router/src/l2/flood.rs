//! l2-flood: a frame to all members of its bridge domain but the one where it came in, and to the
//! domain's own interface.

use graph::{Desc, Each, Emit, Pkt, edges};
use tables::interface::{L2, Mode, Tags};

use super::{Stuck, leave};
use crate::change::Mac;
use crate::context::Cx;

edges! {
    /// Ways out of l2-flood.
    pub enum Next {
        /// Out by a member.
        Member => Interface,
        /// To the domain's own interface, as if it had come in there.
        Bvi => Node("ethernet-input"),
        /// There is no other member that is up.
        Nobody => Drop("no other member of the bridge domain is up"),
        /// There is no buffer for a copy.
        NoBuffer => Drop("no buffer to flood with"),
        /// Longer than the member's link allows.
        TooLong => Drop("frame is longer than MTU of bridged interface"),
        /// There is no room in front of the frame for the tags of the member.
        NoRoom => Drop("no room for VLAN tags"),
    }
}

/// The node.
pub struct Flood;

impl Each<Cx> for Flood {
    const NAME: &'static str = "l2-flood";
    type Next = Next;

    fn packet(&mut self, cx: &Cx, out: &mut Emit<'_, Next>, mut d: Desc) {
        let from = d.rx_if;
        let domain = match cx.interfaces.load(from).l2() {
            Some(L2::Bridge(number)) => cx.snapshot().domain(number),
            _ => None,
        };
        if let Some(domain) = domain {
            let bytes = out.pool().bytes_of(&d);
            let destination = bytes.first_chunk().copied().unwrap_or_default();
            domain.frames.flood(Mac(destination));
        }
        let bvi = domain.and_then(|domain| domain.settings.bvi);
        let members = domain.map_or(&[][..], |domain| &domain.members);
        let is_up = |to: u16| cx.interfaces.load(to).mode() != Mode::Down;
        let all = members.iter().copied().chain(bvi);
        let mut all = all.filter(|to| *to != from && is_up(*to)).peekable();
        if all.peek().is_none() {
            return out.push(Next::Nobody, d);
        }
        while let Some(to) = all.next() {
            // The last one gets the frame itself.
            if all.peek().is_none() {
                let next = send(cx, out, &mut d, to, bvi);
                return out.push(next, d);
            }
            match out.bufs().copy(&d) {
                None => out.count(Next::NoBuffer),
                Some(mut copy) => {
                    let next = send(cx, out, &mut copy, to, bvi);
                    out.push(next, copy);
                }
            }
        }
    }
}

fn send(cx: &Cx, out: &Emit<'_, Next>, d: &mut Desc, to: u16, bvi: Option<u16>) -> Next {
    if bvi == Some(to) {
        cx.received(to, out.pool().total(d));
        d.rx_if = to;
        return Next::Bvi;
    }
    let mut p = Pkt::new(out.pool(), d);
    match leave(cx, &mut p, Tags::NONE, (to, cx.interfaces.load(to))) {
        Ok(()) => Next::Member,
        Err(Stuck::TooLong) => Next::TooLong,
        Err(Stuck::NoRoom) => Next::NoRoom,
    }
}
