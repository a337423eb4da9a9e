//! Congestion notification through a tunnel (RFC 6040): routers on its way mark the outer header,
//! and those who talk through it read the inner one.

use graph::Pkt;
use wire::ip::ecn::{CE, ECT0, ECT1, NOT_ECT};
use wire::{ip4, ip6};

use crate::Family;
use crate::bond::{family, network_at};

/// What the outer header of a frame says, whose own network header is at `at`: the same as the inner
/// one (RFC 6040 section 4.1, normal mode).
#[inline(always)]
pub(super) fn outer(p: &Pkt<'_>, at: u8) -> u8 {
    match family(p, at) {
        Some(Family::V4) => p.header::<ip4::Header>(at).ecn(),
        Some(Family::V6) => p.header::<ip6::Header>(at).ecn(),
        None => NOT_ECT,
    }
}

/// Lets a frame say what the outer header has said, if that is more than it says itself. False if
/// it must be told and cannot: the packet is to be dropped, which its sender understands.
#[cold]
pub(super) fn take_over(p: &mut Pkt<'_>, outer: u8) -> bool {
    let at = network_at(p);
    match family(p, at) {
        None => true,
        Some(Family::V4) => {
            let header = p.header_mut::<ip4::Header>(at);
            let both = both(header.ecn(), outer);
            header.set_ecn(both.unwrap_or(NOT_ECT));
            both.is_some()
        }
        Some(Family::V6) => {
            let header = p.header_mut::<ip6::Header>(at);
            let both = both(header.ecn(), outer);
            header.set_ecn(both.unwrap_or(NOT_ECT));
            both.is_some()
        }
    }
}

/// What both say together (RFC 6040 section 4.2, figure 4); `None`: to be dropped.
const fn both(inner: u8, outer: u8) -> Option<u8> {
    match (inner, outer) {
        (NOT_ECT, CE) => None,
        (ECT0 | ECT1, CE) => Some(CE),
        (ECT0, ECT1) => Some(ECT1),
        _ => Some(inner),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The figure, by outer column.
    #[test]
    fn inner_and_outer_together() {
        const ALL: [u8; 4] = [NOT_ECT, ECT0, ECT1, CE];
        let rows = [
            (NOT_ECT, [Some(NOT_ECT), Some(NOT_ECT), Some(NOT_ECT), None]),
            (ECT0, [Some(ECT0), Some(ECT0), Some(ECT1), Some(CE)]),
            (ECT1, [Some(ECT1), Some(ECT1), Some(ECT1), Some(CE)]),
            (CE, [Some(CE); 4]),
        ];
        for (inner, row) in rows {
            assert_eq!(ALL.map(|outer| both(inner, outer)), row, "{inner}");
        }
    }
}
