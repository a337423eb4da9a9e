//! icmp4-echo-count: counts the echo requests that come in (RFC 792) and lets everything pass.

use graph::{Pkt, Stage, edges};
use router::Cx;
use router::arc::IP4_IN_ARC;
use wire::{icmp4, ip, ip4};

edges! {
    /// Ways out of icmp4-echo-count.
    pub enum Next {
        /// Anything else.
        Other => Arc(IP4_IN_ARC),
        /// An echo request.
        EchoRequest => Arc(IP4_IN_ARC),
    }
}

/// The stage.
pub struct EchoCount;

impl Stage<Cx> for EchoCount {
    const NAME: &'static str = "icmp4-echo-count";
    type Next = Next;
    const THRU: Next = Next::Other;

    fn packet(&mut self, _cx: &Cx, p: &mut Pkt<'_>) -> Next {
        let header = p.header::<ip4::Header>(p.l3);
        // The rest of a fragmented request is counted with its first piece.
        if header.proto != ip::ICMP || header.fragment_offset() > 0 {
            return Next::Other;
        }
        let at = usize::from(p.l3) + header.header_len();
        match p.bytes().get(at) {
            Some(&icmp4::ECHO_REQUEST) => Next::EchoRequest,
            _ => Next::Other,
        }
    }
}
