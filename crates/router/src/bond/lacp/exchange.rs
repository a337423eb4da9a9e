//! lacp-exchange: gives the LACPDUs that members get to the control thread, answers markers, and
//! sends the LACPDUs of ours.

use graph::{Desc, Each, Emit, edges};
use wire::eth::{self, Mac};
use wire::lacp::{self, Malformed, Pdu};

use crate::bucket::Allowance;
use crate::context::Cx;
use crate::event::{Event, Lacpdu};

edges! {
    /// Ways out of lacp-exchange.
    pub enum Next {
        /// An LACPDU of ours, or the answer to a marker.
        Member => Interface,
        /// More than a member may get.
        TooMany => Drop("more LACPDUs and markers than 100 a second"),
        /// It claims to come from many (IEEE 802.3 clause 3.2.3: the source is an individual address).
        BadSource => Drop("source MAC of LACPDU or marker is multicast"),
        /// Of another slow protocol.
        Subtype => Drop("slow protocol is neither LACP nor marker"),
        /// Shorter than a PDU.
        Short => Drop("LACPDU or marker is shorter than 110 bytes"),
        /// A TLV has not the length that it must have.
        Length => Drop("length of a TLV in LACPDU or marker is wrong"),
        /// Neither marker nor answer.
        MarkerType => Drop("marker PDU is neither marker nor response"),
        /// We send no markers.
        Unasked => Drop("marker response that nobody has asked for"),
        /// The control thread has not taken in what has come before.
        Busy => Drop("LACPDUs of before are not taken in"),
        /// There is no buffer to send with.
        NoBuffer => Drop("no buffer for an LACPDU"),
    }
}

/// Most frames that are taken in of a member a second, and at once, and most of all members. Others
/// send one a second and a few more where something changes (IEEE 802.1AX-2014 clause 6.4.16: three
/// at once). What a flood costs is one look at a bucket for each frame.
const EACH: (u64, u64) = (100, 20);
const ALL: (u64, u64) = (5_000, 500);

/// The allowance of members, and the one for all.
pub(crate) fn allowance(interfaces: usize) -> Allowance {
    Allowance::new(interfaces, EACH, ALL)
}

/// The node.
#[derive(Default)]
pub struct Exchange {
    seen: u64,
}

impl Each<Cx> for Exchange {
    const NAME: &'static str = "lacp-exchange";
    type Next = Next;

    fn packet(&mut self, cx: &Cx, out: &mut Emit<'_, Next>, mut d: Desc) {
        if !cx.limits.lacp.take(d.rx_if, out.now()) {
            return out.push(Next::TooMany, d);
        }
        let bytes = out.pool().bytes_of(&d);
        if bytes.get(6).is_some_and(|first| first & 1 != 0) {
            return out.push(Next::BadSource, d);
        }
        let pdu = match lacp::parse(bytes.get(eth::LEN..).unwrap_or_default()) {
            Ok(pdu) => pdu,
            Err(malformed) => return out.push(malformed.into(), d),
        };
        match pdu {
            Pdu::Lacp(pdu) => {
                let member = d.rx_if;
                let lacpdu = Lacpdu {
                    actor: pdu.actor(),
                    partner: pdu.partner(),
                };
                if cx.events.send(Event::Lacpdu { member, lacpdu }) {
                    out.bufs().free(d);
                } else {
                    out.push(Next::Busy, d);
                }
            }
            Pdu::Marker => {
                let from = cx.interfaces.load(d.rx_if).mac();
                lacp::answer_marker(out.pool().bytes_of_mut(&mut d), Mac(from));
                let member = d.rx_if;
                d.set_tx_if(member);
                out.push(Next::Member, d);
            }
            Pdu::MarkerResponse => out.push(Next::Unasked, d),
        }
    }

    fn polls(&self) -> bool {
        true
    }
    fn poll(&mut self, cx: &Cx, out: &mut Emit<'_, Next>) {
        if cx.worker != 0 || std::mem::replace(&mut self.seen, cx.changes) == cx.changes {
            return;
        }
        let due = cx.snapshot().lacpdus().iter().filter_map(|o| o.take());
        for (member, frame) in due {
            match out.bufs().copy_in(frame) {
                None => out.count(Next::NoBuffer),
                Some(mut d) => {
                    d.set_tx_if(member);
                    out.push(Next::Member, d);
                }
            }
        }
    }
}

impl From<Malformed> for Next {
    fn from(malformed: Malformed) -> Self {
        match malformed {
            Malformed::Subtype => Next::Subtype,
            Malformed::Short => Next::Short,
            Malformed::Length => Next::Length,
            Malformed::MarkerType => Next::MarkerType,
        }
    }
}
