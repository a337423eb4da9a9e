//! What differs between the firewalls of the two families.

use graph::{Edges, Pkt, edges};
use tables::acl::{Acl, IP4, IP6, Key as AclKey};
use tables::flow::Key;
use wire::{icmp4, icmp6};

use super::compiled::{Compiled, Rules};
use super::{State, opening};
use crate::acl::key as acl_key;
use crate::arc::{IP4_OUT_ARC, IP6_OUT_ARC};
use crate::flow::key::{self, Malformed};

/// Way of a packet, whatever its family.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// It may pass.
    Passed,
    /// Its flow is another worker's.
    Elsewhere,
    /// A policy drops it.
    Dropped,
    /// A policy rejects it, by an ICMP error.
    Prohibited,
    /// A policy rejects it, by a TCP reset.
    Reset,
    /// A policy rejects it, and nobody may be told.
    Rejected,
    /// It is over the limit of its rule.
    OverLimit,
    /// There is no room for its flow.
    Full,
    /// No port is left for its source.
    NoPort,
    /// It is of no flow, so that nobody can tell what its addresses are to become.
    Untranslated,
    /// Its destination was translated otherwise than its flow says.
    Misplaced,
}

/// What differs between the families.
#[expect(private_bounds, reason = "the families are those of this file")]
pub trait Family<const W: usize>: Edges + From<Way> + Rules<W> {
    /// Name of the stage.
    const NAME: &'static str;
    /// The edge of what may pass.
    const PASSED: Self;
    /// Addresses may be translated.
    const TRANSLATES: bool;

    /// The flow of a packet.
    ///
    /// # Errors
    /// It is cut off.
    fn packet(bytes: &[u8]) -> Result<key::Packet, Malformed>;
    /// The flow that an ICMP error in `packet` is about, if that was sent by who is to be told.
    ///
    /// # Errors
    /// There is none.
    fn quoted(packet: &[u8], content: &[u8]) -> Result<key::Packet, Malformed>;
    /// What rules are compared with.
    fn key(p: &Pkt<'_>) -> AclKey<W>;
    /// The same of the packet that opened a flow with this key; `swapped`: its source was the second
    /// end.
    fn opening(key: &Key, swapped: bool) -> AclKey<W>;
    /// The packet goes to a group.
    fn is_to_group(p: &Pkt<'_>) -> bool;
}

/// A family.
macro_rules! family {
    ($(#[$meta:meta])* $module:ident, $name:literal, $arc:ident, $error:literal,
     $reset:literal, $words:ident, $quoted:ident, $header:ty, $icmp:ident, $ends:expr, $is_group:expr) => {
        $(#[$meta])*
        pub mod $module {
            use super::*;

            edges! {
                /// Ways out of the stage.
                pub enum Next {
                    /// It may pass.
                    Passed => Arc($arc),
                    /// Its flow is another worker's.
                    Elsewhere => Node("firewall-handoff"),
                    /// A policy drops it.
                    Dropped => Drop("dropped by policy"),
                    /// A policy rejects it, by an ICMP error.
                    Prohibited => Node($error) as Answered,
                    /// A policy rejects it, by a TCP reset.
                    Reset => Node($reset) as Answered,
                    /// A policy rejects it, and nobody may be told.
                    Rejected => Drop("rejected by policy"),
                    /// It is over the limit of its rule.
                    OverLimit => Drop("over the limit of its rule"),
                    /// There is no room for its flow.
                    Full => Drop("table of flows is full"),
                    /// No port is left for its source.
                    NoPort => Drop("no port left to translate its source to"),
                    /// It is of no flow, so that nobody can tell what its addresses are to become.
                    Untranslated => Drop("of no flow, by which it could be translated"),
                    /// Its destination was translated otherwise than its flow says.
                    Misplaced => Drop("not translated as its flow"),
                }
            }

            impl From<Way> for Next {
                #[inline(always)]
                fn from(way: Way) -> Self {
                    match way {
                        Way::Passed => Next::Passed,
                        Way::Elsewhere => Next::Elsewhere,
                        Way::Dropped => Next::Dropped,
                        Way::Prohibited => Next::Prohibited,
                        Way::Reset => Next::Reset,
                        Way::Rejected => Next::Rejected,
                        Way::OverLimit => Next::OverLimit,
                        Way::Full => Next::Full,
                        Way::NoPort => Next::NoPort,
                        Way::Untranslated => Next::Untranslated,
                        Way::Misplaced => Next::Misplaced,
                    }
                }
            }

            impl Rules<$words> for Next {
                #[inline(always)]
                fn of(policy: &Compiled, state: State) -> &Acl<$words> {
                    policy.$module(state)
                }
            }

            impl Family<$words> for Next {
                const NAME: &'static str = $name;
                const PASSED: Next = Next::Passed;
                const TRANSLATES: bool = $words == IP4;

                #[inline(always)]
                fn packet(bytes: &[u8]) -> Result<key::Packet, Malformed> {
                    key::$module(bytes)
                }

                fn quoted(packet: &[u8], content: &[u8]) -> Result<key::Packet, Malformed> {
                    let quote = content.get($icmp::LEN..).and_then(<$header>::parse);
                    let is_told = match (<$header>::parse(packet), quote) {
                        (Some((error, _)), Some((quoted, _))) => {
                            let ends = $ends;
                            ends(error).1 == ends(quoted).0
                        },
                        _ => false,
                    };
                    if !is_told {
                        return Err(Malformed::Truncated);
                    }
                    key::$quoted(content)
                }

                #[inline(always)]
                fn key(p: &Pkt<'_>) -> AclKey<$words> {
                    acl_key::$module(p)
                }

                fn opening(key: &Key, swapped: bool) -> AclKey<$words> {
                    opening::$module(key, swapped)
                }

                fn is_to_group(p: &Pkt<'_>) -> bool {
                    let is_group = $is_group;
                    is_group(p.header::<$header>(p.l3))
                }
            }
        }
    };
}

family! {
    /// IPv4 packets.
    ip4, "ip4-firewall", IP4_OUT_ARC, "icmp4-error", "ip4-tcp-reset", IP4, quoted4,
    wire::ip4::Header, icmp4, |header: &wire::ip4::Header| (header.src(), header.dst()),
    |header: &wire::ip4::Header| header.dst() >> 28 == 0xe
}
family! {
    /// IPv6 packets.
    ip6, "ip6-firewall", IP6_OUT_ARC, "icmp6-error", "ip6-tcp-reset", IP6, quoted6,
    wire::ip6::Header, icmp6, |header: &wire::ip6::Header| (header.src, header.dst),
    |header: &wire::ip6::Header| header.dst[0] == 0xff
}
